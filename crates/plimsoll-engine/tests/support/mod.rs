//! A small world for engine tests: a memory disk on a virtual clock, an instance on it, and a
//! workload whose effects are known.

#![allow(dead_code, reason = "each test file uses its own part of the world")]

pub mod accounts;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::create::create_database;
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::{Instance, InstanceOptions, RecoveryReport};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, LogTime, PageSize, Signature, Table};
use plimsoll_io::{
    Clock, Context, Disk, Executor, Files, Handle, InstanceId, MemoryDisk, MemoryOptions,
    NANOS_PER_SECOND, Random, Stalled, either,
};

pub const DATA: &str = "/data";
pub const LOG: &str = "/log";

/// The first seed of a simulation: the usual one, or far from all others where `PLIMSOLL_SEED` says
/// (`make simulate SEED=n`).
#[expect(clippy::disallowed_methods, reason = "the seeds to try are chosen from outside")]
pub fn first_seed(usual: u64) -> u64 {
    let wanted = std::env::var("PLIMSOLL_SEED").ok();
    wanted.map_or(usual, |text| {
        let seed: u64 = text.parse().expect("PLIMSOLL_SEED is a number");
        seed * 1_000_000 + usual
    })
}

/// A number chosen from outside.
#[expect(clippy::disallowed_methods, reason = "how long to go on is chosen from outside")]
pub fn wanted(name: &str) -> Option<f64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// Runs batches of worlds side by side and gives what each came to. A failing world prints its seed
/// before it fails.
#[expect(
    clippy::disallowed_methods,
    reason = "each world keeps to one thread; several of them use several processors"
)]
pub fn side_by_side<T: Send>(jobs: u64, batch: impl Fn(u64) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let start = |job| {
            let batch = &batch;
            let thread = std::thread::Builder::new().name(format!("batch {job}"));
            thread.spawn_scoped(scope, move || batch(job)).expect("a thread")
        };
        let threads: Vec<_> = (0..jobs).map(start).collect();
        let parts = threads.into_iter();
        parts.map(|thread| thread.join().expect("no world fails")).collect()
    })
}

/// Of the hours that `make simulate HOURS=h` is given, the share of the worlds on storage that goes
/// wrong; the rest is for power cuts.
pub const SHARE_OF_HARD_TIMES: f64 = 0.2;

/// What varies between test worlds.
#[derive(Clone, Debug)]
pub struct Setup {
    pub size: PageSize,
    pub framing: Framing,
    pub page_images: bool,
    pub cache_frames: u64,
    pub databases: u8,
    pub checkpoint_generations: u64,
    pub waypoint_generations: u32,
    pub circular: bool,
    pub extension_pages: u32,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            size: PageSize::KIB_4,
            framing: Framing::Sectors512,
            page_images: true,
            cache_frames: 96,
            databases: 1,
            checkpoint_generations: 2,
            waypoint_generations: 0,
            circular: true,
            extension_pages: 64,
        }
    }
}

pub fn database_path(number: u8) -> PathBuf {
    Path::new(DATA).join(format!("database {number}.edb"))
}

pub fn options(setup: &Setup) -> InstanceOptions {
    InstanceOptions {
        context: Context { instance: InstanceId(1), ..Context::default() },
        log: LogNames::new(LOG, "E00"),
        databases: (1..=setup.databases).map(database_path).collect(),
        framing: setup.framing,
        circular: setup.circular,
        hold_checkpoint: false,
        log_buffer_bytes: 64 * 1024,
        cache_bytes_min: 0,
        cache_bytes_max: setup.cache_frames * setup.size.bytes() as u64,
        checkpoint_depth_bytes: setup.checkpoint_generations << 20,
        version_store_bytes_max: 16 << 20,
        page_images: setup.page_images,
        extension_pages: setup.extension_pages,
        waypoint_generations: setup.waypoint_generations,
        writes_outstanding_max: 8,
    }
}

/// A disk with both directories.
pub fn new_disk(clock: &Rc<Clock>, seed: u64, memory: MemoryOptions) -> Rc<MemoryDisk> {
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(seed).child("disk"), memory);
    disk.create_directory(DATA);
    disk.create_directory(LOG);
    disk
}

