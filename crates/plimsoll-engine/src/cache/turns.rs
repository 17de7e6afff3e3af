//! Whose turn it is to go beyond the maximum, when every frame is held by operations that wait.
//!
//! An operation holds the pages that it has waited for until it has all that it needs. Many that
//! hold a few each may together hold every frame, and then no wait for a frame would end. So an
//! operation that waits stands in line, and keeps its place from its first wait to its end. Where
//! the cleaner finds every frame held, no write and no read under way, and the line not empty, the
//! first in line has the turn. From there to its end, whenever that is found again and it waits,
//! it is granted one frame beyond the maximum.
//!
//! Why one always proceeds:
//!
//! - Where a frame is not held, the cleaner frees it. Where a write or a read is under way, its end
//!   wakes the cleaner, or those in line, who call it. Else it finds what is said above.
//! - Who has the turn waits for no other's frames. It waits in line, where it is granted a frame;
//!   it reads a page itself where another in line has begun to; what else it waits for while it
//!   holds pages, room in the log and the disk, needs no frame. Before it waits for another to make
//!   the database grow, it gives up its pages and its turn. So it comes to its end.
//! - At its end the turn passes to the then first in line. Each has its turn after finitely many
//!   others: whoever comes later stands behind it.
//! - While the one with the turn waits, no one else takes a frame, also a free one.
//!
//! Why memory stays bounded: a page beyond the maximum is held only by the one whose turn it was
//! when it was read. Others that wanted it use it and do not hold it. So what is held is at most
//! the maximum and the pages of one operation. What is not held is dropped before another grant.
//!
//! Limits: a caller that holds a future and does not poll it keeps its frames, and its turn. What
//! redo reads ahead holds no turn once it is read; `replay/ahead.rs` bounds how much that is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use plimsoll_io::Notify;

/// Those that wait for frames, by the number of their claim.
#[derive(Default)]
pub(super) struct Turns {
    claims_ever: Cell<u64>,
    line: RefCell<BTreeSet<u64>>,
    turn: Cell<Option<u64>>,
    /// Who has the turn may take a frame beyond the maximum.
    is_granted: Cell<bool>,
}

impl Turns {
    /// Grants a frame beyond the maximum to who has the turn, or else to the first in line, if that
    /// one waits and every frame is held. Says whether it did.
    pub(super) fn grant(&self, is_all_held: impl FnOnce() -> bool) -> bool {
        let line = self.line.borrow();
        let Some(turn) = self.turn.get().or(line.first().copied()) else {
            return false;
        };
        let is_due = line.contains(&turn) && is_all_held();
        if is_due {
            self.turn.set(Some(turn));
            self.is_granted.set(true);
        }
        is_due
    }
}

/// The place in line of one operation, from its first wait for a frame to its end.
pub(crate) struct Claim<'a> {
    turns: &'a Turns,
    /// Woken when a turn ends: those in line, and the cleaner.
    wakes: [&'a Notify; 2],
    number: Cell<Option<u64>>,
}

impl<'a> Claim<'a> {
    /// For an operation that has not waited yet.
    pub(super) fn new(turns: &'a Turns, wakes: [&'a Notify; 2]) -> Claim<'a> {
        Claim { turns, wakes, number: Cell::new(None) }
    }

    /// Whether this operation may go beyond the maximum when every frame is held.
    pub(crate) fn has_turn(&self) -> bool {
        self.number.get().is_some_and(|number| self.turns.turn.get() == Some(number))
    }

    /// Whether another has the turn and waits for a frame.
    pub(super) fn is_behind_turn(&self) -> bool {
        let (turn, line) = (self.turns.turn.get(), self.turns.line.borrow());
        turn.is_some_and(|turn| !self.has_turn() && line.contains(&turn))
    }

    /// Begins to wait, in the place that it has had since its first wait.
    pub(super) fn enter_line(&self) {
        let claims_ever = &self.turns.claims_ever;
        let number = self.number.get().unwrap_or_else(|| {
            claims_ever.set(claims_ever.get() + 1);
            claims_ever.get()
        });
        self.number.set(Some(number));
        self.turns.line.borrow_mut().insert(number);
    }

    /// Whether it may take a frame beyond the maximum.
    pub(super) fn is_granted(&self) -> bool {
        self.has_turn() && self.turns.is_granted.get()
    }

    /// Has got a frame. Says whether it had been granted one beyond the maximum.
    pub(super) fn leave_line(&self) -> bool {
        if let Some(number) = self.number.get() {
            self.turns.line.borrow_mut().remove(&number);
        }
        self.has_turn() && self.turns.is_granted.replace(false)
    }

    /// Ends this operation's turn, and its place: it holds no page any more.
    pub(crate) fn end(&self) {
        self.leave_line();
        let had_turn = self.has_turn();
        self.number.set(None);
        if had_turn {
            self.turns.turn.set(None);
            self.wakes.iter().for_each(|wake| wake.notify_all());
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
