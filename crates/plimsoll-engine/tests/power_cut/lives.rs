//! The lives that processes have led on the databases before the one in which the power fails:
//! killed while sessions are at work, or closed beside them, with backups, and with operations that
//! their callers dropped. No power is lost between them, so each finds what the one before had
//! written, also what was never synced; the cut takes that away from the last.
//!
//! Everything here is drawn by itself, so that what a seed does otherwise stays as it is.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::error::Result;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::{Column, ColumnType, NewIndex};
use plimsoll_io::{Handle, MemoryDisk, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Random};

use crate::history::History;
use crate::support::*;
use crate::tables;
use crate::world::{Kind, Opened, World, work_of};

/// What lives may add to a world, as the coverage names it.
pub const OF_LIVES: [&str; 4] = [
    "kill before the cut",
    "close under load before the cut",
    "backup under load before the cut",
    "operations dropped before the cut",
];

/// The share of rounds with another life before the one that is cut, and of lives with one before
/// them.
const EARLIER: f64 = 0.3;
const LIVES_MAX: u64 = 3;
/// How often a life ends with a kill; the others end with a close.
const KILLED: f64 = 0.7;
const BACKED_UP: f64 = 0.3;
const CARELESS: f64 = 0.4;
/// How often a careless life ends with a kill: only a close misses what was left behind.
const KILLED_IF_CARELESS: f64 = 0.4;
/// How often a life that is killed has had its pages written shortly before, see [`roll`].
const ROLLING: f64 = 0.5;
const CLEANING_NS: u64 = 300 * NANOS_PER_MILLISECOND;
/// The longest that what a dead process had asked of the disk takes.
const SETTLING_NS: u64 = NANOS_PER_SECOND;
/// Serial numbers of lives lie above those of rounds.
const FIRST_LIFE: u64 = 1_000;

/// Runs the earlier lives of a round and checks after each that nothing acknowledged is lost; names
/// what they were.
pub fn run(world: &World, round: u64) -> BTreeSet<&'static str> {
    let mut random = Random::from_seed(world.seed).child(&format!("lives of round {round}"));
    let mut lived = BTreeSet::new();
    for number in 0..LIVES_MAX {
        if !random.chance(EARLIER) {
            break;
        }
        let is_careless = random.chance(CARELESS);
        let life = Life {
            number: FIRST_LIFE + round * LIVES_MAX + number,
            ends_after_ns: 1 + random.below(400 * NANOS_PER_MILLISECOND),
            is_killed: random.chance(if is_careless { KILLED_IF_CARELESS } else { KILLED }),
            has_backups: random.chance(BACKED_UP),
            is_careless,
            is_rolling: random.chance(ROLLING),
        };
        lived.extend(life.names());
        life.run(world);
        look_after(world, life, &mut random);
    }
    lived
}

#[derive(Clone, Copy)]
struct Life {
    number: u64,
    ends_after_ns: u64,
    is_killed: bool,
    has_backups: bool,
    is_careless: bool,
    is_rolling: bool,
}

impl Life {
    fn names(self) -> impl Iterator<Item = &'static str> {
        let is_so = [self.is_killed, !self.is_killed, self.has_backups, self.is_careless];
        OF_LIVES.into_iter().zip(is_so).filter_map(|(name, is_so)| is_so.then_some(name))
    }

    /// Runs sessions until it is killed, or closed beside them.
    fn run(self, world: &World) {
        world.is_careless.set(world.is_careless.get() || self.is_careless);
        let (disk, seed, kind) = (world.disk.clone(), world.seed, world.kind);
        let opened = Opened::default();
        let work = work_of(world, self.number, opened.clone());
        let lived = run_on(&disk.clock().clone(), &disk.clone(), move |files, handle| async move {
            let working = handle.spawn(work(files, handle.clone()));
            let beside =
                handle.spawn(self.work_beside(opened.clone(), handle.clone(), (seed, kind)));
            handle.sleep(self.ends_after_ns).await;
            let instance = opened.borrow().clone();
            match instance {
                Some(instance) if !self.is_killed => {
                    let closed = instance.close().await;
                    closed.unwrap_or_else(|error| {
                        panic!("seed {seed} life {}: {error}", self.number)
                    });
                    working.await;
                    beside.await;
                }
                Some(instance) if self.is_rolling => {
                    roll(&instance, &handle).await;
                    disk.process_died();
                }
                _ => disk.process_died(),
            }
        });
        lived.unwrap_or_else(|_| {
            panic!("seed {seed} life {}: somebody waits for ever", self.number)
        });
        settle(&world.disk);
    }

    /// What goes on beside the sessions.
    async fn work_beside(self, opened: Opened, handle: Handle, (seed, kind): (u64, Kind)) {
        let mut random = Random::from_seed(seed).child(&format!("beside life {}", self.number));
        while opened.borrow().is_none() {
            handle.sleep(NANOS_PER_MILLISECOND).await;
        }
        let instance = opened.borrow().clone().expect("it was just there");
        for number in 0..12 {
            handle.sleep(random.below(15 * NANOS_PER_MILLISECOND)).await;
            if self.has_backups {
                back_up(&instance, u64::MAX).await;
            }
            if self.is_careless {
                drop_an_operation(&instance, kind, &mut random, self.number * 20 + number).await;
            }
        }
    }
}

