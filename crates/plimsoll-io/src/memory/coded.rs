//! The written units of a sparse file: coded at once, or ahead of need by a second thread.

use std::cell::RefCell;
use std::ops::Range;

use super::ahead::{Ahead, Waiting};
use super::codes::Codes;
use super::generated::Generated;
use crate::Buffer;

struct State {
    codes: Codes,
    ahead: Option<Ahead>,
}

impl State {
    fn settle(&mut self, content: &Generated) {
        if let Some(ahead) = &mut self.ahead {
            ahead.settle(content, &mut self.codes);
        }
    }

    fn settle_if_waiting(&mut self, content: &Generated, unit: usize) {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.has(unit)) {
            self.settle(content);
        }
    }
}

/// See the module text.
pub(super) struct Coded {
    content: Generated,
    state: RefCell<State>,
}

impl Clone for Coded {
    /// A copy that codes at once: copies are made to be looked at.
    fn clone(&self) -> Self {
        let mut state = self.state.borrow_mut();
        state.settle(&self.content);
        Self::with(self.content.clone(), state.codes.clone())
    }
}

impl Coded {
    pub(super) fn new(content: Generated) -> Self {
        Self::with(content, Codes::default())
    }

    fn with(content: Generated, codes: Codes) -> Self {
        let state = RefCell::new(State { codes, ahead: None });
        Self { content, state }
    }

    pub(super) fn content(&self) -> &Generated {
        &self.content
    }

    /// Lets a second thread code what is written from now on, where there is a processor for it.
    pub(super) fn code_ahead(&mut self) {
        if std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
            self.state.get_mut().ahead = Some(Ahead::default());
        }
    }

    /// Shows the code of a unit; `None` for one that is as generated.
    pub(super) fn with_code<T>(&self, unit: usize, show: impl FnOnce(Option<&[u8]>) -> T) -> T {
        let mut state = self.state.borrow_mut();
        state.settle_if_waiting(&self.content, unit);
        show(state.codes.get(unit))
    }

    /// Whether a second thread codes.
    pub(super) fn is_ahead(&self) -> bool {
        self.state.borrow().ahead.is_some()
    }

    /// Writes a part of a unit.
    pub(super) fn write(&mut self, unit: usize, within: Range<usize>, bytes: &[u8]) {
        let code = self.with_code(unit, |code| self.content.code_part(unit, code, within, bytes));
        self.set(unit, &code);
    }

    /// Writes the whole unit that begins at `start` of a shared buffer.
    pub(super) fn write_shared(&mut self, unit: usize, written: Buffer, start: usize) {
        let State { codes, ahead } = self.state.get_mut();
        if let Some(ahead) = ahead {
            ahead.push(&self.content, Waiting { unit, written, start }, codes);
        }
    }

    /// Keeps the code of a unit; an empty one means as generated.
    pub(super) fn set(&mut self, unit: usize, code: &[u8]) {
        let state = self.state.get_mut();
        state.settle_if_waiting(&self.content, unit);
        state.codes.set(unit, code);
    }

    pub(super) fn truncate(&mut self, units: usize) {
        let state = self.state.get_mut();
        state.settle(&self.content);
        state.codes.truncate(units);
    }

    /// Bytes of all codes.
    pub(super) fn stored_bytes(&self) -> u64 {
        let mut state = self.state.borrow_mut();
        state.settle(&self.content);
        state.codes.stored_bytes()
    }
}
