//! From schema to catalog rows.

use super::column_id::{LOCALE_KEY, OBJECT_ID};
use super::{
    CONDITION_MUST_BE_NULL, KEY_COLUMN_DESCENDING, LOCALE_NAME, MAP_FLAGS, PlacedIndex,
    PlacedTable, column, row_type, system, system_tables,
};
use crate::collation::{UNICODE_LOCALE, UnicodeOrder};
use crate::schema::{ColumnStorage, KEY_BYTES_MAX_DEFAULT};
use crate::{
    Column, ColumnId, Index, KeyOrder, KeyShape, NewValue, PageSize, RecordLayout, Table,
    encode_record,
};

/// Name of the catalog row of a long-value tree.
const LONG_VALUES_NAME: &str = "LV";

/// One row of the catalog and its entries in the catalog's indexes. The data of an index entry is
/// the row's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRow {
    /// Key in MSysObjects and MSysObjectsShadow.
    pub key: Vec<u8>,
    /// The record, the same in both.
    pub record: Vec<u8>,
    /// Key in the index Name.
    pub name_key: Vec<u8>,
    /// Key in the index RootObjects, which lists tables only.
    pub root_key: Option<Vec<u8>>,
}

struct Encoder {
    catalog: Table,
    layout: RecordLayout,
    page_size: PageSize,
    shapes: [KeyShape; 3],
}

/// The values of a row; numbers stay in four bytes and are cut to their column's length.
struct Row {
    numbers: Vec<(ColumnId, u32)>,
    bytes: Vec<(ColumnId, Vec<u8>)>,
}

impl Row {
    fn new(table_object: u32, kind: u16, id: u32, name: &str) -> Self {
        Self {
            numbers: vec![
                (column::TABLE_OBJECT, table_object),
                (column::ROW_TYPE, u32::from(kind)),
                (column::ID, id),
            ],
            bytes: vec![(column::NAME, name.as_bytes().to_vec())],
        }
    }

    /// The four columns that every row has: type or root page, space usage, flags, pages or locale.
    fn with(
        mut self,
        type_or_root: u32,
        space_usage: u32,
        flags: u32,
        pages_or_locale: u32,
    ) -> Self {
        self.numbers.extend([
            (column::TYPE_OR_ROOT, type_or_root),
            (column::SPACE_USAGE, space_usage),
            (column::FLAGS, flags),
            (column::PAGES_OR_LOCALE, pages_or_locale),
        ]);
        self
    }
}

impl Encoder {
    fn new(page_size: PageSize) -> Self {
        let [catalog, ..] = system_tables();
        let table = catalog.table;
        let shape = |index: usize| {
            KeyShape::of(&table, &table.indexes[index]).expect("the catalog's keys are sortable")
        };
        Self {
            shapes: [shape(0), shape(1), shape(2)],
            layout: RecordLayout::of(&table),
            page_size,
            catalog: table,
        }
    }

    fn encode(&self, row: Row) -> CatalogRow {
        let mut values: Vec<(ColumnId, Vec<u8>)> = row
            .numbers
            .into_iter()
            .map(|(id, number)| {
                let definition = self.catalog.column(id).expect("a catalog column");
                (id, number.to_le_bytes()[..definition.fixed_bytes()].to_vec())
            })
            .chain(row.bytes)
            .collect();
        values.sort_by_key(|(id, _)| *id);
        let new_values: Vec<(ColumnId, NewValue)> =
            values.iter().map(|(id, bytes)| (*id, NewValue::Bytes(bytes))).collect();
        let mut record = Vec::new();
        encode_record(&self.catalog, &self.layout, self.page_size, &new_values, &mut record)
            .expect("catalog rows fit their columns");
        let value_of = |id: ColumnId| {
            let found = values.iter().find(|(column, _)| *column == id);
            found.map(|(_, bytes)| &bytes[..])
        };
        let key = |shape: &KeyShape| shape.key(value_of).expect("names are ASCII").bytes;
        CatalogRow {
            key: key(&self.shapes[0]),
            name_key: key(&self.shapes[1]),
            root_key: value_of(column::ROOT_FLAG).map(|_| key(&self.shapes[2])),
            record,
        }
    }
}

