//! The reader on databases written by an independent prototype: every row, every body, every
//! catalog row.
//!
//! Why it matters: five other programs read these files, so agreeing with them here is agreeing
//! with the format.

use crate::golden::{DATABASE, on_memory_disk, synthetic};
use plimsoll_engine::catalog::{
    PlacedTable, catalog_rows, locale_rows, object_rows, system_tables,
};
use plimsoll_engine::reader::{DatabaseReader, Rows, WhenDirty};
use plimsoll_engine::{Column, ColumnType, KeyShape, Table, column_flags};
use serde_json::Value;

/// SHA-1, because the golden rows carry their digests in it.
fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - bytes.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len();
    padded[end - 8..].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    let mut state: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    for block in padded.chunks(64) {
        let mut words = [0u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..80 {
            words[at] =
                (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (round, word) in words.iter().enumerate() {
            let (mixed, constant) = match round / 20 {
                0 => ((b & c) | (!b & d), 0x5A82_7999),
                1 => (b ^ c ^ d, 0x6ED9_EBA1),
                2 => ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6),
            };
            let next = a
                .rotate_left(5)
                .wrapping_add(mixed)
                .wrapping_add(e)
                .wrapping_add(constant)
                .wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    for (place, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_be_bytes();
    }
    digest
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn column<'t>(table: &'t Table, name: &str) -> &'t Column {
    table.column_named(name).unwrap_or_else(|| panic!("a column {name}"))
}

async fn count(mut rows: Rows) -> u64 {
    let mut rows_seen = 0;
    while rows.next().await.expect("every row is sound").is_some() {
        rows_seen += 1;
    }
    rows_seen
}

/// Reads every row of the mail table, checks its digest and returns (id, owner, body length,
/// digest).
async fn read_mail(reader: &DatabaseReader) -> Vec<(i64, String, usize, String)> {
    let placed = reader.table("PlimsollMail").expect("the table is there").clone();
    let table = &placed.table;
    let mut rows = reader.rows(&placed);
    let mut seen = Vec::new();
    while let Some(row) = rows.next().await.expect("every row is sound") {
        let id = row.bytes(column(table, "id")).await.unwrap().expect("every row has an id");
        let id = i64::from(i32::from_le_bytes((*id).try_into().expect("four bytes")));
        let owner = row.bytes(column(table, "owner")).await.unwrap().expect("an owner");
        let digest =
            row.bytes(column(table, "digest")).await.unwrap().expect("a digest").into_owned();
        let body = row.bytes(column(table, "body")).await.unwrap().unwrap_or_default();
        assert_eq!(sha1(&body)[..], digest, "the body of row {id}");
        let subject = row.bytes(column(table, "subject")).await.unwrap().expect("a subject");
        let expected: Vec<u8> = format!("Message {id} \u{e9}\u{4e2d}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(*subject, expected, "the subject of row {id}");
        let class = row.bytes(column(table, "class")).await.unwrap();
        assert_eq!(class.is_none(), id % 4 == 0, "every fourth class is null: row {id}");
        seen.push((id, String::from_utf8_lossy(&owner).into_owned(), body.len(), hex(&digest)));
    }
    seen
}

fn check_rows(name: &str, entry: &Value, seen: &[(i64, String, usize, String)]) {
    assert_eq!(seen.len() as u64, entry["rows"], "{name}");
    assert!(
        seen.is_sorted_by(|left, right| left.0 < right.0),
        "{name}: rows come in the order of their key"
    );
    for (row, expected) in seen.iter().zip(entry["first_rows"].as_array().expect("first rows")) {
        let row = serde_json::json!([row.0, row.1, row.2, row.3]);
        assert_eq!(row, *expected, "{name}");
    }
}

/// All rows of all seven databases, with their digests, at every page size, with trees of several
/// levels and long values of several chunks.
#[test]
fn every_row_and_digest_agrees() {
    let databases = synthetic();
    assert_eq!(databases.len(), 7);
    for (name, entry, bytes) in databases {
        on_memory_disk(&bytes, |files, handle| async move {
            let reader =
                DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse).await.unwrap();
            check_rows(&name, &entry, &read_mail(&reader).await);
            assert_eq!(reader.corrected(), 0, "{name}");
            for (table, expected) in entry["record_counts"].as_object().expect("counts") {
                let placed =
                    reader.table(table).unwrap_or_else(|| panic!("{name}: table {table}")).clone();
                assert_eq!(count(reader.rows(&placed)).await, *expected, "{name}: {table}");
            }
            assert_eq!(reader.tables().len(), 5, "{name}");
        });
    }
}

fn mail_table() -> Table {
    Table::builder("PlimsollMail")
        .column(
            Column::new("id", ColumnType::Long)
                .flagged(column_flags::NOT_NULL | column_flags::AUTO_INCREMENT),
        )
        .column(Column::new("stamp", ColumnType::Currency))
        .column(Column::new("size", ColumnType::Long))
        .column(Column::new("class", ColumnType::Short))
        .column(Column::new("flag", ColumnType::Bit))
        .column(Column::new("owner", ColumnType::Text))
        .column(Column::new("digest", ColumnType::Binary))
        .column(Column::new("subject", ColumnType::LongText).unicode())
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("pk", &["id"])
        .unique("owner_ix", &["owner"])
        .build()
        .expect("a valid table")
}

async fn nodes(
    reader: &DatabaseReader,
    placed: &PlacedTable,
    index: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scan = reader.scan(placed.indexes[index].place);
    let mut nodes = Vec::new();
    while let Some(leaf) = scan.next_leaf().await.expect("sound") {
        for line in 0..leaf.view().lines() {
            let node = leaf.view().node(line).expect("sound");
            nodes.push((node.key(), node.data.to_vec()));
        }
    }
    nodes
}

/// The catalog we would write for the same tables is, byte for byte, the one in the file: rows,
/// both its indexes, the shadow, the list of objects and the list of sort orders. And what we read
/// from it is the schema it was made from.
#[test]
fn the_catalog_we_would_write_is_the_one_in_the_file() {
    for (name, entry, bytes) in synthetic() {
        on_memory_disk(&bytes, |files, handle| async move {
            let reader =
                DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse).await.unwrap();
            let layout = |field: &str| entry["layout"][field].as_u64().expect("a number") as u32;
            let mail = PlacedTable::new(
                mail_table(),
                plimsoll_engine::catalog::Place { object: 8, root: layout("tfdp") },
                &[layout("ifdp")],
                (layout("nlv") > 0).then(|| layout("lfdp")),
                layout("end") - layout("tfdp") + 1,
            );
            let mut expected = system_tables().to_vec();
            expected.push(mail);
            assert!(reader.tables() == expected, "{name}: the schema");
            let size = reader.page_size();
            let rows: Vec<_> =
                expected.iter().flat_map(|placed| catalog_rows(placed, size)).collect();
            let records: Vec<_> =
                rows.iter().map(|row| (row.key.clone(), row.record.clone())).collect();
            assert_eq!(nodes(&reader, &expected[0], 0).await, records, "{name}: MSysObjects");
            assert_eq!(nodes(&reader, &expected[1], 0).await, records, "{name}: the shadow");
            let mut names: Vec<_> =
                rows.iter().map(|row| (row.name_key.clone(), row.key.clone())).collect();
            names.sort();
            assert!(nodes(&reader, &expected[0], 1).await == names, "{name}: index Name");
            let roots =
                rows.iter().filter_map(|row| Some((row.root_key.clone()?, row.key.clone())));
            let mut roots: Vec<_> = roots.collect();
            roots.sort();
            assert_eq!(nodes(&reader, &expected[0], 2).await, roots, "{name}: index RootObjects");
            assert_eq!(
                nodes(&reader, &expected[2], 0).await,
                object_rows(&expected, size),
                "{name}: MSysObjids"
            );
            assert_eq!(
                nodes(&reader, &expected[3], 0).await,
                locale_rows(size),
                "{name}: MSysLocales"
            );
        });
    }
}

/// A scan can begin at any key, also one that is not there, and then gives every later row.
#[test]
fn a_scan_begins_where_it_is_told() {
    for name in ["syn4k_deep.edb", "syn32k.edb"] {
        let bytes = crate::golden::golden(name);
        on_memory_disk(&bytes, |files, handle| async move {
            let reader =
                DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse).await.unwrap();
            let placed = reader.table("PlimsollMail").expect("the table").clone();
            let shape = KeyShape::of(&placed.table, &placed.table.indexes[0]).expect("sortable");
            let all = nodes(&reader, &placed, 0).await;
            for id in [i32::MIN, 1, 2, 77, 299, 300, 5999, i32::MAX] {
                let key = shape
                    .key(|_| Some(&id.to_le_bytes()[..]).map(|bytes| &*bytes.to_vec().leak()))
                    .expect("a key")
                    .bytes;
                let mut scan = reader.scan_from(placed.place, &key);
                let mut seen = 0;
                while let Some(leaf) = scan.next_leaf().await.expect("sound") {
                    let view = leaf.view();
                    seen += (0..view.lines())
                        .filter(|line| view.node(*line).expect("sound").key() >= key)
                        .count();
                }
                let expected = all.iter().filter(|(found, _)| *found >= key).count();
                assert_eq!(seen, expected, "{name} from {id}");
            }
        });
    }
}

