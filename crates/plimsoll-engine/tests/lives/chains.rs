//! Chains of lives on one set of files: opened, killed, closed, cut off from power, and put back
//! from a backup taken in between, beside newer files or with their log. Meanwhile rows come and go
//! with numbers from a counter, shared long values and cut keys, an index is dropped and made
//! again, an older reader stays, and a client hears the log from where it stopped in the life
//! before, with a durable hold on what it has not heard.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::log::header::GenerationHeader;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::log::tail::LogTail;
use plimsoll_engine::log::{HEADER_BYTES, Lsn};
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, NewIndex, Table, column_flags};
use plimsoll_io::{
    Context, Files, Handle, Loss, MemoryDisk, MemoryOptions, NANOS_PER_MILLISECOND, Random,
};

use crate::life::*;
use crate::support::*;

const TABLE: &str = "Chain";
const INDEX: &str = "by folder";
const CLIENT: &str = "who hears the log";
const LIVES: u64 = 7;
const STEPS_MAX: u64 = 60;
const IDS: u64 = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    number: i32,
    folder: i32,
    body: Option<Vec<u8>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    is_there: bool,
    rows: BTreeMap<i32, Row>,
}

/// The log as a client has heard it, over all lives.
#[derive(Default)]
struct Heard {
    records: Vec<(Lsn, LogRecord)>,
    upto: Option<Lsn>,
}

#[derive(Clone)]
struct Copy {
    database: Vec<u8>,
    log: BTreeMap<PathBuf, Vec<u8>>,
    generation_first: u32,
    state: State,
}

/// What was committed in order, how much of it is durable, and what was seen beside it.
#[derive(Default)]
struct Books {
    states: Vec<State>,
    durable: usize,
    /// Numbers of rows whose commit was durable.
    numbers: BTreeSet<i32>,
    heard: Heard,
    copy: Option<Copy>,
    met: BTreeMap<&'static str, u64>,
}

impl Books {
    fn last(&self) -> State {
        self.states.last().expect("a state").clone()
    }

    fn note_durable(&mut self) {
        self.durable = self.states.len() - 1;
        let numbers: Vec<i32> = self.last().rows.values().map(|row| row.number).collect();
        self.numbers.extend(numbers);
    }

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }
}

type SharedBooks = Rc<RefCell<Books>>;

fn setup_of(seed: u64) -> Setup {
    Setup {
        cache_frames: if seed.is_multiple_of(2) { 64 } else { 300 },
        page_images: !seed.is_multiple_of(3),
        extension_pages: 16,
        checkpoint_generations: 1,
        ..Setup::default()
    }
}

fn table() -> Table {
    Table::builder(TABLE)
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("number", ColumnType::Long).flagged(column_flags::AUTO_INCREMENT))
        .column(Column::new("folder", ColumnType::Long))
        .column(Column::new("subject", ColumnType::LongText))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .duplicates(INDEX, &["folder"])
        .index(NewIndex::unique("by subject", &["subject"]))
        .build()
        .unwrap()
}

/// Longer than a key may be, and another for each row at its beginning.
fn subject(id: i32) -> Vec<u8> {
    let mut subject = format!("subject {id} ").into_bytes();
    subject.resize(400 + id as usize, b's');
    subject
}

async fn read(table: &OpenTable, transaction: &Transaction, index: usize) -> Result<State> {
    let columns = ["id", "number", "folder", "subject", "body"];
    let ids = columns.map(|name| table.column(name).expect("a column"));
    let mut rows = BTreeMap::new();
    let mut scan = table.scan(transaction, index, KeyRange::all(), Direction::Forward);
    while let Some(row) = scan.next().await? {
        let mut values = Vec::new();
        for id in ids {
            values.push(table.value(transaction, &row, id).await?);
        }
        let number = |value: &Option<Vec<u8>>| {
            let bytes = value.as_deref().expect("never null").try_into().expect("four bytes");
            i32::from_le_bytes(bytes)
        };
        let id = number(&values[0]);
        assert_eq!(values[3], Some(subject(id)), "the subject of row {id}");
        let row =
            Row { number: number(&values[1]), folder: number(&values[2]), body: values[4].clone() };
        assert!(rows.insert(id, row).is_none(), "row {id} twice in index {index}");
    }
    Ok(State { is_there: true, rows })
}

