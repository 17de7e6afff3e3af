//! A table with every kind of index, and the question whether its rows and its indexes still belong
//! together.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::{OpenTable, StoredRow};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, Table};
use plimsoll_io::{Clock, Files, Handle, MemoryOptions};

use crate::support::*;

/// Name, note and picture of a person.
pub type Person = (String, Option<Vec<u8>>, Option<Vec<u8>>);

/// What the table holds, by `id`.
pub type People = BTreeMap<i32, Person>;

pub fn people() -> Table {
    Table::builder("People")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("name", ColumnType::Text))
        .column(Column::new("note", ColumnType::LongText))
        .column(Column::new("picture", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .unique("by name", &["name"])
        .duplicates("by note", &["note"])
        .build()
        .expect("a valid table")
}

/// Tells a story on a table of these people, stops cleanly, and looks at every page of the
/// database.
pub fn with_people<F: Future<Output = ()> + 'static>(
    seed: u64,
    setup: Setup,
    memory: MemoryOptions,
    people_before: &People,
    story: impl FnOnce(Rc<Instance>, Rc<OpenTable>, Files, Handle) -> F + 'static,
) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, memory);
    let people_before = people_before.clone();
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let table = instance.create_table(1, people()).await.unwrap();
        let transaction = instance.begin();
        for (id, person) in &people_before {
            insert(&table, &transaction, *id, person).await.unwrap();
        }
        transaction.commit(Commit::Lazy).await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        // Reopened, so that every page has to be read first.
        let (instance, _) = open(&files, &handle, &setup, seed + 1).await.unwrap();
        let table = Rc::new(instance.open_table(1, "People").await.unwrap());
        story(instance.clone(), table.clone(), files.clone(), handle.clone()).await;
        drop(table);
        instance.close().await.unwrap();
        let report = verify_deep(&files, &handle, database_path(1), DeepOptions::default());
        let report = report.await.unwrap();
        assert!(report.is_sound(), "seed {seed}: {:#?}", report.findings);
    })
    .unwrap();
}

pub fn key_of(table: &OpenTable, id: i32) -> Vec<u8> {
    table.key(&[Some(&id.to_le_bytes())]).unwrap()
}

pub async fn insert(
    table: &OpenTable,
    transaction: &Transaction,
    id: i32,
    person: &Person,
) -> Result<()> {
    let id = id.to_le_bytes();
    let (name, note, picture) = person;
    let values = [
        (table.column("id")?, Some(&id[..])),
        (table.column("name")?, Some(name.as_bytes())),
        (table.column("note")?, note.as_deref()),
        (table.column("picture")?, picture.as_deref()),
    ];
    table.insert(transaction, &values).await.map(drop)
}

pub async fn update(
    table: &OpenTable,
    transaction: &Transaction,
    id: i32,
    person: &Person,
) -> Result<()> {
    let (name, note, picture) = person;
    let values = [
        (table.column("name")?, Some(name.as_bytes())),
        (table.column("note")?, note.as_deref()),
        (table.column("picture")?, picture.as_deref()),
    ];
    table.update(transaction, &key_of(table, id), &values).await
}

/// The person of a row.
pub async fn person_of(
    table: &OpenTable,
    transaction: &Transaction,
    row: &StoredRow,
) -> Result<(i32, Person)> {
    let value = async |name: &str| table.value(transaction, row, table.column(name)?).await;
    let id = value("id").await?.expect("every row has its key");
    let name = value("name").await?.expect("every person has a name");
    let name = String::from_utf8(name).expect("names are ASCII");
    let person = (name, value("note").await?, value("picture").await?);
    Ok((i32::from_le_bytes(id.try_into().expect("four bytes")), person))
}

/// The table as a transaction finds it through one of its indexes, by the order of the index.
pub async fn through(
    table: &OpenTable,
    transaction: &Transaction,
    index: &str,
) -> Result<Vec<(i32, Person)>> {
    let index = table.index(index)?;
    let mut cursor = table.scan(transaction, index, KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some(row) = cursor.next().await? {
        found.push(person_of(table, transaction, &row).await?);
    }
    Ok(found)
}

/// Fails unless a transaction finds exactly these people, through each index in its order.
pub async fn check_people(
    table: &OpenTable,
    transaction: &Transaction,
    expected: &People,
    title: &str,
) {
    let by_id: Vec<(i32, Person)> = expected.clone().into_iter().collect();
    let (mut by_name, mut by_note) = (by_id.clone(), by_id.clone());
    by_name.sort_by(|(_, left), (_, right)| left.0.cmp(&right.0));
    by_note.sort_by(|(left_id, left), (right_id, right)| {
        (&left.1, left_id).cmp(&(&right.1, right_id))
    });
    for (index, rows) in [("primary", by_id), ("by name", by_name), ("by note", by_note)] {
        let found = through(table, transaction, index).await;
        let found = found.unwrap_or_else(|error| panic!("{title}, {index}: {error}"));
        let short = |rows: &[(i32, Person)]| -> Vec<(i32, String, usize)> {
            let length = |note: &Option<Vec<u8>>| note.as_ref().map_or(0, Vec::len);
            let row = |(id, person): &(i32, Person)| (*id, person.0.clone(), length(&person.1));
            rows.iter().map(row).collect()
        };
        assert_eq!(short(&found), short(&rows), "{title}, {index}");
        assert!(found == rows, "{title}, {index}: contents differ");
    }
}

/// Whether an error says only that the operation was refused and changed nothing.
pub fn is_refusal(error: &EngineError) -> bool {
    !matches!(
        error,
        EngineError::Poisoned { .. } | EngineError::Disk(_) | EngineError::DamagedPage { .. }
    )
}
