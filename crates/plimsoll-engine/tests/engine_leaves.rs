//! What the engine leaves behind is verified by the code that knows only the format: pages, headers, trees and space.
//!
//! Why it matters: the engine reads its own files with its own eyes. A leaked page or a wrong separator shows only to somebody who
//! looks at the whole file.

mod support;

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::catalog::Place;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::verify::{FileVerdict, KnownTree, VerifyOptions, verify, verify_trees};
use plimsoll_io::{Clock, Files, Handle, MemoryOptions, Random};
use support::*;

/// The trees of one database of the field, parents first.
fn known_trees(field: &Field, database: u8) -> Vec<KnownTree> {
    let mut trees = vec![KnownTree::DATABASE];
    let mut table_root = 1;
    for tree in field
        .data
        .iter()
        .chain([&field.serials])
        .filter(|tree| tree.database == database)
    {
        let place = Place {
            object: tree.object,
            root: tree.root,
        };
        let parent = if tree.kind == 0 { 1 } else { table_root };
        trees.push(KnownTree {
            place,
            kind: tree.kind,
            parent,
        });
        if tree.kind == 0 && tree.object == 51 {
            table_root = tree.root;
        }
    }
    trees
}

async fn work(
    instance: &Rc<Instance>,
    handle: &Handle,
    field: &Field,
    seed: u64,
    sessions: u64,
    transactions: u64,
) {
    let ledger: Rc<RefCell<Ledger>> = Rc::default();
    let mut joins = Vec::new();
    for session in 0..sessions {
        let (instance, field, ledger) = (instance.clone(), field.clone(), ledger.clone());
        let mut random = Random::from_seed(seed).child(&format!("session {session}"));
        joins.push(handle.spawn(async move {
            let weights = Weights::swarm(&mut random);
            for number in 0..transactions {
                let serial = session * 1_000_000 + number;
                let done = one_transaction(&instance, &field, &weights, serial, &mut random, &ledger).await;
                done.expect("the disk is sound");
            }
        }));
    }
    for join in joins {
        join.await;
    }
}

async fn check_files(files: &Files, handle: &Handle, setup: &Setup, field: &Field, seed: u64) {
    for number in 1..=setup.databases {
        let path = database_path(number);
        let report = verify(
            files,
            handle,
            std::slice::from_ref(&path),
            &VerifyOptions::default(),
        )
        .await;
        assert_eq!(
            report.files[0].verdict,
            FileVerdict::Sound,
            "seed {seed}: {:#?}",
            report.files[0]
        );
        let deep = verify_trees(files, handle, &path, &known_trees(field, number), 20).await;
        let deep = deep.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(
            deep.is_sound(),
            "seed {seed}, database {number}, {setup:?}: {:#?}",
            deep.findings
        );
    }
}

fn check(setup: Setup, seed: u64, sessions: u64, transactions: u64) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    let run = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let bytes_max = setup.size.bytes() as u64 / 6;
        let field = create_field(&instance, &setup, 1_000, bytes_max).await.unwrap();
        work(&instance, &handle, &field, seed, sessions, transactions).await;
        instance.close().await.unwrap();
        check_files(&files, &handle, &setup, &field, seed).await;
    });
    run.expect("the disk answers everything");
}

