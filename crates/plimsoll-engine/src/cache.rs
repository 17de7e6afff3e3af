//! The page cache: frames, replacement, the pool of available frames, and who is dirty since when.
//!
//! A frame is found by database and page. It may be dropped when only the cache holds it and it is
//! clean, so holding an `Rc<Frame>` is a pin. The page that was not touched for longest goes first.
//! Touches closer together than a short window count as one; a page touched again after that is
//! kept longer, as in ESE: it counts as touched later by as long as pages touched once stay at
//! present, at most 100 s. (Plain LRU-2 would keep every page that was ever touched twice until all
//! others are gone.) Dirty frames are ordered by the log position that first dirtied them: the
//! smallest holds the checkpoint back.
//!
//! Limits: the cache grows to its maximum on demand. A reader that finds no free frame waits for
//! the cleaner: a page fault stall. Making a brand-new page never waits and may exceed the maximum
//! by the few pages of one structural change. Where operations that wait hold every frame, one of
//! them at a time goes beyond the maximum by the pages that it needs at once (`turns`).

mod turns;
pub mod writeback;

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use plimsoll_io::{Buffer, Clock, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, Notify, Purpose};

use crate::PageNumber;
use crate::database::Database;
use crate::error::{EngineError, Result};
use crate::log::Lsn;

pub(crate) use turns::Claim;
use turns::Turns;

/// Touches closer together than this count as one.
const CORRELATED_TOUCH_NS: Nanos = 128 * NANOS_PER_MILLISECOND;

/// Which page of which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageKey {
    /// Database number.
    pub database: u8,
    /// Page.
    pub page: PageNumber,
}

/// A hash that is the same in every run. Nothing iterates over the map.
#[derive(Default)]
struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u8(*byte));
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517C_C1B7_2722_0A95);
        self.0 ^= self.0 >> 32;
    }
}

/// The longest that a page touched again is kept longer.
const STAY_NS_MAX: Nanos = 100 * NANOS_PER_SECOND;

type FrameMap = HashMap<PageKey, Rc<Frame>, BuildHasherDefault<FixedHasher>>;

/// One page in memory.
pub struct Frame {
    key: PageKey,
    bytes: RefCell<Buffer>,
    dirty_since: Cell<Option<Lsn>>,
    /// The first record behind which redo has to start for what was changed since the page was last
    /// given to the disk.
    changed_since_copy: Cell<Option<Lsn>>,
    /// The page may be written once the log is durable up to here.
    changed_upto: Cell<Lsn>,
    changes: Cell<u64>,
    writing: Cell<bool>,
    last_touch: Cell<Nanos>,
    touched_again: Cell<bool>,
    /// Smaller is dropped sooner.
    rank: Cell<Nanos>,
    /// The log holds the whole content of this page from after its latest write on.
    imaged: Cell<bool>,
    /// It was read beyond the maximum of the cache.
    beyond: Cell<bool>,
}

impl Frame {
    /// Which page this is.
    pub fn key(&self) -> PageKey {
        self.key
    }

    /// The page, for reading.
    pub fn bytes(&self) -> Ref<'_, Buffer> {
        self.bytes.borrow()
    }

    /// The page, for a change that the log already describes. One that is being written from where
    /// it lies is copied: what the disk gets stays what it was.
    pub fn bytes_mut(&self, database: &Database) -> RefMut<'_, Buffer> {
        let mut bytes = self.bytes.borrow_mut();
        if bytes.is_shared() {
            let mut own = database.file().allocate(bytes.len());
            own.copy_from_slice(&bytes);
            *bytes = own;
        }
        bytes
    }

    /// Whether it differs from the file.
    pub fn is_dirty(&self) -> bool {
        self.dirty_since.get().is_some()
    }

    /// Whether the log holds the whole content of this page, written after its latest write to the
    /// file began.
    pub fn is_imaged(&self) -> bool {
        self.imaged.get()
    }

    /// Notes that it does, or no longer does.
    pub fn set_imaged(&self, imaged: bool) {
        self.imaged.set(imaged);
    }

    /// Whether it was read beyond the maximum: only the operation whose turn that was may hold it.
    pub(crate) fn is_beyond(&self) -> bool {
        self.beyond.get()
    }

    fn touch(&self, now: Nanos, stay_ns: Nanos) {
        let last = self.last_touch.replace(now);
        if now.saturating_sub(last) > CORRELATED_TOUCH_NS {
            self.touched_again.set(true);
        }
        let kept_longer_ns = if self.touched_again.get() { stay_ns } else { 0 };
        self.rank.set(self.rank.get().max(now + kept_longer_ns));
    }
}

