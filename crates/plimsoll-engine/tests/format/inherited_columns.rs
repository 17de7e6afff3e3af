//! A table that inherits columns from a template: its own values lie behind the inherited ones in
//! every record, and those are not read. What would be taken for a value is then another column's,
//! and nothing would show it.

use std::ops::ControlFlow;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::catalog::{catalog_rows, system};
use plimsoll_engine::reader::{DatabaseReader, ReadError, TextFormat, WhenDirty, write_table};
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, Table};
use plimsoll_io::{Clock, Files, Handle, MemoryOptions};

const TABLE: &str = "Derived";

fn derived() -> Table {
    Table::builder(TABLE)
        .column(Column::new("id", ColumnType::Long))
        .primary("primary", &["id"])
        .build()
        .expect("a valid table")
}

async fn reader(files: &Files, handle: &Handle) -> DatabaseReader {
    let opened = DatabaseReader::open(files, handle, database_path(1), WhenDirty::Refuse);
    opened.await.unwrap()
}

/// What the export of the table says.
async fn exported(files: &Files, handle: &Handle) -> Result<u64, ReadError> {
    let reader = reader(files, handle).await;
    let placed = reader.table(TABLE).expect("it is listed all the same");
    let mut sink = |_| ControlFlow::Continue(());
    let written = write_table(&reader, placed, TextFormat::Csv, &mut sink).await;
    reader.clone().close().await.unwrap();
    Ok(written?.expect("everything is wanted").rows)
}

#[test]
fn a_table_that_inherits_columns_is_refused_and_not_misread() {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let table = instance.create_table(1, derived()).await.unwrap();
        let transaction = instance.begin();
        let values = [(table.column("id").unwrap(), Some(&7_i32.to_le_bytes()[..]))];
        table.insert(&transaction, &values).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        instance.close().await.unwrap();
        assert_eq!(exported(&files, &handle).await.unwrap(), 1);

        let before = reader(&files, &handle).await;
        let mut placed = before.table(TABLE).unwrap().clone();
        before.close().await.unwrap();
        placed.template = Some("Base".to_owned());
        let row = catalog_rows(&placed, setup.size).swap_remove(0);
        let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
        let transaction = instance.begin();
        let catalog = tree_of(1, system::CATALOG_ROOT, system::CATALOG_OBJECT);
        transaction.replace(catalog, &row.key, &row.record).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        instance.close().await.unwrap();

        match exported(&files, &handle).await {
            Err(ReadError::Inherits { table, template, .. }) => {
                assert_eq!((table.as_str(), template.as_str()), (TABLE, "Base"));
            }
            other => panic!("a table that inherits columns is exported: {other:?}"),
        }
    })
    .unwrap();
}