/// Goes on two generations and gives the cleaner time: pages that were changed before are in the
/// files then, and no checkpoint has synced them.
async fn roll(instance: &Instance, handle: &Handle) {
    let log = &instance.store().log;
    for _ in 0..2 {
        if log.make_durable(log.begin_generation().end).await.is_err() {
            return;
        }
    }
    handle.sleep(CLEANING_NS).await;
}

/// Reads a database as a backup does, and drops that after so many polls.
async fn back_up(instance: &Rc<Instance>, polls: u64) {
    let backing_up = async {
        let mut backup = Backup::start(instance, 1, 64 * 1024)?;
        while backup.next_chunk().await?.is_some() {}
        backup.finish().await
    };
    if let Some(Err(error)) = give_up_after(polls, backing_up).await {
        assert!(instance.store().is_closing(), "a backup of sound pages: {error}");
    }
}

/// Begins a public operation and drops it at one of its waits.
async fn drop_an_operation(instance: &Rc<Instance>, kind: Kind, random: &mut Random, number: u64) {
    // Most operations have few waits.
    let longest = 2 << random.below(5);
    let polls = 1 + random.below(longest);
    match random.below(8) {
        // Where the sessions have made the tree of object numbers their own, nobody can make
        // tables.
        0 | 1 if kind == Kind::Plain => {
            let object = 900 + number as u32 % 1_000;
            drop(give_up_after(polls, instance.create_tree(1, 1, object, 0, 4)).await);
        }
        0 | 1 => {
            let table = message_table(&format!("Dropped {number}"));
            drop(give_up_after(polls, instance.create_table(1, table)).await);
            drop(give_up_after(polls, change_a_schema(instance, number)).await);
        }
        2 => drop(give_up_after(polls, instance.open_table(1, "Messages")).await),
        3 => drop(give_up_after(polls, instance.checkpoint()).await),
        // Where a header stays half written, or its turn taken, everything stands still.
        4..=6 => {
            if let Ok(database) = instance.database(1) {
                drop(give_up_after(polls, database.update_header(|_| ())).await);
            }
        }
        _ => back_up(instance, polls).await,
    }
}

/// Changes a table that no session uses, if there is one.
async fn change_a_schema(instance: &Rc<Instance>, number: u64) -> Result<()> {
    let tables = instance.tables(1).await?;
    let placed = tables.into_iter().find(|placed| placed.table.name.starts_with("Dropped"));
    let Some(placed) = placed else {
        return Ok(());
    };
    let name = &placed.table.name;
    let new_name = format!("new {number}");
    match number % 6 {
        0 | 1 => instance.drop_table(1, name).await,
        2 => {
            let index = NewIndex::duplicates(&new_name, &["-folder"]);
            instance.add_index(1, name, index).await
        }
        3 => instance.drop_index(1, name, "by folder").await,
        4 => {
            let column = Column::new(&new_name, ColumnType::LongText);
            instance.add_column(1, name, column).await
        }
        _ => instance.drop_column(1, name, "body").await,
    }
}

/// What a dead process had asked of the disk is carried out, and its files are closed.
fn settle(disk: &Rc<MemoryDisk>) {
    let settled = run_on(&disk.clock().clone(), disk, |_, handle| async move {
        handle.sleep(SETTLING_NS).await;
    });
    settled.expect("a sleep ends");
}

/// How much larger the cache of the next process may be. In a cache that holds everything redo
/// writes nothing, and no write of its own makes it sync what the process before it has left.
const CACHES: [u64; 4] = [1, 4, 16, 16];

/// The next process opens the databases, compares, perhaps moves its checkpoint, and dies or closes
/// them.
fn look_after(world: &World, life: Life, random: &mut Random) {
    let (mut setup, seed) = (world.setup.clone(), world.seed);
    setup.cache_frames *= CACHES[random.below(CACHES.len() as u64) as usize];
    let ground = world.ground.borrow().clone();
    let history = History::of(&world.ledger.borrow());
    let promises = world.promises()();
    let has_table = world.kind == Kind::Tables;
    // What a killed process has written and not synced is lost for good only behind a checkpoint
    // that has passed it.
    let moves_checkpoint =
        random.chance(if life.is_killed && life.is_rolling { 0.95 } else { 0.6 });
    let closes = random.chance(0.15);
    let dying = world.disk.clone();
    let survived =
        run_on(&world.disk.clock().clone(), &world.disk, move |files, handle| async move {
            let opened = open(&files, &handle, &setup, seed + 78).await;
            let (instance, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            if moves_checkpoint {
                // Before anything else: what is dirty now is only what was redone.
                instance.checkpoint().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            let mut survived = 0;
            if let Some(ground) = &ground {
                survived = history.audit(&instance, &ground.field, &promises).await;
                if has_table {
                    let (tree, rows) = tables::read(&instance).await;
                    assert!(
                        agree(&rows, history.rows(tree, survived)),
                        "seed {seed}: rows of the table"
                    );
                }
            }
            if closes {
                instance.close().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            } else {
                dying.process_died();
            }
            survived
        });
    let survived = survived.unwrap_or_else(|_| panic!("seed {seed}: recovery after a life hangs"));
    settle(&world.disk);
    world.ledger.borrow_mut().committed.truncate(survived);
}
