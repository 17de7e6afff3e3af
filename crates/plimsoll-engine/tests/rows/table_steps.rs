//! Operations on tables are of several steps, one per tree: each is done wholly or not at all, and
//! keeps rows, indexes and long values together.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use crate::support::*;
use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, Table};
use plimsoll_io::{Clock, MemoryOptions};

fn people() -> Table {
    Table::builder("People")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("name", ColumnType::Text))
        .column(Column::new("picture", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .unique("by name", &["name"])
        .build()
        .expect("a valid table")
}

fn with_table<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>, OpenTable) -> F + 'static,
) {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let table = instance.create_table(1, people()).await.unwrap();
        story(instance.clone(), table).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

async fn insert(
    instance: &Instance,
    table: &OpenTable,
    id: i32,
    name: &str,
) -> Result<(), EngineError> {
    let transaction = instance.begin();
    let picture = vec![0x41; 9_000];
    let values = [
        (table.column("id")?, Some(&id.to_le_bytes()[..])),
        (table.column("name")?, Some(name.as_bytes())),
        (table.column("picture")?, Some(&picture[..])),
    ];
    let inserted = table.insert(&transaction, &values).await;
    // Committed all the same: what failed must have left nothing.
    transaction.commit(Commit::Lazy).await?;
    inserted.map(drop)
}

fn key(table: &OpenTable, id: i32) -> Vec<u8> {
    table.key(&[Some(&id.to_le_bytes())]).unwrap()
}

/// Rows found through the index on names, by their primary keys.
async fn by_name(instance: &Instance, table: &OpenTable) -> Vec<Vec<u8>> {
    let transaction = instance.begin();
    let index = table.index("by name").unwrap();
    let mut cursor = table.scan(&transaction, index, KeyRange::all(), Direction::Forward);
    let mut keys = Vec::new();
    while let Some(row) = cursor.next().await.unwrap() {
        keys.push(row.key);
    }
    keys
}

/// The last of the steps of an insert is refused by a unique index: neither the row nor its long
/// value may stay.
#[test]
fn an_insert_refused_by_an_index_leaves_nothing() {
    with_table(|instance, table| async move {
        insert(&instance, &table, 1, "Ada").await.unwrap();
        let refused = insert(&instance, &table, 2, "Ada").await;
        assert!(matches!(refused, Err(EngineError::KeyDuplicate { .. })), "{refused:?}");
        let transaction = instance.begin();
        assert!(table.get(&transaction, &key(&table, 2)).await.unwrap().is_none());
        drop(transaction);
        assert_eq!(by_name(&instance, &table).await, [key(&table, 1)]);
    });
}

/// A row that gets another primary key is found through every index, those whose own columns stayed
/// the same among them.
#[test]
fn a_row_with_a_new_key_is_found_through_its_indexes() {
    with_table(|instance, table| async move {
        insert(&instance, &table, 1, "Ada").await.unwrap();
        let transaction = instance.begin();
        let id = table.column("id").unwrap();
        let values = [(id, Some(&7i32.to_le_bytes()[..]))];
        table.update(&transaction, &key(&table, 1), &values).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        assert_eq!(by_name(&instance, &table).await, [key(&table, 7)]);
    });
}

/// The same with a table whose trees have to be read first: an operation waits for pages several
/// times.
fn with_cold_table<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>, OpenTable) -> F + 'static,
) {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        instance.create_table(1, people()).await.unwrap();
        instance.close().await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
        let table = instance.open_table(1, "People").await.unwrap();
        story(instance.clone(), table).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Polls a future so often and gives it up.
async fn give_up_after<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), polls);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Whoever stops waiting in the middle of an operation has half a row: it can be rolled back and
/// not committed.
#[test]
fn half_an_operation_cannot_be_committed() {
    with_cold_table(|instance, opened| async move {
        let transaction = instance.begin();
        let picture = vec![0x41; 90_000];
        let values = [
            (opened.column("id").unwrap(), Some(&1i32.to_le_bytes()[..])),
            (opened.column("name").unwrap(), Some(&b"Ada"[..])),
            (opened.column("picture").unwrap(), Some(&picture[..])),
        ];
        // The trees have to be read first: the insert waits for pages several times.
        let given_up = give_up_after(2, opened.insert(&transaction, &values)).await;
        assert!(given_up.is_none(), "it was to be given up in the middle");
        assert!(transaction.commit(Commit::Lazy).await.is_err());
        assert_eq!(by_name(&instance, &opened).await, Vec::<Vec<u8>>::new());
    });
}

/// What was abandoned stays half done, whatever is done after it: a later operation that ends well
/// made the half row fit for a commit.
#[test]
fn an_operation_that_ends_well_does_not_make_good_an_abandoned_one() {
    with_cold_table(|instance, table| async move {
        let picture = vec![0x41; 90_000];
        let values = |id: &'static [u8; 4], name: &'static str| {
            [
                (table.column("id").unwrap(), Some(&id[..])),
                (table.column("name").unwrap(), Some(name.as_bytes())),
            ]
        };
        let mut large = values(&[1, 0, 0, 0], "Ada").to_vec();
        large.push((table.column("picture").unwrap(), Some(&picture[..])));
        let transaction = instance.begin();
        let given_up = give_up_after(2, table.insert(&transaction, &large)).await;
        assert!(given_up.is_none(), "it was to be given up in the middle");
        let after = transaction.savepoint();
        table.insert(&transaction, &values(&[2, 0, 0, 0], "Grace")).await.unwrap();
        transaction.rollback_to(after).await.unwrap();
        let committed = transaction.commit(Commit::Lazy).await;
        assert!(matches!(committed, Err(EngineError::HalfDone)), "{committed:?}");
        assert_eq!(by_name(&instance, &table).await, Vec::<Vec<u8>>::new());

        // Taken back as far as before it, the transaction is good again.
        let transaction = instance.begin();
        let again = transaction.savepoint();
        let given_up = give_up_after(0, table.insert(&transaction, &large)).await;
        assert!(given_up.is_none() || given_up.is_some_and(|inserted| inserted.is_ok()));
        transaction.rollback_to(again).await.unwrap();
        table.insert(&transaction, &values(&[3, 0, 0, 0], "Edsger")).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        assert_eq!(by_name(&instance, &table).await, [key(&table, 3)]);
    });
}
