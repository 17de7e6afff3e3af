//! A disk in memory, on a virtual clock or a real one, that can lose power. The fault model in full
//! is in `docs/reference/fault-model.md`.
//!
//! What is stable: a write submitted as durable, when complete; any other write and any length,
//! when a later sync of the file is complete; a name, when a later sync of its directory is
//! complete. Everything else is at risk: after [`MemoryDisk::power_cut`] nothing completes any
//! more, and [`MemoryDisk::crash_image`] makes the disk found afterwards, in which each change at
//! risk has survived, is gone, or is torn. Images can be made at any moment, also while the disk
//! goes on, and as many as wanted from one moment.
//!
//! Operations take effect when they complete, in the order of completion; a sync covers what had
//! completed when it was submitted, and no more. The caller's randomness decides everything that is
//! left to chance.

mod access;
mod ahead;
mod chunks;
mod coded;
mod codes;
mod crash;
mod faults;
mod faulty;
mod filesystem;
mod generated;
mod inode;
mod latency;
mod names;
mod options;
mod power;
mod queue;
mod state;
mod trace;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

pub use crash::Loss;
pub use faults::{Effect, FaultRule, Filter};
pub use latency::{Latency, LatencyPlan, LatencyRule};
pub use options::{Coding, MemoryOptions, Tracking};
pub use power::AfterLook;
pub use trace::{Stage, TraceEntry};

use crate::arena::Arena;
use crate::{Buffer, Clock, Disk, DiskFacts, Nanos, Operation, Outcome, Random};
use power::Power;
use state::{PowerAfter, State};

/// How long a real-time wait lasts at most when nothing is due: hung operations never wake anybody.
const WAIT_NS_MAX: Nanos = 50_000_000;

/// See the module text.
///
/// ```
/// use plimsoll_io::*;
/// use std::rc::Rc;
///
/// let clock = Rc::new(Clock::simulated());
/// let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::default());
/// disk.load("log", &[0; 1024]);
/// let (executor, files) = (Executor::new(clock, disk.clone()), Files::new(disk.clone()));
///
/// disk.power_cut_at(250_000); // each operation takes 100 us: one write is acknowledged, the second is not
/// executor.handle().spawn(async move {
///     let label = Context::of(Purpose::LogWrite);
///     let log = files.open("log", OpenMode::Write, label).await?;
///     for sector in 0..2 {
///         let buffer = Buffer::copy_of(&[7; 512]);
///         log.write(sector * 512, buffer, Durability::Durable, label).await?;
///     }
///     Ok::<(), DiskError>(())
/// });
/// let watched = disk.clone();
/// executor.run(async move { watched.power_lost().await }).unwrap();
///
/// let found = disk.crash_image(Loss::Drawn, &mut Random::from_seed(2));
/// assert_eq!(found.bytes("log").unwrap()[..512], [7; 512], "acknowledged as durable, so it is there");
/// ```
pub struct MemoryDisk {
    clock: Rc<Clock>,
    options: MemoryOptions,
    state: RefCell<State>,
    power: Power,
    arena: Rc<Arena>,
}

impl MemoryDisk {
    /// An empty disk holding only the root directory. `random` decides latencies and faults.
    pub fn new(clock: Rc<Clock>, random: Random, options: MemoryOptions) -> Rc<Self> {
        Self::with_arena(clock, random, options, Rc::default())
    }

    fn with_arena(
        clock: Rc<Clock>,
        random: Random,
        options: MemoryOptions,
        arena: Rc<Arena>,
    ) -> Rc<Self> {
        let state = State::new(&random, &options);
        Rc::new(Self { clock, options, state: RefCell::new(state), power: Power::default(), arena })
    }

    /// The clock the disk runs on; a crash image has a new one.
    pub fn clock(&self) -> &Rc<Clock> {
        &self.clock
    }
}

/// Ends a real-time wait.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Disk for MemoryDisk {
    fn submit(&self, operation: Operation) {
        let now = self.clock.now();
        self.watch_power(now);
        if self.is_off() {
            return;
        }
        let power = self.state.borrow_mut().enqueue(operation, now);
        if power == PowerAfter::Off {
            self.power_fails();
        }
    }

    fn reap(&self) -> usize {
        let now = self.clock.now();
        self.watch_power(now);
        // What is submitted by a completion is left for the next reap, or a chain of them could go
        // on for ever.
        let until = self.state.borrow().queue.next_sequence();
        let mut delivered = 0;
        while !self.is_off() {
            let mut state = self.state.borrow_mut();
            let Some(mut queued) = state.queue.pop_due(now, until) else {
                break;
            };
            let (result, power) = state.complete(&mut queued, now);
            drop(state);
            if power == PowerAfter::Off {
                self.power_fails();
                if self.is_off() {
                    break;
                }
            }
            (queued.completion)(Outcome {
                result,
                submitted: queued.submitted,
                completed: self.clock.now(),
            });
            delivered += 1;
        }
        delivered
    }

    fn wait(&self, deadline: Option<Nanos>) {
        let now = self.clock.now();
        let wake = [deadline, self.next_event()].into_iter().flatten().min();
        let until = wake.unwrap_or(now + WAIT_NS_MAX);
        std::thread::park_timeout(Duration::from_nanos(until.saturating_sub(now)));
    }

    fn waker(&self) -> Waker {
        match self.clock.is_virtual() {
            true => Waker::noop().clone(),
            false => Waker::from(Arc::new(Unpark(std::thread::current()))),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.is_off() {
            return None;
        }
        let due = self.state.borrow().queue.next_due();
        [due, self.power.cut_at.get()].into_iter().flatten().min()
    }

    fn in_flight(&self) -> usize {
        if self.is_off() {
            return 0;
        }
        self.state.borrow().queue.len()
    }

    /// Lent and taken back as by a real disk, so that measuring on a RAM disk does not measure the
    /// program's allocator.
    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.arena.lend_any(length_bytes, drop)
    }

    fn facts(&self) -> DiskFacts {
        DiskFacts {
            method: "memory".to_owned(),
            remarks: vec![
                "the disk is simulated in memory: its figures say nothing about hardware"
                    .to_owned(),
            ],
            choices: Vec::new(),
        }
    }
}
