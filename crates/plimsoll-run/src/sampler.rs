//! Closes a sample at a fixed beat and at every phase boundary, and adds the levels that no event
//! records: cache, queue, database length, how busy the load generator itself is. What the disk did
//! is taken from the recorded disk, the one place where disk latency is measured.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_io::{Disk, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, PendingIo, Purpose};

use crate::RunError;
use crate::backend::OpenBackends;
use crate::busy::BusyShare;
use crate::context::RunContext;
use crate::events::Level;
use crate::host::HostWatch;
use crate::recorder::{Key, key_of};
use crate::shards::{Message, SamplePart, Shard};
use crate::spec::{InstanceSpec, RunSpec};

/// A sample that is late by less, without a reason of ours, is an ordinary wake-up on a busy
/// machine.
const CLOCK_GAP_NS_MIN: Nanos = NANOS_PER_SECOND;

/// See the module text.
pub struct Sampler {
    spec: Rc<RunSpec>,
    run: RunContext,
    backends: OpenBackends,
    /// Absent in virtual time, which no machine has.
    host: Option<Rc<HostWatch>>,
    before: RefCell<Before>,
    /// Between two phases of several shards no beat closes a sample.
    is_held: Cell<bool>,
    /// The beat of the first shard up to which this one has closed its samples.
    closed_beat: Cell<u64>,
}

/// Readings at the end of the sample before.
struct Before {
    time: Nanos,
    page_fault_stalls: Vec<u64>,
    /// Of each database.
    pages_corrected: BTreeMap<(usize, usize), u64>,
    /// Databases whose corrected pages stand in the log of events: a run that is killed has no
    /// samples left to say it.
    told_of_corrected: BTreeSet<(usize, usize)>,
    /// How long the thread had been inside the kernel to hand I/O over.
    inside_kernel_ns: Nanos,
    /// Zero for every database and log: the levels of a sample in which nothing was handed over.
    handing_over_rows: BTreeMap<(u32, u32), Nanos>,
    /// Operations that began by then were looked at for hanging; `None` before the first look.
    hung_until: Option<Nanos>,
    /// How busy the thread was since somebody asked.
    busy: BusyShare,
}

impl Sampler {
    /// A sampler whose first sample begins now.
    pub fn new(
        spec: Rc<RunSpec>,
        run: RunContext,
        backends: OpenBackends,
        host: Option<Rc<HostWatch>>,
    ) -> Sampler {
        let before = Before {
            time: run.handle.now(),
            page_fault_stalls: vec![0; spec.instances.len()],
            pages_corrected: BTreeMap::new(),
            told_of_corrected: BTreeSet::new(),
            inside_kernel_ns: run.disk.inside_kernel_ns(),
            handing_over_rows: rows_of(&spec, &run.shard),
            hung_until: None,
            busy: BusyShare::default(),
        };
        Sampler {
            spec,
            run,
            backends,
            host,
            before: RefCell::new(before),
            is_held: Cell::new(false),
            closed_beat: Cell::new(0),
        }
    }

    /// Samples at every beat for ever. The beat is kept even when one sample is late.
    pub async fn beat(self: Rc<Self>) {
        let interval = self.spec.sample_interval_ms * NANOS_PER_MILLISECOND;
        let mut next = self.run.handle.now() + interval;
        loop {
            match self.run.shard.is_first() {
                true => self.run.handle.sleep_until(next).await,
                false => self.first_shard_beats(next).await,
            }
            let late_ns = self.run.handle.now().saturating_sub(next);
            if !self.is_held.get() {
                self.close(late_ns);
            }
            self.report_hung();
            let now = self.run.handle.now();
            next += interval * (now.saturating_sub(next) / interval + 1);
        }
    }

    /// Waits until the first shard has closed a sample, about at `next`.
    async fn first_shard_beats(&self, next: Nanos) {
        let beats =
            || self.run.shard.board().is_some_and(|board| board.beat() > self.closed_beat.get());
        let handle = &self.run.handle;
        handle.sleep_until(next).await;
        // It does not beat while it stands between two phases.
        let deadline = next + 100 * NANOS_PER_MILLISECOND;
        while !beats() && handle.now() < deadline {
            handle.sleep(NANOS_PER_MILLISECOND / 2).await;
        }
    }

    /// Closes the running sample. Nothing is sent for an empty interval. Of several shards, the
    /// first one closes a beat by this; the others follow where that has happened.
    pub fn close_sample(&self) {
        self.close(0);
    }

