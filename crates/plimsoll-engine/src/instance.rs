//! An instance: one log stream, one cache, one to several databases; opened, recovered if need be,
//! kept in order by background tasks, closed cleanly.

mod holding;
mod holds;
mod older;
pub mod open;
mod recovery;

pub(crate) use holding::Held;
pub use holds::Hold;
use holds::Holds;
pub use recovery::Recovery;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{Context, JoinHandle, NANOS_PER_SECOND, Notify, either};

use crate::btree::Tree;
use crate::cache::CacheLimits;
use crate::cache::writeback::Writeback;
use crate::checkpoint::write_checkpoint;
use crate::database::Database;
use crate::databases::DATABASES_MAX;
use crate::error::{EngineError, Result};
use crate::flushmap::flush_map_path;
use crate::header::DatabaseState;
use crate::log::framing::Framing;
use crate::log::names::LogNames;
use crate::log::record::LogRecord;
use crate::log::{GENERATION_BYTES, Lsn};
use crate::logtime::LogTime;
use crate::phase::Phase;
use crate::replay::ReplayStatistics;
use crate::space;
use crate::store::{Progress, Store};
use crate::table::Schema;
use crate::transaction::Transaction;

/// Pages that a database may grow by at a time.
const EXTENSION_PAGES_MAX: u32 = 1 << 24;

/// How an instance is set up. No value has a default here: the edition or the caller says. What is
/// recommended suits a database of some gigabytes on one disk.
#[derive(Clone, Debug)]
pub struct InstanceOptions {
    /// Label of its I/O, for measurement. Recommended: `Context::default()`.
    pub context: Context,
    /// Where its log lies: a directory that is there, and a name. Recommended: a directory of its
    /// own, and `"E00"`. Two instances with one log exclude each other.
    pub log: LogNames,
    /// Its databases, 1 to 100 of one page size, made by
    /// [`create_database`](crate::create_database). The first is number 1. Name all of them each
    /// time, in the same order: the log speaks of them by number.
    pub databases: Vec<PathBuf>,
    /// Log framing for generations to come. Recommended: [`Framing::Segments4096`].
    pub framing: Framing,
    /// Whether generations before the checkpoint are deleted. Recommended: true. Otherwise all log
    /// stays until [`Instance::truncate_log`], for backups that are rolled forward.
    pub circular: bool,
    /// Log bytes that may wait to be written before changes have to wait. Recommended: 1 MiB; 0 is
    /// refused.
    pub log_buffer_bytes: u64,
    /// Cache at rest, as it is reported: the cache grows with use and does not shrink. Recommended:
    /// 0, which reports what was used.
    pub cache_bytes_min: u64,
    /// Cache at most, in whole pages; of fewer than 16 pages it has 16. Two things go beyond it:
    /// the few new pages of a structural change, and pages of one operation where operations that
    /// wait hold the whole cache. These are as many as it needs at once, mostly up to 12.
    /// Recommended: the memory that there is for it, 16 MiB at least. Less than 256 KiB, and so 0,
    /// is refused.
    pub cache_bytes_max: u64,
    /// Log that a crash may leave to be redone, roughly. Recommended: 20 MiB. It counts in
    /// generations of 1 MiB, and 0 as one of them.
    pub checkpoint_depth_bytes: u64,
    /// Whether the checkpoint stays where it is while the instance is open, so that recovery has
    /// everything to redo. Recommended: false; true is for tests, and keeps all log.
    pub hold_checkpoint: bool,
    /// Bytes of versions kept at most: what rows were before changes that an open transaction does
    /// not see, or that may be undone. One transaction has half of them: beyond this share its
    /// changes fail with [`EngineError::TransactionTooLarge`]. Recommended: 16 MiB, or twice what
    /// the largest transaction changes and more; 0 is refused.
    ///
    /// A row that is changed again and again takes about two versions for each moment that an open
    /// transaction sees, and at least sixteen. Each other row that is changed takes one, and so
    /// does each entry of an index, also one that is gone: a change of an indexed column leaves one
    /// behind until the transactions end that were open before it. Walks over the index pass it.
    pub version_store_bytes_max: usize,
    /// Whether images of pages are logged so that torn writes can be repaired. Recommended: true;
    /// false only on storage that never tears a page.
    pub page_images: bool,
    /// Pages a database grows by, at least. Recommended: 256. 0 counts as 1: the file grows by what
    /// is needed. A disk with less room than that takes no growth.
    pub extension_pages: u32,
    /// Pages changed in this many newest generations are not written, so that a log that lost its
    /// end leaves no newer page. Recommended: 0, which is without.
    pub waypoint_generations: u32,
    /// Page writes under way at once. Recommended: 64, or what the disk carries out at once; 0 is
    /// refused.
    pub writes_outstanding_max: usize,
}

