//! One world of the simulation: several rounds of work, power cut, recovery and audit on the same
//! databases.
//!
//! Worlds differ in page size, framing, cache, latency and in what their sessions do: a swarm on
//! plain trees, deep trees of few rows that grow and are swept empty, or a table with long values.
//! A cut comes at a random moment, or is aimed at an operation of a rare kind.
//!
//! Here a round is cut once. `forked.rs` cuts it at many moments, which is cheaper; what this file
//! does with a seed stays as it is, because seeds that have found a fault are named tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::system;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, Effect, FaultRule, Files, Handle, Loss, MemoryDisk, OperationKind, Purpose, Random,
};

use crate::Tally;
use crate::coverage::{Shape, count, name_kind_of_disk, to_be_redone, under_way};
use crate::sizes::{
    Rows, Scale, break_sectors, draw_beginnings, draw_wide_keys, large, leave_out_images,
    memory_for, small,
};
use crate::support::*;
use crate::tables;

/// What the sessions of a world do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Deep,
    Tables,
}

/// Sessions that fill trees as fast as they can; sweeps empty them.
const GROWING: Weights = Weights {
    insert: 8,
    delete: 1,
    replace: 1,
    lazy: 0.5,
    rollback: 0.05,
    savepoint: 0.1,
    operations_max: 24,
    narrow: 0.0,
};

/// What was made before the sessions began.
#[derive(Clone)]
pub struct Ground {
    pub field: Field,
    pub long_values: Vec<u32>,
}

pub struct World {
    pub seed: u64,
    pub kind: Kind,
    pub scale: Scale,
    pub setup: Setup,
    has_breaking_sectors: bool,
    pub rows: Rows,
    pub disk: Rc<MemoryDisk>,
    pub ground: Rc<RefCell<Option<Ground>>>,
    /// How often the ground was begun to be made.
    beginnings: Rc<Cell<u32>>,
    pub ledger: Rc<RefCell<Ledger>>,
    pub shape: Shape,
    /// Commits found at the last audit.
    pub kept: Cell<usize>,
    /// What the lives before the round's own were.
    pub lived: BTreeSet<&'static str>,
    /// Whether operations were dropped half-way: nobody knows which pages those have left with
    /// nobody.
    pub is_careless: Cell<bool>,
    /// Clock of the disk when it was found.
    pub since_ns: u64,
}

/// A cut at an operation that a random moment seldom meets.
pub fn aimed(random: &mut Random) -> FaultRule {
    let rule = FaultRule::new(if random.chance(0.7) {
        Effect::CutPowerWhenSubmitted
    } else {
        Effect::CutPowerWhenDone
    });
    let write = rule.clone().with_kind(OperationKind::Write);
    match random.below(6) {
        0 | 1 => write.with_path_part(".chk").nth(1 + random.below(6)),
        2 => write.with_purpose(Purpose::Header).with_path_part(".edb").nth(1 + random.below(12)),
        3 => rule.with_kind(OperationKind::Rename).with_path_part("E00").nth(1 + random.below(6)),
        4 => rule.with_kind(OperationKind::Delete).with_path_part("E000").nth(1 + random.below(3)),
        _ => {
            rule.with_kind(OperationKind::SyncFile).with_path_part(".edb").nth(1 + random.below(8))
        }
    }
}

/// Databases seldom grow, and ten thousand random cuts may miss it: in some worlds of every kind,
/// whenever one does is a moment to cut.
fn watches_growth(seed: u64) -> bool {
    seed % 9 == 4
}

/// A cut when a database grows next.
pub fn growth() -> FaultRule {
    let rule = FaultRule::new(Effect::CutPowerWhenSubmitted).with_kind(OperationKind::Extend);
    rule.with_path_part(".edb").nth(1)
}

