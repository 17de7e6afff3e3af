//! Sessions of a database engine, as seen by the disk.
//!
//! The thread law: a session reads a page with latency r and then stays away for a fixed processor
//! time plus a multiple of r, because the transaction goes on to wait for other things the storage
//! does. The published Jetstress runs obey it over a range of 27 in latency. Our own engine's
//! sessions also wait for the log, in proportion to its latency. Pages are dirtied in proportion to
//! the reads and leave in bursts, sorted, with a limit on how many are on their way; log records
//! are written one at a time behind each other. Sessions stop when dirty pages cannot leave.

use std::collections::VecDeque;

use plimsoll_io::{Nanos, Random};
use serde::{Deserialize, Serialize};

use super::flow::{Pattern, Walk, draw_bytes};
use crate::array::Request;

/// Bursts of backlog beyond which sessions wait for the writer.
const BACKLOG_BURSTS: u32 = 4;

/// What starts a burst of page writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlushSpec {
    /// So many dirty pages.
    Pages(u32),
    /// The time since the last burst.
    EveryNs(Nanos),
}

/// All sessions of one database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionsSpec {
    /// The database's volume.
    pub volume: u32,
    /// Where on the volume the database begins.
    pub start_bytes: u64,
    /// The database's size: pages are read anywhere in it.
    pub database_bytes: u64,
    /// The log's volume.
    pub log_volume: u32,
    /// Where on the volume the log begins.
    pub log_start_bytes: u64,
    /// The log's size; it starts again at the end.
    pub log_bytes: u64,
    /// Sessions.
    pub session_count: u32,
    /// A page.
    pub page_bytes: u64,
    /// Mean size of a read.
    pub read_bytes_mean: f64,
    /// Processor time for each read.
    pub processor_ns: Nanos,
    /// Time away for each unit of read latency.
    pub latency_factor: f64,
    /// Time away for each unit of the latency of the last log write: what its durable commits wait
    /// for, for each read.
    pub log_latency_factor: f64,
    /// Page writes for each read.
    pub writes_per_read: f64,
    /// Mean size of a page write.
    pub write_bytes_mean: f64,
    /// What starts a burst.
    pub flush: FlushSpec,
    /// Page writes on their way at once.
    pub write_depth: u32,
    /// Log writes for each read.
    pub log_writes_per_read: f64,
    /// Mean size of a log write.
    pub log_write_bytes_mean: f64,
}

/// What a completion sets off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Log,
}

/// The sessions of one database at work.
pub(super) struct Sessions {
    pub(super) spec: SessionsSpec,
    reads: Walk,
    writes: Walk,
    log: Walk,
    pending_writes: u32,
    backlog: VecDeque<u64>,
    writes_on_way: u32,
    parked: Vec<u32>,
    log_waiting: u32,
    log_is_writing: bool,
    log_latency_ns: Nanos,
    /// How far the log has come, for those who read behind it.
    pub(super) log_written: u64,
    /// How often a session found the writer behind.
    pub(super) park_count: u64,
    /// Whether an error has ended it.
    pub(super) is_stopped: bool,
}

/// What to submit next.
pub(super) struct Work {
    pub(super) kind: Kind,
    pub(super) actor: u32,
    pub(super) request: Request,
}

impl Sessions {
    pub(super) fn new(spec: SessionsSpec, random: &mut Random) -> Self {
        let page = spec.page_bytes;
        let mut pages = || {
            Walk::new(
                spec.volume,
                spec.start_bytes,
                spec.database_bytes,
                page,
                Pattern::Random,
                random,
            )
        };
        let (reads, writes) = (pages(), pages());
        let log = Walk::new(
            spec.log_volume,
            spec.log_start_bytes,
            spec.log_bytes,
            512,
            Pattern::Sequential,
            random,
        );
        Self {
            reads,
            writes,
            log,
            pending_writes: 0,
            backlog: VecDeque::new(),
            writes_on_way: 0,
            parked: Vec::new(),
            log_waiting: 0,
            log_is_writing: false,
            log_latency_ns: 0,
            log_written: 0,
            park_count: 0,
            is_stopped: false,
            spec,
        }
    }

