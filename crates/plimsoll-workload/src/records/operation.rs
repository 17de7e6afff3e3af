//! One transaction on records: one operation and its commit.

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A new record.
    Insert,
    /// Seek and remove.
    Delete,
    /// Seek and rewrite.
    Replace,
    /// Seek.
    Read,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Insert, Kind::Delete, Kind::Replace, Kind::Read];

    /// The name of its metric.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Insert => "insert",
            Kind::Delete => "delete",
            Kind::Replace => "replace",
            Kind::Read => "read",
        }
    }
}

/// Where an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the record of the operation's number.
    Own,
    /// An insert beside that record, on a vacant place of the same leaf.
    Beside,
}

/// Whether a commit waits until the log is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It waits.
    Durable,
    /// It does not.
    Lazy,
}

/// One transaction: one operation and its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What.
    pub kind: Kind,
    /// On the record or beside it.
    pub placement: Placement,
    /// Which record.
    pub record: u64,
    /// How it is committed.
    pub commit: Commit,
}
