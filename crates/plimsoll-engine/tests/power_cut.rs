//! Power cuts in virtual time. The power fails at a random moment of a busy run; what the disk lost is drawn; the databases are recovered, sometimes
//! with a second cut during recovery; then the auditor compares. The promise: every acknowledged commit is there, and the state is exactly
//! that of an unbroken run of commits.

mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::edit::{Edit, RowChange};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::{LogRecord, StructureRecord};
use plimsoll_engine::page::page_flags;
use plimsoll_io::{Clock, Context, Files, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions, Random};
use support::*;

#[derive(Default)]
struct Tally {
    cuts: u64,
    cuts_in_recovery: u64,
    commits_kept: u64,
    commits_lost: u64,
    simulated_ns: u64,
    /// What the logs found after the cuts tell of, by name.
    coverage: BTreeMap<&'static str, u64>,
}

/// Counts what recovery will meet in the log.
async fn note_coverage(files: Files, coverage: &RefCell<BTreeMap<&'static str, u64>>) {
    let reader = LogReader::new(files, LogNames::new(LOG, "E00"), Context::default());
    let Ok(generations) = reader.generations().await else {
        return;
    };
    let mut note = |name: &'static str| *coverage.borrow_mut().entry(name).or_default() += 1;
    if generations.len() > 1 {
        note("several generations");
    }
    for file in generations {
        let Ok(generation) = reader.read_generation(&file.path).await else {
            note("unreadable generation");
            continue;
        };
        if generation.torn_units > 0 {
            note("torn log flush");
        }
        if generation.shadows_used > 0 {
            note("log read from its shadow");
        }
        for (_, record) in generation.records(0).map_while(|record| record.ok()) {
            match record {
                LogRecord::Structure(structure) => note_structure(&structure, &mut note),
                LogRecord::Row(row) if row.compensation => note("change taken back"),
                LogRecord::Row(row) => match row.change {
                    RowChange::Revive { .. } => note("deleted row revived"),
                    RowChange::Remove => note("dead row removed"),
                    _ => {}
                },
                LogRecord::RecoveryUndo => note("earlier recovery"),
                _ => {}
            }
        }
    }
}

