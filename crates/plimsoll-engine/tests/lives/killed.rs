//! A process dies and the power stays, then another one works, then the power fails. What the first
//! had written and not synced is all there for the second, and may be gone for the third: whoever
//! builds on what he finds has to make it durable first.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::btree::{Tree, find};
use plimsoll_engine::edit::Edit;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::store::Progress;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Effect, FaultRule, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, OperationKind, Purpose,
    Random,
};

use crate::life::*;
use crate::support::*;

const ROWS: u64 = 400;

fn setup() -> Setup {
    Setup { page_images: false, cache_frames: 400, checkpoint_generations: 1, ..Setup::default() }
}

/// A disk that writes whole pages, so that no page images are needed.
fn memory() -> MemoryOptions {
    MemoryOptions { atomic_write_bytes: 4096, ..MemoryOptions::default() }
}

async fn replace_rows(instance: &Rc<Instance>, tree: Tree, rows: std::ops::Range<u64>, with: u8) {
    for number in rows {
        let transaction = instance.begin();
        transaction.replace(tree, &row_key(number), &[with; 200]).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
    }
    make_durable(instance).await;
}

/// A tree of rows and one of a single row, all written by a process that was closed.
fn rows_of_a_closed_life(disk: &Rc<MemoryDisk>) -> (Tree, Tree) {
    live(disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        for number in 0..ROWS {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[0; 200]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        let busy = instance.create_tree(1, 1, 51, 0, 16).await.unwrap();
        let transaction = instance.begin();
        transaction.insert(busy, b"busy", &[0; 2000]).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        instance.close().await.unwrap();
        (tree, busy)
    })
}

/// Which content how many rows have.
async fn contents(instance: &Rc<Instance>, tree: Tree) -> BTreeMap<u8, usize> {
    let mut found = BTreeMap::new();
    for data in dump(instance, tree).await.unwrap().into_values() {
        *found.entry(data[0]).or_default() += 1;
    }
    found
}

/// Why it matters: plans run without page images by default, runs are killed, and the power fails
/// on another day.
#[test]
fn what_a_killed_process_had_written_is_synced_before_the_checkpoint_passes_it() {
    let disk = disk_with_databases(1, &setup(), memory());
    let (tree, busy) = rows_of_a_closed_life(&disk);
    // All rows change, and the rows of other pages often enough for the pages of the first to be
    // written, and not synced.
    let before = live(&disk, move |files, handle| async move {
        let held = plimsoll_engine::instance::InstanceOptions {
            hold_checkpoint: true,
            ..options(&setup())
        };
        let instance = open_with(&files, &handle, held).await;
        replace_rows(&instance, tree, 0..ROWS, 7).await;
        let changed_in = instance.store().log.tip().generation;
        let mut number = 0u8;
        while instance.store().log.tip().generation < changed_in + 4 {
            let transaction = instance.begin();
            number = number.wrapping_add(1);
            transaction.replace(busy, b"busy", &[number; 2000]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        make_durable(&instance).await;
        handle.sleep(NANOS_PER_SECOND).await;
        instance.store().checkpoint.get()
    });
    // The next only opens and moves its checkpoint.
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        instance.checkpoint().await.unwrap();
        let after = instance.store().checkpoint.get();
        assert!(after.generation > before.generation + 1, "{before} {after}: it passes nothing");
    });
    let found = cut_power(&disk);
    live(&found, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let contents = contents(&instance, tree).await;
        assert_eq!(contents, BTreeMap::from([(7, ROWS as usize)]));
    });
}

/// Why it matters: after 50 days of a thousand flushes a second, an ordinary power cut would be
/// called the loss of acknowledged log, and the databases would not open.
#[test]
fn the_numbers_of_flushes_begin_again_and_every_torn_flush_is_told_from_lost_log() {
    for seed in 0..60 {
        let setup = Setup::default();
        let disk = disk_with_databases(seed, &setup, MemoryOptions::default());
        let of_life = setup.clone();
        let tree = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&of_life)).await;
            let tree = instance.create_tree(1, 1, 5000, 0, 3).await.unwrap();
            instance.close().await.unwrap();
            tree
        });
        let (of_life, cut) = (setup.clone(), disk.clone());
        let before = 260 + seed;
        run_until_power_lost(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&of_life)).await;
            for number in 0..before {
                let transaction = instance.begin();
                transaction.insert(tree, &row_key(number), &[1; 20]).await.unwrap();
                transaction.commit(Commit::Durable).await.unwrap();
            }
            let transaction = instance.begin();
            for number in before..before + 20 {
                transaction.insert(tree, &row_key(number), &[1; 1000]).await.unwrap();
            }
            cut.power_cut_at(handle.now() + 1 + seed * 2_000);
            let _ = transaction.commit(Commit::Durable).await;
            handle.sleep(NANOS_PER_SECOND).await;
            cut.power_cut();
        });
        let loss = Loss::Chance { survival: 0.7, tearing: 0.8 };
        let disk = disk.crash_image(loss, &mut Random::from_seed(seed));
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let rows = dump(&instance, tree).await.unwrap();
            assert!(rows.len() as u64 >= before, "seed {seed}: {} of {before} rows", rows.len());
        });
    }
}

