//! Simple streams: so many requests at once (closed), or so many per second whatever happens
//! (open).

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use serde::{Deserialize, Serialize};

use crate::array::Request;

/// Where a stream goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// On from the last request, and from the start again at the end.
    Sequential,
    /// Anywhere, page by page.
    Random,
    /// Behind another stream that writes in sequence: what was just written is read back.
    Behind,
}

/// A stream that keeps a number of requests on their way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedSpec {
    /// The class it is counted as.
    pub class: String,
    /// Its volume.
    pub volume: u32,
    /// Where on the volume its space begins.
    pub start_bytes: u64,
    /// How long its space is.
    pub span_bytes: u64,
    /// Where it goes.
    pub pattern: Pattern,
    /// Mean size of a request; whole pages are drawn around it.
    pub request_bytes_mean: f64,
    /// Granularity of sizes and of random addresses.
    pub page_bytes: u64,
    /// Requests on their way at once.
    pub depth: u32,
    /// Time between a completion and the next request.
    pub think_ns: Nanos,
    /// Whether one thread does the thinking for all of them, one after the other.
    pub is_serial: bool,
    /// Whether the next requests start only when all of these are done, as a reader does that wants
    /// a batch of pages.
    pub is_batch: bool,
    /// Share of requests that write.
    pub write_share: f64,
    /// Whether a write is to be durable, which matters on a virtual disk.
    #[serde(default)]
    pub is_durable: bool,
}

/// A stream with a rate of its own: exponential times between requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenSpec {
    /// The class it is counted as.
    pub class: String,
    /// Its volume.
    pub volume: u32,
    /// Where on the volume its space begins.
    pub start_bytes: u64,
    /// How long its space is.
    pub span_bytes: u64,
    /// Where it goes.
    pub pattern: Pattern,
    /// Size of a request.
    pub request_bytes: u64,
    /// Granularity of random addresses.
    pub page_bytes: u64,
    /// Requests per second.
    pub per_second: f64,
    /// Share of requests that write.
    pub write_share: f64,
}

/// Where the requests of one stream lie.
pub(super) struct Walk {
    volume: u32,
    start: u64,
    span: u64,
    page: u64,
    pattern: Pattern,
    cursor: u64,
}

impl Walk {
    pub(super) fn new(
        volume: u32,
        start: u64,
        span: u64,
        page: u64,
        pattern: Pattern,
        random: &mut Random,
    ) -> Self {
        let pages = (span / page).max(1);
        Self { volume, start, span, page, pattern, cursor: random.below(pages) / 32 * 32 * page }
    }

    /// The next request of `bytes`. `written` is how far the stream it follows has come.
    pub(super) fn request(
        &mut self,
        bytes: u64,
        is_write: bool,
        written: u64,
        random: &mut Random,
    ) -> Request {
        let bytes = bytes.min(self.span);
        let within = match self.pattern {
            Pattern::Sequential => {
                let at = if self.cursor + bytes > self.span { 0 } else { self.cursor };
                self.cursor = at + bytes;
                at
            }
            Pattern::Random => random.below((self.span - bytes) / self.page + 1) * self.page,
            Pattern::Behind => written.saturating_sub(bytes).min(self.span - bytes),
        };
        Request {
            volume: self.volume,
            offset: self.start + within,
            bytes: bytes as u32,
            is_write,
            is_durable: false,
            token: 0,
        }
    }
}

/// A whole number of pages, `mean` bytes on average.
pub(super) fn draw_bytes(mean: f64, page: u64, random: &mut Random) -> u64 {
    let pages = (mean / page as f64).max(1.0);
    (pages as u64 + u64::from(random.chance(pages.fract()))) * page
}

/// An exponential time with this rate.
pub(super) fn exponential_ns(per_second: f64, random: &mut Random) -> Nanos {
    (-(1.0 - random.unit()).ln() / per_second * NANOS_PER_SECOND as f64) as Nanos
}

/// The state of a closed stream.
pub(super) struct Closed {
    pub(super) spec: ClosedSpec,
    pub(super) walk: Walk,
    /// Until when the one thread is busy.
    pub(super) busy_until: Nanos,
    /// Requests of the batch that are done.
    pub(super) batch_done: u32,
}

impl Closed {
    /// What follows a request that is done at `now`: the next, when, and how many at once.
    pub(super) fn next_at(&mut self, now: Nanos) -> (Nanos, u32) {
        if self.spec.is_batch {
            self.batch_done += 1;
            let is_last = self.batch_done == self.spec.depth;
            self.batch_done %= self.spec.depth;
            return (now + self.spec.think_ns, if is_last { self.spec.depth } else { 0 });
        }
        if !self.spec.is_serial {
            return (now + self.spec.think_ns, 1);
        }
        self.busy_until = self.busy_until.max(now) + self.spec.think_ns;
        (self.busy_until, 1)
    }
}

/// The state of an open stream.
pub(super) struct Open {
    pub(super) spec: OpenSpec,
    pub(super) walk: Walk,
}
