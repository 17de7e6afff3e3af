//! What the machine under test and its witness say to each other, line by line in ASCII.
//!
//! The machine under test: `plimsoll-witness 1 {...}` with the description of its run, then `c` or
//! `m` (commit, mark) with lane, sequence, number and acknowledgements at its beginning, `tick`
//! when there is nothing to say, and `end` before it leaves of its own will. The witness: `ready`,
//! or `no` with a reason, then how many lines of this connection lie on its disk.
//!
//! Both sides are written against the network seam, so that a witness that is slow, silent or gone
//! is simulated in virtual time.

mod hearing;
mod live;
mod telling;

use plimsoll_io::{Stream, StreamError, read};

pub use hearing::{Heard, LogFuture, WitnessLog, hear};
pub use live::{
    Hearing, HearingEvent, HearingSetup, Telling, TellingSetup, TellingState, hear_live, tell_live,
};
pub use telling::{Answers, Refused, Teller};

/// What a witness answers to a description of a run.
pub const READY: &str = "ready";
/// What is said before leaving of one's own will.
pub const END: &str = "end";
/// What is said when there is nothing to say.
pub const TICK: &str = "tick";
/// A longer first line is no description of ours.
pub const GREETING_BYTES_MAX: usize = 8192;
/// Read at once, and the longest line.
const RECEIVED_BYTES_MAX: usize = 1 << 20;

/// Why there are no more lines.
#[derive(Debug, PartialEq, Eq)]
enum NoLines {
    /// The other side has closed.
    Closed,
    /// A line without end was sent.
    Endless,
    /// The connection broke.
    Broken(StreamError),
}

/// Cuts a stream into lines.
struct Lines {
    buffer: Vec<u8>,
    rest: Vec<u8>,
}

impl Lines {
    fn new() -> Self {
        Self { buffer: vec![0; RECEIVED_BYTES_MAX], rest: Vec::new() }
    }

    /// The next whole lines, at least one. What is left of a longer line than `rest_max` is none.
    /// Dropped while it waits, it has lost nothing.
    async fn next<S: Stream + ?Sized>(
        &mut self,
        stream: &mut S,
        rest_max: usize,
    ) -> Result<Vec<Vec<u8>>, NoLines> {
        loop {
            let count = read(stream, &mut self.buffer).await.map_err(NoLines::Broken)?;
            if count == 0 {
                return Err(NoLines::Closed);
            }
            self.rest.extend(&self.buffer[..count]);
            let mut lines: Vec<Vec<u8>> =
                self.rest.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            self.rest = lines.pop().unwrap_or_default();
            if !lines.is_empty() {
                return Ok(lines);
            }
            if self.rest.len() > rest_max {
                return Err(NoLines::Endless);
            }
        }
    }
}