/// Why it matters: a map that is older than the pages accuses the storage of having lost writes.
#[test]
fn the_flush_map_that_a_killed_process_had_written_is_synced_before_the_checkpoint_passes_it() {
    let disk = disk_with_databases(2, &setup(), memory());
    let (tree, _) = rows_of_a_closed_life(&disk);
    let watched = disk.clone();
    let before = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        replace_rows(&instance, tree, 0..ROWS, 7).await;
        let changed_in = instance.store().log.tip().generation;
        while instance.store().log.tip().generation < changed_in + 3 {
            replace_rows(&instance, tree, 0..1, 7).await;
            replace_rows(&instance, tree, 0..1, 8).await;
        }
        handle.sleep(NANOS_PER_SECOND / 2).await;
        // It dies when the map is written and its sync does not come back.
        watched.inject(
            FaultRule::new(Effect::Hang).with_kind(OperationKind::SyncFile).with_path_part(".jfm"),
        );
        let checkpoint = instance.clone();
        drop(handle.spawn(async move { checkpoint.checkpoint().await }));
        handle.sleep(NANOS_PER_SECOND).await;
        watched.clear_faults();
        instance.store().checkpoint.get()
    });
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        // The page that was changed over and over is written while it is redone, and once more.
        handle.sleep(NANOS_PER_SECOND).await;
        instance.checkpoint().await.unwrap();
        assert!(instance.store().checkpoint.get() > before, "it passes nothing");
    });
    let found = cut_power(&disk);
    live(&found, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let rows: usize = contents(&instance, tree).await.values().sum();
        assert_eq!(rows as u64, ROWS);
    });
}

/// Why it matters: the last flush of a dead process is there to be read and has never been
/// acknowledged; the next generation says that it is there.
#[test]
fn log_that_a_killed_process_had_written_is_synced_before_anything_builds_on_it() {
    let disk = disk_with_databases(3, &setup(), memory());
    let (tree, _) = rows_of_a_closed_life(&disk);
    let watched = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        replace_rows(&instance, tree, 0..5, 7).await;
        let transaction = instance.begin();
        transaction.replace(tree, &row_key(9), &[9; 200]).await.unwrap();
        // It dies in this flush.
        let flush = FaultRule::new(Effect::Delay(NANOS_PER_SECOND / 10));
        watched.inject(flush.with_purpose(Purpose::LogWrite));
        drop(handle.spawn(transaction.commit(Commit::Durable)));
        handle.sleep(NANOS_PER_SECOND / 20).await;
        watched.clear_faults();
    });
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        assert_eq!(contents(&instance, tree).await[&9], 1, "the flush is there to be read");
        replace_rows(&instance, tree, 10..15, 10).await;
    });
    let found = cut_power(&disk);
    live(&found, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let contents = contents(&instance, tree).await;
        assert_eq!(contents, BTreeMap::from([(0, ROWS as usize - 11), (7, 5), (9, 1), (10, 5)]));
    });
}

/// A process is killed when it has removed the last row of a leaf and not unlinked the leaf. The
/// next one found no row to purge there, and the leaf stayed empty for ever.
#[test]
fn a_leaf_that_a_killed_process_has_emptied_is_unlinked_by_the_next() {
    let disk = disk_with_databases(1, &setup(), memory());
    let tree = live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let transaction = instance.begin();
        for letter in b'a'..=b'l' {
            transaction.insert(tree, &[letter], &[letter; 3_000]).await.unwrap();
        }
        transaction.commit(Commit::Lazy).await.unwrap();
        // The purge waits for a reader, so that the row is removed here and nothing else happens.
        let reader = instance.begin();
        let transaction = instance.begin();
        transaction.delete(tree, b"f").await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        let database = instance.database(1).unwrap();
        let removed = instance.store().change(&database, |batch| {
            let (path, line) = find(batch, &tree, b"f")?;
            let line = line.expect("the row is there") as u16;
            batch.edit(path.leaf, Edit::Remove { line })?;
            Ok(Progress::Done(()))
        });
        removed.await.unwrap();
        make_durable(&instance).await;
        drop(reader);
        tree
    });
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        handle.sleep(NANOS_PER_SECOND).await;
        let database = instance.database(1).unwrap();
        let lines = instance.store().read(&database, |batch| {
            let (path, _) = find(batch, &tree, b"f")?;
            batch.with(path.leaf, |view| Ok(view.lines()))
        });
        assert_eq!(lines.await.unwrap(), 1, "the leaf of the next row takes the key");
        assert_eq!(dump(&instance, tree).await.unwrap().len(), 11);
        instance.close().await.unwrap();
    });
}
