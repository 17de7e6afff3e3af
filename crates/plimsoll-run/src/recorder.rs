//! Where everything that is timed is counted: per instance, database, workload and metric, once for
//! the sample that is running and once for the whole phase.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use plimsoll_io::{Nanos, OperationKind, Purpose, SeriesKey};
use plimsoll_measure::{Histogram, METRICS, Metric, Row, metric_code};

/// What a figure belongs to. `instance` is a position in the plan; `database` and `workload` count
/// from 1, 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Position of the instance.
    pub instance: u32,
    /// Database of the instance.
    pub database: u32,
    /// Workload.
    pub workload: u32,
    /// Position in the list of metrics.
    pub metric: u32,
}

impl Key {
    /// A key without workload.
    ///
    /// # Panics
    /// When the dictionary has no such metric: names are constants of this crate.
    pub fn new(instance: u32, database: u32, metric: &str) -> Key {
        Key {
            instance,
            database,
            workload: 0,
            metric: metric_code(metric).expect("the metric is in the dictionary"),
        }
    }

    /// The same for a workload.
    pub fn of_workload(self, workload: u32) -> Key {
        Key { workload, ..self }
    }
}

/// The metric that operations of a kind and purpose count for.
pub fn key_of(series: &SeriesKey) -> Key {
    let metric = match series.kind {
        // How little recovery writes is one of its published figures.
        OperationKind::Write if series.purpose == Purpose::Redo => "redo_write",
        OperationKind::Write if series.purpose == Purpose::Backup => "backup_write",
        OperationKind::Read | OperationKind::Write => series.purpose.name(),
        OperationKind::SyncFile | OperationKind::SyncDirectory => "sync",
        _ => "metadata",
    };
    Key::new(u32::from(series.instance.0), u32::from(series.database), metric)
}

#[derive(Default)]
struct Figures {
    latencies: Histogram,
    errors: u64,
    bytes: u64,
}

/// What one metric counted in a sample of one shard.
#[derive(Clone, Debug, Default)]
pub struct SampleFigures {
    /// The distribution.
    pub latencies: Histogram,
    /// How many failed.
    pub errors: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The level at the end.
    pub level: f64,
}

impl SampleFigures {
    /// Adds what was counted; the level stays.
    pub fn add(&mut self, other: &SampleFigures) {
        self.latencies.merge(&other.latencies);
        self.errors += other.errors;
        self.bytes += other.bytes;
    }
}

#[derive(Default)]
struct Slot {
    sample: Figures,
    phase: Figures,
    /// What was counted since the last mark, while marks are set.
    step: Figures,
    level: f64,
}

/// The distribution of one metric over one phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseFigures {
    /// Position of the phase.
    pub phase: u32,
    /// Position of the instance.
    pub instance: u32,
    /// Database of the instance, 0 for the log and the whole.
    pub database: u32,
    /// Workload, 0 for none.
    pub workload: u32,
    /// Name of the metric.
    pub metric: &'static str,
    /// How many.
    pub count: u64,
    /// How many failed.
    pub errors: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Exact sum.
    pub latency_ns_sum: u64,
    /// Exact minimum.
    pub latency_ns_min: u64,
    /// Exact maximum.
    pub latency_ns_max: u64,
    /// Upper bound and count of every bucket that is not empty.
    pub buckets: Vec<(u64, u64)>,
    /// The distribution itself, so that those of several shards can be added.
    #[serde(skip)]
    pub latencies: Histogram,
}

impl PhaseFigures {
    /// What tells it from others.
    fn order(&self) -> (u32, u32, u32, u32, u32) {
        let code = metric_code(self.metric).unwrap_or(u32::MAX);
        (self.phase, self.instance, self.database, self.workload, code)
    }

    /// Those of several shards as one.
    pub fn merged(all: Vec<PhaseFigures>) -> Vec<PhaseFigures> {
        let mut merged: BTreeMap<_, PhaseFigures> = BTreeMap::new();
        for figures in all {
            match merged.entry((figures.order(), figures.metric)) {
                Entry::Vacant(place) => {
                    place.insert(figures);
                }
                Entry::Occupied(mut place) => place.get_mut().add(&figures),
            }
        }
        merged.into_values().collect()
    }

    fn add(&mut self, other: &PhaseFigures) {
        self.latencies.merge(&other.latencies);
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.describe();
    }

    fn describe(&mut self) {
        self.count = self.latencies.count();
        self.latency_ns_sum = self.latencies.sum_ns().min(u128::from(u64::MAX)) as u64;
        self.latency_ns_min = self.latencies.min_ns();
        self.latency_ns_max = self.latencies.max_ns();
        self.buckets = self.latencies.buckets().collect();
    }
}

/// See the module text.
#[derive(Default)]
pub struct Recorder {
    /// Metrics besides those of the dictionary; their codes follow on those.
    extra: Vec<Metric>,
    slots: RefCell<BTreeMap<Key, Slot>>,
    phase: Cell<u32>,
    sample_started: Cell<Nanos>,
    stepping: Cell<bool>,
}

/// What was counted between two marks.
pub type StepFigures = BTreeMap<Key, Histogram>;

impl Recorder {
    /// A recorder that knows these metrics besides those of the dictionary.
    pub fn with_metrics(extra: Vec<Metric>) -> Recorder {
        Recorder { extra, ..Recorder::default() }
    }

    /// The position of a metric among those of the dictionary and the further ones.
    pub fn code(&self, metric: &str) -> Option<u32> {
        metric_code(metric).or_else(|| {
            let position = self.extra.iter().position(|extra| extra.name == metric)?;
            Some((METRICS.len() + position) as u32)
        })
    }

