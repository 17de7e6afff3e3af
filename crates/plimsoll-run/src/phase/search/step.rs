//! One rate or number of sessions tried: batches of figures until it is clear whether the criteria
//! hold at it.
//!
//! The criteria come from the plan and only steer the search; whether the storage passes is judged
//! elsewhere, from the phase that is measured afterwards.

use std::collections::BTreeMap;

use plimsoll_io::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};
use plimsoll_measure::{Histogram, metric_code};

use super::estimate::{Estimate, ratio};
use super::tries::GENERATOR;
use crate::busy::BusyShare;
use crate::outcome::{Decision, Latency, SearchFigure, SearchStep};
use crate::recorder::{Key, StepFigures};
use crate::spec::{CriterionSpec, SearchGoal, SearchSpec, StatisticSpec};
use crate::step::{StepCounts, StepWorkload, places_of};

/// A step is divided into so many batches.
pub const BATCHES: usize = 10;
/// An unclear step goes on for this many times its length.
pub const EXTENSIONS_MAX: usize = 3;
/// A step may end as failed after so many batches.
pub const BATCHES_MIN: usize = 3;
/// A generator that is busier may itself be what is slow.
const EXECUTOR_BUSY_MAX: f64 = 0.9;
/// The generator's own delay may be this share of the smallest limit.
const LAG_SHARE_MAX: f64 = 0.05;
/// What exceeds a limit so many times is the storage's doing, whatever the generator was busy with.
const NOT_EXCUSED_FACTOR: f64 = 4.0;
/// Completed transactions may fall short of those that arrived by so much, besides chance.
const SHORTFALL_PERCENT: f64 = 2.0;

/// What has been seen of a rate, or of a number of sessions, so far.
pub struct Tally<'a> {
    spec: &'a SearchSpec,
    /// The metric of each criterion.
    codes: Vec<u32>,
    workload: StepWorkload,
    /// Arrivals per second, or sessions, as the search looks for.
    level: f64,
    start_ns: Nanos,
    counts: StepCounts,
    batches_count: usize,
    busy: BusyShare,
    pool_waits: u64,
    reads: Histogram,
    log_writes: Histogram,
    response: Histogram,
    lag: Histogram,
    /// For each criterion and place, its batches.
    batches: BTreeMap<(usize, Key), Vec<(f64, f64)>>,
    /// The same against limits so far beyond that no generator excuses them, added up.
    far: BTreeMap<(usize, Key), (f64, f64)>,
}

impl<'a> Tally<'a> {
    /// Nothing seen of what begins to be measured now.
    pub fn new(
        spec: &'a SearchSpec,
        codes: Vec<u32>,
        workload: StepWorkload,
        level: f64,
        start_ns: Nanos,
    ) -> Self {
        Tally {
            spec,
            codes,
            workload,
            level,
            start_ns,
            counts: StepCounts::default(),
            batches_count: 0,
            busy: BusyShare::default(),
            pool_waits: 0,
            reads: Histogram::new(),
            log_writes: Histogram::new(),
            response: Histogram::new(),
            lag: Histogram::new(),
            batches: BTreeMap::new(),
            far: BTreeMap::new(),
        }
    }

    /// Adds a batch.
    pub fn add(&mut self, figures: &StepFigures, seconds: f64, executor_busy: f64) {
        self.counts = self.counts.and(StepCounts::of(figures, &self.workload));
        self.batches_count += 1;
        self.busy.add(executor_busy, seconds);
        for (metric, into) in
            [("database_read", &mut self.reads), ("log_write", &mut self.log_writes)]
        {
            places_of(figures, metric_code(metric), &self.workload.instances)
                .for_each(|(_, latencies)| into.merge(latencies));
        }
        let own = |metric: &str| {
            let code = metric_code(metric);
            let workload = self.workload.number as u32 + 1;
            figures
                .iter()
                .filter(move |(key, _)| key.workload == workload && Some(key.metric) == code)
                .map(|(_, latencies)| latencies)
        };
        let done = figures.iter().filter(|(key, _)| self.workload.is_done(key));
        done.for_each(|(_, latencies)| self.response.merge(latencies));
        own("arrival_lag").for_each(|latencies| self.lag.merge(latencies));
        self.pool_waits += own("pool_wait").map(Histogram::count).sum::<u64>();
        for (number, criterion) in self.spec.criteria.iter().enumerate() {
            let code = Some(self.codes[number]);
            for (key, latencies) in places_of(figures, code, &self.workload.instances) {
                let batch = |limit| batch_of(criterion.statistic, limit, latencies, seconds);
                self.batches.entry((number, *key)).or_default().push(batch(criterion.limit));
                let (part, whole) = batch(criterion.limit * NOT_EXCUSED_FACTOR);
                let far = self.far.entry((number, *key)).or_default();
                *far = (far.0 + part, far.1 + whole);
            }
            if criterion.statistic == StatisticSpec::PerS {
                self.add_silence(number, figures, seconds);
            }
        }
    }

