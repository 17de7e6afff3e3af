//! Traits of databases that Windows makes and our engine does not: long values compressed outside
//! the record, long values numbered with eight bytes, indexes with conditions, inherited columns,
//! text in fixed columns of odd size.
//!
//! Of 27 sound databases of Windows, thirteen could not be exported or were called damaged for one
//! of these. Each is made here by changing what our engine wrote, node by node.

use std::ops::ControlFlow;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::catalog::{PlacedTable, catalog_rows, system};
use plimsoll_engine::cursor::KeyRange;
use plimsoll_engine::deep::{DeepOptions, DeepReport, verify_deep};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::page::page_flags;
use plimsoll_engine::reader::{
    DatabaseReader, ReadError, TextFormat, Value, WhenDirty, write_table,
};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnId, ColumnType, PageSize, Table};
use plimsoll_io::{Clock, Files, Handle, MemoryOptions};

const TABLE: &str = "Letters";

/// Makes a database with a table and rows, changes it, and hands it to a reader.
fn changed_database<T: 'static, F, G, H>(
    size: PageSize,
    table: Table,
    fill: impl FnOnce(Rc<Instance>, Transaction) -> F + 'static,
    change: impl FnOnce(PlacedTable, Rc<Instance>, Transaction) -> G + 'static,
    look: impl FnOnce(Files, Handle) -> H + 'static,
) -> T
where
    F: Future<Output = ()> + 'static,
    G: Future<Output = Transaction> + 'static,
    H: Future<Output = T> + 'static,
{
    let setup = Setup { size, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        drop(instance.create_table(1, table).await.unwrap());
        let transaction = instance.begin();
        fill(instance.clone(), transaction).await;
        instance.close().await.unwrap();
        let placed = placed(&files, &handle).await;
        let (instance, _) = open(&files, &handle, &setup, 6).await.unwrap();
        let transaction = change(placed, instance.clone(), instance.begin()).await;
        transaction.commit(Commit::Durable).await.unwrap();
        instance.close().await.unwrap();
        look(files, handle).await
    })
    .unwrap()
}

async fn reader(files: &Files, handle: &Handle) -> DatabaseReader {
    let opened = DatabaseReader::open(files, handle, database_path(1), WhenDirty::Refuse);
    opened.await.unwrap()
}

async fn placed(files: &Files, handle: &Handle) -> PlacedTable {
    let reader = reader(files, handle).await;
    let placed = reader.table(TABLE).expect("it was made").clone();
    reader.close().await.unwrap();
    placed
}

/// The table as JSON lines.
async fn exported(files: &Files, handle: &Handle) -> Result<String, ReadError> {
    let reader = reader(files, handle).await;
    let placed = reader.table(TABLE).expect("it was made");
    let mut text = Vec::new();
    let mut sink = |piece: Vec<u8>| {
        text.extend(piece);
        ControlFlow::Continue(())
    };
    let written = write_table(&reader, placed, TextFormat::JsonLines, &mut sink).await;
    reader.clone().close().await.unwrap();
    written.map(|_| String::from_utf8(text).expect("JSON is UTF-8"))
}

async fn deep(files: &Files, handle: &Handle) -> DeepReport {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default());
    report.await.unwrap()
}

/// What a reader makes of the table, and what a deep check says of the database.
async fn exported_and_checked(
    files: Files,
    handle: Handle,
) -> (Result<String, ReadError>, DeepReport) {
    (exported(&files, &handle).await, deep(&files, &handle).await)
}

fn letters() -> Table {
    Table::builder(TABLE)
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("body", ColumnType::LongText))
        .primary("primary", &["id"])
        .build()
        .expect("a valid table")
}

async fn insert(instance: &Instance, transaction: &Transaction, id: i32, others: &[(&str, &[u8])]) {
    let table = instance.open_table(1, TABLE).await.unwrap();
    let id = id.to_le_bytes();
    let mut values = vec![(table.column("id").unwrap(), Some(&id[..]))];
    for (name, value) in others {
        values.push((table.column(name).unwrap(), Some(*value)));
    }
    table.insert(transaction, &values).await.unwrap();
}

