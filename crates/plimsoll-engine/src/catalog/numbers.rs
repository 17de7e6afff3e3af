//! What the catalog row of a column says about the numbers that were taken for it, see
//! `table/numbers.rs`.

use super::{column, row_type, system_tables};
use crate::{
    ColumnId, KeyShape, NewValue, PageSize, Record, RecordLayout, StoredValue, encode_record,
};

/// The key of the catalog row of a column.
pub(crate) fn column_key(table_object: u32, id: ColumnId) -> Vec<u8> {
    let [catalog, ..] = system_tables();
    let shape = KeyShape::of(&catalog.table, &catalog.table.indexes[0])
        .expect("the catalog's keys are sortable");
    let (object, kind, id) =
        (table_object.to_le_bytes(), row_type::COLUMN.to_le_bytes(), u32::from(id).to_le_bytes());
    let values = [Some(&object[..]), Some(&kind[..]), Some(&id[..])];
    shape.prefix(&values).expect("three numbers").bytes
}

/// The last number that was taken for a column with this catalog row.
pub(crate) fn numbers_taken(row: &[u8], page_size: PageSize) -> Option<u64> {
    let [catalog, ..] = system_tables();
    let layout = RecordLayout::of(&catalog.table);
    let record = Record::parse(row, &layout, page_size).ok()?;
    match record.value(column::STATISTICS) {
        Ok(StoredValue::Bytes(bytes)) => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// The catalog row of a column, saying that numbers were taken up to `last`.
pub(crate) fn with_numbers_taken(row: &[u8], page_size: PageSize, last: u64) -> Vec<u8> {
    let [catalog, ..] = system_tables();
    let layout = RecordLayout::of(&catalog.table);
    let last = last.to_le_bytes();
    let Ok(record) = Record::parse(row, &layout, page_size) else {
        return row.to_vec();
    };
    let columns = catalog.table.columns.iter().map(|column| column.id);
    let values: Vec<(ColumnId, NewValue<'_>)> = columns
        .filter_map(|id| match record.value(id) {
            _ if id == column::STATISTICS => Some((id, NewValue::Bytes(&last))),
            Ok(StoredValue::Bytes(bytes)) => Some((id, NewValue::Bytes(bytes))),
            _ => None,
        })
        .collect();
    let mut changed = Vec::new();
    match encode_record(&catalog.table, &layout, page_size, &values, &mut changed) {
        Ok(()) => changed,
        Err(_) => row.to_vec(),
    }
}
