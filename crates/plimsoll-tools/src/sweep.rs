//! One point of a sweep over storage: so many reads or writes of one size at once, over a part of
//! one file, for a while.
//!
//! What a model of a device is fitted to. A sweep runs on whatever disk it is given: on real
//! storage for a calibration, on a modelled array to see whether the fit finds what was put in.
//! Nothing is fitted or judged here.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_io::{
    Caching, Clock, Context, Disk, Durability, Executor, File, Files, Handle, NANOS_PER_SECOND,
    Nanos, OpenMode, Purpose, Random, RealDisk, RealDiskOptions, StopSignal,
};
use plimsoll_measure::Histogram;
use serde::{Deserialize, Serialize};

use crate::error::ToolError;

/// Shares of the time for which counts are told apart, to see a cache fill.
const SLICES: usize = 10;
/// The smallest unit in which a storage looks for what it has already, and what makes it new.
const UNIT_BYTES: usize = 512;
const STAMP_BYTES: usize = 16;
/// About what a transaction of the engine takes of a processor together with its I/O, and as long a
/// rest.
const WORK_NS: Nanos = 40_000;
const REST_NS: Nanos = 40_000;

/// What a point does with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepAction {
    /// Makes the file and writes all of it once, in order; lasts as long as it takes.
    Fill,
    /// Reads.
    Read,
    /// Writes what a file holds with something else.
    Write,
}

/// One point.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepPoint {
    /// The file; made by `fill`, there already for the others.
    pub path: PathBuf,
    /// What is done.
    pub action: SweepAction,
    /// Size of a transfer.
    pub block_bytes: u64,
    /// Transfers under way at once.
    pub depth: u32,
    /// How much of the file is used, from its beginning.
    pub span_bytes: u64,
    /// In order, or anywhere.
    pub sequential: bool,
    /// Whether a write must be on stable storage when it completes.
    pub durable: bool,
    /// For how long.
    pub seconds: f64,
    /// Decides places and content.
    pub seed: u64,
    /// Threads that keep processors at work meanwhile, as an engine does.
    #[serde(default)]
    pub working_threads: u32,
}

/// What a point measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SweepFigures {
    /// Transfers.
    pub count: u64,
    /// How long it lasted.
    pub seconds: f64,
    /// Transfers per second.
    pub per_second: f64,
    /// Mean latency.
    pub latency_ms_mean: f64,
    /// Median latency.
    pub latency_ms_p50: f64,
    /// 99th percentile.
    pub latency_ms_p99: f64,
    /// Transfers per second in each tenth of the time.
    pub per_second_of_tenths: Vec<f64>,
}

/// Measures a point on real storage; blocks the calling thread.
///
/// # Errors
/// What the disk reports, or the wish to stop.
pub fn sweep_live(point: &SweepPoint, stop: &StopSignal) -> Result<SweepFigures, ToolError> {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone())?;
    beside_working_threads(point.working_threads, || sweep_on(clock, disk, point, stop))
}

/// Does something while so many threads keep processors at work as an engine's transactions do.
#[expect(
    clippy::disallowed_methods,
    reason = "no tasks of an executor: threads that are nothing but work for processors"
)]
fn beside_working_threads<T>(count: u32, something: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let clock = Clock::real();
                while !is_over.load(Ordering::Relaxed) {
                    let rests_at = clock.now() + WORK_NS;
                    while clock.now() < rests_at {
                        std::hint::spin_loop();
                    }
                    std::thread::sleep(Duration::from_nanos(REST_NS));
                }
            });
        }
        let found = something();
        is_over.store(true, Ordering::Relaxed);
        found
    })
}

/// Measures a point on a disk.
///
/// # Errors
/// What the disk reports, or the wish to stop.
pub fn sweep_on(
    clock: Rc<Clock>,
    disk: Rc<dyn Disk>,
    point: &SweepPoint,
    stop: &StopSignal,
) -> Result<SweepFigures, ToolError> {
    if point.block_bytes == 0 || point.depth == 0 || point.span_bytes < point.block_bytes {
        return Err(ToolError::Spec(
            "a sweep needs a block, a depth and a span of at least a block".into(),
        ));
    }
    let executor = Executor::new(clock.clone(), disk.clone());
    let files = Files::new(disk);
    let task = measure(files, executor.handle(), point.clone(), stop.clone());
    executor.run(task)?
}

/// What all workers of a point share.
struct Shared {
    point: SweepPoint,
    file: File,
    handle: Handle,
    stop: StopSignal,
    began: Nanos,
    deadline: Nanos,
    next_block: Cell<u64>,
    latencies: RefCell<Histogram>,
    tenths: RefCell<[u64; SLICES]>,
}

