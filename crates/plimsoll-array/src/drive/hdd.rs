//! A hard drive: one arm, one platter angle, a queue inside the drive that serves the nearest
//! first.
//!
//! An operation costs the drive's command overhead, the seek, the wait for its first sector and the
//! transfer. The queue picks the operation that can start soonest (Seltzer, Chen and Ousterhout
//! 1990, "shortest positioning time first"), less a credit for having waited, and after a second of
//! waiting the oldest goes first. A read that goes on where the last one ended, or shortly behind,
//! finds its data under way into the drive's buffer and runs at media rate; so does a queued write
//! that goes on.
//!
//! Limits: one zone's rate for the whole of a transfer; no faults of single sectors; heads switch
//! in no time.

use std::collections::VecDeque;

use plimsoll_io::{Nanos, Random};

// Circle: a drive is one of its kinds, and hands each of them its operations.
use super::DriveOperation;
use super::mechanics::{Mechanics, Place};
use super::seek::SeekCurve;
use crate::agenda::{Agenda, Event};
use crate::spec::{HddSpec, Scheduling};

/// After this long an operation goes first whatever it costs.
const AGE_NS_MAX: Nanos = 1_000_000_000;
/// A gap that reading ahead passes over rather than seeks over.
const GAP_BYTES_MAX: u64 = 128 * 1024;
/// A head that arrives with less time than this misses the sector.
const MARGIN_NS: Nanos = 100_000;

#[derive(Clone, Copy)]
struct Queued {
    operation: DriveOperation,
    place: Place,
}

/// What the arm did last.
#[derive(Clone, Copy)]
struct Last {
    end: u64,
    time: Nanos,
    was_write: bool,
}

/// See the module text.
pub(super) struct Hdd {
    mechanics: Mechanics,
    seek: SeekCurve,
    write_settle_ns: Nanos,
    overhead_ns: Nanos,
    interface_ns_per_byte: f64,
    buffer_bytes: u64,
    queue_count_max: usize,
    scheduling: Scheduling,
    /// Where the platter stood when the clock began.
    phase: u32,
    radius: u32,
    last: Option<Last>,
    at_work: Option<(DriveOperation, Nanos)>,
    queue: Vec<Queued>,
    /// What does not fit into the drive's queue waits at the controller, in order.
    overflow: VecDeque<Queued>,
}

/// The cost of serving an operation next.
#[derive(Clone, Copy)]
struct Cost {
    /// From now to the end of the transfer.
    total_ns: Nanos,
    /// The part before the transfer.
    position_ns: Nanos,
}

impl Hdd {
    pub(super) fn new(capacity_bytes: u64, spec: &HddSpec, mut random: Random) -> Self {
        Self {
            mechanics: Mechanics::new(capacity_bytes, spec),
            seek: SeekCurve::new(spec.read_seek_ns),
            write_settle_ns: (spec.write_seek_ns - spec.read_seek_ns) as Nanos,
            overhead_ns: spec.overhead_ns,
            interface_ns_per_byte: 1e9 / spec.interface_bytes_per_second,
            buffer_bytes: spec.buffer_bytes,
            queue_count_max: spec.queue_count_max as usize,
            scheduling: spec.scheduling,
            phase: random.next_u64() as u32,
            radius: random.next_u64() as u32,
            last: None,
            at_work: None,
            queue: Vec::with_capacity(spec.queue_count_max as usize),
            overflow: VecDeque::new(),
        }
    }

    pub(super) fn submit(
        &mut self,
        now: Nanos,
        number: u32,
        operation: DriveOperation,
        patience_ns: i64,
        agenda: &mut Agenda,
    ) {
        let place = self.mechanics.place(operation.offset, operation.bytes);
        let queued = Queued { operation, place };
        if self.queue.len() < self.queue_count_max {
            self.queue.push(queued);
        } else {
            self.overflow.push_back(queued);
        }
        if self.at_work.is_none() {
            self.start(now, number, patience_ns, agenda);
        }
    }

