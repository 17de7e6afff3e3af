//! Where in a tree's free space it is worth looking: the keys before which no extent of a size is
//! left.
//!
//! Space is given out first fit. What lies at the front of a tree's available extents is used up,
//! or too small, for most of what is asked, and without this every question would walk over all of
//! it again. Nothing here is ever written: it is found out anew by the first walk after opening.
//!
//! A note may only be too low, never too high, or space would be lost until the next opening. So
//! whoever makes an extent available says so before anything else, whether that comes to be or not;
//! that none is left counts once it is certain.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::PageNumber;

/// For each size, the key before which no extent of that size is left.
type Notes = BTreeMap<u32, Vec<u8>>;

/// The notes of a database, by the root of the tree of available extents. See the module text.
#[derive(Debug, Default)]
pub(crate) struct FreeSpace {
    trees: RefCell<BTreeMap<PageNumber, Notes>>,
}

impl FreeSpace {
    /// From where on an extent of at least `pages` pages may lie.
    pub fn start(&self, root: PageNumber, pages: u32) -> Vec<u8> {
        let trees = self.trees.borrow();
        let notes = trees.get(&root).into_iter().flatten();
        // Where there is none of a size, there is none of a larger one.
        let smaller = notes.filter(|(size, _)| **size <= pages);
        smaller.map(|(_, key)| key.clone()).max().unwrap_or_default()
    }

    /// Before `key` there is no extent of at least `pages` pages.
    pub fn note_none_before(&self, root: PageNumber, pages: u32, key: &[u8]) {
        let mut trees = self.trees.borrow_mut();
        let notes = trees.entry(root).or_default();
        // Sizes that this says as much about need no note of their own.
        notes.retain(|size, noted| *size < pages || key < &noted[..]);
        notes.insert(pages, key.to_vec());
    }

    /// At `key` there may be an extent of up to `pages` pages from now on.
    pub fn note_some_at(&self, root: PageNumber, pages: u32, key: &[u8]) {
        let mut trees = self.trees.borrow_mut();
        let notes = trees.get_mut(&root).into_iter().flatten();
        for (_, noted) in notes.filter(|(size, noted)| **size <= pages && key < &noted[..]) {
            *noted = key.to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why it matters: a note that is too high hides space that is free.
    #[test]
    fn a_note_is_never_higher_than_what_is_known() {
        let space = FreeSpace::default();
        assert_eq!(space.start(7, 1), b"");
        space.note_none_before(7, 4, b"e");
        assert_eq!((space.start(7, 3), space.start(7, 4)), (b"".to_vec(), b"e".to_vec()));
        space.note_none_before(7, 2, b"c");
        assert_eq!(space.start(7, 9), b"e", "the larger note stands");
        assert_eq!(space.start(7, 3), b"c");
        space.note_some_at(7, 3, b"b");
        assert_eq!((space.start(7, 4), space.start(7, 2)), (b"e".to_vec(), b"b".to_vec()));
        space.note_some_at(7, 4, b"d");
        assert_eq!((space.start(7, 4), space.start(7, 2)), (b"d".to_vec(), b"b".to_vec()));
        space.note_some_at(7, 9, b"");
        assert_eq!(space.start(7, 100), b"", "anywhere");
        space.note_none_before(7, 1, b"z");
        assert_eq!(space.start(7, 4), b"z");
        assert_eq!(space.start(8, 4), b"", "another tree");
    }
}
