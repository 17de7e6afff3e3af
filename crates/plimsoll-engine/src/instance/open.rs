//! Opening an instance: lock the files, look at their headers, replay the log if one of them was
//! not shut down cleanly, begin a new generation.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{Files, Handle, Notify, Permits, Purpose, Random};

use super::holds::Holds;
use super::older::check_not_older;
use super::{Instance, InstanceOptions, Recovery, RecoveryReport};
use crate::PageSize;
use crate::batch::PageImages;
use crate::cache::Cache;
use crate::cache::writeback::{WriteAhead, Writeback};
use crate::database::Database;
use crate::databases::Databases;
use crate::error::{EngineError, Result};
use crate::header::{BackupMark, DatabaseState};
use crate::log::Lsn;
use crate::log::attached::Attached;
use crate::log::header::GenerationHeader;
use crate::log::holds::{NamedHolds, read_holds};
use crate::log::reader::{Generation, GenerationFile, LogFolder, LogReader};
use crate::log::record::LogRecord;
use crate::log::writer::Log;
use crate::logtime::{LogTime, Signature};
use crate::pending::PendingTrees;
use crate::replay::{Replayed, check_numbers, replay_context};
use crate::store::{Found, Store, Surroundings};
use crate::table::Schema;
use crate::transaction::{Transaction, UndoEntry};

impl Instance {
    /// Opens the databases, recovering them first if one of them was not shut down cleanly.
    ///
    /// # Errors
    /// See [`EngineError`]; nothing was changed unless recovery had begun.
    pub async fn open(
        files: Files,
        handle: Handle,
        options: InstanceOptions,
        random: &mut Random,
    ) -> Result<(Rc<Instance>, RecoveryReport)> {
        options.check()?;
        let databases = open_databases(&files, &handle, &options).await?;
        let opened = Self::open_with(files, handle, options, random, databases.clone()).await;
        if opened.is_err() {
            close_all(&databases).await;
        }
        opened
    }

    async fn open_with(
        files: Files,
        handle: Handle,
        options: InstanceOptions,
        random: &mut Random,
        databases: Vec<Rc<Database>>,
    ) -> Result<(Rc<Instance>, RecoveryReport)> {
        let reader =
            LogReader::new(files.clone(), options.log.clone(), replay_context(options.context));
        let folder = reader.folder().await?;
        let opening = Opening { files, handle, options };
        if databases.iter().any(|database| needs_recovery(database)) {
            let mut recovery = Recovery::with_databases(opening, databases).await?;
            if let Err(error) = recovery.feed_all().await {
                recovery.stop().await;
                return Err(error);
            }
            return recovery.activate_open(random).await;
        }
        let replayed = nothing_to_replay(&opening, databases, &reader, &folder.generations).await?;
        let ground = Ground { replayed, recovered_from: None, folder };
        activate(opening, random, ground).await
    }
}

/// What an instance is opened with.
pub(super) struct Opening {
    pub files: Files,
    pub handle: Handle,
    pub options: InstanceOptions,
}

/// What it is opened on: the databases as far as they were redone, and the log.
pub(super) struct Ground {
    pub replayed: Replayed,
    /// Where redo started, if there was any.
    pub recovered_from: Option<Lsn>,
    pub folder: LogFolder,
}

pub(super) fn needs_recovery(database: &Database) -> bool {
    database.header().needs_recovery()
}

pub(super) async fn open_databases(
    files: &Files,
    handle: &Handle,
    options: &InstanceOptions,
) -> Result<Vec<Rc<Database>>> {
    let mut databases: Vec<Rc<Database>> = Vec::new();
    for (index, path) in options.databases.iter().enumerate() {
        let number = index as u8 + 1;
        let log_directory = options.log.directory();
        let opened = Database::open(files, handle, path, log_directory, number, options.context);
        let database = match opened.await {
            Ok(database) => Rc::new(database),
            Err(error) => {
                close_all(&databases).await;
                return Err(error);
            }
        };
        let size = databases.first().map_or(database.size(), |first| first.size());
        databases.push(database.clone());
        if database.size() != size {
            close_all(&databases).await;
            return Err(EngineError::BadHeader {
                path: path.clone(),
                why: format!(
                    "its pages have {}, the first database's {size}; all databases of an instance \
                     share one page size",
                    database.size()
                ),
            });
        }
    }
    Ok(databases)
}

