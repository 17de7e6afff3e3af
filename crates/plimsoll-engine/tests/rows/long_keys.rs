//! Keys made of values that are kept apart from their record, and keys as long as the format can
//! hold.

use std::rc::Rc;

use plimsoll_engine::btree::find;
use plimsoll_engine::btree::split::{Coming, make_room, separator_bytes_max};
use plimsoll_engine::edit::{Edit, NewNode};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::page::PageMut;
use plimsoll_engine::space::allocate;
use plimsoll_engine::store::Progress;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, MemoryOptions, Random};

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
        (PageSize::KIB_16, 5_414, true),
        (PageSize::KIB_16, 5_415, false),
        (PageSize::KIB_16, 8_192, false),
        (PageSize::KIB_8, 2_000, true),
        (PageSize::KIB_4, 1_000, true),
        (PageSize::KIB_4, 5_000, false),
    ] {
        check_keys(size, bytes, 7, is_taken);
    }
}

/// A branch page that held two long keys was split into two that held one: the tree grew a level
/// with every few rows, until nobody read it any more.
#[test]
fn keys_of_any_length_are_refused_or_found_again() {
    for seed in first_seed(0)..first_seed(12) {
        let mut random = Random::from_seed(seed);
        let size = [PageSize::KIB_4, PageSize::KIB_8][random.below(2) as usize];
        let taken_max = separator_bytes_max(size.bytes(), size.header_bytes());
        // Around the limit, and anywhere.
        let bytes = match random.below(4) {
            0 => taken_max,
            1 => taken_max + 1,
            _ => 8 + random.below(size.bytes() as u64) as usize,
        };
        check_keys(size, bytes, 100, bytes <= taken_max);
    }
}

/// Trees of others, and of earlier releases, may have keys of which a branch page holds two. They
/// are read, and refused another level before it is one too many.
#[test]
fn a_tree_with_too_long_keys_stays_readable() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 3, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let database = instance.database(1).unwrap();
        let key = |number: usize| [&[b'k'; 3990][..], format!("{number:04}").as_bytes()].concat();
        let mut rows = 0;
        let refused = loop {
            let (key, data) = (key(rows), b"row");
            let added = instance.store().change(&database, |batch| {
                let (path, line) = find(batch, &tree, &key)?;
                let line = line.expect_err("a new key");
                let has_room = batch.with(path.leaf, |view| {
                    let (external, is_root) = (view.external()?, view.is_root());
                    let cost = PageMut::node_cost_bytes(external, is_root, &key, data);
                    Ok(view.has_room_for(cost))
                })?;
                if !has_room {
                    let page = allocate(batch, tree.root)?;
                    make_room(batch, &tree, &path, Some(Coming { line, key: &key, data }), page)?;
                    return Ok(Progress::Again);
                }
                let node = NewNode { flags: 0, key: key.clone(), data: data.to_vec() };
                batch.edit(path.leaf, Edit::Insert { line: line as u16, node })?;
                Ok(Progress::Done(()))
            });
            match added.await {
                Ok(()) => rows += 1,
                Err(error) => break error,
            }
            assert!(rows < 1_000, "nobody refuses");
        };
        assert!(matches!(refused, EngineError::TreeTooDeep { .. }), "{rows} rows: {refused}");
        instance.close().await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let transaction = instance.begin();
        for number in 0..rows {
            let row = transaction.get(tree, &key(number)).await.unwrap();
            assert_eq!(row.as_deref(), Some(&b"row"[..]), "row {number} of {rows}");
        }
        transaction.replace(tree, &key(0), b"another").await.unwrap();
        transaction.delete(tree, &key(1)).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        assert_eq!(dump(&instance, tree).await.unwrap().len(), rows - 1);
        instance.close().await.unwrap();
    })
    .unwrap();
}