/// Runs a task on a disk in virtual time.
pub fn run_on<T: 'static, F: Future<Output = T> + 'static>(
    clock: &Rc<Clock>,
    disk: &Rc<MemoryDisk>,
    work: impl FnOnce(Files, Handle) -> F,
) -> std::result::Result<T, Stalled> {
    let disk: Rc<dyn Disk> = disk.clone();
    let executor = Executor::new(clock.clone(), disk.clone());
    let handle = executor.handle();
    let guard = handle.sleep(3_600 * NANOS_PER_SECOND);
    drop(handle.spawn(async move {
        guard.await;
        panic!("the run does not end: an hour of virtual time has passed");
    }));
    executor.run(work(Files::new(disk), handle))
}

/// Runs a task until it is done or the power fails.
pub fn run_until_power_lost<F: Future<Output = ()> + 'static>(
    disk: &Rc<MemoryDisk>,
    work: impl FnOnce(Files, Handle) -> F + 'static,
) {
    let (clock, power) = (disk.clock().clone(), disk.clone());
    // Stalled means that everything waits for a disk without power: just what is wanted.
    let _ = run_on(&clock, disk, move |files, handle| async move {
        either(work(files, handle), async move { power.power_lost().await }).await;
    });
}

pub async fn create_databases(files: &Files, setup: &Setup) -> Result<()> {
    for number in 1..=setup.databases {
        let signature = Signature::new(
            u32::from(number) * 7919,
            LogTime::from_utc_ns(1_600_000_000_000_000_000),
        );
        let context = Context { instance: InstanceId(1), ..Context::default() };
        create_database(files, &database_path(number), setup.size, signature, context).await?;
    }
    Ok(())
}

pub async fn open(
    files: &Files,
    handle: &Handle,
    setup: &Setup,
    seed: u64,
) -> Result<(Rc<Instance>, RecoveryReport)> {
    let mut random = Random::from_seed(seed).child("instance");
    Instance::open(files.clone(), handle.clone(), options(setup), &mut random).await
}

/// Everything in a tree.
pub async fn dump(instance: &Instance, tree: Tree) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let transaction = instance.begin();
    let mut cursor = Cursor::new(&transaction, tree, KeyRange::all(), Direction::Forward);
    let mut rows = BTreeMap::new();
    let mut before: Option<Vec<u8>> = None;
    while let Some((key, data)) = cursor.next().await? {
        assert!(before.as_ref().is_none_or(|before| *before < key), "a cursor gives rising keys");
        before = Some(key.clone());
        rows.insert(key, data);
    }
    Ok(rows)
}

pub fn tree_of(database: u8, root: u32, object: u32) -> Tree {
    Tree { database, root, object, kind: 0 }
}

/// What one committed transaction did, in order.
pub type Effects = Vec<(Tree, Vec<u8>, Option<Vec<u8>>)>;

/// The ledger of a workload: who committed what, in which order, and what was promised.
#[derive(Clone, Default)]
pub struct Ledger {
    /// Effects by serial number, in commit order; shared by the copies of a ledger.
    pub committed: Vec<(u64, Rc<Effects>)>,
    /// Serial numbers whose durable commit was acknowledged.
    pub acknowledged: Vec<u64>,
    pub conflicts: u64,
    pub rolled_back: u64,
    /// Told of each commit before its record is written: for whoever may not live to look at this
    /// ledger.
    pub witness: Option<Witness>,
}

/// Is told the serial number and the effects of a transaction that is about to commit.
pub type Witness = Rc<dyn Fn(u64, &Effects)>;

/// The trees a workload uses: one for the serial numbers of committed transactions, the rest for
/// data.
#[derive(Clone, Debug)]
pub struct Field {
    pub serials: Tree,
    pub data: Vec<Tree>,
    pub keys: u64,
    pub row_bytes_max: u64,
    /// Bytes that all keys begin with. Branch pages keep them, so long ones make deep trees of few
    /// rows, with keys in the order of their numbers.
    pub prefix_bytes: usize,
    /// So many keys have a beginning of their own, 0 if all have the same. The first quarter of
    /// them are as long and begin otherwise.
    pub keys_per_prefix: u64,
}

impl Field {
    pub fn key(&self, number: u64) -> Vec<u8> {
        if self.prefix_bytes == 0 {
            return row_key(number);
        }
        let mut key = vec![b'k'; self.prefix_bytes];
        if let Some(group) = number.checked_div(self.keys_per_prefix) {
            let in_group = number % self.keys_per_prefix;
            key[..4].copy_from_slice(&(group as u32).to_be_bytes());
            if in_group < self.keys_per_prefix / 4 {
                key[4..8].copy_from_slice(&(in_group as u32).to_be_bytes());
            }
        }
        key.extend(number.to_be_bytes());
        key
    }
}

