//! Which record an operation is about: where a session works, and where its new records go.
//!
//! Work comes in batches. A batch stays in one folder, a run of consecutive records, so that the
//! branch pages above it are read once for the whole batch although the cache cannot hold all of
//! them. Inside the folder every record is equally likely. A new record is a reply: it goes beside
//! the record that was read last and has no reply yet, if the leaf there has room; otherwise it
//! goes to the end of the table. Both are inferred from published ratios, see
//! `docs/decisions/0005-placement.md`. Without folders every record of the database is equally
//! likely and batches mean nothing. Where some records are hot, a stated share of the operations
//! (of the folders, where there are any) goes to them.
//!
//! Places of appended records are not filled again, so their folders empty as a long run deletes. A
//! session that finds nothing in its folder goes to another, and one that finds nothing anywhere
//! inserts: it would look for ever, for no I/O.

use std::collections::VecDeque;

use plimsoll_io::Random;

use crate::demand::Done;
use crate::records::mix::Mix;
use crate::records::operation::{Commit, Kind, Operation, Placement};
use crate::records::population::Population;
use crate::records::step::Previous;

/// Reads longer ago than this many are not answered any more.
const UNANSWERED_MAX: usize = 64;
/// A session that has found so many records gone or held, one after the other, tries another
/// folder.
const FOLDER_MISSES_MAX: u32 = 64;
/// After so many it looks for no record any more.
const MISSES_MAX: u32 = 16 * FOLDER_MISSES_MAX;

/// Where sessions work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality {
    /// Records of a folder; 0 for no folders.
    pub folder_records: u64,
    /// Operations before a session goes to another folder.
    pub batch_operations: u32,
    /// Whether new records are replies.
    pub replies: bool,
    /// Share of the records that are hot; 0 for none.
    pub hot_percent: u32,
    /// Share of the operations on records, or of the folders, that go to them.
    pub hot_access_percent: u32,
}

/// What an edition's sessions do and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// What.
    pub mix: Mix,
    /// Where.
    pub locality: Locality,
}

impl From<Mix> for Habits {
    /// Anywhere, and new records at the end.
    fn from(mix: Mix) -> Habits {
        Habits { mix, locality: Locality::default() }
    }
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Choice {
    habits: Habits,
    folder: Option<u64>,
    operations_left: u32,
    /// Records gone or held since the last operation that was done.
    misses: u32,
    /// Records that were read and have no reply yet, the latest last.
    unanswered: VecDeque<u64>,
}

impl Choice {
    pub(crate) fn new(habits: Habits) -> Choice {
        Choice { habits, folder: None, operations_left: 0, misses: 0, unanswered: VecDeque::new() }
    }

    /// A fresh operation of the mix, or the kind and commit of one that came to nothing, on another
    /// record.
    pub(crate) fn next(
        &mut self,
        random: &mut Random,
        population: &mut Population,
        previous: Option<Previous>,
    ) -> Operation {
        if let Some(previous) = previous.filter(|previous| previous.result != Done::Done) {
            return self.again(random, population, previous);
        }
        self.misses = 0;
        if self.operations_left == 0 {
            self.begin_batch(random, population);
        }
        self.operations_left -= 1;
        let kind = self.habits.mix.draw_kind(random);
        let commit = self.habits.mix.draw_commit(random);
        if kind == Kind::Insert {
            return self.insert(population, commit);
        }
        self.on_record(random, population, kind, commit)
    }

    fn begin_batch(&mut self, random: &mut Random, population: &Population) {
        let Locality { folder_records, batch_operations, .. } = self.habits.locality;
        self.operations_left = batch_operations.max(1);
        self.folder = (folder_records > 0)
            .then(|| self.draw(random, population))
            .flatten()
            .map(|record| record / folder_records * folder_records);
    }

    /// A record of the whole database, or, where some are hot, of the side that the dice choose.
    fn draw(&self, random: &mut Random, population: &Population) -> Option<u64> {
        let Locality { hot_percent, hot_access_percent, .. } = self.habits.locality;
        if hot_percent == 0 {
            return population.draw(random);
        }
        let is_hot = random.below(100) < u64::from(hot_access_percent);
        population.draw_side(random, hot_percent, is_hot)
    }

    fn insert(&mut self, population: &mut Population, commit: Commit) -> Operation {
        let beside = self.habits.locality.replies.then(|| self.unanswered.pop_back()).flatten();
        match beside {
            Some(record) => {
                Operation { kind: Kind::Insert, placement: Placement::Beside, record, commit }
            }
            None => append(population, commit),
        }
    }

    fn on_record(
        &mut self,
        random: &mut Random,
        population: &mut Population,
        kind: Kind,
        commit: Commit,
    ) -> Operation {
        let drawn = match self.folder {
            Some(first) => population.draw_from(random, first, self.habits.locality.folder_records),
            None => self.draw(random, population),
        };
        // An empty database can only be inserted into.
        let Some(record) = drawn else {
            return append(population, commit);
        };
        if kind == Kind::Read {
            self.unanswered.push_back(record);
            if self.unanswered.len() > UNANSWERED_MAX {
                self.unanswered.pop_front();
            }
        }
        Operation { kind, placement: Placement::Own, record, commit }
    }

    /// A leaf without room sends the new record to the end; a record that is gone or held sends the
    /// session to another.
    fn again(
        &mut self,
        random: &mut Random,
        population: &mut Population,
        previous: Previous,
    ) -> Operation {
        let last = previous.operation;
        match last.kind {
            Kind::Insert if previous.result == Done::NoRoom => append(population, last.commit),
            Kind::Insert => self.insert(population, last.commit),
            kind => {
                self.unanswered.retain(|record| *record != last.record);
                self.misses += 1;
                if self.misses == MISSES_MAX {
                    self.misses = 0;
                    return append(population, last.commit);
                }
                if self.misses.is_multiple_of(FOLDER_MISSES_MAX) {
                    self.begin_batch(random, population);
                }
                self.on_record(random, population, kind, last.commit)
            }
        }
    }
}

fn append(population: &mut Population, commit: Commit) -> Operation {
    Operation { kind: Kind::Insert, placement: Placement::Own, record: population.append(), commit }
}