/// Cuts the power in the middle of work, recovers, stops and checks; false if the cut came before there were trees.
fn check_after_power_cut(seed: u64) -> bool {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    let setup = Setup::default();
    let (field, made) = (Rc::new(RefCell::new(None)), setup.clone());
    let filled = field.clone();
    let mut random = Random::from_seed(seed).child("cut");
    disk.power_cut_at(200_000_000 + random.below(2_000_000_000));
    run_until_power_lost(&disk, move |files, handle| async move {
        create_databases(&files, &made).await.unwrap();
        let (instance, _) = open(&files, &handle, &made, seed).await.unwrap();
        let made_field = create_field(&instance, &made, 1_000, 600).await.unwrap();
        // Without a durable commit the trees themselves may be lost.
        instance.checkpoint().await.unwrap();
        *filled.borrow_mut() = Some(made_field.clone());
        let weights = Weights::swarm(&mut Random::from_seed(seed));
        let ledger = RefCell::default();
        let mut random = Random::from_seed(seed).child("work");
        for serial in 0.. {
            let done = one_transaction(&instance, &made_field, &weights, serial, &mut random, &ledger).await;
            if done.is_err() {
                return;
            }
        }
    });
    let Some(field) = field.borrow_mut().take() else {
        return false;
    };
    let image = disk.crash_image(plimsoll_io::Loss::Drawn, &mut random);
    let clock = image.clock().clone();
    let run = run_on(&clock, &image, move |files, handle| async move {
        let opened = open(&files, &handle, &setup, seed + 1).await;
        let (instance, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        instance.close().await.unwrap();
        check_files(&files, &handle, &setup, &field, seed).await;
    });
    run.expect("the disk answers everything");
    true
}

/// Seeds to try: a few, or as many as `PLIMSOLL_SEEDS` says.
fn seeds(few: u64) -> u64 {
    let wanted = std::env::var("PLIMSOLL_SEEDS").ok();
    wanted.map_or(few, |text| text.parse().expect("PLIMSOLL_SEEDS is a number"))
}

/// After a power cut and recovery nothing is leaked and nothing is used twice.
#[test]
fn recovery_leaves_sound_files() {
    let checked = (0..seeds(8)).filter(|seed| check_after_power_cut(*seed)).count() as u64;
    assert!(
        checked * 2 > seeds(8),
        "most cuts come after the trees were made: {checked}"
    );
}

/// Logs, checkpoint and flush maps are verified with the databases; damage to any of them is found, a gap in the log too.
#[test]
fn logs_checkpoint_and_flush_maps_are_verified() {
    let setup = Setup {
        databases: 2,
        checkpoint_generations: 64,
        ..Setup::default()
    };
    for framing in [Framing::Sectors512, Framing::Segments4096] {
        check_all_files(Setup {
            framing,
            ..setup.clone()
        });
    }
}

fn check_all_files(setup: Setup) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, MemoryOptions::default());
    let world = disk.clone();
    let run = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        // Kept generations make a chain of several files.
        instance.hold_log("test", 1);
        let field = create_field(&instance, &setup, 1_000, 600).await.unwrap();
        work(&instance, &handle, &field, 5, 4, 900).await;
        instance.close().await.unwrap();
        let paths: Vec<_> = world.list_files().into_iter().map(|(path, _)| path).collect();
        let options = VerifyOptions::default();
        let report = verify(&files, &handle, &paths, &options).await;
        let kinds: Vec<_> = report.files.iter().map(|file| file.kind).collect();
        for kind in ["database", "log", "checkpoint", "flush_map"] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
        assert!(
            report.is_sound(),
            "{:#?}",
            report
                .files
                .iter()
                .find(|file| file.verdict != FileVerdict::Sound)
        );
        let logs: Vec<_> = report
            .files
            .iter()
            .filter(|file| file.kind == "log")
            .map(|file| file.path.clone())
            .collect();
        assert!(logs.len() >= 3, "a chain: {logs:?}");
        // A closed generation that is not there leaves a gap.
        let closed: Vec<_> = logs
            .iter()
            .filter(|path| path.to_string_lossy().contains("0000"))
            .collect();
        let with_gap: Vec<_> = paths.iter().filter(|path| *path != closed[1]).cloned().collect();
        let gapped = verify(&files, &handle, &with_gap, &options).await;
        let error = gapped
            .files
            .iter()
            .find_map(|file| file.error.clone())
            .expect("a gap is damage");
        assert!(error.contains("-528"), "{error}");
        for file in report.files.iter().filter(|file| file.kind != "database") {
            // The middle of what is written in a log, the second block of a checkpoint, the first page of a map.
            let offset = match file.kind {
                "log" => 4096 + file.page_bytes as u64 * ((file.pages_seen - file.uninitialized) / 3),
                "checkpoint" => 4096,
                _ => 8192,
            };
            if file.kind == "log" && file.pages_seen - file.uninitialized < 10 {
                continue;
            }
            let flip = |bytes: &mut [u8]| bytes[20] ^= 0x11;
            assert!(world.corrupt(&file.path, offset, flip));
            let damaged = verify(&files, &handle, std::slice::from_ref(&file.path), &options).await;
            assert!(!damaged.is_sound(), "{:#?}", file);
            assert!(world.corrupt(&file.path, offset, flip));
        }
    });
    run.expect("the disk answers everything");
}

/// After a swarm of sessions and a clean stop, every page of every database is sound, in its tree, and accounted for.
#[test]
fn a_clean_stop_leaves_sound_files() {
    for seed in 0..seeds(3) {
        check(Setup::default(), seed, 4, 120);
    }
    for size in PageSize::ALL {
        check(
            Setup {
                size,
                databases: 2,
                cache_frames: 160,
                ..Setup::default()
            },
            77,
            3,
            100,
        );
    }
}
