//! Which way a durable write goes: with RWF_DSYNC, or as a write that fdatasync follows. Both are
//! on stable storage when they complete.
//!
//! Which is faster depends on kernel and device by a factor of up to forty, and no document says it
//! beforehand. So the first durable writes to a device take turns, each is timed, and the faster
//! way does all the later ones. No write is made for the sake of measuring. The flag wins unless
//! the other way is clearly faster: it is one command where a device has forced unit access. The
//! choice is made once, for the whole life of the disk, so that a measurement does not change its
//! method in the middle; a run has made it long before it measures.
//!
//! Limits: the writes compared are those that came, of whatever length. With buffered I/O fdatasync
//! would write back everything the page cache holds of the file, so that the flag is always taken
//! there.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::DurableBy;
use crate::Nanos;

/// Writes of each way that are timed.
const TIMED: usize = 16;
/// The median of writes with a sync must be below this share of the other's.
const CLEARLY_FASTER: f64 = 0.8;

/// How one durable write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Flag,
    WriteThenSync,
}

/// The writes compared on one device.
#[derive(Default)]
struct Trial {
    begun: usize,
    flag_ns: Vec<Nanos>,
    sync_ns: Vec<Nanos>,
    chosen: Option<Way>,
}

/// What is wanted and what was found out.
pub(super) struct DurableWays {
    wanted: DurableBy,
    trials: BTreeMap<u64, Trial>,
}

impl DurableWays {
    pub(super) fn new(wanted: DurableBy) -> Self {
        Self { wanted, trials: BTreeMap::new() }
    }

    /// The way of the next durable write to a file on `device`; `None` where nothing is to be
    /// compared.
    pub(super) fn next(&mut self, device: Option<u64>) -> Way {
        match (self.wanted, device) {
            (DurableBy::Flag, _) | (DurableBy::Faster, None) => Way::Flag,
            (DurableBy::WriteThenSync, _) => Way::WriteThenSync,
            (DurableBy::Faster, Some(device)) => {
                let trial = self.trials.entry(device).or_default();
                trial.begun += 1;
                let turn = if trial.begun % 2 == 1 { Way::Flag } else { Way::WriteThenSync };
                trial.chosen.unwrap_or(turn)
            }
        }
    }

    /// Notes how long a write took; answers the way chosen, when this write decided it.
    pub(super) fn note(&mut self, device: Option<u64>, way: Way, taken_ns: Nanos) -> Option<Way> {
        let trial = self.trials.get_mut(&device?)?;
        if trial.chosen.is_some() {
            return None;
        }
        match way {
            Way::Flag => trial.flag_ns.push(taken_ns),
            Way::WriteThenSync => trial.sync_ns.push(taken_ns),
        }
        if trial.flag_ns.len() < TIMED || trial.sync_ns.len() < TIMED {
            return None;
        }
        let (flag_ns, sync_ns) = (median(&mut trial.flag_ns), median(&mut trial.sync_ns));
        let chosen = if (sync_ns as f64) < flag_ns as f64 * CLEARLY_FASTER {
            Way::WriteThenSync
        } else {
            Way::Flag
        };
        trial.chosen = Some(chosen);
        trial.chosen
    }

    /// The kernel refuses the flag: there is one way left.
    pub(super) fn refuse_flag(&mut self) {
        self.wanted = DurableBy::WriteThenSync;
    }
}

fn median(taken_ns: &mut [Nanos]) -> Nanos {
    taken_ns.sort_unstable();
    taken_ns[taken_ns.len() / 2]
}
