//! The transactional engine as a backend: prepared databases, one instance, one transaction for
//! each operation.
//!
//! Every record's content follows from its number and version, so every read is checked against
//! what must be there: a record that differs ends the run as damaged data, whatever the checksums
//! of its page say. A replacement reads the record, counts its version up and writes the content of
//! the new version.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::Place;
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::flushmap::{flush_map_path, flush_map_path_of_device};
use plimsoll_engine::instance::{Instance, InstanceOptions, RecoveryReport};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::verify::{Depth, HeaderCheck, VerifyOptions, verify};
use plimsoll_io::{Context, InstanceId, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Purpose, Random};
use plimsoll_prepare::{
    Extent, Plan, PrepareError, PreparedDatabase, RecordShape, Secondary, Sharing, TABLE_NAME,
    WriteOptions, write_database,
};
use plimsoll_workload::Done;
use plimsoll_workload::records::{Commit as WantedCommit, Kind, Operation, Placement, Population};

use super::existing::{self, Existing};
use super::lagged::lagged_copies_of;
use super::open::OpenEngine;
use super::spec::{RecordsDatabase, RecordsInstance};
use super::store::{Populations, RecordStore, shared};
use crate::RunError;
use crate::backend::{Backend, Backups, Crashes, InstanceLevels, Work, only};
use crate::context::RunContext;
use crate::events::Level;
use crate::family::ChecksumReads;
use crate::outcome::{ChecksumReport, DatabaseState, RecoveryResult};
use crate::spec::{DatabaseSpec, InstanceSpec};
use crate::stalls::TransactionWatch;

/// Base name of log and checkpoint files.
pub(crate) const LOG_BASE: &str = "E00";
/// Bytes of a record beside its long pad: fixed columns, short pad, lengths.
const RECORD_BYTES_BESIDE_LONG_PAD: u32 = 244;
/// Versions of records that were put on vacant places begin here.
const REPLY_VERSIONS: u32 = 1 << 31;
/// Free pages of a prepared table: the file begins to grow at once, as in the published runs.
const FREE_PAGES: u32 = 16;
const SHORT_PAD_BYTES: u16 = 200;
/// How long a session waits when there is no room for old versions of rows.
const NO_VERSIONS_PAUSE_NS: u64 = 10 * NANOS_PER_MILLISECOND;
/// Where a record holds its version.
const VERSION_PLACE: std::ops::Range<usize> = 20..24;

struct EngineDatabase {
    prepared: PreparedDatabase,
    tree: Tree,
    /// One more than the highest number of a record that was ever used for an insert, whether it
    /// came to stay or not.
    next_record: Cell<u64>,
}

/// See the module text.
pub struct EngineInstance {
    engine: OpenEngine,
    databases: Vec<EngineDatabase>,
    watch: TransactionWatch,
    /// The records of each database as all loads know them.
    populations: Populations,
}

impl EngineInstance {
    /// Prepares the databases that do not exist and opens the instance, recovering it if need be.
    ///
    /// # Errors
    /// What the disk or the engine reports.
    pub async fn open(
        run: &RunContext,
        number: u16,
        spec: &InstanceSpec,
    ) -> Result<EngineInstance, RunError> {
        let settings = RecordsInstance::of(spec)?;
        let mut databases = Vec::new();
        for (position, database) in spec.databases.iter().enumerate() {
            databases.push(open_database(run, number, position, spec, database).await?);
        }
        let mut random = Random::from_seed(spec.databases[0].seed).child("instance");
        let opening = run.handle.now();
        let opened = Instance::open(
            run.files.clone(),
            run.handle.clone(),
            options_of(number, spec, &settings)?,
            &mut random,
        );
        let (instance, recovery) = opened.await?;
        let seconds = (run.handle.now() - opening) as f64 / NANOS_PER_SECOND as f64;
        let recovered = recovery_result(number, &recovery, seconds);
        if let Some(found) = &recovered {
            run.report(
                Level::Warning,
                "recovered",
                format!(
                    "instance {} had not been closed: its log was replayed from generation {} to \
                     {} in {seconds:.1} s, {} transactions \
                     were rolled back",
                    spec.name, found.generation_first, found.generation_last, found.rolled_back
                ),
            );
        }
        match look_for_highest_records(&instance, &databases).await {
            // Where the marker has said something, damage is left to the phase that is to find it,
            // and has better words for it.
            Err(error) if error.is_corruption() && !spec.unfinished => {}
            looked => looked?,
        }
        let limits = instance.store().cache.limits();
        let mebibytes = |pages: usize| {
            format!("{:.1}", pages as f64 * f64::from(settings.page_bytes) / 1048576.0)
        };
        run.report(
            Level::Info,
            "cache_limits",
            format!(
                "instance {}: cache {} to {} MiB; cleaning by pages available: start {} MiB, stop \
                 {} MiB",
                spec.name,
                mebibytes(limits.frames_min),
                mebibytes(limits.frames_max),
                mebibytes(limits.available_start),
                mebibytes(limits.available_stop)
            ),
        );
        Ok(EngineInstance {
            engine: OpenEngine::start(run, instance, &settings, recovered).await?,
            populations: shared(populations_of(&databases)),
            databases,
            watch: TransactionWatch::new(&run.handle, &run.recorder, &run.stalls, number),
        })
    }

