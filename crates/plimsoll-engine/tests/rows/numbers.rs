//! Columns that are filled from a counter: no number twice, whatever happens in between.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::{system, system_tables};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{
    Column, ColumnType, NewValue, PageSize, Record, RecordLayout, SchemaError, StoredValue, Table,
    column_flags, encode_record,
};
use plimsoll_io::{Clock, Loss, MemoryDisk, MemoryOptions, NANOS_PER_MILLISECOND, Random};

use crate::support::*;

fn numbered(column_type: ColumnType) -> Table {
    Table::builder("Numbered")
        .column(Column::new("number", column_type).flagged(column_flags::AUTO_INCREMENT))
        .column(Column::new("text", ColumnType::Text))
        .primary("primary", &["number"])
        .build()
        .unwrap()
}

/// Numbers that somebody has seen with a committed row.
type Seen = Rc<RefCell<BTreeSet<u64>>>;

/// Inserts rows, deletes most of them again, and notes every number whose row was durable.
async fn work(
    instance: Rc<Instance>,
    table: Rc<OpenTable>,
    mut random: Random,
    seen: Seen,
) -> Result<()> {
    let text = table.column("text")?;
    loop {
        let transaction = instance.begin();
        let mut numbers = Vec::new();
        for _ in 0..1 + random.below(40) {
            let inserted = table.insert_numbered(&transaction, &[(text, Some(b"row"))]).await?;
            numbers.push((inserted.number.unwrap(), inserted.key));
        }
        let rolls_back = random.chance(0.2);
        if rolls_back {
            transaction.rollback().await?;
            continue;
        }
        transaction.commit(Commit::Durable).await?;
        for (number, _) in &numbers {
            assert!(seen.borrow_mut().insert(*number), "{number} was given before");
        }
        let transaction = instance.begin();
        for (_, key) in numbers.iter().filter(|_| random.chance(0.8)) {
            table.delete(&transaction, key).await?;
        }
        transaction.commit(Commit::Durable).await?;
    }
}

fn one_life(disk: &Rc<MemoryDisk>, life: u64, seen: &Seen) {
    let seen = seen.clone();
    run_until_power_lost(disk, move |files, handle| async move {
        let setup = Setup::default();
        let Ok((instance, _)) = open(&files, &handle, &setup, life).await else {
            return;
        };
        let table = match instance.open_table(1, "Numbered").await {
            Ok(table) => Rc::new(table),
            Err(_) => return,
        };
        let mut joins = Vec::new();
        for session in 0..3 {
            let random = Random::from_seed(life).child(&format!("session {session}"));
            let work = work(instance.clone(), table.clone(), random, seen.clone());
            joins.push(handle.spawn(work));
        }
        handle.sleep((20 + life % 7 * 30) * NANOS_PER_MILLISECOND).await;
        if life.is_multiple_of(3) {
            let _ = instance.close().await;
        }
    });
}

/// Why it matters: who keeps a number keeps it for longer than the row lives, and would find
/// somebody else's row under it.
#[test]
fn no_number_is_given_twice_over_crashes_deletes_and_restarts() {
    for seed in 0..6 {
        let clock = Rc::new(Clock::simulated());
        let mut disk = new_disk(&clock, seed, MemoryOptions::default());
        run_on(&clock, &disk.clone(), |files, handle| async move {
            let setup = Setup::default();
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
            let table = numbered(ColumnType::Long);
            instance.create_table(1, table).await.map(drop).unwrap();
            instance.close().await.unwrap();
        })
        .unwrap();
        let seen = Seen::default();
        for life in 0..6 {
            let number = seed * 100 + life;
            disk.power_cut_at_event(disk.events() + 40 + number % 11 * 60);
            one_life(&disk, number, &seen);
            disk.power_cut();
            let loss = [Loss::Everything, Loss::Drawn][(life % 2) as usize];
            disk = disk.crash_image(loss, &mut Random::from_seed(number));
        }
        let seen = seen.borrow();
        let last = seen.last().copied().unwrap_or(0);
        assert!(seen.len() > 100, "only {} numbers", seen.len());
        assert!(last < 4 * seen.len() as u64 + 700, "{last} for {} rows", seen.len());
    }
}

/// A caller that stops waiting leaves no number behind that is given again, nor a block that nobody
/// can take.
#[test]
fn an_insert_may_be_dropped_at_each_of_its_waits() {
    for polls in 0..40 {
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, polls, MemoryOptions::default());
        run_on(&clock, &disk, move |files, handle| async move {
            let setup = Setup::default();
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
            let table = instance.create_table(1, numbered(ColumnType::LongLong)).await.unwrap();
            let text = table.column("text").unwrap();
            let transaction = instance.begin();
            let values = [(text, None)];
            let insert = table.insert_numbered(&transaction, &values);
            drop(give_up_after(polls, insert).await);
            drop(transaction);
            let mut seen = BTreeSet::new();
            for _ in 0..250 {
                let transaction = instance.begin();
                let inserted = table.insert_numbered(&transaction, &[(text, None)]).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
                assert!(seen.insert(inserted.number.unwrap()));
            }
            drop(table);
            instance.close().await.unwrap();
        })
        .unwrap();
    }
}

