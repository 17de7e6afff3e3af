//! Redo, one generation at a time.
//!
//! A [`Replayer`] is fed generations in order. It can stop after any of them, be dropped and begun
//! again, and is activated when there is nothing more to feed: only then are unfinished
//! transactions undone. Crash recovery is "feed all, activate"; a replica feeds as generations
//! arrive.
//!
//! Redo of a change compares the page's database time with the record's: the same as before the
//! change — do it; at or past it — it is in the file already; older — an earlier write was lost;
//! between — the log does not explain the page. The last two, and pages that fail their checks, are
//! collected as damage. A page image or a record that makes the page anew mends it.
//!
//! Redo mostly reads: pages flushed before the stop are found up to date. Pages are therefore read
//! ahead of their records, many at once.

mod ahead;
mod misfit;
mod whose;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_io::{Context, Handle, JoinHandle, Permits, Purpose};

use self::ahead::ReadAhead;
pub(crate) use self::whose::check_numbers;
use self::whose::{Change, Whose};
use crate::PageNumber;
use crate::btree::Tree;
use crate::cache::writeback::{WriteAhead, Writeback};
use crate::cache::{Cache, CacheLimits, Frame, PageKey};
use crate::database::Database;
use crate::databases::Databases;
use crate::edit::{Edit, RowChange};
use crate::error::{EngineError, PageDamage, Result};
use crate::log::Lsn;
use crate::log::reader::{Generation, LogReader};
use crate::log::record::{ImageRecord, LogRecord, PageEdits, RowRecord, StructureRecord};
use crate::page::{PageMut, PageView, page_flags};
use crate::pending::PendingTrees;
use crate::transaction::UndoEntry;
use crate::versions::RowKey;

/// Writes under way at once.
const WRITES_OUTSTANDING_MAX: usize = 64;
/// Deleted rows remembered for the purge after activation.
const TO_PURGE_MAX: usize = 100_000;

/// What redo has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayStatistics {
    /// Generations fed.
    pub generations: u64,
    /// Payload bytes fed.
    pub bytes: u64,
    /// Records seen.
    pub records: u64,
    /// Page changes made.
    pub applied: u64,
    /// Page changes found in the file already.
    pub skipped: u64,
    /// Pages mended from an image or made anew over damage.
    pub mended: u64,
}

/// What activation needs.
pub(crate) struct Replayed {
    pub cache: Rc<Cache>,
    pub databases: Rc<Databases>,
    pub unfinished: BTreeMap<u64, Vec<UndoEntry>>,
    pub to_purge: Vec<RowKey>,
    pub pending: PendingTrees,
    pub transaction_max: u64,
    pub last: Option<Generation>,
    pub statistics: ReplayStatistics,
}

/// See the module text.
pub struct Replayer {
    handle: Handle,
    cache: Rc<Cache>,
    databases: Rc<Databases>,
    whose: Whose,
    writeback: Rc<Writeback>,
    ahead: ReadAhead,
    stopping: Rc<Cell<bool>>,
    cleaner: JoinHandle<()>,
    unfinished: BTreeMap<u64, Vec<UndoEntry>>,
    /// First record of each unfinished transaction.
    begun: BTreeMap<u64, Lsn>,
    /// The checkpoint of the instance that wrote the log, as far as the log tells.
    checkpoint_noted: Lsn,
    deleted: BTreeMap<u64, Vec<RowKey>>,
    to_purge: Vec<RowKey>,
    pending: PendingTrees,
    transaction_max: u64,
    damage: BTreeMap<PageKey, PageDamage>,
    /// Pages that were damaged in the file and have been made again.
    mended: BTreeSet<PageKey>,
    /// The latest record that gives the whole content of a page: until the page is written, redo
    /// may not start later.
    contents: BTreeMap<PageKey, Lsn>,
    last: Option<Generation>,
    /// The generation of which redo has begun and not ended.
    under_way: Option<u32>,
    statistics: ReplayStatistics,
}

