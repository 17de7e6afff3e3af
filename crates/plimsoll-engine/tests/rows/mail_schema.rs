//! The engine is a library, not a one-table benchmark: a mail-like schema (folders with unread
//! counts, messages with indexes and long bodies) behaves like its model under concurrent sessions,
//! and what a clean shutdown leaves is read back by the independent reading path.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, MemoryOptions, Random};

const FOLDERS: u64 = 7;

fn folders() -> Table {
    Table::builder("Folders")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("unread", ColumnType::Long))
        .column(Column::new("name", ColumnType::Text))
        .primary("primary", &["id"])
        .unique("by name", &["name"])
        .build()
        .unwrap()
}

fn messages() -> Table {
    Table::builder("Messages")
        .column(Column::new("id", ColumnType::LongLong))
        .column(Column::new("folder", ColumnType::Long))
        .column(Column::new("received", ColumnType::Currency))
        .column(Column::new("subject", ColumnType::LongText).unicode())
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .duplicates("by folder", &["folder", "-received"])
        .build()
        .unwrap()
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Message {
    folder: i32,
    received: i64,
    body: Vec<u8>,
}

#[derive(Default)]
struct Model {
    messages: BTreeMap<i64, Message>,
    unread: BTreeMap<i32, i32>,
}

impl Model {
    fn note(&mut self, id: i64, folder_before: i32, after: Option<Message>) {
        *self.unread.entry(folder_before).or_default() -= 1;
        match after {
            Some(message) => {
                *self.unread.entry(message.folder).or_default() += 1;
                self.messages.insert(id, message);
            }
            None => {
                self.messages.remove(&id);
            }
        }
    }
}

fn body(random: &mut Random) -> Vec<u8> {
    let bytes = if random.chance(0.3) { random.below(40_000) } else { random.below(900) };
    // Values that begin below 0x40 could be taken for compressed ones by other readers.
    (0..bytes).map(|_| 0x40 | (random.next_u64() as u8 & 0x3F)).collect()
}

async fn deliver(
    messages: &OpenTable,
    folders: &OpenTable,
    instance: &Instance,
    id: i64,
    random: &mut Random,
) -> Option<(i64, Message)> {
    let message = Message {
        folder: random.below(FOLDERS) as i32,
        received: random.next_u64() as i64 >> 20,
        body: body(random),
    };
    let transaction = instance.begin();
    let subject: Vec<u8> =
        format!("Message {id} é中").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let column = |name| messages.column(name).unwrap();
    messages
        .insert(
            &transaction,
            &[
                (column("id"), Some(&id.to_le_bytes())),
                (column("folder"), Some(&message.folder.to_le_bytes())),
                (column("received"), Some(&message.received.to_le_bytes())),
                (column("subject"), Some(&subject)),
                (column("body"), Some(&message.body)),
            ],
        )
        .await
        .unwrap();
    let folder_key = folders.key(&[Some(&message.folder.to_le_bytes())]).unwrap();
    // Several sessions add to one counter at a time without conflict.
    folders.add(&transaction, &folder_key, folders.column("unread").unwrap(), 1).await.unwrap();
    if random.chance(0.15) {
        transaction.rollback().await.unwrap();
        return None;
    }
    transaction.commit(Commit::Lazy).await.unwrap();
    Some((id, message))
}

async fn touch(
    messages: &OpenTable,
    folders: &OpenTable,
    instance: &Instance,
    model: &RefCell<Model>,
    id: i64,
    random: &mut Random,
) {
    let transaction = instance.begin();
    let key = messages.key(&[Some(&id.to_le_bytes())]).unwrap();
    let Some(known) = model.borrow().messages.get(&id).cloned() else {
        return;
    };
    let folder_key = |folder: i32| folders.key(&[Some(&folder.to_le_bytes())]).unwrap();
    let unread = folders.column("unread").unwrap();
    let result = if random.chance(0.5) {
        let removed = messages.delete(&transaction, &key).await;
        let counted = folders.add(&transaction, &folder_key(known.folder), unread, -1).await;
        removed.and(counted).map(|()| None)
    } else {
        let changed =
            Message { folder: random.below(FOLDERS) as i32, body: body(random), ..known.clone() };
        let column = |name| messages.column(name).unwrap();
        let moved = messages
            .update(
                &transaction,
                &key,
                &[
                    (column("folder"), Some(&changed.folder.to_le_bytes())),
                    (column("body"), Some(&changed.body)),
                ],
            )
            .await;
        folders.add(&transaction, &folder_key(known.folder), unread, -1).await.unwrap();
        let counted = folders.add(&transaction, &folder_key(changed.folder), unread, 1).await;
        moved.and(counted).map(|()| Some(changed))
    };
    match result {
        Ok(after) => {
            model.borrow_mut().note(id, known.folder, after);
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        Err(EngineError::WriteConflict | EngineError::RowNotFound) => {
            transaction.rollback().await.unwrap()
        }
        Err(error) => panic!("{error}"),
    }
}

async fn compare(messages: &OpenTable, folders: &OpenTable, instance: &Instance, model: &Model) {
    let transaction = instance.begin();
    let mut cursor = messages.scan(&transaction, 0, KeyRange::all(), Direction::Forward);
    let mut found = BTreeMap::new();
    while let Some(row) = cursor.next().await.unwrap() {
        let value = async |name| {
            messages
                .value(&transaction, &row, messages.column(name).unwrap())
                .await
                .unwrap()
                .unwrap()
        };
        let message = Message {
            folder: i32::from_le_bytes(value("folder").await.try_into().unwrap()),
            received: i64::from_le_bytes(value("received").await.try_into().unwrap()),
            body: messages
                .value(&transaction, &row, messages.column("body").unwrap())
                .await
                .unwrap()
                .unwrap_or_default(),
        };
        found.insert(i64::from_le_bytes(value("id").await.try_into().unwrap()), message);
    }
    assert_eq!(found.len(), model.messages.len());
    assert!(found == model.messages);
    let by_folder = messages.index("by folder").unwrap();
    for folder in 0..FOLDERS as i32 {
        let prefix = messages.index_prefix(by_folder, &[Some(&folder.to_le_bytes())]).unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut cursor =
                messages.scan(&transaction, by_folder, KeyRange::prefix(&prefix), direction);
            let mut received = Vec::new();
            while let Some(row) = cursor.next().await.unwrap() {
                let column = messages.column("received").unwrap();
                let value = messages.value(&transaction, &row, column).await.unwrap().unwrap();
                received.push(i64::from_le_bytes(value.try_into().unwrap()));
            }
            let newest_first = received.windows(2).all(|pair| pair[0] >= pair[1]);
            let oldest_first = received.windows(2).all(|pair| pair[0] <= pair[1]);
            assert!(
                if direction == Direction::Forward { newest_first } else { oldest_first },
                "order of folder {folder}"
            );
            let expected =
                model.messages.values().filter(|message| message.folder == folder).count();
            assert_eq!(received.len(), expected, "messages of folder {folder}");
        }
        let key = folders.key(&[Some(&folder.to_le_bytes())]).unwrap();
        let row = folders.get(&transaction, &key).await.unwrap().unwrap();
        let unread = folders
            .value(&transaction, &row, folders.column("unread").unwrap())
            .await
            .unwrap()
            .unwrap();
        let unread = i32::from_le_bytes(unread.try_into().unwrap());
        assert_eq!(
            unread,
            model.unread.get(&folder).copied().unwrap_or(0),
            "unread count of folder {folder}"
        );
    }
}

fn check(size: PageSize, seed: u64) {
    let setup = Setup { size, cache_frames: 160, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let folders = Rc::new(instance.create_table(1, folders()).await.unwrap());
        let messages = Rc::new(instance.create_table(1, messages()).await.unwrap());
        let transaction = instance.begin();
        for folder in 0..FOLDERS as i32 {
            let name = format!("folder {folder}");
            let values: [(u16, Option<&[u8]>); 3] = [
                (folders.column("id").unwrap(), Some(&folder.to_le_bytes())),
                (folders.column("unread").unwrap(), Some(&0i32.to_le_bytes())),
                (folders.column("name").unwrap(), Some(name.as_bytes())),
            ];
            folders.insert(&transaction, &values).await.unwrap();
            let again = folders.insert(&transaction, &values).await;
            assert!(
                matches!(again, Err(EngineError::KeyDuplicate { .. })),
                "a second folder of this number: {again:?}"
            );
        }
        transaction.commit(Commit::Durable).await.unwrap();
        let model: Rc<RefCell<Model>> = Rc::default();
        let mut joins = Vec::new();
        for session in 0..4i64 {
            let (instance, folders, messages, model) =
                (instance.clone(), folders.clone(), messages.clone(), model.clone());
            let mut random = Random::from_seed(seed).child(&format!("session {session}"));
            joins.push(handle.spawn(async move {
                for number in 0..60 {
                    let id = session * 1000 + number;
                    if let Some((id, message)) =
                        deliver(&messages, &folders, &instance, id, &mut random).await
                    {
                        let mut model = model.borrow_mut();
                        *model.unread.entry(message.folder).or_default() += 1;
                        model.messages.insert(id, message);
                    }
                    let other =
                        random.below(4) as i64 * 1000 + random.below(number as u64 + 1) as i64;
                    touch(&messages, &folders, &instance, &model, other, &mut random).await;
                }
            }));
        }
        for join in joins {
            join.await;
        }
        let model = model.take();
        compare(&messages, &folders, &instance, &model).await;
        drop((messages, folders));
        instance.close().await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed + 1).await.unwrap();
        let folders = instance.open_table(1, "Folders").await.unwrap();
        let messages = instance.open_table(1, "Messages").await.unwrap();
        compare(&messages, &folders, &instance, &model).await;
        instance.close().await.unwrap();

        let reader = DatabaseReader::open(&files, &handle, database_path(1), WhenDirty::Refuse)
            .await
            .unwrap();
        let placed = reader.table("Messages").unwrap().clone();
        let mut rows = reader.rows(&placed);
        let mut count = 0;
        while rows.next().await.unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, model.messages.len(), "rows seen by the reader of clean databases");
        let report =
            verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await.unwrap();
        assert!(report.is_sound(), "verify --deep finds {:#?}", report.findings);
        assert!(report.unchecked.is_empty(), "{:#?}", report.unchecked);
    })
    .unwrap();
}

#[test]
fn folders_and_messages_agree_with_their_model_on_every_page_size() {
    for (index, size) in PageSize::ALL.into_iter().enumerate() {
        check(size, 40 + index as u64);
    }
}