impl InstanceOptions {
    fn checkpoint_depth_generations(&self) -> u32 {
        let generations = self.checkpoint_depth_bytes.div_ceil(GENERATION_BYTES).max(1);
        generations.try_into().unwrap_or(u32::MAX)
    }

    fn cache_limits(&self, page_bytes: usize) -> CacheLimits {
        CacheLimits::from_bytes(self.cache_bytes_min, self.cache_bytes_max, page_bytes)
    }

    fn check(&self) -> Result<()> {
        let bad = |name: &'static str, why: String| Err(EngineError::BadOption { name, why });
        let databases = self.databases.len();
        if databases == 0 || databases > DATABASES_MAX {
            let why = format!("an instance has 1 to {DATABASES_MAX} databases, not {databases}");
            return bad("databases", why);
        }
        if let Some((one, other)) = with_one_flush_map(&self.databases) {
            return bad(
                "databases",
                format!(
                    "{} and {} would share a flush map, which is named like the file with .jfm in \
                     place of its extension: give them different names",
                    one.display(),
                    other.display()
                ),
            );
        }
        if self.cache_bytes_max < self.cache_bytes_min {
            return bad("cache_bytes_max", "it is below the minimum".into());
        }
        if self.cache_bytes_max < 64 * 4096 {
            return bad("cache_bytes_max", "a cache needs at least 256 KiB".into());
        }
        self.log.check()?;
        if self.log_buffer_bytes == 0 {
            let why = "it is 0, and the log needs a buffer: 1 MiB is usual";
            return bad("log_buffer_bytes", why.into());
        }
        if self.writes_outstanding_max == 0 {
            let why = "it is 0, and no page could be written: 64 is usual";
            return bad("writes_outstanding_max", why.into());
        }
        if self.version_store_bytes_max == 0 {
            return bad(
                "version_store_bytes_max",
                "without room for old versions no row can be changed".into(),
            );
        }
        if self.extension_pages > EXTENSION_PAGES_MAX {
            return bad("extension_pages", format!("at most {EXTENSION_PAGES_MAX} at a time"));
        }
        Ok(())
    }
}

/// Two databases whose flush maps would be one file. Those of block devices lie elsewhere.
fn with_one_flush_map(paths: &[PathBuf]) -> Option<(&PathBuf, &PathBuf)> {
    let mut named: BTreeMap<PathBuf, &PathBuf> = BTreeMap::new();
    let mut files = paths.iter().filter(|path| !path.starts_with("/dev"));
    files.find_map(|path| named.insert(flush_map_path(path), path).map(|one| (one, path)))
}

/// What opening had to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Whether a database had not been shut down cleanly.
    pub recovered: bool,
    /// Where redo started.
    pub started_at: Lsn,
    /// Where the log ended.
    pub ended_at: Lsn,
    /// What redo did.
    pub replay: ReplayStatistics,
    /// Transactions undone.
    pub rolled_back: usize,
}

/// See the module text.
pub struct Instance {
    store: Rc<Store>,
    options: InstanceOptions,
    writeback: Rc<Writeback>,
    cleaner_stopping: Rc<Cell<bool>>,
    stop: Rc<Notify>,
    holds: Holds,
    /// Backups and the like begun so far.
    holders: Cell<u64>,
    checkpointing: Cell<bool>,
    /// A checkpoint has ended.
    checkpointed: Notify,
    tasks: RefCell<Vec<JoinHandle<()>>>,
    pub(crate) schema: Schema,
    cleaner: RefCell<Option<JoinHandle<()>>>,
}

impl Instance {
    /// What tasks of this instance share; for background jobs and measurement.
    pub fn store(&self) -> &Rc<Store> {
        &self.store
    }

    /// Its options.
    pub fn options(&self) -> &InstanceOptions {
        &self.options
    }

    /// Begins a transaction. Once the instance is closing, every operation of a transaction that is
    /// begun fails with [`EngineError::Closing`].
    pub fn begin(&self) -> Transaction {
        Transaction::begin(&self.store)
    }

    /// How many transactions are open, and other operations under way, that a close waits for.
    pub fn active_count(&self) -> usize {
        self.store.life.active_count()
    }

    /// A database by number.
    pub fn database(&self, number: u8) -> Result<Rc<Database>> {
        self.store.database(number)
    }

    /// Makes a new tree of `pages` pages below `parent` (1 for the database root).
    pub async fn create_tree(
        &self,
        database: u8,
        parent: u32,
        object: u32,
        kind: u32,
        pages: u32,
    ) -> Result<Tree> {
        let _entered = self.store.enter()?;
        let target = self.database(database)?;
        let root = self
            .store
            .change(&target, |batch| {
                space::create_tree(batch, parent, object, kind, pages).map(Progress::Done)
            })
            .await?;
        Ok(Tree { database, root, object, kind })
    }