    /// How many numbers of records each database has used up: whatever is added has a higher one.
    fn records_ever(&self) -> impl Iterator<Item = u64> {
        self.databases.iter().map(|database| database.next_record.get())
    }

    /// Carries out one transaction, its commit included.
    ///
    /// # Errors
    /// Whatever ends the run.
    async fn transaction(&self, position: usize, operation: &Operation) -> Result<Done, RunError> {
        let database = &self.databases[position];
        let begun = self.watch.now();
        if operation.kind == Kind::Insert && operation.placement == Placement::Own {
            // Numbers are handed out in order and used in any, and some never: a count of inserts
            // would fall behind.
            let next = database.next_record.get().max(operation.record + 1);
            database.next_record.set(next);
        }
        let transaction = self.engine.instance().begin();
        let done = database.change(&transaction, operation).await;
        let how = match operation.commit {
            WantedCommit::Durable => Commit::Durable,
            WantedCommit::Lazy => Commit::Lazy,
        };
        match done {
            Ok(()) => {
                let commit_begun = self.watch.now();
                transaction.commit(how).await?;
                self.watch.committed(position, operation.kind.name(), begun, commit_begun);
                Ok(Done::Done)
            }
            Err(Failure::NoRoom) => self.give_up(transaction, Done::NoRoom).await,
            Err(Failure::NoRecord) => self.give_up(transaction, Done::Missing).await,
            Err(Failure::Engine(EngineError::WriteConflict)) => {
                self.give_up(transaction, Done::Conflict).await
            }
            Err(Failure::Engine(EngineError::VersionStoreFull { .. })) => {
                let conflict = self.give_up(transaction, Done::Conflict).await;
                // Until a transaction ends that still sees old rows, trying again is of no use.
                self.engine.instance().store().handle.sleep(NO_VERSIONS_PAUSE_NS).await;
                conflict
            }
            Err(Failure::Engine(error)) => Err(error.into()),
            Err(Failure::WrongContent) => Err(RunError::Corruption(format!(
                "record {} of {} is not what was written",
                operation.record,
                self.engine.instance().options().databases[position].display()
            ))),
        }
    }

    async fn give_up(&self, transaction: Transaction, result: Done) -> Result<Done, RunError> {
        transaction.rollback().await?;
        Ok(result)
    }
}

impl RecordStore for EngineInstance {
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

impl Backend for EngineInstance {
    fn levels(&self) -> InstanceLevels {
        self.engine.levels()
    }

    fn pages_corrected(&self) -> Vec<u64> {
        self.engine.pages_corrected()
    }

    fn databases(&self) -> Vec<DatabaseState> {
        self.engine.databases(self.records_ever())
    }

    fn recovery(&self) -> Option<RecoveryResult> {
        self.engine.recovery()
    }

    fn backups(&self) -> Option<&dyn Backups> {
        Some(self)
    }