    /// A session wants to read; `None` when it has to wait for the writer.
    pub(super) fn read(&mut self, actor: u32, random: &mut Random) -> Option<Work> {
        let burst = match self.spec.flush {
            FlushSpec::Pages(pages) => pages,
            FlushSpec::EveryNs(_) => self.spec.write_depth,
        };
        if self.backlog.len() as u32 > BACKLOG_BURSTS * burst.max(16) {
            self.parked.push(actor);
            self.park_count += 1;
            return None;
        }
        let bytes = draw_bytes(self.spec.read_bytes_mean, self.spec.page_bytes, random);
        let request = self.reads.request(bytes, false, 0, random);
        Some(Work { kind: Kind::Read, actor, request })
    }

    /// A read is done: how long the session stays away.
    pub(super) fn away_ns(&self, latency_ns: Nanos) -> Nanos {
        let storage_ns = self.spec.latency_factor * latency_ns as f64
            + self.spec.log_latency_factor * self.log_latency_ns as f64;
        self.spec.processor_ns + storage_ns as Nanos
    }

    /// What a transaction leaves to be written after a read.
    pub(super) fn dirty(&mut self, work: &mut Vec<Work>, random: &mut Random) {
        let share = self.spec.writes_per_read;
        self.pending_writes += share as u32 + u32::from(random.chance(share.fract()));
        if let FlushSpec::Pages(pages) = self.spec.flush
            && self.pending_writes >= pages
        {
            self.burst(work, random);
        }
        let share = self.spec.log_writes_per_read;
        self.log_waiting += share as u32 + u32::from(random.chance(share.fract()));
        self.write_log(work, random);
    }

    /// Starts a burst of what is dirty.
    pub(super) fn burst(&mut self, work: &mut Vec<Work>, random: &mut Random) {
        let page = self.spec.page_bytes;
        let mut offsets: Vec<u64> = (0..self.pending_writes)
            .map(|_| self.writes.request(2 * page, true, 0, random).offset)
            .collect();
        self.pending_writes = 0;
        offsets.sort_unstable();
        self.backlog.extend(offsets);
        self.pump(work, random);
    }

    fn pump(&mut self, work: &mut Vec<Work>, random: &mut Random) {
        while self.writes_on_way < self.spec.write_depth
            && let Some(offset) = self.backlog.pop_front()
        {
            self.writes_on_way += 1;
            let pages = draw_bytes(self.spec.write_bytes_mean, self.spec.page_bytes, random);
            let bytes = pages.min(2 * self.spec.page_bytes) as u32;
            let request = Request {
                volume: self.spec.volume,
                offset,
                bytes,
                is_write: true,
                is_durable: false,
                token: 0,
            };
            work.push(Work { kind: Kind::Write, actor: 0, request });
        }
    }

    fn write_log(&mut self, work: &mut Vec<Work>, random: &mut Random) {
        if self.log_is_writing || self.log_waiting == 0 {
            return;
        }
        self.log_waiting -= 1;
        self.log_is_writing = true;
        let bytes = draw_bytes(self.spec.log_write_bytes_mean, 512, random);
        let request = Request { is_durable: true, ..self.log.request(bytes, true, 0, random) };
        self.log_written = request.offset - self.spec.log_start_bytes + u64::from(request.bytes);
        work.push(Work { kind: Kind::Log, actor: 0, request });
    }

    /// A page write is done; gives the sessions that may go on.
    pub(super) fn wrote(&mut self, work: &mut Vec<Work>, random: &mut Random) -> Vec<u32> {
        self.writes_on_way -= 1;
        self.pump(work, random);
        if self.backlog.is_empty() { std::mem::take(&mut self.parked) } else { Vec::new() }
    }

    /// An error ends the database: nothing more is asked for.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.backlog.clear();
        self.parked.clear();
    }

    /// A log write is done.
    pub(super) fn logged(&mut self, latency_ns: Nanos, work: &mut Vec<Work>, random: &mut Random) {
        self.log_latency_ns = latency_ns;
        self.log_is_writing = false;
        self.write_log(work, random);
    }
}
