//! One history: sessions beside each other on a small cache, for one to four lives. A life ends
//! with a power cut or a kill in the middle of the work, or with a clean stop; the last one reads
//! everything.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{
    Clock, Files, Handle, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND,
    Notify, Random,
};

use super::record::Record;
use super::{lists, plain, registers};
use crate::support::*;

/// What the sessions work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Lists,
    Registers,
    Plain,
}

/// How often histories met what they are for.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub transactions: u64,
    pub conflicts: u64,
    pub aborts: u64,
    pub savepoints: u64,
    pub points: u64,
    pub by_index: u64,
    pub scans: u64,
    pub separated: u64,
    pub crashes: u64,
    pub kills: u64,
    pub stops: u64,
    pub commits_lost: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.transactions += other.transactions;
        self.conflicts += other.conflicts;
        self.aborts += other.aborts;
        self.savepoints += other.savepoints;
        self.points += other.points;
        self.by_index += other.by_index;
        self.scans += other.scans;
        self.separated += other.separated;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.stops += other.stops;
        self.commits_lost += other.commits_lost;
    }

    pub fn print(&self) {
        println!("{self:?}");
    }

    /// A history in which nothing meets proves nothing.
    pub fn expect_met(&self, histories: u64) {
        for (name, met, at_least) in [
            ("conflicts", self.conflicts, 20 * histories),
            ("aborts", self.aborts, 20 * histories),
            ("savepoints", self.savepoints, 5 * histories),
            ("point reads", self.points, 100 * histories),
            ("scans", self.scans, 50 * histories),
            ("crashes", self.crashes, histories / 3),
            ("kills", self.kills, histories / 5),
            ("clean stops", self.stops, histories / 10),
            ("commits lost", self.commits_lost, histories / 10),
        ] {
            assert!(met >= at_least, "only {met} {name}: {self:?}");
        }
    }
}

/// What all sessions of a history share, through all its lives.
pub struct World {
    pub kind: Kind,
    pub record: RefCell<Record>,
    pub counts: RefCell<Counts>,
    /// The number of the last value written.
    values: Cell<u64>,
    /// What no isolated engine shows to anybody; the checker is asked first.
    pub oddities: RefCell<Vec<String>>,
    /// The lists that are appended to at present.
    hot: RefCell<Vec<u64>>,
    setup: Setup,
}

impl World {
    /// A value nobody has written yet.
    pub fn next_value(&self) -> u64 {
        self.values.set(self.values.get() + 1);
        self.values.get()
    }

    /// One of the lists that are appended to at present.
    pub fn hot_list(&self, random: &mut Random) -> u64 {
        let hot = self.hot.borrow();
        hot[random.below(hot.len() as u64) as usize]
    }

    /// The last list there is.
    pub fn last_list(&self) -> u64 {
        self.hot.borrow().iter().copied().max().expect("there are lists")
    }

    /// A list is long enough: another one takes its place.
    pub fn leave_alone(&self, id: u64) {
        let next = self.last_list() + 1;
        if let Some(full) = self.hot.borrow_mut().iter_mut().find(|hot| **hot == id) {
            *full = next;
        }
    }

    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.borrow_mut());
    }
}

/// A session's place in a life.
pub struct Session {
    pub world: Rc<World>,
    pub handle: Handle,
    pub table: Rc<OpenTable>,
    instance: Rc<Instance>,
    serials: Tree,
    process: i64,
}

/// A transaction under way.
pub struct Work<'a> {
    pub session: &'a Session,
    pub transaction: &'a Transaction,
    /// What the record calls it.
    pub entry: usize,
}

impl Work<'_> {
    pub fn note(&self, step: super::record::Step) {
        self.session.world.record.borrow_mut().step(self.entry, step);
    }

    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.session.world.count(change);
    }

    /// Notes something that should not be; the work goes on, so that the checker can be asked what
    /// it makes of it.
    pub fn expect(&self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.session.world.oddities.borrow_mut().push(otherwise());
        }
    }
}

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    PowerCut,
    /// The process dies and the power stays: what it wrote is found, synced or not, until the power
    /// fails.
    Kill,
    CleanStop,
}

