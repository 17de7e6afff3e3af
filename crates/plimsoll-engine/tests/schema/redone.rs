//! Worlds in which changes of a schema fail or are killed while they wait for the disk, in one life
//! after the other, and the log of all of them is redone from a backup of before. What comes out is
//! what the last life left.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::error::Result;
use plimsoll_engine::instance::Instance;
use plimsoll_io::{
    DiskErrorKind, Effect, FaultRule, MemoryDisk, NANOS_PER_MILLISECOND, Purpose, Random,
};

use crate::ended::{back_up, keeping, work};
use crate::life::*;
use crate::support::*;
use crate::world::*;

const LIVES: u64 = 6;

/// Tables with their columns and indexes.
type Found = Vec<(String, Vec<String>, Vec<String>)>;

async fn look(instance: &Rc<Instance>) -> Found {
    let tables = instance.tables(1).await.unwrap();
    if tables.iter().any(|placed| placed.table.name == "Messages") {
        check_messages(instance).await;
    }
    let names = |placed: &plimsoll_engine::catalog::PlacedTable| {
        let table = &placed.table;
        let columns = table.columns.iter().map(|column| column.name.clone()).collect();
        let indexes = table.indexes.iter().map(|index| index.name.clone()).collect();
        (table.name.clone(), columns, indexes)
    };
    tables.iter().map(names).collect()
}

/// A table whose pages are in memory.
async fn read(instance: &Rc<Instance>, name: &str) -> Result<()> {
    let table = instance.open_table(1, name).await?;
    let key = table.key(&[Some(&1i32.to_le_bytes())])?;
    table.get(&instance.begin(), &key).await.map(drop)
}

/// Changes the schema a few times, each beside reads that fail, take long, or do neither. Whoever
/// is killed dies in the middle of the last change.
fn one_life(disk: &Rc<MemoryDisk>, mut random: Random) -> BTreeMap<&'static str, u64> {
    let failing = disk.clone();
    live(disk, move |files, handle| async move {
        let mut met = BTreeMap::new();
        let mut meet = |what| *met.entry(what).or_default() += 1;
        let instance = open_with(&files, &handle, options(&keeping())).await;
        work(&instance, random.below(40) as i32).await;
        let is_killed = random.chance(0.5);
        let changes = 1 + random.below(3);
        for number in 0..changes {
            let is_last = is_killed && number + 1 == changes;
            let change = match random.below(10) {
                0..6 if is_last => Change::DropTable,
                drawn => ALL[drawn as usize % ALL.len()],
            };
            if random.chance(0.7) {
                // It may have been dropped.
                let _ = read(&instance, "Messages").await;
            }
            let effect = match random.below(3) {
                0 => Effect::Fail(DiskErrorKind::Medium),
                _ => Effect::Delay(20 * NANOS_PER_MILLISECOND),
            };
            let mut rule = FaultRule::new(effect).with_purpose(Purpose::DatabaseRead);
            rule.skip = random.below(3);
            if random.chance(0.7) {
                failing.inject(rule);
            }
            let changing = instance.clone();
            let changed = handle.spawn(async move { carry_out(&changing, change).await });
            if is_last {
                handle.sleep(random.below(80 * NANOS_PER_MILLISECOND)).await;
                meet("killed");
                break;
            }
            meet(if changed.await.is_ok() { "made" } else { "failed" });
            failing.clear_faults();
            if instance.store().log.check().is_err() {
                meet("stopped");
                return met;
            }
            work(&instance, random.below(12) as i32).await;
        }
        failing.clear_faults();
        if is_killed {
            let log = &instance.store().log;
            log.make_durable(log.tip()).await.unwrap();
        } else {
            instance.close().await.unwrap();
        }
        met
    })
}

fn world(seed: u64) -> BTreeMap<&'static str, u64> {
    let disk = base(seed);
    let copy = live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&keeping())).await;
        let copy = back_up(&instance).await;
        instance.close().await.unwrap();
        copy
    });
    let random = Random::from_seed(seed).child("redone");
    let mut met: BTreeMap<&'static str, u64> = BTreeMap::new();
    for life in 0..LIVES {
        for (what, times) in one_life(&disk, random.child(&format!("life {life}"))) {
            *met.entry(what).or_default() += times;
        }
    }
    let of_looks = disk.clone();
    let look_at = move |what: &'static str| {
        live(&of_looks, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&keeping())).await;
            let found = look(&instance).await;
            instance.close().await.unwrap();
            check_file(&files, &handle, &format!("seed {seed}, {what}")).await;
            found
        })
    };
    let left = look_at("as it was left");
    disk.load(database_path(1), &copy);
    assert_eq!(look_at("rolled forward"), left, "seed {seed}");
    met
}

fn worlds(count: u64) {
    let first = first_seed(90_000);
    let mut met: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in first..first + count {
        println!("seed {seed}");
        for (what, times) in world(seed) {
            *met.entry(what).or_default() += times;
        }
    }
    println!("{met:#?}");
    for what in ["failed", "killed", "made"] {
        assert!(met.contains_key(what), "nobody met: {what}");
    }
}

/// Why it matters: a change that no life made was made by redo, with a commit of another.
#[test]
fn forty_worlds_of_broken_changes_are_redone_as_they_were_left() {
    worlds(40);
}

/// The same for as many worlds as told.
#[test]
#[ignore = "slow: make simulate runs it"]
fn many_worlds_of_broken_changes_are_redone_as_they_were_left() {
    worlds(wanted("PLIMSOLL_WORLDS").unwrap_or(1_000.0) as u64);
}
