//! Holds: who still needs which generations of the log.
//!
//! A hold of this process ends with it, as what it is for does: a backup that was not finished is
//! none. A durable hold is a client's: it outlives the instance and crashes, until the client
//! releases it under its name.
//!
//! A durable hold counts from the moment it is asked for, and the one it takes the place of until
//! the file says otherwise: whatever a power cut leaves of the file, the log that it speaks of is
//! there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use plimsoll_io::Permits;

use crate::log::holds::NamedHolds;
use crate::log::reader::GenerationFile;

/// A hold on the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Who holds it.
    pub name: String,
    /// The first generation that is kept for it.
    pub generation: u32,
    /// Whether it outlives the process.
    pub is_durable: bool,
}

/// All holds of an instance. See the module text.
pub(super) struct Holds {
    /// From here on no generation was missing when the instance was opened.
    pub(super) unbroken_from: u32,
    /// Of callers in this process, who release them by name.
    pub(super) of_callers: RefCell<NamedHolds>,
    /// Of the engine's own work, by number: nobody else can end them.
    pub(super) of_work: RefCell<BTreeMap<u64, Hold>>,
    /// As the file says.
    pub(super) durable: RefCell<NamedHolds>,
    /// Generations that the file may say soon, by ticket.
    pub(super) coming: RefCell<BTreeMap<u64, u32>>,
    tickets: Cell<u64>,
    /// Tickets of writes that failed: nobody knows whether the file says so.
    pub(super) in_doubt: RefCell<Vec<u64>>,
    /// One who changes the file at a time.
    pub(super) turn: Permits,
}

impl Holds {
    /// With the durable holds that were found, and the generations: a power cut can bring back one
    /// of several that were deleted, and nobody can read on from that.
    pub(super) fn new(durable: NamedHolds, generations: &[GenerationFile]) -> Holds {
        let mut unbroken_from = generations.last().map_or(0, |file| file.generation);
        for file in generations.iter().rev().skip(1) {
            if file.generation + 1 != unbroken_from {
                break;
            }
            unbroken_from = file.generation;
        }
        Holds {
            unbroken_from,
            of_callers: RefCell::default(),
            of_work: RefCell::default(),
            durable: RefCell::new(durable),
            coming: RefCell::default(),
            tickets: Cell::new(0),
            in_doubt: RefCell::default(),
            turn: Permits::new(1),
        }
    }

    /// The first generation that somebody needs.
    pub(super) fn oldest(&self) -> Option<u32> {
        let (of_callers, of_work) = (self.of_callers.borrow(), self.of_work.borrow());
        let (durable, coming) = (self.durable.borrow(), self.coming.borrow());
        let all = of_callers.values().chain(durable.values()).chain(coming.values());
        all.chain(of_work.values().map(|hold| &hold.generation)).min().copied()
    }

    /// A ticket of a change of the file, which may come to hold log from `generation` on.
    pub(super) fn expect(&self, generation: u32) -> u64 {
        let ticket = self.tickets.get() + 1;
        self.tickets.set(ticket);
        self.coming.borrow_mut().insert(ticket, generation);
        ticket
    }

    /// The file says what it is to say: all that came before is settled.
    pub(super) fn note_written(&self, ticket: u64, durable: NamedHolds) {
        let mut coming = self.coming.borrow_mut();
        coming.remove(&ticket);
        for ticket in self.in_doubt.take() {
            coming.remove(&ticket);
        }
        *self.durable.borrow_mut() = durable;
    }

    /// Until nobody changes the file. Nobody begins to once the instance is closing.
    pub(super) async fn settled(&self) {
        drop(self.turn.acquire().await);
    }
}