/// Seven-bit characters packed from the low bit up, as method 1 has them.
fn packed(text: &[u8]) -> Vec<u8> {
    let mut bits: Vec<u8> = Vec::with_capacity(text.len() * 7);
    for byte in text {
        bits.extend((0..7).map(|bit| byte >> bit & 1));
    }
    let used = (bits.len() + 7) % 8 + 1;
    let bytes = bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit));
    std::iter::once(1 << 3 | (used as u8 - 1)).chain(bytes).collect()
}

/// A letter, then matches with it of nine bytes each, as method 3 has them; `text` repeats one
/// letter.
fn matched(text: &[u8]) -> Vec<u8> {
    let mut stored = vec![3 << 3];
    stored.extend((text.len() as u16).to_le_bytes());
    let mut left = text.len() - 1;
    let mut items: Vec<Option<u16>> = vec![None];
    while left > 0 {
        // A match of fewer than three bytes does not exist; single letters fill up.
        let bytes = if left >= 3 { left.min(9) } else { 1 };
        items.push((bytes >= 3).then(|| bytes as u16 - 3));
        left -= bytes;
    }
    for group in items.chunks(32) {
        let flags = group.iter().enumerate();
        let flags =
            flags.fold(0u32, |flags, (at, item)| flags | u32::from(item.is_some()) << (31 - at));
        stored.extend(flags.to_le_bytes());
        for item in group {
            match item {
                Some(length) => stored.extend(length.to_le_bytes()),
                None => stored.push(text[0]),
            }
        }
    }
    stored
}

/// Stores the chunks of every long value as `pack` does; those it makes no shorter stay.
async fn pack_chunks(
    placed: &PlacedTable,
    instance: &Instance,
    transaction: &Transaction,
    pack: impl Fn(&[u8]) -> Vec<u8>,
) -> usize {
    let place = placed.long_values.expect("the table has long values");
    let tree = plimsoll_engine::btree::Tree {
        kind: page_flags::LONG_VALUE,
        ..tree_of(1, place.root, place.object)
    };
    let mut changed = 0;
    for (key, chunk) in dump(instance, tree).await.unwrap() {
        if key.len() != 8 {
            continue;
        }
        let stored = pack(&chunk);
        if stored.len() < chunk.len() {
            transaction.replace(tree, &key, &stored).await.unwrap();
            changed += 1;
        }
    }
    changed
}

/// The text of a letter that takes several chunks and ends within one.
fn text(size: PageSize, letters: &[u8]) -> Vec<u8> {
    letters.iter().copied().cycle().take(size.bytes() * 5 / 2).collect()
}

/// Windows compresses long values by default in mail stores and search indexes, and says so nowhere
/// but in their lengths: three of eleven databases could not be exported and were called damaged.
#[test]
fn a_long_value_compressed_outside_the_record_is_read_and_is_sound() {
    type Pack = fn(&[u8]) -> Vec<u8>;
    let cases: [(&[u8], Pack); 2] = [(b"Dear Ada, ", packed), (b"A", matched)];
    for size in PageSize::ALL {
        for (letters_of_text, pack) in cases {
            let body = text(size, letters_of_text);
            let expected =
                format!("{{\"id\":1,\"body\":\"{}\"}}\n", String::from_utf8_lossy(&body));
            let (exported, deep) = changed_database(
                size,
                letters(),
                move |instance, transaction| async move {
                    insert(&instance, &transaction, 1, &[("body", &body)]).await;
                    transaction.commit(Commit::Lazy).await.unwrap();
                },
                move |placed, instance, transaction| async move {
                    assert!(pack_chunks(&placed, &instance, &transaction, pack).await >= 3);
                    transaction
                },
                exported_and_checked,
            );
            assert!(exported.unwrap() == expected, "{size}");
            assert!(deep.is_sound(), "{size}: {:#?}", deep.findings);
            assert_eq!(deep.long_values, 1);
        }
    }
}