    /// Events that did not happen count as well: a batch without any is a batch of none.
    fn add_silence(&mut self, number: usize, figures: &StepFigures, seconds: f64) {
        for instance in &self.workload.instances {
            let metric = self.codes[number];
            let key = Key { instance: *instance, database: 0, workload: 0, metric };
            if !figures.contains_key(&key) {
                self.batches.entry((number, key)).or_default().push((0.0, seconds));
            }
        }
    }

    /// The step as it stands.
    pub fn step(&self, end_ns: Nanos) -> SearchStep {
        let seconds = (end_ns - self.start_ns) as f64 / NANOS_PER_SECOND as f64;
        let per_s = |count: u64| count as f64 / seconds;
        let figures: Vec<SearchFigure> = self
            .batches
            .iter()
            .filter_map(|((number, key), batches)| {
                Some(figure(&self.spec.criteria[*number], *key, ratio(batches)?))
            })
            .collect();
        let executor_busy = self.busy.share();
        let lag = Latency::of(&self.lag);
        let latencies = self.spec.criteria.iter();
        let limits = latencies
            .filter(|criterion| criterion.statistic != StatisticSpec::PerS)
            .map(|criterion| criterion.limit);
        let generator_limited = executor_busy > EXECUTOR_BUSY_MAX
            || lag.p99 > LAG_SHARE_MAX * limits.fold(f64::INFINITY, f64::min);
        let (decision, limit) = self.decide(&figures, seconds);
        let limited_by = match decision {
            Decision::Passed => None,
            _ if generator_limited && !self.is_far_beyond() => Some(GENERATOR.to_owned()),
            _ => limit,
        };
        let done_per_s = per_s(self.counts.transactions);
        let (sessions, transactions_per_s) = match self.spec.search {
            SearchGoal::Max => (None, self.level),
            SearchGoal::MaxSessions => (Some(self.level as u32), done_per_s),
        };
        SearchStep {
            sessions,
            transactions_per_s,
            done_per_s,
            start_ns: self.start_ns,
            end_ns,
            seconds,
            batches_count: self.batches_count,
            database_iops: per_s(self.counts.reads + self.counts.writes),
            database_reads_per_s: per_s(self.counts.reads),
            database_writes_per_s: per_s(self.counts.writes),
            log_writes_per_s: per_s(self.log_writes.count()),
            database_read_ms: Latency::of(&self.reads),
            log_write_ms: Latency::of(&self.log_writes),
            response_ms: Latency::of(&self.response),
            executor_busy,
            arrival_lag_ms_p99: lag.p99,
            pool_waits_count: self.pool_waits,
            generator_limited,
            decision,
            limited_by,
            figures,
        }
    }

    /// Whether some place is so many times beyond a limit that the storage is at it, however late
    /// the generator was.
    fn is_far_beyond(&self) -> bool {
        self.far.iter().any(|((number, _), (part, whole))| {
            let criterion = &self.spec.criteria[*number];
            let most =
                share_above(criterion.statistic).unwrap_or(criterion.limit * NOT_EXCUSED_FACTOR);
            criterion.limit > 0.0 && *whole > 0.0 && part / whole >= most
        })
    }

    /// Why so many arrivals were not all served, if they were not.
    fn falls_short_of(&self, offered: f64) -> Option<&'static str> {
        // A tenth of the arrivals held up is no chance event any more.
        if self.pool_waits as f64 > 0.1 * offered {
            return Some("sessions_max");
        }
        // Three standard deviations of a Poisson count.
        let share = self.spec.shortfall_percent.unwrap_or(SHORTFALL_PERCENT) / 100.0;
        let shortfall_max = share * offered + 3.0 * offered.sqrt();
        (offered - self.counts.transactions as f64 > shortfall_max).then_some("throughput")
    }

    fn decide(&self, figures: &[SearchFigure], seconds: f64) -> (Decision, Option<String>) {
        let of = |decision: Decision| {
            let found = figures.iter().filter(move |figure| figure.decision == decision);
            found
                .max_by(|left, right| {
                    (left.measured / left.limit).total_cmp(&(right.measured / right.limit))
                })
                .map(|figure| figure.criterion.clone())
        };
        if let Some(name) = of(Decision::Failed) {
            return (Decision::Failed, Some(name));
        }
        if self.spec.search == SearchGoal::Max
            && let Some(limit) = self.falls_short_of(self.level * seconds)
        {
            return (Decision::Failed, Some(limit.to_owned()));
        }
        match of(Decision::Unsure) {
            _ if self.counts.transactions == 0 => {
                (Decision::Unsure, Some("nothing measured".to_owned()))
            }
            Some(name) => (Decision::Unsure, Some(name)),
            None => (Decision::Passed, None),
        }
    }
}