/// What is there, the same by every index.
async fn read_all(instance: &Rc<Instance>) -> Result<State> {
    let table = match instance.open_table(1, TABLE).await {
        Ok(table) => table,
        Err(EngineError::NoSuchObject { .. }) => return Ok(State::default()),
        Err(error) => return Err(error),
    };
    let transaction = instance.begin();
    let state = read(&table, &transaction, 0).await?;
    for name in ["by subject", INDEX] {
        if let Ok(index) = table.index(name) {
            assert_eq!(read(&table, &transaction, index).await?, state, "{name}");
        }
    }
    Ok(state)
}

struct Session {
    instance: Rc<Instance>,
    disk: Rc<MemoryDisk>,
    handle: Handle,
    books: SharedBooks,
    random: Random,
    elder: Option<(Transaction, State)>,
}

impl Session {
    async fn run(&mut self, steps: u64) -> Result<()> {
        for _ in 0..steps {
            match self.random.below(100) {
                0..60 => self.change_rows().await?,
                60..66 => self.begin_elder().await?,
                66..74 => self.look_as_elder().await?,
                74..80 => self.change_index().await?,
                80..82 => self.drop_table().await?,
                82..88 => {
                    let log = &self.instance.store().log;
                    log.make_durable(log.begin_generation().end).await?;
                    self.books.borrow_mut().note_durable();
                }
                88..92 => self.instance.checkpoint().await?,
                92..96 => {
                    let pause_ns = self.random.below(1_200 * NANOS_PER_MILLISECOND);
                    self.handle.sleep(pause_ns).await;
                }
                _ => self.back_up().await?,
            }
        }
        self.look_as_elder().await?;
        match self.elder.take() {
            Some((elder, _)) => elder.rollback().await,
            None => Ok(()),
        }
    }

    async fn begin_elder(&mut self) -> Result<()> {
        let state = self.books.borrow().last();
        if let Some((elder, _)) = self.elder.replace((self.instance.begin(), state)) {
            elder.rollback().await?;
        }
        Ok(())
    }

    async fn look_as_elder(&mut self) -> Result<()> {
        let is_there = self.books.borrow().last().is_there;
        let Some((elder, state)) = self.elder.as_ref().filter(|(_, state)| state.is_there) else {
            return Ok(());
        };
        if is_there {
            let table = self.instance.open_table(1, TABLE).await?;
            let found = read(&table, elder, 0).await?;
            assert_eq!(found, *state, "as an elder transaction sees it");
            self.books.borrow_mut().meet("looks of an elder");
        }
        Ok(())
    }

    async fn change_rows(&mut self) -> Result<()> {
        let mut state = self.books.borrow().last();
        if !state.is_there {
            self.books.borrow_mut().states.push(State { is_there: true, ..State::default() });
            self.instance.create_table(1, table()).await?;
            self.books.borrow_mut().note_durable();
            // What an elder saw is gone with the table.
            self.elder = None;
            return Ok(());
        }
        let table = self.instance.open_table(1, TABLE).await?;
        let transaction = self.instance.begin();
        for _ in 0..1 + self.random.below(6) {
            let savepoint = transaction.savepoint();
            let mut changed = state.clone();
            match self.change_row(&table, &transaction, &mut changed).await {
                Ok(()) if self.random.chance(0.2) => transaction.rollback_to(savepoint).await?,
                Ok(()) => state = changed,
                Err(EngineError::WriteConflict) => return transaction.rollback().await,
                Err(error) => return Err(error),
            }
        }
        match self.random.below(10) {
            0 | 1 => transaction.rollback().await,
            ending => {
                let how = if ending < 6 { Commit::Lazy } else { Commit::Durable };
                // Nothing runs between this line and the commit record.
                self.books.borrow_mut().states.push(state);
                transaction.commit(how).await?;
                if how == Commit::Durable {
                    self.books.borrow_mut().note_durable();
                }
                Ok(())
            }
        }
    }