/// A chunk that only looks compressed must not pass: it does not expand to the stretch it stands
/// for.
#[test]
fn a_chunk_that_expands_to_less_than_its_stretch_is_damage() {
    let body = text(PageSize::KIB_8, b"Dear Ada, ");
    let (exported, deep) = changed_database(
        PageSize::KIB_8,
        letters(),
        move |instance, transaction| async move {
            insert(&instance, &transaction, 1, &[("body", &body)]).await;
            transaction.commit(Commit::Lazy).await.unwrap();
        },
        |placed, instance, transaction| async move {
            pack_chunks(&placed, &instance, &transaction, |chunk| packed(&chunk[1..])).await;
            transaction
        },
        exported_and_checked,
    );
    assert!(matches!(exported, Err(ReadError::Format { .. })), "{exported:?}");
    assert!(!deep.is_sound());
}

/// Later versions of Windows compress by methods that are not public. That is no damage, and nobody
/// should restore a backup for it.
#[test]
fn a_value_compressed_by_a_later_method_is_not_judged() {
    let body = text(PageSize::KIB_4, b"Dear Ada, ");
    let (exported, deep) = changed_database(
        PageSize::KIB_4,
        letters(),
        move |instance, transaction| async move {
            insert(&instance, &transaction, 1, &[("body", &body)]).await;
            transaction.commit(Commit::Lazy).await.unwrap();
        },
        |placed, instance, transaction| async move {
            pack_chunks(&placed, &instance, &transaction, |_| vec![5 << 3, 1, 2, 3]).await;
            transaction
        },
        exported_and_checked,
    );
    assert!(matches!(exported, Err(ReadError::Packed { method: 5, .. })), "{exported:?}");
    assert!(deep.is_sound(), "{:#?}", deep.findings);
    let unchecked = deep.unchecked[0].to_string();
    assert!(unchecked.contains("compressed in a way of a later format"), "{unchecked}");
}

/// Formats from 110 on number long values with eight bytes; a head of one was taken for a chunk of
/// a value that is not there.
#[test]
fn long_values_numbered_with_eight_bytes_are_read_and_are_sound() {
    let body = text(PageSize::KIB_4, b"Dear Ada, ");
    let expected = format!("{{\"id\":1,\"body\":\"{}\"}}\n", String::from_utf8_lossy(&body));
    let (exported, deep) = changed_database(
        PageSize::KIB_4,
        letters(),
        move |instance, transaction| async move {
            insert(&instance, &transaction, 1, &[("body", &body)]).await;
            transaction.commit(Commit::Lazy).await.unwrap();
        },
        |placed, instance, transaction| async move {
            let place = placed.long_values.unwrap();
            let values = plimsoll_engine::btree::Tree {
                kind: page_flags::LONG_VALUE,
                ..tree_of(1, place.root, place.object)
            };
            for (key, data) in dump(&instance, values).await.unwrap() {
                let long_key = [&[0x80, 0, 0, 0][..], &key].concat();
                transaction.delete(values, &key).await.unwrap();
                transaction.insert(values, &long_key, &data).await.unwrap();
            }
            let rows = tree_of(1, placed.place.root, placed.place.object);
            for (key, mut record) in dump(&instance, rows).await.unwrap() {
                // The number is the end of the last value of the record.
                record.extend([0, 0, 0, 0x80]);
                transaction.replace(rows, &key, &record).await.unwrap();
            }
            transaction
        },
        exported_and_checked,
    );
    assert!(exported.unwrap() == expected);
    assert!(deep.is_sound(), "{:#?}", deep.findings);
    assert_eq!((deep.long_values, deep.unchecked.len()), (1, 0));
}

/// Puts the catalog's rows of a changed table in the place of those that are there, in the catalog
/// and its shadow.
async fn replace_catalog_rows(placed: &PlacedTable, size: PageSize, transaction: &Transaction) {
    for row in catalog_rows(placed, size) {
        for (root, object) in [
            (system::CATALOG_ROOT, system::CATALOG_OBJECT),
            (system::SHADOW_ROOT, system::SHADOW_OBJECT),
        ] {
            let tree = tree_of(1, root, object);
            transaction.replace(tree, &row.key, &row.record).await.unwrap();
        }
    }
}