/// Makes one history; what was odd about it comes with it.
pub fn run(seed: u64, kind: Kind, transactions: usize) -> (Record, Counts, Vec<String>) {
    let mut random = Random::from_seed(seed).child("histories");
    let page_images = random.chance(0.5);
    let size = [PageSize::KIB_4, PageSize::KIB_8, PageSize::KIB_32][random.below(3) as usize];
    let setup = Setup {
        size,
        framing: [Framing::Sectors512, Framing::Segments4096][random.below(2) as usize],
        page_images,
        cache_frames: 64 + random.below(40),
        ..Setup::default()
    };
    let memory = MemoryOptions {
        latency: LatencyPlan::of(Latency::Exponential { fixed_ns: 20_000, mean_ns: 100_000 }),
        // Without images a torn page is damage, and that is not what is asked here.
        atomic_write_bytes: if page_images { 512 } else { size.bytes() as u32 },
        ..MemoryOptions::default()
    };
    let world = Rc::new(World {
        kind,
        record: RefCell::default(),
        counts: RefCell::default(),
        values: Cell::new(0),
        oddities: RefCell::default(),
        hot: RefCell::new((0..6).collect()),
        setup,
    });
    let clock = Rc::new(Clock::simulated());
    let mut disk = new_disk(&clock, seed, memory);
    let lives = 1 + random.below(4) as usize;
    for life in 0..lives {
        let is_last = life + 1 == lives;
        let end = match random.below(10) {
            _ if is_last => End::CleanStop,
            0..2 => End::CleanStop,
            2..5 => End::Kill,
            _ => End::PowerCut,
        };
        let target = transactions * (life + 1) / lives;
        let (of_life, off) = (world.clone(), disk.clone());
        let draws = random.child(&format!("life {life}"));
        let done: Rc<Cell<bool>> = Rc::default();
        let is_done = done.clone();
        run_until_power_lost(&disk, move |files, handle| async move {
            one_life(files, handle, of_life, life, target, end, off, draws).await;
            is_done.set(true);
        });
        assert_eq!(done.get(), end != End::PowerCut, "life {life} ended otherwise");
        match end {
            End::PowerCut => {
                world.count(|counts| counts.crashes += 1);
                disk = disk.crash_image(Loss::Drawn, &mut random);
            }
            End::Kill => {
                world.count(|counts| counts.kills += 1);
                settle_down(&disk);
            }
            End::CleanStop if is_last => {}
            End::CleanStop => world.count(|counts| counts.stops += 1),
        }
    }
    let world = Rc::into_inner(world).expect("nobody works any more");
    let mut counts = world.counts.into_inner();
    let record = world.record.into_inner();
    counts.transactions = record.begun() as u64;
    (record, counts, world.oddities.into_inner())
}

/// What a dead process had asked of the disk comes to its end.
fn settle_down(disk: &Rc<MemoryDisk>) {
    run_on(&disk.clock().clone(), disk, |_, handle| async move {
        handle.sleep(NANOS_PER_SECOND).await;
    })
    .expect("a sleep ends");
}

#[expect(clippy::too_many_arguments, reason = "a life is made of these")]
async fn one_life(
    files: Files,
    handle: Handle,
    world: Rc<World>,
    life: usize,
    target: usize,
    end: End,
    disk: Rc<MemoryDisk>,
    random: Random,
) {
    let setup = world.setup.clone();
    if life == 0 {
        create_databases(&files, &setup).await.unwrap();
    }
    let (instance, _) = open(&files, &handle, &setup, life as u64).await.unwrap();
    let (serials, table) = open_tables(&instance, &world, life).await.unwrap();
    if life > 0 {
        settle(&instance, serials, &world).await;
    }
    let mut joins = Vec::new();
    let killed = Rc::new(Notify::new());
    let dead = killed.notified();
    for number in 0..8 {
        let session = Session {
            world: world.clone(),
            handle: handle.clone(),
            table: table.clone(),
            instance: instance.clone(),
            serials,
            process: (life * 100 + number) as i64,
        };
        let (mut random, disk, killed) =
            (random.child(&format!("session {number}")), disk.clone(), killed.clone());
        joins.push(handle.spawn(async move {
            while session.world.record.borrow().begun() < target {
                one_transaction(&session, &mut random).await;
                session.handle.sleep(random.below(100_000)).await;
            }
            match end {
                End::PowerCut => disk.power_cut(),
                End::Kill => killed.notify_all(),
                End::CleanStop => return,
            }
            std::future::pending::<()>().await;
        }));
    }
    if end == End::Kill {
        dead.await;
        disk.process_died();
        return;
    }
    for join in joins {
        join.await;
    }
    let session = Session {
        world: world.clone(),
        handle,
        table,
        instance: instance.clone(),
        serials,
        process: (life * 100 + 99) as i64,
    };
    read_everything(&session).await;
    settle(&instance, serials, &world).await;
    drop(session);
    instance.close().await.unwrap();
}