async fn measure(
    files: Files,
    handle: Handle,
    point: SweepPoint,
    stop: StopSignal,
) -> Result<SweepFigures, ToolError> {
    let context = Context::of(Purpose::Prepare);
    let mode = match point.action {
        SweepAction::Fill => OpenMode::Create,
        SweepAction::Read => OpenMode::Read,
        SweepAction::Write => OpenMode::Write,
    };
    let file = files.open(&point.path, mode, context).await?;
    if point.action == SweepAction::Fill {
        file.extend(point.span_bytes, context).await?;
    }
    let began = handle.now();
    let deadline = match point.action {
        SweepAction::Fill => Nanos::MAX,
        _ => began + (point.seconds * NANOS_PER_SECOND as f64) as Nanos,
    };
    let shared = Rc::new(Shared {
        point,
        file: file.clone(),
        handle: handle.clone(),
        stop: stop.clone(),
        began,
        deadline,
        next_block: Cell::new(0),
        latencies: RefCell::default(),
        tenths: RefCell::default(),
    });
    let workers: Vec<_> =
        (0..shared.point.depth).map(|number| handle.spawn(shared.clone().work(number))).collect();
    for worker in workers {
        worker.await?;
    }
    let ended = handle.now();
    if shared.point.action == SweepAction::Fill {
        file.sync(context).await?;
    }
    file.close(context).await?;
    if stop.is_wanted() {
        return Err(ToolError::Stopped);
    }
    Ok(shared.figures(ended))
}

impl Shared {
    async fn work(self: Rc<Self>, number: u32) -> Result<(), ToolError> {
        let mut random = Random::from_seed(self.point.seed).child(&format!("worker {number}"));
        let mut buffer = self.file.allocate(self.point.block_bytes as usize);
        random.fill(&mut buffer);
        while let Some(block) = self.next(&mut random) {
            let offset = block * self.point.block_bytes;
            let started = self.handle.now();
            buffer = match self.point.action {
                SweepAction::Read => {
                    let context = Context::of(Purpose::DatabaseRead);
                    self.file.read(offset, buffer, context).await?
                }
                _ => {
                    self.renew(&mut random, &mut buffer);
                    let durability =
                        if self.point.durable { Durability::Durable } else { Durability::Volatile };
                    let context = Context::of(Purpose::DatabaseWrite);
                    self.file.write(offset, buffer, durability, context).await?
                }
            };
            self.count(started);
        }
        Ok(())
    }

    /// Makes every unit that a storage could tell apart different from all others, so that it
    /// cannot save itself the work. What is filled is new to the last byte; what is written under
    /// measurement only as far as it costs no time.
    fn renew(&self, random: &mut Random, buffer: &mut [u8]) {
        match self.point.action {
            SweepAction::Fill => random.fill(buffer),
            _ => buffer.chunks_mut(UNIT_BYTES).for_each(|unit| {
                let stamp_bytes = STAMP_BYTES.min(unit.len());
                random.fill(&mut unit[..stamp_bytes]);
            }),
        }
    }

    /// The next block to transfer; `None` when the point is over.
    fn next(&self, random: &mut Random) -> Option<u64> {
        let blocks = self.point.span_bytes / self.point.block_bytes;
        if self.stop.is_wanted() || self.handle.now() >= self.deadline {
            return None;
        }
        let in_order = self.point.sequential || self.point.action == SweepAction::Fill;
        if !in_order {
            return Some(random.below(blocks));
        }
        let next = self.next_block.get();
        self.next_block.set(next + 1);
        match self.point.action {
            SweepAction::Fill => (next < blocks).then_some(next),
            _ => Some(next % blocks),
        }
    }

    fn count(&self, started: Nanos) {
        let now = self.handle.now();
        self.latencies.borrow_mut().record(now - started);
        let whole = (self.deadline - self.began).max(1);
        let tenth = ((now - self.began) as u128 * SLICES as u128 / u128::from(whole)) as usize;
        if let Some(count) = self.tenths.borrow_mut().get_mut(tenth) {
            *count += 1;
        }
    }

    fn figures(&self, ended: Nanos) -> SweepFigures {
        let seconds = (ended - self.began).max(1) as f64 / NANOS_PER_SECOND as f64;
        let latencies = self.latencies.borrow();
        let milliseconds = |quantile| latencies.quantile_ns(quantile) as f64 / 1e6;
        let slice_s = self.point.seconds / SLICES as f64;
        let tenths = self.tenths.borrow();
        SweepFigures {
            count: latencies.count(),
            seconds,
            per_second: latencies.count() as f64 / seconds,
            latency_ms_mean: latencies.mean_ns() / 1e6,
            latency_ms_p50: milliseconds(0.50),
            latency_ms_p99: milliseconds(0.99),
            per_second_of_tenths: match self.point.action {
                SweepAction::Fill => Vec::new(),
                _ => tenths.iter().map(|count| *count as f64 / slice_s).collect(),
            },
        }
    }
}
