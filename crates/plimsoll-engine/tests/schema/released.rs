//! A tree of many extents, whose space is given back in many steps.

use std::rc::Rc;

use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, Table};
use plimsoll_io::{
    DiskErrorKind, Effect, FaultRule, Handle, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND,
    Purpose, Random,
};

use crate::life::*;
use crate::support::*;
use crate::world::check_file;

/// Each table grows by an extent in turn, so that no two extents of one lie side by side.
const EXTENTS: usize = 150;

fn setup() -> Setup {
    Setup { cache_frames: 256, page_images: false, ..Setup::default() }
}

fn wide(name: &str) -> Table {
    Table::builder(name)
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("text", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .build()
        .unwrap()
}

async fn fill(instance: &Rc<Instance>, names: [&str; 2]) {
    let tables = [
        instance.open_table(1, names[0]).await.unwrap(),
        instance.open_table(1, names[1]).await.unwrap(),
    ];
    let text = [b'T'; 1_000];
    for id in 0..(EXTENTS * 16 * 2) as i32 {
        let transaction = instance.begin();
        for table in &tables {
            let columns = [table.column("id").unwrap(), table.column("text").unwrap()];
            let key = id.to_le_bytes();
            let values = [(columns[0], Some(&key[..])), (columns[1], Some(&text[..]))];
            table.insert(&transaction, &values).await.unwrap();
        }
        transaction.commit(Commit::Lazy).await.unwrap();
    }
}

fn base() -> Rc<MemoryDisk> {
    let memory = MemoryOptions { atomic_write_bytes: 4096, ..MemoryOptions::default() };
    let disk = disk_with_databases(1, &setup(), memory);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        for name in ["left", "right"] {
            instance.create_table(1, wide(name)).await.map(drop).unwrap();
        }
        fill(&instance, ["left", "right"]).await;
        instance.close().await.unwrap();
        check_file(&files, &handle, "before").await;
    });
    disk
}

/// The power fails while the extents are given back: whoever comes next goes on where that ended.
#[test]
fn a_large_table_is_released_step_by_step_whatever_interrupts_it() {
    let base = base();
    let copy = |seed| base.crash_image(Loss::Nothing, &mut Random::from_seed(seed));
    let drop_right = |disk: &Rc<MemoryDisk>| {
        run_until_power_lost(disk, |files, handle| async move {
            let Ok((instance, _)) = open(&files, &handle, &setup(), 3).await else {
                return;
            };
            let _ = instance.drop_table(1, "right").await;
        });
    };
    let whole = copy(0);
    drop_right(&whole);
    let events = whole.events();
    let mut dropped = 0;
    for step in 1..=24 {
        let disk = copy(step);
        disk.power_cut_at_event(events * step / 24);
        drop_right(&disk);
        disk.power_cut();
        let loss = [Loss::Everything, Loss::Drawn][(step % 2) as usize];
        let found = disk.crash_image(loss, &mut Random::from_seed(step));
        dropped += live(&found, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            let is_dropped = instance.open_table(1, "right").await.is_err();
            let before = instance.database(1).unwrap().pages_owned();
            if is_dropped {
                instance.create_table(1, wide("right")).await.map(drop).unwrap();
                instance.create_table(1, wide("other")).await.map(drop).unwrap();
                fill(&instance, ["right", "other"]).await;
                let after = instance.database(1).unwrap().pages_owned();
                let grown = (after - before) as usize;
                assert!(
                    grown < (EXTENTS + 20) * 16,
                    "{grown} pages more, and one table of two had room"
                );
            }
            instance.close().await.unwrap();
            check_file(&files, &handle, &format!("cut at step {step}")).await;
            usize::from(is_dropped)
        });
    }
    assert!(0 < dropped && dropped < 24, "{dropped} of 24 were dropped");
}

