//! A decorator that makes a disk slower than it is: at most so many transfers and bytes per second.
//!
//! A schedule hands out start times: each read or write may start when the one before has used up
//! its share, its share being the longer of one operation at the operation rate and its bytes at
//! the byte rate. What may not start yet is held here in order of arrival. Unused time is saved up
//! to `burst_ns` and no longer. Other operations pass at once, but a close stays behind the
//! transfers held before it. Latency counts from submission here, so the wait is part of it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::{Action, Buffer, Clock, Disk, DiskFacts, NANOS_PER_SECOND, Nanos, Operation, Outcome};

/// What a throttled disk may do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThrottleLimits {
    /// Reads and writes per second; `None` is unlimited.
    pub operations_per_second: Option<f64>,
    /// Bytes read and written per second; `None` is unlimited.
    pub bytes_per_second: Option<f64>,
    /// How much unused time may be made up for afterwards.
    pub burst_ns: Nanos,
}

impl ThrottleLimits {
    /// The share of time one transfer uses up.
    fn share_ns(&self, bytes: u64) -> f64 {
        let per = |rate: Option<f64>, amount: f64| rate.map_or(0.0, |rate| amount / rate);
        let operation = per(self.operations_per_second, 1.0);
        let transfer = per(self.bytes_per_second, bytes as f64);
        operation.max(transfer) * NANOS_PER_SECOND as f64
    }
}

/// A disk behind a limit.
pub struct Throttled<D> {
    disk: D,
    clock: Rc<Clock>,
    limits: ThrottleLimits,
    gate: RefCell<Gate>,
}

#[derive(Default)]
struct Gate {
    /// When the next transfer may start, with the fraction of a nanosecond so that rates are exact
    /// in the long run.
    free_at_ns: f64,
    held: VecDeque<(Nanos, Operation)>,
}

impl<D: Disk> Throttled<D> {
    /// Limits `disk`, which runs on `clock`.
    ///
    /// # Panics
    /// When a rate is not above zero.
    pub fn new(disk: D, clock: Rc<Clock>, limits: ThrottleLimits) -> Self {
        let rates = [limits.operations_per_second, limits.bytes_per_second];
        assert!(
            rates.into_iter().flatten().all(|rate| rate > 0.0),
            "a rate of zero would never let anything start"
        );
        Self { disk, clock, limits, gate: RefCell::default() }
    }

    /// The disk below.
    pub fn inner(&self) -> &D {
        &self.disk
    }

    /// When an operation may start; `None` lets it pass at once.
    fn start_of(&self, action: &Action, now: Nanos) -> Option<Nanos> {
        let mut gate = self.gate.borrow_mut();
        match action {
            Action::Read { buffer, .. } | Action::Write { buffer, .. } => {
                let earliest = now.saturating_sub(self.limits.burst_ns) as f64;
                let start = gate.free_at_ns.max(earliest);
                gate.free_at_ns = start + self.limits.share_ns(buffer.len() as u64);
                let start = start.ceil() as Nanos;
                (start > now || !gate.held.is_empty()).then_some(start)
            }
            Action::Close { .. } => gate.held.back().map(|(start, _)| *start),
            _ => None,
        }
    }

    /// Hands on what may start now.
    fn release(&self) {
        loop {
            let mut gate = self.gate.borrow_mut();
            let Some((start, _)) = gate.held.front() else {
                return;
            };
            if *start > self.clock.now() {
                return;
            }
            let (_, operation) = gate.held.pop_front().expect("the front was just seen");
            drop(gate);
            self.disk.submit(operation);
        }
    }

    fn next_start(&self) -> Option<Nanos> {
        self.gate.borrow().held.front().map(|(start, _)| *start)
    }
}

fn earlier(left: Option<Nanos>, right: Option<Nanos>) -> Option<Nanos> {
    [left, right].into_iter().flatten().min()
}

impl<D: Disk> Disk for Throttled<D> {
    fn submit(&self, operation: Operation) {
        let now = self.clock.now();
        let Some(start) = self.start_of(&operation.action, now) else {
            self.disk.submit(operation);
            return;
        };
        let completion = operation.completion;
        let completion = Box::new(move |outcome: Outcome| {
            completion(Outcome { submitted: now, ..outcome });
        });
        let held = Operation { completion, ..operation };
        self.gate.borrow_mut().held.push_back((start, held));
    }

    fn reap(&self) -> usize {
        self.release();
        self.disk.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.disk.wait(earlier(deadline, self.next_start()));
    }

    fn waker(&self) -> std::task::Waker {
        self.disk.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        earlier(self.disk.next_event(), self.next_start())
    }

    fn in_flight(&self) -> usize {
        self.gate.borrow().held.len() + self.disk.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        let mut facts = self.disk.facts();
        let limit = |rate: Option<f64>, unit: &str| rate.map(|rate| format!("{rate} {unit}/s"));
        let limits: Vec<String> = [
            limit(self.limits.operations_per_second, "operations"),
            limit(self.limits.bytes_per_second, "bytes"),
        ]
        .into_iter()
        .flatten()
        .collect();
        facts.remarks.push(format!("throttled on purpose to {}", limits.join(" and ")));
        facts
    }

    fn inside_kernel_ns(&self) -> Nanos {
        self.disk.inside_kernel_ns()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }
}