/// The tree of the serial numbers and the table; made in the first life.
async fn open_tables(
    instance: &Rc<Instance>,
    world: &World,
    life: usize,
) -> Result<(Tree, Rc<OpenTable>)> {
    let (name, declared) = match world.kind {
        Kind::Lists => (lists::NAME, lists::table()),
        Kind::Registers => (registers::NAME, registers::table()),
        Kind::Plain => (plain::NAME, message_table(plain::NAME)),
    };
    if life > 0 {
        let marks = instance.open_table(1, MARKS).await?;
        return Ok((marks.row_tree(), Rc::new(instance.open_table(1, name).await?)));
    }
    let marks = instance.create_table(1, message_table(MARKS)).await?;
    let table = instance.create_table(1, declared).await?;
    Ok((marks.row_tree(), Rc::new(table)))
}

/// The table whose own tree holds the serial numbers: found again through the catalog.
const MARKS: &str = "Marks";

async fn settle(instance: &Instance, serials: Tree, world: &World) {
    let there = dump(instance, serials).await.unwrap();
    let survivors: BTreeSet<u64> = there
        .keys()
        .map(|key| u64::from_be_bytes(key[..].try_into().expect("eight bytes")))
        .collect();
    let lost = world.record.borrow_mut().settle(&survivors);
    world.count(|counts| counts.commits_lost += lost as u64);
}

async fn one_transaction(session: &Session, random: &mut Random) {
    let record = &session.world.record;
    let entry = record.borrow_mut().begin(session.process);
    let transaction = session.instance.begin();
    let work = Work { session, transaction: &transaction, entry };
    match steps(&work, random).await {
        Ok(()) => {}
        Err(EngineError::WriteConflict) => {
            session.world.count(|counts| counts.conflicts += 1);
            transaction.rollback().await.unwrap();
            record.borrow_mut().fail(entry);
            return;
        }
        // Who has looked first meets neither: a row that is there and not seen, or seen and not
        // there.
        Err(
            error @ (EngineError::KeyDuplicate { .. }
            | EngineError::RowNotFound
            | EngineError::BadRow(_)),
        ) => {
            work.expect(false, || error.to_string());
            transaction.rollback().await.unwrap();
            record.borrow_mut().fail(entry);
            return;
        }
        Err(error) => panic!("{error}"),
    }
    if random.chance(0.08) {
        session.world.count(|counts| counts.aborts += 1);
        if random.chance(0.5) {
            transaction.rollback().await.unwrap();
        } else {
            drop(transaction);
        }
        record.borrow_mut().fail(entry);
        return;
    }
    if record.borrow().changes(entry) {
        let serial = (entry as u64).to_be_bytes();
        transaction.insert(session.serials, &serial, b"").await.unwrap();
    }
    let durable = random.chance(0.5);
    record.borrow_mut().committing(entry, durable);
    let how = if durable { Commit::Durable } else { Commit::Lazy };
    transaction.commit(how).await.unwrap();
    record.borrow_mut().acknowledged(entry);
}

/// One to five steps, sometimes with a savepoint among them that is gone back to.
async fn steps(work: &Work<'_>, random: &mut Random) -> Result<()> {
    let record = &work.session.world.record;
    let mut savepoint = None;
    for _ in 0..1 + random.below(5) {
        if random.chance(0.1) {
            savepoint = Some((work.transaction.savepoint(), record.borrow().steps(work.entry)));
        }
        match work.session.world.kind {
            Kind::Lists => lists::step(work, random).await?,
            Kind::Registers => registers::step(work, random).await?,
            Kind::Plain => plain::step(work, random).await?,
        }
        if let Some((place, steps)) = savepoint.filter(|_| random.chance(0.3)) {
            work.transaction.rollback_to(place).await?;
            record.borrow_mut().take_back(work.entry, steps);
            work.count(|counts| counts.savepoints += 1);
            savepoint = None;
        }
        if random.chance(0.5) {
            work.session.handle.sleep(random.below(200_000)).await;
        }
    }
    Ok(())
}

/// One more transaction that reads everything, so that the order of all writes is known.
async fn read_everything(session: &Session) {
    let record = &session.world.record;
    let entry = record.borrow_mut().begin(session.process);
    let transaction = session.instance.begin();
    let work = Work { session, transaction: &transaction, entry };
    match session.world.kind {
        Kind::Lists => lists::read_everything(&work).await,
        Kind::Registers => registers::read_everything(&work).await,
        Kind::Plain => plain::read_everything(&work).await,
    }
    .unwrap();
    record.borrow_mut().committing(entry, true);
    transaction.commit(Commit::Durable).await.unwrap();
    record.borrow_mut().acknowledged(entry);
}
