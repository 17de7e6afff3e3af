//! Raw files: a preallocated file per database, read and written page by page, and a log of small
//! durable writes.
//!
//! No cache, no transactions, no recovery: what a disk does under the bare pattern of the mix, for
//! comparison with fio and for storage that is to hold something else than a database. A record
//! lives in a page derived from its number. A read reads it, a replace or delete reads and rewrites
//! it, an insert writes it, and a durable commit waits for one aligned block of log. A page that
//! was written while it was read is not judged: it may be half old and half new on sound storage.
//! What this run wrote last of a page is known and held against what a read returns: an older page
//! has a right checksum too.
//!
//! ```text
//! page: | seed 8 | page number 8 | version 8 | filler .. | CRC-64/NVME of everything before 8 |   little-endian
//! ```

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{
    Buffer, Context, Durability, File, Files, InstanceId, OpenMode, Purpose, Random, is_zero,
};
use plimsoll_workload::Done;
use plimsoll_workload::records::{Commit, Kind, Operation, Population};

use super::spec::{RecordsDatabase, RecordsInstance};
use super::store::{Populations, RecordStore, shared};
use crate::RunError;
use crate::backend::{Backend, Work};
use crate::context::RunContext;
use crate::events::Level;
use crate::family::ChecksumReads;
use crate::outcome::{ChecksumReport, DatabaseState};
use crate::sequential::write_through;
use crate::spec::{DatabaseSpec, InstanceSpec};
use crate::stalls::TransactionWatch;

/// The log is a ring of this length.
const LOG_BYTES: u64 = 16 << 20;
const HEADER_BYTES: usize = 24;
const CHECK_BYTES: usize = 8;

/// The version of each page that this run wrote.
pub type Versions = Rc<RefCell<HashMap<u64, u64>>>;

struct RawDatabase {
    file: File,
    path: PathBuf,
    seed: u64,
    pages_count: u64,
    records_ever: u64,
    inserts: Cell<u64>,
    /// Pages that are being written: a second writer would tear them.
    busy: RefCell<BTreeSet<u64>>,
    /// Pages that are being read: how many read them, and whether a write was under way meanwhile.
    readers: RefCell<BTreeMap<u64, (u32, bool)>>,
    written: Versions,
}

/// See the module text.
pub struct RawFiles {
    number: u16,
    page_bytes: usize,
    databases: Vec<RawDatabase>,
    log: File,
    log_block_bytes: u64,
    log_bytes: u64,
    log_position: Cell<u64>,
    watch: TransactionWatch,
    /// The records of each file as all loads know them.
    populations: Populations,
}

impl RawFiles {
    /// What this run wrote to each file, as it goes on.
    pub fn written(&self) -> impl Iterator<Item = (PathBuf, Versions)> {
        self.databases.iter().map(|database| (database.path.clone(), database.written.clone()))
    }

