//! What an operation does, without its arguments: for counters, traces, fault filters and latency
//! rules.

use crate::{Action, OpenMode};

/// The kind of an [`Action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// Opening an existing file.
    Open,
    /// Creating a file.
    Create,
    /// Making a file longer.
    Extend,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Making a file's data and length durable.
    SyncFile,
    /// Closing.
    Close,
    /// Renaming.
    Rename,
    /// Deleting.
    Delete,
    /// Making a directory's names durable.
    SyncDirectory,
    /// Listing a directory.
    List,
    /// Asking what a name stands for.
    Stat,
    /// Making a directory.
    MakeDirectory,
    /// Removing a directory.
    RemoveDirectory,
}

impl OperationKind {
    /// The verb used in error messages and traces.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Open => "open",
            OperationKind::Create => "create",
            OperationKind::Extend => "extend",
            OperationKind::Read => "read",
            OperationKind::Write => "write",
            OperationKind::SyncFile => "sync",
            OperationKind::Close => "close",
            OperationKind::Rename => "rename",
            OperationKind::Delete => "delete",
            OperationKind::SyncDirectory => "sync directory",
            OperationKind::List => "list",
            OperationKind::Stat => "stat",
            OperationKind::MakeDirectory => "make directory",
            OperationKind::RemoveDirectory => "remove directory",
        }
    }
}

impl Action {
    /// What the action does, without its arguments.
    pub fn kind(&self) -> OperationKind {
        match self {
            Action::Open { mode: OpenMode::Create, .. } => OperationKind::Create,
            Action::Open { .. } => OperationKind::Open,
            Action::Extend { .. } => OperationKind::Extend,
            Action::Read { .. } => OperationKind::Read,
            Action::Write { .. } => OperationKind::Write,
            Action::SyncFile { .. } => OperationKind::SyncFile,
            Action::Close { .. } => OperationKind::Close,
            Action::Rename { .. } => OperationKind::Rename,
            Action::Delete { .. } => OperationKind::Delete,
            Action::SyncDirectory { .. } => OperationKind::SyncDirectory,
            Action::List { .. } => OperationKind::List,
            Action::Stat { .. } => OperationKind::Stat,
            Action::MakeDirectory { .. } => OperationKind::MakeDirectory,
            Action::RemoveDirectory { .. } => OperationKind::RemoveDirectory,
        }
    }
}
