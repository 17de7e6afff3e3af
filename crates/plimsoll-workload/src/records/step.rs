//! An operation in time: when it should start, and what is learnt of it when it ended.

use plimsoll_io::Nanos;

use crate::demand::Done;
use crate::records::operation::Operation;

/// An operation and when it should start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Not before this time; response time runs from here.
    pub intended: Nanos,
    /// The operation.
    pub operation: Operation,
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
    pub result: Done,
}