impl Replayer {
    /// A replayer over open databases.
    pub fn new(
        handle: Handle,
        databases: Vec<Rc<Database>>,
        limits: CacheLimits,
        depth_generations: u32,
    ) -> Replayer {
        let whose = Whose::of(&databases);
        let open = Rc::new(Databases::default());
        databases.into_iter().for_each(|database| open.insert(database));
        let cache = Rc::new(Cache::new(handle.clock().clone(), limits));
        let writeback = Rc::new(Writeback {
            cache: cache.clone(),
            log: WriteAhead::replay(),
            handle: handle.clone(),
            permits: Permits::new(WRITES_OUTSTANDING_MAX),
            writes_max: WRITES_OUTSTANDING_MAX,
            waypoint_generations: Cell::new(0),
            purpose: Purpose::Redo,
        });
        let stopping = Rc::new(Cell::new(false));
        let cleaner = writeback.clone();
        let cleaner =
            handle.spawn(cleaner.clean_until(open.clone(), depth_generations, stopping.clone()));
        Replayer {
            ahead: ReadAhead::new(handle.clone(), cache.clone(), open.clone()),
            handle,
            cache,
            databases: open,
            whose,
            writeback,
            stopping,
            cleaner,
            unfinished: BTreeMap::new(),
            begun: BTreeMap::new(),
            checkpoint_noted: Lsn::ZERO,
            deleted: BTreeMap::new(),
            to_purge: Vec::new(),
            pending: PendingTrees::default(),
            transaction_max: 0,
            damage: BTreeMap::new(),
            mended: BTreeSet::new(),
            contents: BTreeMap::new(),
            last: None,
            under_way: None,
            statistics: ReplayStatistics::default(),
        }
    }

    /// Fails where a generation was redone in part only. What it says of transactions would count
    /// twice if it were fed again, and pages would be newer than the log if nothing more were.
    fn check_whole(&self) -> Result<()> {
        match self.under_way {
            Some(generation) => Err(EngineError::BrokenOff { generation }),
            None => Ok(()),
        }
    }

    /// Progress.
    pub fn statistics(&self) -> ReplayStatistics {
        self.statistics
    }

    /// How far redo has come.
    pub fn position(&self) -> Lsn {
        self.last.as_ref().map_or(Lsn::ZERO, Generation::end)
    }

    /// Writes and syncs everything redone so far and stops. Says where redo has to start again:
    /// early enough for the undo of unfinished transactions and for the images of pages still to
    /// change.
    ///
    /// # Errors
    /// Damage found so far, and whatever writing meets.
    pub(crate) async fn pause(mut self) -> Result<Lsn> {
        let position = self.position();
        if let Err(error) = self.check_whole() {
            self.stop().await;
            return Err(error);
        }
        let written = self.writeback.write_everything(&self.databases).await;
        self.stop().await;
        written?;
        self.check_damage()?;
        for database in self.databases.all() {
            database.sync().await?;
        }
        let begun = self.begun.values().min().copied();
        let needed = begun.into_iter().chain(self.pending.oldest(position)).min();
        let oldest = needed.unwrap_or(position);
        Ok(oldest.min(self.checkpoint_noted).min(position))
    }

    /// Redoes the records of a generation.
    ///
    /// # Errors
    /// After one in the middle of a generation, or when its future was dropped there, nothing is
    /// left but to begin again: [`EngineError::BrokenOff`].
    pub async fn feed(&mut self, generation: Generation) -> Result<()> {
        self.check_whole()?;
        if let Some(last) = &self.last {
            LogReader::check_chain(last, &generation.header, &generation.path)?;
        }
        let records: Vec<(Lsn, LogRecord)> = generation.records(0).collect::<Result<_>>()?;
        let changes = self.changes(&generation, &records)?;
        self.under_way = Some(generation.header.generation);
        let redone = self.redo_all(&records, &changes).await;
        self.ahead.finish().await;
        redone?;
        self.under_way = None;
        self.writeback.log.set_replayed(generation.end());
        self.statistics.generations += 1;
        self.statistics.bytes += generation.payload.len() as u64;
        self.statistics.records += records.len() as u64;
        self.last = Some(generation);
        Ok(())
    }