    /// Prepares the files that do not exist and opens all of them.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn open(
        run: &RunContext,
        number: u16,
        spec: &InstanceSpec,
    ) -> Result<RawFiles, RunError> {
        let page_bytes = RecordsInstance::of(spec)?.page_bytes;
        let mut databases = Vec::new();
        for (position, database) in spec.databases.iter().enumerate() {
            databases.push(RawDatabase::open(run, number, position, spec, database).await?);
        }
        let log_path = spec.log_directory.join("raw.log");
        let context = context(number, 0, Purpose::LogFormat);
        if spec.unfinished && run.files.exists(&log_path, context).await? {
            run.files.delete(&log_path, context).await?;
        }
        let log = if run.files.exists(&log_path, context).await? {
            run.files.open(&log_path, OpenMode::Write, context).await?
        } else {
            create_log(run, &log_path, context).await?
        };
        let block = u64::from(log.opened().alignment_bytes.max(512));
        Ok(RawFiles {
            number,
            page_bytes: page_bytes as usize,
            populations: shared(
                databases.iter().map(|file| Population::prepared(file.records_ever)),
            ),
            databases,
            log_block_bytes: block,
            log_bytes: LOG_BYTES / block * block,
            log_position: Cell::new(0),
            watch: TransactionWatch::new(&run.handle, &run.recorder, &run.stalls, number),
            log,
        })
    }

    /// Carries out one operation and its commit.
    ///
    /// # Errors
    /// What the disk reports, or a page that is not the one that was written.
    async fn transaction(&self, position: usize, operation: &Operation) -> Result<Done, RunError> {
        let begun = self.watch.now();
        let database = &self.databases[position];
        let page = page_of(database.seed, operation.record) % database.pages_count;
        let writes = operation.kind != Kind::Read;
        if writes && !database.begin_write(page) {
            return Ok(Done::Conflict);
        }
        let result = self.touch(position, page, operation).await;
        if writes {
            database.busy.borrow_mut().remove(&page);
        }
        result?;
        let commit_begun = self.watch.now();
        if operation.commit == Commit::Durable {
            self.flush_log().await?;
        }
        self.watch.committed(position, operation.kind.name(), begun, commit_begun);
        if operation.kind == Kind::Insert {
            database.inserts.set(database.inserts.get() + 1);
        }
        Ok(Done::Done)
    }

    async fn touch(
        &self,
        position: usize,
        page: u64,
        operation: &Operation,
    ) -> Result<(), RunError> {
        let database = &self.databases[position];
        let number = position as u8 + 1;
        let offset = page * self.page_bytes as u64;
        let mut buffer = database.file.allocate(self.page_bytes);
        if operation.kind != Kind::Insert {
            let context = context(self.number, number, Purpose::DatabaseRead);
            let judges = operation.kind == Kind::Read;
            if judges {
                database.begin_read(page);
            }
            let read = database.file.read(offset, buffer, context).await;
            // Nothing promises that a read sees a write under way wholly or not at all.
            let judges = judges && !database.end_read(page);
            buffer = read?;
            if judges {
                database.judge(page, &buffer)?;
            }
        }
        if operation.kind != Kind::Read {
            let version = database.next_version(page, operation);
            fill_page(&mut buffer, database.seed, page, version);
            let context = context(self.number, number, Purpose::DatabaseWrite);
            database.file.write(offset, buffer, Durability::Volatile, context).await?;
            database.written.borrow_mut().insert(page, version);
        }
        Ok(())
    }

    async fn flush_log(&self) -> Result<(), RunError> {
        let position = self.log_position.get();
        self.log_position.set((position + self.log_block_bytes) % self.log_bytes);
        let mut block = self.log.allocate(self.log_block_bytes as usize);
        block.fill(0);
        block[..8].copy_from_slice(&position.to_le_bytes());
        let context = context(self.number, 0, Purpose::LogWrite);
        self.log.write(position, block, Durability::Durable, context).await?;
        Ok(())
    }
}

impl RecordStore for RawFiles {
    fn populations(&self) -> Populations {
        self.populations.clone()
    }

    fn execute<'a>(
        &'a self,
        database: usize,
        operation: &'a Operation,
    ) -> Work<'a, Result<Done, RunError>> {
        Box::pin(self.transaction(database, operation))
    }
}