/// A world before its first round, and what decides about it from here on.
pub fn begin(seed: u64, scale: Scale) -> (World, Random) {
    let mut random = Random::from_seed(seed).child("world");
    let kind = [Kind::Plain, Kind::Deep, Kind::Plain, Kind::Tables][(seed % 4) as usize];
    let (mut setup, mut rows) = match scale {
        Scale::Small => small(&mut random, kind),
        Scale::Large => large(&mut random, kind, seed),
    };
    if scale == Scale::Small {
        draw_beginnings(seed, kind, &mut rows);
        draw_wide_keys(seed, kind, &mut setup, &mut rows);
    }
    let mut memory = memory_for(&mut random);
    leave_out_images(seed, &mut setup, &mut memory);
    let has_breaking_sectors = break_sectors(&setup, &mut memory);
    let disk = new_disk(&Rc::new(Clock::simulated()), seed, memory);
    let creating = setup.clone();
    run_on(&disk.clock().clone(), &disk, move |files, _| async move {
        create_databases(&files, &creating).await.unwrap()
    })
    .unwrap();
    let world = World {
        seed,
        kind,
        scale,
        setup,
        has_breaking_sectors,
        rows,
        disk,
        ground: Rc::default(),
        beginnings: Rc::default(),
        ledger: Rc::default(),
        shape: Shape::default(),
        kept: Cell::new(0),
        lived: BTreeSet::new(),
        is_careless: Cell::new(false),
        since_ns: 0,
    };
    (world, random)
}

/// Runs a world; adds what it met to `tally`.
pub fn run(seed: u64, rounds: u64, tally: &mut Tally) {
    let (mut world, mut random) = begin(seed, Scale::Large);
    let kind = world.kind;
    for round in 0..rounds {
        if random.chance(if kind == Kind::Deep { 0.25 } else { 0.5 }) {
            world.disk.inject(aimed(&mut random));
        }
        if watches_growth(seed) {
            world.disk.inject(growth());
        }
        // By events as well as by time: fast disks are done with the work of a round in no time.
        if random.chance(0.5) {
            let events = if kind == Kind::Deep { 9_000 } else { 2_500 };
            world.disk.power_cut_at_event(1 + random.below(events));
        } else {
            let now = world.disk.clock().now();
            world.disk.power_cut_at(now + 1 + random.below(1_500_000_000));
        }
        world.work(round);
        world.cut(&mut random, tally, false);
        while random.chance(0.4) {
            // The power fails again while recovery is at work.
            let recovering = world.recover_until_cut(&mut random);
            world.cut(&mut random, tally, recovering);
            tally.cuts_in_recovery += u64::from(recovering);
        }
        world.audit(round, round + 1 == rounds, tally);
    }
}

impl World {
    /// Runs sessions on the disk until the power fails or their work is done.
    pub fn work(&self, round: u64) {
        run_until_power_lost(&self.disk, work_of(self, round, Rc::default()));
    }

    /// The tree of the serial numbers, where nothing can be left of another attempt to make it.
    pub fn only_serials(&self, ground: Option<&Ground>) -> Option<Tree> {
        ground
            .filter(|_| self.beginnings.get() == 1)
            // Trees that are in no catalog stay where they are when their makers stop waiting;
            // tables do not.
            .filter(|_| !self.is_careless.get() || self.kind == Kind::Tables)
            .map(|ground| ground.field.serials)
    }

    /// Adds what a cut met on a disk of this kind.
    pub fn name(&self, met: &mut BTreeSet<&'static str>) {
        name_kind_of_disk(met, self.setup.page_images, self.has_breaking_sectors);
        met.extend(&self.lived);
    }

    /// Cuts the power; the disk found afterwards is the world's from now on. Its clock may be
    /// another one, so time is added up here.
    fn cut(&mut self, random: &mut Random, tally: &mut Tally, recovering: bool) {
        let mut met = under_way(&self.disk);
        met.extend(recovering.then_some("recovery"));
        self.disk.power_cut();
        tally.cuts += 1;
        tally.simulated_ns += self.disk.clock().now() - self.since_ns;
        let found = self.disk.crash_image(Loss::Drawn, random);
        self.since_ns = found.clock().now();
        self.disk = found;
        let roots =
            self.ground.borrow().as_ref().map_or(Vec::new(), |ground| ground.long_values.clone());
        met.extend(to_be_redone(&self.disk, &mut self.shape, &roots));
        self.name(&mut met);
        count(&mut tally.coverage, met);
    }

