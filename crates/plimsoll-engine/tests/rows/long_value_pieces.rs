//! Long values written and read in pieces: a value may be larger than the cache, and than anybody's
//! memory.
//!
//! A message with an attachment arrives piece by piece and is read piece by piece; half of one must
//! never be committed, and one that no row refers to would stay in the database for ever.

use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, MemoryOptions, Random};

fn letters() -> Table {
    Table::builder("Letters")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("sender", ColumnType::Text))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .build()
        .expect("a valid table")
}

/// Tells a story on a table with one row, stops cleanly, and looks at every long value of the
/// database.
fn with_letter<F: Future<Output = ()> + 'static>(
    size: PageSize,
    long_values: u64,
    story: impl FnOnce(Rc<Instance>, Rc<OpenTable>) -> F + 'static,
) {
    let setup = Setup { size, cache_frames: 64, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 4, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 4).await.unwrap();
        let table = Rc::new(instance.create_table(1, letters()).await.unwrap());
        let transaction = instance.begin();
        let id = (table.column("id").unwrap(), Some(&1i32.to_le_bytes()[..]));
        table.insert(&transaction, &[id]).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        story(instance.clone(), table.clone()).await;
        drop(table);
        instance.close().await.unwrap();
        let report = verify_deep(&files, &handle, database_path(1), DeepOptions::default());
        let report = report.await.unwrap();
        assert!(report.is_sound(), "{size}: {:#?}", report.findings);
        assert_eq!(report.long_values, long_values, "{size}");
    })
    .unwrap();
}

fn key(table: &OpenTable) -> Vec<u8> {
    table.key(&[Some(&1i32.to_le_bytes())]).unwrap()
}

async fn body(instance: &Instance, table: &OpenTable) -> Vec<u8> {
    let transaction = instance.begin();
    let row = table.get(&transaction, &key(table)).await.unwrap().unwrap();
    let column = table.column("body").unwrap();
    let mut reader = table.long_value(&transaction, &row, column).await.unwrap().unwrap();
    let size_bytes = reader.size_bytes() as usize;
    let mut body = Vec::new();
    while let Some(piece) = reader.next_chunk().await.unwrap() {
        assert!(piece.len() <= 8_192, "a piece of {} bytes", piece.len());
        body.extend_from_slice(&piece);
    }
    assert_eq!(body.len(), size_bytes);
    assert!(table.value(&transaction, &row, column).await.unwrap().unwrap() == body);
    body
}

async fn write(table: &OpenTable, transaction: &Transaction, content: &[u8], random: &mut Random) {
    let mut writer = table.write_long_value(transaction).await.unwrap();
    let mut rest = content;
    while !rest.is_empty() {
        // Pieces from one byte to several chunks, and sometimes none at all.
        let length = (random.below(4) * random.below(9_000)) as usize;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        writer.write(piece).await.unwrap();
        rest = after;
    }
    let (row, column) = (key(table), table.column("body").unwrap());
    let attached = table.attach_long_value(transaction, &row, column, writer);
    attached.await.unwrap();
}

/// However the pieces fall, the value is theirs; the one before it is gone, and one taken back with
/// its transaction too.
#[test]
fn a_value_larger_than_the_cache_is_written_and_read_in_pieces() {
    for size in PageSize::ALL {
        with_letter(size, 1, move |instance, table| async move {
            let mut random = Random::from_seed(7).child("pieces");
            for bytes in [1, 50_000, 96 * size.bytes(), 0, 4_014] {
                let mut content = vec![0; bytes];
                random.fill(&mut content);
                let transaction = instance.begin();
                write(&table, &transaction, &content, &mut random).await;
                transaction.commit(Commit::Lazy).await.unwrap();
                let taken_back = instance.begin();
                write(&table, &taken_back, b"taken back", &mut random).await;
                taken_back.rollback().await.unwrap();
                assert!(body(&instance, &table).await == content, "{size}: {bytes} bytes");
            }
        });
    }
}

/// A value that no row refers to, or half of one, is never committed; what was done before it can
/// be.
#[test]
fn a_value_without_a_row_cannot_be_committed() {
    with_letter(PageSize::KIB_4, 0, |instance, table| async move {
        let transaction = instance.begin();
        let mut writer = table.write_long_value(&transaction).await.unwrap();
        writer.write(&[7; 30_000]).await.unwrap();
        drop(writer);
        assert!(transaction.commit(Commit::Lazy).await.is_err());

        let transaction = instance.begin();
        let sender = (table.column("sender").unwrap(), Some(&b"Ada"[..]));
        table.update(&transaction, &key(&table), &[sender]).await.unwrap();
        let before = transaction.savepoint();
        let mut writer = table.write_long_value(&transaction).await.unwrap();
        writer.write(&[7; 30_000]).await.unwrap();
        let elsewhere = table.attach_long_value(
            &transaction,
            b"no such row",
            table.column("body").unwrap(),
            writer,
        );
        assert!(matches!(elsewhere.await, Err(EngineError::RowNotFound)));
        transaction.rollback_to(before).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();

        let transaction = instance.begin();
        let writer = table.write_long_value(&transaction).await.unwrap();
        let (row, sender) = (key(&table), table.column("sender").unwrap());
        let wrong = table.attach_long_value(&transaction, &row, sender, writer);
        assert!(matches!(wrong.await, Err(EngineError::BadRow(_))));
        transaction.rollback().await.unwrap();

        let reader = instance.begin();
        let row = table.get(&reader, &key(&table)).await.unwrap().unwrap();
        let sender = table.column("sender").unwrap();
        assert_eq!(table.value(&reader, &row, sender).await.unwrap().unwrap(), b"Ada");
    });
}