/// The share of operations that may lie above a limit on a percentile.
fn share_above(statistic: StatisticSpec) -> Option<f64> {
    match statistic {
        StatisticSpec::Mean | StatisticSpec::PerS => None,
        StatisticSpec::P95 => Some(0.05),
        StatisticSpec::P99 => Some(0.01),
    }
}

/// What a batch adds to a criterion: (time, operations), (operations above the limit, operations)
/// or (events, seconds).
fn batch_of(
    statistic: StatisticSpec,
    limit: f64,
    latencies: &Histogram,
    seconds: f64,
) -> (f64, f64) {
    let count = latencies.count() as f64;
    match statistic {
        StatisticSpec::Mean => (latencies.sum_ns() as f64 / NANOS_PER_MILLISECOND as f64, count),
        StatisticSpec::P95 | StatisticSpec::P99 => {
            let limit_ns = (limit * NANOS_PER_MILLISECOND as f64) as Nanos;
            let above = latencies.buckets().filter(|(upper_ns, _)| *upper_ns > limit_ns);
            (above.map(|(_, count)| count).sum::<u64>() as f64, count)
        }
        StatisticSpec::PerS => (count, seconds),
    }
}

fn figure(criterion: &CriterionSpec, key: Key, estimate: Estimate) -> SearchFigure {
    let limit = share_above(criterion.statistic).unwrap_or(criterion.limit);
    let finite = |value: f64| value.is_finite().then_some(value);
    SearchFigure {
        criterion: criterion.name.clone(),
        instance: key.instance,
        database: key.database,
        measured: estimate.measured,
        low: finite(estimate.low),
        high: finite(estimate.high),
        limit,
        decision: if estimate.high <= limit {
            Decision::Passed
        } else if estimate.low > limit {
            Decision::Failed
        } else {
            Decision::Unsure
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn search(statistic: &str) -> SearchSpec {
        let criterion = json!({
            "name": "reads", "metric": "database_read", "statistic": statistic, "limit": 20.0
        });
        let spec = json!({
            "search": "max", "sessions": 1, "shared": false, "spacing": "poisson",
            "sessions_max": 16, "step_s": 10.0, "settle_s": 1.0, "tolerance_percent": 1.0,
            "criteria": [criterion]
        });
        serde_json::from_value(spec).expect("a search")
    }

    /// A rate at which every read takes so long, with a generator that is always at work.
    fn first_limit(statistic: &str, read_ms: u64) -> Option<String> {
        let spec = search(statistic);
        let workload = StepWorkload { number: 0, instances: vec![0], operations: Vec::new() };
        let codes = vec![metric_code("database_read").expect("a metric")];
        let mut tally = Tally::new(&spec, codes, workload, 100.0, 0);
        let mut reads = Histogram::new();
        (0..100).for_each(|_| reads.record(read_ms * NANOS_PER_MILLISECOND));
        for _ in 0..BATCHES {
            let figures = StepFigures::from([(Key::new(0, 1, "database_read"), reads.clone())]);
            tally.add(&figures, 1.0, 1.0);
        }
        tally.step(10 * NANOS_PER_SECOND).limited_by
    }

    /// Why: a disk of 300 reads a second was said to be limited by the load generator, whose thread
    /// the kernel had held; reads took 149 ms.
    #[test]
    fn a_busy_generator_excuses_no_fourfold_failure() {
        for statistic in ["mean", "p95", "p99"] {
            assert_eq!(first_limit(statistic, 30).as_deref(), Some("generator"));
            assert_eq!(first_limit(statistic, 79).as_deref(), Some("generator"));
            assert_eq!(first_limit(statistic, 149).as_deref(), Some("reads"));
        }
    }
}
