//! Keys that are longer than their index allows: cut as ESE cuts them, or refused.

use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{
    Column, ColumnType, NewIndex, SchemaError, Table, TableBuilder, index_flags,
};
use plimsoll_io::{Clock, MemoryOptions};

use crate::support::*;

fn subjects() -> TableBuilder {
    Table::builder("Subjects")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("subject", ColumnType::LongText))
        .primary("primary", &["id"])
}

/// A subject that differs from others only at one place.
fn subject(bytes: usize, at: usize, letter: u8) -> Vec<u8> {
    let mut subject = vec![b'S'; bytes];
    subject[at] = letter;
    subject
}

async fn insert(instance: &Rc<Instance>, table: &OpenTable, id: i32, subject: &[u8]) -> Result<()> {
    let columns = [table.column("id")?, table.column("subject")?];
    let id = id.to_le_bytes();
    let transaction = instance.begin();
    let values = [(columns[0], Some(&id[..])), (columns[1], Some(subject))];
    table.insert(&transaction, &values).await?;
    transaction.commit(Commit::Durable).await
}

async fn ids(instance: &Rc<Instance>, table: &OpenTable, index: usize) -> Vec<i32> {
    let transaction = instance.begin();
    let id = table.column("id").unwrap();
    let mut scan = table.scan(&transaction, index, KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some(row) = scan.next().await.unwrap() {
        let value = table.value(&transaction, &row, id).await.unwrap().unwrap();
        found.push(i32::from_le_bytes(value.try_into().unwrap()));
    }
    found
}

fn is_duplicate<T>(result: &Result<T>, name: &str) -> bool {
    matches!(result, Err(EngineError::KeyDuplicate { index: Some(index) }) if index == name)
}

/// Why it matters: whoever relies on a key to tell rows apart has to know whether all of it counts.
#[test]
fn long_keys_are_cut_or_refused_as_the_index_says() {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, MemoryOptions::default());
    run_on(&clock, &disk, |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let table = subjects().index(NewIndex::unique("cut", &["subject"])).build().unwrap();
        let table = instance.create_table(1, table).await.unwrap();
        insert(&instance, &table, 1, &subject(400, 300, b'A')).await.unwrap();
        insert(&instance, &table, 2, &subject(400, 100, b'A')).await.unwrap();
        let same = insert(&instance, &table, 3, &subject(400, 300, b'B')).await;
        assert!(is_duplicate(&same, "cut"), "{same:?}");
        assert_eq!(ids(&instance, &table, 1).await, [2, 1]);
        drop(table);

        let long = NewIndex::unique("long", &["subject"]).key_bytes_max(1_000);
        instance.add_index(1, "Subjects", long).await.unwrap();
        let strict = NewIndex::unique("strict", &["-subject"]).refuse_truncation();
        let refused = instance.add_index(1, "Subjects", strict).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        let both = NewIndex::duplicates("both", &["subject"]);
        let refused = instance.add_index(1, "Subjects", both).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        let longer = NewIndex::unique("longer", &["subject"]).key_bytes_max(1_001);
        let refused = instance.add_index(1, "Subjects", longer).await;
        assert!(matches!(refused, Err(EngineError::BadChange { .. })), "{refused:?}");
        instance.drop_index(1, "Subjects", "cut").await.unwrap();
        instance.close().await.unwrap();

        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let table = instance.open_table(1, "Subjects").await.unwrap();
        assert_eq!(table.placed().table.indexes[1].key_bytes_max, 1_000);
        insert(&instance, &table, 3, &subject(400, 300, b'B')).await.unwrap();
        assert_eq!(ids(&instance, &table, 1).await, [2, 1, 3]);
        drop(table);
        let again = NewIndex::unique("cut again", &["subject"]);
        let same = instance.add_index(1, "Subjects", again).await;
        assert!(is_duplicate(&same, "cut again"), "{same:?}");
        let transaction = instance.begin();
        let table = instance.open_table(1, "Subjects").await.unwrap();
        for id in 1..4i32 {
            let key = table.key(&[Some(&id.to_le_bytes())]).unwrap();
            table.delete(&transaction, &key).await.unwrap();
        }
        transaction.commit(Commit::Durable).await.unwrap();
        drop(table);
        let strict = NewIndex::unique("strict", &["subject"]).refuse_truncation();
        instance.add_index(1, "Subjects", strict).await.unwrap();
        let table = instance.open_table(1, "Subjects").await.unwrap();
        let flags = table.placed().table.indexes[2].flags;
        assert!(flags & index_flags::REFUSE_TRUNCATION != 0, "{flags:#x}");
        let refused = insert(&instance, &table, 4, &subject(400, 1, b'A')).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        insert(&instance, &table, 4, &subject(200, 1, b'A')).await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        let report = verify_deep(&files, &handle, database_path(1), DeepOptions::default());
        let report = report.await.unwrap();
        assert!(report.is_sound(), "{:#?}", report.findings);
    })
    .unwrap();
    let short =
        subjects().index(NewIndex::unique("short", &["subject"]).key_bytes_max(100)).build();
    assert!(matches!(short, Err(SchemaError::KeyLength { .. })), "{short:?}");
}