impl Backend for RawFiles {
    fn databases(&self) -> Vec<DatabaseState> {
        let state = |database: &RawDatabase| DatabaseState {
            path: database.path.clone(),
            size_bytes: database.pages_count * self.page_bytes as u64,
            records_ever: database.records_ever + database.inserts.get(),
            ..DatabaseState::default()
        };
        self.databases.iter().map(state).collect()
    }

    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(async move {
            for (position, database) in self.databases.iter().enumerate() {
                let context = context(self.number, position as u8 + 1, Purpose::Header);
                database.file.sync(context).await?;
                database.file.close(context).await?;
            }
            self.log.close(context(self.number, 0, Purpose::Header)).await?;
            Ok(())
        })
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl RawDatabase {
    async fn open(
        run: &RunContext,
        number: u16,
        position: usize,
        instance: &InstanceSpec,
        spec: &DatabaseSpec,
    ) -> Result<RawDatabase, RunError> {
        let path = instance.database_path(position);
        let page_bytes = u64::from(RecordsInstance::of(instance)?.page_bytes);
        let record_bytes = RecordsDatabase::of(instance, position)?.record_bytes;
        let pages_count = spec.size_bytes / page_bytes;
        let context = context(number, position as u8 + 1, Purpose::Prepare);
        if spec.existing_records.is_none() {
            if instance.unfinished && run.files.exists(&path, context).await? {
                // Without a log it is not known what raw files hold after a crash.
                run.files.delete(&path, context).await?;
                let text = format!(
                    "{}: an earlier run did not close it; it is made again",
                    path.display()
                );
                run.report(Level::Warning, "prepared_anew", text);
            }
            prepare(run, &path, page_bytes as usize, pages_count, spec.seed, context).await?;
        }
        let file = run.files.open(&path, OpenMode::Write, context).await?;
        if file.opened().length_bytes < pages_count * page_bytes {
            return Err(RunError::Corruption(format!(
                "{} is shorter than it was prepared",
                path.display()
            )));
        }
        Ok(RawDatabase {
            file,
            path,
            seed: spec.seed,
            pages_count,
            records_ever: spec
                .existing_records
                .unwrap_or(spec.size_bytes / u64::from(record_bytes.max(1))),
            inserts: Cell::new(0),
            busy: RefCell::default(),
            readers: RefCell::default(),
            written: Versions::default(),
        })
    }

    /// Holds a page that no write met against what was written there last.
    ///
    /// # Errors
    /// A page that is damaged, at the wrong place, or older than what this run wrote.
    fn judge(&self, page: u64, bytes: &[u8]) -> Result<(), RunError> {
        let path = self.path.display();
        if verdict_on(bytes, self.seed, page) != PageVerdict::Good {
            return Err(RunError::Corruption(format!(
                "page {page} of {path} is not what was written there"
            )));
        }
        let (found, expected) = (version_of(bytes), self.written.borrow().get(&page).copied());
        match expected {
            Some(expected) if found != expected => Err(RunError::Corruption(format!(
                "page {page} of {path} holds version {found}, but version {expected} was \
                 acknowledged: a lost or stale write"
            ))),
            _ => Ok(()),
        }
    }

    /// A version that this page never had: records that are added have numbers of their own over
    /// all runs.
    fn next_version(&self, page: u64, operation: &Operation) -> u64 {
        let written = self.written.borrow().get(&page).copied();
        written.map_or(0, |version| version + 1).max(operation.record + 1)
    }

    /// Takes a page for a write; false when it has one already.
    fn begin_write(&self, page: u64) -> bool {
        if let Some((_, is_overlapped)) = self.readers.borrow_mut().get_mut(&page) {
            *is_overlapped = true;
        }
        self.busy.borrow_mut().insert(page)
    }

    fn begin_read(&self, page: u64) {
        let mut readers = self.readers.borrow_mut();
        let (count, is_overlapped) = readers.entry(page).or_default();
        *count += 1;
        *is_overlapped |= self.busy.borrow().contains(&page);
    }

    /// Answers whether the page was written while it was read. Of several readers the last takes
    /// that with it.
    fn end_read(&self, page: u64) -> bool {
        let mut readers = self.readers.borrow_mut();
        let Some((count, is_overlapped)) = readers.get_mut(&page) else {
            return false;
        };
        *count -= 1;
        let (is_last, is_overlapped) = (*count == 0, *is_overlapped);
        if is_last {
            readers.remove(&page);
        }
        is_overlapped
    }
}

fn context(number: u16, database: u8, purpose: Purpose) -> Context {
    Context { purpose, instance: InstanceId(number), database, intended: None }
}

/// Writes every page once, so that no later write meets an unwritten extent.
async fn prepare(
    run: &RunContext,
    path: &Path,
    page_bytes: usize,
    pages_count: u64,
    seed: u64,
    context: Context,
) -> Result<(), RunError> {
    let file = run.files.open(path, OpenMode::Create, context).await?;
    file.extend(pages_count * page_bytes as u64, context).await?;
    let unit = page_bytes as u64;
    write_through(run, &file, (pages_count * unit, unit), context, |offset, bytes| {
        for (page, bytes) in (offset / unit..).zip(bytes.chunks_exact_mut(page_bytes)) {
            fill_page(bytes, seed, page, 0);
        }
    })
    .await?;
    file.close(context).await?;
    sync_parent(&run.files, path, context).await
}

async fn create_log(run: &RunContext, path: &Path, context: Context) -> Result<File, RunError> {
    let file = run.files.open(path, OpenMode::Create, context).await?;
    file.extend(LOG_BYTES, context).await?;
    write_through(run, &file, (LOG_BYTES, 4096), context, |_, bytes| bytes.fill(0)).await?;
    sync_parent(&run.files, path, context).await?;
    Ok(file)
}

async fn sync_parent(files: &Files, path: &Path, context: Context) -> Result<(), RunError> {
    let parent = path.parent().expect("database files lie in a directory");
    Ok(files.sync_directory(parent, context).await?)
}

/// Scatters record numbers over the pages.
fn page_of(seed: u64, record: u64) -> u64 {
    Random::from_seed(seed ^ record.wrapping_mul(0x9E37_79B9_7F4A_7C15)).next_u64()
}

/// Fills a page with what (seed, page number, version) stand for.
pub(crate) fn fill_page(bytes: &mut [u8], seed: u64, page: u64, version: u64) {
    let end = bytes.len() - CHECK_BYTES;
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&page.to_le_bytes());
    bytes[16..24].copy_from_slice(&version.to_le_bytes());
    Random::from_seed(seed ^ page.rotate_left(32) ^ version).fill(&mut bytes[HEADER_BYTES..end]);
    let check = checksum_of(&bytes[..end]);
    bytes[end..].copy_from_slice(&check.to_le_bytes());
}

