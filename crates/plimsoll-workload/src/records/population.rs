//! Which records a database holds, as far as the workload needs to know.
//!
//! Records are numbered from zero. A prepared database holds the first ones, except where its rule
//! left places vacant; inserts append, or fill a vacant place that the backend finds. What was
//! deleted or filled since is not tracked: an operation that meets a record that is gone finds
//! nothing, says so, and the session draws another. Keeping the set exact would cost memory in
//! proportion to the run; the share of such operations is measured instead (`missing_record`).

use std::fmt;
use std::sync::Arc;

use plimsoll_io::Random;

/// Tries to draw a record that was not left vacant. At most half the places are vacant, so more are
/// never needed in practice.
const DRAWS_MAX: usize = 64;

/// Whether a prepared place holds a record.
pub type Rule = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// The record numbers of one database.
#[derive(Clone)]
pub struct Population {
    next_record: u64,
    /// What the database held when it was opened: the hot set is a part of that and does not
    /// wander.
    first_count: u64,
    is_there: Option<Rule>,
}

impl fmt::Debug for Population {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Population")
            .field("next_record", &self.next_record)
            .field("has_vacancies", &self.is_there.is_some())
            .finish()
    }
}

impl Population {
    /// A database prepared with this many records.
    pub fn prepared(records_count: u64) -> Self {
        Self { next_record: records_count, first_count: records_count, is_there: None }
    }

    /// A database prepared with this many places for records, of which those hold one of which the
    /// rule says so.
    pub fn with_vacancies(places_count: u64, is_there: Rule) -> Self {
        Self { next_record: places_count, first_count: places_count, is_there: Some(is_there) }
    }

    /// The number of the next new record at the end.
    pub fn append(&mut self) -> u64 {
        self.next_record += 1;
        self.next_record - 1
    }

    /// A record that has existed at some time, every one equally likely; `None` while there was
    /// none.
    pub fn draw(&self, random: &mut Random) -> Option<u64> {
        self.draw_from(random, 0, self.next_record)
    }

    /// The same, out of `count` numbers from `first` on.
    pub fn draw_from(&self, random: &mut Random, first: u64, count: u64) -> Option<u64> {
        let count = count.min(self.next_record.saturating_sub(first));
        if count == 0 {
            return None;
        }
        let mut drawn = first + random.below(count);
        if let Some(is_there) = &self.is_there {
            for _ in 0..DRAWS_MAX {
                if is_there(drawn) {
                    break;
                }
                drawn = first + random.below(count);
            }
        }
        Some(drawn)
    }

    /// How many records make the hot set: the first ones, so that hot pages lie together as hot
    /// data does on tiers.
    pub fn hot_count(&self, hot_percent: u32) -> u64 {
        self.first_count * u64::from(hot_percent.min(100)) / 100
    }

    /// A record of the hot set or one outside of it; from the other side where one of both is
    /// empty.
    pub fn draw_side(&self, random: &mut Random, hot_percent: u32, is_hot: bool) -> Option<u64> {
        let hot = self.hot_count(hot_percent);
        let (first, count) = match is_hot {
            true => (0, hot),
            false => (hot, u64::MAX),
        };
        self.draw_from(random, first, count).or_else(|| self.draw(random))
    }

    /// How many numbers have been given out so far.
    pub fn records_ever(&self) -> u64 {
        self.next_record
    }
}
