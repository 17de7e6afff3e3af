//! Transactions that were begun before the schema changed, and look at the table afterwards.

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, NewIndex};

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// The entries of a new index are made by transactions that the reader does not see. It found a
/// table full of rows, and an index of it without any.
#[test]
fn who_began_before_an_index_was_added_finds_every_row_through_it() {
    let disk = base(21);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let before = instance.begin();
        carry_out(&instance, Change::AddIndex).await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let by_size = table.index("by size").unwrap();
        for (index, name) in [(0, "the table"), (by_size, "the index")] {
            let count = table.count(&before, index, KeyRange::all(), u64::MAX).await.unwrap();
            assert_eq!(count, ROWS as u64, "rows of {name}");
        }
        let mut scan = table.scan(&before, by_size, KeyRange::all(), Direction::Forward);
        let mut found = 0;
        while scan.next().await.unwrap().is_some() {
            found += 1;
        }
        assert_eq!(found, ROWS);
        drop(scan);
        // And works with them.
        let key = table.key(&[Some(&3i32.to_le_bytes())]).unwrap();
        table.delete(&before, &key).await.unwrap();
        before.commit(Commit::Durable).await.unwrap();
        insert_message(&instance, &table, 3).await.unwrap();
        drop(table);
        check_messages(&instance).await;
        instance.close().await.unwrap();
        check_file(&files, &handle, "an index added under an older transaction").await;
    });
}

/// Beside a reader that stays, the entries of a new index filled the version store, though nobody
/// can see the table without them.
#[test]
fn an_index_is_added_beside_a_reader_that_stays() {
    let disk = base(22);
    live(&disk, |files, handle| async move {
        let mut options = options(&setup());
        options.version_store_bytes_max = 36_000;
        let instance = open_with(&files, &handle, options).await;
        let table = instance.open_table(1, "Messages").await.unwrap();
        for id in ROWS..4 * ROWS {
            insert_message(&instance, &table, id).await.unwrap();
        }
        drop(table);
        let reader = instance.begin();
        carry_out(&instance, Change::AddIndex).await.unwrap();
        let bytes = instance.store().versions.borrow().bytes();
        assert!(bytes < 6_000, "{bytes} bytes of versions of entries that everybody sees");
        reader.rollback().await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let transaction = instance.begin();
        let index = table.index("by size").unwrap();
        let count = table.count(&transaction, index, KeyRange::all(), u64::MAX).await.unwrap();
        assert_eq!(count, 4 * ROWS as u64);
        transaction.rollback().await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        check_file(&files, &handle, "an index added beside a reader").await;
    });
}

/// A savepoint is of the transaction, whatever becomes of the schema meanwhile.
#[test]
fn a_savepoint_outlives_changes_of_the_schema() {
    let disk = base(23);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let transaction = instance.begin();
        let notes = instance.open_table(1, "Notes").await.unwrap();
        let note = |id: i32| notes.key(&[Some(&id.to_le_bytes())]).unwrap();
        notes.delete(&transaction, &note(1)).await.unwrap();
        let savepoint = transaction.savepoint();
        notes.delete(&transaction, &note(2)).await.unwrap();
        // Of another table than the one whose rows are changed.
        carry_out(&instance, Change::AddIndex).await.unwrap();
        carry_out(&instance, Change::DropColumn).await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let key = table.key(&[Some(&5i32.to_le_bytes())]).unwrap();
        table.delete(&transaction, &key).await.unwrap();
        let refused = instance.drop_table(1, "Messages").await;
        assert!(matches!(refused, Err(EngineError::TableInUse { .. })), "{refused:?}");
        transaction.rollback_to(savepoint).await.unwrap();
        drop(table);
        // Nothing of it is left in that table.
        let index = NewIndex::duplicates("by folder again", &["-folder"]);
        instance.add_index(1, "Messages", index).await.unwrap();
        instance.drop_index(1, "Messages", "by folder again").await.unwrap();
        let column = Column::new("flags", ColumnType::Short);
        instance.add_column(1, "Messages", column).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        drop(notes);
        check_messages(&instance).await;
        let notes = instance.open_table(1, "Notes").await.unwrap();
        let reader = instance.begin();
        let count = notes.count(&reader, 0, KeyRange::all(), u64::MAX).await.unwrap();
        assert_eq!(count, 19);
        reader.rollback().await.unwrap();
        drop(notes);
        instance.close().await.unwrap();
        check_file(&files, &handle, "savepoints and schemas").await;
    });
}
