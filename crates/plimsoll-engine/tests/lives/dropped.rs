//! Every public operation of an instance, dropped at each of its waits. Whoever stops waiting
//! leaves the instance as it was, or as the operation would have left it; nothing is held for ever,
//! and the files are whole.

use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, Finding, verify_deep};
use plimsoll_engine::error::Result;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::jobs::maintenance::{MaintenanceOptions, maintain};
use plimsoll_engine::jobs::read_back::read_back;
use plimsoll_engine::jobs::touched::touched_since;
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::tail::LogTail;
use plimsoll_engine::log::tap::Subscription;
use plimsoll_engine::retry::Retry;
use plimsoll_engine::table::{OpenTable, Selection};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, DatabaseHeader, NewIndex, Table, column_flags};
use plimsoll_io::{Handle, MemoryOptions, NANOS_PER_SECOND, Random, either};

use crate::life::*;
use crate::support::*;

const ROWS: i32 = 60;
/// A table that no session uses.
const SECOND: &str = "Second";
const SESSION_ROWS: i32 = 40;
/// How long work that never ends is waited for.
const WHILE_NS: u64 = NANOS_PER_SECOND;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Public {
    CreateTree,
    CreateTable,
    DropTable,
    AddIndex,
    DropIndex,
    AddColumn,
    DropColumn,
    OpenTable,
    Tables,
    Insert,
    InsertNumbered,
    Update,
    Add,
    Delete,
    Get,
    ValueRange,
    Scan,
    Checkpoint,
    Backup,
    CommitDurable,
    Rollback,
    RollbackTo,
    Transact,
    LongValue,
    Share,
    Select,
    Count,
    HoldDurably,
    Touched,
    Maintain,
    ReadBack,
    Subscription,
    Tail,
}

const ALL: [Public; 33] = [
    Public::CreateTree,
    Public::CreateTable,
    Public::DropTable,
    Public::AddIndex,
    Public::DropIndex,
    Public::AddColumn,
    Public::DropColumn,
    Public::OpenTable,
    Public::Tables,
    Public::Insert,
    Public::InsertNumbered,
    Public::Update,
    Public::Add,
    Public::Delete,
    Public::Get,
    Public::ValueRange,
    Public::Scan,
    Public::Checkpoint,
    Public::Backup,
    Public::CommitDurable,
    Public::Rollback,
    Public::RollbackTo,
    Public::Transact,
    Public::LongValue,
    Public::Share,
    Public::Select,
    Public::Count,
    Public::HoldDurably,
    Public::Touched,
    Public::Maintain,
    Public::ReadBack,
    Public::Subscription,
    Public::Tail,
];

fn numbered_table() -> Table {
    Table::builder("Numbered")
        .column(Column::new("number", ColumnType::Long).flagged(column_flags::AUTO_INCREMENT))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["number"])
        .build()
        .expect("a valid table")
}

async fn insert(instance: &Instance, table: &OpenTable, id: i32) -> Result<()> {
    let (id_column, body) = (table.column("id")?, table.column("body")?);
    let transaction = instance.begin();
    let (id, long) = (id.to_le_bytes(), [b'b'; 6_000]);
    let values = [(id_column, Some(&id[..])), (body, Some(&long[..]))];
    table.insert(&transaction, &values).await?;
    transaction.commit(Commit::Lazy).await
}

async fn change(instance: &Instance, table: &OpenTable, public: Public, id: i32) -> Result<()> {
    let key = table.key(&[Some(&id.to_le_bytes())])?;
    let transaction = instance.begin();
    if public == Public::Delete {
        table.delete(&transaction, &key).await?;
    } else {
        let long = [b'c'; 9_000];
        table.update(&transaction, &key, &[(table.column("body")?, Some(&long[..]))]).await?;
    }
    match public {
        Public::Rollback => transaction.rollback().await,
        Public::RollbackTo => {
            let savepoint = transaction.savepoint();
            table.delete(&transaction, &table.key(&[Some(&8i32.to_le_bytes())])?).await?;
            transaction.rollback_to(savepoint).await?;
            transaction.commit(Commit::Lazy).await
        }
        Public::CommitDurable => transaction.commit(Commit::Durable).await,
        _ => transaction.commit(Commit::Lazy).await,
    }
}

/// Waits for work that goes on until it is told to stop, which nobody does here.
async fn for_a_while(handle: &Handle, work: impl Future<Output = Result<()>>) -> Result<()> {
    let mut done = Ok(());
    either(async { done = work.await }, handle.sleep(WHILE_NS)).await;
    done
}