pub async fn create_field(
    instance: &Instance,
    setup: &Setup,
    keys: u64,
    row_bytes_max: u64,
) -> Result<Field> {
    let serials = instance.create_tree(1, 1, 50, 0, 3).await?;
    let mut data = Vec::new();
    for database in 1..=setup.databases {
        data.push(instance.create_tree(database, 1, 51, 0, 3).await?);
        let parent = data.last().expect("one was just pushed").root;
        data.push(instance.create_tree(database, parent, 52, 0x40, 3).await?);
    }
    Ok(Field { serials, data, keys, row_bytes_max, prefix_bytes: 0, keys_per_prefix: 0 })
}

/// A table of messages with a body that may be long, and an index by folder.
pub fn message_table(name: &str) -> Table {
    Table::builder(name)
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("folder", ColumnType::Long))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .duplicates("by folder", &["folder"])
        .build()
        .expect("a valid table")
}

/// How often each kind of operation is drawn; swarm testing draws the weights too.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    pub insert: u64,
    pub delete: u64,
    pub replace: u64,
    pub lazy: f64,
    pub rollback: f64,
    pub savepoint: f64,
    pub operations_max: u64,
    /// Keys drawn from a small range now and then, so that ranges empty and fill.
    pub narrow: f64,
}

impl Weights {
    pub fn swarm(random: &mut Random) -> Self {
        let mut weight = |likely: u64| {
            if random.chance(0.2) { 0 } else { 1 + random.below(likely) }
        };
        let (insert, delete, replace) = (weight(6) + 1, weight(6), weight(3));
        Self {
            insert,
            delete,
            replace,
            lazy: random.unit(),
            rollback: random.unit() * 0.3,
            savepoint: random.unit() * 0.3,
            operations_max: 1 + random.below(12),
            narrow: random.unit() * 0.8,
        }
    }
}

pub fn row_key(number: u64) -> Vec<u8> {
    // A long shared prefix makes compression work; the number is scrambled so that neighbours are
    // not.
    let scrambled = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    format!("row/{scrambled:08x}/{number:06}").into_bytes()
}

fn row_data(random: &mut Random, bytes_max: u64) -> Vec<u8> {
    let mut data = vec![0; 1 + random.below(bytes_max) as usize];
    random.fill(&mut data);
    data
}

/// One transaction of the workload. Returns false when the disk is gone.
pub async fn one_transaction(
    instance: &Instance,
    field: &Field,
    weights: &Weights,
    serial: u64,
    random: &mut Random,
    ledger: &RefCell<Ledger>,
) -> Result<()> {
    let transaction = instance.begin();
    let mut effects = Effects::new();
    let count = 1 + random.below(weights.operations_max);
    let mut savepoint = None;
    for _ in 0..count {
        if random.chance(weights.savepoint) {
            savepoint = Some((transaction.savepoint(), effects.len()));
        }
        match one_operation(&transaction, field, weights, random).await {
            Ok(Some(effect)) => effects.push(effect),
            Ok(None) => {}
            Err(EngineError::WriteConflict) => {
                ledger.borrow_mut().conflicts += 1;
                return transaction.rollback().await;
            }
            Err(error) => return Err(error),
        }
        if let Some((place, length)) = savepoint
            && random.chance(0.3)
        {
            transaction.rollback_to(place).await?;
            effects.truncate(length);
            savepoint = None;
        }
    }
    if random.chance(weights.rollback) {
        ledger.borrow_mut().rolled_back += 1;
        return transaction.rollback().await;
    }
    let how = if random.chance(weights.lazy) { Commit::Lazy } else { Commit::Durable };
    commit_noted(transaction, field, serial, effects, how, ledger).await
}

/// Commits with an entry among the serial numbers, and notes that in the ledger.
pub async fn commit_noted(
    transaction: Transaction,
    field: &Field,
    serial: u64,
    mut effects: Effects,
    how: Commit,
    ledger: &RefCell<Ledger>,
) -> Result<()> {
    let key = serial.to_be_bytes().to_vec();
    transaction.insert(field.serials, &key, b"committed").await?;
    effects.push((field.serials, key, Some(b"committed".to_vec())));
    let witness = ledger.borrow().witness.clone();
    if let Some(witness) = witness {
        witness(serial, &effects);
    }
    // Nothing runs between this line and the commit record.
    ledger.borrow_mut().committed.push((serial, Rc::new(effects)));
    transaction.commit(how).await?;
    if how == Commit::Durable {
        ledger.borrow_mut().acknowledged.push(serial);
    }
    Ok(())
}