    /// Closes the running sample on all shards, does `then` on each, and goes on when all have done
    /// it. With `hold`, no beat closes a sample until the next call.
    ///
    /// # Errors
    /// As [`RunContext::gather`].
    pub async fn close_together<T>(
        &self,
        hold: bool,
        then: impl FnOnce() -> T,
    ) -> Result<T, RunError> {
        if self.run.shard.is_only() {
            self.close(0);
            return Ok(then());
        }
        self.is_held.set(true);
        self.run.gather(()).await?;
        if self.run.shard.is_first() {
            self.close(0);
        }
        self.run.gather(()).await?;
        if !self.run.shard.is_first() {
            self.close(0);
        }
        let done = then();
        self.run.gather(()).await?;
        self.is_held.set(hold);
        Ok(done)
    }

    /// How busy the thread was in all samples that were closed since this was asked before.
    pub fn take_busy(&self) -> f64 {
        std::mem::take(&mut self.before.borrow_mut().busy).share()
    }

    /// Lets beats close samples again, whatever the other shards do.
    pub fn let_go(&self) {
        self.is_held.set(false);
    }

    /// Sends what is left when a shard ends.
    pub fn close_last(&self) {
        if let Some(board) = self.run.shard.board()
            && !self.run.shard.is_first()
        {
            self.close_as(board.beat() + 1, 0);
        }
    }

    /// The same, so long after it was due.
    fn close(&self, late_ns: Nanos) {
        match self.run.shard.board() {
            None => self.close_as(0, late_ns),
            Some(board) if self.run.shard.is_first() => {
                if self.run.handle.now() > self.before.borrow().time {
                    self.close_as(board.next_beat(), late_ns);
                }
            }
            Some(board) => {
                let beat = board.beat();
                if beat > self.closed_beat.replace(beat) {
                    self.close_as(beat, late_ns);
                }
            }
        }
    }

    fn close_as(&self, beat: u64, late_ns: Nanos) {
        let now = self.run.handle.now();
        let interval_ns = now - self.before.borrow().time;
        if interval_ns == 0 && self.run.shard.is_only() {
            return;
        }
        self.note_disk();
        self.note_instances();
        self.note_executor(interval_ns.max(1), late_ns);
        if let Some(host) = &self.host {
            host.note(&self.run.recorder, interval_ns.max(1));
        }
        self.run.stalls.close_sample();
        self.before.borrow_mut().time = now;
        if self.run.shard.is_only() {
            let rows = self.run.recorder.take_sample(now);
            // A caller that no longer listens has its reasons; the outcome is still returned to it.
            drop(self.run.output.samples.send(rows));
            return;
        }
        let (interval_ns, phase, figures) = self.run.recorder.take_part(now);
        self.run.shard.send(Message::Sample(SamplePart {
            shard: self.run.shard.number(),
            beat,
            end_ns: now,
            interval_ns,
            phase,
            figures,
        }));
    }

    fn note_instances(&self) {
        let recorder = &self.run.recorder;
        let mut before = self.before.borrow_mut();
        for (&number, backend) in self.backends.borrow().iter() {
            let levels = backend.levels();
            let key = |metric: &str| Key::new(number as u32, 0, metric);
            recorder.set_level(key("cache_used"), levels.cache_used_bytes as f64);
            recorder.set_level(key("cache_limit"), levels.cache_limit_bytes as f64);
            recorder.set_level(key("log_generation"), levels.log_generation as f64);
            if levels.log_space_bytes > 0 {
                recorder.set_level(key("log_space"), levels.log_space_bytes as f64);
            }
            if levels.log_lagged_bytes > 0 {
                recorder.set_level(key("log_lagged"), levels.log_lagged_bytes as f64);
            }
            let stalls = &mut before.page_fault_stalls[number];
            let fresh = levels.page_fault_stalls.saturating_sub(*stalls);
            *stalls = levels.page_fault_stalls;
            recorder.count(key("page_fault_stall"), fresh);
            for (position, corrected) in backend.pages_corrected().into_iter().enumerate() {
                let known = before.pages_corrected.entry((number, position)).or_default();
                // A database that was opened again counts from zero.
                let fresh = corrected.checked_sub(*known).unwrap_or(corrected);
                *known = corrected;
                let key = Key::new(number as u32, position as u32 + 1, "corrected_page");
                recorder.count(key, fresh);
                if fresh > 0 && before.told_of_corrected.insert((number, position)) {
                    let (name, database) = (&self.spec.instances[number].name, position + 1);
                    let text = format!(
                        "a page of {name}, database {database} was read with a flipped bit, which \
                         was put right; more of its pages may follow without a word"
                    );
                    self.run.report(Level::Error, "bad_pages", text);
                }
            }
            for (position, database) in backend.databases().into_iter().enumerate() {
                let key = Key::new(number as u32, position as u32 + 1, "database_size");
                recorder.set_level(key, database.size_bytes as f64);
            }
        }
        let pending = self.run.disk.in_flight_longer_than(0);
        for (number, _) in self.run.shard.own(&self.spec.instances) {
            let in_flight =
                pending.iter().filter(|io| usize::from(io.key.instance.0) == number).count();
            recorder.set_level(Key::new(number as u32, 0, "in_flight"), in_flight as f64);
        }
    }