    /// A key without workload, of any metric that this recorder knows.
    ///
    /// # Panics
    /// When it does not know the metric: a family names the metrics it uses.
    pub fn key(&self, instance: u32, database: u32, metric: &str) -> Key {
        let code = self.code(metric);
        Key {
            instance,
            database,
            workload: 0,
            metric: code.unwrap_or_else(|| panic!("no family has named the metric {metric}")),
        }
    }

    fn name_of(&self, code: u32) -> &'static str {
        let metric = METRICS.iter().chain(&self.extra).nth(code as usize);
        metric.expect("keys are made from names").name
    }

    /// Makes a row appear in every sample, also while nothing happens.
    pub fn expect(&self, key: Key) {
        self.slots.borrow_mut().entry(key).or_default();
    }

    /// Counts a completed operation.
    pub fn record(&self, key: Key, latency_ns: Nanos) {
        let mut slots = self.slots.borrow_mut();
        slots.entry(key).or_default().sample.latencies.record(latency_ns);
    }

    /// Counts a failed transfer.
    pub fn record_error(&self, key: Key) {
        self.slots.borrow_mut().entry(key).or_default().sample.errors += 1;
    }

    /// Counts an event without a duration.
    pub fn count(&self, key: Key, events: u64) {
        let mut slots = self.slots.borrow_mut();
        let latencies = &mut slots.entry(key).or_default().sample.latencies;
        (0..events).for_each(|_| latencies.record(0));
    }

    /// Adds a distribution measured elsewhere.
    pub fn merge(&self, key: Key, latencies: &Histogram, bytes: u64) {
        let mut slots = self.slots.borrow_mut();
        let figures = &mut slots.entry(key).or_default().sample;
        figures.latencies.merge(latencies);
        figures.bytes += bytes;
    }

    /// Sets a level.
    pub fn set_level(&self, key: Key, value: f64) {
        self.slots.borrow_mut().entry(key).or_default().level = value;
    }

    /// A level as it was last set.
    pub fn level(&self, key: Key) -> f64 {
        self.slots.borrow().get(&key).map_or(0.0, |slot| slot.level)
    }

    /// Closes the running sample and returns its rows.
    pub fn take_sample(&self, now: Nanos) -> Vec<Row> {
        let interval_ns = now - self.sample_started.replace(now);
        let phase = self.phase.get();
        let mut slots = self.slots.borrow_mut();
        slots
            .iter_mut()
            .map(|(key, slot)| {
                let mut row = Row {
                    end_ns: now,
                    interval_ns,
                    phase,
                    instance: key.instance,
                    database: key.database,
                    workload: key.workload,
                    metric: key.metric,
                    errors: slot.sample.errors,
                    bytes: slot.sample.bytes,
                    value: slot.level,
                    ..Row::default()
                };
                row.set_latencies(&slot.sample.latencies);
                slot.close_sample(self.stepping.get());
                row
            })
            .collect()
    }

    /// Closes the running sample of a shard and returns what it counted, for those who put the
    /// shards together.
    pub fn take_part(&self, now: Nanos) -> (Nanos, u32, Vec<(Key, SampleFigures)>) {
        let interval_ns = now - self.sample_started.replace(now);
        let mut slots = self.slots.borrow_mut();
        let figures = slots.iter_mut().map(|(key, slot)| {
            let figures = SampleFigures {
                latencies: slot.sample.latencies.clone(),
                errors: slot.sample.errors,
                bytes: slot.sample.bytes,
                level: slot.level,
            };
            slot.close_sample(self.stepping.get());
            (*key, figures)
        });
        (interval_ns, self.phase.get(), figures.collect())
    }

    /// Sets a mark and returns what closed samples have counted since the one before.
    pub fn mark_step(&self) -> StepFigures {
        self.stepping.set(true);
        let mut slots = self.slots.borrow_mut();
        let counted = slots.iter_mut().filter(|(_, slot)| slot.step.latencies.count() > 0);
        counted.map(|(key, slot)| (*key, std::mem::take(&mut slot.step).latencies)).collect()
    }

    /// Sets no more marks.
    pub fn end_steps(&self) {
        self.mark_step();
        self.stepping.set(false);
    }

    /// Begins a phase: the figures of the one before are returned, its last sample must have been
    /// taken.
    pub fn begin_phase(&self, phase: u32) -> Vec<PhaseFigures> {
        let before = self.phase.replace(phase);
        let mut slots = self.slots.borrow_mut();
        slots
            .iter_mut()
            .map(|(key, slot)| (key, std::mem::take(&mut slot.phase)))
            .filter(|(_, figures)| figures.latencies.count() > 0 || figures.errors > 0)
            .map(|(key, figures)| figures.report(*key, self.name_of(key.metric), before))
            .collect()
    }
}

impl Slot {
    fn close_sample(&mut self, stepping: bool) {
        if self.sample.latencies.count() > 0 {
            if stepping {
                self.step.latencies.merge(&self.sample.latencies);
            }
            self.phase.latencies.merge(&self.sample.latencies);
            self.sample.latencies.clear();
        }
        self.phase.errors += std::mem::take(&mut self.sample.errors);
        self.phase.bytes += std::mem::take(&mut self.sample.bytes);
    }
}

impl Figures {
    fn report(self, key: Key, metric: &'static str, phase: u32) -> PhaseFigures {
        let mut figures = PhaseFigures {
            phase,
            instance: key.instance,
            database: key.database,
            workload: key.workload,
            metric,
            count: 0,
            errors: self.errors,
            bytes: self.bytes,
            latency_ns_sum: 0,
            latency_ns_min: 0,
            latency_ns_max: 0,
            buckets: Vec::new(),
            latencies: self.latencies,
        };
        figures.describe();
        figures
    }
}
