//! How far an instance has come on its way to its end, and the work under way that its close waits
//! for.

use std::cell::Cell;

use plimsoll_io::Notify;

use crate::error::{EngineError, Result};

/// Each comes after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Work is begun.
    Open,
    /// Nothing new is begun, and what is under way is waited for.
    Closing,
    /// Background tasks end.
    Stopping,
    /// Nothing is read or changed any more: pages changed now would be in no file, whatever the log
    /// says.
    Sealed,
}

/// See the module text.
pub(crate) struct Life {
    pub(crate) phase: Cell<Phase>,
    /// Transactions begun and not ended, and other work that a close waits for.
    active: Cell<usize>,
    ended: Notify,
}

impl Default for Life {
    fn default() -> Self {
        Self { phase: Cell::new(Phase::Open), active: Cell::new(0), ended: Notify::new() }
    }
}

impl Life {
    /// Whether it has come as far as this.
    pub(crate) fn has_come_to(&self, phase: Phase) -> bool {
        self.phase.get() >= phase
    }

    /// Goes on to a phase, unless it has come further; whether it had not come to it before.
    pub(crate) fn go_on_to(&self, phase: Phase) -> bool {
        let is_new = !self.has_come_to(phase);
        self.phase.set(self.phase.get().max(phase));
        // A close that waits learns that the instance was abandoned.
        self.ended.notify_all();
        is_new
    }

    /// Fails once nothing may be read or changed any more.
    ///
    /// # Errors
    /// [`EngineError::Closing`].
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.has_come_to(Phase::Sealed) {
            return Err(EngineError::Closing);
        }
        Ok(())
    }

    /// Notes that work has begun; [`Life::end`] ends it.
    pub(crate) fn begin(&self) {
        self.active.set(self.active.get() + 1);
    }

    /// Notes that work has ended.
    pub(crate) fn end(&self) {
        self.active.set(self.active.get() - 1);
        self.ended.notify_all();
    }

    /// How much work is under way.
    pub(crate) fn active_count(&self) -> usize {
        self.active.get()
    }

    /// Whether no work is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.get() == 0
    }

    /// When the next work ends.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + '_ {
        self.ended.notified()
    }

    /// Begins work that is no transaction of a caller's; a close waits for it.
    ///
    /// # Errors
    /// [`EngineError::Closing`].
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        if self.has_come_to(Phase::Closing) {
            return Err(EngineError::Closing);
        }
        self.begin();
        Ok(Entered { life: self })
    }
}

/// Work under way. See [`Life::enter`].
pub(crate) struct Entered<'a> {
    life: &'a Life,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.life.end();
    }
}
