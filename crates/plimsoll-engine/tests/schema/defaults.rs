//! Columns with a default value, and columns that refuse null: what the rows have that were there
//! before, and what is made of null.

use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::table::{OpenTable, Selection};
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, NewIndex, Table, column_flags};
use plimsoll_io::MemoryOptions;

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// One of each way to store a column.
fn new_columns() -> [Column; 4] {
    [
        Column::new("flags", ColumnType::Long).with_default(&7i32.to_le_bytes()),
        Column::new("place", ColumnType::Text).with_default(b"inbox"),
        Column::new("note", ColumnType::LongBinary).with_default(b"none"),
        Column::new("rank", ColumnType::Long)
            .with_default(&1i32.to_le_bytes())
            .flagged(column_flags::NOT_NULL),
    ]
}

fn key_of(table: &OpenTable, id: i32) -> Vec<u8> {
    table.key(&[Some(&id.to_le_bytes())]).unwrap()
}

type Values = Vec<Option<Vec<u8>>>;

/// The new columns of a row, through every way to read them.
async fn read(instance: &Instance, table: &OpenTable, id: i32) -> Values {
    let transaction = instance.begin();
    let key = key_of(table, id);
    let columns: Vec<_> = new_columns().map(|column| table.column(&column.name).unwrap()).into();
    let row = table.get(&transaction, &key).await.unwrap().unwrap();
    let mut values = Values::new();
    for column in &columns {
        let value = table.value(&transaction, &row, *column).await.unwrap();
        let range = table.value_range(&transaction, &row, *column, 0..2).await.unwrap();
        assert_eq!(range, value.as_ref().map(|value| value[..value.len().min(2)].to_vec()));
        values.push(value);
    }
    let picked = table.get_columns(&transaction, &key, &columns).await.unwrap().unwrap();
    assert_eq!(picked, values);
    let mut selected = table.select(&transaction, Selection::of(&columns));
    selected.seek(&key);
    assert_eq!(selected.next().await.unwrap().unwrap().values, values);
    values
}

async fn update(
    instance: &Instance,
    table: &OpenTable,
    id: i32,
    values: &[(&str, Option<&[u8]>)],
) -> Result<()> {
    let transaction = instance.begin();
    let named = values.iter().map(|(name, value)| (table.column(name).unwrap(), *value));
    let updated = table.update(&transaction, &key_of(table, id), &named.collect::<Vec<_>>()).await;
    if let Err(error) = updated {
        // The transaction is as it was.
        transaction.commit(Commit::Lazy).await.unwrap();
        return Err(error);
    }
    transaction.commit(Commit::Durable).await
}

async fn with_new_columns(instance: &Rc<Instance>) -> OpenTable {
    for column in new_columns() {
        instance.add_column(1, "Messages", column).await.unwrap();
    }
    instance.open_table(1, "Messages").await.unwrap()
}

fn defaults() -> Values {
    new_columns().map(|column| column.default).into()
}

/// The rows that were there are not touched, and have the value all the same: until they are given
/// another, or null. So has a row that is inserted without one.
#[test]
fn rows_have_the_default_of_a_column_until_they_are_given_something() {
    let disk = base(41);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let table = with_new_columns(&instance).await;
        assert_eq!(read(&instance, &table, 4).await, defaults());
        update(&instance, &table, 4, &[("size", Some(&size(4).to_le_bytes()))]).await.unwrap();
        assert_eq!(read(&instance, &table, 4).await, defaults());
        let nulls = [("flags", None), ("place", None), ("note", None)];
        update(&instance, &table, 4, &nulls).await.unwrap();
        let of_null = vec![None, None, None, Some(1i32.to_le_bytes().to_vec())];
        assert_eq!(read(&instance, &table, 4).await, of_null);
        let refused = update(&instance, &table, 4, &[("rank", None), ("place", Some(b"x"))]).await;
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("rank"), "{why}");
        assert_eq!(read(&instance, &table, 4).await, of_null);
        update(&instance, &table, 5, &[("place", Some(b"sent"))]).await.unwrap();
        let mut sent = defaults();
        sent[1] = Some(b"sent".to_vec());
        assert_eq!(read(&instance, &table, 5).await, sent);

        insert_message(&instance, &table, 500).await.unwrap();
        assert_eq!(read(&instance, &table, 500).await, defaults());
        let transaction = instance.begin();
        let id = 501i32.to_le_bytes();
        let values =
            [(table.column("id").unwrap(), Some(&id[..])), (table.column("rank").unwrap(), None)];
        let refused = table.insert(&transaction, &values).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        table
            .insert(&transaction, &[values[0], (table.column("note").unwrap(), None)])
            .await
            .unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let mut without_note = defaults();
        without_note[2] = None;
        assert_eq!(read(&instance, &table, 501).await, without_note);
        drop(table);
        instance.close().await.unwrap();
        check_file(&files, &handle, "defaults").await;
        read_as_others_do(&files, &handle).await;

        let instance = open_with(&files, &handle, options(&setup())).await;
        let table = instance.open_table(1, "Messages").await.unwrap();
        let found = [4, 5, 6, 500, 501];
        let expected = [of_null, sent, defaults(), defaults(), without_note];
        for (id, expected) in found.into_iter().zip(expected) {
            assert_eq!(read(&instance, &table, id).await, expected, "row {id} after a restart");
        }
    });
}

