//! Reading the pages of log records before their turn comes.
//!
//! Redo itself goes record by record; what it waits for is pages. While it applies one record the
//! pages of the next few hundred are on their way, so that a disk of any depth is kept busy and
//! only the first page of a generation is waited for in full. A page that has been read is pinned
//! until its record is redone; a read that failed is not repeated, its error is kept for the
//! record.
//!
//! Limits: nothing is read across the end of a generation; pins take at most a quarter of the
//! cache.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use plimsoll_io::{Handle, JoinHandle, Notify, Permits, Purpose};

use crate::cache::{Cache, Frame, PageKey};
use crate::databases::Databases;
use crate::error::{EngineError, Result};
use crate::log::Lsn;
use crate::log::record::LogRecord;

/// Reads under way at once.
const READS_MAX: usize = 256;
/// Pages on their way or waiting for their record.
const PAGES_MAX: usize = 2 * READS_MAX;

/// What became of a page asked for.
enum Slot {
    /// The number of the task that reads it.
    Asked(u64),
    /// A pin.
    Read {
        _pin: Rc<Frame>,
    },
    Failed(EngineError),
}

/// Shared with the reading tasks.
#[derive(Default)]
struct Held {
    slots: RefCell<BTreeMap<PageKey, Slot>>,
    filled: Notify,
}

/// See the module text.
pub(super) struct ReadAhead {
    handle: Handle,
    cache: Rc<Cache>,
    databases: Rc<Databases>,
    reads: Rc<Permits>,
    held: Rc<Held>,
    tasks: VecDeque<JoinHandle<()>>,
    tasks_ever: u64,
    pages_max: usize,
    /// Index of the first record not looked at yet.
    next: usize,
}

impl ReadAhead {
    /// Reads pages into `cache`.
    pub(super) fn new(handle: Handle, cache: Rc<Cache>, databases: Rc<Databases>) -> ReadAhead {
        ReadAhead {
            handle,
            pages_max: PAGES_MAX.min(cache.limits().frames_max / 4),
            cache,
            databases,
            reads: Rc::new(Permits::new(READS_MAX)),
            held: Rc::default(),
            tasks: VecDeque::new(),
            tasks_ever: 0,
            next: 0,
        }
    }

    /// Starts reading what the records not looked at yet will need, as far as there is room.
    pub(super) fn advance(&mut self, records: &[(Lsn, LogRecord)]) {
        while self.tasks.front().is_some_and(JoinHandle::is_finished) {
            self.tasks.pop_front();
        }
        while let Some((_, record)) = records.get(self.next) {
            if self.held.slots.borrow().len() >= self.pages_max {
                return;
            }
            pages_read_by(record).into_iter().for_each(|key| self.start(key));
            self.next += 1;
        }
    }

    fn start(&mut self, key: PageKey) {
        let Some(database) = self.databases.get(key.database) else {
            return;
        };
        let is_outside = key.page == 0 || key.page > database.pages_owned();
        if is_outside
            || self.held.slots.borrow().contains_key(&key)
            || self.cache.peek(key).is_some()
        {
            return;
        }
        let number = self.tasks_ever;
        self.tasks_ever += 1;
        self.held.slots.borrow_mut().insert(key, Slot::Asked(number));
        let (cache, reads, held) = (self.cache.clone(), self.reads.clone(), self.held.clone());
        self.tasks.push_back(self.handle.spawn(async move {
            let _permit = reads.acquire().await;
            if !held.is_asked(key, number) {
                return;
            }
            let loaded = cache.load(&database, key.page, Purpose::Redo).await;
            if held.is_asked(key, number) {
                let slot = loaded.map_or_else(Slot::Failed, |frame| Slot::Read { _pin: frame });
                held.slots.borrow_mut().insert(key, slot);
                held.filled.notify_all();
            }
        }));
    }

    /// Waits until the page, if it was asked for, is read.
    ///
    /// # Errors
    /// What reading it met.
    pub(super) async fn arrival(&self, key: PageKey) -> Result<()> {
        while self.cache.peek(key).is_none() {
            let filled = self.held.filled.notified();
            match self.held.slots.borrow().get(&key) {
                Some(Slot::Asked(_)) => {}
                Some(Slot::Failed(_)) => break,
                Some(Slot::Read { .. }) | None => return Ok(()),
            }
            filled.await;
        }
        let is_resident = self.cache.peek(key).is_some();
        match self.held.slots.borrow_mut().remove(&key) {
            Some(Slot::Failed(error)) if !is_resident => Err(error),
            _ => Ok(()),
        }
    }

    /// Lets go of the pages of a record that has been redone.
    pub(super) fn release(&self, record: &LogRecord) {
        let mut slots = self.held.slots.borrow_mut();
        for key in pages_read_by(record) {
            slots.remove(&key);
        }
    }

    /// Lets go of everything and waits for reads still under way: nothing may touch the files
    /// afterwards.
    pub(super) async fn finish(&mut self) {
        self.held.slots.borrow_mut().clear();
        for task in self.tasks.drain(..) {
            task.await;
        }
        self.next = 0;
    }
}

impl Held {
    fn is_asked(&self, key: PageKey, number: u64) -> bool {
        matches!(self.slots.borrow().get(&key), Some(Slot::Asked(asked)) if *asked == number)
    }
}

fn pages_read_by(record: &LogRecord) -> Vec<PageKey> {
    match record {
        LogRecord::Row(row) => vec![PageKey { database: row.database, page: row.page }],
        LogRecord::Structure(structure) => structure
            .pages
            .iter()
            .map(|edits| PageKey { database: structure.database, page: edits.page })
            .collect(),
        LogRecord::Image(image) => vec![PageKey { database: image.database, page: image.page }],
        _ => Vec::new(),
    }
}
