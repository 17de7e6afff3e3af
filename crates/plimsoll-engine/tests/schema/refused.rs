//! Changes that are refused, and what is refused while one is under way.

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::InstanceOptions;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::table::{OpenTable, Selection, StoredRow};
use plimsoll_engine::transaction::{Commit, Transaction};
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

/// Carries out every operation of a table on a row with a long body; what each came to.
async fn use_everything(
    table: &OpenTable,
    row: &StoredRow,
    transaction: &Transaction,
) -> Vec<(&'static str, Result<(), EngineError>)> {
    let [id, size, body] = ["id", "size", "body"].map(|name| table.column(name).unwrap());
    let (key, new_id) = (&row.key, 9_999i32.to_le_bytes());
    let value = [(size, Some(&new_id[..]))];
    let mut scan = table.scan(transaction, 1, KeyRange::all(), Direction::Forward);
    let mut selected = table.select(transaction, Selection::of(&[size]).through(1));
    let wrote = table.write_long_value(transaction).await.map(drop);
    vec![
        ("insert", table.insert(transaction, &[(id, Some(&new_id[..]))]).await.map(drop)),
        ("get", table.get(transaction, key).await.map(drop)),
        ("get columns", table.get_columns(transaction, key, &[size]).await.map(drop)),
        ("update", table.update(transaction, key, &value).await),
        ("add", table.add(transaction, key, size, 1).await),
        ("share", table.share_value(transaction, (row, body), key, body).await),
        ("scan", scan.next().await.map(drop)),
        ("select", selected.next().await.map(drop)),
        ("count", table.count(transaction, 1, KeyRange::all(), 9).await.map(drop)),
        ("value", table.value(transaction, row, body).await.map(drop)),
        ("part of a value", table.value_range(transaction, row, body, 1..3).await.map(drop)),
        ("pieces of a value", table.long_value(transaction, row, body).await.map(drop)),
        ("write in pieces", wrote),
        ("delete", table.delete(transaction, key).await),
    ]
}

/// A handle that outlives its instance does not know what the table became in the next. Rows it
/// inserted would have no entry in an index made meanwhile. In a transaction of another instance it
/// would put them into the file of that, where they belong to nobody.
#[test]
fn a_handle_works_only_in_transactions_of_its_own_instance() {
    let disk = base(9);
    disk.load(database_path(2), &base(10).bytes(database_path(1)).unwrap());
    disk.create_directory("/other log");
    live(&disk, |files, handle| async move {
        let first = open_with(&files, &handle, options(&setup())).await;
        let table = first.open_table(1, "Messages").await.unwrap();
        let key = table.key(&[Some(&4i32.to_le_bytes())]).unwrap();
        let own = first.begin();
        let row = table.get(&own, &key).await.unwrap().unwrap();
        let others = InstanceOptions {
            databases: vec![database_path(2)],
            log: LogNames::new("/other log", "E00"),
            ..options(&setup())
        };
        let other = open_with(&files, &handle, others).await;
        let refuses = async |transaction: Transaction| {
            for (what, result) in use_everything(&table, &row, &transaction).await {
                let is_refused = matches!(result, Err(EngineError::ForeignTable { .. }));
                assert!(is_refused, "{what}: {result:?}");
            }
            transaction.commit(Commit::Durable).await.unwrap();
        };
        refuses(other.begin()).await;
        own.rollback().await.unwrap();
        let own = first.begin();
        for (what, result) in use_everything(&table, &row, &own).await {
            assert!(result.is_ok(), "{what}: {result:?}");
        }
        own.rollback().await.unwrap();
        first.close().await.unwrap();
        let second = open_with(&files, &handle, options(&setup())).await;
        carry_out(&second, Change::AddIndex).await.unwrap();
        refuses(second.begin()).await;
        for instance in [second, other] {
            check_messages(&instance).await;
            instance.close().await.unwrap();
        }
        check_file(&files, &handle, "used by an old handle").await;
    });
}

/// Why: null was read from a column that never was, and the old value from one that was dropped;
/// values beyond the columns of a key were left out without a word.
#[test]
fn columns_that_are_not_there_and_values_too_many_are_refused() {
    let disk = base(6);
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let short = Column::new("short", ColumnType::Long);
        instance.add_column(1, "Messages", short).await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let (id, short) = (table.column("id").unwrap(), table.column("short").unwrap());
        let number = |number: i32| number.to_le_bytes();
        let transaction = instance.begin();
        let values = [(id, Some(&number(77_000)[..])), (short, Some(&number(7)[..]))];
        table.insert(&transaction, &values).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        drop(table);
        instance.drop_column(1, "Messages", "short").await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let transaction = instance.begin();
        let key = table.key(&[Some(&number(77_000))]).unwrap();
        let row = table.get(&transaction, &key).await.unwrap().expect("it is there");
        let is_refused = |result: Result<(), EngineError>| {
            assert!(
                matches!(result, Err(EngineError::NoSuchObject { what: "column", .. })),
                "{result:?}"
            );
        };
        for column in [short, 999, 77] {
            is_refused(table.value(&transaction, &row, column).await.map(drop));
            is_refused(table.get_columns(&transaction, &key, &[id, column]).await.map(drop));
            let mut selected = table.select(&transaction, Selection::of(&[column]));
            is_refused(selected.next().await.map(drop));
        }
        for values in [&[][..], &[Some(&number(1)[..]), None]] {
            let key = table.key(values);
            assert!(matches!(key, Err(EngineError::BadRow(_))), "{key:?}");
        }
        let too_many = table.index_prefix(0, &[None, None]).map(drop);
        assert!(matches!(too_many, Err(EngineError::BadRow(_))), "{too_many:?}");
        let again = instance.create_table(1, message_table("Messages")).await.map(drop);
        assert!(matches!(again, Err(EngineError::BadChange { .. })), "{again:?}");
        drop((transaction, table));
        instance.close().await.unwrap();
    });
}
