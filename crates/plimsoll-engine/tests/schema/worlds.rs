//! Worlds in which the schema of a table changes between its rows: indexes and columns come and go,
//! the table is dropped and made again, transactions that were begun before look on, a backup is
//! taken, and lives end with a close, a kill or a power cut. What is found is compared with a
//! model.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, NewIndex, PageSize, Table, column_flags};
use plimsoll_io::{
    Clock, Files, Handle, Loss, MemoryDisk, MemoryOptions, NANOS_PER_MILLISECOND, Random,
};

use crate::life::*;
use crate::support::*;
use crate::table_state::*;
use crate::world::check_file;

const LIVES: u64 = 6;
const STEPS_MAX: u64 = 40;
const IDS: u64 = 60;

/// A backup that ended, to be looked at by itself.
struct Copy {
    files: BTreeMap<PathBuf, Vec<u8>>,
    state: State,
}

/// What was committed, in order, and how much of it is durable.
#[derive(Default)]
struct Books {
    states: Vec<State>,
    durable: usize,
    copies: Vec<Copy>,
    /// How often each kind of thing happened.
    met: BTreeMap<&'static str, u64>,
}

impl Books {
    fn last(&self) -> State {
        self.states.last().expect("a state").clone()
    }

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    /// All that was committed so far is durable.
    fn note_durable(&mut self) {
        self.durable = self.states.len() - 1;
    }
}

type SharedBooks = Rc<RefCell<Books>>;

/// A transaction that stays open while others go on, and what it must see.
struct Elder {
    transaction: Transaction,
    state: State,
}

struct Session {
    instance: Rc<Instance>,
    disk: Rc<MemoryDisk>,
    handle: Handle,
    books: SharedBooks,
    random: Random,
    elder: Option<Elder>,
    /// For names that were never used before.
    names: u32,
}

fn setup_of(seed: u64) -> Setup {
    Setup {
        cache_frames: if seed.is_multiple_of(2) { 64 } else { 400 },
        page_images: !seed.is_multiple_of(4),
        extension_pages: 16,
        checkpoint_generations: 1,
        ..Setup::default()
    }
}

fn memory(seed: u64) -> MemoryOptions {
    MemoryOptions {
        atomic_write_bytes: if setup_of(seed).page_images { 512 } else { 4096 },
        ..MemoryOptions::default()
    }
}

fn value_of(column_type: ColumnType, random: &mut Random) -> Vec<u8> {
    let number = random.below(6) as u8;
    match column_type {
        ColumnType::Long => i32::from(number).to_le_bytes().to_vec(),
        ColumnType::Text => vec![b'a' + number; 1 + usize::from(number)],
        _ => vec![b'A' + number; [8, 300, 2_500, 9_000][random.below(4) as usize]],
    }
}

/// The table as it is first made.
fn first_table() -> (Table, State) {
    let columns = [("weight", ColumnType::Long), ("body", ColumnType::LongBinary)];
    let table = Table::builder(TABLE).column(Column::new("id", ColumnType::Long));
    let table = columns
        .iter()
        .fold(table, |table, (name, column_type)| table.column(Column::new(name, *column_type)));
    let spec = |column_type| ColumnSpec { column_type, default: None, is_required: false };
    let state = State {
        is_there: true,
        columns: columns.map(|(name, column_type)| (name.to_owned(), spec(column_type))).into(),
        indexes: BTreeMap::from([("by weight".to_owned(), "weight".to_owned())]),
        ..State::default()
    };
    let table = table.primary("primary", &["id"]).duplicates("by weight", &["weight"]);
    (table.build().unwrap(), state)
}

fn key_of(table: &OpenTable, id: i32) -> Vec<u8> {
    table.key(&[Some(&id.to_le_bytes())]).unwrap()
}

impl Session {
    fn state(&self) -> State {
        self.books.borrow().last()
    }

