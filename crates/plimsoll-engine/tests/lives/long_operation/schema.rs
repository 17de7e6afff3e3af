//! Tables made in a database at work: there once that was said, listed in everything that lists
//! them, with trees and numbers of their own.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::{catalog_rows, object_rows, system};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::page::page_flags;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, Files, Handle, Loss, MemoryOptions, Random};

use crate::support::*;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn tree(object: u32, root: u32, kind: u32) -> Tree {
    Tree { database: 1, root, object, kind }
}

/// The catalog, its shadow, its two indexes and the list of objects hold exactly what follows from
/// the tables.
async fn check_catalog(instance: &Instance) {
    let tables = instance.tables(1).await.unwrap();
    let rows: Vec<_> =
        tables.iter().flat_map(|placed| catalog_rows(placed, PageSize::KIB_4)).collect();
    let records: Rows = rows.iter().map(|row| (row.key.clone(), row.record.clone())).collect();
    let names: Rows = rows.iter().map(|row| (row.name_key.clone(), row.key.clone())).collect();
    let roots: Rows =
        rows.iter().filter_map(|row| Some((row.root_key.clone()?, row.key.clone()))).collect();
    let objects: Rows = object_rows(&tables, PageSize::KIB_4).into_iter().collect();
    let index = page_flags::INDEX;
    for (what, of, expected) in [
        ("catalog", tree(system::CATALOG_OBJECT, system::CATALOG_ROOT, 0), &records),
        ("shadow", tree(system::SHADOW_OBJECT, system::SHADOW_ROOT, 0), &records),
        ("names", tree(system::NAME_INDEX_OBJECT, system::NAME_INDEX_ROOT, index), &names),
        ("roots", tree(system::ROOT_INDEX_OBJECT, system::ROOT_INDEX_ROOT, index), &roots),
        ("objects", tree(system::OBJECT_IDS_OBJECT, system::OBJECT_IDS_ROOT, 0), &objects),
    ] {
        let found = dump(instance, of).await.unwrap();
        let keys = |rows: &Rows| rows.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&found), keys(expected), "{what}");
        assert!(found == *expected, "{what}: other records");
    }
    let mut objects = std::collections::BTreeSet::new();
    for placed in &tables {
        for place in placed.places() {
            assert!(objects.insert(place.object), "two trees are object {}", place.object);
        }
    }
}

pub async fn check_files(files: &Files, handle: &Handle) {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default());
    let report = report.await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
}

/// Who is told that there is a table puts rows into it at once; after a power cut the table is
/// there, whole, and in every list of the catalog.
#[test]
fn a_table_survives_a_power_cut_once_it_was_made() {
    for seed in 0..4 {
        let setup = Setup::default();
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, seed, MemoryOptions::default());
        let (of_first, off) = (setup.clone(), disk.clone());
        run_until_power_lost(&disk, move |files, handle| async move {
            let setup = of_first;
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
            for number in 0..3 {
                instance.create_table(1, message_table(&format!("Table {number}"))).await.unwrap();
            }
            off.power_cut();
        });
        let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(seed));
        run_on(&image.clock().clone(), &image, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &setup, 9).await.unwrap();
            for number in 0..3 {
                instance.open_table(1, &format!("Table {number}")).await.unwrap();
            }
            instance.create_table(1, message_table("Table 3")).await.unwrap();
            check_catalog(&instance).await;
            instance.close().await.unwrap();
            check_files(&files, &handle).await;
        })
        .unwrap();
    }
}

async fn put(instance: &Instance, table: &OpenTable, id: i32, body: &[u8]) {
    let transaction = instance.begin();
    let (id, folder) = (id.to_le_bytes(), 1i32.to_le_bytes());
    let values = [
        (table.column("id").unwrap(), Some(&id[..])),
        (table.column("folder").unwrap(), Some(&folder[..])),
        (table.column("body").unwrap(), Some(body)),
    ];
    table.insert(&transaction, &values).await.unwrap();
    transaction.commit(Commit::Durable).await.unwrap();
}

fn body(id: i32) -> Vec<u8> {
    vec![id as u8; 3_000 + 100 * id as usize]
}

/// Long values are numbered. Two handles of one table, a rollback or a restart must not lead to one
/// number for two values.
#[test]
fn long_values_keep_their_numbers_apart_through_handles_and_restarts() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let mut next = 0;
        for life in 0..3 {
            let (instance, _) = open(&files, &handle, &setup, life).await.unwrap();
            if life == 0 {
                instance.create_table(1, message_table("Mail")).await.unwrap();
            }
            let one = instance.open_table(1, "Mail").await.unwrap();
            let two = instance.open_table(1, "Mail").await.unwrap();
            for table in [&one, &two, &two, &one] {
                put(&instance, table, next, &body(next)).await;
                next += 1;
            }
            let transaction = instance.begin();
            for id in 0..next {
                let key = one.key(&[Some(&id.to_le_bytes())]).unwrap();
                let row = one.get(&transaction, &key).await.unwrap().unwrap();
                let column = one.column("body").unwrap();
                let found = one.value(&transaction, &row, column).await.unwrap();
                assert!(found == Some(body(id)), "the body of row {id} in life {life}");
            }
            drop(transaction);
            check_catalog(&instance).await;
            instance.close().await.unwrap();
            check_files(&files, &handle).await;
        }
    })
    .unwrap();
}

/// Tables are made beside sessions that work on others, in a file that has to grow for them: nobody
/// gets a page of somebody else's.
#[test]
fn tables_made_beside_others_at_work_share_no_page_with_them() {
    let setup = Setup { extension_pages: 8, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        let mut joins = Vec::new();
        for number in 0..4 {
            let table =
                instance.create_table(1, message_table(&format!("Busy {number}"))).await.unwrap();
            let instance = instance.clone();
            joins.push(handle.spawn(async move {
                for id in 0..40 {
                    put(&instance, &table, id, &body(id)).await;
                }
            }));
        }
        for number in 0..6 {
            let made = instance.create_table(1, message_table(&format!("Later {number}")));
            put(&instance, &made.await.unwrap(), 1, &body(1)).await;
        }
        for join in joins {
            join.await;
        }
        check_catalog(&instance).await;
        instance.close().await.unwrap();
        check_files(&files, &handle).await;
    })
    .unwrap();
}