    fn note_disk(&self) {
        let recorder = &self.run.recorder;
        let mut handing_over_ns = self.before.borrow().handing_over_rows.clone();
        for (series_key, series) in self.run.disk.take_interval().series {
            let key = key_of(&series_key);
            recorder.merge(key, &series.latency, series.bytes);
            if matches!(series_key.purpose, Purpose::DatabaseRead | Purpose::LogWrite) {
                *handing_over_ns.entry((key.instance, key.database)).or_default() +=
                    series.handing_over_ns;
            }
        }
        for ((instance, database), ns) in handing_over_ns {
            recorder.set_level(Key::new(instance, database, "handing_over"), ns as f64);
        }
    }

    fn note_executor(&self, interval_ns: Nanos, late_ns: Nanos) {
        let statistics = self.run.handle.take_statistics();
        let recorder = &self.run.recorder;
        recorder.merge(Key::new(0, 0, "reap_gap"), &statistics.reap_gap, 0);
        // Processor time and the clock are not read at the same moment.
        let busy = (statistics.busy_ns as f64 / interval_ns as f64).min(1.0);
        recorder.set_level(Key::new(0, 0, "executor_busy"), busy);
        self.before.borrow_mut().busy.add(busy, interval_ns as f64);
        if let Some(thread) = self.run.shard.thread() {
            recorder.set_level(Key::new(0, thread, "executor_busy"), busy);
        }
        let inside_ns = self.run.disk.inside_kernel_ns();
        let held_ns = inside_ns
            - std::mem::replace(&mut self.before.borrow_mut().inside_kernel_ns, inside_ns);
        self.note_clock_gap(late_ns.saturating_sub(statistics.busy_ns + held_ns));
    }

    /// The sample was late although the thread neither worked, nor waited for a processor, nor was
    /// held while it handed I/O over: it did not run at all. Whatever was under way looks as slow
    /// as that was long.
    fn note_clock_gap(&self, gap_ns: Nanos) {
        if gap_ns < CLOCK_GAP_NS_MIN {
            return;
        }
        self.run.recorder.record(Key::new(0, 0, "clock_gap"), gap_ns);
        let text = format!(
            "the run did not go on for {:.1} s: its process was stopped (SIGSTOP, a debugger) or \
             its machine was paused; latencies of \
             that time are not the storage's",
            gap_ns as f64 / NANOS_PER_SECOND as f64
        );
        self.run.report(Level::Warning, "clock_gap", text);
    }

    /// Reports operations that have been at the disk for too long, each once.
    fn report_hung(&self) {
        let timeout_ns = self.spec.hung_after_ms * NANOS_PER_MILLISECOND;
        let Some(deadline) = self.run.handle.now().checked_sub(timeout_ns) else {
            return;
        };
        let looked_until = self.before.borrow_mut().hung_until.replace(deadline);
        for io in self.run.disk.in_flight_longer_than(timeout_ns) {
            if looked_until.is_some_and(|until| io.submitted <= until) {
                continue;
            }
            self.run.recorder.count(Key { metric: hung_metric(), ..key_of(&io.key) }, 1);
            self.run.report(Level::Error, "hung_io", sentence_on(&io, self.spec.hung_after_ms));
        }
    }
}

/// Every log and database of a shard, at zero.
fn rows_of(spec: &RunSpec, shard: &Shard) -> BTreeMap<(u32, u32), Nanos> {
    let numbered = shard.own(&spec.instances);
    let rows = |(number, instance): (usize, &InstanceSpec)| {
        (0..=instance.databases.len() as u32).map(move |database| ((number as u32, database), 0))
    };
    numbered.flat_map(rows).collect()
}

fn hung_metric() -> u32 {
    Key::new(0, 0, "hung").metric
}

fn sentence_on(io: &PendingIo, hung_after_ms: u64) -> String {
    let path = io.path.as_ref().map_or(String::new(), |path| format!(" of {}", path.display()));
    format!(
        "a {}{path} at offset {} ({}) has not completed for more than {} s",
        io.key.kind.name(),
        io.offset,
        io.key.purpose.name(),
        hung_after_ms as f64 / 1000.0,
    )
}
