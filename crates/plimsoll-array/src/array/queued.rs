//! The way back through the queue of a virtual disk.

use plimsoll_io::Nanos;

use super::{Array, Completed, Flush};
use crate::agenda::Event;

impl Array {
    /// When a request that is put in at a moment has been through the queue, where there is one.
    pub(super) fn through_queue(&mut self, at: Nanos, bytes: u32, is_write: bool) -> Nanos {
        let Some(queue) = &mut self.queue else {
            return at;
        };
        let worked_on = queue.work_on(at, bytes, is_write);
        self.agenda_queue();
        worked_on
    }

    /// Whether the host is told of a request through its queue: neighbours have queues of their
    /// own.
    pub(super) fn goes_through_queue(&self, slot: u32) -> bool {
        self.queue.is_some() && !self.is_neighbours(self.requests[slot as usize].request.volume)
    }

    /// Has somebody look when the queue is worked off.
    fn agenda_queue(&mut self) {
        if let Some(at) = self.queue.as_mut().and_then(|queue| queue.watch()) {
            self.agenda.at(at, Event::Queue);
        }
    }

    /// A request, or the flush behind it, is done; the host is told of it with all that are in the
    /// queue.
    pub(super) fn done_in_queue(&mut self, slot: u32) {
        let queue = self.queue.as_mut().expect("only a queue has such requests");
        if let Some(at) = queue.done(self.now, slot) {
            self.agenda.at(at, Event::Told(slot));
        }
    }

    pub(super) fn look_at_queue(&mut self) {
        let queue = self.queue.as_mut().expect("only a queue is looked at");
        match queue.look(self.now) {
            Err(again) => self.agenda.at(again, Event::Queue),
            Ok((done, at)) => {
                for slot in done {
                    self.agenda.at(at, Event::Told(slot));
                }
            }
        }
    }

    /// The host knows that a request is done; a write that is to be durable waits for a flush now.
    pub(super) fn told(&mut self, slot: u32) -> Option<Completed> {
        let pending = &mut self.requests[slot as usize];
        let queue = self.queue.as_mut().expect("only a queue tells");
        match pending.flush {
            Flush::Wanted if !pending.is_lost => {
                queue.want_flush(slot);
                self.flush_next();
                None
            }
            Flush::Leading => {
                let (durable, at) = queue.flushed(self.now);
                for slot in durable {
                    self.requests[slot as usize].flush = Flush::Over;
                    self.agenda.at(at, Event::Told(slot));
                }
                self.flush_next();
                None
            }
            _ => Some(self.answered(slot)),
        }
    }

    /// Flushes for everybody who waits for it, unless a flush is under way.
    fn flush_next(&mut self) {
        let queue = self.queue.as_mut().expect("only a queue is flushed");
        if let Some((leader, done)) = queue.flush_next(self.now) {
            self.requests[leader as usize].flush = Flush::Leading;
            self.agenda.at(done, Event::Answered(leader));
            self.agenda_queue();
        }
    }
}