fn set_condition(placed: &mut PlacedTable, index: usize, condition: (ColumnId, bool)) {
    placed.indexes[index].traits.conditions = vec![condition];
}

/// Deletes the entries of some rows from an index, which its condition leaves out.
async fn drop_entries(
    placed: &PlacedTable,
    index: usize,
    instance: &Instance,
    transaction: &Transaction,
    is_left_out: impl Fn(u8) -> bool,
) {
    let place = placed.indexes[index].place;
    let tree = plimsoll_engine::btree::Tree {
        kind: page_flags::INDEX,
        ..tree_of(1, place.root, place.object)
    };
    for (key, primary) in dump(instance, tree).await.unwrap() {
        // The number of the row is the last byte of its key.
        if is_left_out(*primary.last().unwrap()) {
            transaction.delete(tree, &key).await.unwrap();
        }
    }
}

/// An index with a condition holds only the rows that meet it: it was called damaged for each of
/// the others.
#[test]
fn an_index_with_a_condition_holds_the_rows_that_meet_it() {
    let table = || {
        Table::builder(TABLE)
            .column(Column::new("id", ColumnType::Long))
            .column(Column::new("size", ColumnType::Long))
            .column(Column::new("sender", ColumnType::Text))
            .primary("primary", &["id"])
            .duplicates("by_size", &["size"])
            .build()
            .expect("a valid table")
    };
    // Whether the condition asks for null, whether the tree follows it, whether that is sound.
    for (asks_null, follows, is_sound) in
        [(false, true, true), (true, true, true), (false, false, false)]
    {
        let report = changed_database(
            PageSize::KIB_32,
            table(),
            |instance, transaction| async move {
                for id in 0..20_i32 {
                    let size = (id % 3).to_le_bytes();
                    let with_sender: &[(&str, &[u8])] = &[("size", &size), ("sender", b"Ada")];
                    insert(&instance, &transaction, id, &with_sender[..1 + (id as usize % 2)])
                        .await;
                }
                transaction.commit(Commit::Lazy).await.unwrap();
            },
            move |mut placed, instance, transaction| async move {
                let sender = placed.table.column_named("sender").unwrap().id;
                set_condition(&mut placed, 1, (sender, asks_null));
                replace_catalog_rows(&placed, PageSize::KIB_32, &transaction).await;
                // Odd rows have a sender.
                drop_entries(&placed, 1, &instance, &transaction, |id| {
                    follows && (id % 2 == 1) == asks_null
                })
                .await;
                transaction
            },
            |files, handle| async move { deep(&files, &handle).await },
        );
        assert_eq!(report.is_sound(), is_sound, "{asks_null} {follows}: {:#?}", report.findings);
        assert_eq!(report.unchecked, []);
    }
}