    /// Ends the operation at work and starts the next; gives the one that ended and the time it
    /// took.
    pub(super) fn finish(
        &mut self,
        now: Nanos,
        number: u32,
        patience_ns: i64,
        agenda: &mut Agenda,
    ) -> (DriveOperation, Nanos) {
        let (done, service_ns) =
            self.at_work.take().expect("the wake-up was for the operation at work");
        if let Some(next) = self.overflow.pop_front() {
            self.queue.push(next);
        }
        self.start(now, number, patience_ns, agenda);
        (done, service_ns)
    }

    fn start(&mut self, now: Nanos, number: u32, patience_ns: i64, agenda: &mut Agenda) {
        let Some((index, cost)) = self.choose(now, patience_ns) else {
            return;
        };
        let Queued { operation, .. } = self.queue.swap_remove(index);
        let end = operation.offset + u64::from(operation.bytes);
        self.radius = self.mechanics.place(end - 1, 1).radius;
        let time = now + cost.total_ns;
        self.last = Some(Last { end, time, was_write: operation.cause.is_write() });
        self.at_work = Some((operation, cost.total_ns));
        agenda.at(time, Event::Drive(number, 0));
    }

    fn choose(&self, now: Nanos, patience_ns: i64) -> Option<(usize, Cost)> {
        if let [only] = self.queue.as_slice() {
            return Some((0, self.cost(now, only)));
        }
        let mut oldest = (Nanos::MAX, 0);
        let mut best = (i64::MAX, None);
        for (index, queued) in self.queue.iter().enumerate() {
            let arrived = queued.operation.arrived;
            oldest = oldest.min((arrived, index));
            if self.scheduling == Scheduling::InOrder {
                continue;
            }
            let cost = self.cost(now, queued);
            // 41/4096 is the hundredth of a millisecond per millisecond by which waiting makes an
            // operation cheaper.
            let credit_ns = ((now - arrived) * 41) >> 12;
            let patience_ns = if queued.operation.cause.can_wait() { patience_ns } else { 0 };
            let price = cost.position_ns as i64 - credit_ns as i64 + patience_ns;
            if price < best.0 {
                best = (price, Some((index, cost)));
            }
        }
        let (arrived, index) = oldest;
        if best.1.is_none() || now - arrived > AGE_NS_MAX {
            return self.queue.get(index).map(|queued| (index, self.cost(now, queued)));
        }
        best.1
    }

    #[inline(always)]
    fn cost(&self, now: Nanos, queued: &Queued) -> Cost {
        if let Some(cost) = self.going_on(now, &queued.operation) {
            return cost;
        }
        let distance = self.radius.abs_diff(queued.place.radius);
        let mut seek_ns = self.seek.time_ns(distance);
        if seek_ns > 0 && queued.operation.cause.is_write() {
            seek_ns += self.write_settle_ns;
        }
        let arrived = now + self.overhead_ns + seek_ns;
        let angle = self.mechanics.angle_at(arrived).wrapping_add(self.phase);
        let mut wait_ns = self.mechanics.turn_ns(angle, queued.place.angle);
        if seek_ns > 0 && wait_ns < MARGIN_NS {
            wait_ns += self.mechanics.revolution_ns();
        }
        let position_ns = self.overhead_ns + seek_ns + wait_ns;
        Cost { total_ns: position_ns + Nanos::from(queued.place.transfer_ns), position_ns }
    }

    /// The cost of an operation that continues the last one, when it does.
    fn going_on(&self, now: Nanos, operation: &DriveOperation) -> Option<Cost> {
        let last = self.last?;
        let gap = operation.offset.wrapping_sub(last.end);
        if gap > GAP_BYTES_MAX || operation.cause.is_write() != last.was_write {
            return None;
        }
        if last.was_write && (gap > 0 || now > last.time || operation.arrived >= last.time) {
            return None;
        }
        // Reading went on while nobody asked, until the drive's buffer was full.
        let bytes = gap + u64::from(operation.bytes);
        let filled_ns = self.mechanics.transfer_ns(last.end, self.buffer_bytes);
        let from = last.time.max(now.saturating_sub(filled_ns));
        let media = from + self.mechanics.transfer_ns(last.end, bytes);
        let interface_ns = (f64::from(operation.bytes) * self.interface_ns_per_byte) as Nanos;
        let done =
            media.max(now + if now > last.time { self.overhead_ns + interface_ns } else { 0 });
        Some(Cost { total_ns: (done - now).max(1), position_ns: 0 })
    }
}
