//! Trees of a single extent, as genuine ESE makes small ones and this engine only for its own use:
//! a bitmap of free pages until they outgrow it, then extent trees. Databases of other writers have
//! them anywhere.

use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::deep::{DeepOptions, Finding, verify_deep};
use plimsoll_engine::page::{PageMut, PageView};
use plimsoll_engine::space::SpaceHeader;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, PageSize, Table, set_checksum};
use plimsoll_io::{Clock, Files, Handle, MemoryDisk, MemoryOptions};

fn plain() -> Table {
    Table::builder("Small")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("data", ColumnType::Binary))
        .primary("primary", &["id"])
        .build()
        .expect("a valid table")
}

/// A database with an empty table whose tree is turned into one of a single extent of 16 pages, all
/// but the root free.
fn small_table() -> Rc<MemoryDisk> {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    let root = run_on(&clock, &disk, |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let root = instance.create_table(1, plain()).await.unwrap().placed().place.root;
        instance.close().await.unwrap();
        root
    })
    .unwrap();
    let size = PageSize::KIB_4;
    let made_small = disk.corrupt(database_path(1), size.offset_of(root), |rest| {
        let bytes = &mut rest[..size.bytes()];
        let external = PageView::new(bytes, size).external().unwrap();
        let header = SpaceHeader::from_bytes(external).unwrap();
        assert!(header.is_multiple() && header.primary_pages == 16);
        let single = SpaceHeader::single(16, header.parent).to_bytes();
        PageMut::new(bytes, size).set_external(&single);
        set_checksum(bytes, root);
    });
    assert!(made_small);
    disk
}

async fn rows(
    table: &OpenTable,
    instance: &plimsoll_engine::instance::Instance,
    ids: std::ops::Range<i32>,
) {
    for id in ids {
        let transaction = instance.begin();
        let values = [
            (table.column("id").unwrap(), Some(&id.to_le_bytes()[..])),
            (table.column("data").unwrap(), Some(&[7; 250][..])),
        ];
        table.insert(&transaction, &values).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
    }
}

async fn check_deep(files: &Files, handle: &Handle, what: &str) {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default()).await;
    let report = report.expect("the file can be read");
    assert!(report.is_sound(), "{what}: {:#?}", report.findings);
}

/// Grows a table to `count` rows, deletes `gone` of them, and adds more; after each step nothing is
/// lost and nothing is used twice.
fn grows(count: i32, gone: std::ops::Range<i32>, more: i32) {
    let disk = small_table();
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let setup = Setup::default();
        for step in 0..3 {
            let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
            let table = instance.open_table(1, "Small").await.unwrap();
            match step {
                0 => rows(&table, &instance, 0..count).await,
                1 => {
                    for id in gone.clone() {
                        let transaction = instance.begin();
                        let key = table.key(&[Some(&id.to_le_bytes())]).unwrap();
                        table.delete(&transaction, &key).await.unwrap();
                        transaction.commit(Commit::Lazy).await.unwrap();
                    }
                }
                _ => rows(&table, &instance, 10_000..10_000 + more).await,
            }
            drop(table);
            instance.close().await.unwrap();
            check_deep(&files, &handle, &format!("step {step}")).await;
        }
    })
    .unwrap();
}

/// A page given back to the wrong bit of the bitmap is lost, or used twice.
#[test]
fn a_small_tree_takes_and_gives_back_pages_of_its_bitmap() {
    grows(120, 30..90, 40);
}

/// Conversion that forgets an extent loses its pages for ever.
#[test]
fn a_tree_that_outgrows_its_bitmap_keeps_all_it_owns() {
    grows(400, 100..300, 200);
}

/// Space for a child is taken from a small tree while most of its pages are still free: they stay
/// free, and its own.
#[test]
fn a_small_tree_that_has_a_child_keeps_its_free_pages() {
    let disk = small_table();
    run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        let (instance, _) = open(&files, &handle, &Setup::default(), 3).await.unwrap();
        let table = instance.open_table(1, "Small").await.unwrap();
        rows(&table, &instance, 0..30).await;
        let root = table.placed().place.root;
        instance.create_tree(1, root, 900, 0, 20).await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        let report = verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
        // The child is in no catalog, so its own pages look lost; those of the table's first extent
        // must not.
        let of_first_extent = |finding: &&Finding| match finding {
            Finding::Leaked { first, .. } => (root..root + 16).contains(first),
            _ => true,
        };
        let report = report.expect("the file can be read");
        let findings: Vec<_> = report.findings.iter().filter(of_first_extent).collect();
        assert!(findings.is_empty(), "{findings:#?}");
    })
    .unwrap();
}