/// Sizes of the cache, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Kept even when idle; only reported, as the cache never shrinks below what it uses.
    pub frames_min: usize,
    /// Exceeded only by new pages of a structural change and, where operations that wait hold all
    /// frames, by the pages that one of them needs at once.
    pub frames_max: usize,
    /// The cleaner starts when fewer frames than this are available.
    pub available_start: usize,
    /// And stops when this many are.
    pub available_stop: usize,
}

impl CacheLimits {
    /// Limits for a cache of `min` to `max` bytes, thresholds at 1 % and 2 % of the maximum.
    pub fn from_bytes(bytes_min: u64, bytes_max: u64, page_bytes: usize) -> Self {
        let frames_max = ((bytes_max / page_bytes as u64) as usize).max(16);
        Self {
            frames_min: (bytes_min / page_bytes as u64) as usize,
            frames_max,
            available_start: (frames_max / 100).max(2),
            available_stop: (frames_max / 50).max(4),
        }
    }
}

/// Counters of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Lookups that found the page.
    pub hits: u64,
    /// Lookups that had to read.
    pub misses: u64,
    /// Reads that waited because no frame was available.
    pub page_fault_stalls: u64,
    /// Frames dropped.
    pub evictions: u64,
    /// Times the cleaner ran with more lag than the checkpoint depth allows.
    pub urgent_passes: u64,
}

/// See the module text.
pub struct Cache {
    clock: Rc<Clock>,
    limits: CacheLimits,
    frames: RefCell<FrameMap>,
    loading: RefCell<BTreeMap<PageKey, Rc<Notify>>>,
    dirty: RefCell<BTreeSet<(Lsn, PageKey)>>,
    replacement: RefCell<BinaryHeap<Reverse<(Nanos, PageKey)>>>,
    /// How long pages touched once stay at present.
    stay_ns: Cell<Nanos>,
    frames_highest: Cell<usize>,
    reserved: Cell<usize>,
    turns: Turns,
    abandoned: RefCell<Option<EngineError>>,
    /// Frames were freed or cleaned.
    pub(crate) freed: Notify,
    /// Frames are needed.
    pub(crate) needed: Notify,
    statistics: Cell<CacheStatistics>,
}

impl Cache {
    /// An empty cache.
    pub fn new(clock: Rc<Clock>, limits: CacheLimits) -> Self {
        Self {
            clock,
            limits,
            frames: RefCell::default(),
            loading: RefCell::default(),
            dirty: RefCell::default(),
            replacement: RefCell::default(),
            stay_ns: Cell::new(0),
            frames_highest: Cell::new(0),
            reserved: Cell::new(0),
            turns: Turns::default(),
            abandoned: RefCell::default(),
            freed: Notify::new(),
            needed: Notify::new(),
            statistics: Cell::default(),
        }
    }

    /// Its limits.
    pub fn limits(&self) -> CacheLimits {
        self.limits
    }

    /// Its counters.
    pub fn statistics(&self) -> CacheStatistics {
        self.statistics.get()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut CacheStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// Frames in use.
    pub fn frames_used(&self) -> usize {
        self.frames.borrow().len()
    }

    /// The cache size as Jetstress reports it: it grows and does not shrink.
    pub fn frames_highest(&self) -> usize {
        self.frames_highest.get().max(self.limits.frames_min.min(self.limits.frames_max))
    }

    /// Frames that can be had without dropping anything.
    pub fn available(&self) -> usize {
        self.limits.frames_max.saturating_sub(self.frames_used() + self.reserved.get())
    }

    /// Frames that differ from their files.
    pub fn dirty_frames(&self) -> usize {
        self.dirty.borrow().len()
    }

    /// The log position of the oldest change not yet in a file.
    pub fn oldest_dirty(&self) -> Option<Lsn> {
        self.dirty.borrow().first().map(|(lsn, _)| *lsn)
    }

    /// The page if it is in memory.
    pub fn resident(&self, key: PageKey) -> Option<Rc<Frame>> {
        let frame = self.frames.borrow().get(&key).cloned()?;
        frame.touch(self.clock.recent(), self.stay_ns.get());
        self.count(|statistics| statistics.hits += 1);
        Some(frame)
    }

    /// The page if it is in memory, without counting as use.
    pub fn peek(&self, key: PageKey) -> Option<Rc<Frame>> {
        self.frames.borrow().get(&key).cloned()
    }

    /// The place in line of an operation that loads pages.
    pub(crate) fn claim(&self) -> Claim<'_> {
        Claim::new(&self.turns, [&self.freed, &self.needed])
    }

