//! Which records a database holds, as far as the workload needs to know.
//!
//! Records are numbered from zero. A prepared database holds the first ones; inserts append. Deleted numbers are not
//! tracked: an operation that meets one finds nothing, says so, and the session draws another. Keeping the set exact
//! would cost memory in proportion to the run; the share of such operations is measured instead (`missing_record`).

use plimsoll_io::Random;

/// The record numbers of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    next_record: u64,
}

impl Population {
    /// A database prepared with this many records.
    pub fn prepared(records_count: u64) -> Self {
        Self {
            next_record: records_count,
        }
    }

    /// The number of the next new record.
    pub fn append(&mut self) -> u64 {
        self.next_record += 1;
        self.next_record - 1
    }

    /// A record that has existed at some time, every one equally likely; `None` while there was none.
    pub fn draw(&self, random: &mut Random) -> Option<u64> {
        (self.next_record > 0).then(|| random.below(self.next_record))
    }

    /// How many records have existed so far.
    pub fn records_ever(&self) -> u64 {
        self.next_record
    }
}