    fn crashes(self: Rc<Self>) -> Option<Rc<dyn Crashes>> {
        Some(self)
    }

    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(only(self).engine.close())
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Backups for EngineInstance {
    fn backup(&self, position: usize, read_bytes: u32) -> Result<Backup, RunError> {
        self.engine.backup(position, read_bytes)
    }

    fn truncate_log(&self, before: u32) -> Work<'_, Result<u32, RunError>> {
        Box::pin(self.engine.truncate_log(before))
    }
}

impl Crashes for EngineInstance {
    fn abandon(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(only(self).engine.abandon())
    }
}

/// The records each database has.
fn populations_of(databases: &[EngineDatabase]) -> impl Iterator<Item = Population> {
    databases.iter().map(|database| {
        let records = database.next_record.get();
        if !database.prepared.has_vacancies() {
            return Population::prepared(records);
        }
        let prepared = database.prepared.clone();
        let appended = prepared.records()..;
        let is_there = move |number| appended.contains(&number) || prepared.has_record(number);
        Population::with_vacancies(records, Arc::new(is_there))
    })
}

/// What opening an instance had to replay, if anything.
pub(crate) fn recovery_result(
    number: u16,
    report: &RecoveryReport,
    seconds: f64,
) -> Option<RecoveryResult> {
    let (first, last) = (report.started_at.generation, report.ended_at.generation);
    report.recovered.then(|| RecoveryResult {
        instance: u32::from(number),
        seconds,
        logs_count: report.replay.generations,
        generation_first: first,
        generation_last: last,
        log_bytes: report.replay.bytes,
        changes_made: report.replay.applied,
        changes_found: report.replay.skipped,
        rolled_back: report.rolled_back as u64,
    })
}

/// Why an operation was not done.
enum Failure {
    NoRecord,
    NoRoom,
    WrongContent,
    Engine(EngineError),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        match error {
            EngineError::RowNotFound => Failure::NoRecord,
            other => Failure::Engine(other),
        }
    }
}

impl EngineDatabase {
    async fn change(
        &self,
        transaction: &Transaction,
        operation: &Operation,
    ) -> Result<(), Failure> {
        let number = operation.record;
        let key = self.prepared.record_key(number);
        match operation.kind {
            Kind::Insert if operation.placement == Placement::Beside => {
                self.insert_beside(transaction, number).await
            }
            Kind::Insert => {
                Ok(transaction.insert(self.tree, &key, &self.prepared.record(number, 0)).await?)
            }
            Kind::Delete => Ok(transaction.delete(self.tree, &key).await?),
            Kind::Read => self.read(transaction, number, &key).await.map(|_| ()),
            Kind::Replace => {
                let version = self.read(transaction, number, &key).await?;
                let record = self.prepared.record(number, version.wrapping_add(1));
                Ok(transaction.replace(self.tree, &key, &record).await?)
            }
        }
    }

    /// Inserts a record on a vacant place of the leaf that `number` lies on.
    async fn insert_beside(&self, transaction: &Transaction, number: u64) -> Result<(), Failure> {
        let per_leaf = self.prepared.per_leaf();
        let first = number - number % per_leaf;
        // Prepared leaves have their vacancies at the end: places of deleted records come first, as
        // sessions know of these.
        let places = first..self.prepared.records().min(first + per_leaf);
        let keys = self.prepared.record_keys(places);
        let Some(vacant) = transaction.first_absent(self.tree, &keys).await? else {
            return Err(Failure::NoRoom);
        };
        // The place may have held a record before: this one differs from every version of that.
        let version = REPLY_VERSIONS | transaction.id() as u32;
        let record = self.prepared.record(first + vacant as u64, version);
        Ok(transaction.insert(self.tree, &keys[vacant], &record).await?)
    }

    /// Reads a record, compares it with what must be there, and says which version it is.
    async fn read(
        &self,
        transaction: &Transaction,
        number: u64,
        key: &[u8],
    ) -> Result<u32, Failure> {
        let found = transaction.get(self.tree, key).await?.ok_or(Failure::NoRecord)?;
        let version = found
            .get(VERSION_PLACE)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_le_bytes);
        match version {
            Some(version) if found == self.prepared.record(number, version) => Ok(version),
            _ => Err(Failure::WrongContent),
        }
    }
}

