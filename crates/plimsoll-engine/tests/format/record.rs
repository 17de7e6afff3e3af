//! Records: what is packed can be read back, in both page formats, and damaged records never give a
//! value from elsewhere.
//!
//! Why it matters: every row passes through here, and recovered or hostile pages do as well.

use plimsoll_engine::{
    Column, ColumnId, ColumnType, NewValue, PageSize, Record, RecordError, RecordLayout,
    StoredValue, Table, column_flags, encode_record,
};
use proptest::prelude::*;

fn mail_table() -> Table {
    let subject =
        Column { default: Some(b"none".to_vec()), ..Column::new("subject", ColumnType::LongText) };
    let mut table = Table::builder("mail")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("stamp", ColumnType::Currency))
        .column(Column::new("class", ColumnType::Short))
        .column(Column::new("flag", ColumnType::Bit))
        .column(Column::new("owner", ColumnType::Text))
        .column(Column::new("digest", ColumnType::Binary))
        .column(subject)
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("pk", &["id"])
        .build()
        .expect("a valid table");
    // Made by others: here no column of several values is made.
    let to = Column::new("to", ColumnType::Long).flagged(column_flags::MULTI_VALUED);
    table.columns.push(Column { id: 258, ..to });
    table
}

fn encode(size: PageSize, values: &[(ColumnId, NewValue)]) -> Result<Vec<u8>, RecordError> {
    let table = mail_table();
    let mut record = Vec::new();
    encode_record(&table, &RecordLayout::of(&table), size, values, &mut record)?;
    Ok(record)
}

/// One known record, byte by byte, on a small and on a large page.
#[test]
fn a_record_has_the_bytes_of_the_format() {
    let values = [
        (1, NewValue::Bytes(&[1, 0, 0, 0])),
        (3, NewValue::Bytes(&[7, 0])),
        (129, NewValue::Bytes(b"dg")),
        (256, NewValue::Null),
        (257, NewValue::Separated { long_value: 5 }),
    ];
    let fixed_and_variable = [
        &[3, 129, 19, 0][..],      // last fixed, last variable, end of fixed
        &[1, 0, 0, 0],             // id
        &[0x2A; 8],                // stamp is null
        &[7, 0],                   // class
        &[0b1111_1010],            // null bits
        &[0x00, 0x80, 0x02, 0x00], // owner null, digest ends at 2
        b"dg",
    ]
    .concat();
    // Column 256 has a default, so its null is written down: value bits 0x20. Column 257: long and
    // separated, then its number.
    let small_tags = [&[0, 1, 8, 0x40, 1, 1, 9, 0x40][..], &[0x20], &[0x05, 5, 0, 0, 0]].concat();
    let large_tags = [&[0, 1, 8, 0, 1, 1, 9, 0][..], &[0x20], &[0x05, 5, 0, 0, 0]].concat();
    let expected = [fixed_and_variable.clone(), small_tags].concat();
    assert_eq!(encode(PageSize::KIB_4, &values).expect("fits"), expected);
    let expected = [fixed_and_variable, large_tags].concat();
    assert_eq!(encode(PageSize::KIB_32, &values).expect("fits"), expected);
}

/// Columns that were left out are told apart from null ones, because only they take the default.
#[test]
fn absent_is_not_null() {
    let table = mail_table();
    let layout = RecordLayout::of(&table);
    for size in PageSize::ALL {
        let values = [(1, NewValue::Bytes(&[1, 0, 0, 0])), (256, NewValue::Null)];
        let bytes = encode(size, &values).expect("fits");
        let record = Record::parse(&bytes, &layout, size).expect("sound");
        assert_eq!(record.value(256), Ok(StoredValue::Null), "{size}");
        assert_eq!(record.value(257), Ok(StoredValue::Absent), "{size}");
        assert_eq!(record.value(2), Ok(StoredValue::Absent), "{size}");
        assert_eq!(record.value(128), Ok(StoredValue::Absent), "{size}");
        assert_eq!(record.value(1), Ok(StoredValue::Bytes(&[1, 0, 0, 0])), "{size}");
    }
}

