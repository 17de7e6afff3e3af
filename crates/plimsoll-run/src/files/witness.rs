//! What each sector of a file should hold, as far as that is known: the version that was written
//! last. What was written while it was read, or by two at once, is not judged: nothing promises
//! which of them wins.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::content::{Recipe, SECTOR_BYTES};

/// Nothing is known of such a sector, as of all that an earlier run has written.
const UNKNOWN: u32 = u32::MAX;

/// A transfer under way.
struct Open {
    first: u64,
    count: u64,
    writes: bool,
    is_disputed: bool,
}

impl Open {
    fn meets(&self, first: u64, count: u64) -> bool {
        self.first < first + count && first < self.first + self.count
    }
}

#[derive(Default)]
struct State {
    versions: Vec<u32>,
    next_version: u32,
    next_ticket: u64,
    open: BTreeMap<u64, Open>,
}

/// See the module text.
pub struct Witness {
    recipe: Recipe,
    state: RefCell<State>,
}

/// Names a transfer under way.
#[derive(Clone, Copy)]
pub struct Ticket(u64);

impl Witness {
    /// Of a file that was just prepared, or that earlier runs have written to. The first version
    /// that is written is `first`, counted anew behind the largest number there is room for.
    pub fn new(recipe: Recipe, size_bytes: u64, is_new: bool, first: u64) -> Witness {
        let sectors = (size_bytes / SECTOR_BYTES as u64) as usize;
        let versions = vec![if is_new { 0 } else { UNKNOWN }; sectors];
        let next_version = (first % u64::from(UNKNOWN)) as u32;
        let state = State { versions, next_version, ..State::default() };
        Witness { recipe, state: RefCell::new(state) }
    }

    /// A read of whole sectors begins.
    pub fn begin_read(&self, offset: u64, length: usize) -> Ticket {
        self.begin(offset, length, false)
    }

    /// A write of whole sectors begins; with the version to be written.
    pub fn begin_write(&self, offset: u64, length: usize) -> (Ticket, u64) {
        let ticket = self.begin(offset, length, true);
        let mut state = self.state.borrow_mut();
        let version = state.next_version;
        state.next_version = (version + 1) % UNKNOWN;
        (ticket, u64::from(version))
    }

    fn begin(&self, offset: u64, length: usize, writes: bool) -> Ticket {
        let (first, count) = sectors_of(offset, length);
        let state = &mut *self.state.borrow_mut();
        let mut is_disputed = false;
        for open in state.open.values_mut().filter(|open| open.meets(first, count)) {
            is_disputed |= open.writes;
            open.is_disputed |= writes;
        }
        state.next_ticket += 1;
        let open = Open { first, count, writes, is_disputed };
        state.open.insert(state.next_ticket, open);
        Ticket(state.next_ticket)
    }

    fn end(&self, ticket: Ticket) -> Open {
        let open = self.state.borrow_mut().open.remove(&ticket.0);
        open.expect("a transfer ends once")
    }

    /// A write has ended, well or not.
    pub fn end_write(&self, ticket: Ticket, version: u64, is_done: bool) {
        let open = self.end(ticket);
        let known = if is_done && !open.is_disputed { version as u32 } else { UNKNOWN };
        let range = open.first as usize..(open.first + open.count) as usize;
        self.state.borrow_mut().versions[range].fill(known);
    }

    /// A read has ended; what it read is compared.
    ///
    /// # Errors
    /// Which sector is wrong, and how.
    pub fn end_read(&self, ticket: Ticket, bytes: Option<&[u8]>) -> Result<(), String> {
        let open = self.end(ticket);
        let Some(bytes) = bytes.filter(|_| !open.is_disputed) else {
            return Ok(());
        };
        for (index, sector) in bytes.chunks_exact(SECTOR_BYTES).enumerate() {
            let number = open.first + index as u64;
            let wrong =
                |what: String| format!("sector {number} is not what was written there: {what}");
            let found =
                self.recipe.version_of(number * SECTOR_BYTES as u64, sector).map_err(wrong)?;
            self.judge(number, found).map_err(wrong)?;
            self.state.borrow_mut().versions[number as usize] = found as u32;
        }
        Ok(())
    }

    /// Holds the version that a sector was found to have against what was written last, where that
    /// is known.
    ///
    /// # Errors
    /// Both versions.
    pub fn judge(&self, sector: u64, found: u64) -> Result<(), String> {
        let known = self.state.borrow().versions[sector as usize];
        match known == UNKNOWN || u64::from(known) == found {
            true => Ok(()),
            false => Err(format!("it holds version {found}, but version {known} was written last")),
        }
    }
}

fn sectors_of(offset: u64, length: usize) -> (u64, u64) {
    let sector = SECTOR_BYTES as u64;
    (offset / sector, length as u64 / sector)
}
