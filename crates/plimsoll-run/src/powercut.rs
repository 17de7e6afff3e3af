//! Durable commits whose acknowledgements leave the machine, so that somebody else knows them when the power is cut.
//!
//! Two kinds of work go on side by side until the power fails or somebody asks to stop. Sessions commit transactions to an
//! engine instance: a row in one table and its twin in another, so that half a transaction shows. Lanes write marks: blocks
//! of 4 KiB of which each 512-byte sector says whose it is, so that a torn block, a block that is gone and a block that came
//! too early show without any engine between. Rows and marks lie in rings: the work can go on for days in the same
//! space, and the newest of each ring are there to be looked for.
//!
//! Everything is numbered in the order in which it was acknowledged, and says how many acknowledgements there were when it was
//! begun. Whatever is found after the cut therefore tells what must be there too. Nothing is judged here:
//! [`survey`] lists what is there, and the listing is held against the witness's log elsewhere.

mod begin;
mod live;
mod mark;
mod rehearsal;
mod rows;
mod survey;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use serde::{Deserialize, Serialize};

use crate::RunError;
use crate::setting::StopSignal;

pub use live::{powercut_live, survey_live};
pub use rehearsal::{Behaviour, Rehearsal, RehearsalSpec, rehearse};
pub use survey::{CommitFound, MarkFound, Survey, SurveyError, SurveyRecovery};

const DATABASE_FILE: &str = "database001.edb";
const MARKS_FILE: &str = "marks.dat";
const LOG_BASE: &str = "E00";
/// Smallest page of the format; a row must fit one of any size.
const ROW_BYTES_MAX: u32 = 1000;
/// How many blocks a ring may have.
const SLOTS_MAX: u64 = 1 << 16;

/// What is to be done, and where.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowercutSpec {
    /// Where the files lie; theirs alone.
    pub directory: PathBuf,
    /// Tells this run from every other: part of all content.
    pub run: u64,
    /// Page size of the database.
    pub page_bytes: u32,
    /// Sessions that commit.
    pub sessions: u32,
    /// Rows of each session, written round and round.
    pub rows: u64,
    /// Bytes of a row's body.
    pub row_bytes: u32,
    /// Lanes that write marks.
    pub lanes: u32,
    /// Blocks of each lane, written round and round.
    pub slots: u64,
    /// Cache of the engine; smaller than the database, so that pages are written.
    pub cache_bytes: u64,
    /// How many acknowledgements may be under way to the witness.
    pub unwitnessed_max: u64,
    /// How I/O is done, as in a run.
    pub io_method: String,
    /// Ends by itself after this time; never if left out.
    pub seconds: Option<f64>,
}

impl PowercutSpec {
    /// Checks what cannot be worked with.
    ///
    /// # Errors
    /// [`RunError::Spec`] with the reason.
    pub fn check(&self) -> Result<(), RunError> {
        let wrong = [
            (
                self.sessions == 0 || self.sessions > 1000,
                "sessions must be 1 to 1000",
            ),
            (self.lanes > 64, "lanes must be at most 64"),
            (self.rows < 2, "rows must be at least 2"),
            // A whole ring is read at once.
            (
                self.slots < 2 || self.slots > SLOTS_MAX,
                "slots must be 2 to 65536",
            ),
            (
                self.row_bytes < 16 || self.row_bytes > ROW_BYTES_MAX,
                "row_bytes must be 16 to 1000",
            ),
            (self.unwitnessed_max == 0, "unwitnessed_max must be above zero"),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(RunError::Spec((*why).into())),
            None => Ok(()),
        }
    }

    fn database(&self) -> PathBuf {
        self.directory.join(DATABASE_FILE)
    }

    fn marks(&self) -> PathBuf {
        self.directory.join(MARKS_FILE)
    }

    fn directory(&self) -> &Path {
        &self.directory
    }
}

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
    fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Acquire)
    }
}

/// How the work ended, if it did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PowercutOutcome {
    /// Commits acknowledged.
    pub commits: u64,
    /// Marks acknowledged.
    pub marks: u64,
    /// What a reader must know of how I/O was done.
    pub remarks: Vec<String>,
    /// The way of doing I/O.
    pub method: String,
}

/// The two wishes every task looks at.
#[derive(Clone)]
struct Until {
    stop: StopSignal,
    deadline: u64,
}

impl Until {
    fn is_over(&self, now: u64) -> bool {
        self.stop.is_wanted() || now >= self.deadline
    }
}
