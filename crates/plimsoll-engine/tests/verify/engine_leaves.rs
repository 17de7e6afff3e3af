//! What the engine leaves behind is verified by the code that knows only the format: pages,
//! headers, trees and space.
//!
//! Why it matters: the engine reads its own files with its own eyes. A leaked page or a wrong
//! separator shows only to somebody who looks at the whole file.

use std::path::PathBuf;
use std::rc::Rc;

use crate::seeds::seeds;
use crate::support::*;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::verify::{Depth, FileVerdict, VerifyOptions, VerifyReport, verify};
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, Files, Handle, Loss, MemoryDisk, MemoryOptions, Random};

/// A table with everything: a primary key, two kinds of secondary index, values in and outside the
/// record.
fn messages() -> Table {
    Table::builder("Messages")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("folder", ColumnType::Long))
        .column(Column::new("name", ColumnType::Text))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .unique("by name", &["name"])
        .duplicates("by folder", &["folder"])
        .build()
        .expect("a valid table")
}

/// One change of a random row; false when the disk is gone.
async fn change(instance: &Instance, table: &OpenTable, random: &mut Random) -> bool {
    let transaction = instance.begin();
    let id = random.below(400) as i32;
    let (folder, name) = (random.below(9) as i32, format!("message {id}"));
    let bytes = if random.chance(0.2) { random.below(30_000) } else { random.below(700) };
    let body = vec![0x41 + (id % 20) as u8; bytes as usize];
    let key = table.key(&[Some(&id.to_le_bytes())]).expect("a key");
    let column = |name| table.column(name).expect("a column");
    let changed = [(column("folder"), folder.to_le_bytes().to_vec()), (column("body"), body)];
    let result = if random.chance(0.5) {
        let mut values =
            vec![(column("id"), id.to_le_bytes().to_vec()), (column("name"), name.into_bytes())];
        values.extend(changed);
        values.sort_by_key(|(column, _)| *column);
        let values: Vec<_> =
            values.iter().map(|(column, bytes)| (*column, Some(&bytes[..]))).collect();
        table.insert(&transaction, &values).await.map(drop)
    } else if random.chance(0.5) {
        let values: Vec<_> =
            changed.iter().map(|(column, bytes)| (*column, Some(&bytes[..]))).collect();
        table.update(&transaction, &key, &values).await
    } else {
        table.delete(&transaction, &key).await
    };
    match result {
        Ok(()) if random.chance(0.9) => transaction.commit(Commit::Lazy).await.is_ok(),
        Ok(())
        | Err(
            EngineError::KeyDuplicate { .. }
            | EngineError::RowNotFound
            | EngineError::WriteConflict,
        ) => transaction.rollback().await.is_ok(),
        Err(_) => false,
    }
}

async fn work(
    instance: &Rc<Instance>,
    handle: &Handle,
    table: &Rc<OpenTable>,
    seed: u64,
    changes: u64,
) {
    let mut joins = Vec::new();
    for session in 0..4 {
        let (instance, table) = (instance.clone(), table.clone());
        let mut random = Random::from_seed(seed).child(&format!("session {session}"));
        joins.push(handle.spawn(async move {
            for _ in 0..changes {
                if !change(&instance, &table, &mut random).await {
                    return;
                }
            }
        }));
    }
    for join in joins {
        join.await;
    }
}

fn all_files(disk: &MemoryDisk) -> Vec<PathBuf> {
    disk.list_files().into_iter().map(|(path, _)| path).collect()
}

async fn check_files(
    files: &Files,
    handle: &Handle,
    paths: &[PathBuf],
    what: &str,
) -> VerifyReport {
    let options = VerifyOptions { depth: Depth::Deep, ..VerifyOptions::default() };
    let report = verify(files, handle, paths, &options).await;
    for file in &report.files {
        assert_eq!(file.verdict, FileVerdict::Sound, "{what}: {file:#?}");
    }
    report
}

fn check(setup: Setup, seed: u64) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    let world = disk.clone();
    let run = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let table = Rc::new(instance.create_table(1, messages()).await.unwrap());
        work(&instance, &handle, &table, seed, 150).await;
        drop(table);
        instance.close().await.unwrap();
        let paths = [database_path(1)];
        let report = check_files(&files, &handle, &paths, &format!("seed {seed}, {setup:?}")).await;
        let deep = report.files[0].deep.as_ref().expect("it was asked for");
        assert!(
            deep.records > 100 && deep.index_entries > 200 && deep.long_values > 10,
            "{deep:?}"
        );
        drop(world);
    });
    run.expect("the disk answers everything");
}

