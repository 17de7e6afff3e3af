//! A transaction one of whose operations met another transaction's change, and that is committed
//! all the same: what succeeded is there, and the operation that failed left nothing.
//!
//! Why it matters: callers try a row, take a conflict for a no, and go on. Half an operation that
//! is committed then is an index entry without a row, or a long value that stays for ever.

use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, Table};
use plimsoll_io::{Clock, Loss, MemoryOptions, Random};

use crate::support::*;

fn letters() -> Table {
    Table::builder("Letters")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("folder", ColumnType::Long))
        .column(Column::new("unread", ColumnType::Long))
        .column(Column::new("name", ColumnType::Binary))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .duplicates("by folder", &["folder"])
        .unique("by name", &["name"])
        .build()
        .expect("a valid table")
}

/// A row: number, folder, counter, name, body.
type Letter = (i32, i32, i32, String, Vec<u8>);

fn letter(id: i32, name: &str) -> Letter {
    (id, id % 3, 0, name.to_owned(), vec![id as u8; 9_000])
}

fn key(table: &OpenTable, id: i32) -> Vec<u8> {
    table.key(&[Some(&id.to_le_bytes())]).unwrap()
}

async fn insert(table: &OpenTable, transaction: &Transaction, letter: &Letter) -> Result<()> {
    let (id, folder, unread, name, body) = letter;
    let numbers = [id.to_le_bytes(), folder.to_le_bytes(), unread.to_le_bytes()];
    let columns = ["id", "folder", "unread", "name", "body"].map(|name| table.column(name));
    let values = [&numbers[0][..], &numbers[1], &numbers[2], name.as_bytes(), body];
    let mut given = Vec::new();
    for (column, value) in columns.into_iter().zip(values) {
        given.push((column?, Some(value)));
    }
    table.insert(transaction, &given).await.map(drop)
}

async fn update(
    table: &OpenTable,
    transaction: &Transaction,
    id: i32,
    (folder, name, body): (i32, &str, &[u8]),
) -> Result<()> {
    let folder = folder.to_le_bytes();
    let values = [
        (table.column("folder")?, Some(&folder[..])),
        (table.column("name")?, Some(name.as_bytes())),
        (table.column("body")?, Some(body)),
    ];
    table.update(transaction, &key(table, id), &values).await
}

async fn share(table: &OpenTable, transaction: &Transaction, from: i32, to: i32) -> Result<()> {
    let body = table.column("body")?;
    let row = table.get(transaction, &key(table, from)).await?.ok_or(EngineError::RowNotFound)?;
    table.share_value(transaction, (&row, body), &key(table, to), body).await
}

async fn attach(table: &OpenTable, transaction: &Transaction, id: i32) -> Result<()> {
    let mut value = table.write_long_value(transaction).await?;
    value.write(&[7; 20_000]).await?;
    table.attach_long_value(transaction, &key(table, id), table.column("body")?, value).await
}

/// What another transaction has changed: rows 1, 3 and 4, and a row with the name "taken".
async fn change_by_another(table: &OpenTable, other: &Transaction) -> Result<()> {
    update(table, other, 1, (9, "another", &[1; 12_000])).await?;
    update(table, other, 3, (9, "a third", b"short")).await?;
    update(table, other, 4, (9, "a fourth", b"short")).await?;
    table.delete(other, &key(table, 5)).await?;
    insert(table, other, &letter(50, "taken")).await
}

/// Every operation that meets that, by name.
const OPERATIONS: [&str; 11] = [
    "insert the same key",
    "insert the same name",
    "update",
    "update to the same name",
    "delete",
    "delete what was deleted",
    "add to a counter",
    "share into",
    "share what was released",
    "attach",
    "rows of trees",
];

