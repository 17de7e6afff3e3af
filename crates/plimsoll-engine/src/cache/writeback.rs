//! Writing dirty pages back: for frames (available pool), for the checkpoint (depth), for shutdown
//! (everything).
//!
//! A page may be written when the log is durable past its last change and the header says that
//! recovery needs that much log. Flush type and checksum are set first. A single page is written
//! from where it lies; a session that changes it meanwhile changes a copy. Dirty neighbours go out
//! in one write, of copies. A page changed meanwhile stays dirty, from the first change after this
//! moment on.
//!
//! With a waypoint, pages changed in the newest generations are not written at all, so that losing
//! the end of the log loses commits but leaves no page newer than the log. When such pages fill the
//! cache, a new generation is begun before the current one is full. A clean shutdown lifts the
//! waypoint: nothing needs the log after it.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use plimsoll_io::{Buffer, Handle, NANOS_PER_MILLISECOND, Permits, Purpose};

use super::{Cache, Frame, PageKey};
use crate::PageNumber;
use crate::checksum::{copy_and_checksum, set_checksum};
use crate::database::Database;
use crate::databases::Databases;
use crate::error::{EngineError, Result};
use crate::flushmap::FlushMap;
use crate::log::Lsn;
use crate::log::writer::Log;
use crate::page::{PageMut, PageView};

/// Bytes of the largest coalesced write.
const COALESCED_BYTES_MAX: usize = 512 * 1024;
/// How long the cleaner rests when nobody calls for it.
const REST_NS: u64 = 10 * NANOS_PER_MILLISECOND;

/// The log as far as writing pages back is concerned.
pub enum WriteAhead {
    /// The log being written.
    Live(Rc<Log>),
    /// The log being replayed: all of it is durable already.
    Replay {
        /// How far redo has come.
        tip: Cell<Lsn>,
        /// The first write error.
        failed: RefCell<Option<EngineError>>,
    },
}

impl WriteAhead {
    /// For redo.
    pub fn replay() -> Self {
        Self::Replay { tip: Cell::new(Lsn::ZERO), failed: RefCell::new(None) }
    }

    /// The end of the log.
    pub fn tip(&self) -> Lsn {
        match self {
            Self::Live(log) => log.tip(),
            Self::Replay { tip, .. } => tip.get(),
        }
    }

    /// The generation in which the log on stable storage ends.
    fn durable_generation(&self) -> u32 {
        match self {
            Self::Live(log) => log.durable().generation,
            Self::Replay { tip, .. } => tip.get().generation,
        }
    }

    /// Ends the generation being appended to and waits until the log on stable storage has entered
    /// the next.
    async fn begin_generation(&self) -> Result<()> {
        match self {
            Self::Live(log) => {
                let begun = log.begin_generation();
                log.make_durable(begun.end).await
            }
            Self::Replay { .. } => self.check(),
        }
    }

    /// Notes how far redo has come.
    pub fn set_replayed(&self, upto: Lsn) {
        if let Self::Replay { tip, .. } = self {
            tip.set(upto);
        }
    }

    async fn make_durable(&self, upto: Lsn) -> Result<()> {
        match self {
            Self::Live(log) => log.make_durable(upto).await,
            Self::Replay { .. } => self.check(),
        }
    }

    fn fail(&self, error: &EngineError) {
        match self {
            Self::Live(log) => log.fail(error),
            Self::Replay { failed, .. } => {
                failed.borrow_mut().get_or_insert_with(|| error.poisoning());
            }
        }
    }

    /// Fails if writing has failed.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Live(log) => log.check(),
            Self::Replay { failed, .. } => match &*failed.borrow() {
                Some(error) => Err(error.clone()),
                None => Ok(()),
            },
        }
    }
}