    /// Moves the checkpoint as far as the pages written allow: files synced first, headers and
    /// checkpoint file after, old generations last. While another checkpoint is under way it waits,
    /// and begins after that: what was written before the call counts.
    ///
    /// # Errors
    /// Any error poisons the instance: after a failed sync nobody knows what is in the files.
    pub async fn checkpoint(self: &Rc<Self>) -> Result<()> {
        loop {
            if self.store.is_stopping() {
                return Err(EngineError::Closing);
            }
            if !self.checkpointing.replace(true) {
                break;
            }
            let ended = self.checkpointed.notified();
            ended.await;
            self.store.log.check()?;
        }
        // A task of its own: a caller that stops waiting must not leave a header half written.
        let this = self.clone();
        let task = self.store.handle.spawn(async move {
            let result = this.checkpoint_alone().await;
            if let Err(error) = &result {
                this.store.log.fail(error);
            }
            this.checkpointing.set(false);
            this.checkpointed.notify_all();
            result
        });
        task.await
    }

    async fn checkpoint_alone(&self) -> Result<()> {
        let store = &self.store;
        let durable = store.log.durable();
        let oldest_writer = store.writers.borrow_mut().oldest_needed(durable);
        let oldest_pending = store.pending.borrow_mut().oldest(durable);
        let limits = [store.cache.oldest_dirty(), oldest_writer, oldest_pending];
        let target = limits.into_iter().flatten().min().unwrap_or(store.log.tip()).min(durable);
        let before = store.checkpoint.get();
        if target <= before {
            return store.log.check();
        }
        for database in store.databases.all() {
            database.sync().await?;
        }
        store.log.check()?;
        if target.generation > before.generation {
            let committed = store.log.durable().generation;
            for database in store.databases.all() {
                database
                    .update_header(move |header| {
                        header.generation_min_required = target.generation;
                        header.generation_max_committed =
                            header.generation_max_committed.max(committed);
                    })
                    .await?;
            }
        }
        self.write_checkpoint_file(target).await?;
        store.checkpoint.set(target);
        store.log.append(&LogRecord::Checkpoint { at: target });
        self.delete_old_log().await
    }

    /// Deletes the generations that neither recovery nor a holder needs, where log is deleted at
    /// all.
    async fn delete_old_log(&self) -> Result<()> {
        if !self.options.circular {
            return Ok(());
        }
        self.store.log.delete_before(|| self.needed_from(), false).await
    }

    /// The first generation that recovery or a holder needs.
    fn needed_from(&self) -> u32 {
        let held = self.holds.oldest().unwrap_or(u32::MAX);
        self.store.checkpoint.get().generation.min(held)
    }

    /// Lets go of the log that earlier lives left, at the beginning of this one. The pages that
    /// hold the checkpoint further back than its depth are written first: lives that all end before
    /// their first regular checkpoint would otherwise leave more log each time, and more to redo.
    async fn catch_up(self: &Rc<Self>) -> Result<()> {
        let store = &self.store;
        let depth = self.options.checkpoint_depth_generations();
        let target = Lsn::new(store.log.tip().generation.saturating_sub(depth), 0);
        if store.checkpoint.get() < target && !self.options.hold_checkpoint {
            self.writeback.write_before(target, &store.databases).await?;
            self.checkpoint().await?;
        }
        self.delete_old_log().await
    }

    async fn write_checkpoint_file(&self, checkpoint: Lsn) -> Result<()> {
        let store = &self.store;
        let path = self.options.log.checkpoint();
        let (signature, framing) = (store.log.signature(), store.log.framing());
        write_checkpoint(&store.files, &path, checkpoint, signature, framing, store.context).await
    }

    fn start_tasks(self: &Rc<Self>) {
        let handle = self.store.handle.clone();
        let depth = self.options.checkpoint_depth_generations();
        let cleaner = self.writeback.clone().clean_until(
            self.store.databases.clone(),
            depth,
            self.cleaner_stopping.clone(),
        );
        let (checkpointer, purger) = (self.clone(), self.clone());
        let mut tasks = self.tasks.borrow_mut();
        *self.cleaner.borrow_mut() = Some(handle.spawn(cleaner));
        tasks.push(handle.spawn(async move { checkpointer.checkpoint_regularly().await }));
        tasks.push(handle.spawn(async move { purger.purge_regularly().await }));
    }

    async fn checkpoint_regularly(self: &Rc<Self>) {
        while !self.options.hold_checkpoint && !self.store.is_stopping() {
            let second = self.store.handle.sleep(NANOS_PER_SECOND);
            either(second, self.stop.notified()).await;
            if self.store.is_stopping() {
                return;
            }
            if self.checkpoint().await.is_err() {
                return;
            }
        }
    }

