//! Which pages are being written or were written lately, for readers that go around the cache.

use std::collections::{BTreeMap, VecDeque};

use crate::PageNumber;

/// Writes remembered for readers that go around the cache.
const RECENT_WRITES: usize = 4096;

/// See the module text.
#[derive(Default)]
pub(super) struct RecentWrites {
    started: u64,
    under_way: BTreeMap<u64, (PageNumber, u32)>,
    recent: VecDeque<(u64, PageNumber, u32)>,
}

impl RecentWrites {
    /// Notes that a write of pages begins; its number.
    pub(super) fn start(&mut self, first: PageNumber, count: u32) -> u64 {
        self.started += 1;
        self.under_way.insert(self.started, (first, count));
        self.recent.push_back((self.started, first, count));
        if self.recent.len() > RECENT_WRITES {
            self.recent.pop_front();
        }
        self.started
    }

    /// Notes that the write of this number has ended.
    pub(super) fn end(&mut self, number: u64) {
        self.under_way.remove(&number);
    }

    /// The number that everything finished by now lies before.
    pub(super) fn mark(&self) -> u64 {
        self.under_way.first_key_value().map_or(self.started, |(number, _)| number - 1)
    }

    /// Whether a write of this page is under way, or was at any time since a mark.
    pub(super) fn touches(&self, page: PageNumber, since: u64) -> bool {
        let holds = |first: PageNumber, count: u32| page >= first && page - first < count;
        let forgotten = self.recent.front().is_some_and(|(oldest, _, _)| *oldest > since + 1);
        forgotten
            || self.under_way.values().any(|(first, count)| holds(*first, *count))
            || self
                .recent
                .iter()
                .rev()
                .take_while(|(number, _, _)| *number > since)
                .any(|(_, first, count)| holds(*first, *count))
    }
}
