//! Keys made of values that are kept apart from their record, and keys as long as the format can
//! hold.

use std::rc::Rc;

use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, MemoryOptions};

use crate::people::*;
use crate::support::*;

fn ada(note: &[u8]) -> Person {
    ("Ada".into(), Some(note.to_vec()), Some(vec![3; 20]))
}

/// A row whose indexed column lies in the long-value tree could be neither updated nor deleted: its
/// entry was looked for under null.
#[test]
fn a_row_with_a_separated_indexed_column_is_updated_and_deleted() {
    with_people(
        2,
        Setup::default(),
        MemoryOptions::default(),
        &People::new(),
        |instance, table, _, _| async move {
            table.set_intrinsic_bytes_max(32);
            let mut expected = People::from([(1, ada(&[b'N'; 100]))]);
            let transaction = instance.begin();
            insert(&table, &transaction, 1, &expected[&1]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            check_people(&table, &instance.begin(), &expected, "inserted").await;

            // Another column only: the entry of the long one stays as it is.
            let transaction = instance.begin();
            let values = [(table.column("name").unwrap(), Some(&b"Grace"[..]))];
            table.update(&transaction, &key_of(&table, 1), &values).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            expected.get_mut(&1).unwrap().0 = "Grace".into();
            check_people(&table, &instance.begin(), &expected, "renamed").await;

            for note in [&[b'M'; 120][..], b"SHORT", &[b'Q'; 90]] {
                let transaction = instance.begin();
                update(&table, &transaction, 1, &ada(note)).await.unwrap();
                transaction.commit(Commit::Durable).await.unwrap();
                expected.insert(1, ada(note));
                check_people(&table, &instance.begin(), &expected, "another note").await;
            }
            let transaction = instance.begin();
            table.delete(&transaction, &key_of(&table, 1)).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            check_people(&table, &instance.begin(), &People::new(), "deleted").await;
        },
    );
}

/// A long value written in pieces that becomes the value of an indexed column is found through the
/// index.
#[test]
fn a_long_value_given_to_an_indexed_column_changes_its_index() {
    with_people(
        2,
        Setup::default(),
        MemoryOptions::default(),
        &People::new(),
        |instance, table, _, _| async move {
            let transaction = instance.begin();
            insert(&table, &transaction, 1, &ada(b"before")).await.unwrap();
            insert(&table, &transaction, 2, &("Grace".into(), Some(b"B".to_vec()), None))
                .await
                .unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            let note = table.column("note").unwrap();
            for content in [&b"AFTERWARDS"[..], &[b'Z'; 110]] {
                let transaction = instance.begin();
                let mut writer = table.write_long_value(&transaction).await.unwrap();
                writer.write(content).await.unwrap();
                let key = key_of(&table, 1);
                table.attach_long_value(&transaction, &key, note, writer).await.unwrap();
                transaction.commit(Commit::Durable).await.unwrap();
                let expected = People::from([
                    (1, ada(content)),
                    (2, ("Grace".into(), Some(b"B".to_vec()), None)),
                ]);
                check_people(&table, &instance.begin(), &expected, "attached").await;
            }
        },
    );
}

/// With the limits that a table has by default: many long columns, none above the limit of the
/// index, together too long for a record.
#[test]
fn a_wide_row_can_be_deleted() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let mut builder = Table::builder("Wide").column(Column::new("id", ColumnType::Long));
        for number in 0..24 {
            builder = builder.column(Column::new(&format!("note {number}"), ColumnType::LongText));
        }
        let wide = builder.primary("primary", &["id"]).duplicates("by note", &["note 23"]);
        let table = instance.create_table(1, wide.build().unwrap()).await.unwrap();
        let (id, text) = (1i32.to_le_bytes(), [b'N'; 200]);
        let mut values = vec![(table.column("id").unwrap(), Some(&id[..]))];
        for number in 0..24 {
            values.push((table.column(&format!("note {number}")).unwrap(), Some(&text[..])));
        }
        let transaction = instance.begin();
        let key = table.insert(&transaction, &values).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let transaction = instance.begin();
        table.delete(&transaction, &key).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        assert!(dump(&instance, table.row_tree()).await.unwrap().is_empty());
        assert!(dump(&instance, table.index_tree(1).unwrap()).await.unwrap().is_empty());
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Rows with keys of a length are refused or found again; the length is given in bits of its own,
/// and what does not fit them was lost.
fn check_keys(size: PageSize, bytes: usize, rows: u64, is_taken: bool) {
    let setup = Setup { size, cache_frames: 400, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 9, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 9).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let key = |row: u64| {
            let mut key = vec![b'k'; bytes - 8];
            key.extend((row * 0x9E37_79B9 % rows).to_be_bytes());
            key
        };
        for row in 0..rows {
            let transaction = instance.begin();
            let inserted = transaction.insert(tree, &key(row), b"data").await;
            assert_eq!(inserted.is_ok(), is_taken, "{size}, {bytes} bytes: {inserted:?}");
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        let transaction = instance.begin();
        for row in (0..rows).filter(|_| is_taken) {
            let found = transaction.get(tree, &key(row)).await.unwrap();
            assert_eq!(found.as_deref(), Some(&b"data"[..]), "{size}, {bytes} bytes, row {row}");
        }
        drop(transaction);
        let transaction = instance.begin();
        let replaced = transaction.replace(tree, &key(0), b"other").await;
        assert_eq!(replaced.is_ok(), is_taken, "{size}, {bytes} bytes: {replaced:?}");
        drop(transaction);
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// The length of a key has 13 bits on a page.
#[test]
fn a_key_longer_than_its_page_can_say_is_refused() {
    for (size, bytes, is_taken) in [
        (PageSize::KIB_32, 2_000, true),
        (PageSize::KIB_32, 8_191, true),
        (PageSize::KIB_32, 8_192, false),
        (PageSize::KIB_32, 9_000, false),
        (PageSize::KIB_16, 8_191, true),
        (PageSize::KIB_16, 8_192, false),
        (PageSize::KIB_4, 1_000, true),
        (PageSize::KIB_4, 5_000, false),
    ] {
        check_keys(size, bytes, 7, is_taken);
    }
}
