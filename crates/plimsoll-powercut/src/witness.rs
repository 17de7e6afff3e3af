//! What a witness is told: each durable thing the moment it is acknowledged, so that somebody else
//! knows it when the power is cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use serde::Serialize;

/// What was made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A transaction of a session.
    Commit,
    /// A block of a lane.
    Mark,
}

impl Kind {
    /// The name in witness logs.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Commit => "commit",
            Kind::Mark => "mark",
        }
    }
}

/// One durable thing, acknowledged: after this it must be found whatever happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Acknowledged {
    /// What.
    pub kind: Kind,
    /// Whose: a session or a lane.
    pub lane: u32,
    /// Its number there, from 1.
    pub sequence: u64,
    /// Its number among all acknowledgements of the run, from 1.
    pub number: u64,
    /// How many acknowledgements there were when it was begun.
    pub started: u64,
}

/// Where acknowledgements go, and how many of them the witness has.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Takes each acknowledgement, in their order.
    pub acknowledged: Sender<Acknowledged>,
    /// How many the witness has confirmed.
    pub confirmed: Arc<AtomicU64>,
}

impl Witness {
    /// How many the witness has by now.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Acquire)
    }
}