/// Cuts the power in the middle of work, recovers, stops and checks; false if the cut came before
/// there was a table.
fn check_after_power_cut(seed: u64) -> bool {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    let setup = Setup::default();
    let made = setup.clone();
    let mut random = Random::from_seed(seed).child("cut");
    disk.power_cut_at(100_000_000 + random.below(500_000_000));
    run_until_power_lost(&disk, move |files, handle| async move {
        create_databases(&files, &made).await.unwrap();
        let (instance, _) = open(&files, &handle, &made, seed).await.unwrap();
        let table = Rc::new(instance.create_table(1, messages()).await.unwrap());
        work(&instance, &handle, &table, seed, u64::MAX).await;
    });
    let image = disk.crash_image(Loss::Drawn, &mut random);
    let (clock, world) = (image.clock().clone(), image.clone());
    let run = run_on(&clock, &image, move |files, handle| async move {
        let opened = open(&files, &handle, &setup, seed + 1).await;
        let (instance, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let has_table = instance.open_table(1, "Messages").await.is_ok();
        instance.close().await.unwrap();
        if has_table {
            check_files(&files, &handle, &all_files(&world), &format!("seed {seed}")).await;
        }
        has_table
    });
    run.expect("the disk answers everything")
}

/// After a power cut and recovery nothing is leaked and nothing is used twice.
#[test]
fn recovery_leaves_sound_files() {
    let all = first_seed(0)..first_seed(0) + seeds(6);
    let checked = all.filter(|seed| check_after_power_cut(*seed)).count() as u64;
    assert!(checked * 2 > seeds(6), "most cuts come after the trees were made: {checked}");
}

/// Logs, checkpoint and flush maps are verified with the databases; damage to any of them is found,
/// a gap in the log too.
#[test]
fn logs_checkpoint_and_flush_maps_are_verified() {
    let kept = Setup { circular: false, ..Setup::default() };
    let setup = Setup { databases: 2, checkpoint_generations: 64, ..kept };
    for framing in [Framing::Sectors512, Framing::Segments4096] {
        check_all_files(Setup { framing, ..setup.clone() });
    }
}

fn check_all_files(setup: Setup) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, MemoryOptions::default());
    let world = disk.clone();
    let run = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        let table = Rc::new(instance.create_table(1, messages()).await.unwrap());
        work(&instance, &handle, &table, 5, 400).await;
        drop(table);
        instance.close().await.unwrap();
        let paths = all_files(&world);
        let options = VerifyOptions::default();
        let report = verify(&files, &handle, &paths, &options).await;
        let kinds: Vec<_> = report.files.iter().map(|file| file.kind).collect();
        for kind in ["database", "log", "checkpoint", "flush_map"] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
        assert!(
            report.is_sound(),
            "{:#?}",
            report.files.iter().find(|file| file.verdict != FileVerdict::Sound)
        );
        let logs: Vec<_> = report
            .files
            .iter()
            .filter(|file| file.kind == "log")
            .map(|file| file.path.clone())
            .collect();
        assert!(logs.len() >= 3, "a chain: {logs:?}");
        // A closed generation that is not there leaves a gap.
        let closed: Vec<_> =
            logs.iter().filter(|path| path.to_string_lossy().contains("0000")).collect();
        let with_gap: Vec<_> = paths.iter().filter(|path| *path != closed[1]).cloned().collect();
        let gapped = verify(&files, &handle, &with_gap, &options).await;
        let error =
            gapped.files.iter().find_map(|file| file.error.clone()).expect("a gap is damage");
        assert!(error.contains("-528"), "{error}");
        for file in report.files.iter().filter(|file| file.kind != "database") {
            // The middle of what is written in a log, the second block of a checkpoint, the first
            // page of a map.
            let offset = match file.kind {
                "log" => {
                    4096 + file.page_bytes as u64 * ((file.pages_seen - file.uninitialized) / 3)
                }
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

/// After a swarm of sessions and a clean stop, every page is sound, in its tree and accounted for,
/// and rows, indexes and long values agree.
#[test]
fn a_clean_stop_leaves_a_sound_database() {
    for seed in first_seed(0)..first_seed(0) + seeds(2) {
        check(Setup::default(), seed);
    }
    for size in PageSize::ALL {
        check(Setup { size, cache_frames: 160, ..Setup::default() }, 77);
    }
}
