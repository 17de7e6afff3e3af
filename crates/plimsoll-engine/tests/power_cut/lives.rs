//! The lives that processes have led on the databases before the one in which the power fails: killed while sessions are at work, or closed beside them,
//! with backups, and with operations that their callers dropped. No power is lost between them, so each finds what the one before had written, also
//! what was never synced; the cut takes that away from the last.
//!
//! Everything here is drawn by itself, so that what a seed does otherwise stays as it is.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
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

/// The share of rounds with another life before the one that is cut, and of lives with one before them.
const EARLIER: f64 = 0.3;
const LIVES_MAX: u64 = 3;
/// How often a life ends with a kill; the others end with a close.
const KILLED: f64 = 0.7;
const BACKED_UP: f64 = 0.3;
const CARELESS: f64 = 0.3;
/// The longest that what a dead process had asked of the disk takes.
const SETTLING_NS: u64 = NANOS_PER_SECOND;
/// Serial numbers of lives lie above those of rounds.
const FIRST_LIFE: u64 = 1_000;

/// Runs the earlier lives of a round and checks after each that nothing acknowledged is lost; names what they were.
pub fn run(world: &World, round: u64) -> BTreeSet<&'static str> {
    let mut random = Random::from_seed(world.seed).child(&format!("lives of round {round}"));
    let mut lived = BTreeSet::new();
    for number in 0..LIVES_MAX {
        if !random.chance(EARLIER) {
            break;
        }
        let life = Life {
            number: FIRST_LIFE + round * LIVES_MAX + number,
            ends_after_ns: 1 + random.below(400 * NANOS_PER_MILLISECOND),
            is_killed: random.chance(KILLED),
            has_backups: random.chance(BACKED_UP),
            is_careless: random.chance(CARELESS),
        };
        lived.extend(life.names());
        life.run(world);
        look_after(world, &mut random);
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
}

impl Life {
    fn names(self) -> impl Iterator<Item = &'static str> {
        let is_so = [
            self.is_killed,
            !self.is_killed,
            self.has_backups,
            self.is_careless,
        ];
        OF_LIVES
            .into_iter()
            .zip(is_so)
            .filter_map(|(name, is_so)| is_so.then_some(name))
    }

    /// Runs sessions until it is killed, or closed beside them.
    fn run(self, world: &World) {
        world.is_careless.set(world.is_careless.get() || self.is_careless);
        let (disk, seed, kind) = (world.disk.clone(), world.seed, world.kind);
        let opened = Opened::default();
        let work = work_of(world, self.number, opened.clone());
        let lived = run_on(
            &disk.clock().clone(),
            &disk.clone(),
            move |files, handle| async move {
                let working = handle.spawn(work(files, handle.clone()));
                let beside = handle.spawn(self.work_beside(opened.clone(), handle.clone(), (seed, kind)));
                handle.sleep(self.ends_after_ns).await;
                let instance = opened.borrow().clone();
                match instance {
                    Some(instance) if !self.is_killed => {
                        let closed = instance.close().await;
                        closed.unwrap_or_else(|error| panic!("seed {seed} life {}: {error}", self.number));
                        working.await;
                        beside.await;
                    }
                    _ => disk.process_died(),
                }
            },
        );
        lived.unwrap_or_else(|_| panic!("seed {seed} life {}: somebody waits for ever", self.number));
        settle(&world.disk);
    }

    /// What goes on beside the sessions.
    async fn work_beside(self, opened: Opened, handle: Handle, (seed, kind): (u64, Kind)) {
        let mut random = Random::from_seed(seed).child(&format!("beside life {}", self.number));
        while opened.borrow().is_none() {
            handle.sleep(NANOS_PER_MILLISECOND).await;
        }
        let instance = opened.borrow().clone().expect("it was just there");
        for number in 0..6 {
            handle.sleep(random.below(40 * NANOS_PER_MILLISECOND)).await;
            if self.has_backups {
                back_up(&instance, u64::MAX).await;
            }
            if self.is_careless {
                drop_an_operation(&instance, kind, &mut random, self.number * 10 + number).await;
            }
        }
    }
}

/// Reads a database as a backup does, and drops that after so many polls.
async fn back_up(instance: &Rc<Instance>, polls: u64) {
    let backing_up = async {
        let mut backup = Backup::start(instance, 1, 64 * 1024)?;
        while backup.next_chunk().await?.is_some() {}
        backup.finish().await
    };
    if let Some(Err(error)) = give_up_after(polls, backing_up).await {
        assert!(instance.store().closing.get(), "a backup of sound pages: {error}");
    }
}

/// Begins a public operation and drops it at one of its waits.
async fn drop_an_operation(instance: &Rc<Instance>, kind: Kind, random: &mut Random, number: u64) {
    let polls = 1 + random.below(24);
    match random.below(6) {
        // Where the sessions have made the tree of object numbers their own, nobody can make tables.
        0 | 1 if kind == Kind::Plain => {
            let object = 900 + number as u32 % 1_000;
            drop(give_up_after(polls, instance.create_tree(1, 1, object, 0, 4)).await);
        }
        0 | 1 => {
            let table = message_table(&format!("Dropped {number}"));
            drop(give_up_after(polls, instance.create_table(1, table)).await);
        }
        2 => drop(give_up_after(polls, instance.open_table(1, "Messages")).await),
        3 => drop(give_up_after(polls, instance.checkpoint()).await),
        4 => {
            if let Ok(database) = instance.database(1) {
                drop(give_up_after(polls, database.update_header(|_| ())).await);
            }
        }
        _ => back_up(instance, polls).await,
    }
}

/// What a dead process had asked of the disk is carried out, and its files are closed.
fn settle(disk: &Rc<MemoryDisk>) {
    let settled = run_on(&disk.clock().clone(), disk, |_, handle| async move {
        handle.sleep(SETTLING_NS).await;
    });
    settled.expect("a sleep ends");
}

/// The next process opens the databases, compares, perhaps moves its checkpoint, and dies or closes them.
fn look_after(world: &World, random: &mut Random) {
    let (setup, seed) = (world.setup.clone(), world.seed);
    let ground = world.ground.borrow().clone();
    let history = History::of(&world.ledger.borrow());
    let promises = world.promises()();
    let has_table = world.kind == Kind::Tables;
    let (moves_checkpoint, closes) = (random.chance(0.6), random.chance(0.2));
    let dying = world.disk.clone();
    let survived = run_on(
        &world.disk.clock().clone(),
        &world.disk,
        move |files, handle| async move {
            let opened = open(&files, &handle, &setup, seed + 78).await;
            let (instance, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            if moves_checkpoint {
                // Before anything else: what is dirty now is only what was redone.
                instance
                    .checkpoint()
                    .await
                    .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
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
                instance
                    .close()
                    .await
                    .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            } else {
                dying.process_died();
            }
            survived
        },
    );
    let survived = survived.unwrap_or_else(|_| panic!("seed {seed}: recovery after a life hangs"));
    settle(&world.disk);
    world.ledger.borrow_mut().committed.truncate(survived);
}
