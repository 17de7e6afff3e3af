//! The state of a set's drives: which slots can be read and written, row by row while a spare is
//! being filled.

use super::layout::Layout;

/// One slot of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// Holds everything.
    Whole,
    /// Gone.
    Lost,
    /// A spare that holds the rows below this one.
    Filling {
        /// The first row that is not there yet.
        next_row: u64,
    },
}

/// The slots of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    states: Vec<MemberState>,
    impaired_count: u32,
}

impl Slots {
    /// A whole set.
    pub fn whole(drive_count: u32) -> Self {
        Self { states: vec![MemberState::Whole; drive_count as usize], impaired_count: 0 }
    }

    /// Whether every slot is whole.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.impaired_count == 0
    }

    /// Whether a slot holds a row.
    #[inline]
    pub fn holds(&self, slot: u32, row: u64) -> bool {
        match self.states[slot as usize] {
            MemberState::Whole => true,
            MemberState::Lost => false,
            MemberState::Filling { next_row } => row < next_row,
        }
    }

    /// Changes a slot.
    pub fn change(&mut self, slot: u32, state: MemberState) {
        self.states[slot as usize] = state;
        let impaired = self.states.iter().filter(|state| **state != MemberState::Whole);
        self.impaired_count = impaired.count() as u32;
    }

    /// A slot's state.
    pub fn state(&self, slot: u32) -> MemberState {
        self.states[slot as usize]
    }

    /// The slot that is being filled, if one is.
    pub fn filling(&self) -> Option<u32> {
        let found =
            self.states.iter().position(|state| matches!(state, MemberState::Filling { .. }));
        found.map(|slot| slot as u32)
    }

    /// Whether more is lost than the redundancy bears.
    pub fn is_beyond_repair(&self, layout: &Layout) -> bool {
        if layout.is_mirrored() {
            let whole = |slot: u32| self.state(slot) == MemberState::Whole;
            let mut pairs = 0..layout.drive_count / 2;
            return pairs.any(|pair| !whole(2 * pair) && !whole(2 * pair + 1));
        }
        self.impaired_count > layout.parity_count()
    }

    /// How many slots do not hold everything.
    pub fn impaired_count(&self) -> u32 {
        self.impaired_count
    }
}