    fn new_name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what} {}", self.names)
    }

    async fn run(&mut self, steps: u64) -> Result<()> {
        for _ in 0..steps {
            self.step().await?;
        }
        // A close waits for transactions that were begun before it.
        self.end_elder().await
    }

    async fn step(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..40 => self.change_rows().await,
            40..70 => self.change_schema().await,
            70..80 => self.begin_elder().await,
            80..88 => self.look_as_elder().await,
            88..92 => self.instance.checkpoint().await,
            92..96 => {
                let pause_ns = self.random.below(1_500 * NANOS_PER_MILLISECOND);
                self.handle.sleep(pause_ns).await;
                Ok(())
            }
            _ => self.back_up().await,
        }
    }

    async fn begin_elder(&mut self) -> Result<()> {
        self.end_elder().await?;
        let (transaction, state) = (self.instance.begin(), self.state());
        self.elder = Some(Elder { transaction, state });
        Ok(())
    }

    async fn end_elder(&mut self) -> Result<()> {
        self.look_as_elder().await?;
        match self.elder.take() {
            Some(elder) => elder.transaction.rollback().await,
            None => Ok(()),
        }
    }

    /// A transaction that was begun before finds the rows of its time in the table of today.
    async fn look_as_elder(&mut self) -> Result<()> {
        let (Some(elder), state) = (&self.elder, self.state()) else { return Ok(()) };
        if !state.is_there {
            return Ok(());
        }
        let table = self.instance.open_table(1, TABLE).await?;
        let found = read_rows(&table, &elder.transaction, &state.columns).await?;
        assert_eq!(found, state.seen_from(&elder.state), "as an elder transaction sees it");
        let has_changed =
            elder.state.columns != state.columns || elder.state.indexes != state.indexes;
        if has_changed {
            self.books.borrow_mut().meet("looks at a table that changed since");
        }
        Ok(())
    }

    async fn change_rows(&mut self) -> Result<()> {
        let mut state = self.state();
        if !state.is_there {
            return Ok(());
        }
        let table = self.instance.open_table(1, TABLE).await?;
        let transaction = self.instance.begin();
        for _ in 0..1 + self.random.below(8) {
            let savepoint = transaction.savepoint();
            let is_given_up = self.random.chance(0.2);
            let mut changed = state.clone();
            match self.change_row(&table, &transaction, &mut changed).await {
                Ok(()) if is_given_up => transaction.rollback_to(savepoint).await?,
                Ok(()) => state = changed,
                // A transaction that was dropped is still being taken back.
                Err(EngineError::WriteConflict) => return transaction.rollback().await,
                Err(error) => return Err(error),
            }
        }
        match self.random.below(10) {
            0 => transaction.rollback().await,
            1 => {
                drop(transaction);
                Ok(())
            }
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
        let id = self.random.below(IDS) as i32;
        let key = key_of(table, id);
        let Some(row) = state.rows.get(&id).cloned() else {
            let row = self.insert(table, transaction, state, id).await?;
            state.rows.insert(id, row);
            return Ok(());
        };
        match self.random.below(6) {
            0 => {
                table.delete(transaction, &key).await?;
                state.rows.remove(&id);
            }
            1 => self.share(table, transaction, state, id).await?,
            _ => {
                let changed = self.update(table, transaction, state, (&key, row)).await?;
                state.rows.insert(id, changed);
            }
        }
        Ok(())
    }

    async fn insert(
        &mut self,
        table: &OpenTable,
        transaction: &Transaction,
        state: &State,
        id: i32,
    ) -> Result<Row> {
        let mut row = Row::new();
        let mut given = Row::new();
        for (name, column) in &state.columns {
            let value = match self.random.below(4) {
                0 => column.default.clone(),
                1 if !column.is_required => {
                    given.insert(name.clone(), None);
                    None
                }
                _ => {
                    let value = Some(value_of(column.column_type, &mut self.random));
                    given.insert(name.clone(), value.clone());
                    value
                }
            };
            row.insert(name.clone(), value);
        }
        let id = id.to_le_bytes();
        let mut values = vec![(table.column("id")?, Some(&id[..]))];
        for (name, value) in &given {
            values.push((table.column(name)?, value.as_deref()));
        }
        table.insert(transaction, &values).await?;
        Ok(row)
    }

    async fn update(
        &mut self,
        table: &OpenTable,
        transaction: &Transaction,
        state: &State,
        (key, mut row): (&[u8], Row),
    ) -> Result<Row> {
        let mut given = Row::new();
        for (name, column) in &state.columns {
            if self.random.chance(0.4) {
                let is_null = self.random.chance(0.25);
                let value = (!is_null).then(|| value_of(column.column_type, &mut self.random));
                given.insert(name.clone(), value);
            }
        }
        let mut values = Vec::new();
        for (name, value) in &given {
            values.push((table.column(name)?, value.as_deref()));
        }
        if self.random.chance(0.1)
            && let Some(twice) = values.first().copied()
        {
            values.push(twice);
            let refused = table.update(transaction, key, &values).await;
            assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
            return Ok(row);
        }
        let breaks_rule =
            given.iter().any(|(name, value)| value.is_none() && state.columns[name].is_required);
        let updated = table.update(transaction, key, &values).await;
        // A row that a dropped transaction still has is refused before anything else.
        if breaks_rule && !matches!(updated, Err(EngineError::WriteConflict)) {
            assert!(matches!(updated, Err(EngineError::BadRow(_))), "{updated:?}");
            self.books.borrow_mut().meet("nulls that were refused");
            return Ok(row);
        }
        updated?;
        row.extend(given);
        Ok(row)
    }

    /// A long value of another row becomes that of a column of this one.
    async fn share(
        &mut self,
        table: &OpenTable,
        transaction: &Transaction,
        state: &mut State,
        id: i32,
    ) -> Result<()> {
        let is_long = |(_, column): &(&String, &ColumnSpec)| column.column_type.is_long();
        let long: Vec<String> =
            state.columns.iter().filter(is_long).map(|(name, _)| name.clone()).collect();
        if long.is_empty() {
            return Ok(());
        }
        let mut pick = || long[self.random.below(long.len() as u64) as usize].clone();
        let (from, to) = (pick(), pick());
        let ids: Vec<i32> = state.rows.keys().copied().collect();
        let of = ids[self.random.below(ids.len() as u64) as usize];
        let value = state.rows[&of][&from].clone();
        if value.is_none() && state.columns[&to].is_required {
            return Ok(());
        }
        let stored = table.get(transaction, &key_of(table, of)).await?.expect("it is there");
        let (from, to_column) = (table.column(&from)?, table.column(&to)?);
        let key = key_of(table, id);
        table.share_value(transaction, (&stored, from), &key, to_column).await?;
        state.rows.get_mut(&id).expect("it is there").insert(to, value);
        self.books.borrow_mut().meet("values shared");
        Ok(())
    }

    /// Makes a change, which is durable when it returns. It may be refused beside a transaction
    /// that still sees older rows.
    async fn note_change(
        &mut self,
        what: &'static str,
        state: State,
        change: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        self.books.borrow_mut().states.push(state);
        let changed = change.await;
        let mut books = self.books.borrow_mut();
        match changed {
            Ok(()) => {
                books.note_durable();
                books.meet(what);
                if self.elder.is_some() {
                    books.meet("changes beside an elder transaction");
                }
                Ok(())
            }
            Err(EngineError::TableInUse { .. }) if self.elder.is_some() => {
                books.states.pop();
                books.meet("changes refused");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn change_schema(&mut self) -> Result<()> {
        let mut state = self.state();
        let instance = self.instance.clone();
        if !state.is_there {
            let (table, first) = first_table();
            let made = state.made + 1;
            let change = async { instance.create_table(1, table).await.map(drop) };
            return self.note_change("tables made", State { made, ..first }, change).await;
        }
        match self.random.below(20) {
            0 => {
                state = State { made: state.made, ..State::default() };
                let change = instance.drop_table(1, TABLE);
                self.note_change("tables dropped", state, change).await
            }
            1..6 => {
                let is_indexable =
                    |(_, column): &(&String, &ColumnSpec)| !column.column_type.is_long();
                let columns: Vec<String> = state
                    .columns
                    .iter()
                    .filter(is_indexable)
                    .map(|(name, _)| name.clone())
                    .collect();
                if columns.is_empty() || state.indexes.len() > 4 {
                    return Ok(());
                }
                let column = columns[self.random.below(columns.len() as u64) as usize].clone();
                let name = self.new_name("index");
                let index = NewIndex::duplicates(&name, &[&column]);
                state.indexes.insert(name, column);
                let change = instance.add_index(1, TABLE, index);
                self.note_change("indexes added", state, change).await
            }
            6..9 => {
                let Some(name) = state.indexes.keys().next().cloned() else { return Ok(()) };
                state.indexes.remove(&name);
                let change = instance.drop_index(1, TABLE, &name);
                self.note_change("indexes dropped", state, change).await
            }
            9..16 => self.add_column(state).await,
            _ => {
                let is_free = |name: &&String| !state.indexes.values().any(|of| of == *name);
                let free: Vec<String> = state.columns.keys().filter(is_free).cloned().collect();
                if free.is_empty() {
                    return Ok(());
                }
                let name = free[self.random.below(free.len() as u64) as usize].clone();
                state.columns.remove(&name);
                for row in state.rows.values_mut() {
                    row.remove(&name);
                }
                let change = instance.drop_column(1, TABLE, &name);
                self.note_change("columns dropped", state, change).await
            }
        }
    }

    async fn add_column(&mut self, mut state: State) -> Result<()> {
        if state.columns.len() > 8 {
            return Ok(());
        }
        let types = [ColumnType::Long, ColumnType::Text, ColumnType::LongBinary];
        let column_type = types[self.random.below(3) as usize];
        let mut default = self.random.chance(0.6).then(|| value_of(column_type, &mut self.random));
        if let Some(default) = &mut default {
            default.truncate(200);
        }
        let is_required = default.is_some() && self.random.chance(0.5);
        let name = self.new_name("column");
        let mut column = Column::new(&name, column_type);
        if let Some(default) = &default {
            column = column.with_default(default);
        }
        if is_required {
            column = column.flagged(column_flags::NOT_NULL);
        }
        for row in state.rows.values_mut() {
            row.insert(name.clone(), default.clone());
        }
        if default.is_some() {
            self.books.borrow_mut().meet("columns with a default value");
        }
        state.columns.insert(name, ColumnSpec { column_type, default, is_required });
        let instance = self.instance.clone();
        let change = instance.add_column(1, TABLE, column);
        self.note_change("columns added", state, change).await
    }

    /// A backup, with rows and the schema changing between its pieces.
    async fn back_up(&mut self) -> Result<()> {
        let mut backup = Backup::start(&self.instance, 1, 16 * 1024)?;
        let mut pages = BTreeMap::new();
        while let Some(chunk) = backup.next_chunk().await? {
            pages.insert(chunk.first, chunk.bytes.to_vec());
            if self.random.chance(0.2) {
                match self.random.below(3) {
                    0 => self.change_schema().await?,
                    _ => self.change_rows().await?,
                }
            }
        }
        let report = backup.finish().await?;
        let header = backup.header_of_copy(&report).encode();
        let mut bytes = [&header[..], &header[..]].concat();
        for (first, run) in pages {
            let offset = PageSize::KIB_4.offset_of(first) as usize;
            bytes.resize(bytes.len().max(offset + run.len()), 0);
            bytes[offset..offset + run.len()].copy_from_slice(&run);
        }
        let mut files = self.disk.snapshot();
        files.retain(|path, _| {
            path.starts_with("log") && path.extension().is_some_and(|end| end == "log")
        });
        files.insert(database_path(1), bytes);
        let state = self.state();
        let mut books = self.books.borrow_mut();
        books.copies.push(Copy { files, state });
        books.meet("backups");
        Ok(())
    }
}

/// Opens, compares what is there with what may be there, and goes on with that.
async fn open_and_audit(
    files: &Files,
    handle: &Handle,
    setup: &Setup,
    books: &SharedBooks,
    label: &str,
) -> Result<Rc<Instance>> {
    let (instance, _) = open(files, handle, setup, 1).await?;
    let made = books.borrow().last().made;
    let found = read_state(&instance, made).await?;
    let mut books = books.borrow_mut();
    let durable = books.durable;
    let is_found = |state: &State| State { made, ..state.clone() } == found;
    let at = books.states[durable..].iter().rposition(is_found);
    let at = at.unwrap_or_else(|| {
        panic!("{label}: found {found:#?}, may be any of {:#?}", &books.states[durable..])
    });
    books.states.truncate(durable + at + 1);
    books.note_durable();
    Ok(instance)
}

/// How lives end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Close,
    Kill,
    PowerCut,
}

fn one_life(disk: &Rc<MemoryDisk>, seed: u64, life: u64, end: End, books: &SharedBooks) {
    let mut random = Random::from_seed(seed).child(&format!("life {life}"));
    let (steps, killed_after_ns) =
        (1 + random.below(STEPS_MAX), random.below(400 * NANOS_PER_MILLISECOND));
    let label = format!("seed {seed}, life {life}, which ends with {end:?}");
    let (setup, books, of_disk) = (setup_of(seed), books.clone(), disk.clone());
    let work = move |files: Files, handle: Handle| async move {
        let opened = open_and_audit(&files, &handle, &setup, &books, &label).await;
        let instance = match opened {
            Ok(instance) => instance,
            Err(error) => {
                assert!(of_disk.is_off(), "{label}: {error}");
                return;
            }
        };
        let mut session = Session {
            instance: instance.clone(),
            disk: of_disk.clone(),
            handle: handle.clone(),
            books,
            random: random.child("session"),
            elder: None,
            names: (seed * 1_000 + life * 100) as u32,
        };
        let is_off = of_disk.clone();
        let name = label.clone();
        let working = handle.spawn(async move {
            if let Err(error) = session.run(steps).await {
                assert!(is_off.is_off(), "{name}: {error}");
            }
        });
        match end {
            End::Kill => handle.sleep(killed_after_ns).await,
            End::Close => {
                working.await;
                instance.close().await.unwrap();
                check_file(&files, &handle, &label).await;
            }
            End::PowerCut => working.await,
        }
    };
    match end {
        End::PowerCut => run_until_power_lost(disk, work),
        _ => live(disk, work),
    }
}

/// What a backup left, opened on a disk of its own.
fn look_at_copy(seed: u64, copy: Copy) {
    let disk = new_disk(&Rc::new(Clock::simulated()), seed, MemoryOptions::default());
    for (path, bytes) in &copy.files {
        disk.load(path, bytes);
    }
    live(&disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup_of(seed), 2).await.unwrap();
        let found = read_state(&instance, copy.state.made).await.unwrap();
        assert_eq!(found, copy.state, "seed {seed}: the copy");
        instance.close().await.unwrap();
        check_file(&files, &handle, &format!("seed {seed}: the copy")).await;
    });
}