/// What the cleaner needs to know of the instance.
pub struct Writeback {
    /// The cache it cleans.
    pub cache: Rc<Cache>,
    /// The log that must be ahead of the pages.
    pub log: WriteAhead,
    /// Its executor.
    pub handle: Handle,
    /// Writes under way at once.
    pub permits: Permits,
    /// As many as this.
    pub writes_max: usize,
    /// Pages changed in the newest generations of the durable log, as many as this, are not written
    /// yet.
    pub waypoint_generations: Cell<u32>,
    /// Purpose its writes are labelled with: redo during recovery.
    pub purpose: Purpose,
}

impl Writeback {
    /// Adjacent dirty frames around `key` that may be written now, in page order.
    fn run_around(&self, database: &Database, key: PageKey) -> Vec<Rc<Frame>> {
        let pages_max = (COALESCED_BYTES_MAX / database.size().bytes()) as u32;
        let eligible = |page: PageNumber| {
            let frame = self.cache.peek(PageKey { database: key.database, page })?;
            (frame.is_dirty() && !frame.writing.get() && self.may_write(&frame)).then_some(frame)
        };
        let Some(middle) = eligible(key.page) else {
            return Vec::new();
        };
        let mut run = std::collections::VecDeque::from([middle]);
        let (mut left, mut right) = (key.page, key.page);
        while (run.len() as u32) < pages_max && left > 1 {
            let Some(frame) = eligible(left - 1) else {
                break;
            };
            run.push_front(frame);
            left -= 1;
        }
        while (run.len() as u32) < pages_max {
            let Some(frame) = eligible(right + 1) else {
                break;
            };
            run.push_back(frame);
            right += 1;
        }
        run.into()
    }

    fn may_write(&self, frame: &Frame) -> bool {
        !self.is_behind_waypoint(frame)
    }

    fn is_behind_waypoint(&self, frame: &Frame) -> bool {
        let waypoint = self.waypoint_generations.get();
        waypoint > 0
            && frame.changed_upto.get().generation.saturating_add(waypoint)
                > self.log.durable_generation()
    }

    /// Starts writing the dirty run around `key`; returns once the write is under way, or false if
    /// there is nothing to write.
    pub async fn start_write(
        self: &Rc<Self>,
        database: &Rc<Database>,
        key: PageKey,
    ) -> Result<bool> {
        self.start_run(database, key, false).await
    }

    /// The same; a victim is not in the replacement order and comes back to it, in any case, when
    /// that is done.
    async fn start_run(
        self: &Rc<Self>,
        database: &Rc<Database>,
        key: PageKey,
        is_victim: bool,
    ) -> Result<bool> {
        let permit = self.permits.acquire().await;
        let run = self.run_around(database, key);
        let victim = is_victim.then(|| self.cache.peek(key)).flatten();
        let put_back = move |cache: &Cache| victim.iter().for_each(|frame| cache.keep_frame(frame));
        if run.is_empty() {
            put_back(&self.cache);
            return Ok(false);
        }
        run.iter().for_each(|frame| frame.writing.set(true));
        let (this, database) = (self.clone(), database.clone());
        drop(self.handle.spawn(async move {
            let result = this.write_run(&database, &run).await;
            run.iter().for_each(|frame| frame.writing.set(false));
            drop(run);
            put_back(&this.cache);
            drop(put_back);
            drop(permit);
            if let Err(error) = result {
                this.log.fail(&error);
            }
            this.cache.freed.notify_all();
        }));
        Ok(true)
    }

    async fn write_run(&self, database: &Rc<Database>, run: &[Rc<Frame>]) -> Result<()> {
        let (mut buffer, taken) = match run {
            [frame] => self.share_page(database, frame),
            _ => self.copy_run(database, run).await,
        };
        // Held until the end, so that the disk knows that nobody changes what it was given and need
        // not copy it to keep it.
        let _held = buffer.share();
        if taken.versions.is_empty() {
            return Ok(());
        }
        self.log.make_durable(taken.upto).await?;
        database.require_generation(taken.upto.generation, self.log.durable_generation()).await?;
        database.write_pages(run[0].key.page, buffer, self.purpose).await?;
        for (frame, version) in run.iter().zip(taken.versions) {
            self.cache.mark_clean(frame);
            if frame.changes.get() != version {
                self.cache.stay_dirty(frame);
            }
        }
        Ok(())
    }

