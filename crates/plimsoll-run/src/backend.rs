//! What stands behind an instance, and what a phase may ask of it.
//!
//! A backend hosts one instance. It says how full its caches and how long its databases are; it
//! times nothing, because disk latency is measured at the disk and response time by the session
//! that asked. What not every backend can do is a capability: a phase asks for it and is refused
//! where it is absent.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_engine::jobs::backup::Backup;

use crate::RunError;
use crate::outcome::{AuditReport, DatabaseState, RecoveryResult};
use crate::spec::InstanceSpec;

/// Work in progress, of a kind only its maker knows.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The state of an instance, for samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceLevels {
    /// Cache in use.
    pub cache_used_bytes: u64,
    /// Most the cache may use; zero when there is no cache.
    pub cache_limit_bytes: u64,
    /// Page faults that found no free buffer, since the instance was opened.
    pub page_fault_stalls: u64,
    /// Number of the current log generation.
    pub log_generation: u64,
    /// Bytes of all generations of the log that are there.
    pub log_space_bytes: u64,
    /// Of these, what the most lagged copy needs.
    pub log_lagged_bytes: u64,
}

/// The open instances by their position in the plan; the sampler looks at them too.
pub type OpenBackends = Rc<RefCell<BTreeMap<usize, Rc<dyn Backend>>>>;

/// The place of an instance among the open ones. What is there changes when the instance comes back
/// from a crash: who may still work then asks each time and keeps nothing.
#[derive(Clone)]
pub struct Seat {
    open: OpenBackends,
    number: usize,
}

impl Seat {
    /// The place of an instance by its position in the plan.
    pub fn new(open: &OpenBackends, number: usize) -> Seat {
        Seat { open: open.clone(), number }
    }

    /// What stands behind the instance now.
    ///
    /// # Errors
    /// When it is not open.
    pub fn backend(&self) -> Result<Rc<dyn Backend>, RunError> {
        let found = self.open.borrow().get(&self.number).cloned();
        found.ok_or_else(|| RunError::Spec(format!("instance {} is not open", self.number)))
    }

    /// The same as what its family knows it to be.
    ///
    /// # Errors
    /// When it is not open, or something else.
    pub fn holder<B: Backend>(&self) -> Result<Rc<B>, RunError> {
        let found = self.backend()?.into_any().downcast::<B>();
        found.map_err(|_| RunError::Spec(format!("instance {} is something else", self.number)))
    }
}

/// One open instance, whatever stands behind it.
pub trait Backend: Any {
    /// The state of the instance now.
    fn levels(&self) -> InstanceLevels {
        InstanceLevels::default()
    }

    /// The databases now.
    fn databases(&self) -> Vec<DatabaseState>;

    /// Pages of each database that were read with a flipped bit which their checksum put right,
    /// since it was opened; nothing where there are no such checksums.
    fn pages_corrected(&self) -> Vec<u64> {
        Vec::new()
    }

    /// What opening had to replay, if anything.
    fn recovery(&self) -> Option<RecoveryResult> {
        None
    }

    /// The capability to have its databases read front to back while transactions go on.
    fn backups(&self) -> Option<&dyn Backups> {
        None
    }

    /// The capability to say whether what it holds is what was done to it.
    fn audits(&self) -> Option<&dyn Audits> {
        None
    }

    /// The capability to be dropped as by a crash and opened again from its log.
    fn crashes(self: Rc<Self>) -> Option<Rc<dyn Crashes>> {
        None
    }

    /// Closes everything cleanly.
    ///
    /// # Errors
    /// What the disk reports.
    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>>;

    /// The same as what it is: for the family that opened it.
    fn into_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// See [`Backend::backups`].
pub trait Backups {
    /// Begins to read a database front to back.
    ///
    /// # Errors
    /// When there is no such database.
    fn backup(&self, position: usize, read_bytes: u32) -> Result<Backup, RunError>;

    /// Deletes log before a generation that nobody needs; the first that is left.
    ///
    /// # Errors
    /// What the disk reports.
    fn truncate_log(&self, before: u32) -> Work<'_, Result<u32, RunError>>;
}

/// See [`Backend::audits`].
pub trait Audits {
    /// Counts everything once more while nothing else is done to it.
    ///
    /// # Errors
    /// What the disk reports. What does not add up is a finding, not an error.
    fn audit(&self) -> Work<'_, Result<AuditReport, RunError>>;
}

/// What clients of an instance know of it, of a kind only its family knows.
pub type Memory = Box<dyn Any>;

/// See [`Backend::crashes`].
pub trait Crashes {
    /// Lets go of everything as a crash would: the next opening recovers. What its clients know
    /// is returned.
    ///
    /// # Errors
    /// What the disk reports.
    fn abandon(self: Rc<Self>) -> Work<'static, Result<Memory, RunError>>;

    /// Learns what the clients of the life before know, and how many of their operations were lost
    /// with it.
    fn remember(&self, memory: Memory, lost_count: u64);
}

/// What a phase says that asked for a capability in vain.
pub fn unable(instance: &InstanceSpec) -> RunError {
    RunError::Unable {
        instance: instance.name.clone(),
        backend: instance.backend.replace('_', " "),
    }
}

/// The only holder of an instance: those who worked on it have stopped.
///
/// # Panics
/// When a load still runs on it.
pub fn only<T>(instance: Rc<T>) -> T {
    let Ok(instance) = Rc::try_unwrap(instance) else {
        unreachable!("all sessions have stopped and given their databases back")
    };
    instance
}