/// What was released is not released again by a recovery that reads its note once more: its space
/// has long been joined with that of a neighbour, and would be given to two.
#[test]
fn what_was_released_is_not_given_back_again_by_recovery() {
    let base = disk_with_databases(1, &setup(), MemoryOptions::default());
    let names = ["first", "second", "third", "fourth"];
    live(&base, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        for name in names {
            instance.create_table(1, wide(name)).await.map(drop).unwrap();
        }
        instance.close().await.unwrap();
    });
    for (first, then) in [("second", "third"), ("third", "second"), ("first", "third")] {
        let disk = base.crash_image(Loss::Nothing, &mut Random::from_seed(1));
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            for name in [first, then] {
                instance.drop_table(1, name).await.unwrap();
            }
            // The log tells of both releases; the checkpoint has passed neither.
            let transaction = instance.begin();
            let table = instance.open_table(1, "fourth").await.unwrap();
            let (id, text) = (table.column("id").unwrap(), table.column("text").unwrap());
            let row = [(id, Some(&[1, 0, 0, 0][..])), (text, Some(&b"T"[..]))];
            table.insert(&transaction, &row).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            instance.abandon().await.unwrap();
        });
        live(&disk, move |files, handle| async move {
            let (instance, report) = open(&files, &handle, &setup(), 5).await.unwrap();
            assert!(report.recovered);
            for name in [first, then] {
                instance.create_table(1, wide(name)).await.map(drop).unwrap();
            }
            fill(&instance, [first, then]).await;
            instance.close().await.unwrap();
            check_file(&files, &handle, &format!("{first} and {then} released")).await;
        });
    }
}

/// While the extents of one table are given back, others take them: what still tells of the rest
/// must not be among them.
#[test]
fn sessions_take_space_while_a_table_is_released() {
    let disk = base();
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let mut sessions = Vec::new();
        for session in 0..4i32 {
            let (working, beside) = (instance.clone(), handle.clone());
            sessions.push(handle.spawn(async move {
                let table = working.open_table(1, "left").await.unwrap();
                let (id_column, text) =
                    (table.column("id").unwrap(), table.column("text").unwrap());
                for number in 0..60i32 {
                    let transaction = working.begin();
                    let key = (1_000_000 * (session + 1) + number).to_le_bytes();
                    let long = vec![b'S'; 20_000];
                    let values = [(id_column, Some(&key[..])), (text, Some(&long[..]))];
                    table.insert(&transaction, &values).await.unwrap();
                    transaction.commit(Commit::Lazy).await.unwrap();
                    beside.yield_now().await;
                }
            }));
        }
        instance.drop_table(1, "right").await.unwrap();
        for session in sessions {
            session.await;
        }
        instance.close().await.unwrap();
        check_file(&files, &handle, "released beside sessions").await;
    });
}

/// The first read of a page of the table's own list of extents fails, so that what was dropped
/// cannot be released at once.
fn no_read(times: u64) -> FaultRule {
    let mut rule =
        FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(Purpose::DatabaseRead);
    rule.limit = times;
    rule
}

/// Drops "right", which cannot be released for an error of the disk, and works until that lies
/// generations back and the checkpoint has come as far as it may.
async fn drop_right_unreleased(instance: &Rc<Instance>, handle: &Handle, failing: &MemoryDisk) {
    let table = instance.open_table(1, "left").await.unwrap();
    // The catalog is in memory, and the pages that list the extents are not.
    instance.open_table(1, "right").await.map(drop).unwrap();
    instance.tables(1).await.unwrap();
    let dropping = instance.clone();
    let dropped = handle.spawn(async move { dropping.drop_table(1, "right").await });
    while instance.tables(1).await.unwrap().iter().any(|placed| placed.table.name == "right") {
        handle.sleep(1_000).await;
    }
    failing.inject(no_read(u64::MAX));
    dropped.await.unwrap();
    failing.clear_faults();
    let (id_column, text) = (table.column("id").unwrap(), table.column("text").unwrap());
    for id in 0..900i32 {
        let transaction = instance.begin();
        let (key, long) = ((1_000_000 + id).to_le_bytes(), vec![b'N'; 5_000]);
        let values = [(id_column, Some(&key[..])), (text, Some(&long[..]))];
        table.insert(&transaction, &values).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        if id % 100 == 99 {
            handle.sleep(2 * NANOS_PER_SECOND).await;
            instance.checkpoint().await.unwrap();
        }
    }
    make_durable(instance).await;
}