    /// What becomes of each record; nothing of a generation is redone where one belongs to a
    /// database that is not here.
    fn changes(
        &self,
        generation: &Generation,
        records: &[(Lsn, LogRecord)],
    ) -> Result<Vec<Change>> {
        let header = &generation.header;
        let change = |(start, record): &(Lsn, LogRecord)| match record.changed_database() {
            Some(number) => {
                self.whose.change(number, header.signature, header.framing.position(*start))
            }
            None => Ok(Change::Redone),
        };
        records.iter().map(change).collect()
    }

    async fn redo_all(&mut self, records: &[(Lsn, LogRecord)], changes: &[Change]) -> Result<()> {
        for (index, ((start, record), change)) in records.iter().zip(changes).enumerate() {
            self.ahead.advance(records);
            let end = records
                .get(index + 1)
                .map_or(Lsn::new(start.generation, start.offset + 1), |(next, _)| *next);
            // A page written back while this record waits for another page has to be redone from
            // this record on.
            self.writeback.log.set_replayed(*start);
            match change {
                Change::Redone => self.redo(*start, end, record).await?,
                Change::InFile => self.note(*start, end, record),
            }
            self.ahead.release(record);
            if index % 16 == 15 {
                self.writeback.log.check()?;
                self.handle.yield_now().await;
            }
        }
        Ok(())
    }

    /// Notes what a record says of transactions and trees.
    fn note(&mut self, start: Lsn, end: Lsn, record: &LogRecord) {
        match record {
            LogRecord::Row(row) => self.note_undo(start, row),
            LogRecord::Structure(structure) => {
                for edits in &structure.pages {
                    self.pending.note(structure.database, edits.page, &edits.edits, start, end);
                }
            }
            _ => {}
        }
    }

    async fn redo(&mut self, start: Lsn, end: Lsn, record: &LogRecord) -> Result<()> {
        match record {
            LogRecord::Row(row) => {
                self.note_undo(start, row);
                self.redo_row(start, end, row).await
            }
            LogRecord::Structure(structure) => self.redo_structure(start, end, structure).await,
            LogRecord::Image(image) => self.redo_image(start, end, image).await,
            LogRecord::Commit { transaction } => {
                self.pending.end(*transaction, true, end);
                self.unfinished.remove(transaction);
                self.begun.remove(transaction);
                let deleted = self.deleted.remove(transaction).unwrap_or_default();
                if self.to_purge.len() < TO_PURGE_MAX {
                    self.to_purge.extend(deleted);
                }
                Ok(())
            }
            LogRecord::RolledBack { transaction } => {
                self.unfinished.remove(transaction);
                self.begun.remove(transaction);
                self.deleted.remove(transaction);
                self.pending.end(*transaction, false, end);
                Ok(())
            }
            LogRecord::Attach { database, signature } => {
                // A life begins. A transaction that logged a row was ended in its own, or is
                // undone in this one; a tree may hang on one of which nothing more was logged.
                self.pending.end_all_uncommitted(end);
                self.check_attach(*database, *signature)
            }
            LogRecord::Checkpoint { at } => {
                self.checkpoint_noted = self.checkpoint_noted.max(*at);
                Ok(())
            }
            LogRecord::Detach { .. } | LogRecord::RecoveryUndo | LogRecord::Term => Ok(()),
        }
    }

    fn check_attach(&self, number: u8, signature: crate::logtime::Signature) -> Result<()> {
        match self.databases.get(number) {
            Some(database) if database.header().signature != signature => {
                Err(EngineError::Diverged {
                    path: database.path().to_owned(),
                    why: "the log speaks of a database with another signature under this number"
                        .into(),
                })
            }
            _ => Ok(()),
        }
    }

