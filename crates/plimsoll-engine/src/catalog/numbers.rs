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
///
/// # Errors
/// Why the row cannot say so, or not without losing what else it says.
pub(crate) fn with_numbers_taken(
    row: &[u8],
    page_size: PageSize,
    last: u64,
) -> Result<Vec<u8>, String> {
    let [catalog, ..] = system_tables();
    let layout = RecordLayout::of(&catalog.table);
    let last = last.to_le_bytes();
    let record = Record::parse(row, &layout, page_size).map_err(|fault| fault.to_string())?;
    let mut values: Vec<(ColumnId, NewValue<'_>)> = Vec::new();
    for column in &catalog.table.columns {
        let value = record.value(column.id).map_err(|fault| fault.to_string())?;
        let kept = match value {
            _ if column.id == column::STATISTICS => NewValue::Bytes(&last),
            StoredValue::Absent => continue,
            StoredValue::Null => NewValue::Null,
            StoredValue::Bytes(bytes) => NewValue::Bytes(bytes),
            StoredValue::Separated { long_value } => {
                NewValue::Separated { long_value: long_value as u32 }
            }
            other => return Err(format!("its column {} holds {other:?}", column.name)),
        };
        values.push((column.id, kept));
    }
    let mut changed = Vec::new();
    encode_record(&catalog.table, &layout, page_size, &values, &mut changed)
        .map_err(|error| error.to_string())?;
    Ok(changed)
}