/// The key under which the index RootObjects lists a table of this name; `None` for a name that no
/// key can be made of.
pub fn root_key(name: &str) -> Option<Vec<u8>> {
    let [catalog, ..] = system_tables();
    let shape = KeyShape::of(&catalog.table, &catalog.table.indexes[2]).ok()?;
    let key = shape.prefix(&[Some(&[0xFF]), Some(name.as_bytes())]).ok()?;
    Some(key.bytes)
}

/// What the keys of all catalog rows of one table begin with, by the key of any of them.
pub fn rows_of_same_table(key: &[u8]) -> &[u8] {
    // A flag and the four bytes of the table's object number.
    &key[..key.len().min(5)]
}

/// The catalog rows of a table, in the order of their keys.
///
/// # Panics
/// When a name is not ASCII or a default value is longer than 255 bytes; built tables never are.
pub fn catalog_rows(placed: &PlacedTable, page_size: PageSize) -> Vec<CatalogRow> {
    let encoder = Encoder::new(page_size);
    let mut rows = vec![encoder.encode(table_row(placed))];
    let layout = RecordLayout::of(&placed.table);
    rows.extend(
        placed
            .table
            .columns
            .iter()
            .map(|column| encoder.encode(column_row(placed, &layout, column))),
    );
    let indexes = placed.table.indexes.iter().zip(&placed.indexes);
    rows.extend(
        indexes.map(|(index, placed_index)| encoder.encode(index_row(placed, index, placed_index))),
    );
    rows.extend(placed.long_values.map(|place| {
        let row =
            Row::new(placed.place.object, row_type::LONG_VALUES, place.object, LONG_VALUES_NAME);
        encoder.encode(row.with(place.root, placed.density_percent, 0, 1))
    }));
    rows.sort_by(|left, right| left.key.cmp(&right.key));
    rows
}

fn table_row(placed: &PlacedTable) -> Row {
    let object = placed.place.object;
    let mut row = Row::new(object, row_type::TABLE, object, &placed.table.name).with(
        placed.place.root,
        placed.density_percent,
        placed.flags,
        placed.pages_initial,
    );
    row.numbers.push((column::ROOT_FLAG, 0xFF));
    if let Some(template) = &placed.template {
        row.bytes.push((column::TEMPLATE, template.as_bytes().to_vec()));
    }
    row
}

fn column_row(placed: &PlacedTable, layout: &RecordLayout, column: &Column) -> Row {
    let mut row =
        Row::new(placed.place.object, row_type::COLUMN, u32::from(column.id), &column.name).with(
            u32::from(column.column_type.number()),
            column.bytes_max,
            column.flags,
            u32::from(column.code_page),
        );
    if column.storage() == ColumnStorage::Fixed {
        let offset = layout.fixed_range(column.id).map_or(0, |range| range.start);
        // The catalog's own rows give the offset of the first column for all of them; real
        // databases do so too.
        let is_catalog =
            [system::CATALOG_OBJECT, system::SHADOW_OBJECT].contains(&placed.place.object);
        row.numbers.push((column::RECORD_OFFSET, if is_catalog { 4 } else { offset as u32 }));
    }
    if let Some(default) = &column.default {
        row.bytes.push((column::DEFAULT, default.clone()));
    }
    row
}

