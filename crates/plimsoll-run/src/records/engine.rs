//! The transactional engine as a backend: prepared databases, one instance, one transaction for
//! each operation.
//!
//! Every record's content follows from its number and version, so every read is checked against
//! what must be there: a record that differs ends the run as damaged data, whatever the checksums
//! of its page say. A replacement reads the record, counts its version up and writes the content of
//! the new version.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::Place;
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::{Instance, InstanceOptions, RecoveryReport};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{Context, InstanceId, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Purpose, Random};
use plimsoll_prepare::{
    Extent, Plan, PrepareError, PreparedDatabase, RecordShape, Secondary, Sharing, TABLE_NAME,
    WriteOptions, write_database,
};
use plimsoll_workload::Done;
use plimsoll_workload::records::{Commit as WantedCommit, Kind, Operation, Placement, Population};

use super::existing::{self, Existing};
use super::lagged::lagged_copies_of;
use super::ledger::{Ledger, Version};
use super::open::OpenEngine;
use super::spec::{RecordsDatabase, RecordsInstance};
use super::store::{Populations, RecordStore, shared};
use crate::RunError;
use crate::backend::{Audits, Backend, Backups, Crashes, InstanceLevels, Memory, Work, only};
use crate::context::RunContext;
use crate::events::Level;
use crate::outcome::{AuditReport, DatabaseState, RecoveryResult};
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
    populations: RefCell<Populations>,
    /// What its clients were told, where its node may die.
    ledger: RefCell<Option<Rc<Ledger>>>,
}

/// What loads know of an instance, for its next life.
struct Remembered {
    populations: Populations,
    ledger: Option<Rc<Ledger>>,
    records_ever: Vec<u64>,
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
            populations: RefCell::new(shared(populations_of(&databases))),
            ledger: RefCell::new(run.nodes.is_mortal(usize::from(number)).then(Rc::default)),
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
        let ledger = self.ledger.borrow().clone();
        let transaction = self.engine.instance().begin();
        let number = ledger.as_ref().map_or(0, |ledger| ledger.begin());
        let done = database.change(&transaction, operation).await;
        let how = match operation.commit {
            WantedCommit::Durable => Commit::Durable,
            WantedCommit::Lazy => Commit::Lazy,
        };
        match done {
            Ok(changed) => {
                let commit_begun = self.watch.now();
                let told = ledger.as_deref().zip(changed);
                if let Some((ledger, (record, version))) = told {
                    ledger.tries((position, record), number, version);
                }
                transaction.commit(how).await?;
                if let (Some((ledger, (record, version))), Commit::Durable) = (told, how) {
                    ledger.keeps((position, record), number, version);
                }
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
            Err(Failure::WrongContent) => Err(self.wrong_content(position, operation.record)),
        }
    }

    /// Which version of a record there is, if any.
    async fn version_of(&self, (position, record): (usize, u64)) -> Result<Version, RunError> {
        let database = &self.databases[position];
        let transaction = self.engine.instance().begin();
        let key = database.prepared.record_key(record);
        let found = database.read(&transaction, record, &key).await;
        transaction.rollback().await?;
        match found {
            Ok(version) => Ok(Some(version)),
            Err(Failure::NoRecord) => Ok(None),
            Err(Failure::Engine(error)) => Err(error.into()),
            Err(Failure::WrongContent | Failure::NoRoom) => {
                Err(self.wrong_content(position, record))
            }
        }
    }

    fn wrong_content(&self, position: usize, record: u64) -> RunError {
        RunError::Corruption(format!(
            "record {record} of {} is not what was written",
            self.engine.instance().options().databases[position].display()
        ))
    }

    async fn give_up(&self, transaction: Transaction, result: Done) -> Result<Done, RunError> {
        transaction.rollback().await?;
        Ok(result)
    }
}

impl RecordStore for EngineInstance {
    fn populations(&self) -> Populations {
        self.populations.borrow().clone()
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

    fn audits(&self) -> Option<&dyn Audits> {
        self.ledger.borrow().is_some().then_some(self as &dyn Audits)
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
    fn abandon(self: Rc<Self>) -> Work<'static, Result<Memory, RunError>> {
        let instance = only(self);
        let remembered = Remembered {
            records_ever: instance.records_ever().collect(),
            populations: instance.populations.take(),
            ledger: instance.ledger.take(),
        };
        Box::pin(async move {
            instance.engine.abandon().await?;
            Ok(Box::new(remembered) as Memory)
        })
    }

    fn remember(&self, memory: Memory, _lost_count: u64) {
        let Ok(remembered) = memory.downcast::<Remembered>() else { return };
        let Remembered { populations, ledger, records_ever } = *remembered;
        self.populations.replace(populations);
        self.ledger.replace(ledger);
        for (database, ever) in self.databases.iter().zip(records_ever) {
            database.next_record.set(database.next_record.get().max(ever));
        }
    }
}

impl Audits for EngineInstance {
    fn audit(&self) -> Work<'_, Result<AuditReport, RunError>> {
        Box::pin(async move {
            let Some(ledger) = self.ledger.borrow().clone() else {
                return Ok(AuditReport::default());
            };
            let mut report = AuditReport::default();
            let places = ledger.acknowledged();
            report.counts.insert("records_acknowledged", places.len() as u64);
            for place in places {
                let version = self.version_of(place).await?;
                report.findings.extend(ledger.finding(place, version));
            }
            Ok(report)
        })
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

/// A record that was changed, and what it is now.
type Changed = (u64, Version);

impl EngineDatabase {
    async fn change(
        &self,
        transaction: &Transaction,
        operation: &Operation,
    ) -> Result<Option<Changed>, Failure> {
        let number = operation.record;
        let key = self.prepared.record_key(number);
        match operation.kind {
            Kind::Insert if operation.placement == Placement::Beside => {
                self.insert_beside(transaction, number).await.map(Some)
            }
            Kind::Insert => {
                transaction.insert(self.tree, &key, &self.prepared.record(number, 0)).await?;
                Ok(Some((number, Some(0))))
            }
            Kind::Delete => {
                transaction.delete(self.tree, &key).await?;
                Ok(Some((number, None)))
            }
            Kind::Read => self.read(transaction, number, &key).await.map(|_| None),
            Kind::Replace => {
                let version = self.read(transaction, number, &key).await?.wrapping_add(1);
                let record = self.prepared.record(number, version);
                transaction.replace(self.tree, &key, &record).await?;
                Ok(Some((number, Some(version))))
            }
        }
    }

    /// Inserts a record on a vacant place of the leaf that `number` lies on.
    async fn insert_beside(
        &self,
        transaction: &Transaction,
        number: u64,
    ) -> Result<Changed, Failure> {
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
        let number = first + vacant as u64;
        let record = self.prepared.record(number, version);
        transaction.insert(self.tree, &keys[vacant], &record).await?;
        Ok((number, Some(version)))
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