pub(super) async fn close_all(databases: &[Rc<Database>]) {
    for database in databases {
        // The error that brought us here is the one to report.
        let _ = database.close().await;
    }
}

/// Where redo has to start: at the beginning of the oldest generation that a header asks for. The
/// checkpoint file may lie further on in it, and may be of another image of the databases or of a
/// history that was given up: it saves the redo of one generation at most, and is not asked.
pub(super) fn redo_start(
    options: &InstanceOptions,
    databases: &[Rc<Database>],
    generations: &[GenerationFile],
) -> Result<Lsn> {
    let dirty = || databases.iter().filter(|database| needs_recovery(database));
    if dirty().next().is_none() {
        return Err(EngineError::BadOption {
            name: "databases",
            why: "all of them were shut down cleanly, and nothing is to be redone: open them"
                .into(),
        });
    }
    check_numbers(dirty())?;
    let oldest =
        dirty().map(|database| database.header().generation_min_required).min().unwrap_or(0);
    let newest =
        dirty().map(|database| database.header().generation_max_required).max().unwrap_or(0);
    for generation in oldest..=newest.max(oldest) {
        if !generations.iter().any(|file| file.generation == generation) {
            return Err(EngineError::LogMissing {
                generation,
                path: options.log.directory().to_owned(),
            });
        }
    }
    Ok(Lsn::new(oldest, 0))
}

/// Fails where one of the databases that are to be redone was written with another log.
pub(super) fn check_stream(generation: &Generation, databases: &[Rc<Database>]) -> Result<()> {
    let is_stranger = |database: &&Rc<Database>| {
        needs_recovery(database) && database.header().log_signature != generation.header.signature
    };
    match databases.iter().find(is_stranger) {
        None => Ok(()),
        Some(database) => Err(EngineError::Diverged {
            path: database.path().to_owned(),
            why: format!("{} belongs to another log stream", generation.path.display()),
        }),
    }
}

/// All databases are clean: only the end of the log matters, so that the stream goes on.
async fn nothing_to_replay(
    opening: &Opening,
    databases: Vec<Rc<Database>>,
    reader: &LogReader,
    generations: &[GenerationFile],
) -> Result<Replayed> {
    let last = match generations.last() {
        Some(file) => Some(reader.read_durably(&file.path).await?),
        None => None,
    };
    if let Some(last) = &last {
        check_not_older(reader, generations, last, &databases).await?;
    }
    let limits = opening.options.cache_limits(databases[0].size().bytes());
    let open = Rc::new(Databases::default());
    databases.into_iter().for_each(|database| open.insert(database));
    Ok(Replayed {
        cache: Rc::new(Cache::new(opening.handle.clock().clone(), limits)),
        databases: open,
        unfinished: Default::default(),
        to_purge: Vec::new(),
        pending: PendingTrees::default(),
        transaction_max: 0,
        last,
        statistics: Default::default(),
    })
}

/// The numbers of flushes begin again at their end, after days of a busy stream. They begin shortly
/// before it, so that every stream and every test gets there.
const FLUSH_FIRST: u32 = u32::MAX - 300;

/// The header of the generation that an instance begins with.
fn next_header(
    opening: &Opening,
    last: Option<&Generation>,
    size: PageSize,
    random: &mut Random,
) -> GenerationHeader {
    let options = &opening.options;
    let created = LogTime::from_utc_ns(opening.handle.clock().anchor().utc_ns);
    match last {
        Some(last) => GenerationHeader {
            generation: last.header.generation + 1,
            previous_created: last.header.created,
            previous_end: last.end(),
            framing: options.framing,
            flush: last.flush.wrapping_add(1),
            circular: options.circular,
            attached: Attached::default(),
            ..last.header.clone()
        },
        None => GenerationHeader {
            generation: 1,
            created,
            previous_created: LogTime::default(),
            previous_end: Lsn::ZERO,
            signature: Signature::new(random.next_u64() as u32, created),
            framing: options.framing,
            page_size: size,
            flush: FLUSH_FIRST,
            circular: options.circular,
            attached: Attached::nothing(),
        },
    }
}