/// Rows that are changed enter and leave such an index as its condition says. The engine entered
/// all of them, and left the entries of rows that met the condition no more.
#[test]
fn rows_enter_and_leave_an_index_by_its_condition() {
    for asks_null in [false, true] {
        let table = Table::builder(TABLE)
            .column(Column::new("id", ColumnType::Long))
            .column(Column::new("size", ColumnType::Long))
            .column(Column::new("sender", ColumnType::LongText))
            .primary("primary", &["id"])
            .duplicates("by_size", &["size"])
            .build()
            .expect("a valid table");
        let (counts, report) = changed_database(
            PageSize::KIB_32,
            table,
            |_, transaction| async move { transaction.commit(Commit::Lazy).await.unwrap() },
            move |mut placed, _, transaction| async move {
                let sender = placed.table.column_named("sender").unwrap().id;
                set_condition(&mut placed, 1, (sender, asks_null));
                replace_catalog_rows(&placed, PageSize::KIB_32, &transaction).await;
                transaction
            },
            |files, handle| async move {
                let setup = Setup { size: PageSize::KIB_32, ..Setup::default() };
                let (instance, _) = open(&files, &handle, &setup, 7).await.unwrap();
                let table = instance.open_table(1, TABLE).await.unwrap();
                let sender = table.column("sender").unwrap();
                let long = [b'a'; 3_000];
                let transaction = instance.begin();
                for id in 0..20_i32 {
                    let size = (id % 3).to_le_bytes();
                    let others: &[(&str, &[u8])] = match id % 4 {
                        0 => &[("size", &size)],
                        1 => &[("size", &size), ("sender", &long)],
                        _ => &[("size", &size), ("sender", b"Ada")],
                    };
                    insert(&instance, &transaction, id, others).await;
                }
                let mut counts = Vec::new();
                let all = KeyRange::all;
                counts.push(table.count(&transaction, 1, all(), u64::MAX).await.unwrap());
                let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
                // One that had a sender has none, one that had none has one, one goes.
                table.update(&transaction, &key(1), &[(sender, None)]).await.unwrap();
                table.update(&transaction, &key(4), &[(sender, Some(&b"Bob"[..]))]).await.unwrap();
                table.update(&transaction, &key(8), &[(sender, Some(&long[..]))]).await.unwrap();
                table.delete(&transaction, &key(2)).await.unwrap();
                counts.push(table.count(&transaction, 1, all(), u64::MAX).await.unwrap());
                transaction.commit(Commit::Durable).await.unwrap();
                let of_condition = instance.drop_column(1, TABLE, "sender").await;
                assert!(of_condition.is_err());
                drop(table);
                let of_condition = instance.drop_column(1, TABLE, "sender").await;
                let why = of_condition.unwrap_err().to_string();
                assert!(why.contains("part of an index"), "{why}");
                instance.close().await.unwrap();
                (counts, deep(&files, &handle).await)
            },
        );
        let expected = if asks_null { [5, 4] } else { [15, 15] };
        assert_eq!(counts, expected, "rows in the index where null is asked for: {asks_null}");
        assert!(report.is_sound(), "{asks_null}: {:#?}", report.findings);
        assert_eq!(report.unchecked, []);
    }
}

/// A condition belongs to its index. Dropping the index before it handed the conditions on to the
/// next one, and the next check called the database damaged.
#[test]
fn an_index_keeps_its_condition_when_the_one_before_it_is_dropped() {
    let table = || {
        Table::builder(TABLE)
            .column(Column::new("id", ColumnType::Long))
            .column(Column::new("size", ColumnType::Long))
            .column(Column::new("sender", ColumnType::Text))
            .primary("primary", &["id"])
            .duplicates("by_sender", &["sender"])
            .duplicates("by_size", &["size"])
            .build()
            .expect("a valid table")
    };
    let report = changed_database(
        PageSize::KIB_32,
        table(),
        |instance, transaction| async move {
            for id in 0..20_i32 {
                let size = (id % 3).to_le_bytes();
                let with_sender: &[(&str, &[u8])] = &[("size", &size), ("sender", b"Ada")];
                insert(&instance, &transaction, id, &with_sender[..1 + (id as usize % 2)]).await;
            }
            transaction.commit(Commit::Lazy).await.unwrap();
        },
        |mut placed, instance, transaction| async move {
            let sender = placed.table.column_named("sender").unwrap().id;
            let by_size = placed.table.indexes.iter().position(|index| index.name == "by_size");
            set_condition(&mut placed, by_size.unwrap(), (sender, false));
            replace_catalog_rows(&placed, PageSize::KIB_32, &transaction).await;
            drop_entries(&placed, by_size.unwrap(), &instance, &transaction, |id| id % 2 == 0)
                .await;
            transaction
        },
        |files, handle| async move {
            let setup = Setup { size: PageSize::KIB_32, ..Setup::default() };
            let (instance, _) = open(&files, &handle, &setup, 7).await.unwrap();
            instance.drop_index(1, TABLE, "by_sender").await.unwrap();
            instance.close().await.unwrap();
            deep(&files, &handle).await
        },
    );
    assert!(report.is_sound(), "{:#?}", report.findings);
    assert_eq!(report.unchecked, []);
}

