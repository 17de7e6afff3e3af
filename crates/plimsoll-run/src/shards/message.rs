//! What a shard says to the thread that puts the shards together.

use super::samples::SamplePart;
use crate::outcome::RunOutcome;

/// See the module text.
pub enum Message {
    /// It has closed a sample.
    Sample(SamplePart),
    /// It has ended.
    Ended(usize, Box<RunOutcome>),
}