fn plan_of(instance: &InstanceSpec, position: usize) -> Result<Plan, RunError> {
    let page_size = RecordsInstance::of(instance)?.page_size(&instance.name);
    let page_size = page_size.map_err(RunError::Spec)?;
    let (database, spec) =
        (&instance.databases[position], RecordsDatabase::of(instance, position)?);
    let long_pad = spec.record_bytes.saturating_sub(RECORD_BYTES_BESIDE_LONG_PAD).max(1);
    Ok(Plan {
        database: position as u32 + 1,
        shape: RecordShape {
            short_pad_bytes: SHORT_PAD_BYTES,
            long_pad_bytes: long_pad.min(u32::from(u16::MAX)) as u16,
        },
        compressible_percent: spec.compressible_percent.min(100) as u8,
        // The published test reads one page for a delete or replacement and none for an insert:
        // there is no second tree.
        secondary: Secondary::Absent,
        free_pages: FREE_PAGES,
        vacancy_percent: spec.vacancy_percent.unwrap_or(0).min(100) as u8,
        sharing: spec.sharing.map(|sharing| Sharing {
            seed: sharing.seed,
            leaves_per_million: sharing.leaves_per_million,
        }),
        ..Plan::new(page_size, Extent::Bytes(database.size_bytes), database.seed)
    })
}

/// The database of this place in an instance as it is when just prepared: for disks that generate
/// it instead of storing it.
///
/// # Errors
/// When its plan is impossible.
pub fn prepared_database(
    instance: &InstanceSpec,
    position: usize,
) -> Result<PreparedDatabase, RunError> {
    let plan = plan_of(instance, position)?;
    PreparedDatabase::new(plan).map_err(|error| RunError::Spec(error.to_string()))
}

async fn open_database(
    run: &RunContext,
    number: u16,
    position: usize,
    instance: &InstanceSpec,
    spec: &DatabaseSpec,
) -> Result<EngineDatabase, RunError> {
    let path = instance.database_path(position);
    let prepared = prepared_database(instance, position)?;
    let context = Context {
        purpose: Purpose::Header,
        instance: InstanceId(number),
        database: position as u8 + 1,
        intended: None,
    };
    let found = match spec.existing_records {
        Some(_) => {
            existing::check(run, &path, &prepared, context).await.map(|()| Existing::Whole)?
        }
        None if instance.unfinished => existing::examine(run, &path, &prepared, context).await?,
        None => Existing::Absent,
    };
    if found == Existing::Absent {
        let options = WriteOptions { context, ..WriteOptions::default() };
        let write = write_database(&run.files, &run.handle, &path, &prepared, &options);
        let report = until_stop(run, write).await?.map_err(|error| match error {
            PrepareError::Disk(error) => RunError::Disk(error),
            PrepareError::Blocks { .. } => RunError::Spec(error.to_string()),
        })?;
        let seconds = report.elapsed_ns as f64 / 1e9;
        run.report(
            Level::Info,
            "prepared",
            format!(
                "{}: {} records, {} MiB in {seconds:.1} s",
                path.display(),
                prepared.records(),
                report.bytes >> 20
            ),
        );
    }
    let place = place_of_table(run, &path).await?;
    Ok(EngineDatabase {
        next_record: Cell::new(spec.existing_records.unwrap_or(0).max(prepared.records())),
        prepared,
        tree: Tree {
            database: position as u8 + 1,
            root: place.root,
            object: place.object,
            kind: 0,
        },
    })
}

/// What the marker says of the records can be too low: after a run that was not closed it says
/// nothing, and version 0.1 counted inserts. The highest key there is tells it.
async fn look_for_highest_records(
    instance: &Instance,
    databases: &[EngineDatabase],
) -> Result<(), EngineError> {
    for database in databases {
        let transaction = instance.begin();
        let mut cursor =
            Cursor::new(&transaction, database.tree, KeyRange::all(), Direction::Backward);
        let last = cursor.next().await?;
        transaction.commit(Commit::Lazy).await?;
        let highest = last.and_then(|(key, _)| database.prepared.record_of_key(&key));
        let ever = highest.map_or(0, |record| record + 1);
        database.next_record.set(database.next_record.get().max(ever));
    }
    Ok(())
}

/// Waits for a long piece of work, or gives it up when the run should stop.
pub(crate) async fn until_stop<T>(
    run: &RunContext,
    work: impl Future<Output = T>,
) -> Result<T, RunError> {
    let done = Cell::new(None);
    let working = async { done.set(Some(work.await)) };
    let watching = async {
        // Ends only when the run should stop.
        while run.sleep_until(u64::MAX).await.is_ok() {}
    };
    plimsoll_io::either(working, watching).await;
    done.into_inner().ok_or(RunError::Stopped)
}

