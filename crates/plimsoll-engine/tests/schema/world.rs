//! A database with a table of rows, the changes that can be made to it, and what it is before and
//! after each.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::Result;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, NewIndex, Table};
use plimsoll_io::{Files, Handle, Loss, MemoryDisk, MemoryOptions, Random};

use crate::life::*;
use crate::support::*;

pub const ROWS: i32 = 130;

/// Tells a story on an empty database, and looks at the file.
pub fn with_database<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>) -> F + 'static,
) {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        story(instance.clone()).await;
        instance.close().await.unwrap();
        check_file(&files, &handle, "after the story").await;
    });
}

/// A change of the schema of the database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    CreateTable,
    DropTable,
    AddIndex,
    DropIndex,
    AddColumn,
    AddFirstLongColumn,
    DropColumn,
}

pub const ALL: [Change; 7] = [
    Change::CreateTable,
    Change::DropTable,
    Change::AddIndex,
    Change::DropIndex,
    Change::AddColumn,
    Change::AddFirstLongColumn,
    Change::DropColumn,
];

pub fn setup() -> Setup {
    Setup { cache_frames: 64, extension_pages: 16, ..Setup::default() }
}

pub fn notes(name: &str) -> Table {
    Table::builder(name)
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("weight", ColumnType::Long))
        .primary("primary", &["id"])
        .build()
        .unwrap()
}

/// Commits durably again and again, on a table of its own: so the log is written out also while a
/// change is half made.
pub async fn keep_busy(instance: Rc<Instance>, handle: Handle) -> Result<()> {
    let table = instance.open_table(1, "Busy").await?;
    let weight = table.column("weight")?;
    let key = table.key(&[Some(&1i32.to_le_bytes())])?;
    for number in 0i32.. {
        let transaction = instance.begin();
        let value = number.to_le_bytes();
        table.update(&transaction, &key, &[(weight, Some(&value[..]))]).await?;
        transaction.commit(Commit::Durable).await?;
        handle.yield_now().await;
    }
    Ok(())
}

/// The folder of a message; many have the same.
pub fn folder(id: i32) -> i32 {
    id * 7 % 9
}

/// The size of a message, which no other has.
pub fn size(id: i32) -> i32 {
    10_000 - id * 3
}

pub fn body(id: i32) -> Vec<u8> {
    vec![b'A' + (id % 26) as u8; if id % 4 == 0 { 5_000 } else { 200 }]
}

pub fn messages() -> Table {
    Table::builder("Messages")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("folder", ColumnType::Long))
        .column(Column::new("size", ColumnType::Long))
        .column(Column::new("spare", ColumnType::LongBinary))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .duplicates("by folder", &["folder"])
        .build()
        .unwrap()
}

pub async fn insert_message(instance: &Rc<Instance>, table: &OpenTable, id: i32) -> Result<()> {
    let [id_column, folder_column, size_column, body_column] =
        ["id", "folder", "size", "body"].map(|name| table.column(name).unwrap());
    let transaction = instance.begin();
    let (key, folder, size, body) =
        (id.to_le_bytes(), folder(id).to_le_bytes(), size(id).to_le_bytes(), body(id));
    let values = [
        (id_column, Some(&key[..])),
        (folder_column, Some(&folder[..])),
        (size_column, Some(&size[..])),
        (body_column, Some(&body[..])),
    ];
    let mut values = values.to_vec();
    let spare = [b'S'; 2_000];
    let spare_column = table.placed().table.column_named("spare");
    if let Some(column) = spare_column.filter(|column| column.column_type.is_long()) {
        values.push((column.id, Some(&spare[..])));
    }
    table.insert(&transaction, &values).await?;
    transaction.commit(Commit::Lazy).await
}

/// A disk of its own with the same content.
pub fn copy(disk: &Rc<MemoryDisk>) -> Rc<MemoryDisk> {
    disk.crash_image(Loss::Nothing, &mut Random::from_seed(9))
}

/// A closed database with messages and notes.
pub fn base(seed: u64) -> Rc<MemoryDisk> {
    let memory = MemoryOptions::default();
    let disk = disk_with_databases(seed, &setup(), memory);
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let table = instance.create_table(1, messages()).await.unwrap();
        for id in 0..ROWS {
            insert_message(&instance, &table, id).await.unwrap();
        }
        drop(table);
        for name in ["Notes", "Busy"] {
            let table = instance.create_table(1, notes(name)).await.unwrap();
            let (id_column, weight) =
                (table.column("id").unwrap(), table.column("weight").unwrap());
            for id in 0..20i32 {
                let transaction = instance.begin();
                let id = id.to_le_bytes();
                let values = [(id_column, Some(&id[..])), (weight, Some(&id[..]))];
                table.insert(&transaction, &values).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
            }
        }
        instance.close().await.unwrap();
    });
    disk
}

