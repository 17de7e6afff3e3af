//! What a new user of the crate ran into: what is refused says what it is, where it is, and what to
//! do about it; what is accepted is kept.

use std::rc::Rc;

use plimsoll_engine::instance::Instance;
use plimsoll_engine::{Column, ColumnType, Table, TableBuilder, column_flags};
use plimsoll_io::MemoryOptions;

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// Tells a story on an empty database, and looks at the file.
fn with_database<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>) -> F + 'static,
) {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        story(instance.clone()).await;
        instance.close().await.unwrap();
        check_file(&files, &handle, "told").await;
    });
}

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
