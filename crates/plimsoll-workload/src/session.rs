//! One session: it does one transaction after the other and thinks in between.
//!
//! Think time follows the published model of sluggish sessions: after a transaction that took `t`, the session waits
//! `sluggish * t`, so its share of busy time is `1 / (1 + sluggish)`. Zero is full speed.

use plimsoll_io::{Nanos, Random};

use crate::choice::Choice;
use crate::{Habits, Population};

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
    pub fn name(self) -> &'static str {
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

/// An operation and when it should start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Not before this time; response time runs from here.
    pub intended: Nanos,
    /// The operation.
    pub operation: Operation,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Result {
    /// As asked.
    Done,
    /// There was no such record.
    Missing,
    /// Another session held the record.
    Conflict,
    /// There was no room beside the record.
    NoRoom,
}

/// What a session learns of its previous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Previous {
    /// When it should have started.
    pub intended: Nanos,
    /// When its commit was complete.
    pub finished: Nanos,
    /// What it was.
    pub operation: Operation,
    /// How it ended.
    pub result: Result,
}

/// See the module text.
#[derive(Debug)]
pub struct Session {
    random: Random,
    choice: Choice,
    sluggish: f64,
}

impl Session {
    /// A session that thinks for `sluggish` times the duration of each transaction.
    pub fn new(random: Random, habits: impl Into<Habits>, sluggish: f64) -> Self {
        Self {
            random,
            choice: Choice::new(habits.into()),
            sluggish,
        }
    }

    /// The next transaction on a database with this population. An operation that found nothing or lost a conflict is
    /// repeated on another record at once, so that the mix of completed operations is the one asked for.
    pub fn next(&mut self, population: &mut Population, now: Nanos, previous: Option<Previous>) -> Step {
        let intended = previous.map_or(now, |previous| self.after(previous));
        let operation = self.choice.next(&mut self.random, population, previous);
        Step { intended, operation }
    }

    fn after(&self, previous: Previous) -> Nanos {
        if previous.result != Result::Done {
            return previous.finished;
        }
        let took = previous.finished.saturating_sub(previous.intended);
        previous.finished + (took as f64 * self.sluggish) as Nanos
    }
}
