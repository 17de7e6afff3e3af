//! Which pages have been reached, and which each tree may reach.

// Circle: which trees there are is said by who asks, above.
use super::KnownTree;
use super::extents::Extents;
// Circle: a walk marks pages on the map, and the map is drawn of the space that walks have found.
use super::space::Space;
use crate::PageNumber;

/// See the module text.
#[derive(Default)]
pub(super) struct PageMap {
    reached: Vec<u64>,
    /// Root, pages of its own (free ones included), free pages.
    trees: Vec<(PageNumber, Extents, Extents)>,
}

impl PageMap {
    pub(super) fn empty(page_max: PageNumber) -> Self {
        Self { reached: vec![0; page_max as usize / 64 + 1], trees: Vec::new() }
    }

    /// Learns what each tree may reach.
    pub(super) fn learn(&mut self, trees: &[KnownTree], spaces: &[Option<Space>]) {
        for (tree, space) in trees.iter().zip(spaces) {
            let Some(space) = space else { continue };
            let children =
                trees.iter().zip(spaces).filter(|(child, _)| child.parent == tree.place.root);
            let ranges = children.filter_map(|(_, space)| space.as_ref());
            let ranges = ranges.flat_map(|space| space.owned.ranges().to_vec()).collect();
            let own = space.owned.without(&Extents::of(ranges).0);
            self.trees.push((tree.place.root, own, space.free.clone()));
        }
    }

    /// Marks a page; whether it was new.
    pub(super) fn reach(&mut self, page: PageNumber) -> bool {
        let (word, bit) = (page as usize / 64, 1u64 << (page % 64));
        let is_new = self.reached[word] & bit == 0;
        self.reached[word] |= bit;
        is_new
    }

    pub(super) fn is_reached(&self, page: PageNumber) -> bool {
        let word = self.reached.get(page as usize / 64);
        word.is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    pub(super) fn reached_count(&self) -> u64 {
        self.reached.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// What a tree may reach: pages of its own, and among them the free ones.
    pub(super) fn of_tree(&self, root: PageNumber) -> Option<(&Extents, &Extents)> {
        let found = self.trees.iter().find(|tree| tree.0 == root)?;
        Some((&found.1, &found.2))
    }
}
