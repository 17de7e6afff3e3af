//! Stations on the way of a request, and the two books that are kept of each.
//!
//! One book holds how many are there, summed up over time as they come and go; the other how long
//! each one stayed, noted when it leaves. Neither is computed from the other, so Little's law (J.
//! D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 1961) is a
//! check of both: who is lost on the way, or leaves twice, breaks it.
//!
//! Limit: who came before counting began and leaves afterwards is counted with the whole of its
//! stay.

use std::collections::VecDeque;

use plimsoll_io::Nanos;
use serde::Serialize;

/// A station as reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StationUse {
    /// Left it, for each second.
    pub per_second: f64,
    /// Were there, on average.
    pub present_mean: f64,
    /// Stayed so long, on average.
    pub stay_ms_mean: f64,
}

/// Where something stays for a while: requests at a controller, operations at a drive, dirty bytes
/// in a cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Station {
    present_count: u64,
    changed: Nanos,
    left_count: u64,
    /// How many were there, times how long: the first book.
    present_ns: u128,
    /// The stays of those that left: the second.
    stay_ns: u128,
}

impl Station {
    fn elapse(&mut self, now: Nanos) {
        self.present_ns += u128::from(self.present_count) * u128::from(now - self.changed);
        self.changed = now;
    }

    /// So many come.
    #[inline]
    pub(crate) fn enter(&mut self, now: Nanos, count: u64) {
        self.elapse(now);
        self.present_count += count;
    }

    /// So many leave, having stayed for `stay_ns` all together.
    #[inline]
    pub(crate) fn leave(&mut self, now: Nanos, count: u64, stay_ns: u128) {
        self.elapse(now);
        self.present_count -= count;
        self.left_count += count;
        self.stay_ns += stay_ns;
    }

    /// Counts anew. Who is there stays there.
    pub(crate) fn reset(&mut self, now: Nanos) {
        self.elapse(now);
        (self.left_count, self.present_ns, self.stay_ns) = (0, 0, 0);
    }

    /// Several stations of one kind over an interval, as one.
    pub(crate) fn together(
        stations: impl IntoIterator<Item = Station>,
        now: Nanos,
        interval_ns: Nanos,
    ) -> StationUse {
        let (mut left_count, mut present_ns, mut stay_ns) = (0, 0, 0);
        for mut station in stations {
            station.elapse(now.max(station.changed));
            left_count += station.left_count;
            present_ns += station.present_ns;
            stay_ns += station.stay_ns;
        }
        StationUse {
            per_second: left_count as f64 / (interval_ns as f64 / 1e9),
            present_mean: present_ns as f64 / interval_ns as f64,
            stay_ms_mean: stay_ns as f64 / left_count.max(1) as f64 / 1e6,
        }
    }
}

/// A station that everybody leaves in the order of coming, and of everybody is known at once when
/// that will be: no event of the agenda marks it. The line does, as time goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    station: Station,
    /// When each one enters and leaves, those that are there first.
    passing: VecDeque<(Nanos, Nanos)>,
    entered_count: usize,
}

impl Line {
    /// Somebody passes: it enters now or later, and leaves after those before it.
    pub(crate) fn pass(&mut self, now: Nanos, enters: Nanos, leaves: Nanos) {
        self.elapse(now);
        // Who waited elsewhere for a path to return stands in front of those that come meanwhile.
        let enters = enters.max(self.passing.back().map_or(0, |last| last.0));
        self.passing.push_back((enters, leaves.max(enters)));
    }

    fn elapse(&mut self, now: Nanos) {
        loop {
            let coming = self.passing.get(self.entered_count).map(|next| next.0);
            let leaving = self.passing.front().filter(|_| self.entered_count > 0);
            match (coming, leaving) {
                (Some(enters), leaving)
                    if enters <= now && leaving.is_none_or(|first| enters < first.1) =>
                {
                    self.station.enter(enters, 1);
                    self.entered_count += 1;
                }
                (_, Some(&(entered, leaves))) if leaves <= now => {
                    self.station.leave(leaves, 1, u128::from(leaves - entered));
                    self.passing.pop_front();
                    self.entered_count -= 1;
                }
                _ => return,
            }
        }
    }

    /// Counts anew.
    pub(crate) fn reset(&mut self, now: Nanos) {
        self.elapse(now);
        self.station.reset(now);
    }

    /// The line as it is at a moment.
    pub(crate) fn station_at(&self, now: Nanos) -> Station {
        let mut line = self.clone();
        line.elapse(now);
        line.station
    }
}