    /// Opens and loses power at a random moment of that; whether recovery was still under way.
    fn recover_until_cut(&self, random: &mut Random) -> bool {
        if random.chance(0.2) {
            self.disk.inject(aimed(random));
        }
        let now = self.disk.clock().now();
        self.disk.power_cut_at(now + 1 + random.below(300_000_000));
        let (setup, seed) = (self.setup.clone(), self.seed);
        let opened = Rc::new(Cell::new(false));
        let done = opened.clone();
        run_until_power_lost(&self.disk, move |files, handle| async move {
            let instance = open(&files, &handle, &setup, seed).await;
            done.set(true);
            drop(instance);
        });
        !opened.get()
    }

    fn audit(&self, round: u64, is_last: bool, tally: &mut Tally) {
        let Some(ground) = self.ground.borrow().clone() else {
            return;
        };
        let (setup, books, seed) = (self.setup.clone(), self.ledger.borrow().clone(), self.seed);
        let has_table = self.kind == Kind::Tables;
        let serials = self.only_serials(Some(&ground));
        let survived =
            run_on(&self.disk.clock().clone(), &self.disk, move |files, handle| async move {
                let (instance, _) = open(&files, &handle, &setup, seed + 77)
                    .await
                    .unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}"));
                let survived = audit(&instance, &ground.field, &books).await.unwrap();
                if has_table {
                    tables::audit(&instance, &books, survived).await;
                }
                instance.close().await.unwrap();
                if has_table && is_last {
                    tables::check_files(&files, &handle, seed, serials).await;
                }
                survived
            })
            .unwrap_or_else(|_| panic!("seed {seed} round {round}: recovery hangs"));
        let mut books = self.ledger.borrow_mut();
        tally.commits_kept += (survived - self.kept.replace(survived)) as u64;
        tally.commits_lost += (books.committed.len() - survived) as u64;
        books.committed.truncate(survived);
    }
}

/// The instance that a life has opened, for who works beside its sessions.
pub type Opened = Rc<RefCell<Option<Rc<Instance>>>>;

/// What a process does on the databases: opens them, makes what is not there yet, and runs
/// sessions. `round` names it.
pub fn work_of(
    world: &World,
    round: u64,
    opened: Opened,
) -> impl FnOnce(Files, Handle) -> Pin<Box<dyn Future<Output = ()>>> + use<> {
    let (setup, kind, rows, seed) = (world.setup.clone(), world.kind, world.rows, world.seed);
    let (ground, ledger) = (world.ground.clone(), world.ledger.clone());
    let beginnings = world.beginnings.clone();
    move |files, handle| {
        Box::pin(async move {
            let Ok((instance, _)) = open(&files, &handle, &setup, seed ^ round).await else {
                return;
            };
            *opened.borrow_mut() = Some(instance.clone());
            if ground.borrow().is_none() {
                beginnings.set(beginnings.get() + 1);
                let Ok(made) = prepare_ground(&instance, &setup, kind, rows).await else {
                    return;
                };
                *ground.borrow_mut() = Some(made);
            }
            let ground = ground.borrow().clone().expect("it was just set");
            sessions(&instance, &handle, kind, rows, &ground, &ledger, (seed, round)).await;
        })
    }
}

async fn prepare_ground(
    instance: &Rc<Instance>,
    setup: &Setup,
    kind: Kind,
    rows: Rows,
) -> Result<Ground> {
    let mut long_values = Vec::new();
    let field = match kind {
        Kind::Plain => {
            let mut field = create_field(instance, setup, rows.keys, rows.bytes_max).await?;
            field.data.extend(adopt_small_trees(instance).await?);
            field
        }
        Kind::Deep => Field {
            prefix_bytes: rows.prefix_bytes,
            keys_per_prefix: rows.keys_per_prefix,
            ..create_field(instance, setup, rows.keys, rows.bytes_max).await?
        },
        Kind::Tables => {
            let (field, root) = tables::create(instance, rows).await?;
            long_values.push(root);
            field
        }
    };
    // The trees exist for sure only once the log has them.
    instance.store().log.make_durable(instance.store().log.tip()).await?;
    Ok(Ground { field, long_values })
}