fn world(seed: u64) -> BTreeMap<&'static str, u64> {
    let setup = setup_of(seed);
    let mut disk = disk_with_databases(seed, &setup, memory(seed));
    let books = SharedBooks::default();
    books.borrow_mut().states.push(State::default());
    let mut random = Random::from_seed(seed).child("schema world");
    for life in 0..LIVES {
        let end = match random.below(4) {
            0 => End::Close,
            1 => End::Kill,
            _ => End::PowerCut,
        };
        if end == End::PowerCut {
            disk.power_cut_at_event(disk.events() + 20 + random.below(1_500));
        }
        one_life(&disk, seed, life, end, &books);
        if end == End::PowerCut {
            disk.power_cut();
            let loss = [Loss::Everything, Loss::Drawn][random.below(2) as usize];
            disk = disk.crash_image(loss, &mut random);
        }
        let copies = std::mem::take(&mut books.borrow_mut().copies);
        copies.into_iter().for_each(|copy| look_at_copy(seed, copy));
    }
    one_life(&disk, seed, LIVES, End::Close, &books);
    books.take().met
}

fn worlds(count: u64) {
    let first = first_seed(40_000);
    let mut met: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in first..first + count {
        println!("seed {seed}");
        for (what, times) in world(seed) {
            *met.entry(what).or_default() += times;
        }
    }
    println!("{met:#?}");
    for what in [
        "looks at a table that changed since",
        "changes beside an elder transaction",
        "changes refused",
        "nulls that were refused",
        "values shared",
        "backups",
        "tables made",
        "tables dropped",
        "indexes added",
        "indexes dropped",
        "columns added",
        "columns dropped",
        "columns with a default value",
    ] {
        assert!(met.contains_key(what), "nobody met: {what}");
    }
}

/// Rows and schema change by turns; whatever ends a life, what was acknowledged is there, in every
/// index, and no page is lost.
#[test]
fn thirty_worlds_of_changing_schemas_agree_with_their_model() {
    worlds(30);
}

/// The same for as many worlds as told.
#[test]
#[ignore = "slow: make simulate runs it"]
fn many_worlds_of_changing_schemas_agree_with_their_model() {
    worlds(wanted("PLIMSOLL_WORLDS").unwrap_or(1_000.0) as u64);
}