    /// When the instance is about to stop.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + '_ {
        self.stop.notified()
    }

    /// Shuts down cleanly: no transaction is begun any more, those under way end, pages are written
    /// and synced, headers say clean. It goes on to the end when nobody waits for it any longer.
    ///
    /// It waits for every transaction that was begun, however long that stays open; these go on and
    /// may commit. [`Instance::active_count`] says for how many it still waits. Who holds one and
    /// waits for the close waits for ever: commit or drop it first. To stop by a deadline, spawn
    /// the close, and [`Instance::abandon`] the instance once that takes too long: the next opening
    /// recovers.
    ///
    /// # Errors
    /// When anything cannot be written: the databases are then left to be recovered.
    /// [`EngineError::Closing`] if it was closed before, or abandoned while it waited.
    pub async fn close(self: Rc<Self>) -> Result<()> {
        if !self.store.life.go_on_to(Phase::Closing) {
            return Err(EngineError::Closing);
        }
        let handle = self.store.handle.clone();
        handle.spawn(async move { self.close_alone().await }).await
    }

    async fn close_alone(&self) -> Result<()> {
        let idle = self.until_idle().await;
        if self.store.life.has_come_to(Phase::Sealed) {
            // It was abandoned meanwhile, and that closes the files.
            return Err(EngineError::Closing);
        }
        let result = match idle {
            Ok(()) => self.close_cleanly().await,
            failed => failed,
        };
        self.stop_tasks().await;
        self.store.life.go_on_to(Phase::Sealed);
        let closed = self.store.log.close().await;
        for database in self.store.databases.take_all() {
            self.store.cache.forget_database(database.number());
            let closed = database.close().await;
            if result.is_ok() {
                closed?;
            }
        }
        result.and(closed)
    }

    /// Stops as a crash of the process would: what is in the cache alone is lost, nothing is marked
    /// clean, and the next opening recovers. Background work has ended when this returns, so that
    /// the files can be opened again at once.
    ///
    /// # Errors
    /// What the disk reports of I/O that was under way.
    pub async fn abandon(self: Rc<Self>) -> Result<()> {
        self.store.life.go_on_to(Phase::Closing);
        self.stop_tasks().await;
        self.holds.settled().await;
        self.store.life.go_on_to(Phase::Sealed);
        let closed = self.store.log.close().await;
        for database in self.store.databases.take_all() {
            self.store.cache.forget_database(database.number());
            database.close().await?;
        }
        closed
    }

    /// Waits until nothing is under way, or the instance is abandoned.
    async fn until_idle(&self) -> Result<()> {
        let store = &self.store;
        while !store.life.is_idle() {
            store.log.check()?;
            store.life.check_open()?;
            store.life.ended().await;
        }
        Ok(())
    }

    async fn close_cleanly(&self) -> Result<()> {
        let store = &self.store;
        self.release_pending().await?;
        self.purge_for_closing().await?;
        self.stop_tasks().await;
        store.life.go_on_to(Phase::Sealed);
        // Only now does nothing change pages any more.
        self.writeback.write_everything(&store.databases).await?;
        for database in store.databases.all() {
            database.sync().await?;
            let appended = store.log.append(&LogRecord::Detach { database: database.number() });
            store.log.make_durable(appended.end).await?;
            self.mark_clean(&database, appended.start).await?;
        }
        let appended = store.log.append(&LogRecord::Term);
        store.log.make_durable(appended.end).await?;
        self.write_checkpoint_file(appended.end).await
    }

    async fn mark_clean(&self, database: &Rc<Database>, detached_at: Lsn) -> Result<()> {
        let position = self.store.log.framing().position(detached_at);
        let now = LogTime::from_utc_ns(self.store.handle.clock().anchor().utc_ns);
        database
            .update_header(move |header| {
                header.state = DatabaseState::Clean;
                header.generation_min_required = 0;
                header.generation_max_required = 0;
                header.consistent_position = position;
                header.consistent_time = now;
                header.detach_position = position;
                header.detach_time = now;
            })
            .await
    }

    async fn stop_tasks(&self) {
        self.store.life.go_on_to(Phase::Stopping);
        for task in self.tasks.take() {
            self.stop.notify_all();
            self.store.purge.wake();
            task.await;
        }
        while self.checkpointing.get() {
            // Not a yield: in virtual time a task that is always ready keeps the clock, and so the
            // disk, from moving.
            let done = self.checkpointed.notified();
            done.await;
        }
        // The cleaner goes last: the others may wait for frames.
        self.cleaner_stopping.set(true);
        let cleaner = self.cleaner.take();
        if let Some(cleaner) = cleaner {
            self.store.cache.needed.notify_all();
            cleaner.await;
        }
        while self.writeback.permits.free() < self.options.writes_outstanding_max {
            let freed = self.store.cache.freed.notified();
            freed.await;
        }
    }
}