    /// The page itself for the disk, as it is now.
    fn share_page(&self, database: &Database, frame: &Frame) -> (Buffer, Taken) {
        let mut taken = Taken::default();
        // It may have been changed since it was chosen.
        if !self.is_behind_waypoint(frame) {
            let mut bytes = prepare_for_disk(frame, database);
            set_checksum(&mut bytes, frame.key.page);
            taken.add(frame);
            return (bytes.share(), taken);
        }
        (database.file().allocate(0), taken)
    }

    /// Copies pages of a run for the disk, letting others run now and then: the copy of each page
    /// is of one moment, the run need not be.
    async fn copy_run(&self, database: &Database, run: &[Rc<Frame>]) -> (Buffer, Taken) {
        let page_bytes = database.size().bytes();
        let mut buffer = database.file().allocate(run.len() * page_bytes);
        let mut taken = Taken::default();
        for (frame, target) in run.iter().zip(buffer.chunks_exact_mut(page_bytes)) {
            // It may have been changed since it was chosen.
            if self.is_behind_waypoint(frame) {
                break;
            }
            copy_and_checksum(&prepare_for_disk(frame, database), target, frame.key.page);
            taken.add(frame);
            self.handle.breathe().await;
        }
        buffer.set_length(taken.versions.len() * page_bytes);
        (buffer, taken)
    }

