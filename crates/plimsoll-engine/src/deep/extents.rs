//! Sets of pages as sorted ranges.

use crate::PageNumber;

/// Pages `first` to `last`, both included.
pub type Range = (PageNumber, PageNumber);

/// Disjoint ranges in ascending order, never touching each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extents {
    ranges: Vec<Range>,
}

impl Extents {
    /// The union of ranges, and the stretches that more than one of them covers.
    pub(super) fn of(mut ranges: Vec<Range>) -> (Self, Vec<Range>) {
        ranges.sort_unstable();
        let (mut merged, mut shared): (Vec<Range>, Vec<Range>) = (Vec::new(), Vec::new());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1 => {
                    shared.push((first, last.min(before.1)));
                    before.1 = before.1.max(last);
                }
                Some(before) if first == before.1.saturating_add(1) => before.1 = last,
                _ => merged.push((first, last)),
            }
        }
        (Self { ranges: merged }, shared)
    }

    pub(super) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    pub(super) fn pages(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    pub(super) fn contains(&self, page: PageNumber) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= page);
        after > 0 && self.ranges[after - 1].1 >= page
    }

    /// What of this set lies in the other.
    pub(super) fn within(&self, other: &Extents) -> Extents {
        let (mut ranges, mut from) = (Vec::new(), 0);
        for (first, last) in &self.ranges {
            while other.ranges.get(from).is_some_and(|range| range.1 < *first) {
                from += 1;
            }
            let overlapping = other.ranges[from..].iter().take_while(|range| range.0 <= *last);
            ranges.extend(overlapping.map(|range| (range.0.max(*first), range.1.min(*last))));
        }
        Extents { ranges }
    }

    /// What of this set lies outside the other.
    pub(super) fn without(&self, other: &Extents) -> Extents {
        let (mut ranges, mut from) = (Vec::new(), 0);
        for (first, last) in &self.ranges {
            let mut next = *first;
            while other.ranges.get(from).is_some_and(|range| range.1 < *first) {
                from += 1;
            }
            for (start, end) in other.ranges[from..].iter().take_while(|range| range.0 <= *last) {
                if *start > next {
                    ranges.push((next, start - 1));
                }
                next = end.saturating_add(1);
            }
            if next <= *last {
                ranges.push((next, *last));
            }
        }
        Extents { ranges }
    }
}
