//! What a new user of the crate ran into: what is refused says what it is, where it is, and what to
//! do about it; what is accepted is kept.

use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, NewIndex, Table, TableBuilder, column_flags};
use plimsoll_io::MemoryOptions;

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// It is refused in these words.
fn is_told<T, E: std::fmt::Display>(result: Result<T, E>, words: &[&str]) {
    let told = result.err().map_or("nothing".into(), |error| error.to_string());
    for word in words {
        assert!(told.contains(word), "{told:?} does not say {word:?}");
    }
}

/// A table whose key is a number.
fn people() -> TableBuilder {
    Table::builder("People")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("name", ColumnType::Text))
        .column(Column::new("note", ColumnType::LongText).unicode())
        .primary("primary", &["id"])
}

async fn insert(
    instance: &Rc<Instance>,
    table: &OpenTable,
    (id, column, value): (i32, &str, &[u8]),
) -> Result<(), EngineError> {
    let transaction = instance.begin();
    let id = id.to_le_bytes();
    let values = [(table.column("id")?, Some(&id[..])), (table.column(column)?, Some(value))];
    table.insert(&transaction, &values).await?;
    transaction.commit(Commit::Lazy).await
}

/// Why: the flags were documented and accepted without a word. What was to be encrypted was
/// written in plain text.
#[test]
fn flags_that_are_not_kept_to_are_refused_by_column_and_flag() {
    with_database(|instance| async move {
        drop(instance.create_table(1, notes("Notes")).await.unwrap());
        for (flag, name) in [
            (column_flags::VERSION, "VERSION"),
            (column_flags::MULTI_VALUED, "MULTI_VALUED"),
            (column_flags::COMPRESSED, "COMPRESSED"),
            (column_flags::ENCRYPTED, "ENCRYPTED"),
            (column_flags::INHERITED, "INHERITED"),
            (column_flags::DEFAULT, "DEFAULT"),
            (0x40, "0x40"),
        ] {
            let odd = || Column::new("odd", ColumnType::LongBinary).flagged(flag);
            is_told(people().column(odd()).build(), &["column odd", "People", name]);
            let mut table = people().column(Column::new("odd", ColumnType::LongBinary)).build();
            table.as_mut().unwrap().columns.last_mut().unwrap().flags = flag;
            let created = instance.create_table(1, table.unwrap()).await;
            is_told(created, &["column odd", "People", name]);
            is_told(instance.add_column(1, "Notes", odd()).await, &["column odd", "Notes", name]);
        }
        let kept = Column::new("kept", ColumnType::Long)
            .with_default(&[0; 4])
            .flagged(column_flags::NOT_NULL | column_flags::ESCROW);
        drop(instance.create_table(1, people().column(kept).build().unwrap()).await.unwrap());
    });
}

/// Why: "text in a key must be ASCII" did not say of which column, index or row, and in a table
/// with rows it was not to be found.
#[test]
fn text_that_an_index_cannot_hold_is_told_by_column_index_and_row() {
    with_database(|instance| async move {
        let table = people().duplicates("by name", &["name"]).build().unwrap();
        let table = instance.create_table(1, table).await.unwrap();
        let inserted = insert(&instance, &table, (7, "name", b"J\xf6rg")).await;
        is_told(inserted, &["column name", "index by name", "ASCII", "Column::unicode"]);
        let inserted = insert(&instance, &table, (7, "name", b"J\0rg")).await;
        is_told(inserted, &["column name", "index by name", "zero byte"]);
        let prefix = table.index_prefix(1, &[Some(b"J\xf6rg")]);
        is_told(prefix, &["column name", "index by name", "ASCII"]);
        drop(table);
        instance.drop_index(1, "People", "by name").await.unwrap();
        let table = instance.open_table(1, "People").await.unwrap();
        insert(&instance, &table, (7, "name", b"J\xf6rg")).await.unwrap();
        let key = table.key(&[Some(&7i32.to_le_bytes())]).unwrap().escape_ascii().to_string();
        drop(table);
        let index = NewIndex::duplicates("by name", &["name"]);
        let added = instance.add_index(1, "People", index).await;
        is_told(added, &["column name", "index by name", "ASCII", &key]);
    });
}

