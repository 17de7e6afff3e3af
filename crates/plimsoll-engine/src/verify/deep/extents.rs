//! Sets of pages as sorted, disjoint ranges.

use crate::PageNumber;

/// A set of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extents {
    /// First and last page of each range, ascending.
    ranges: Vec<(PageNumber, PageNumber)>,
}

impl Extents {
    /// The set of these ranges, and a page that more than one of them holds.
    pub fn of(mut ranges: Vec<(PageNumber, PageNumber)>) -> (Self, Option<PageNumber>) {
        ranges.sort_unstable();
        let mut merged: Vec<(PageNumber, PageNumber)> = Vec::with_capacity(ranges.len());
        let mut shared = None;
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1 => {
                    shared = shared.or(Some(first));
                    before.1 = before.1.max(last);
                }
                Some(before) if before.1.checked_add(1) == Some(first) => before.1 = last,
                _ => merged.push((first, last)),
            }
        }
        (Self { ranges: merged }, shared)
    }

    /// The ranges.
    pub fn ranges(&self) -> &[(PageNumber, PageNumber)] {
        &self.ranges
    }

    /// How many pages.
    pub fn pages(&self) -> u64 {
        self.ranges
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1)
            .sum()
    }

    /// Whether the set holds `page`.
    pub fn contains(&self, page: PageNumber) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= page);
        after > 0 && page <= self.ranges[after - 1].1
    }

    /// The highest page.
    pub fn last(&self) -> Option<PageNumber> {
        self.ranges.last().map(|(_, last)| *last)
    }

    /// The pages of this set that are not in `other`.
    pub fn without(&self, other: &Extents) -> Extents {
        let mut ranges = Vec::new();
        let mut cuts = other.ranges.iter().peekable();
        for (first, last) in &self.ranges {
            let mut from = u64::from(*first);
            while cuts.next_if(|cut| u64::from(cut.1) < from).is_some() {}
            // A cut may reach into the next range, so it is only looked at here.
            let mut ahead = cuts.clone();
            while let Some(cut) = ahead.next_if(|cut| cut.0 <= *last) {
                if u64::from(cut.0) > from {
                    ranges.push((from as PageNumber, cut.0 - 1));
                }
                from = from.max(u64::from(cut.1) + 1);
            }
            if from <= u64::from(*last) {
                ranges.push((from as PageNumber, *last));
            }
        }
        Extents { ranges }
    }
}
