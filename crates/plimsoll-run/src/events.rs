//! What happened and when: the lines of `events.log`.

use serde::Serialize;

use plimsoll_io::{Clock, Nanos};

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The progress of the run.
    Info,
    /// Something a reader of the result must know.
    Warning,
    /// Something that makes the run fail.
    Error,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// On the run's monotonic clock.
    pub time_ns: Nanos,
    /// The same moment, nanoseconds since 1970.
    pub utc_ns: u64,
    /// How much it matters.
    pub level: Level,
    /// A word that programs can look for.
    pub kind: &'static str,
    /// The phase it happened in, if any.
    pub phase: Option<String>,
    /// The sentence for people.
    pub text: String,
}

impl Event {
    /// An event that happens now.
    pub fn now(
        clock: &Clock,
        level: Level,
        kind: &'static str,
        phase: Option<String>,
        text: String,
    ) -> Event {
        let anchor = clock.anchor();
        Event { time_ns: anchor.monotonic_ns, utc_ns: anchor.utc_ns, level, kind, phase, text }
    }
}
