//! Why a run could not be carried out. A disk that is slow or wrong is not an error of the run: it
//! is its result.

use plimsoll_engine::error::EngineError;
use plimsoll_io::{DiskError, Stalled};

/// What stopped a run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The spec is wrong.
    #[error("the run was described wrongly: {0}")]
    Spec(String),
    /// Another run works with a database.
    #[error("{0}")]
    InUse(String),
    /// Files that do not belong together, or are not all there.
    #[error("the databases and the log beside them do not fit: {0}")]
    Mixed(String),
    /// The storage reported an error.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// What is on the storage is not what was written.
    #[error("damaged data: {0}")]
    Corruption(String),
    /// The user or a signal asked to stop.
    #[error("the run was stopped before its end")]
    Stopped,
    /// The user or a signal asked to stop, and an I/O under way does not return.
    #[error(
        "the run was stopped, and an I/O that was under way has not returned; the databases were \
         left open, and the next run recovers \
         them once the storage answers again"
    )]
    Stuck,
    /// An I/O under way does not return, and there is nothing left to wait for.
    #[error(
        "hung I/O: an I/O that was under way has not returned, and the run was ended without it; \
         the databases were left open, and the \
         next run recovers them once the storage answers again"
    )]
    HungIo,
    /// The cache did not fill.
    #[error(
        "after {waited_s:.0} s the cache of instance {instance} holds {used_percent} % of its \
         limit and not {wanted_percent} %; \
         give the warm-up more time, take a smaller cache or more sessions"
    )]
    CacheNotWarm {
        /// Which instance.
        instance: String,
        /// How long it was waited for.
        waited_s: f64,
        /// How full it was.
        used_percent: u32,
        /// How full it should have been.
        wanted_percent: u32,
    },
    /// The rate of a load is not known yet.
    #[error(
        "workload {workload} aims at database I/O, but what a transaction makes was never \
         measured; put a warm_up phase \
         with this workload before the first measure phase"
    )]
    NotCalibrated {
        /// Which workload.
        workload: String,
    },
    /// A rate cannot be measured because nothing happens.
    #[error(
        "no transaction of workload {workload} was completed while its rate was to be measured; is \
         the storage stuck, or the target too low?"
    )]
    NothingArrives {
        /// Which workload.
        workload: String,
    },
    /// A rate cannot be measured because the cache holds everything.
    #[error(
        "workload {workload} makes no database I/O, so no rate makes its target; take larger \
         databases or a smaller cache"
    )]
    NoDatabaseIo {
        /// Which workload.
        workload: String,
    },
    /// The load writes too little log.
    #[error(
        "after {waited_s:.0} s an instance has written {written_count} of {wanted_count} logs; \
         give the phase more time, ask for \
         fewer logs or take more sessions"
    )]
    TooFewLogs {
        /// How long it was waited for.
        waited_s: f64,
        /// Generations of the instance that has written least.
        written_count: u64,
        /// Generations that were wanted.
        wanted_count: u64,
    },
    /// A phase asks for what the backend of an instance cannot do.
    #[error(
        "instance {instance} is {backend}, which cannot be backed up or recovered; take backend \
         engine"
    )]
    Unable {
        /// Which instance.
        instance: String,
        /// Its backend.
        backend: String,
    },
    /// A phase comes too early.
    #[error("phase {phase} needs open databases; put a prepare phase before it")]
    NotOpen {
        /// The phase.
        phase: String,
    },
    /// The engine gave up for a reason that is neither of the above.
    #[error("the engine stopped: {0}")]
    Engine(String),
    /// A server that is not ours is lost, or fails for good.
    #[error("{0}")]
    Service(String),
    /// The server is so far behind its schedule that the rest of the run would say nothing more.
    #[error("{0}")]
    TooMuchLoad(String),
    /// Too few nodes are left.
    #[error("the cluster stopped: {0}")]
    QuorumLost(String),
    /// Nothing can ever happen again.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl RunError {
    /// The family a caller can react to: "config", "disk", "corruption", "stopped", "service",
    /// "cluster", "overloaded" or "other".
    pub fn family(&self) -> &'static str {
        match self {
            RunError::Spec(_)
            | RunError::InUse(_)
            | RunError::Mixed(_)
            | RunError::NotOpen { .. }
            | RunError::NotCalibrated { .. }
            | RunError::Unable { .. } => "config",
            RunError::Disk(error) => error.kind.family(),
            RunError::HungIo => "disk",
            RunError::Corruption(_) => "corruption",
            RunError::Stopped | RunError::Stuck => "stopped",
            RunError::Service(_) => "service",
            RunError::QuorumLost(_) => "cluster",
            RunError::TooMuchLoad(_) => "overloaded",
            RunError::NothingArrives { .. } | RunError::NoDatabaseIo { .. } => "other",
            RunError::CacheNotWarm { .. }
            | RunError::TooFewLogs { .. }
            | RunError::Engine(_)
            | RunError::Stalled(_) => "other",
        }
    }
}

impl From<EngineError> for RunError {
    fn from(error: EngineError) -> RunError {
        match error {
            EngineError::Disk(error) => RunError::Disk(error),
            EngineError::Poisoned { cause } => (*cause).into(),
            EngineError::BadOption { name: "databases", why } => RunError::Mixed(why),
            EngineError::BadOption { .. } => RunError::Spec(error.to_string()),
            error if error.is_corruption() => RunError::Corruption(error.to_string()),
            other => RunError::Engine(other.to_string()),
        }
    }
}