/// Nobody has "right", nor its pages.
fn check_right_is_released(disk: &Rc<MemoryDisk>, label: &'static str) {
    live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        assert!(instance.open_table(1, "right").await.is_err());
        instance.close().await.unwrap();
        check_file(&files, &handle, label).await;
    });
}

/// A tree that cannot be released for an error of the disk waits for that, and the log that tells
/// of it waits, too.
#[test]
fn the_checkpoint_does_not_pass_a_tree_that_waits_for_its_release() {
    let disk = base();
    let failing = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        drop_right_unreleased(&instance, &handle, &failing).await;
    });
    check_right_is_released(&cut_power(&disk), "after a release that failed");
}

/// A power cut may take the release with it: until that is durable, the checkpoint does not pass
/// what tells that it is to be done.
#[test]
fn the_checkpoint_does_not_pass_a_release_that_is_not_durable() {
    let disk = base();
    let failing = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        drop_right_unreleased(&instance, &handle, &failing).await;
        let held_at = instance.store().checkpoint.get();
        // A change of the schema first releases what still waits; this one then commits nothing.
        instance.drop_table(1, "no such table").await.unwrap_err();
        let log = &instance.store().log;
        assert!(log.durable() < log.tip(), "the release is durable at once");
        instance.checkpoint().await.unwrap();
        assert_eq!(instance.store().checkpoint.get(), held_at);
    });
    check_right_is_released(&cut_power(&disk), "the power cut took the release");
}

/// A table of so many extents is dropped, also where the pages that tell what it owns are more than
/// the cache has frames.
fn drop_table_of(extents_count: u32) {
    let large = Setup { cache_frames: 2_000, extension_pages: 4_096, ..setup() };
    let disk = disk_with_databases(7, &large, MemoryOptions::default());
    // Trees within the table make it grow, and trees next to it keep its extents apart.
    let extents = async |instance: &Rc<Instance>, root: u32, count: u32| {
        for object in 0..count {
            instance.create_tree(1, root, 1_000 + object, 0, 16).await.unwrap();
            instance.create_tree(1, 1, 100_000 + object, 0, 3).await.unwrap();
        }
    };
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&large)).await;
        let table = instance.create_table(1, wide("left")).await.unwrap();
        extents(&instance, table.placed().place.root, extents_count).await;
        drop(table);
        instance.close().await.unwrap();
    });
    live(&disk, move |files, handle| async move {
        let small = Setup { cache_frames: 64, ..setup() };
        let instance = open_with(&files, &handle, options(&small)).await;
        instance.drop_table(1, "left").await.unwrap();
        instance.close().await.unwrap();
        let instance = open_with(&files, &handle, options(&setup())).await;
        let before = instance.database(1).unwrap().pages_owned();
        let table = instance.create_table(1, wide("right")).await.unwrap();
        extents(&instance, table.placed().place.root, extents_count / 20).await;
        assert_eq!(instance.database(1).unwrap().pages_owned(), before, "the space is not free");
        drop(table);
        instance.close().await.unwrap();
    });
}

/// What a tree owns is looked at as a whole before it is given back.
#[test]
#[ignore = "slow: a tree in 20,000 extents; `make slow`"]
fn a_table_in_more_extents_than_the_cache_can_list_is_released() {
    drop_table_of(20_000);
}

/// Each page that tells of extents keeps one of them until the last step, which is one record: it
/// gave back as many as there were such pages.
#[test]
fn a_table_whose_extents_many_pages_tell_is_released() {
    drop_table_of(1_600);
}
