//! Time as everybody here sees it: nanoseconds since the clock was made, monotonic, in a `u64`.
//!
//! A live run reads the operating system's monotonic clock. A simulated run has a clock that only
//! the executor moves, to the next timer or the next disk completion; nothing else in the process
//! knows what time it is.

use std::cell::Cell;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the epoch of one [`Clock`].
pub type Nanos = u64;

/// One millisecond.
pub const NANOS_PER_MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const NANOS_PER_SECOND: Nanos = 1_000_000_000;

/// The UTC time a virtual clock starts at (2020-01-01T00:00:00Z), so that simulated files have
/// plausible dates.
const VIRTUAL_UTC_START_NS: u64 = 1_577_836_800 * NANOS_PER_SECOND;

/// A pair of readings that ties monotonic time to UTC. Taken through the run: UTC may be stepped,
/// monotonic time not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcAnchor {
    /// Monotonic reading.
    pub monotonic_ns: Nanos,
    /// UTC reading at the same moment, nanoseconds since 1970.
    pub utc_ns: u64,
    /// What must be added to this host's readings to compare them with the coordinating host's;
    /// zero on one host.
    pub host_offset_ns: i64,
}

/// A clock's reading for other threads, on the same scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadClock {
    origin: Instant,
}

impl ThreadClock {
    /// Nanoseconds since the epoch of the clock this was taken from.
    pub(crate) fn now(self) -> Nanos {
        self.origin.elapsed().as_nanos() as Nanos
    }
}

/// The clock of one executor.
#[derive(Debug)]
pub struct Clock {
    source: Source,
    /// The latest reading.
    recent_ns: Cell<Nanos>,
    host_offset_ns: Cell<i64>,
}

#[derive(Debug)]
enum Source {
    Real { origin: Instant },
    Virtual { now_ns: Cell<Nanos> },
}

impl Clock {
    /// The operating system's monotonic clock, starting at zero now.
    pub fn real() -> Self {
        Self::real_since(Instant::now())
    }

    /// The operating system's monotonic clock with its zero at `origin`, for executors on several
    /// threads that share one time.
    pub fn real_since(origin: Instant) -> Self {
        Self {
            source: Source::Real { origin },
            recent_ns: Cell::new(0),
            host_offset_ns: Cell::new(0),
        }
    }

    /// The moment that is its zero, for clocks of other threads; a virtual one belongs to its
    /// executor alone.
    pub fn origin(&self) -> Option<Instant> {
        match self.source {
            Source::Real { origin } => Some(origin),
            Source::Virtual { .. } => None,
        }
    }

    /// A clock at zero that stands still until it is advanced.
    pub fn simulated() -> Self {
        Self {
            source: Source::Virtual { now_ns: Cell::new(0) },
            recent_ns: Cell::new(0),
            host_offset_ns: Cell::new(0),
        }
    }

    /// Nanoseconds since this clock's epoch.
    pub fn now(&self) -> Nanos {
        let now = match &self.source {
            Source::Real { origin } => origin.elapsed().as_nanos() as Nanos,
            Source::Virtual { now_ns } => now_ns.get(),
        };
        self.recent_ns.set(now);
        now
    }

    /// The latest reading anybody took. The executor takes one before each task poll, so it is as
    /// old as the poll at most: enough where microseconds do not count, and it costs nothing. In
    /// virtual time it is the time.
    pub fn recent(&self) -> Nanos {
        match &self.source {
            Source::Real { .. } => self.recent_ns.get(),
            Source::Virtual { now_ns } => now_ns.get(),
        }
    }

    /// Whether time is simulated.
    pub fn is_virtual(&self) -> bool {
        matches!(self.source, Source::Virtual { .. })
    }

    /// The same clock for another thread; a virtual one belongs to its executor alone.
    pub(crate) fn for_threads(&self) -> Option<ThreadClock> {
        match self.source {
            Source::Real { origin } => Some(ThreadClock { origin }),
            Source::Virtual { .. } => None,
        }
    }

    /// Moves a virtual clock forward. Only the executor calls this.
    ///
    /// # Panics
    /// When the clock is real or would go backwards: both are bugs of the caller.
    pub fn advance_to(&self, then: Nanos) {
        match &self.source {
            Source::Real { .. } => panic!("a real clock cannot be moved"),
            Source::Virtual { now_ns } => {
                assert!(then >= now_ns.get(), "virtual time would go backwards");
                now_ns.set(then);
            }
        }
    }

    /// Sets what must be added to this host's readings to compare them with the coordinating
    /// host's.
    pub fn set_host_offset_ns(&self, offset_ns: i64) {
        self.host_offset_ns.set(offset_ns);
    }

    /// Reads monotonic time and UTC together.
    pub fn anchor(&self) -> UtcAnchor {
        let monotonic_ns = self.now();
        let utc_ns = match &self.source {
            Source::Real { .. } => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_nanos() as u64),
            Source::Virtual { .. } => VIRTUAL_UTC_START_NS + monotonic_ns,
        };
        UtcAnchor { monotonic_ns, utc_ns, host_offset_ns: self.host_offset_ns.get() }
    }
}