/// Whoever reads the file finds the same.
async fn read_as_others_do(files: &plimsoll_io::Files, handle: &plimsoll_io::Handle) {
    let reader = DatabaseReader::open(files, handle, &database_path(1), WhenDirty::Read).await;
    let reader = reader.unwrap();
    let placed = reader.table("Messages").unwrap();
    let columns = &placed.table.columns;
    let flags = columns.iter().find(|column| column.name == "flags").unwrap().clone();
    let mut rows = reader.rows(placed);
    let (mut with_default, mut null) = (0, 0);
    while let Some(row) = rows.next().await.unwrap() {
        match row.bytes(&flags).await.unwrap() {
            Some(value) => {
                assert_eq!(&value[..], 7i32.to_le_bytes());
                with_default += 1;
            }
            None => null += 1,
        }
    }
    assert_eq!((with_default, null), (ROWS + 1, 1));
}

/// An index over such a column holds the rows by the value that they have.
#[test]
fn an_index_over_a_column_with_a_default_holds_every_row() {
    let disk = base(42);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        drop(with_new_columns(&instance).await);
        for column in ["flags", "place"] {
            let index = NewIndex::duplicates(&format!("by {column}"), &[column]);
            instance.add_index(1, "Messages", index).await.unwrap();
        }
        let table = instance.open_table(1, "Messages").await.unwrap();
        let by_place = table.index("by place").unwrap();
        let count = async |value: Option<&[u8]>| {
            let transaction = instance.begin();
            let range = KeyRange::prefix(&table.index_prefix(by_place, &[value]).unwrap());
            table.count(&transaction, by_place, range, u64::MAX).await.unwrap()
        };
        assert_eq!(count(Some(b"inbox")).await, ROWS as u64);
        update(&instance, &table, 1, &[("place", Some(b"sent"))]).await.unwrap();
        update(&instance, &table, 2, &[("place", None)]).await.unwrap();
        insert_message(&instance, &table, 500).await.unwrap();
        let transaction = instance.begin();
        table.delete(&transaction, &key_of(&table, 3)).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        let counts = [count(Some(b"inbox")).await, count(Some(b"sent")).await, count(None).await];
        assert_eq!(counts, [ROWS as u64 - 2, 1, 1]);
        let transaction = instance.begin();
        let mut scan = table.scan(&transaction, by_place, KeyRange::all(), Direction::Forward);
        let mut found = 0;
        while scan.next().await.unwrap().is_some() {
            found += 1;
        }
        assert_eq!(found, ROWS);
        drop(scan);
        transaction.rollback().await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        check_file(&files, &handle, "an index over defaults").await;
    });
}

/// The record of before the column has no room for what is added: it gets it first, and whoever
/// takes the addition back finds the default again.
#[test]
fn a_row_of_before_the_column_is_added_to() {
    let disk = base(43);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let table = with_new_columns(&instance).await;
        let flags = table.column("flags").unwrap();
        let transaction = instance.begin();
        table.add(&transaction, &key_of(&table, 8), flags, 35).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let transaction = instance.begin();
        table.add(&transaction, &key_of(&table, 9), flags, 35).await.unwrap();
        transaction.rollback().await.unwrap();
        let (first, second) = (instance.begin(), instance.begin());
        for transaction in [&first, &second] {
            table.add(transaction, &key_of(&table, 8), flags, 1).await.unwrap();
        }
        first.commit(Commit::Lazy).await.unwrap();
        second.commit(Commit::Durable).await.unwrap();
        let of = async |id| read(&instance, &table, id).await[0].clone().unwrap();
        assert_eq!(of(8).await, 44i32.to_le_bytes());
        assert_eq!(of(9).await, 7i32.to_le_bytes());
        drop(table);
        instance.close().await.unwrap();
        check_file(&files, &handle, "added to").await;
    });
}