/// A record of a page full of columns: two values in the short form that Windows uses are read as
/// two.
#[test]
fn two_values_in_the_short_form_are_read() {
    let table = mail_table();
    let layout = RecordLayout::of(&table);
    // Nothing but column 258: bits 0x10 (two values), length of the first, both values.
    let record =
        [&[0, 127, 4, 0][..], &[2, 1, 4, 0x40], &[0x10, 4, 1, 0, 0, 0, 2, 0, 0, 0]].concat();
    let record = Record::parse(&record, &layout, PageSize::KIB_4).expect("sound");
    let Ok(StoredValue::Multi(values)) = record.value(258) else {
        panic!("{:?}", record.value(258));
    };
    assert_eq!(values.count(), Ok(2));
    assert_eq!(values.value(0), Ok(StoredValue::Bytes(&[1, 0, 0, 0])));
    assert_eq!(values.value(1), Ok(StoredValue::Bytes(&[2, 0, 0, 0])));
    assert!(values.value(2).is_err());
}

/// Values that do not fit their column, are out of order or belong to no column are refused.
#[test]
fn wrong_values_are_refused() {
    let check = |values: &[(ColumnId, NewValue)], expected: RecordError| {
        assert_eq!(encode(PageSize::KIB_8, values), Err(expected));
    };
    let long = vec![0; 9000];
    check(
        &[(1, NewValue::Bytes(&[1]))],
        RecordError::Length { column: 1, found_bytes: 1, allowed_bytes: 4 },
    );
    check(
        &[(128, NewValue::Bytes(&long))],
        RecordError::Length { column: 128, found_bytes: 9000, allowed_bytes: 255 },
    );
    check(&[(5, NewValue::Bytes(&[1]))], RecordError::NoColumn { column: 5 });
    check(&[(300, NewValue::Bytes(&[1]))], RecordError::NoColumn { column: 300 });
    check(&[(128, NewValue::Multi(&[b"a"]))], RecordError::NotTagged { column: 128 });
    check(&[(258, NewValue::Multi(&[]))], RecordError::NoValues { column: 258 });
    check(&[(2, NewValue::Null), (1, NewValue::Null)], RecordError::Order { column: 1 });
    let error = encode(PageSize::KIB_8, &[(257, NewValue::Bytes(&long))]);
    assert!(matches!(error, Err(RecordError::TooLong { .. })), "{error:?}");
}

#[derive(Clone, Debug)]
struct Row {
    id: Option<[u8; 4]>,
    stamp: Option<[u8; 8]>,
    flag: Option<[u8; 1]>,
    owner: Option<Vec<u8>>,
    digest: Option<Vec<u8>>,
    subject: Option<Vec<u8>>,
    body: Option<Result<Vec<u8>, u32>>,
    to: Vec<[u8; 4]>,
}

fn any_row() -> impl Strategy<Value = Row> {
    let bytes = |max| proptest::option::of(proptest::collection::vec(any::<u8>(), 0..max));
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..1000).prop_map(Ok),
        any::<u32>().prop_map(Err)
    ];
    (
        any::<(Option<[u8; 4]>, Option<[u8; 8]>, Option<[u8; 1]>)>(),
        (bytes(255), bytes(255), bytes(400)),
        proptest::option::of(body),
        proptest::collection::vec(any::<[u8; 4]>(), 0..5),
    )
        .prop_map(|((id, stamp, flag), (owner, digest, subject), body, to)| Row {
            id,
            stamp,
            flag,
            owner,
            digest,
            subject,
            body,
            to,
        })
}