    fn note_undo(&mut self, start: Lsn, row: &RowRecord) {
        if row.transaction == 0 {
            return;
        }
        self.transaction_max = self.transaction_max.max(row.transaction);
        let tree = Tree { database: row.database, root: row.root, object: row.object, kind: 0 };
        let key = RowKey { tree, key: row.key.clone() };
        self.begun.entry(row.transaction).or_insert(start);
        let undo = self.unfinished.entry(row.transaction).or_default();
        if row.compensation {
            undo.pop();
            if matches!(row.change, RowChange::Delete { .. }) {
                self.to_purge.push(key);
            }
            return;
        }
        if matches!(row.change, RowChange::Delete { .. }) {
            self.deleted.entry(row.transaction).or_default().push(key.clone());
        }
        if let Some(inverse) = row.change.inverse() {
            undo.push(UndoEntry { row: key, inverse });
        }
    }

    fn database(&self, number: u8) -> Result<Rc<Database>> {
        self.databases.get(number).ok_or_else(|| EngineError::no_such_number("database", number))
    }

    /// The page, or what is wrong with it. Errors of the disk itself end recovery.
    async fn load(
        &self,
        database: &Database,
        page: PageNumber,
    ) -> Result<std::result::Result<Rc<Frame>, PageDamage>> {
        if page == 0 || page > database.pages_owned() {
            return Ok(Err(PageDamage::Link("the log names a page outside the file")));
        }
        let key = PageKey { database: database.number(), page };
        let loaded = match self.ahead.arrival(key).await {
            Ok(()) => self.cache.load(database, page, Purpose::Redo).await,
            Err(error) => Err(error),
        };
        match loaded {
            Ok(frame) => Ok(Ok(frame)),
            Err(EngineError::DamagedPage { damage, .. }) => Ok(Err(damage)),
            Err(error) => Err(error),
        }
    }

    async fn redo_row(&mut self, start: Lsn, end: Lsn, row: &RowRecord) -> Result<()> {
        let database = self.database(row.database)?;
        database.raise_dbtime(row.dbtime);
        let key = PageKey { database: row.database, page: row.page };
        if self.damage.contains_key(&key) {
            return Ok(());
        }
        let frame = match self.load(&database, row.page).await? {
            Ok(frame) => frame,
            Err(damage) => return self.note_damage(key, damage),
        };
        if !self.is_due(&frame, key, row.dbtime_before, row.dbtime) {
            return Ok(());
        }
        {
            let mut bytes = frame.bytes_mut(&database);
            let mut page = PageMut::new(&mut bytes, database.size());
            if let Some(damage) = misfit::of_row(&page.view(), row) {
                drop(bytes);
                return self.note_damage(key, damage);
            }
            row.change.apply(&mut page, usize::from(row.line), &row.key);
            page.set_dbtime(row.dbtime);
        }
        self.mark_dirty(&frame, start, end);
        self.statistics.applied += 1;
        Ok(())
    }

    /// Whether a change has still to be made; notes damage if the page's database time makes no
    /// sense.
    fn is_due(&mut self, frame: &Frame, key: PageKey, before: u64, after: u64) -> bool {
        let size = self.databases.get(key.database).map(|database| database.size());
        let Some(size) = size else { return false };
        let found = PageView::new(&frame.bytes(), size).dbtime();
        if found >= after {
            self.statistics.skipped += 1;
            return false;
        }
        if found == before {
            return true;
        }
        let damage = if found < before {
            PageDamage::TooOld { found, expected: before }
        } else {
            PageDamage::TooNew { found, expected: before }
        };
        self.damage.insert(key, damage);
        false
    }

    /// A write of this page that is torn needs its image again, so the checkpoint must not pass
    /// that either.
    fn mark_dirty(&self, frame: &Rc<Frame>, start: Lsn, end: Lsn) {
        let since = self.contents.get(&frame.key()).map_or(start, |content| start.min(*content));
        self.cache.mark_dirty(frame, since, end);
    }

    fn note_damage(&mut self, key: PageKey, damage: PageDamage) -> Result<()> {
        self.damage.insert(key, damage);
        Ok(())
    }

    async fn redo_structure(
        &mut self,
        start: Lsn,
        end: Lsn,
        structure: &StructureRecord,
    ) -> Result<()> {
        let database = self.database(structure.database)?;
        database.raise_dbtime(structure.dbtime);
        if structure.pages_owned > database.pages_owned() {
            database.extend(structure.pages_owned).await?;
        }
        for edits in &structure.pages {
            note_objects(&database, edits);
            self.pending.note(structure.database, edits.page, &edits.edits, start, end);
            self.redo_edits(&database, start, end, structure.dbtime, edits).await?;
        }
        Ok(())
    }