/// The number of a dropped column is not used again, so its default would be in the way for ever.
#[test]
fn a_dropped_column_has_no_default_any_more() {
    let disk = base(44);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        drop(with_new_columns(&instance).await);
        for column in new_columns() {
            instance.drop_column(1, "Messages", &column.name).await.unwrap();
        }
        let table = instance.open_table(1, "Messages").await.unwrap();
        let dropped = table.placed().table.columns.iter().filter(|column| column.is_dropped());
        let of_dropped: Vec<_> = dropped.map(|column| (column.flags, &column.default)).collect();
        assert_eq!(of_dropped, vec![(0, &None); 4]);
        insert_message(&instance, &table, 500).await.unwrap();
        update(&instance, &table, 5, &[("size", Some(&size(5).to_le_bytes()))]).await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        check_file(&files, &handle, "dropped").await;
    });
}

/// What the column cannot hold is refused when it is declared, in a table that is made and in one
/// that is there.
#[test]
fn a_default_that_is_no_value_of_the_column_is_refused() {
    let disk = base(45);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let counter = Column::new("c", ColumnType::Long).flagged(column_flags::AUTO_INCREMENT);
        for column in [
            Column::new("c", ColumnType::Long).with_default(b"abc"),
            Column::new("c", ColumnType::Text).with_default(&[b'x'; 256]),
            Column::new("c", ColumnType::LongText).with_default(&[b'x'; 256]),
            counter.with_default(&1i32.to_le_bytes()),
        ] {
            let name = format!("{column:?}");
            let table = Table::builder("New").column(Column::new("id", ColumnType::Long));
            let built = table.column(column.clone()).primary("primary", &["id"]).build();
            assert!(built.is_err(), "{name}");
            let added = instance.add_column(1, "Messages", column).await;
            assert!(matches!(added, Err(EngineError::BadChange { .. })), "{name}: {added:?}");
        }
        let table = Table::builder("New")
            .column(Column::new("id", ColumnType::Long))
            .column(Column::new("kind", ColumnType::Short).with_default(&[3, 0]))
            .primary("primary", &["id"])
            .build()
            .unwrap();
        let table = instance.create_table(1, table).await.unwrap();
        let transaction = instance.begin();
        let id = 1i32.to_le_bytes();
        let key = table.insert(&transaction, &[(table.column("id").unwrap(), Some(&id[..]))]).await;
        let row = table.get(&transaction, &key.unwrap()).await.unwrap().unwrap();
        let kind = table.value(&transaction, &row, table.column("kind").unwrap()).await.unwrap();
        assert_eq!(kind, Some(vec![3, 0]));
        transaction.commit(Commit::Lazy).await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        check_file(&files, &handle, "refused defaults").await;
    });
}

/// A null that is told takes its place in the record, and so does a fixed column before the last:
/// values that can lie apart make room for them.
#[test]
fn long_values_make_room_for_the_places_of_nulls() {
    let rows = [
        ("told", ColumnType::LongText, 300, ColumnType::LongBinary),
        ("passed over", ColumnType::Guid, 120, ColumnType::Guid),
    ];
    for (what, column_type, count, last_type) in rows {
        let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            let mut table = Table::builder("Rows").column(Column::new("id", ColumnType::Long));
            for number in 0..count {
                let column = Column::new(&format!("c{number}"), column_type);
                let is_told = what == "told";
                table = table.column(if is_told { column.with_default(b"x") } else { column });
            }
            table = table.column(Column::new("last", last_type));
            for name in ["a", "b", "c"] {
                table = table.column(Column::new(name, ColumnType::LongBinary));
            }
            let table = table.primary("primary", &["id"]).build().unwrap();
            let table = instance.create_table(1, table).await.unwrap();
            let column = |name: &str| table.column(name).unwrap();
            let (id, last, long) = (1i32.to_le_bytes(), [7; 16], [b'L'; 1_000]);
            let mut values = vec![(column("id"), Some(&id[..])), (column("last"), Some(&last[..]))];
            values.extend(["a", "b", "c"].map(|name| (column(name), Some(&long[..]))));
            if what == "told" {
                values.extend((0..count).map(|number| (column(&format!("c{number}")), None)));
            }
            let transaction = instance.begin();
            let inserted = table.insert(&transaction, &values).await;
            let key = inserted.unwrap_or_else(|error| panic!("{what}: {error}"));
            transaction.commit(Commit::Durable).await.unwrap();
            let transaction = instance.begin();
            let row = table.get(&transaction, &key).await.unwrap().unwrap();
            for (column, value) in values {
                let found = table.value(&transaction, &row, column).await.unwrap();
                assert_eq!(found.as_deref(), value, "{what}: column {column}");
            }
            drop((transaction, table));
            instance.close().await.unwrap();
            check_file(&files, &handle, what).await;
        });
    }
}
