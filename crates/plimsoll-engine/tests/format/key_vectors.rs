//! Normalised keys against golden ones, half of them read from the indexes of a Windows-made
//! database, and their order against the order of the values.
//!
//! Why it matters: an index whose keys sort differently from everybody else's finds nothing when
//! another program opens it.

use plimsoll_engine::{Column, ColumnType, Key, KeyError, KeyShape, Table};
use proptest::prelude::*;
use serde_json::Value;

/// The key of one value in an index on one column.
fn key_of(column: Column, key_column: &str, value: Option<&[u8]>) -> Result<Key, KeyError> {
    let table = Table::builder("t")
        .column(column)
        .primary("pk", &[key_column])
        .build()
        .expect("a table of one column");
    KeyShape::of(&table, &table.indexes[0])?.key(|_| value)
}

fn key_bytes(column_type: ColumnType, value: &[u8]) -> Vec<u8> {
    key_of(Column::new("c", column_type), "c", Some(value)).expect("a key").bytes
}

/// The stored bytes of a vector's value.
fn stored(column_type: ColumnType, value: &Value) -> Vec<u8> {
    let integer = || value.as_i64().unwrap_or_default();
    match column_type {
        ColumnType::Bit => vec![if value.as_bool().expect("bool") { 0xFF } else { 0 }],
        ColumnType::Single => (value.as_f64().expect("number") as f32).to_le_bytes().to_vec(),
        ColumnType::Double => value.as_f64().expect("number").to_le_bytes().to_vec(),
        ColumnType::Guid => guid_bytes(value.as_str().expect("text")),
        ColumnType::Text | ColumnType::LongText => {
            value.as_str().expect("text").as_bytes().to_vec()
        }
        ColumnType::Binary | ColumnType::LongBinary => binary_bytes(value.as_str().expect("text")),
        fixed => integer().to_le_bytes()[..fixed.fixed_bytes().expect("fixed")].to_vec(),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hexadecimal"))
        .collect()
}

fn binary_bytes(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches("hex:");
    // Long values are given as their beginning, which is more than a key can hold.
    unhex(digits.split(' ').next().expect("digits"))
}

fn guid_bytes(text: &str) -> Vec<u8> {
    let mut bytes = unhex(&text.replace('-', ""));
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

fn column_type(name: &str) -> ColumnType {
    let first = name.split([' ', ',']).next().expect("a word");
    match first {
        "Bit" => ColumnType::Bit,
        "UnsignedByte" => ColumnType::UnsignedByte,
        "Short" => ColumnType::Short,
        "Long" => ColumnType::Long,
        "Currency" => ColumnType::Currency,
        "IEEESingle" => ColumnType::Single,
        "IEEEDouble" => ColumnType::Double,
        "DateTime" => ColumnType::DateTime,
        "UnsignedLong" => ColumnType::UnsignedLong,
        "LongLong" => ColumnType::LongLong,
        "GUID" => ColumnType::Guid,
        "UnsignedShort" => ColumnType::UnsignedShort,
        "Binary" => ColumnType::Binary,
        "LongBinary" => ColumnType::LongBinary,
        "Text" => ColumnType::Text,
        "LongText" => ColumnType::LongText,
        other => panic!("unknown type {other}"),
    }
}

/// Every golden key is reproduced byte for byte.
#[test]
fn keys_are_the_golden_ones() {
    let vectors = crate::golden::golden_json("key_vectors.json");
    let vectors = vectors["vectors"].as_array().expect("vectors");
    assert_eq!(vectors.len(), 36);
    for vector in vectors {
        let name = vector["type"].as_str().expect("type");
        let expected = unhex(vector["key"].as_str().expect("key"));
        let key = match name {
            "any" => key_of(Column::new("c", ColumnType::Long), "c", None),
            _ => {
                let column_type = column_type(name);
                let value = stored(column_type, &vector["value"]);
                let key_column = if name.ends_with("descending") { "-c" } else { "+c" };
                key_of(Column::new("c", column_type), key_column, Some(&value))
            }
        };
        let key = key.expect("a key");
        assert_eq!(key.bytes, expected, "{vector}");
        assert_eq!(key.is_truncated, name.contains("truncated"), "{vector}");
    }
}

/// A key that was cut says so: two rows with equal cut keys may still differ.
#[test]
fn a_cut_key_says_so() {
    let fits = vec![7; 8 * 28];
    let cut = vec![7; 8 * 28 + 1];
    let column = || Column::new("c", ColumnType::LongBinary);
    assert!(!key_of(column(), "c", Some(&fits)).expect("a key").is_truncated);
    let key = key_of(column(), "c", Some(&cut)).expect("a key");
    assert!(key.is_truncated);
    assert_eq!(key.bytes.len(), 255);
    let long = vec![7; 300];
    let key = key_of(column(), "c", Some(&long)).expect("a key");
    let million = vec![7; 1 << 20];
    assert_eq!(key_of(column(), "c", Some(&million)).expect("a key"), key);
}

/// What has no order here is refused, with the reason.
#[test]
fn unsortable_values_are_refused() {
    let text = |value: &'static [u8]| key_of(Column::new("c", ColumnType::Text), "c", Some(value));
    assert_eq!(text("é".as_bytes()), Err(KeyError::NotAscii));
    let short = key_of(Column::new("c", ColumnType::Long), "c", Some(&[1, 2]));
    assert!(matches!(short, Err(KeyError::Length { expected_bytes: 4, found_bytes: 2, .. })));
}

/// Several columns make one key, a bound on the first columns is a prefix of it, and descending
/// columns sort backwards.
#[test]
fn columns_join_and_bounds_are_prefixes() {
    let table = Table::builder("t")
        .column(Column::new("folder", ColumnType::Long))
        .column(Column::new("stamp", ColumnType::Currency))
        .column(Column::new("id", ColumnType::Long))
        .primary("pk", &["id"])
        .duplicates("newest", &["folder", "-stamp"])
        .build()
        .expect("a valid table");
    let index = &table.indexes[1];
    assert_eq!(index.columns.len(), 3, "the primary key is appended to a key that may repeat");
    let shape = KeyShape::of(&table, index).expect("sortable");
    let key = |folder: i32, stamp: i64, id: i32| {
        let (folder, stamp, id) = (folder.to_le_bytes(), stamp.to_le_bytes(), id.to_le_bytes());
        let key = shape.key(|column| match column {
            1 => Some(&folder[..]),
            2 => Some(&stamp[..]),
            _ => Some(&id[..]),
        });
        key.expect("a key").bytes
    };
    assert!(key(1, 50, 7) < key(1, 40, 7), "newer first");
    assert!(key(1, 40, 7) < key(1, 40, 8));
    assert!(key(1, -5, 9) < key(2, 50, 0));
    let bound = shape.prefix(&[Some(&1i32.to_le_bytes())]).expect("a bound");
    assert!(key(1, 50, 7).starts_with(&bound.bytes));
    assert!(!key(2, 50, 7).starts_with(&bound.bytes));
}

proptest! {
    /// Keys of integers sort like the integers.
    #[test]
    fn integer_keys_keep_order(left: i64, right: i64) {
        let keys = [left, right].map(|value| key_bytes(ColumnType::LongLong, &value.to_le_bytes()));
        prop_assert_eq!(left.cmp(&right), keys[0].cmp(&keys[1]));
        let keys = [left as i16, right as i16].map(|value| key_bytes(ColumnType::Short,
            &value.to_le_bytes()));
        prop_assert_eq!((left as i16).cmp(&(right as i16)), keys[0].cmp(&keys[1]));
        let keys = [left as u32, right as u32].map(|value| key_bytes(ColumnType::UnsignedLong,
            &value.to_le_bytes()));
        prop_assert_eq!((left as u32).cmp(&(right as u32)), keys[0].cmp(&keys[1]));
    }

    /// Keys of floating-point numbers sort like the numbers.
    #[test]
    fn floating_point_keys_keep_order(left: f64, right: f64) {
        let keys = [left, right].map(|value| key_bytes(ColumnType::Double, &value.to_le_bytes()));
        prop_assert_eq!(left.total_cmp(&right), keys[0].cmp(&keys[1]));
    }

    /// Keys of byte strings sort like the byte strings, also when one is the beginning of the
    /// other, and two keys are equal only for equal strings.
    #[test]
    fn binary_keys_keep_order(left in proptest::collection::vec(0u8..3, 0..40),
        right in proptest::collection::vec(0u8..3, 0..40)) {
        let keys = [&left, &right].map(|value| key_bytes(ColumnType::Binary, value));
        prop_assert_eq!(left.cmp(&right), keys[0].cmp(&keys[1]));
    }

    /// No value panics; what has a key keeps to the limit.
    #[test]
    fn any_value_has_a_key_or_an_error(value in proptest::collection::vec(any::<u8>(), 0..600),
        number in 1u8..19) {
        let column_type = ColumnType::from_number(number);
        prop_assume!(!matches!(column_type, ColumnType::Other(_)));
        if let Ok(key) = key_of(Column::new("c", column_type), "-c", Some(&value)) {
            prop_assert!(key.bytes.len() <= 255);
        }
    }
}