    /// Frees frames until enough are available, writing dirty victims, several at once. Returns
    /// whether it had to stop for lack of victims.
    pub async fn free_frames(self: &Rc<Self>, databases: &Databases) -> Result<bool> {
        while self.cache.available() < self.cache.limits.available_stop {
            // When nothing can be written any more, the same dirty victim would come up for ever.
            self.log.check()?;
            let freed = self.cache.freed.notified();
            let wanted = self.cache.limits.available_stop - self.cache.available();
            if self.writes_under_way() >= wanted.min(self.writes_max) {
                // A dirty victim is written and dropped when its turn comes again.
                freed.await;
                continue;
            }
            let Some(frame) = self.cache.next_victim() else {
                if self.writes_under_way() > 0 {
                    freed.await;
                    continue;
                }
                self.cache.let_one_beyond();
                return Ok(true);
            };
            if !frame.is_dirty() {
                self.cache.drop_frame(frame);
                self.cache.freed.notify_all();
                continue;
            }
            let key = frame.key;
            let Some(database) = databases.get(key.database) else {
                self.cache.keep_frame(&frame);
                return Ok(true);
            };
            if self.is_behind_waypoint(&frame) {
                // Whoever waits for a frame appends nothing, so the waypoint would never move by
                // itself.
                self.cache.keep_frame(&frame);
                drop(frame);
                self.log.begin_generation().await?;
                continue;
            }
            drop(frame);
            if !self.start_run(&database, key, true).await? {
                // It may not be written yet; another pass will find it or others.
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn writes_under_way(&self) -> usize {
        self.writes_max - self.permits.free()
    }

    /// Starts writes of up to `count` of the pages that hold the checkpoint before `target`.
    pub async fn advance(
        self: &Rc<Self>,
        target: Lsn,
        count: usize,
        databases: &Databases,
    ) -> Result<usize> {
        let due: Vec<PageKey> = {
            let dirty = self.cache.dirty.borrow();
            let idle =
                |key: &PageKey| self.cache.peek(*key).is_some_and(|frame| !frame.writing.get());
            let due = dirty.iter().take_while(|(since, _)| *since < target).map(|(_, key)| *key);
            due.filter(idle).take(count).collect()
        };
        let mut started = 0;
        for key in &due {
            if let Some(database) = databases.get(key.database) {
                started += usize::from(self.start_write(&database, *key).await?);
            }
        }
        Ok(started)
    }

    /// Writes everything that is dirty now and waits for it, for a clean shutdown: the waypoint is
    /// lifted.
    pub async fn write_everything(self: &Rc<Self>, databases: &Databases) -> Result<()> {
        self.waypoint_generations.set(0);
        while self.cache.dirty_frames() > 0 {
            self.log.check()?;
            let everything = Lsn::new(u32::MAX, 0);
            let freed = self.cache.freed.notified();
            self.advance(everything, 64, databases).await?;
            if self.cache.dirty_frames() > 0 {
                freed.await;
            }
        }
        self.log.check()
    }

    /// Writes what was dirty before `target` and may be written, and waits for it.
    pub async fn write_before(self: &Rc<Self>, target: Lsn, databases: &Databases) -> Result<()> {
        while self.cache.oldest_dirty().is_some_and(|oldest| oldest < target) {
            self.log.check()?;
            let freed = self.cache.freed.notified();
            let started = self.advance(target, 64, databases).await?;
            if started == 0 && self.writes_under_way() == 0 {
                break;
            }
            freed.await;
        }
        self.log.check()
    }

    /// Keeps frames available and the checkpoint within `depth_generations` of the log's tip, until
    /// `stopping`.
    pub async fn clean_until(
        self: Rc<Self>,
        databases: Rc<Databases>,
        depth_generations: u32,
        stopping: Rc<Cell<bool>>,
    ) {
        while !stopping.get() && self.log.check().is_ok() {
            match self.clean_once(&databases, depth_generations).await {
                Ok(true) => {}
                Ok(false) => self.rest().await,
                Err(error) => self.log.fail(&error),
            }
        }
        if let Err(error) = self.log.check() {
            self.cache.abandon(error);
        }
    }

    /// One pass; whether there may be more to do at once.
    async fn clean_once(
        self: &Rc<Self>,
        databases: &Databases,
        depth_generations: u32,
    ) -> Result<bool> {
        let starved = self.cache.available() < self.cache.limits.available_start;
        let stuck = starved && self.free_frames(databases).await?;
        let tip = self.log.tip();
        let Some(oldest) = self.cache.oldest_dirty() else {
            return Ok(false);
        };
        let target = Lsn { generation: tip.generation.saturating_sub(depth_generations), ..tip };
        if oldest >= target {
            return Ok(false);
        }
        let lag = target.generation.saturating_sub(oldest.generation);
        let urgent = lag * 4 > depth_generations;
        if urgent {
            self.cache.count(|statistics| statistics.urgent_passes += 1);
        }
        // The further behind, the more at once.
        let count = if urgent { 64 } else { 1 + lag as usize * 4 };
        let started = self.advance(target, count, databases).await?;
        Ok(started > 0 && urgent && !stuck)
    }

    /// Rests until frames are needed or a while has passed.
    pub async fn rest(&self) {
        let timer = self.handle.sleep(REST_NS);
        let needed = self.cache.needed.notified();
        plimsoll_io::either(timer, needed).await;
    }
}

/// What of a run is written: its first pages.
#[derive(Default)]
struct Taken {
    /// The state of each page as it is written.
    versions: Vec<u64>,
    /// The log must be durable up to here first.
    upto: Lsn,
}

impl Taken {
    fn add(&mut self, frame: &Frame) {
        self.versions.push(frame.changes.get());
        self.upto = self.upto.max(frame.changed_upto.get());
    }
}

/// Gives a page its next flush type. Its checksum is still to be set.
fn prepare_for_disk<'f>(frame: &'f Frame, database: &Database) -> RefMut<'f, Buffer> {
    let mut bytes = frame.bytes_mut(database);
    let size = database.size();
    let next_type = FlushMap::next_type(
        database.flush_type(frame.key.page, PageView::new(&bytes, size).flush_type()),
    );
    PageMut::new(&mut bytes, size).set_flush_type(next_type);
    // This write may tear: what is changed from here on needs an image that the checkpoint cannot
    // have passed.
    frame.set_imaged(false);
    frame.changed_since_copy.set(None);
    bytes
}