fn note_structure(structure: &StructureRecord, note: &mut impl FnMut(&'static str)) {
    if structure.pages_owned > 0 {
        note("database grown");
    }
    let edits = || structure.pages.iter().flat_map(|page| &page.edits);
    let (mut makes_anew, mut relinks) = (false, false);
    for edit in edits() {
        makes_anew |= matches!(edit, Edit::Format { .. });
        relinks |= matches!(edit, Edit::SetSiblings { .. });
        if let Edit::Format { flags, nodes, .. } = edit {
            match (flags & page_flags::ROOT != 0, flags & page_flags::LEAF != 0) {
                (true, false) => note("root split"),
                (true, true) if nodes.is_empty() => note("tree created or emptied"),
                (false, true) => note("leaf split"),
                (false, false) => note("branch split"),
                _ => {}
            }
        }
    }
    if relinks && !makes_anew {
        note("leaf unlinked");
    }
}

fn setup_for(random: &mut Random) -> Setup {
    let framing = if random.chance(0.5) {
        Framing::Sectors512
    } else {
        Framing::Segments4096
    };
    let size = [
        PageSize::KIB_4,
        PageSize::KIB_4,
        PageSize::KIB_8,
        PageSize::KIB_32,
    ][random.below(4) as usize];
    Setup {
        size,
        framing,
        page_images: true,
        cache_frames: 64 + random.below(200),
        databases: 1 + random.below(2) as u8,
        checkpoint_generations: 1 + random.below(3),
        waypoint_generations: if random.chance(0.25) {
            1 + random.below(2) as u32
        } else {
            0
        },
        circular: true,
    }
}

fn memory_for(random: &mut Random) -> MemoryOptions {
    let latency = Latency::Exponential {
        fixed_ns: 20_000,
        mean_ns: 20_000 + random.below(2_000_000),
    };
    MemoryOptions {
        latency: LatencyPlan::of(latency),
        // Devices with 4 KiB blocks make the log write whole blocks; what tears is still a sector.
        alignment_bytes: if random.chance(0.3) { 4096 } else { 512 },
        ..MemoryOptions::default()
    }
}

/// Runs sessions on the disk until the power fails or `transactions` each are done.
fn run_until_cut(
    disk: &Rc<MemoryDisk>,
    setup: &Setup,
    field: &Rc<RefCell<Option<Field>>>,
    ledger: &Rc<RefCell<Ledger>>,
    seed: u64,
    round: u64,
) {
    let (setup, field, ledger) = (setup.clone(), field.clone(), ledger.clone());
    run_until_power_lost(disk, move |files, handle| async move {
        let Ok((instance, _)) = open(&files, &handle, &setup, seed ^ round).await else {
            return;
        };
        if field.borrow().is_none() {
            // The slow form has worlds with trees of three levels and databases that grow.
            let (keys, rows_per_page_min) = if seed >= 1_000 && seed.is_multiple_of(3) {
                (8_000, 4)
            } else {
                (1_500, 8)
            };
            let bytes_max = setup.size.bytes() as u64 / rows_per_page_min;
            let Ok(created) = create_field(&instance, &setup, keys, bytes_max).await else {
                return;
            };
            // The trees exist for sure only once the log has them.
            if instance
                .store()
                .log
                .make_durable(instance.store().log.tip())
                .await
                .is_err()
            {
                return;
            }
            *field.borrow_mut() = Some(created);
        }
        let field = field.borrow().clone().expect("it was just set");
        let mut joins = Vec::new();
        for session in 0..4u64 {
            let (instance, field, ledger) = (instance.clone(), field.clone(), ledger.clone());
            let mut random = Random::from_seed(seed).child(&format!("round {round} session {session}"));
            joins.push(handle.spawn(async move {
                let weights = Weights::swarm(&mut random);
                for number in 0..150 {
                    let serial = round * 1_000_000 + session * 1_000 + number;
                    if one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            }));
        }
        for join in joins {
            join.await;
        }
    });
}

/// Cuts the power; the disk found afterwards. Its clock may be another one, so time is added up here.
fn cut(disk: &Rc<MemoryDisk>, since: &mut u64, random: &mut Random, tally: &mut Tally) -> Rc<MemoryDisk> {
    disk.power_cut();
    tally.cuts += 1;
    tally.simulated_ns += disk.clock().now() - *since;
    let found = disk.crash_image(Loss::Drawn, random);
    *since = found.clock().now();
    found
}

/// One world: several rounds of work, cut, recovery and audit on the same databases.
fn world(seed: u64, rounds: u64, tally: &mut Tally) {
    let mut random = Random::from_seed(seed).child("world");
    let setup = setup_for(&mut random);
    let memory = memory_for(&mut random);
    let clock = Rc::new(Clock::simulated());
    let mut disk = new_disk(&clock, seed, memory);
    let creating = setup.clone();
    run_on(&clock, &disk, move |files, _| async move {
        create_databases(&files, &creating).await.unwrap()
    })
    .unwrap();
    let field: Rc<RefCell<Option<Field>>> = Rc::default();
    let ledger: Rc<RefCell<Ledger>> = Rc::default();
    let mut since = 0;
    for round in 0..rounds {
        let kept_before = ledger.borrow().committed.len();
        let now = disk.clock().now();
        disk.power_cut_at(now + 1 + random.below(3_000_000_000));
        run_until_cut(&disk, &setup, &field, &ledger, seed, round);
        disk = cut(&disk, &mut since, &mut random, tally);
        while random.chance(0.4) {
            // The power fails again while recovery is at work.
            let now = disk.clock().now();
            disk.power_cut_at(now + 1 + random.below(300_000_000));
            let recovering = setup.clone();
            run_until_power_lost(&disk, move |files, handle| async move {
                let _ = open(&files, &handle, &recovering, seed).await;
            });
            disk = cut(&disk, &mut since, &mut random, tally);
            tally.cuts_in_recovery += 1;
        }
        let coverage = Rc::new(RefCell::new(std::mem::take(&mut tally.coverage)));
        let noted = coverage.clone();
        run_on(&disk.clock().clone(), &disk, move |files, _| async move {
            note_coverage(files, &noted).await;
        })
        .unwrap();
        tally.coverage = coverage.take();
        let Some(known) = field.borrow().clone() else {
            continue;
        };
        let (auditing, books) = (setup.clone(), ledger.borrow().clone());
        let clock = disk.clock().clone();
        let survived = run_on(&clock, &disk, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &auditing, seed + 77)
                .await
                .unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}"));
            let survived = audit(&instance, &known, &books).await.unwrap();
            instance.close().await.unwrap();
            survived
        })
        .unwrap_or_else(|_| panic!("seed {seed} round {round}: recovery hangs"));
        let mut books = ledger.borrow_mut();
        tally.commits_kept += (survived - kept_before) as u64;
        tally.commits_lost += (books.committed.len() - survived) as u64;
        books.committed.truncate(survived);
    }
}

fn many(first_seed: u64, worlds: u64, tally: &mut Tally) {
    for seed in first_seed..first_seed + worlds {
        println!("seed {seed}");
        world(seed, 4, tally);
    }
    println!(
        "{} power cuts, {} of them in recovery; {} commits kept, {} unacknowledged ones lost; in {:.3} simulated seconds",
        tally.cuts,
        tally.cuts_in_recovery,
        tally.commits_kept,
        tally.commits_lost,
        tally.simulated_ns as f64 / 1e9
    );
    println!("{:?}", tally.coverage);
}

/// What every run must have met, or its cuts prove less than they seem to.
const MET_ALWAYS: [&str; 6] = [
    "leaf split",
    "root split",
    "leaf unlinked",
    "change taken back",
    "deleted row revived",
    "dead row removed",
];

/// What only the many and larger worlds of the slow form meet for sure.
const MET_IN_THE_LONG_RUN: [&str; 6] = [
    "branch split",
    "database grown",
    "several generations",
    "earlier recovery",
    "torn log flush",
    "log read from its shadow",
];

fn check_met(tally: &Tally, names: &[&str]) {
    for name in names {
        assert!(tally.coverage.contains_key(name), "no cut met: {name}");
    }
}

#[test]
fn two_hundred_power_cuts_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    many(1, 34, &mut tally);
    assert!(tally.cuts >= 200, "only {} cuts", tally.cuts);
    assert!(
        tally.cuts_in_recovery > 20 && tally.commits_lost > 0,
        "the cuts must hurt to prove anything"
    );
    check_met(&tally, &MET_ALWAYS);
}

#[test]
#[ignore = "slow: `make simulate SEED=n` and `make slow`"]
fn ten_thousand_simulated_power_cuts_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    let mut seed = first_seed(1_000);
    while tally.cuts < 10_000 {
        many(seed, 50, &mut tally);
        seed += 50;
    }
    check_met(&tally, &MET_ALWAYS);
    check_met(&tally, &MET_IN_THE_LONG_RUN);
}