fn index_row(placed: &PlacedTable, index: &Index, placed_index: &PlacedIndex) -> Row {
    let PlacedIndex { place, traits } = placed_index;
    let mut row = Row::new(placed.place.object, row_type::INDEX, place.object, &index.name).with(
        place.root,
        placed.density_percent,
        index.flags,
        0,
    );
    row.numbers.push((column::MAP_FLAGS, MAP_FLAGS));
    if index.key_bytes_max != KEY_BYTES_MAX_DEFAULT {
        row.numbers.push((column::KEY_MOST, u32::from(index.key_bytes_max)));
    }
    let key_columns = index.columns.iter().flat_map(|key_column| {
        let flags = match key_column.order {
            KeyOrder::Ascending => 0,
            KeyOrder::Descending => KEY_COLUMN_DESCENDING,
        };
        let [low, high] = key_column.column.to_le_bytes();
        [flags, 0, low, high]
    });
    row.bytes.push((column::KEY_COLUMNS, key_columns.collect()));
    if !traits.conditions.is_empty() {
        let listed = traits.conditions.iter().flat_map(|(column, must_be_null)| {
            let [low, high] = column.to_le_bytes();
            [u8::from(*must_be_null) * CONDITION_MUST_BE_NULL, 0, low, high]
        });
        row.bytes.push((column::CONDITIONS, listed.collect()));
    }
    let locale = match index.unicode_order {
        UnicodeOrder::Root => UNICODE_LOCALE,
        UnicodeOrder::Unknown => LOCALE_NAME,
    };
    row.bytes.push((column::LOCALE_NAME, utf16(locale)));
    row
}

pub(super) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn small_table_row(
    table: &Table,
    page_size: PageSize,
    key: ColumnId,
    values: &[(ColumnId, Vec<u8>)],
) -> (Vec<u8>, Vec<u8>) {
    let shape =
        KeyShape::of(table, &table.indexes[0]).expect("the system tables' keys are sortable");
    let new_values: Vec<_> =
        values.iter().map(|(id, bytes)| (*id, NewValue::Bytes(bytes))).collect();
    let mut record = Vec::new();
    encode_record(table, &RecordLayout::of(table), page_size, &new_values, &mut record)
        .expect("small rows fit");
    let key_value = values.iter().find(|(id, _)| *id == key).map(|(_, bytes)| &bytes[..]);
    (shape.key(|_| key_value).expect("a sortable value").bytes, record)
}

/// The rows of MSysObjids (key, record) for the objects of these tables, in the order of their
/// keys. Primary indexes have none.
pub fn object_rows(tables: &[PlacedTable], page_size: PageSize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let [_, _, object_ids, _] = system_tables();
    let row = |object: u32, table_object: u32, kind: u16| {
        let values = [
            (OBJECT_ID, object.to_le_bytes().to_vec()),
            (257, table_object.to_le_bytes().to_vec()),
            (258, kind.to_le_bytes().to_vec()),
        ];
        small_table_row(&object_ids.table, page_size, OBJECT_ID, &values)
    };
    let mut rows = Vec::new();
    for placed in tables {
        let table_object = placed.place.object;
        rows.push(row(table_object, table_object, row_type::TABLE));
        rows.extend(
            placed.secondary_places().map(|place| row(place.object, table_object, row_type::INDEX)),
        );
        rows.extend(
            placed.long_values.map(|place| row(place.object, table_object, row_type::LONG_VALUES)),
        );
    }
    rows.sort();
    rows
}

/// The rows of MSysLocales (key, record), the same in every database of ours.
pub fn locale_rows(page_size: PageSize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let [_, _, _, locales] = system_tables();
    let mut rows: Vec<_> = [
        (".Schema\\External\\Major", 1u8, 1u32),
        (".Schema\\External\\Minor", 1, 0),
        (".Schema\\External\\Update", 1, 0),
        (".Schema\\Internal\\Major", 1, 1),
        (".Schema\\Internal\\Minor", 1, 0),
        (".Schema\\Internal\\Update", 1, 0),
        ("MSysLocalesConsistent", 2, 1),
    ]
    .into_iter()
    .map(|(name, kind, number)| {
        let mut key = utf16(name);
        key.extend([0, 0]);
        let values = [(1, vec![kind]), (2, number.to_le_bytes().to_vec()), (LOCALE_KEY, key)];
        small_table_row(&locales.table, page_size, LOCALE_KEY, &values)
    })
    .collect();
    rows.sort();
    rows
}
