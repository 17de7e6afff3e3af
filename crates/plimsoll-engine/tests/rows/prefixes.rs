//! Pages keep the beginning that keys have in common once. Keys that begin alike lie between others
//! that begin otherwise, as paths and addresses do.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, MemoryOptions, Random};

use crate::support::*;

/// A key of a thousand bytes, most of which others have too.
fn alike(number: usize) -> Vec<u8> {
    [&b"m"[..], &[b'x'; 899], format!("{number:0<100}").as_bytes()].concat()
}

fn long(letter: u8) -> Vec<u8> {
    [&b"m"[..], &vec![letter; 999]].concat()
}

/// The new page was made for the first of its keys, which begins otherwise than the others: what
/// had been short against the old page's prefix did not fit, and everything stopped.
#[test]
fn a_leaf_can_be_split_before_a_key_that_begins_otherwise() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let mut rows = BTreeMap::from([(b"a".to_vec(), vec![1; 3100])]);
        let transaction = instance.begin();
        transaction.insert(tree, b"a", &[1; 3100]).await.unwrap();
        let first = [alike(0), long(b'a'), long(b'b')];
        for key in first.into_iter().chain((1..=9).map(alike)) {
            transaction.insert(tree, &key, &[1]).await.unwrap();
            rows.insert(key, vec![1]);
        }
        transaction.insert(tree, b"ma", &[1; 60]).await.unwrap();
        rows.insert(b"ma".to_vec(), vec![1; 60]);
        transaction.commit(Commit::Durable).await.unwrap();
        assert!(dump(&instance, tree).await.unwrap() == rows);
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Ids by path.
type Paths = BTreeMap<Vec<u8>, i32>;

fn letters(random: &mut Random, count: usize) -> String {
    (0..count).map(|_| (b'A' + random.below(26) as u8) as char).collect()
}

async fn put(table: &OpenTable, transaction: &Transaction, number: i32, path: &str) {
    let id = number.to_le_bytes();
    let (id_column, path_column) = (table.column("id").unwrap(), table.column("path").unwrap());
    let values = [(id_column, Some(&id[..])), (path_column, Some(path.as_bytes()))];
    table.insert(transaction, &values).await.unwrap();
}

/// Files in a few folders with long names, and some that lie elsewhere.
fn files_in_folders(size: PageSize, seed: u64, files_max: i32) {
    let setup = Setup { size, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let table = Table::builder("Files")
            .column(Column::new("id", ColumnType::Long))
            .column(Column::new("path", ColumnType::Text))
            .primary("primary", &["id"])
            .duplicates("by path", &["path"]);
        let table = instance.create_table(1, table.build().unwrap()).await.unwrap();
        let mut random = Random::from_seed(seed);
        let folders: Vec<String> = (0..20).map(|_| letters(&mut random, 200)).collect();
        let mut paths = Paths::new();
        for number in 0..files_max {
            let path = match random.chance(0.7) {
                true => {
                    let folder = &folders[random.below(20) as usize];
                    format!("{folder}/{:06}", random.below(1_000_000))
                }
                false => letters(&mut random, 240),
            };
            let transaction = instance.begin();
            put(&table, &transaction, number, &path).await;
            transaction.commit(Commit::Lazy).await.unwrap();
            let bytes = path.as_bytes();
            paths.insert(table.index_prefix(1, &[Some(bytes)]).unwrap(), number);
        }
        let reader = instance.begin();
        let mut scan = table.scan(&reader, 1, KeyRange::all(), Direction::Forward);
        for id in paths.into_values() {
            let row = scan.next().await.unwrap().expect("as many rows as paths");
            assert_eq!(row.key, table.key(&[Some(&id.to_le_bytes())]).unwrap(), "seed {seed}");
        }
        assert!(scan.next().await.unwrap().is_none());
        drop(scan);
        drop((reader, table));
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// A table and an index as everybody makes them stopped everything after some two thousand rows.
#[test]
fn an_index_of_paths_in_folders_takes_any_number_of_them() {
    for seed in first_seed(0)..first_seed(2) {
        files_in_folders(PageSize::KIB_4, seed, 2_500);
    }
    files_in_folders(PageSize::KIB_8, first_seed(2), 2_500);
}