fn check_round_trip(row: &Row, size: PageSize) {
    let plain = |value: Option<&[u8]>| match value {
        None => "null".to_owned(),
        Some(bytes) => format!("{bytes:?}"),
    };
    let to: Vec<&[u8]> = row.to.iter().map(|value| &value[..]).collect();
    fn new_value<'a, T: AsRef<[u8]>>(value: &'a Option<T>) -> NewValue<'a> {
        value.as_ref().map_or(NewValue::Null, |bytes| NewValue::Bytes(bytes.as_ref()))
    }
    let body = match &row.body {
        None => NewValue::Null,
        Some(Ok(bytes)) => NewValue::Bytes(bytes),
        Some(Err(long_value)) => NewValue::Separated { long_value: *long_value },
    };
    let values = [
        (1, new_value(&row.id)),
        (2, new_value(&row.stamp)),
        (4, new_value(&row.flag)),
        (128, new_value(&row.owner)),
        (129, new_value(&row.digest)),
        (256, new_value(&row.subject)),
        (257, body),
        (258, if to.is_empty() { NewValue::Null } else { NewValue::Multi(&to) }),
    ];
    let bytes = encode(size, &values).expect("rows of this size fit");
    let layout = RecordLayout::of(&mail_table());
    let record = Record::parse(&bytes, &layout, size).expect("what we encode is sound");
    let read = |column: ColumnId| match record.value(column).expect("sound") {
        StoredValue::Null | StoredValue::Absent => "null".to_owned(),
        StoredValue::Bytes(bytes) => format!("{bytes:?}"),
        StoredValue::Separated { long_value, .. } => format!("long value {long_value}"),
        StoredValue::Multi(values) => {
            let values = (0..values.count().expect("sound"))
                .map(|number| values.value(number).expect("sound"));
            format!("{:?}", values.collect::<Vec<_>>())
        }
        other => panic!("nobody stored {other:?}"),
    };
    assert_eq!(read(1), plain(row.id.as_ref().map(|value| &value[..])));
    assert_eq!(read(2), plain(row.stamp.as_ref().map(|value| &value[..])));
    assert_eq!(read(3), "null");
    assert_eq!(read(4), plain(row.flag.as_ref().map(|value| &value[..])));
    assert_eq!(read(128), plain(row.owner.as_deref()));
    assert_eq!(read(129), plain(row.digest.as_deref()));
    assert_eq!(read(256), plain(row.subject.as_deref()));
    let expected = match &row.body {
        Some(Err(long_value)) => format!("long value {long_value}"),
        other => plain(other.as_ref().map(|value| &value.as_ref().unwrap()[..])),
    };
    assert_eq!(read(257), expected);
    let values: Vec<_> = to.iter().map(|value| StoredValue::Bytes(value)).collect();
    assert_eq!(read(258), if to.is_empty() { "null".to_owned() } else { format!("{values:?}") });
}

proptest! {
    /// Every row comes back as it was.
    #[test]
    fn rows_survive(row in any_row()) {
        for size in PageSize::ALL {
            check_round_trip(&row, size);
        }
    }

    /// No bytes make the decoder panic or reach outside the record.
    #[test]
    fn damaged_records_give_errors_not_panics(row in any_row(),
        flips in proptest::collection::vec(any::<(usize, u8)>(), 0..6), cut: usize) {
        let table = mail_table();
        let layout = RecordLayout::of(&table);
        for size in [PageSize::KIB_8, PageSize::KIB_32] {
            let owner = row.owner.clone().unwrap_or_default();
            let to: Vec<&[u8]> = row.to.iter().map(|value| &value[..]).collect();
            let mut values = vec![(1, NewValue::Bytes(&[1, 2, 3, 4])), (128,
                NewValue::Bytes(&owner))];
            if !to.is_empty() {
                values.push((258, NewValue::Multi(&to)));
            }
            let mut bytes = encode(size, &values).expect("fits");
            for (at, value) in &flips {
                let at = at % bytes.len();
                bytes[at] = *value;
            }
            bytes.truncate(cut % (bytes.len() + 1));
            let Ok(record) = Record::parse(&bytes, &layout, size) else { continue };
            for column in [0, 1, 2, 5, 127, 128, 129, 200, 255, 256, 257, 258, 300, u16::MAX] {
                if let Ok(StoredValue::Multi(values)) = record.value(column) {
                    for number in 0..values.count().unwrap_or(1) {
                        let _ = values.value(number);
                    }
                }
            }
            let _ = record.tagged_columns().count();
        }
    }
}