/// Why: an index of equal keys refused long text, which its documentation did not say, and the
/// error named no remedy.
#[test]
fn a_key_that_is_too_long_says_how_an_index_takes_longer_ones() {
    with_database(|instance| async move {
        let table = people().duplicates("by note", &["note"]).build().unwrap();
        let table = instance.create_table(1, table).await.unwrap();
        let note: Vec<u8> = "word ".repeat(90).encode_utf16().flat_map(u16::to_le_bytes).collect();
        let inserted = insert(&instance, &table, (1, "note", &note)).await;
        is_told(inserted, &["index by note", "255 bytes", "key_bytes_max", "primary key"]);
    });
}

/// Why: making the table said that it was there, and opening it that it was not.
#[test]
fn names_are_found_whatever_their_case() {
    with_database(|instance| async move {
        let table = people().unique("by name", &["NAME"]).build().unwrap();
        drop(instance.create_table(1, table).await.unwrap());
        let table = instance.open_table(1, "pEOPLE").await.unwrap();
        assert_eq!(table.placed().table.name, "People");
        assert_eq!(table.column("NOTE").unwrap(), table.column("note").unwrap());
        assert_eq!(table.index("BY name").unwrap(), 1);
        drop(table);
        instance.add_index(1, "PEOPLE", NewIndex::duplicates("more", &["-Name"])).await.unwrap();
        instance.drop_index(1, "people", "MORE").await.unwrap();
        instance.drop_index(1, "people", "By Name").await.unwrap();
        instance.drop_column(1, "people", "NAME").await.unwrap();
        instance.drop_table(1, "peoplE").await.unwrap();
        assert!(instance.open_table(1, "People").await.is_err());
    });
}

/// Why: one error named four causes.
#[test]
fn a_name_that_cannot_be_had_says_why() {
    let long = "n".repeat(65);
    for (name, why) in [
        ("", "is empty"),
        (long.as_str(), "has 65 characters"),
        ("n\u{f6}te", "is not ASCII"),
        ("NOTE", "is used twice"),
    ] {
        let column = Column::new(name, ColumnType::Long);
        is_told(people().column(column).build(), &["People", name, why]);
    }
    is_told(people().unique("twice", &["name", "-NAME"]).build(), &["twice", "name", "two times"]);
}

/// Why: "no index named 42" sends its reader to look for a name.
#[test]
fn what_is_asked_for_by_number_is_missed_by_number() {
    with_database(|instance| async move {
        let table = instance.create_table(1, people().build().unwrap()).await.unwrap();
        is_told(table.index_prefix(42, &[]), &["no index number 42"]);
        is_told(table.index("42"), &["no index named 42"]);
        is_told(instance.create_table(9, notes("Notes")).await, &["no database number 9"]);
        let transaction = instance.begin();
        let key = table.key(&[Some(&[0; 4])]).unwrap();
        let read = table.get_columns(&transaction, &key, &[99]).await;
        is_told(read, &["no column number 99"]);
    });
}

/// Why: no pages to be written at once were laid to the size of the log buffer; and a log without a
/// name had files that were not found again.
#[test]
fn an_option_that_cannot_be_is_told_by_its_name() {
    use plimsoll_engine::instance::InstanceOptions;
    use plimsoll_engine::log::names::LogNames;
    use plimsoll_io::Random;
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    live(&disk, move |files, handle| async move {
        let good = || options(&setup());
        let log = |base: &str| LogNames::new(LOG, base);
        for (options, words) in [
            (InstanceOptions { writes_outstanding_max: 0, ..good() }, "writes_outstanding_max"),
            (InstanceOptions { log_buffer_bytes: 0, ..good() }, "log_buffer_bytes"),
            (InstanceOptions { log: log(""), ..good() }, "option log: "),
            (InstanceOptions { log: log("a/b"), ..good() }, "option log: "),
            (InstanceOptions { log: log("."), ..good() }, "option log: "),
        ] {
            let mut random = Random::from_seed(1);
            let opened = Instance::open(files.clone(), handle.clone(), options, &mut random).await;
            is_told(opened, &[words]);
        }
        let instance = open_with(&files, &handle, good()).await;
        let mut random = Random::from_seed(1);
        let second = Instance::open(files.clone(), handle.clone(), good(), &mut random).await;
        is_told(second, &["this process or another"]);
        instance.close().await.unwrap();
    });
}
