//! Why such work, its survey or its rehearsal could not be carried out.

use plimsoll_engine::error::EngineError;
use plimsoll_io::{DiskError, Stalled};

/// See the module text.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PowercutError {
    /// The spec is wrong.
    #[error("the run was described wrongly: {0}")]
    Spec(String),
    /// The storage reported an error.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// What is on the storage is not what was written.
    #[error("damaged data: {0}")]
    Corruption(String),
    /// The engine gave up for another reason.
    #[error("the engine stopped: {0}")]
    Engine(String),
    /// Nothing can ever happen again.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl PowercutError {
    /// The family a caller can react to: "config", "disk", "corruption" or "other".
    pub fn family(&self) -> &'static str {
        match self {
            PowercutError::Spec(_) => "config",
            PowercutError::Disk(error) => error.kind.family(),
            PowercutError::Corruption(_) => "corruption",
            PowercutError::Engine(_) | PowercutError::Stalled(_) => "other",
        }
    }
}

impl From<EngineError> for PowercutError {
    fn from(error: EngineError) -> PowercutError {
        match error {
            EngineError::Disk(error) => PowercutError::Disk(error),
            EngineError::Poisoned { cause } => (*cause).into(),
            EngineError::BadOption { .. } => PowercutError::Spec(error.to_string()),
            error if error.is_corruption() => PowercutError::Corruption(error.to_string()),
            other => PowercutError::Engine(other.to_string()),
        }
    }
}
