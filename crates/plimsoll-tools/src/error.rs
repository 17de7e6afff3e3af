//! Why a job could not be done.

use plimsoll_engine::FormatError;
use plimsoll_engine::reader::ReadError;
use plimsoll_io::{DiskError, Stalled};

/// See the module text.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ToolError {
    /// What was asked for is wrong.
    #[error("the run was described wrongly: {0}")]
    Spec(String),
    /// The storage reported an error.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A database of any origin cannot be read or repaired.
    #[error(transparent)]
    Database(#[from] ReadError),
    /// The database has no such table.
    #[error("the database has no table {table:?}; `plimsoll edb ls` lists those it has")]
    NoSuchTable {
        /// What was asked for.
        table: String,
    },
    /// The user or a signal asked to stop.
    #[error("the run was stopped before its end")]
    Stopped,
    /// Nothing can ever happen again.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl ToolError {
    /// The family a caller can react to: "config", "disk", "corruption", "stopped" or "other".
    pub fn family(&self) -> &'static str {
        match self {
            ToolError::Spec(_) | ToolError::NoSuchTable { .. } => "config",
            ToolError::Database(error) => family_of(error),
            ToolError::Disk(error) => error.kind.family(),
            ToolError::Stopped => "stopped",
            ToolError::Stalled(_) => "other",
        }
    }
}

/// What is no database was named by mistake; what is a damaged one is damaged.
fn family_of(error: &ReadError) -> &'static str {
    match error {
        ReadError::Disk(error) => error.kind.family(),
        ReadError::Dirty { .. } | ReadError::Inherits { .. } | ReadError::Packed { .. } => "config",
        ReadError::Format { fault, .. } => match fault {
            FormatError::HeaderShort { .. }
            | FormatError::NotEse { .. }
            | FormatError::FileType { .. } => "config",
            _ => "corruption",
        },
    }
}