/// Nobody gives a numbered row another number; a table says which of its columns can count.
#[test]
fn a_number_cannot_be_chosen() {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 3, MemoryOptions::default());
    run_on(&clock, &disk, |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let table = instance.create_table(1, numbered(ColumnType::Long)).await.unwrap();
        let number = table.column("number").unwrap();
        let transaction = instance.begin();
        let chosen = 7i32.to_le_bytes();
        let refused = table.insert(&transaction, &[(number, Some(&chosen))]).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        let key = table.insert(&transaction, &[]).await.unwrap();
        assert_eq!(key, table.key(&[Some(&1i32.to_le_bytes())]).unwrap());
        let refused = table.update(&transaction, &key, &[(number, Some(&chosen))]).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        transaction.rollback().await.unwrap();
        drop(table);
        instance.close().await.unwrap();
    })
    .unwrap();
    let counted = |column_type| Column::new("n", column_type).flagged(column_flags::AUTO_INCREMENT);
    let short = Table::builder("t").column(counted(ColumnType::Short)).primary("p", &["n"]).build();
    assert!(matches!(short, Err(SchemaError::AutoIncrement { .. })), "{short:?}");
}

const CATALOG: Tree =
    Tree { database: 1, root: system::CATALOG_ROOT, object: system::CATALOG_OBJECT, kind: 0 };

/// The catalog row of the numbered column: its key and its record.
async fn row_of_number(instance: &Instance) -> (Vec<u8>, Vec<u8>) {
    let [catalog, ..] = system_tables();
    let layout = RecordLayout::of(&catalog.table);
    let name = catalog.table.column_named("Name").unwrap().id;
    let rows = dump(instance, CATALOG).await.unwrap().into_iter();
    let mut found = rows.filter(|(_, record)| {
        let record = Record::parse(record, &layout, PageSize::KIB_4).unwrap();
        record.value(name) == Ok(StoredValue::Bytes(b"number"))
    });
    found.next().expect("the column is in the catalog")
}

async fn replace_row_of_number(instance: &Instance, key: &[u8], record: &[u8]) {
    let transaction = instance.begin();
    transaction.replace(CATALOG, key, record).await.unwrap();
    transaction.commit(Commit::Lazy).await.unwrap();
}

fn with_numbers<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>, OpenTable) -> F + 'static,
) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 4, MemoryOptions::default());
    run_on(&clock, &disk, |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let table = instance.create_table(1, numbered(ColumnType::Long)).await.unwrap();
        story(instance.clone(), table).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Numbers that no mark tells of would be given again after a restart.
#[test]
fn no_number_is_given_that_the_catalog_cannot_tell_of() {
    with_numbers(|instance, table| async move {
        let (key, sound) = row_of_number(&instance).await;
        replace_row_of_number(&instance, &key, &sound[..6]).await;
        let transaction = instance.begin();
        let refused = table.insert_numbered(&transaction, &[]).await;
        assert!(matches!(refused, Err(EngineError::BadHeader { .. })), "{refused:?}");
        transaction.rollback().await.unwrap();
        replace_row_of_number(&instance, &key, &sound).await;
        let transaction = instance.begin();
        let inserted = table.insert_numbered(&transaction, &[]).await.unwrap();
        assert_eq!(inserted.number, Some(1));
        transaction.commit(Commit::Lazy).await.unwrap();
    });
}

/// Other engines keep more about a column than this one does: the mark takes nothing of it away.
#[test]
fn the_mark_leaves_the_rest_of_the_catalog_row_as_it_was() {
    with_numbers(|instance, table| async move {
        let [catalog, ..] = system_tables();
        let layout = RecordLayout::of(&catalog.table);
        let (key, sound) = row_of_number(&instance).await;
        let mut values = Vec::new();
        let record = Record::parse(&sound, &layout, PageSize::KIB_4).unwrap();
        for column in &catalog.table.columns {
            values.push(match record.value(column.id).unwrap() {
                _ if column.column_type.is_long() => {
                    (column.id, NewValue::Separated { long_value: 7 })
                }
                StoredValue::Bytes(bytes) => (column.id, NewValue::Bytes(bytes)),
                _ => (column.id, NewValue::Null),
            });
        }
        let mut full = Vec::new();
        encode_record(&catalog.table, &layout, PageSize::KIB_4, &values, &mut full).unwrap();
        replace_row_of_number(&instance, &key, &full).await;
        let transaction = instance.begin();
        table.insert_numbered(&transaction, &[]).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        let (_, marked) = row_of_number(&instance).await;
        let before = Record::parse(&full, &layout, PageSize::KIB_4).unwrap();
        let after = Record::parse(&marked, &layout, PageSize::KIB_4).unwrap();
        for column in catalog.table.columns.iter().filter(|column| column.name != "Stats") {
            assert_eq!(before.value(column.id), after.value(column.id), "{}", column.name);
        }
        assert_ne!(full, marked);
    });
}
