//! What a move has come to, and the log that it wrote.
//!
//! All instances of a store run on one thread, and nothing else runs while a future is polled. So
//! what the logs take during the polls of a move is what the move wrote: rows, splits of pages, and
//! images of them. What cleans up behind deleted rows later on is not in it.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use plimsoll_engine::instance::Instance;
use plimsoll_io::Nanos;

use super::homes::Home;

/// What a move came to, or has come to so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Whether the mailbox lives at the new place.
    pub is_over: bool,
    /// Rows that were written at the new place.
    pub rows: u64,
    /// Bytes of values that were read at the old place.
    pub read_bytes: u64,
    /// Bytes of values that were written at the new place.
    pub written_bytes: u64,
    /// Rows that were deleted at the old place.
    pub deleted_rows: u64,
    /// Bytes of log that the move appended: of the old place and the new one.
    pub log_bytes: u64,
    /// For how long the mailbox was closed.
    pub closed_ns: Nanos,
}

/// Counts a move.
pub struct Tally<'a> {
    homes: [&'a Instance; 2],
    moved: Cell<Moved>,
    told: &'a dyn Fn(&Moved) -> bool,
}

impl<'a> Tally<'a> {
    /// Nothing yet of a move between these two.
    pub(super) fn new(homes: [&'a Home; 2], told: &'a dyn Fn(&Moved) -> bool) -> Tally<'a> {
        let homes = homes.map(|home| &*home.mail);
        Tally { homes, moved: Cell::default(), told }
    }

    /// What there is so far.
    pub fn moved(&self) -> Moved {
        self.moved.get()
    }

    /// Adds to it.
    pub fn note(&self, add: impl FnOnce(&mut Moved)) {
        let mut moved = self.moved.get();
        add(&mut moved);
        self.moved.set(moved);
    }

    /// Tells whoever asked for the move; whether it is to go on.
    pub fn tell(&self) -> bool {
        (self.told)(&self.moved.get())
    }

    fn logged_bytes(&self) -> u64 {
        self.homes.iter().map(|home| home.store().log.statistics().appended_bytes).sum()
    }

    /// Carries out a part of the move and counts its log.
    pub async fn metered<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = Box::pin(work);
        std::future::poll_fn(|context| self.poll(work.as_mut(), context)).await
    }

    fn poll<T>(
        &self,
        work: Pin<&mut impl Future<Output = T>>,
        context: &mut Context<'_>,
    ) -> Poll<T> {
        let before = self.logged_bytes();
        let polled = work.poll(context);
        let appended = self.logged_bytes() - before;
        self.note(|moved| moved.log_bytes += appended);
        polled
    }
}