pub async fn carry_out(instance: &Rc<Instance>, change: Change) -> Result<()> {
    match change {
        Change::CreateTable => instance.create_table(1, message_table("New")).await.map(drop),
        Change::DropTable => instance.drop_table(1, "Messages").await,
        Change::AddIndex => {
            let index = NewIndex::unique("by size", &["size"]);
            instance.add_index(1, "Messages", index).await
        }
        Change::DropIndex => instance.drop_index(1, "Messages", "by folder").await,
        Change::AddColumn => {
            let column = Column::new("flags", ColumnType::Short);
            instance.add_column(1, "Messages", column).await
        }
        Change::AddFirstLongColumn => {
            let column = Column::new("text", ColumnType::LongText);
            instance.add_column(1, "Notes", column).await
        }
        Change::DropColumn => instance.drop_column(1, "Messages", "spare").await,
    }
}

/// Whether a change was made; everything is as it was, or as it was to become.
pub async fn was_made(instance: &Rc<Instance>, change: Change) -> bool {
    let tables = instance.tables(1).await.unwrap();
    let find = |name: &str| tables.iter().find(|placed| placed.table.name == name);
    let messages = find("Messages").map(|placed| &placed.table);
    let notes = &find("Notes").expect("the notes are there").table;
    let made = match change {
        Change::CreateTable => find("New").is_some(),
        Change::DropTable => messages.is_none(),
        Change::AddIndex => messages.unwrap().indexes.len() == 3,
        Change::DropIndex => messages.unwrap().indexes.len() == 1,
        Change::AddColumn => messages.unwrap().column_named("flags").is_some(),
        Change::AddFirstLongColumn => notes.column_named("text").is_some(),
        Change::DropColumn => messages.unwrap().column_named("spare").is_none(),
    };
    assert_eq!(
        find("Notes").unwrap().long_values.is_some(),
        made && change == Change::AddFirstLongColumn
    );
    if messages.is_some() {
        check_messages(instance).await;
    }
    made
}

/// All messages are there, in every index.
pub async fn check_messages(instance: &Rc<Instance>) {
    let table = instance.open_table(1, "Messages").await.unwrap();
    let transaction = instance.begin();
    let id_column = table.column("id").unwrap();
    let mut expected: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    let sorted = |key: &dyn Fn(i32) -> (i32, i32)| {
        let mut ids: Vec<i32> = (0..ROWS).collect();
        ids.sort_by_key(|id| key(*id));
        ids
    };
    expected.insert("primary", sorted(&|id| (id, 0)));
    expected.insert("by folder", sorted(&|id| (folder(id), id)));
    expected.insert("by size", sorted(&|id| (size(id), 0)));
    for (number, index) in table.placed().table.indexes.iter().enumerate() {
        let mut scan = table.scan(&transaction, number, KeyRange::all(), Direction::Forward);
        let mut found = Vec::new();
        while let Some(row) = scan.next().await.unwrap() {
            let id = table.value(&transaction, &row, id_column).await.unwrap().unwrap();
            found.push(i32::from_le_bytes(id.try_into().unwrap()));
            if number == 0 {
                check_message(&table, &transaction, &row, *found.last().unwrap()).await;
            }
        }
        assert_eq!(found, expected[&index.name[..]], "index {}", index.name);
    }
}

async fn check_message(
    table: &OpenTable,
    transaction: &plimsoll_engine::transaction::Transaction,
    row: &plimsoll_engine::table::StoredRow,
    id: i32,
) {
    let value = async |name: &str| {
        let column = table.column(name).unwrap();
        table.value(transaction, row, column).await.unwrap()
    };
    assert_eq!(value("body").await.unwrap(), body(id));
    assert_eq!(value("size").await.unwrap(), size(id).to_le_bytes());
    for (name, expected) in [("spare", Some(vec![b'S'; 2_000])), ("flags", None)] {
        if table.column(name).is_ok() {
            assert_eq!(value(name).await, expected, "{name}");
        }
    }
}

/// A closed database is sound, and no page of it is lost to everybody.
pub async fn check_file(files: &Files, handle: &Handle, label: &str) {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default()).await;
    let report = report.unwrap_or_else(|error| panic!("{label}: {error}"));
    assert!(report.is_sound(), "{label}: {:#?}", report.findings);
    assert!(report.unchecked.is_empty(), "{label}: {:#?}", report.unchecked);
}

/// Opens what is left on a disk, looks, closes, and looks at the file. Whether the change was made.
pub fn look_after(disk: &Rc<MemoryDisk>, change: Change, label: String) -> bool {
    live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let made = was_made(&instance, change).await;
        instance.close().await.unwrap();
        check_file(&files, &handle, &label).await;
        made
    })
}
