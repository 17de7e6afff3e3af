//! Changes that are refused, and what is refused while one is under way.

use plimsoll_engine::error::EngineError;
use plimsoll_engine::{Column, ColumnType, NewIndex, column_flags};
use plimsoll_io::NANOS_PER_MILLISECOND;

use crate::life::*;
use crate::support::*;
use crate::world::*;

fn is_in_use<T>(result: &Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::TableInUse { .. }))
}

/// A handle knows the table as it was when it was opened. A row inserted through it would have no
/// entry in an index made meanwhile.
#[test]
fn a_table_that_is_open_or_has_uncommitted_rows_is_not_changed() {
    for change in ALL.into_iter().filter(|change| *change != Change::CreateTable) {
        let disk = base(5);
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            let name = if change == Change::AddFirstLongColumn { "Notes" } else { "Messages" };
            let table = instance.open_table(1, name).await.unwrap();
            let open = carry_out(&instance, change).await;
            assert!(is_in_use(&open), "{change:?}: {open:?}");
            let transaction = instance.begin();
            let key = table.key(&[Some(&3i32.to_le_bytes())]).unwrap();
            table.delete(&transaction, &key).await.unwrap();
            drop(table);
            let changed = carry_out(&instance, change).await;
            assert!(is_in_use(&changed), "{change:?}: {changed:?}");
            transaction.rollback().await.unwrap();
            assert!(!was_made(&instance, change).await);
            carry_out(&instance, change).await.unwrap();
            assert!(was_made(&instance, change).await);
            instance.close().await.unwrap();
            check_file(&files, &handle, &format!("{change:?}")).await;
        });
    }
}

/// A long value that is read in pieces outlives the handle it was found with.
#[test]
fn a_table_is_not_dropped_under_a_reader_of_its_long_values() {
    let disk = base(6);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let transaction = instance.begin();
        let mut reader = {
            let table = instance.open_table(1, "Messages").await.unwrap();
            let key = table.key(&[Some(&4i32.to_le_bytes())]).unwrap();
            let row = table.get(&transaction, &key).await.unwrap().unwrap();
            let column = table.column("body").unwrap();
            let reader = table.long_value(&transaction, &row, column).await.unwrap();
            reader.expect("a long body")
        };
        let dropped = instance.drop_table(1, "Messages").await;
        assert!(is_in_use(&dropped), "{dropped:?}");
        assert!(reader.next_chunk().await.unwrap().is_some());
        drop(reader);
        transaction.rollback().await.unwrap();
        instance.drop_table(1, "Messages").await.unwrap();
        instance.close().await.unwrap();
        check_file(&files, &handle, "dropped").await;
    });
}

/// Whoever opens a table while it changes is refused, or finds what it has become; sessions on
/// other tables go on.
#[test]
fn a_table_is_not_opened_while_it_changes() {
    let disk = base(7);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let changing = instance.clone();
        let (beside, deadline) = (handle.clone(), NANOS_PER_MILLISECOND / 3);
        let change = handle.spawn(async move {
            // It is refused as well, for as long as one of those below is opening the table.
            let mut changed = carry_out(&changing, Change::AddIndex).await;
            while is_in_use(&changed) {
                beside.sleep(deadline).await;
                changed = carry_out(&changing, Change::AddIndex).await;
            }
            changed
        });
        let (mut refused, mut opened) = (0, 0);
        for _ in 0..400 {
            match instance.open_table(1, "Messages").await {
                Ok(table) => {
                    let indexes = table.placed().table.indexes.len();
                    assert!(indexes == 2 || indexes == 3);
                    opened += usize::from(indexes == 3);
                }
                error => {
                    assert!(is_in_use(&error.map(drop)));
                    refused += 1;
                }
            }
            instance.open_table(1, "Notes").await.unwrap();
            handle.sleep(NANOS_PER_MILLISECOND / 10).await;
        }
        change.await.unwrap();
        assert!(refused > 0 && opened > 0, "{refused} times refused, {opened} times open");
        instance.close().await.unwrap();
        check_file(&files, &handle, "opened beside").await;
    });
}

/// What makes no sense says so and changes nothing.
#[test]
fn senseless_changes_are_refused() {
    let disk = base(8);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let bad = |result: Result<(), EngineError>| {
            let is_refused = matches!(
                result,
                Err(EngineError::BadChange { .. } | EngineError::NoSuchObject { .. })
            );
            assert!(is_refused, "{result:?}");
        };
        bad(instance.drop_table(1, "MSysObjects").await);
        bad(instance.drop_table(1, "Nothing").await);
        bad(instance.drop_index(1, "Messages", "primary").await);
        bad(instance.drop_index(1, "Messages", "nothing").await);
        bad(instance.drop_column(1, "Messages", "folder").await);
        bad(instance.drop_column(1, "Messages", "nothing").await);
        let index = NewIndex::unique("by folder", &["size"]);
        bad(instance.add_index(1, "Messages", index).await);
        let index = NewIndex::unique("by nothing", &["nothing"]);
        bad(instance.add_index(1, "Messages", index).await);
        bad(instance.add_index(1, "Messages", NewIndex::primary("second", &["size"])).await);
        let required = Column::new("new", ColumnType::Long).flagged(column_flags::NOT_NULL);
        bad(instance.add_column(1, "Messages", required).await);
        let counter = Column::new("new", ColumnType::Long).flagged(column_flags::AUTO_INCREMENT);
        bad(instance.add_column(1, "Messages", counter).await);
        let twice = Column::new("size", ColumnType::Long);
        bad(instance.add_column(1, "Messages", twice).await);
        for change in ALL {
            assert!(!was_made(&instance, change).await, "{change:?}");
        }
        instance.close().await.unwrap();
        check_file(&files, &handle, "refused").await;
    });
}