async fn carry_out(instance: Rc<Instance>, table: Rc<OpenTable>, public: Public) -> Result<()> {
    let beside = instance.store().handle.clone();
    match public {
        Public::CreateTree => instance.create_tree(1, 1, 900, 0, 16).await.map(drop),
        Public::CreateTable => instance.create_table(1, message_table("Other")).await.map(drop),
        Public::DropTable => instance.drop_table(1, SECOND).await,
        Public::AddIndex => {
            let index = NewIndex::unique("by folder, falling", &["-folder", "id"]);
            instance.add_index(1, SECOND, index).await
        }
        Public::DropIndex => instance.drop_index(1, SECOND, "by folder").await,
        Public::AddColumn => {
            let column = Column::new("flags", ColumnType::Long);
            instance.add_column(1, SECOND, column).await
        }
        Public::DropColumn => instance.drop_column(1, SECOND, "body").await,
        Public::OpenTable => instance.open_table(1, "Messages").await.map(drop),
        Public::Tables => instance.tables(1).await.map(drop),
        Public::Insert => insert(&instance, &table, 10_000).await,
        Public::InsertNumbered => {
            let numbered = instance.create_table(1, numbered_table()).await?;
            let transaction = instance.begin();
            let body = (numbered.column("body")?, Some(&[b'n'; 6_000][..]));
            for number in 1..4 {
                let inserted = numbered.insert_numbered(&transaction, &[body]).await?;
                assert_eq!(inserted.number, Some(number));
            }
            transaction.commit(Commit::Lazy).await
        }
        Public::Add => {
            // Rows from before the column have no place for it: each is made anew at first.
            let column = Column::new("seen", ColumnType::Long).with_default(&[0; 4]);
            instance.add_column(1, SECOND, column).await?;
            let second = instance.open_table(1, SECOND).await?;
            let (seen, transaction) = (second.column("seen")?, instance.begin());
            for id in [7i32, 8, 7] {
                let key = second.key(&[Some(&id.to_le_bytes())])?;
                second.add(&transaction, &key, seen, 5).await?;
            }
            transaction.commit(Commit::Lazy).await
        }
        Public::Get | Public::ValueRange => {
            let (key, body) = (table.key(&[Some(&7i32.to_le_bytes())])?, table.column("body")?);
            let transaction = instance.begin();
            let row = table.get(&transaction, &key).await?.expect("it is there");
            if public == Public::ValueRange {
                let found = table.value_range(&transaction, &row, body, 3_000..5_500).await?;
                assert_eq!(found, Some(vec![b'b'; 2_500]));
            }
            transaction.commit(Commit::Lazy).await
        }
        Public::Update
        | Public::Delete
        | Public::CommitDurable
        | Public::Rollback
        | Public::RollbackTo => change(&instance, &table, public, 7).await,
        Public::Transact => {
            let mut random = Random::from_seed(1);
            let retry = Retry::until(u64::MAX / 2);
            let key = table.key(&[Some(&7i32.to_le_bytes())])?;
            let work = async |transaction: &Transaction| table.delete(transaction, &key).await;
            instance.transact(Commit::Durable, retry, &mut random, work).await
        }
        Public::LongValue => {
            let (key, body) = (table.key(&[Some(&7i32.to_le_bytes())])?, table.column("body")?);
            let transaction = instance.begin();
            let mut value = table.write_long_value(&transaction).await?;
            for _ in 0..3 {
                value.write(&[b'd'; 5_000]).await?;
            }
            table.attach_long_value(&transaction, &key, body, value).await?;
            transaction.commit(Commit::Durable).await
        }
        Public::Share => {
            let (to, body) = (table.key(&[Some(&7i32.to_le_bytes())])?, table.column("body")?);
            let from = table.key(&[Some(&9i32.to_le_bytes())])?;
            let transaction = instance.begin();
            let row = table.get(&transaction, &from).await?.expect("it is there");
            table.share_value(&transaction, (&row, body), &to, body).await?;
            transaction.commit(Commit::Durable).await
        }
        Public::Select => {
            let transaction = instance.begin();
            let selection = Selection::of(&[table.column("body")?]).through(1);
            let mut rows = table.select(&transaction, selection);
            while rows.next().await?.is_some() {}
            Ok(())
        }
        Public::Count => {
            let transaction = instance.begin();
            table.count(&transaction, 1, KeyRange::all(), u64::MAX).await.map(drop)
        }
        Public::HoldDurably => {
            instance
                .hold_log_durably("somebody", instance.store().log.durable().generation)
                .await?;
            instance.release_durably("somebody").await
        }
        Public::Touched => touched_since(&instance, 1, 0).await.map(drop),
        Public::Maintain => {
            let options = MaintenanceOptions { read_bytes: 64 * 1024, pause_ns: 1_000_000 };
            let walk = maintain(instance, 1, options, Rc::default());
            for_a_while(&beside, walk).await
        }
        Public::ReadBack => {
            let reading = read_back(instance, 2, Rc::default());
            for_a_while(&beside, reading).await
        }
        Public::Subscription => {
            let mut subscription = Subscription::begin(&instance.store().log, 1 << 20);
            let told = async {
                while subscription.next().await?.is_some() {}
                Ok(())
            };
            for_a_while(&beside, told).await
        }
        Public::Tail => {
            let store = instance.store();
            let names = store.log.names().clone();
            let reader = LogReader::new(store.files.clone(), names, store.context);
            let mut tail = LogTail::begin(&store.log, reader, Lsn::new(1, 0), 1 << 20);
            let told = async {
                while tail.next().await?.is_some() {}
                Ok(())
            };
            for_a_while(&beside, told).await
        }
        Public::Scan => {
            let transaction = instance.begin();
            let mut scan = table.scan(&transaction, 0, KeyRange::all(), Direction::Forward);
            while scan.next().await?.is_some() {}
            Ok(())
        }
        Public::Checkpoint => instance.checkpoint().await,
        Public::Backup => {
            let mut backup = Backup::start(&instance, 1, 16 * 4096)?;
            while backup.next_chunk().await?.is_some() {}
            backup.finish().await.map(drop)
        }
    }
}