/// Asks the database's own catalog where the table lies, so that a file that is something else is
/// noticed here.
async fn place_of_table(run: &RunContext, path: &std::path::Path) -> Result<Place, RunError> {
    let reader = DatabaseReader::open(&run.files, &run.handle, path, WhenDirty::Read).await;
    let reader = reader.map_err(|error| RunError::Corruption(error.to_string()))?;
    let table = reader.table(TABLE_NAME).ok_or_else(|| {
        RunError::Corruption(format!(
            "{} has no table {TABLE_NAME}; it was not prepared by Plimsoll",
            path.display()
        ))
    })?;
    Ok(table.place)
}

/// How the engine is set up for an instance.
///
/// # Errors
/// When a value is unknown.
pub(crate) fn options_of(
    number: u16,
    spec: &InstanceSpec,
    settings: &RecordsInstance,
) -> Result<InstanceOptions, RunError> {
    let framing = match settings.log_framing.as_str() {
        "sector_512" => Framing::Sectors512,
        "segment_4096" => Framing::Segments4096,
        other => {
            return Err(RunError::Spec(format!(
                "log_framing of instance {} is {other}; write sector_512 or segment_4096",
                spec.name
            )));
        }
    };
    lagged_copies_of(settings)
        .map_err(|error| RunError::Spec(format!("instance {}: {error}", spec.name)))?;
    Ok(InstanceOptions {
        context: Context { instance: InstanceId(number), ..Context::default() },
        log: LogNames::new(&spec.log_directory, LOG_BASE),
        databases: (0..spec.databases.len()).map(|position| spec.database_path(position)).collect(),
        framing,
        circular: settings.circular_log,
        log_buffer_bytes: settings.log_buffer_bytes,
        cache_bytes_min: settings.cache_bytes_min,
        cache_bytes_max: settings.cache_bytes_max,
        checkpoint_depth_bytes: settings.checkpoint_depth_bytes,
        hold_checkpoint: settings.hold_checkpoint.unwrap_or(false),
        version_store_bytes_max: settings.version_store_bytes_max as usize,
        page_images: settings.page_images,
        extension_pages: settings.extension_pages,
        waypoint_generations: settings.waypoint_generations,
        writes_outstanding_max: settings.writes_outstanding_max as usize,
    })
}

/// Reads a whole closed database and judges every page, both copies of the header, its length, and
/// that what is in use was written.
///
/// # Errors
/// When the file cannot be read at all, or a wish to stop.
pub async fn checksum(
    run: &RunContext,
    position: usize,
    instance: &InstanceSpec,
    reads: ChecksumReads,
) -> Result<ChecksumReport, RunError> {
    let path = instance.database_path(position);
    let options = VerifyOptions {
        depth: Depth::Space,
        read_bytes: (reads.read_bytes as usize).next_multiple_of(32 * 1024),
        reads_outstanding: reads.in_flight.max(1) as usize,
        flush_maps: vec![
            flush_map_path(&path),
            flush_map_path_of_device(&instance.log_directory, position as u8 + 1),
        ],
        ..VerifyOptions::default()
    };
    let paths = [path.clone()];
    let work = verify(&run.files, &run.handle, &paths, &options);
    let mut report = until_stop(run, work).await?;
    let file = report.files.remove(0);
    if let Some(error) = file.error {
        return Err(RunError::Corruption(error));
    }
    for finding in &file.findings {
        let text = format!("{}: page {}: {:?}", path.display(), finding.page, finding.class);
        run.report(Level::Error, "bad_pages", text);
    }
    for reason in &file.reasons {
        let text = format!("{}: {reason}", path.display());
        run.report(Level::Error, "bad_pages", text);
    }
    let headers_bad = file.headers.iter().filter(|check| **check == HeaderCheck::Bad);
    let beside_pages =
        headers_bad.count() as u64 + file.pages_missing + file.blank_in_use + file.lost;
    // A piece of a page, or a file without any, is a damaged page, too.
    let others = u64::from(file.trailing_bytes > 0) + u64::from(file.pages_seen == 0);
    let pages_bad = file.bad + file.unreadable + beside_pages + others;
    Ok(ChecksumReport {
        path,
        pages_seen: file.pages_seen,
        bad: pages_bad.max(u64::from(!file.reasons.is_empty())),
        reasons: file.reasons,
        correctable: file.correctable,
        wrong_page_number: file.wrong_page_number,
        uninitialized: file.uninitialized,
    })
}