    /// The page, read from its file if need be. Concurrent callers share one read.
    pub async fn load(
        &self,
        database: &Database,
        page: PageNumber,
        purpose: Purpose,
    ) -> Result<Rc<Frame>> {
        self.load_for(&self.claim(), database, page, purpose).await
    }

    /// The same for an operation that loads several pages and has one place in line.
    pub(crate) async fn load_for(
        &self,
        claim: &Claim<'_>,
        database: &Database,
        page: PageNumber,
        purpose: Purpose,
    ) -> Result<Rc<Frame>> {
        let key = PageKey { database: database.number(), page };
        loop {
            if let Some(frame) = self.resident(key) {
                return Ok(frame);
            }
            let loading = self.loading.borrow().get(&key).cloned();
            match loading {
                // Who has the turn does not wait for another's read, which may wait for a frame.
                Some(loading) if !claim.has_turn() => loading.notified().await,
                _ => {
                    if let Some(frame) = self.load_first(claim, database, key, purpose).await? {
                        return Ok(frame);
                    }
                }
            }
        }
    }

    /// Reads a page and installs it; `None` if somebody else has installed it meanwhile.
    async fn load_first(
        &self,
        claim: &Claim<'_>,
        database: &Database,
        key: PageKey,
        purpose: Purpose,
    ) -> Result<Option<Rc<Frame>>> {
        let loading = LoadGuard::new(self, key);
        self.count(|statistics| statistics.misses += 1);
        let reserved = self.reserve(claim).await?;
        let read = database.read_run(key.page, 1, purpose).await;
        // A page that was made meanwhile is newer than what was read. It may have been written and
        // dropped again, too: what was read does not even say that it is damaged.
        if loading.is_overtaken() {
            return Ok(None);
        }
        let mut buffer = read?;
        database.accept_page(key.page, &mut buffer, purpose != Purpose::Redo)?;
        let frame = self.install(key, buffer);
        frame.beyond.set(reserved.is_beyond);
        Ok(Some(frame))
    }

