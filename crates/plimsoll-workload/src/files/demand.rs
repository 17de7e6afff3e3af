//! A worker of Iometer: slots of its targets that share one state. For every burst it draws a line,
//! waits the delay of that line as a whole, and goes on where its last transfer on a target has
//! ended.
//!
//! A session is one slot: it asks when its transaction has ended, so slots that become free are
//! used in that order. Arrivals are slots of one worker on all targets.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_MILLISECOND, Nanos, Random};

use crate::demand::{Demand, Seen, Timed};
use crate::driver::places::draw_place;
use crate::files::access::{Access, AccessLine};

/// Boundaries where a line states none.
const SECTOR_BYTES: u64 = 512;

/// A file or block device in the list of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilePlace {
    /// Its share of what arrives, relative to those of the others.
    pub weight: f64,
    /// The bytes that are used.
    pub size_bytes: u64,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the storage.
    Read,
    /// To the storage.
    Write,
}

impl Direction {
    fn opposite(self) -> Direction {
        match self {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        }
    }
}

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub size_bytes: u64,
}

/// One transaction: a request, and what answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTask {
    /// Position of the place in the list of the workload.
    pub place: usize,
    /// What is asked for.
    pub request: Transfer,
    /// What answers it, in the opposite direction.
    pub reply: Option<Transfer>,
}

/// What the slots of a worker share.
#[derive(Debug)]
pub struct FileWorker {
    access: Access,
    random: Random,
    places: Rc<[FilePlace]>,
    /// Where the last transfer on each place has ended.
    ends: Vec<u64>,
    line: AccessLine,
    left_in_burst: u32,
    not_before: Nanos,
}

impl FileWorker {
    /// A worker that has done nothing. Its places are at least as long as its longest transfer.
    pub fn new(access: Access, random: Random, places: Rc<[FilePlace]>) -> FileWorker {
        FileWorker {
            line: access.lines()[0],
            access,
            random,
            ends: vec![0; places.len()],
            places,
            left_in_burst: 0,
            not_before: 0,
        }
    }

    /// The next transaction on a place, and when it may begin.
    fn transaction(&mut self, place: usize, now: Nanos) -> (Nanos, FileTask) {
        if self.left_in_burst == 0 {
            self.line = self.access.draw(&mut self.random);
            self.left_in_burst = self.line.burst;
            self.not_before = self.not_before.max(now) + self.line.delay_ms * NANOS_PER_MILLISECOND;
        }
        self.left_in_burst -= 1;
        let reads = self.random.below(100) < u64::from(self.line.read_percent);
        let direction = if reads { Direction::Read } else { Direction::Write };
        let request = self.transfer(place, direction, self.line.size_bytes);
        let reply = (self.line.reply_bytes > 0)
            .then(|| self.transfer(place, direction.opposite(), self.line.reply_bytes));
        let task = FileTask { place, request, reply };
        (self.not_before.max(now), task)
    }

    fn transfer(&mut self, place: usize, direction: Direction, size_bytes: u64) -> Transfer {
        let room = self.places[place].size_bytes - size_bytes;
        let is_random = self.random.below(100) < u64::from(self.line.random_percent);
        let wanted = match is_random {
            true => self.random.below(room + 1),
            false => self.ends[place],
        };
        let boundary = match self.line.align_bytes {
            0 => SECTOR_BYTES,
            align => align,
        };
        let offset = wanted.next_multiple_of(boundary);
        // At the end it begins again, and so does what was rounded up beyond the end.
        let offset = if offset > room { 0 } else { offset };
        self.ends[place] = offset + size_bytes;
        Transfer { direction, offset, size_bytes }
    }
}

/// See the module text.
#[derive(Debug)]
pub struct FileDemand {
    worker: Rc<RefCell<FileWorker>>,
    choice: Random,
    positions: Vec<usize>,
    weights: Vec<f64>,
}

impl FileDemand {
    /// A slot of a worker on some of its places. `choice` decides which, where there are several.
    pub fn new(worker: Rc<RefCell<FileWorker>>, choice: Random, positions: &[usize]) -> FileDemand {
        let weights =
            positions.iter().map(|position| worker.borrow().places[*position].weight).collect();
        FileDemand { worker, choice, positions: positions.to_vec(), weights }
    }
}

impl Demand for FileDemand {
    type Task = FileTask;

    fn next(&mut self, now: Nanos, _seen: Option<Seen<'_, FileTask>>) -> Option<Timed<FileTask>> {
        let position = match self.positions.len() {
            1 => 0,
            _ => draw_place(&self.weights, &mut self.choice),
        };
        let mut worker = self.worker.borrow_mut();
        let (intended, task) = worker.transaction(self.positions[position], now);
        Some(Timed { intended, task })
    }
}