/// Values of inherited columns lie before the table's own; tagged ones of both are numbered alike
/// and told apart by a bit.
#[test]
fn inherited_columns_are_read() {
    for size in [PageSize::KIB_4, PageSize::KIB_32] {
        let table = Table::builder(TABLE)
            .column(Column::new("id", ColumnType::Long))
            .column(Column::new("size", ColumnType::Long))
            .column(Column::new("sender", ColumnType::Text))
            .column(Column::new("place", ColumnType::Text))
            .column(Column::new("inherited", ColumnType::LongText))
            .column(Column::new("own", ColumnType::LongText))
            .primary("primary", &["id"])
            .build()
            .expect("a valid table");
        let exported = changed_database(
            size,
            table,
            |instance, transaction| async move {
                let values: &[(&str, &[u8])] = &[
                    ("size", &7i32.to_le_bytes()),
                    ("sender", b"Ada"),
                    ("place", b"Ockham"),
                    ("inherited", b"the first"),
                    ("own", b"the second"),
                ];
                insert(&instance, &transaction, 1, values).await;
                transaction.commit(Commit::Lazy).await.unwrap();
                let base = Table::builder("Base")
                    .column(Column::new("id", ColumnType::Long))
                    .column(Column::new("sender", ColumnType::Text))
                    .column(Column::new("inherited", ColumnType::LongText))
                    .primary("primary", &["id"])
                    .build()
                    .expect("a valid table");
                drop(instance.create_table(1, base).await.unwrap());
            },
            move |mut placed, instance, transaction| async move {
                let before = catalog_rows(&placed, size);
                placed.template = Some("Base".to_owned());
                let own = ["size", "place", "own"];
                placed.table.columns.retain(|column| own.contains(&&column.name[..]));
                placed.table.columns.last_mut().unwrap().id = 256;
                let after = catalog_rows(&placed, size);
                let catalog = tree_of(1, system::CATALOG_ROOT, system::CATALOG_OBJECT);
                for row in before {
                    transaction.delete(catalog, &row.key).await.unwrap();
                }
                for row in after {
                    transaction.insert(catalog, &row.key, &row.record).await.unwrap();
                }
                let rows = tree_of(1, placed.place.root, placed.place.object);
                for (key, mut record) in dump(&instance, rows).await.unwrap() {
                    let tags = record
                        .windows(6)
                        .position(|bytes| bytes[..2] == [0, 1] && bytes[4..] == [1, 1])
                        .expect("the list of columns 256 and 257");
                    record[tags + 3] |= 0x80;
                    record[tags + 4] = 0;
                    transaction.replace(rows, &key, &record).await.unwrap();
                }
                transaction
            },
            |files, handle| async move { exported(&files, &handle).await },
        );
        let expected = "{\"id\":1,\"sender\":\"Ada\",\"inherited\":\"the \
         first\",\"size\":7,\"place\":\"Ockham\",\"own\":\"the second\"}\n";
        assert_eq!(exported.unwrap(), expected, "{size}");
    }
}

/// Seven bytes hold three characters; they came out as fourteen digits.
#[test]
fn text_in_a_fixed_column_of_odd_size_is_text() {
    let fixed = Column { id: 3, bytes_max: 7, ..Column::new("name", ColumnType::Text).unicode() };
    for filler in [0, b' '] {
        let value = Value::of(&fixed, &[b'A', 0, b'd', 0, b'a', 0, filler]);
        assert_eq!(value, Value::Text("Ada".to_owned()));
    }
    // A half character is none: nothing is guessed and nothing is lost.
    let value = Value::of(&fixed, &[b'A', 0, b'd', 0, b'a', 0, b'x']);
    assert_eq!(value, Value::Text("41006400610078".to_owned()));
}
