//! The queue of a virtual disk: one thread of the host beneath takes its requests in turn, and
//! whoever waits is told of all of them at once, when the queue has been worked off.
//!
//! What this does to latency: n requests that were put in together all take the time to notice
//! them, n times the time of one, and the time to notice the end. A virtual disk measured over
//! depth obeys this from 1 to 32 requests (docs/benchmarks.md), and the process that waits wakes up
//! once for all of them. A flush goes through the queue like a request. A host has one flush under
//! way at a time; who wants one meanwhile shares the next with all others, as Linux does for any
//! disk with a volatile cache.
//!
//! Limits: one queue, one thread; what a request finds below it (cache, drives) takes its time
//! there and is told with the others.

use plimsoll_io::Nanos;

use crate::spec::QueueSpec;

/// The queue at work. `slot`s are requests of the array.
pub(crate) struct Queue {
    spec: QueueSpec,
    free_at: Nanos,
    /// Whether the array will come back when the queue is worked off.
    is_watched: bool,
    /// Done, and not told of yet.
    done: Vec<u32>,
    /// Whose writes the flush under way makes durable, and whose the next one will.
    flushing: Vec<u32>,
    flush_wanted: Vec<u32>,
    busy_ns: Nanos,
}

impl Queue {
    pub(crate) fn new(spec: QueueSpec) -> Self {
        Self {
            spec,
            free_at: 0,
            is_watched: false,
            done: Vec::new(),
            flushing: Vec::new(),
            flush_wanted: Vec::new(),
            busy_ns: 0,
        }
    }

    /// When a request that is put in at `now` has been worked on.
    pub(crate) fn work_on(&mut self, now: Nanos, bytes: u32, is_write: bool) -> Nanos {
        let ns_per_byte =
            if is_write { self.spec.write_ns_per_byte } else { self.spec.read_ns_per_byte };
        let bytes_ns = (ns_per_byte * f64::from(bytes)) as Nanos;
        self.occupy(now, self.spec.notice_ns, self.spec.request_ns + bytes_ns)
    }

    /// A write is done and has to be flushed.
    pub(crate) fn want_flush(&mut self, slot: u32) {
        self.flush_wanted.push(slot);
    }

    /// Puts a flush in at `now` where it is wanted and none is under way: the first who waits for
    /// it, and when it is done.
    pub(crate) fn flush_next(&mut self, now: Nanos) -> Option<(u32, Nanos)> {
        if !self.flushing.is_empty() {
            return None;
        }
        let leader = *self.flush_wanted.first()?;
        std::mem::swap(&mut self.flushing, &mut self.flush_wanted);
        // The queue is awake: it has just told of the write.
        Some((leader, self.occupy(now, 0, self.spec.flush_ns)))
    }

    /// The flush under way is over at `now`: whose writes are durable, and when they are told of
    /// it.
    pub(crate) fn flushed(&mut self, now: Nanos) -> (Vec<u32>, Nanos) {
        (std::mem::take(&mut self.flushing), now + self.spec.durable_ns)
    }

    fn occupy(&mut self, now: Nanos, notice_ns: Nanos, work_ns: Nanos) -> Nanos {
        let is_idle = self.free_at <= now;
        let start = if is_idle { now + notice_ns } else { self.free_at };
        self.free_at = start + work_ns;
        self.busy_ns += work_ns;
        self.free_at
    }

    /// When to look whether the queue is worked off, where nobody is going to.
    pub(crate) fn watch(&mut self) -> Option<Nanos> {
        (!std::mem::replace(&mut self.is_watched, true)).then_some(self.free_at)
    }

    /// A request is done at `now`: when to tell of it alone, where nothing else is left in the
    /// queue.
    pub(crate) fn done(&mut self, now: Nanos, slot: u32) -> Option<Nanos> {
        if self.free_at <= now && !self.is_watched {
            return Some(now + self.spec.notice_ns);
        }
        self.done.push(slot);
        None
    }

    /// Looks at `now` whether the queue is worked off: those to tell of, and when; or when to look
    /// again.
    pub(crate) fn look(&mut self, now: Nanos) -> Result<(Vec<u32>, Nanos), Nanos> {
        if self.free_at > now {
            return Err(self.free_at);
        }
        self.is_watched = false;
        Ok((std::mem::take(&mut self.done), now + self.spec.notice_ns))
    }

    /// How long requests were worked on since the last reset.
    pub(crate) fn busy_ns(&self) -> Nanos {
        self.busy_ns
    }

    /// Counts anew.
    pub(crate) fn reset_usage(&mut self) {
        self.busy_ns = 0;
    }
}
