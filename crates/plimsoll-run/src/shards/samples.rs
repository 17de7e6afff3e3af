//! Puts the samples of the shards together: the rows are those that one thread would have written.
//!
//! An instance lives on one shard, so its rows need no adding. Distributions and counts of a load
//! as a whole are added, and so are its levels; of how busy a thread was the highest stands for the
//! run.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_io::Nanos;
use plimsoll_measure::{Row, metric_code};

use crate::recorder::{Key, SampleFigures};

/// The sample of one shard up to a beat.
#[derive(Clone, Debug)]
pub struct SamplePart {
    /// The shard.
    pub shard: usize,
    /// The latest beat that it belongs to.
    pub beat: u64,
    /// When it ended.
    pub end_ns: Nanos,
    /// How long it lasted.
    pub interval_ns: Nanos,
    /// The phase.
    pub phase: u32,
    /// What was counted.
    pub figures: Vec<(Key, SampleFigures)>,
}

/// Waits until every shard has closed a beat, then makes its rows.
pub struct SampleMerge {
    /// Parts of each shard that are in no row yet, in their order.
    waiting: Vec<VecDeque<SamplePart>>,
    /// Shards that close no further samples.
    ended: Vec<bool>,
    highest: [u32; 2],
}

impl SampleMerge {
    /// Nothing received from so many shards.
    pub fn new(count: usize) -> SampleMerge {
        SampleMerge {
            waiting: vec![VecDeque::new(); count],
            ended: vec![false; count],
            highest: ["executor_busy", "executor_wait"]
                .map(|metric| metric_code(metric).expect("the metric is in the dictionary")),
        }
    }

    /// Takes in a part.
    pub fn add(&mut self, part: SamplePart) {
        self.waiting[part.shard].push_back(part);
    }

    /// Expects nothing more of a shard.
    pub fn end(&mut self, shard: usize) {
        self.ended[shard] = true;
    }

    /// The rows of every sample that is whole, one sample after the other.
    pub fn take(&mut self) -> Vec<Vec<Row>> {
        let mut samples = Vec::new();
        while let Some(beat) = self.next_whole() {
            samples.extend(self.sample(beat));
        }
        samples
    }

    /// The next beat that all shards have closed. A shard that was late has closed several at once;
    /// then so do all.
    fn next_whole(&self) -> Option<u64> {
        let mut wanted = self.waiting[0].front()?.beat;
        loop {
            let mut furthest = wanted;
            for (waiting, ended) in self.waiting.iter().zip(&self.ended) {
                match waiting.iter().find(|part| part.beat >= wanted) {
                    Some(part) => furthest = furthest.max(part.beat),
                    None if *ended => {}
                    None => return None,
                }
            }
            if furthest == wanted {
                return Some(wanted);
            }
            wanted = furthest;
        }
    }

    /// What was counted after the last beat, when all shards have ended: one last sample.
    pub fn rest(&mut self) -> Option<Vec<Row>> {
        let rows = self.sample(u64::MAX)?;
        rows.iter().any(|row| row.count > 0 || row.errors > 0).then_some(rows)
    }

    fn sample(&mut self, beat: u64) -> Option<Vec<Row>> {
        let mut frame: Option<(Nanos, Nanos, u32)> = None;
        let mut merged: BTreeMap<Key, SampleFigures> = BTreeMap::new();
        for (shard, waiting) in self.waiting.iter_mut().enumerate() {
            let mut own: BTreeMap<Key, SampleFigures> = BTreeMap::new();
            while waiting.front().is_some_and(|part| part.beat <= beat) {
                let Some(part) = waiting.pop_front() else {
                    break;
                };
                // The first shard says when a sample began and ended.
                if shard == 0 || frame.is_none() {
                    let before_ns = frame.map_or(0, |(_, interval_ns, _)| interval_ns);
                    frame = Some((part.end_ns, before_ns + part.interval_ns, part.phase));
                }
                for (key, figures) in part.figures {
                    let before = own.entry(key).or_default();
                    before.add(&figures);
                    before.level = figures.level;
                }
            }
            for (key, figures) in own {
                let is_highest = key.workload == 0 && self.highest.contains(&key.metric);
                let sum = merged.entry(key).or_default();
                sum.add(&figures);
                sum.level = match is_highest {
                    true => sum.level.max(figures.level),
                    false => sum.level + figures.level,
                };
            }
        }
        let (end_ns, interval_ns, phase) = frame?;
        let rows = merged.into_iter().map(|(key, figures)| {
            let mut row = Row {
                end_ns,
                interval_ns,
                phase,
                instance: key.instance,
                database: key.database,
                workload: key.workload,
                metric: key.metric,
                errors: figures.errors,
                bytes: figures.bytes,
                value: figures.level,
                ..Row::default()
            };
            row.set_latencies(&figures.latencies);
            row
        });
        Some(rows.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(shard: usize, beat: u64, interval_ns: Nanos, count: u64) -> SamplePart {
        let mut figures = SampleFigures { level: count as f64, ..SampleFigures::default() };
        (0..count).for_each(|_| figures.latencies.record(1_000));
        SamplePart {
            shard,
            beat,
            end_ns: beat * 100,
            interval_ns,
            phase: 2,
            figures: vec![(Key::new(shard as u32, 1, "database_read"), figures)],
        }
    }

    /// End, length and the counts of both shards.
    fn seen(samples: &[Vec<Row>]) -> Vec<(u64, u64, Vec<u64>)> {
        let each = samples.iter();
        each.map(|rows| {
            let counts = rows.iter().map(|row| row.count).collect();
            (rows[0].end_ns, rows[0].interval_ns, counts)
        })
        .collect()
    }

    #[test]
    fn a_sample_waits_for_every_shard_and_a_late_one_makes_it_longer() {
        let mut merge = SampleMerge::new(2);
        merge.add(part(0, 1, 100, 3));
        assert!(merge.take().is_empty(), "the second shard has not closed it");
        merge.add(part(1, 1, 101, 4));
        assert_eq!(seen(&merge.take()), [(100, 100, vec![3, 4])]);
        merge.add(part(0, 2, 100, 1));
        merge.add(part(0, 3, 100, 2));
        merge.add(part(1, 3, 199, 9));
        assert_eq!(seen(&merge.take()), [(300, 200, vec![3, 9])]);
        merge.add(part(0, 4, 100, 1));
        merge.end(1);
        assert_eq!(
            seen(&merge.take()),
            [(400, 100, vec![1])],
            "one that has ended is not waited for"
        );
        merge.add(part(1, 5, 40, 7));
        assert_eq!(merge.rest().map(|rows| rows[0].count), Some(7));
    }
}