async fn meet(table: &OpenTable, transaction: &Transaction, operation: &str) -> Result<()> {
    match operation {
        "insert the same key" => insert(table, transaction, &letter(50, "fresh")).await,
        "insert the same name" => insert(table, transaction, &letter(60, "taken")).await,
        "update" => update(table, transaction, 1, (7, "mine", &[2; 15_000])).await,
        "update to the same name" => {
            update(table, transaction, 2, (7, "taken", &[2; 15_000])).await
        }
        "delete" => table.delete(transaction, &key(table, 1)).await,
        "delete what was deleted" => table.delete(transaction, &key(table, 5)).await,
        "add to a counter" => {
            table.add(transaction, &key(table, 3), table.column("unread")?, 1).await
        }
        "share into" => share(table, transaction, 2, 1).await,
        "share what was released" => share(table, transaction, 4, 2).await,
        "attach" => attach(table, transaction, 1).await,
        _ => {
            let (tree, key) = (table.row_tree(), key(table, 1));
            let met = [
                transaction.insert(tree, &key, b"never").await,
                transaction.delete(tree, &key).await,
                transaction.add(tree, &key, 8, 4, 1).await,
            ];
            for met in met {
                assert!(matches!(met, Err(EngineError::WriteConflict)), "{met:?}");
            }
            transaction.replace(tree, &key, b"never").await
        }
    }
}

async fn read_all(instance: &Instance, table: &OpenTable) -> Vec<Vec<Letter>> {
    let transaction = instance.begin();
    let mut found = Vec::new();
    for index in 0..3 {
        let mut scan = table.scan(&transaction, index, KeyRange::all(), Direction::Forward);
        let mut rows = Vec::new();
        while let Some(row) = scan.next().await.unwrap() {
            let value = async |name| {
                let column = table.column(name).unwrap();
                table.value(&transaction, &row, column).await.unwrap().unwrap()
            };
            let number = |bytes: Vec<u8>| i32::from_le_bytes(bytes.try_into().unwrap());
            let name = String::from_utf8(value("name").await).unwrap();
            let id = number(value("id").await);
            let (folder, unread) = (number(value("folder").await), number(value("unread").await));
            rows.push((id, folder, unread, name, value("body").await));
        }
        found.push(rows);
    }
    found
}

/// What is there after a power cut, and how many long values.
fn left_by(operation: Option<&'static str>, other_commits: bool) -> (Vec<Vec<Letter>>, u64) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &Setup::default()).await.unwrap();
        let (instance, _) = open(&files, &handle, &Setup::default(), 1).await.unwrap();
        let table = instance.create_table(1, letters()).await.unwrap();
        let transaction = instance.begin();
        for id in 1..8 {
            insert(&table, &transaction, &letter(id, &format!("name {id}"))).await.unwrap();
        }
        transaction.commit(Commit::Durable).await.unwrap();
        let (transaction, other) = (instance.begin(), instance.begin());
        change_by_another(&table, &other).await.unwrap();
        insert(&table, &transaction, &letter(100, "before")).await.unwrap();
        if let Some(operation) = operation {
            let met = meet(&table, &transaction, operation).await;
            assert!(matches!(met, Err(EngineError::WriteConflict)), "{operation}: {met:?}");
        }
        insert(&table, &transaction, &letter(101, "after")).await.unwrap();
        let committed = transaction.commit(Commit::Durable).await;
        match operation {
            // The value was written by calls that succeeded, and no row refers to it.
            Some("attach") => assert!(matches!(committed, Err(EngineError::HalfDone))),
            _ => committed.unwrap(),
        }
        match other_commits {
            true => other.commit(Commit::Durable).await.unwrap(),
            false => other.rollback().await.unwrap(),
        }
        std::mem::forget(instance);
    })
    .unwrap();
    disk.power_cut();
    let found = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
    run_on(&found.clock().clone(), &found, |files, handle| async move {
        let (instance, _) = open(&files, &handle, &Setup::default(), 2).await.unwrap();
        let table = instance.open_table(1, "Letters").await.unwrap();
        let rows = read_all(&instance, &table).await;
        drop(table);
        instance.close().await.unwrap();
        let deep = verify_deep(&files, &handle, database_path(1), DeepOptions::default());
        let deep = deep.await.unwrap();
        assert!(deep.is_sound(), "{:#?}", deep.findings);
        (rows, deep.long_values)
    })
    .unwrap()
}

#[test]
fn an_operation_that_met_a_conflict_leaves_nothing_to_be_committed() {
    for other_commits in [true, false] {
        let expected = left_by(None, other_commits);
        for operation in OPERATIONS {
            let (found, is_rolled_back) = (left_by(Some(operation), other_commits), "attach");
            let mut expected = expected.clone();
            if operation == is_rolled_back {
                expected.0.iter_mut().for_each(|rows| rows.retain(|row| row.0 < 100));
                expected.1 -= 2;
            }
            assert!(found == expected, "{operation}, the other commits: {other_commits}");
        }
    }
}
