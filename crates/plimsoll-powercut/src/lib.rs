//! Durable commits whose acknowledgements leave the machine, so that somebody else knows them when
//! the power is cut.
//!
//! Two kinds of work go on side by side until the power fails or somebody asks to stop. Sessions
//! commit transactions to an engine instance: a row in one table and its twin in another, so that
//! half a transaction shows. Lanes write marks: blocks of 4 KiB of which each 512-byte sector says
//! whose it is, so that a torn block, a block that is gone and a block that came too early show
//! without any engine between. Rows and marks lie in rings: the work can go on for days in the same
//! space, and the newest of each ring are there to be looked for.
//!
//! Everything is numbered in the order in which it was acknowledged, and says how many
//! acknowledgements there were when it was begun. Whatever is found after the cut therefore tells
//! what must be there too. Nothing is judged here: [`survey_live`] lists what is there, and the
//! listing is held against the witness's log elsewhere.

mod begin;
mod error;
mod live;
mod mark;
mod rehearsal;
mod rows;
mod spec;
mod survey;
mod wire;
mod witness;
mod work;

pub use error::PowercutError;
pub use live::{powercut_live, survey_live};
pub use rehearsal::{Behaviour, Rehearsal, RehearsalSpec, rehearse};
pub use spec::PowercutSpec;
pub use survey::{CommitFound, MarkFound, Survey, SurveyError, SurveyRecovery};
pub use wire::{
    Answers, END, GREETING_BYTES_MAX, Heard, Hearing, HearingEvent, HearingSetup, LogFuture, READY,
    Refused, TICK, Teller, Telling, TellingSetup, TellingState, WitnessLog, hear, hear_live,
    tell_live,
};
pub use witness::{Acknowledged, Kind, Witness};
pub use work::PowercutOutcome;