    async fn redo_edits(
        &mut self,
        database: &Rc<Database>,
        start: Lsn,
        end: Lsn,
        dbtime: u64,
        edits: &PageEdits,
    ) -> Result<()> {
        let key = PageKey { database: database.number(), page: edits.page };
        let makes_anew = edits.edits.first().is_some_and(Edit::makes_anew);
        let loaded = if self.damage.contains_key(&key) {
            Err(self.damage[&key].clone())
        } else {
            self.load(database, edits.page).await?
        };
        let frame = match loaded {
            // As with an image: what is on the page is not asked.
            Ok(frame) if makes_anew => frame,
            Ok(frame) => {
                if !self.is_due(&frame, key, edits.dbtime_before, dbtime) {
                    return Ok(());
                }
                frame
            }
            Err(damage) if makes_anew => {
                if damage != PageDamage::Uninitialized {
                    self.note_mended(key);
                }
                self.damage.remove(&key);
                self.blank_frame(database, key)
            }
            Err(damage) => return self.note_damage(key, damage),
        };
        let edited = misfit::edited(&PageView::new(&frame.bytes(), database.size()), edits);
        let mut edited = match edited {
            Ok(edited) => edited,
            Err(damage) => return self.note_damage(key, damage),
        };
        PageMut::new(&mut edited, database.size()).set_dbtime(dbtime);
        frame.bytes_mut(database).copy_from_slice(&edited);
        if makes_anew {
            self.contents.insert(key, start);
        }
        self.mark_dirty(&frame, start, end);
        self.statistics.applied += 1;
        Ok(())
    }

    fn note_mended(&mut self, key: PageKey) {
        self.statistics.mended += 1;
        self.mended.insert(key);
    }

    /// Begins to write the pages that were made again. Until that is done the damage is in the
    /// file: whoever reads it there, as backups and maintenance do, takes a sound database for a
    /// damaged one.
    async fn write_mended(&mut self) -> Result<()> {
        for key in std::mem::take(&mut self.mended) {
            if let Some(database) = self.databases.get(key.database) {
                self.writeback.start_write(&database, key).await?;
            }
        }
        Ok(())
    }

    fn blank_frame(&self, database: &Database, key: PageKey) -> Rc<Frame> {
        match self.cache.peek(key) {
            Some(frame) => frame,
            None => {
                let mut buffer = database.file().allocate(database.size().bytes());
                buffer.fill(0);
                self.cache.install(key, buffer)
            }
        }
    }

    async fn redo_image(&mut self, start: Lsn, end: Lsn, image: &ImageRecord) -> Result<()> {
        let database = self.database(image.database)?;
        let size = database.size();
        let key = PageKey { database: image.database, page: image.page };
        let mut content = vec![0; size.bytes()];
        if image.front.len() + image.back.len() > content.len() {
            return self.note_damage(key, PageDamage::Link("an image longer than a page"));
        }
        content[..image.front.len()].copy_from_slice(&image.front);
        let back_start = content.len() - image.back.len();
        content[back_start..].copy_from_slice(&image.back);
        if let Some(damage) = misfit::of_content(&PageView::new(&content, size)) {
            return self.note_damage(key, damage);
        }
        self.contents.insert(key, start);
        // The image is put back even over a page that looks sound and newer: a torn page of very
        // regular data can have the right checksum. All that was changed since is in the log behind
        // the image.
        let known_damaged = self.damage.remove(&key).is_some();
        let frame = match self.load(&database, image.page).await? {
            Ok(frame) => {
                if known_damaged {
                    self.note_mended(key);
                }
                frame
            }
            Err(_) => {
                self.note_mended(key);
                self.blank_frame(&database, key)
            }
        };
        frame.bytes_mut(&database).copy_from_slice(&content);
        self.mark_dirty(&frame, start, end);
        Ok(())
    }