async fn one_operation(
    transaction: &Transaction,
    field: &Field,
    weights: &Weights,
    random: &mut Random,
) -> Result<Option<(Tree, Vec<u8>, Option<Vec<u8>>)>> {
    let tree = field.data[random.below(field.data.len() as u64) as usize];
    let number = if random.chance(weights.narrow) {
        random.below(field.keys / 20 + 1)
    } else {
        random.below(field.keys)
    };
    let key = field.key(number);
    let total = weights.insert + weights.delete + weights.replace;
    let draw = random.below(total);
    let data = row_data(random, field.row_bytes_max);
    let result = if draw < weights.insert {
        transaction.insert(tree, &key, &data).await.map(|()| Some(data))
    } else if draw < weights.insert + weights.delete {
        transaction.delete(tree, &key).await.map(|()| None)
    } else {
        transaction.replace(tree, &key, &data).await.map(|()| Some(data))
    };
    match result {
        Ok(after) => Ok(Some((tree, key, after))),
        Err(EngineError::KeyDuplicate { .. } | EngineError::RowNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Rows by key, in their order.
pub type RowsOf<'l> = BTreeMap<&'l [u8], &'l [u8]>;

/// The state after the first `count` commits.
pub fn state_after(ledger: &Ledger, count: usize) -> BTreeMap<Tree, RowsOf<'_>> {
    let mut state: BTreeMap<Tree, RowsOf<'_>> = BTreeMap::new();
    for (_, effects) in &ledger.committed[..count] {
        for (tree, key, after) in effects.iter() {
            let rows = state.entry(*tree).or_default();
            match after {
                Some(data) => rows.insert(key, data),
                None => rows.remove(&key[..]),
            };
        }
    }
    state
}

/// Whether these are exactly the rows expected.
pub fn agree<'l>(
    found: &'l BTreeMap<Vec<u8>, Vec<u8>>,
    expected: impl Iterator<Item = (&'l [u8], &'l [u8])>,
) -> bool {
    let found = found.iter().map(|(key, data)| (&key[..], &data[..]));
    found.eq(expected)
}

/// Compares what an instance holds with what the ledger allows after a crash: every acknowledged
/// commit, and exactly the effects of an unbroken run of commits from the first one on.
pub async fn audit(instance: &Instance, field: &Field, ledger: &Ledger) -> Result<usize> {
    let serials = dump(instance, field.serials).await?;
    let survived = serials.len();
    for (index, (serial, _)) in ledger.committed.iter().enumerate() {
        let present = serials.contains_key(&serial.to_be_bytes()[..]);
        assert_eq!(
            present,
            index < survived,
            "commits survive from the first on without a gap (number {index}, serial {serial})"
        );
    }
    for serial in &ledger.acknowledged {
        assert!(
            serials.contains_key(&serial.to_be_bytes()[..]),
            "acknowledged commit {serial} is lost"
        );
    }
    let mut state = state_after(ledger, survived);
    for tree in field.data.iter().chain([&field.serials]) {
        let found = dump(instance, *tree).await?;
        let expected = state.remove(tree).unwrap_or_default();
        if agree(&found, expected.iter().map(|(key, data)| (*key, *data))) {
            continue;
        }
        for key in expected.keys().copied().chain(found.keys().map(Vec::as_slice)) {
            let (left, right) = (found.get(key), expected.get(key));
            let is_same = left.map(Vec::as_slice) == right.copied();
            assert!(is_same, "{}", history(ledger, *tree, key, left, survived));
        }
        panic!("the rows of {tree:?} differ");
    }
    Ok(survived)
}

/// The story of one row, for a failed audit.
fn history(
    ledger: &Ledger,
    tree: Tree,
    key: &[u8],
    found: Option<&Vec<u8>>,
    survived: usize,
) -> String {
    let mut story = format!(
        "row {} of {tree:?}: found {:?} bytes;",
        String::from_utf8_lossy(key),
        found.map(Vec::len)
    );
    for (index, (serial, effects)) in ledger.committed.iter().enumerate() {
        for (_, _, after) in effects.iter().filter(|(of, row, _)| *of == tree && row == key) {
            let fate = if index < survived { "kept" } else { "lost" };
            let bytes = after.as_ref().map(Vec::len);
            story += &format!(" commit {index} (serial {serial}, {fate}) left {bytes:?};");
        }
    }
    story
}

/// Polls a future at most `polls` times; `None` if it was dropped before it was done.
pub async fn give_up_after<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => std::task::Poll::Ready(Some(value)),
            std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
            std::task::Poll::Pending => std::task::Poll::Pending,
        }
    })
    .await
}