/// Begins a generation behind what was redone, and work on it.
pub(super) async fn activate(
    opening: Opening,
    random: &mut Random,
    ground: Ground,
) -> Result<(Rc<Instance>, RecoveryReport)> {
    let Ground { replayed, recovered_from, folder } = ground;
    let size = replayed.databases.all()[0].size();
    let ended_at = replayed.last.as_ref().map_or(Lsn::ZERO, Generation::end);
    let header = next_header(&opening, replayed.last.as_ref(), size, random);
    let first_generation = header.generation;
    let durable_holds = found_holds(&opening, &folder, header.signature).await?;
    let holds = Holds::new(durable_holds, &folder.generations);
    let log = start_log(&opening, header, &folder.generations).await?;
    let rolled_back = replayed.unfinished.len();
    let report = RecoveryReport {
        recovered: recovered_from.is_some(),
        started_at: recovered_from.unwrap_or(Lsn::ZERO),
        ended_at,
        replay: replayed.statistics,
        rolled_back,
    };
    let checkpoint = recovered_from.unwrap_or(Lsn::new(first_generation, 0));
    let (unfinished, to_purge) = (replayed.unfinished, replayed.to_purge);
    let found = Found {
        cache: replayed.cache,
        databases: replayed.databases,
        log,
        next_transaction: replayed.transaction_max + 1,
        checkpoint,
        pending: replayed.pending,
    };
    let instance = assemble(opening, found, holds);
    let recovered = report.recovered;
    let half_open = HalfOpen(Some(instance.clone()));
    let begun = begin_work(&instance, first_generation, unfinished, recovered).await;
    half_open.disarm();
    if let Err(error) = begun {
        instance.store.log.fail(&error);
        // Stops what runs in the background; as the log has failed, nothing is marked clean.
        let _ = instance.close().await;
        return Err(error);
    }
    instance.store.purge.extend(to_purge);
    Ok((instance, report))
}

/// An instance whose opening is under way. When nobody waits for that any longer, its background
/// work ends and its files are closed.
struct HalfOpen(Option<Rc<Instance>>);

impl HalfOpen {
    /// Whoever opens it has waited to the end.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        let Some(instance) = self.0.take() else { return };
        let handle = instance.store.handle.clone();
        // Nobody is left to be told of an error.
        drop(handle.spawn(async move { instance.abandon().await }));
    }
}

async fn start_log(
    opening: &Opening,
    header: GenerationHeader,
    generations: &[GenerationFile],
) -> Result<Rc<Log>> {
    let found = generations.iter().map(|file| file.generation).collect();
    Log::start(
        opening.files.clone(),
        opening.handle.clone(),
        opening.options.log.clone(),
        opening.options.context,
        header,
        found,
        opening.options.log_buffer_bytes,
    )
    .await
}

/// The holds of clients on this log.
async fn found_holds(
    opening: &Opening,
    folder: &LogFolder,
    signature: Signature,
) -> Result<NamedHolds> {
    if !folder.has_holds {
        return Ok(NamedHolds::new());
    }
    let (names, context) = (&opening.options.log, opening.options.context);
    let oldest = folder.generations.first().map_or(0, |file| file.generation);
    read_holds(&opening.files, names, signature, oldest, context).await
}