/// Begins a value, makes a savepoint in the middle, goes on, and goes back to that. Whatever was
/// taken back, written or still waiting for more, the value is not finished; the transaction can
/// write it again.
#[test]
fn a_value_of_which_a_part_was_taken_back_is_refused() {
    for (first, second) in [(4_014, 4_014), (7, 11), (4_014, 11), (7, 9_000), (0, 11)] {
        with_letter(PageSize::KIB_4, 1, move |instance, table| async move {
            let (row, column) = (key(&table), table.column("body").unwrap());
            let is_refused = |result: Result<(), EngineError>| {
                let is_told = matches!(&result, Err(EngineError::BadRow(why))
                    if why.contains("behind a part of this long value"));
                assert!(is_told, "{first} and {second} bytes: {result:?}");
            };
            let transaction = instance.begin();
            for is_written_on in [true, false] {
                let before = transaction.savepoint();
                let mut writer = table.write_long_value(&transaction).await.unwrap();
                writer.write(&vec![1; first]).await.unwrap();
                let middle = transaction.savepoint();
                writer.write(&vec![2; second]).await.unwrap();
                transaction.rollback_to(middle).await.unwrap();
                if is_written_on {
                    is_refused(writer.write(&[3; 10]).await);
                }
                is_refused(table.attach_long_value(&transaction, &row, column, writer).await);
                transaction.rollback_to(before).await.unwrap();
            }
            write(&table, &transaction, b"again", &mut Random::from_seed(1)).await;
            transaction.commit(Commit::Durable).await.unwrap();
            assert_eq!(body(&instance, &table).await, b"again");
        });
    }
}

/// Attaches a value and goes back to between its pieces, or to between the last and the attaching.
/// The pieces that are left belong to no row: the transaction can go back further, and not be
/// committed.
#[test]
fn a_value_that_was_attached_is_not_left_in_part() {
    for (first, second) in [(0, 11), (7, 0), (7, 9_000), (4_014, 0), (9_000, 9_000)] {
        with_letter(PageSize::KIB_4, 1, move |instance, table| async move {
            let (row, column) = (key(&table), table.column("body").unwrap());
            for goes_further in [false, true] {
                let transaction = instance.begin();
                let before = transaction.savepoint();
                let mut writer = table.write_long_value(&transaction).await.unwrap();
                writer.write(&vec![1; first]).await.unwrap();
                let middle = transaction.savepoint();
                writer.write(&vec![2; second]).await.unwrap();
                table.attach_long_value(&transaction, &row, column, writer).await.unwrap();
                transaction.rollback_to(middle).await.unwrap();
                if goes_further {
                    transaction.rollback_to(before).await.unwrap();
                    write(&table, &transaction, b"again", &mut Random::from_seed(1)).await;
                    transaction.commit(Commit::Durable).await.unwrap();
                    assert_eq!(body(&instance, &table).await, b"again");
                } else {
                    let committed = transaction.commit(Commit::Durable).await;
                    let is_told = matches!(&committed, Err(EngineError::HalfDone));
                    assert!(is_told, "{first} and {second} bytes: {committed:?}");
                }
            }
        });
    }
}

/// Savepoints in the middle of a value that was attached do not touch it while nobody goes back to
/// them. Going back to behind it leaves it whole.
#[test]
fn a_value_that_was_attached_stays_when_what_came_after_it_is_taken_back() {
    with_letter(PageSize::KIB_4, 1, |instance, table| async move {
        let (row, column) = (key(&table), table.column("body").unwrap());
        let sender = table.column("sender").unwrap();
        let transaction = instance.begin();
        let mut writer = table.write_long_value(&transaction).await.unwrap();
        for letter in b'a'..=b'c' {
            writer.write(&[letter; 5_000]).await.unwrap();
            transaction.savepoint();
        }
        table.attach_long_value(&transaction, &row, column, writer).await.unwrap();
        let behind = transaction.savepoint();
        for name in [&b"Ada"[..], b"Grace"] {
            table.update(&transaction, &row, &[(sender, Some(name))]).await.unwrap();
            transaction.rollback_to(behind).await.unwrap();
        }
        transaction.commit(Commit::Durable).await.unwrap();
        let expected = [[b'a'; 5_000], [b'b'; 5_000], [b'c'; 5_000]].concat();
        assert!(body(&instance, &table).await == expected);
    });
}

/// What is taken back beside a value does not touch it: work from after its last piece, and an
/// operation that failed.
#[test]
fn a_value_goes_on_beside_what_is_taken_back() {
    for first in [7, 4_014, 9_000] {
        with_letter(PageSize::KIB_4, 1, move |instance, table| async move {
            let (row, column) = (key(&table), table.column("body").unwrap());
            let id = table.column("id").unwrap();
            let transaction = instance.begin();
            let mut writer = table.write_long_value(&transaction).await.unwrap();
            writer.write(&vec![1; first]).await.unwrap();
            let middle = transaction.savepoint();
            for number in [2i32, 3] {
                let values = [(id, Some(&number.to_le_bytes()[..]))];
                table.insert(&transaction, &values).await.unwrap();
            }
            transaction.rollback_to(middle).await.unwrap();
            writer.write(&[2; 5_000]).await.unwrap();
            let twice = table.insert(&transaction, &[(id, Some(&1i32.to_le_bytes()[..]))]).await;
            assert!(matches!(twice, Err(EngineError::KeyDuplicate { .. })), "{twice:?}");
            writer.write(&[3; 5_000]).await.unwrap();
            table.attach_long_value(&transaction, &row, column, writer).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            let expected = [vec![1; first], vec![2; 5_000], vec![3; 5_000]].concat();
            assert!(body(&instance, &table).await == expected, "{first} bytes at first");
        });
    }
}
