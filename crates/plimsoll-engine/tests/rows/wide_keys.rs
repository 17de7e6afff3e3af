//! Keys that are long and begin alike, on pages that keep the common beginning once. Written whole,
//! the keys of half such a page are longer than a generation of the log.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, Loss, MemoryOptions, Random};

use crate::support::*;

/// In no order of the keys.
fn scrambled(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn wide(bytes: usize, number: u64) -> Vec<u8> {
    let mut key = vec![b'k'; bytes - 8];
    key.extend(number.to_be_bytes());
    key
}

/// Rows of such keys are inserted one by one; the power fails, and all of them are recovered.
fn check(size: PageSize, framing: Framing, key_bytes: usize, rows: u64) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    let setup = Setup { size, framing, cache_frames: 256, ..Setup::default() };
    let key = move |row| wide(key_bytes, scrambled(row));
    let working = setup.clone();
    let tree = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &working).await.unwrap();
        let (instance, _) = open(&files, &handle, &working, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        for row in 0..rows {
            let transaction = instance.begin();
            transaction.insert(tree, &key(row), &row.to_le_bytes()[..4]).await.unwrap();
            let is_last = row + 1 == rows;
            transaction.commit(if is_last { Commit::Durable } else { Commit::Lazy }).await.unwrap();
        }
        instance.abandon().await.unwrap();
        tree
    })
    .unwrap();
    disk.power_cut();
    let disk = disk.crash_image(Loss::Everything, &mut Random::from_seed(7));
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let expected: BTreeMap<_, _> =
            (0..rows).map(|row| (key(row), row.to_le_bytes()[..4].to_vec())).collect();
        assert!(dump(&instance, tree).await.unwrap() == expected, "{size}, {key_bytes} bytes");
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// The record of a split held every key whole, and the process ended over it.
#[test]
fn a_page_of_long_keys_that_begin_alike_is_split_and_the_split_is_redone() {
    for (size, framing, key_bytes, rows) in [
        (PageSize::KIB_32, Framing::Sectors512, 2_000, 1_700),
        (PageSize::KIB_32, Framing::Segments4096, 8_191, 1_500),
        (PageSize::KIB_16, Framing::Sectors512, 5_000, 900),
    ] {
        check(size, framing, key_bytes, rows);
    }
}

/// An ordinary table: an index over a long text of which the beginning is mostly the same.
#[test]
fn an_index_of_long_texts_that_begin_alike_takes_any_number_of_them() {
    let (clock, rows) = (Rc::new(Clock::simulated()), 1_800);
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        let setup = Setup { size: PageSize::KIB_32, cache_frames: 256, ..Setup::default() };
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let mut table = Table::builder("Files")
            .column(Column::new("id", ColumnType::Long))
            .column(Column::new("path", ColumnType::LongText))
            .primary("primary", &["id"])
            .unique("by path", &["path"])
            .build()
            .unwrap();
        table.indexes[1].key_bytes_max = 2_000;
        let table = instance.create_table(1, table).await.unwrap();
        let (id, path) = (table.column("id").unwrap(), table.column("path").unwrap());
        let mut by_path = BTreeMap::new();
        for number in 0..rows {
            let text = format!("{}{:016x}", "d".repeat(1_950), scrambled(number as u64));
            let (key, text) = (i32::to_le_bytes(number), text.into_bytes());
            let transaction = instance.begin();
            let values = [(id, Some(&key[..])), (path, Some(&text[..]))];
            table.insert(&transaction, &values).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
            by_path.insert(text, number);
        }
        let reader = instance.begin();
        let mut scan = table.scan(&reader, 1, KeyRange::all(), Direction::Forward);
        for id in by_path.into_values() {
            let row = scan.next().await.unwrap().expect("as many rows as paths");
            assert_eq!(row.key, table.key(&[Some(&id.to_le_bytes())]).unwrap());
        }
        assert!(scan.next().await.unwrap().is_none());
        drop(scan);
        drop((reader, table));
        instance.close().await.unwrap();
    })
    .unwrap();
}
