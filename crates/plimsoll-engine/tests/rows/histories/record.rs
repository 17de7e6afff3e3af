//! What sessions did and saw, and how each transaction ended: the history that the checker is
//! given.
//!
//! A transaction that was under way when the power failed has happened if its serial number is
//! there after recovery. One that was committed lazily and is lost has failed, and so has not
//! happened for anybody who waited for what was seen. Who did not wait and saw it may have seen
//! what is no more; that one is left out.

use std::collections::BTreeSet;

use adya::History;
use adya::history::{Id, Interner, Mop, Op, OpType, ReadValue, Scalar};

/// One step of a transaction.
#[derive(Clone, Debug)]
pub enum Step {
    /// Appends an element to a list.
    Append(u64, u64),
    /// What a list held.
    List(u64, Vec<u64>),
    /// Sets a register.
    Set(u64, u64),
    /// What a register held.
    Held(u64, Option<u64>),
}

impl Step {
    fn changes(&self) -> bool {
        matches!(self, Step::Append(..) | Step::Set(..))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Nothing has been asked for yet, so it has not happened.
    UnderWay,
    Failed,
    /// Asked for, lazily or durably, and acknowledged or not.
    Commit {
        durable: bool,
        acknowledged: bool,
    },
    Happened,
    /// It may have seen what a crash took.
    LeftOut,
}

#[derive(Clone, Debug)]
struct Entry {
    process: i64,
    began: u64,
    ended: Option<u64>,
    steps: Vec<Step>,
    ending: Ending,
    /// Commits there were when it began: all that it may see.
    seen: usize,
}

/// See the module text.
#[derive(Default)]
pub struct Record {
    events: u64,
    entries: Vec<Entry>,
    /// Entries that were committed and changed something, in the order of their commits.
    committed: Vec<usize>,
    /// Entries of lives before this one: their fate is known.
    settled: usize,
}

impl Record {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// A transaction begins; answers what it is called here.
    pub fn begin(&mut self, process: i64) -> usize {
        let began = self.event();
        self.entries.push(Entry {
            process,
            began,
            ended: None,
            steps: Vec::new(),
            ending: Ending::UnderWay,
            seen: self.committed.len(),
        });
        self.entries.len() - 1
    }

    /// Transactions begun so far.
    pub fn begun(&self) -> usize {
        self.entries.len()
    }

    /// A step was done.
    pub fn step(&mut self, entry: usize, step: Step) {
        self.entries[entry].steps.push(step);
    }

    /// How many steps there are, and a way back to so many when the later ones are taken back.
    pub fn steps(&self, entry: usize) -> usize {
        self.entries[entry].steps.len()
    }

    /// Steps after the first `count` have not happened.
    pub fn take_back(&mut self, entry: usize, count: usize) {
        self.entries[entry].steps.truncate(count);
    }

    /// Whether a transaction has changed anything.
    pub fn changes(&self, entry: usize) -> bool {
        self.entries[entry].steps.iter().any(Step::changes)
    }

    /// It was given up.
    pub fn fail(&mut self, entry: usize) {
        let now = self.event();
        let entry = &mut self.entries[entry];
        (entry.ended, entry.ending) = (Some(now), Ending::Failed);
    }

    /// It is committed in the next moment: nothing may run between this and the commit record.
    pub fn committing(&mut self, entry: usize, durable: bool) {
        if self.changes(entry) {
            self.committed.push(entry);
        }
        let acknowledged = false;
        self.entries[entry].ending = Ending::Commit { durable, acknowledged };
    }

    /// Its commit has returned.
    pub fn acknowledged(&mut self, entry: usize) {
        let now = self.event();
        let entry = &mut self.entries[entry];
        entry.ended = Some(now);
        if let Ending::Commit { acknowledged, .. } = &mut entry.ending {
            *acknowledged = true;
        }
    }

    /// A life has ended; these transactions are there after it. Answers how many commits were lost.
    pub fn settle(&mut self, survivors: &BTreeSet<u64>) -> usize {
        let is_there = |entry: &usize| survivors.contains(&(*entry as u64));
        let kept = self.committed.iter().take_while(|entry| is_there(entry)).count();
        let lost = self.committed.split_off(kept);
        assert!(!lost.iter().any(is_there), "commits survive without a gap");
        let now = self.event();
        for entry in &mut self.entries[self.settled..] {
            let changes = entry.steps.iter().any(Step::changes);
            entry.ending = match entry.ending {
                Ending::Commit { durable, acknowledged } if !changes => {
                    // Who waited for what was seen must be right; who did not may have seen what is
                    // lost.
                    let is_certain = acknowledged && (durable || entry.seen <= kept);
                    if is_certain { Ending::Happened } else { Ending::LeftOut }
                }
                Ending::UnderWay => Ending::Failed,
                other => other,
            };
            entry.ended.get_or_insert(now);
        }
        for entry in &self.committed {
            self.entries[*entry].ending = Ending::Happened;
        }
        for entry in &lost {
            let Ending::Commit { durable, acknowledged } = self.entries[*entry].ending else {
                unreachable!("only what was committed can be lost");
            };
            assert!(!(durable && acknowledged), "acknowledged commit {entry} is lost");
            self.entries[*entry].ending = Ending::Failed;
        }
        self.settled = self.entries.len();
        lost.len()
    }

    /// The history in the checker's form.
    pub fn history(&self) -> History {
        let mut interner = Interner::default();
        let mut ops: Vec<(u64, Op)> = Vec::new();
        for entry in &self.entries {
            let kind = match entry.ending {
                Ending::Happened => OpType::Ok,
                Ending::Failed => OpType::Fail,
                Ending::LeftOut => continue,
                Ending::UnderWay | Ending::Commit { .. } => unreachable!("every life was settled"),
            };
            let done: Vec<Mop> = entry.steps.iter().map(|step| mop(step, &mut interner)).collect();
            let mut asked = done.clone();
            for step in &mut asked {
                if let Mop::Read { value, .. } = step {
                    *value = ReadValue::Nil;
                }
            }
            let ended = entry.ended.expect("every entry has ended");
            for (index, kind, value) in [(entry.began, OpType::Invoke, asked), (ended, kind, done)]
            {
                let op = Op { index, kind, process: Some(entry.process), value, time: None };
                ops.push((index, op));
            }
        }
        ops.sort_by_key(|(event, _)| *event);
        History::from_ops(ops.into_iter().map(|(_, op)| op).collect(), interner)
    }
}

fn mop(step: &Step, interner: &mut Interner) -> Mop {
    let mut id = |number: u64| -> Id { interner.intern(Scalar::Int(number as i64)) };
    match step {
        Step::Append(key, value) => Mop::Append { key: id(*key), value: id(*value) },
        Step::List(key, list) => Mop::Read {
            key: id(*key),
            value: ReadValue::List(list.iter().map(|element| id(*element)).collect()),
        },
        Step::Set(key, value) => Mop::Write { key: id(*key), value: id(*value) },
        Step::Held(key, held) => Mop::Read {
            key: id(*key),
            value: held.map_or(ReadValue::Nil, |value| ReadValue::Scalar(id(value))),
        },
    }
}