/// Rows come out as plain data for `edb export`: numbers as numbers, text as text, bytes in
/// hexadecimal.
#[test]
fn rows_are_exported_as_plain_data() {
    let bytes = crate::golden::golden("syn16k.edb");
    on_memory_disk(&bytes, |files, handle| async move {
        let reader =
            DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse).await.unwrap();
        let placed = reader.table("PlimsollMail").expect("the table").clone();
        let mut rows = reader.rows(&placed);
        let row = rows.next().await.unwrap().expect("a first row");
        let values = row.values(&placed.table).await.unwrap();
        let json: serde_json::Map<_, _> = values
            .into_iter()
            .map(|(name, value)| {
                (name.to_owned(), serde_json::to_value(value).expect("plain data"))
            })
            .collect();
        let expected = serde_json::json!({
            "id": 1, "stamp": -1000, "size": 121, "class": 1, "flag": false, "owner": "user00119",
            "digest": "7b5ce8887821e8e8f2541f77b57a635abdc63d13",
                "subject": "Message 1 \u{e9}\u{4e2d}",
            "body": json["body"],
        });
        assert_eq!(serde_json::Value::Object(json.clone()), expected);
        let body = json["body"].as_str().expect("hexadecimal");
        assert!(body.starts_with(&hex(b"msg000001-msg000001-")) && body.len() == 2 * 121, "{body}");
    });
}

/// Text of code page 1252 becomes the characters it stands for, and bytes that do not fit their
/// column are shown, not misread.
#[test]
fn stored_text_becomes_characters() {
    use plimsoll_engine::reader::Value;
    let text = Column::new("t", ColumnType::Text);
    assert_eq!(Value::of(&text, b"Gr\xFC\xDFe \x80 5"), Value::Text("Grüße € 5".to_owned()));
    assert_eq!(Value::of(&text.clone().unicode(), &[0x2D, 0x4E]), Value::Text("中".to_owned()));
    assert_eq!(Value::of(&text.unicode(), &[1, 2, 3]), Value::Text("010203".to_owned()));
    assert_eq!(Value::of(&Column::new("n", ColumnType::Short), &[0xFE, 0xFF]), Value::Signed(-2));
    assert_eq!(Value::of(&Column::new("n", ColumnType::Long), &[1]), Value::Text("01".to_owned()));
}