/// Puts an instance together, at rest.
fn assemble(opening: Opening, found: Found, holds: Holds) -> Rc<Instance> {
    let Opening { files, handle, options } = opening;
    let log = found.log.clone();
    let surroundings = Surroundings {
        handle: handle.clone(),
        files,
        context: options.context,
        version_store_bytes_max: options.version_store_bytes_max,
        images: if options.page_images { PageImages::Logged } else { PageImages::NotLogged },
        extension_pages: options.extension_pages,
    };
    let store = Rc::new(Store::new(surroundings, found));
    let (databases, spawner) = (store.databases.clone(), handle.clone());
    store.log.note_generations(Box::new(move |generation| {
        Box::pin(note_generation(databases.all(), spawner.clone(), generation))
    }));
    let writeback = Rc::new(Writeback {
        cache: store.cache.clone(),
        log: WriteAhead::Live(log),
        handle,
        permits: Permits::new(options.writes_outstanding_max),
        writes_max: options.writes_outstanding_max,
        waypoint_generations: Cell::new(options.waypoint_generations),
        purpose: Purpose::DatabaseWrite,
    });
    Rc::new(Instance {
        store,
        options,
        writeback,
        cleaner_stopping: Rc::new(Cell::new(false)),
        stop: Rc::new(Notify::new()),
        holds,
        holders: Cell::new(0),
        checkpointing: Cell::new(false),
        checkpointed: Notify::new(),
        tasks: RefCell::default(),
        schema: Schema::default(),
        cleaner: RefCell::default(),
    })
}

/// All databases at once: commits wait for this.
async fn note_generation(
    databases: Vec<Rc<Database>>,
    handle: Handle,
    generation: u32,
) -> Result<()> {
    let note = |database: Rc<Database>| async move { database.note_generation(generation).await };
    let noting: Vec<_> =
        databases.into_iter().map(|database| handle.spawn(note(database))).collect();
    let mut noted = Ok(());
    for database in noting {
        noted = noted.and(database.await);
    }
    noted
}

async fn begin_work(
    instance: &Rc<Instance>,
    generation: u32,
    unfinished: BTreeMap<u64, Vec<UndoEntry>>,
    recovered: bool,
) -> Result<()> {
    attach(instance, generation, recovered).await?;
    for database in instance.store.databases.all() {
        instance.store.note_last_owned(&database).await?;
    }
    instance.start_tasks();
    undo_unfinished(instance, unfinished, recovered).await?;
    instance.release_pending().await?;
    instance.catch_up().await
}

/// Logs that the databases belong to the stream and marks them dirty, before anything else changes
/// them.
async fn attach(instance: &Rc<Instance>, generation: u32, recovered: bool) -> Result<()> {
    let store = &instance.store;
    for database in store.databases.all() {
        let signature = database.header().signature;
        let appended =
            store.log.append(&LogRecord::Attach { database: database.number(), signature });
        store.log.make_durable(appended.end).await?;
        let position = store.log.framing().position(appended.start);
        let now = LogTime::from_utc_ns(store.handle.clock().anchor().utc_ns);
        let (log_signature, was_clean) = (store.log.signature(), !needs_recovery(&database));
        let oldest_needed = if recovered { store.checkpoint.get().generation } else { generation };
        let number = u32::from(database.number());
        database
            .update_header(move |header| {
                header.state = DatabaseState::Dirty;
                header.log_signature = log_signature;
                header.attach_position = position;
                header.attach_time = now;
                header.detach_position = Default::default();
                header.database_id = number;
                if was_clean {
                    header.consistent_position = position;
                    header.generation_min_required = oldest_needed;
                }
                header.generation_max_required = header.generation_max_required.max(generation);
                // Whatever came after the last generation redone was given up.
                header.generation_max_committed = generation;
                header.current_full_backup = BackupMark::default();
            })
            .await?;
    }
    if !recovered {
        instance.write_checkpoint_file(store.checkpoint.get()).await?;
    }
    Ok(())
}

async fn undo_unfinished(
    instance: &Rc<Instance>,
    unfinished: BTreeMap<u64, Vec<UndoEntry>>,
    recovered: bool,
) -> Result<()> {
    if recovered {
        instance.store.log.append(&LogRecord::RecoveryUndo);
    }
    // All are known to the version store before the first is undone: a row of one must not look
    // dead to another.
    let transactions: Vec<Transaction> = unfinished
        .into_iter()
        .map(|(id, undo)| Transaction::unfinished(&instance.store, id, undo))
        .collect();
    for transaction in transactions {
        transaction.rollback().await?;
    }
    Ok(())
}