    /// Stops the background work after an error; the databases can be closed then.
    pub async fn abandon(mut self) {
        self.stop().await;
    }

    /// Stops the cleaner and waits for its writes: nothing may touch these files afterwards.
    async fn stop(&mut self) {
        self.ahead.finish().await;
        self.stop_cleaner();
        (&mut self.cleaner).await;
        while self.writeback.permits.free() < WRITES_OUTSTANDING_MAX {
            let freed = self.cache.freed.notified();
            freed.await;
        }
    }

    fn stop_cleaner(&self) {
        self.stopping.set(true);
        self.cache.needed.notify_all();
    }

    /// Stops the background work and gives everything to activation.
    pub(crate) async fn finish(&mut self) -> Result<Replayed> {
        if let Err(error) = self.check_whole() {
            self.stop().await;
            return Err(error);
        }
        // Root pages may have to be read, which may need frames freed.
        // What hung on a transaction that did not commit is decided; the others are undone
        // after this.
        self.transaction_max = self.transaction_max.max(self.pending.transaction_max());
        self.pending.end_all_uncommitted(Lsn::default());
        let pending = &self.pending;
        self.to_purge.retain(|row| !pending.is_gone(&row.tree));
        let restored = self.restore_kinds().await;
        let written = self.write_mended().await;
        // Which waits for the writes, too.
        self.stop().await;
        restored?;
        written?;
        self.writeback.log.check()?;
        self.check_damage()?;
        Ok(Replayed {
            cache: self.cache.clone(),
            databases: self.databases.clone(),
            unfinished: std::mem::take(&mut self.unfinished),
            to_purge: std::mem::take(&mut self.to_purge),
            pending: std::mem::take(&mut self.pending),
            transaction_max: self.transaction_max,
            last: self.last.take(),
            statistics: self.statistics,
        })
    }

    fn check_damage(&self) -> Result<()> {
        let Some((first, _)) = self.damage.iter().next() else {
            return Ok(());
        };
        let number = first.database;
        let database = self.database(number)?;
        let pages = self.damage.iter().filter(|(key, _)| key.database == number);
        Err(EngineError::DamagedPages {
            path: database.path().to_owned(),
            pages: pages.map(|(key, damage)| (key.page, damage.clone())).collect(),
        })
    }

    /// The log names trees by root and object; their kind is on the root page.
    async fn restore_kinds(&mut self) -> Result<()> {
        let mut kinds: BTreeMap<PageKey, u32> = BTreeMap::new();
        let rows = self.unfinished.values().flatten().map(|entry| entry.row.tree);
        let roots: BTreeSet<PageKey> = rows
            .chain(self.to_purge.iter().map(|row| row.tree))
            .map(|tree| PageKey { database: tree.database, page: tree.root })
            .collect();
        for key in roots {
            let database = self.database(key.database)?;
            if let Ok(frame) = self.load(&database, key.page).await? {
                let flags = PageView::new(&frame.bytes(), database.size()).flags();
                kinds.insert(key, flags & page_flags::TREE_KIND);
            }
        }
        let kind_of = |tree: &Tree| {
            kinds.get(&PageKey { database: tree.database, page: tree.root }).copied().unwrap_or(0)
        };
        for entry in self.unfinished.values_mut().flatten() {
            entry.row.tree.kind = kind_of(&entry.row.tree);
        }
        for row in &mut self.to_purge {
            row.tree.kind = kind_of(&row.tree);
        }
        Ok(())
    }
}

impl Drop for Replayer {
    fn drop(&mut self) {
        // Nobody may wait for the end of what was dropped, and the cleaner holds the files.
        self.stop_cleaner();
    }
}

/// The numbers of objects that are made are in the header of the original, which is not logged.
fn note_objects(database: &Database, edits: &PageEdits) {
    for edit in &edits.edits {
        if let Edit::MadeBy { object, .. } = edit {
            database.note_object(*object);
        }
    }
}

/// A label for reading the log during recovery.
pub fn replay_context(context: Context) -> Context {
    Context { purpose: Purpose::LogRead, ..context }
}

#[cfg(test)]
mod tests;
