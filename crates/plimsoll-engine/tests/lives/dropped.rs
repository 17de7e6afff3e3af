//! Every public operation of an instance, dropped at each of its waits. Whoever stops waiting leaves the instance as it was, or as the operation would
//! have left it; nothing is held for ever, and the files are whole.

use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, Finding, verify_deep};
use plimsoll_engine::error::Result;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, DatabaseHeader, NewIndex};
use plimsoll_io::{Handle, MemoryOptions, NANOS_PER_SECOND, either};

use crate::life::*;
use crate::support::*;

const ROWS: i32 = 60;
/// A table that no session uses.
const SECOND: &str = "Second";
const SESSION_ROWS: i32 = 40;

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
    Insert,
    Update,
    Delete,
    Scan,
    Checkpoint,
    Backup,
    CommitDurable,
    Rollback,
}

const ALL: [Public; 16] = [
    Public::CreateTree,
    Public::CreateTable,
    Public::DropTable,
    Public::AddIndex,
    Public::DropIndex,
    Public::AddColumn,
    Public::DropColumn,
    Public::OpenTable,
    Public::Insert,
    Public::Update,
    Public::Delete,
    Public::Scan,
    Public::Checkpoint,
    Public::Backup,
    Public::CommitDurable,
    Public::Rollback,
];

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
        table
            .update(&transaction, &key, &[(table.column("body")?, Some(&long[..]))])
            .await?;
    }
    match public {
        Public::Rollback => transaction.rollback().await,
        Public::CommitDurable => transaction.commit(Commit::Durable).await,
        _ => transaction.commit(Commit::Lazy).await,
    }
}

async fn carry_out(instance: Rc<Instance>, table: Rc<OpenTable>, public: Public) -> Result<()> {
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
        Public::Insert => insert(&instance, &table, 10_000).await,
        Public::Update | Public::Delete | Public::CommitDurable | Public::Rollback => {
            change(&instance, &table, public, 7).await
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

/// Works while the operation is under way and after it was dropped; answers whether the operation was done before.
async fn drop_beside_a_session(instance: &Rc<Instance>, handle: &Handle, public: Public, polls: u64) -> bool {
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
    done.is_some()
}

/// Why it matters: a caller with a deadline drops what takes too long, and the instance has to outlive that.
#[test]
fn every_public_operation_may_be_dropped_at_each_of_its_waits() {
    for public in ALL {
        let mut polls = 1;
        loop {
            let setup = Setup {
                cache_frames: 64,
                ..Setup::default()
            };
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
                closed
                    .unwrap_or_else(|| panic!("{label}: the instance cannot be closed"))
                    .unwrap();
                let deep = verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
                // A tree that is in no catalog belongs to whoever made it.
                let sound = |finding: &Finding| {
                    public == Public::CreateTree && matches!(finding, Finding::Leaked { .. })
                };
                let others: Vec<_> = deep.unwrap().findings.into_iter().filter(|f| !sound(f)).collect();
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

/// Why it matters: a turn that is never given back holds up checkpoints and the close, and two who write at a time could tear both copies.
#[test]
fn a_header_that_nobody_waits_for_is_written_to_the_end() {
    for polls in 1..12 {
        let setup = Setup::default();
        let disk = disk_with_databases(polls, &setup, MemoryOptions::default());
        let read = disk.clone();
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let database = instance.database(1).unwrap();
            drop(give_up_after(polls, database.update_header(|header| header.repair_count = 7)).await);
            handle.sleep(NANOS_PER_SECOND / 10).await;
            let bytes = read.bytes(database_path(1)).unwrap();
            let copies: Vec<_> = bytes.chunks(4096).take(2).map(DatabaseHeader::decode).collect();
            for copy in copies {
                assert_eq!(copy.unwrap().repair_count, 7, "dropped at poll {polls}");
            }
            let mut next = None;
            let late = handle.sleep(NANOS_PER_SECOND);
            either(
                async { next = Some(database.update_header(|header| header.repair_count = 8).await) },
                late,
            )
            .await;
            next.unwrap_or_else(|| panic!("dropped at poll {polls}: nobody has a turn any more"))
                .unwrap();
            instance.close().await.unwrap();
        });
    }
}