/// Trees of one page and one extent, as every database has them for its own use; emptied, they are
/// as good as any other. They have to get space trees as soon as they grow.
async fn adopt_small_trees(instance: &Rc<Instance>) -> Result<Vec<Tree>> {
    let trees = [
        tree_of(1, system::OBJECT_IDS_ROOT, system::OBJECT_IDS_OBJECT),
        tree_of(1, system::LOCALES_ROOT, system::LOCALES_OBJECT),
    ];
    let transaction = instance.begin();
    for tree in trees {
        for key in dump(instance, tree).await?.into_keys() {
            transaction.delete(tree, &key).await?;
        }
    }
    transaction.commit(Commit::Lazy).await?;
    Ok(trees.to_vec())
}

async fn sessions(
    instance: &Rc<Instance>,
    handle: &Handle,
    kind: Kind,
    rows: Rows,
    ground: &Ground,
    ledger: &Rc<RefCell<Ledger>>,
    (seed, round): (u64, u64),
) {
    let table = match kind {
        Kind::Tables => match tables::open(instance).await {
            Ok(table) => Some(Rc::new(table)),
            Err(_) => return,
        },
        _ => None,
    };
    let mut joins = Vec::new();
    for session in 0..4u64 {
        let (instance, field, ledger, table) =
            (instance.clone(), ground.field.clone(), ledger.clone(), table.clone());
        let mut random = Random::from_seed(seed).child(&format!("round {round} session {session}"));
        let spawner = handle;
        let handle = handle.clone();
        joins.push(spawner.spawn(async move {
            let weights = match kind {
                Kind::Deep => GROWING,
                _ => Weights::swarm(&mut random),
            };
            for number in 0..rows.transactions {
                if rows.pause_ns_max > 0 {
                    let pause_ns = random.below(rows.pause_ns_max);
                    handle.sleep(pause_ns).await;
                }
                let serial = round * 1_000_000 + session * 1_000 + number;
                let done = match &table {
                    Some(table) => {
                        tables::one_transaction(
                            &instance,
                            table,
                            &field,
                            serial,
                            &mut random,
                            &ledger,
                        )
                        .await
                    }
                    None if kind == Kind::Deep && random.chance(0.05) => {
                        sweep(&instance, &field, serial, &mut random, &ledger).await
                    }
                    None => {
                        one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                            .await
                    }
                };
                if done.is_err() || (random.chance(0.04) && instance.checkpoint().await.is_err()) {
                    return;
                }
            }
        }));
    }
    for join in joins {
        join.await;
    }
}

/// Deletes many rows that lie side by side, so that whole branches empty.
async fn sweep(
    instance: &Instance,
    field: &Field,
    serial: u64,
    random: &mut Random,
    ledger: &RefCell<Ledger>,
) -> Result<()> {
    let tree = field.data[random.below(field.data.len() as u64) as usize];
    let (first, count) = if random.chance(0.3) {
        (0, field.keys)
    } else {
        (random.below(field.keys), field.keys / 12 + random.below(field.keys / 2))
    };
    let transaction = instance.begin();
    let mut effects = Effects::new();
    for number in first..first + count {
        let key = field.key(number);
        match transaction.delete(tree, &key).await {
            Ok(()) => effects.push((tree, key, None)),
            Err(EngineError::RowNotFound) => {}
            Err(EngineError::WriteConflict) => return transaction.rollback().await,
            Err(error) => return Err(error),
        }
    }
    commit_noted(transaction, field, serial, effects, Commit::Lazy, ledger).await
}