    async fn change_row(
        &mut self,
        table: &OpenTable,
        transaction: &Transaction,
        state: &mut State,
    ) -> Result<()> {
        let [folder, subject_column, body] =
            ["folder", "subject", "body"].map(|name| table.column(name).expect("a column"));
        let id = self.random.below(IDS) as i32;
        let key = table.key(&[Some(&id.to_le_bytes())])?;
        let in_folder = self.random.below(5) as i32;
        let content = match self.random.below(4) {
            0 => None,
            drawn => Some(vec![in_folder as u8; [40, 3_000, 9_000][drawn as usize - 1]]),
        };
        let Some(row) = state.rows.get_mut(&id) else {
            let bytes = (id.to_le_bytes(), in_folder.to_le_bytes(), subject(id));
            let values = [
                (table.column("id")?, Some(&bytes.0[..])),
                (folder, Some(&bytes.1[..])),
                (subject_column, Some(&bytes.2[..])),
                (body, content.as_deref()),
            ];
            let inserted = table.insert_numbered(transaction, &values).await?;
            let number = inserted.number.expect("a number") as i32;
            assert!(
                !self.books.borrow().numbers.contains(&number),
                "number {number} was given before"
            );
            state.rows.insert(id, Row { number, folder: in_folder, body: content });
            return Ok(());
        };
        match self.random.below(4) {
            0 => {
                table.delete(transaction, &key).await?;
                state.rows.remove(&id);
            }
            1 => {
                let bytes = in_folder.to_le_bytes();
                let values = [(folder, Some(&bytes[..])), (body, content.as_deref())];
                table.update(transaction, &key, &values).await?;
                (row.folder, row.body) = (in_folder, content);
            }
            _ => {
                let ids: Vec<i32> = state.rows.keys().copied().collect();
                let of = ids[self.random.below(ids.len() as u64) as usize];
                let of_key = table.key(&[Some(&of.to_le_bytes())])?;
                let stored = table.get(transaction, &of_key).await?.expect("it is there");
                table.share_value(transaction, (&stored, body), &key, body).await?;
                let shared = state.rows[&of].body.clone();
                state.rows.get_mut(&id).expect("it is there").body = shared;
                self.books.borrow_mut().meet("values shared");
            }
        }
        Ok(())
    }

