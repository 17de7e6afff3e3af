//! The reader on databases made by Windows: page classes and row counts are those on which two
//! other readers agree.
//!
//! Why it matters: real files hold what our own never do: deleted nodes, leftover version flags,
//! old and later format versions. The databases are not part of the repository; without the shared
//! folder these tests say so and check nothing, and they fail where `PLIMSOLL_SHARED` names a
//! folder that holds none.

use crate::golden::{DATABASE, on_memory_disk, real};
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::{PageClass, classify};
use serde_json::Value;

/// Every page of every file has the class in the manifest.
#[test]
fn page_classes_are_those_of_the_manifest() {
    for (name, entry, bytes) in real() {
        let page_bytes = entry["page_size"].as_u64().expect("a number") as usize;
        let (mut ok, mut uninitialized) = (0, 0);
        for (index, page) in bytes.chunks_exact(page_bytes).enumerate().skip(2) {
            match classify(page, index as u32 - 1) {
                PageClass::Ok => ok += 1,
                PageClass::Uninitialized => uninitialized += 1,
                class => panic!("{name}: page {} is {class:?}", index - 1),
            }
        }
        assert_eq!(entry["pages"]["ok"], ok, "{name}");
        assert_eq!(entry["pages"]["uninitialized"], uninitialized, "{name}");
    }
}

async fn check_counts(name: &str, entry: &Value, reader: &DatabaseReader) {
    let expected = entry["dissect_record_counts"].as_object().expect("counts");
    assert_eq!(reader.tables().len(), expected.len(), "{name}");
    for placed in reader.tables() {
        let table = &placed.table;
        let mut rows = reader.rows(placed);
        let mut seen = 0u64;
        while let Some(row) =
            rows.next().await.unwrap_or_else(|error| panic!("{name}: {}: {error}", table.name))
        {
            seen += 1;
            for column in &table.columns {
                let value = row.bytes(column).await;
                let value = value.unwrap_or_else(|error| {
                    panic!("{name}: {}.{}: {error}", table.name, column.name)
                });
                let is_fixed_length = value.is_none_or(|bytes| {
                    column.column_type.fixed_bytes().is_none_or(|length| length == bytes.len())
                });
                assert!(is_fixed_length, "{name}: {}.{}", table.name, column.name);
            }
        }
        assert_eq!(expected[&table.name], seen, "{name}: {}", table.name);
    }
}

/// Every table has the rows the manifest says, and every value of every row can be read, long and
/// compressed ones included.
#[test]
fn every_value_is_read_and_counts_agree() {
    for (name, entry, bytes) in real() {
        on_memory_disk(&bytes, |files, handle| async move {
            let reader =
                DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Read).await.unwrap();
            check_counts(&name, &entry, &reader).await;
            assert_eq!(reader.corrected(), 0, "{name}");
        });
    }
}