fn checksum_of(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes)
}

fn version_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageVerdict {
    Good,
    Bad,
    Elsewhere,
    Empty,
}

fn verdict_on(bytes: &[u8], seed: u64, page: u64) -> PageVerdict {
    let end = bytes.len() - CHECK_BYTES;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    if word(end) != checksum_of(&bytes[..end]) {
        let empty = is_zero(bytes);
        return if empty { PageVerdict::Empty } else { PageVerdict::Bad };
    }
    if word(0) == seed && word(8) == page { PageVerdict::Good } else { PageVerdict::Elsewhere }
}

/// Reads a whole file and judges every page, also whether it is the version that this run wrote
/// last: a load does not read again all that it wrote.
///
/// # Errors
/// What the disk reports, or a wish to stop.
pub async fn checksum(
    run: &RunContext,
    (number, position): (u16, usize),
    instance: &InstanceSpec,
    reads: ChecksumReads,
    written: Versions,
) -> Result<ChecksumReport, RunError> {
    let spec = &instance.databases[position];
    let path = instance.database_path(position);
    let context = context(number, position as u8 + 1, Purpose::Checksum);
    let file = run.files.open(&path, OpenMode::Read, context).await?;
    let page_bytes = RecordsInstance::of(instance)?.page_bytes as usize;
    let step = (reads.read_bytes as usize / page_bytes).max(1) * page_bytes;
    let length = file.opened().length_bytes / page_bytes as u64 * page_bytes as u64;
    let mut report = ChecksumReport { path, ..ChecksumReport::default() };
    let mut pending = std::collections::VecDeque::new();
    let mut offset = 0;
    while offset < length || !pending.is_empty() {
        run.check_stop()?;
        while offset < length && pending.len() < reads.in_flight.max(1) as usize {
            let count = (step as u64).min(length - offset) as usize;
            pending.push_back((offset, file.read(offset, file.allocate(count), context)));
            offset += count as u64;
        }
        let Some((start, read)) = pending.pop_front() else {
            break;
        };
        let buffer: Buffer = read.await?;
        for (index, bytes) in buffer.chunks_exact(page_bytes).enumerate() {
            let page = start / page_bytes as u64 + index as u64;
            let verdict = verdict_on(bytes, spec.seed, page);
            report.note(verdict);
            let expected = written.borrow().get(&page).copied();
            if let (PageVerdict::Good, Some(expected)) = (verdict, expected) {
                report.compare(page, version_of(bytes), expected);
            }
        }
        run.handle.yield_now().await;
    }
    file.close(context).await?;
    if report.bad + report.wrong_page_number > 0 {
        run.report(
            Level::Error,
            "bad_pages",
            format!("{}: damaged pages found", report.path.display()),
        );
    }
    Ok(report)
}

impl ChecksumReport {
    /// A sound page of another version than the one written last is as bad as a damaged one.
    fn compare(&mut self, page: u64, found: u64, expected: u64) {
        if found == expected {
            return;
        }
        self.bad += 1;
        if self.reasons.is_empty() {
            self.reasons.push(format!(
                "page {page} holds version {found}, but version {expected} was acknowledged: a \
                 lost or stale write"
            ));
        }
    }

    fn note(&mut self, verdict: PageVerdict) {
        self.pages_seen += 1;
        match verdict {
            PageVerdict::Good => {}
            PageVerdict::Bad => self.bad += 1,
            PageVerdict::Elsewhere => self.wrong_page_number += 1,
            PageVerdict::Empty => self.uninitialized += 1,
        }
    }
}