    /// Drops the index, or makes it again; a change that another transaction stands in the way of
    /// is left alone.
    async fn change_index(&mut self) -> Result<()> {
        if !self.books.borrow().last().is_there {
            return Ok(());
        }
        let has_index = self.instance.open_table(1, TABLE).await?.index(INDEX).is_ok();
        let changed = match has_index {
            true => self.instance.drop_index(1, TABLE, INDEX).await,
            false => {
                let index = NewIndex::duplicates(INDEX, &["folder"]);
                self.instance.add_index(1, TABLE, index).await
            }
        };
        match changed {
            Ok(()) => {
                let mut books = self.books.borrow_mut();
                books.note_durable();
                books.meet("indexes changed");
                Ok(())
            }
            Err(EngineError::TableInUse { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn drop_table(&mut self) -> Result<()> {
        if !self.books.borrow().last().is_there || self.elder.is_some() {
            return Ok(());
        }
        self.books.borrow_mut().states.push(State::default());
        match self.instance.drop_table(1, TABLE).await {
            Ok(()) => {
                let mut books = self.books.borrow_mut();
                books.note_durable();
                // Numbers are those of a table.
                books.numbers.clear();
                books.meet("tables dropped");
                Ok(())
            }
            Err(EngineError::TableInUse { .. }) => {
                self.books.borrow_mut().states.pop();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn back_up(&mut self) -> Result<()> {
        let mut backup = Backup::start(&self.instance, 1, 16 * 1024)?;
        let mut pages: Vec<u8> = Vec::new();
        while let Some(chunk) = backup.next_chunk().await? {
            pages.extend_from_slice(&chunk.bytes);
            if self.random.chance(0.2) {
                self.change_rows().await?;
            }
        }
        let report = backup.finish().await?;
        let header = backup.header_of_copy(&report).encode();
        let database = [&header[..], &header[..], &pages[..]].concat();
        let mut log = self.disk.snapshot();
        log.retain(|path, _| is_log(path));
        let mut books = self.books.borrow_mut();
        books.note_durable();
        let state = books.last();
        let generation_first = report.generation_first;
        books.copy = Some(Copy { database, log, generation_first, state });
        books.meet("backups");
        Ok(())
    }
}

fn is_log(path: &std::path::Path) -> bool {
    path.starts_with("log") && path.extension().is_some_and(|end| end == "log")
}

fn reader(files: &Files) -> LogReader {
    LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Context::default())
}

/// Hears the log from where the life before stopped, and holds what it has not heard.
async fn hear(instance: Rc<Instance>, files: Files, books: SharedBooks) -> Result<()> {
    let log = instance.store().log.clone();
    let oldest = log.oldest_generation();
    let from = books.borrow().heard.upto.unwrap_or(Lsn::new(oldest, 0));
    let mut held = from.generation;
    instance.hold_log_durably(CLIENT, held).await?;
    let mut tail = LogTail::begin(&log, reader(&files), from, 4_096);
    while let Some(run) = tail.next().await? {
        {
            let heard = &mut books.borrow_mut().heard;
            heard.records.extend(run.records()?);
            heard.upto = Some(run.upto);
        }
        if run.upto.generation > held {
            held = run.upto.generation;
            match instance.hold_log_durably(CLIENT, held).await {
                // The hold of before is there still.
                Ok(()) | Err(EngineError::Closing) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Everything the client has heard is the log, without a gap, as far as that is still there.
async fn check_heard(files: &Files, books: &SharedBooks, label: &str) {
    let first = books.borrow().heard.records.first().map(|(at, _)| *at);
    let Some(first) = first else { return };
    let there = reader(files).generations().await.unwrap();
    let oldest = there.first().expect("there is log").generation.max(first.generation);
    let mut history = reader(files).read_history(oldest).await.unwrap();
    let mut logged = Vec::new();
    while let Some(generation) = history.next().await.unwrap() {
        logged.extend(generation.records(0).map(std::result::Result::unwrap));
    }
    let books = books.borrow();
    logged.retain(|(at, _)| *at >= first && Some(*at) < books.heard.upto);
    let heard: Vec<_> =
        books.heard.records.iter().filter(|(at, _)| at.generation >= oldest).collect();
    assert!(
        logged.iter().eq(heard.iter().copied()),
        "{label}: {} heard, {} logged",
        heard.len(),
        logged.len()
    );
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Close,
    Kill,
    PowerCut,
    /// Killed, and the backup is put in the place of the database; its log goes on.
    RolledForward,
    /// Killed, and the backup is put in the place of the database with no other log than its own.
    PutBack,
}

async fn open_and_audit(
    files: &Files,
    handle: &Handle,
    setup: &Setup,
    books: &SharedBooks,
    label: &str,
) -> Result<Rc<Instance>> {
    let (instance, _) = open(files, handle, setup, 1).await?;
    let found = read_all(&instance).await?;
    let mut of_life = books.borrow_mut();
    let durable = of_life.durable;
    let at = of_life.states[durable..].iter().rposition(|state| *state == found);
    let at = at.unwrap_or_else(|| {
        panic!("{label}: found {found:?}, may be any of {:?}", &of_life.states[durable..])
    });
    of_life.states.truncate(durable + at + 1);
    if !found.is_there {
        of_life.numbers.clear();
    }
    of_life.note_durable();
    Ok(instance)
}

fn one_life(disk: &Rc<MemoryDisk>, (seed, life): (u64, u64), end: End, books: &SharedBooks) {
    let mut random = Random::from_seed(seed).child(&format!("life {life}"));
    let (steps, lasts_ns) =
        (1 + random.below(STEPS_MAX), random.below(2_500 * NANOS_PER_MILLISECOND));
    let label = format!("seed {seed}, life {life}, which ends with {end:?}");
    let (setup, books, of_disk) = (setup_of(seed), books.clone(), disk.clone());
    let work = move |files: Files, handle: Handle| async move {
        let instance = match open_and_audit(&files, &handle, &setup, &books, &label).await {
            Ok(instance) => instance,
            Err(error) => {
                assert!(of_disk.is_off(), "{label}: {error}");
                return;
            }
        };
        let hearing = handle.spawn(hear(instance.clone(), files.clone(), books.clone()));
        let mut session = Session {
            instance: instance.clone(),
            disk: of_disk.clone(),
            handle: handle.clone(),
            books: books.clone(),
            random: random.child("session"),
            elder: None,
        };
        let (is_off, name) = (of_disk.clone(), label.clone());
        let working = handle.spawn(async move {
            if let Err(error) = session.run(steps).await {
                assert!(is_off.is_off(), "{name}: {error}");
            }
        });
        match end {
            End::Close => {
                working.await;
                instance.close().await.unwrap();
                hearing.await.unwrap_or_else(|error| panic!("{label}: {error}"));
                check_heard(&files, &books, &label).await;
                let deep =
                    verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
                let deep = deep.unwrap();
                assert!(deep.is_sound(), "{label}: {:#?}", deep.findings);
            }
            End::PowerCut => working.await,
            _ => handle.sleep(lasts_ns).await,
        }
    };
    match end {
        End::PowerCut => run_until_power_lost(disk, work),
        _ => live(disk, work),
    }
}

/// Puts a backup in the place of the database. Flush map, checkpoint and holds stay as they are.
fn put_back(disk: &Rc<MemoryDisk>, end: End, books: &mut Books) {
    let Some(copy) = books.copy.clone() else { return };
    if end == End::RolledForward {
        // Log that the copy needs may have been purged since.
        let names = LogNames::new(LOG, "E00");
        let files = disk.snapshot().into_keys();
        let closed: BTreeSet<u32> =
            files.filter_map(|path| names.generation_of(path.file_name()?.to_str()?)).collect();
        let current = disk.bytes(names.current()).and_then(|bytes| {
            GenerationHeader::decode(&bytes[..HEADER_BYTES]).ok().map(|header| header.generation)
        });
        let current = current.or(closed.last().map(|last| last + 1)).unwrap_or(0);
        if !(copy.generation_first..current).all(|generation| closed.contains(&generation)) {
            return;
        }
        disk.load(database_path(1), &copy.database);
        books.meet("backups rolled forward");
        return;
    }
    let log: Vec<PathBuf> = disk.snapshot().into_keys().filter(|path| is_log(path)).collect();
    live(disk, move |files, _| async move {
        for path in log {
            files.delete(&PathBuf::from("/").join(path), Context::default()).await.unwrap();
        }
        // Whoever restores makes that durable, or the log comes back with the power.
        files.sync_directory(std::path::Path::new(LOG), Context::default()).await.unwrap();
    });
    for (path, bytes) in &copy.log {
        disk.load(path, bytes);
    }
    disk.load(database_path(1), &copy.database);
    books.states = vec![copy.state];
    books.numbers.clear();
    books.note_durable();
    books.heard = Heard::default();
    books.meet("backups put back");
}

fn world(seed: u64) -> BTreeMap<&'static str, u64> {
    let setup = setup_of(seed);
    let memory = MemoryOptions {
        atomic_write_bytes: if setup.page_images { 512 } else { 4096 },
        ..MemoryOptions::default()
    };
    let mut disk = disk_with_databases(seed, &setup, memory);
    let books = SharedBooks::default();
    books.borrow_mut().states.push(State::default());
    let mut random = Random::from_seed(seed).child("chain");
    // The file as the last close left it, and what it held.
    let mut shut_down: Option<(Vec<u8>, State)> = None;
    for life in 0..LIVES {
        let ends = [End::Close, End::Kill, End::PowerCut, End::RolledForward, End::PutBack];
        let end = ends[random.below(ends.len() as u64) as usize];
        if end == End::PowerCut {
            disk.power_cut_at_event(disk.events() + 20 + random.below(2_500));
        }
        one_life(&disk, (seed, life), end, &books);
        if end == End::PowerCut {
            disk.power_cut();
            let loss = [Loss::Everything, Loss::Drawn][random.below(2) as usize];
            disk = disk.crash_image(loss, &mut random);
        }
        match end {
            End::Close => {
                if let Some(older) = &shut_down {
                    try_older(&disk, older, &books, seed);
                }
                let bytes = disk.bytes(database_path(1)).expect("it is there");
                shut_down = Some((bytes, books.borrow().last()));
            }
            End::Kill | End::PowerCut => {
                if let Some(older) = &shut_down {
                    try_older(&disk, older, &books, seed);
                }
            }
            End::RolledForward | End::PutBack => {
                put_back(&disk, end, &mut books.borrow_mut());
                shut_down = None;
            }
        }
    }
    one_life(&disk, (seed, LIVES), End::Close, &books);
    books.take().met
}

/// A file that was shut down earlier is put in the place of one that was not. It is refused, or
/// nothing that is promised has been committed since.
fn try_older(disk: &Rc<MemoryDisk>, older: &(Vec<u8>, State), books: &SharedBooks, seed: u64) {
    let image = disk.crash_image(Loss::Nothing, &mut Random::from_seed(seed));
    image.load(database_path(1), &older.0);
    let opened = live(&image, move |files, handle| async move {
        open(&files, &handle, &setup_of(seed), 1).await.map(drop)
    });
    let mut books = books.borrow_mut();
    match opened {
        Err(EngineError::BadOption { name: "databases", .. }) => books.meet("older files refused"),
        Err(error) => panic!("seed {seed}, an older file: {error}"),
        Ok(()) => {
            let may_be = &books.states[books.durable..];
            assert!(may_be.contains(&older.1), "seed {seed}: an older file was opened");
        }
    }
}

fn worlds(count: u64) {
    let first = first_seed(70_000);
    let mut met: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in first..first + count {
        println!("seed {seed}");
        for (what, times) in world(seed) {
            *met.entry(what).or_default() += times;
        }
    }
    println!("{met:#?}");
    for what in [
        "backups",
        "backups put back",
        "backups rolled forward",
        "indexes changed",
        "looks of an elder",
        "older files refused",
        "tables dropped",
        "values shared",
    ] {
        assert!(met.contains_key(what), "nobody met: {what}");
    }
}

/// Why it matters: each of these was tested by itself. Files outlive all of them, one after the
/// other.
#[test]
fn chains_of_lives_and_restores_leave_what_was_committed() {
    worlds(30);
}

/// A world in which something was wrong once: a backup read a page that recovery had made again and
/// not yet written.
#[test]
fn worlds_that_found_a_fault() {
    world(20_261_128_070_200);
}

/// The same for as many worlds as told.
#[test]
#[ignore = "slow: make simulate runs it"]
fn many_chains_of_lives_and_restores_leave_what_was_committed() {
    worlds(wanted("PLIMSOLL_WORLDS").unwrap_or(1_000.0) as u64);
}