/// Works while the operation is under way and after it was dropped; answers whether the operation
/// was done before.
async fn drop_beside_a_session(
    instance: &Rc<Instance>,
    handle: &Handle,
    public: Public,
    polls: u64,
) -> bool {
    let table = Rc::new(instance.open_table(1, "Messages").await.unwrap());
    let (working, of_session) = (instance.clone(), table.clone());
    let session = handle.spawn(async move {
        for id in 0..SESSION_ROWS {
            insert(&working, &of_session, 20_000 + id).await.unwrap();
        }
    });
    let done = give_up_after(polls, carry_out(instance.clone(), table, public)).await;
    if let Some(Err(error)) = &done {
        panic!("{public:?}: {error}");
    }
    session.await;
    instance.checkpoint().await.unwrap();
    let held: Vec<_> = instance.holds().into_iter().filter(|hold| !hold.is_durable).collect();
    assert!(held.is_empty(), "{public:?} dropped at poll {polls} holds {held:?}");
    done.is_some()
}

/// Why it matters: a caller with a deadline drops what takes too long, and the instance has to
/// outlive that.
#[test]
fn every_public_operation_may_be_dropped_at_each_of_its_waits() {
    for public in ALL {
        let mut polls = 1;
        loop {
            let setup = Setup { cache_frames: 64, ..Setup::default() };
            let disk = disk_with_databases(polls, &setup, MemoryOptions::default());
            let was_done = live(&disk, move |files, handle| async move {
                let label = format!("{public:?} dropped at poll {polls}");
                let instance = open_with(&files, &handle, options(&setup)).await;
                let table = instance.create_table(1, message_table("Messages")).await.unwrap();
                for id in 0..ROWS {
                    insert(&instance, &table, id).await.unwrap();
                }
                let second = instance.create_table(1, message_table(SECOND)).await.unwrap();
                for id in 0..ROWS {
                    insert(&instance, &second, id).await.unwrap();
                }
                drop(second);
                let was_done = drop_beside_a_session(&instance, &handle, public, polls).await;
                let mut closed = None;
                let late = handle.sleep(60 * NANOS_PER_SECOND);
                either(async { closed = Some(instance.close().await) }, late).await;
                closed.unwrap_or_else(|| panic!("{label}: the instance cannot be closed")).unwrap();
                let deep =
                    verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
                // A tree that is in no catalog belongs to whoever made it.
                let sound = |finding: &Finding| {
                    public == Public::CreateTree && matches!(finding, Finding::Leaked { .. })
                };
                let others: Vec<_> =
                    deep.unwrap().findings.into_iter().filter(|f| !sound(f)).collect();
                assert!(others.is_empty(), "{label}: {others:?}");
                let instance = open_with(&files, &handle, options(&setup)).await;
                let table = instance.open_table(1, "Messages").await.unwrap();
                let transaction = instance.begin();
                for id in (20_000..20_000 + SESSION_ROWS).chain(0..7).chain(8..ROWS) {
                    let key = table.key(&[Some(&id.to_le_bytes())]).unwrap();
                    assert!(
                        table.get(&transaction, &key).await.unwrap().is_some(),
                        "{label}: row {id}"
                    );
                }
                was_done
            });
            if was_done {
                break;
            }
            polls += if polls < 40 { 1 } else { polls / 8 };
        }
        println!("{public:?}: {polls} polls");
    }
}

/// Why it matters: a turn that is never given back holds up checkpoints and the close, and two who
/// write at a time could tear both copies.
#[test]
fn a_header_that_nobody_waits_for_is_written_to_the_end() {
    for polls in 1..12 {
        let setup = Setup::default();
        let disk = disk_with_databases(polls, &setup, MemoryOptions::default());
        let read = disk.clone();
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let database = instance.database(1).unwrap();
            drop(
                give_up_after(polls, database.update_header(|header| header.repair_count = 7))
                    .await,
            );
            handle.sleep(NANOS_PER_SECOND / 10).await;
            let bytes = read.bytes(database_path(1)).unwrap();
            let copies: Vec<_> = bytes.chunks(4096).take(2).map(DatabaseHeader::decode).collect();
            for copy in copies {
                assert_eq!(copy.unwrap().repair_count, 7, "dropped at poll {polls}");
            }
            let mut next = None;
            let late = handle.sleep(NANOS_PER_SECOND);
            either(
                async {
                    next = Some(database.update_header(|header| header.repair_count = 8).await)
                },
                late,
            )
            .await;
            next.unwrap_or_else(|| panic!("dropped at poll {polls}: nobody has a turn any more"))
                .unwrap();
            instance.close().await.unwrap();
        });
    }
}
