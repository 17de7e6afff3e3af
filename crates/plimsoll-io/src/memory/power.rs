//! Losing power, and what is found afterwards.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

// Circle: methods of the memory disk, in a file of their own.
use super::MemoryDisk;
use super::crash::{Cut, InFlight, Loss};
use super::options::Tracking;
use crate::{Clock, Nanos, Notify, Random};

/// What becomes of a power cut that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLook {
    /// The power is cut.
    Cut,
    /// Nothing has happened: the run goes on.
    GoOn,
}

type Look = Box<dyn FnMut(&MemoryDisk) -> AfterLook>;

#[derive(Default)]
pub(super) struct Power {
    pub(super) is_off: Cell<bool>,
    pub(super) cut_at: Cell<Option<Nanos>>,
    look: RefCell<Option<Look>>,
    notify: Notify,
}

impl MemoryDisk {
    /// Cuts the power: nothing completes any more, and what is submitted is forgotten.
    pub fn power_cut(&self) {
        if !self.power.is_off.replace(true) {
            self.power.notify.notify_all();
        }
    }

    /// The process that uses the disk dies, and the power stays. What it had asked for is carried
    /// out all the same, before its files are closed; a durable write in flight reaches the
    /// volatile cache and is not waited for any longer.
    pub fn process_died(&self) {
        let now = self.clock.now();
        self.state.borrow_mut().queue.abandon(now);
    }

    /// Calls `look` at the moment of every cut that was planned or injected, and lets it say
    /// whether the power is cut. It can make an image and plan the next cut, so that one run is cut
    /// at many moments: what a cut finds depends only on what happened before it.
    pub fn look_at_cuts(&self, look: impl FnMut(&MemoryDisk) -> AfterLook + 'static) {
        *self.power.look.borrow_mut() = Some(Box::new(look));
    }

    /// The power fails, unless whoever looks lets the run go on.
    pub(super) fn power_fails(&self) {
        let look = self.power.look.borrow_mut().take();
        if let Some(mut look) = look {
            let after = look(self);
            *self.power.look.borrow_mut() = Some(look);
            if after == AfterLook::GoOn {
                return;
            }
        }
        self.power_cut();
    }

    /// Cuts the power when the clock shows `then`, before anything due at that moment completes.
    pub fn power_cut_at(&self, then: Nanos) {
        self.power.cut_at.set(Some(then));
    }

    /// Cuts the power directly after the n-th event from the start of this disk. Every submission
    /// and every completion is an event; a completion that is the last event has taken effect and
    /// is not delivered.
    pub fn power_cut_at_event(&self, event: u64) {
        self.state.borrow_mut().cut_at_event = Some(event);
    }

    /// How many submissions and completions there were. Two runs of one seed have the same ones.
    pub fn events(&self) -> u64 {
        self.state.borrow().events
    }

    /// Whether the power was cut.
    pub fn is_off(&self) -> bool {
        self.power.is_off.get()
    }

    /// Completes when the power is cut. Run a workload beside this one to stop at the cut whatever
    /// else is waiting.
    pub async fn power_lost(&self) {
        while !self.is_off() {
            self.power.notify.notified().await;
        }
    }

    /// A disk as it could be found if the power were cut now, on a new virtual clock, with the same
    /// options. It lends its buffers from the same memory, so that making many images costs what
    /// differs between them.
    ///
    /// # Panics
    /// When the options track nothing.
    pub fn crash_image(&self, loss: Loss, random: &mut Random) -> Rc<MemoryDisk> {
        assert!(
            self.options.tracking != Tracking::Nothing,
            "a disk that tracks nothing does not know what a power cut would leave"
        );
        let next_seed = random.next_u64();
        let image = MemoryDisk::with_arena(
            Rc::new(Clock::simulated()),
            Random::from_seed(next_seed),
            self.options.clone(),
            self.arena.clone(),
        );
        let state = self.state.borrow();
        let in_flight: Vec<InFlight> = state
            .queue
            .in_order()
            .into_iter()
            .filter_map(|queued| state.at_risk(&queued.action))
            .collect();
        let cut = Cut::new(random, loss, &self.options);
        cut.fill(&state.files, &in_flight, &mut image.state.borrow_mut().files);
        drop(state);
        image
    }

    /// Cuts the power if its time has come.
    pub(super) fn watch_power(&self, now: Nanos) {
        if self.power.cut_at.get().is_some_and(|then| then <= now) {
            self.power.cut_at.set(None);
            self.power_fails();
        }
    }
}