    /// Waits for a free frame, or for leave to go beyond the maximum, and holds it until the guard
    /// is dropped.
    async fn reserve(&self, claim: &Claim<'_>) -> Result<Reservation<'_>> {
        let must_wait = || self.available() == 0 || claim.is_behind_turn();
        let mut is_beyond = false;
        if must_wait() {
            self.count(|statistics| statistics.page_fault_stalls += 1);
            claim.enter_line();
            while must_wait() && !claim.is_granted() {
                if let Some(error) = &*self.abandoned.borrow() {
                    return Err(error.clone());
                }
                let freed = self.freed.notified();
                self.needed.notify_all();
                freed.await;
            }
            is_beyond = claim.leave_line() && self.available() == 0;
        }
        self.reserved.set(self.reserved.get() + 1);
        if self.available() < self.limits.available_start {
            self.needed.notify_all();
        }
        Ok(Reservation { cache: self, is_beyond })
    }

    /// Lets one that waits go beyond the maximum if no frame can be freed: the cleaner has found
    /// nothing to drop, and no write is under way (`turns`).
    fn let_one_beyond(&self) {
        // Whoever reads a page goes on by itself, and wakes those in line.
        let none_comes = self.available() == 0 && self.reserved.get() == 0;
        if none_comes && self.turns.grant(|| self.is_all_held()) {
            self.freed.notify_all();
        }
    }

    /// Whether each frame is held. One that the cleaner passed over, as it was touched again, need
    /// not be.
    fn is_all_held(&self) -> bool {
        let (frames, replacement) = (self.frames.borrow(), self.replacement.borrow());
        let mut noted = replacement.iter().filter_map(|noted| frames.get(&noted.0.1));
        noted.all(|frame| Rc::strong_count(frame) > 1)
    }

    /// Tells waiting readers that no frame will be freed any more, and why.
    pub(crate) fn abandon(&self, error: EngineError) {
        *self.abandoned.borrow_mut() = Some(error);
        self.freed.notify_all();
    }

    /// Puts a page into the cache.
    pub fn install(&self, key: PageKey, buffer: Buffer) -> Rc<Frame> {
        let now = self.clock.recent();
        let frame = Rc::new(Frame {
            key,
            bytes: RefCell::new(buffer),
            dirty_since: Cell::new(None),
            changed_since_copy: Cell::new(None),
            changed_upto: Cell::new(Lsn::ZERO),
            changes: Cell::new(0),
            writing: Cell::new(false),
            last_touch: Cell::new(now),
            touched_again: Cell::new(false),
            rank: Cell::new(now),
            imaged: Cell::new(false),
            beyond: Cell::new(false),
        });
        self.replacement.borrow_mut().push(Reverse((frame.rank.get(), key)));
        self.frames.borrow_mut().insert(key, frame.clone());
        if let Some(overtaken) = self.loading.borrow_mut().remove(&key) {
            overtaken.notify_all();
        }
        self.frames_highest.set(self.frames_highest.get().max(self.frames_used()));
        frame
    }

    /// Notes a change that the log describes from `start` to `end`.
    pub fn mark_dirty(&self, frame: &Rc<Frame>, start: Lsn, end: Lsn) {
        frame.changes.set(frame.changes.get() + 1);
        frame.changed_upto.set(frame.changed_upto.get().max(end));
        let since_copy = frame.changed_since_copy.get();
        frame.changed_since_copy.set(Some(since_copy.map_or(start, |since| since.min(start))));
        if frame.dirty_since.get().is_none() {
            frame.dirty_since.set(Some(start));
            self.dirty.borrow_mut().insert((start, frame.key));
        }
    }

    /// A page that was changed while an older state of it was written is dirty since the first of
    /// these changes. In redo that may lie before records that were redone already: the record that
    /// gives the page its content counts, which another torn write of it needs again.
    fn stay_dirty(&self, frame: &Frame) {
        if let Some(since) = frame.changed_since_copy.get() {
            frame.dirty_since.set(Some(since));
            self.dirty.borrow_mut().insert((since, frame.key));
        }
    }

    fn mark_clean(&self, frame: &Frame) {
        if let Some(since) = frame.dirty_since.take() {
            self.dirty.borrow_mut().remove(&(since, frame.key));
        }
    }

    /// Drops all frames of a database; they must be clean or of no further use.
    pub fn forget_database(&self, database: u8) {
        self.dirty.borrow_mut().retain(|(_, key)| key.database != database);
        self.frames.borrow_mut().retain(|key, _| key.database != database);
        self.freed.notify_all();
    }

    /// Takes the frame that should go first out of the replacement order. Pinned frames are put
    /// back.
    fn next_victim(&self) -> Option<Rc<Frame>> {
        let frames = self.frames.borrow();
        let mut replacement = self.replacement.borrow_mut();
        let mut attempts = replacement.len();
        let mut put_back = Vec::new();
        let mut victim = None;
        while attempts > 0 {
            attempts -= 1;
            let Some(mut first) = replacement.peek_mut() else {
                break;
            };
            let Reverse((noted, key)) = *first;
            let Some(frame) = frames.get(&key) else {
                PeekMut::pop(first);
                continue;
            };
            if frame.rank.get() > noted {
                // Touched since it was noted: it moves back within the order, which is cheaper than
                // to leave and come again.
                *first = Reverse((frame.rank.get(), key));
                continue;
            }
            PeekMut::pop(first);
            // The map is one holder: anything above is somebody's pin.
            if Rc::strong_count(frame) > 1 || frame.writing.get() {
                put_back.push(Reverse((noted, key)));
                continue;
            }
            victim = Some(frame.clone());
            break;
        }
        replacement.extend(put_back);
        victim
    }

    fn drop_frame(&self, frame: Rc<Frame>) {
        if !frame.touched_again.get() {
            let stay_ns = self.clock.recent().saturating_sub(frame.last_touch.get());
            self.stay_ns.set(stay_ns.min(STAY_NS_MAX));
        }
        self.frames.borrow_mut().remove(&frame.key);
        self.count(|statistics| statistics.evictions += 1);
    }

    fn keep_frame(&self, frame: &Frame) {
        self.replacement.borrow_mut().push(Reverse((frame.rank.get(), frame.key)));
    }
}

struct Reservation<'a> {
    cache: &'a Cache,
    is_beyond: bool,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.cache.reserved.set(self.cache.reserved.get() - 1);
        self.cache.freed.notify_all();
    }
}

struct LoadGuard<'a> {
    cache: &'a Cache,
    key: PageKey,
    loaded: Rc<Notify>,
}

impl<'a> LoadGuard<'a> {
    fn new(cache: &'a Cache, key: PageKey) -> Self {
        let loaded = Rc::new(Notify::new());
        let overtaken = cache.loading.borrow_mut().insert(key, loaded.clone());
        // Those that wait for a read that waits for a frame now wait for this one.
        overtaken.inspect(|overtaken| overtaken.notify_all());
        Self { cache, key, loaded }
    }

    /// Whether somebody else has installed the page since the load began.
    fn is_overtaken(&self) -> bool {
        let loading = self.cache.loading.borrow();
        !loading.get(&self.key).is_some_and(|loading| Rc::ptr_eq(loading, &self.loaded))
    }
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        if !self.is_overtaken() {
            self.cache.loading.borrow_mut().remove(&self.key);
        }
        self.loaded.notify_all();
    }
}
