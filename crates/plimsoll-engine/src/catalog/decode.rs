//! From catalog rows to schema. Accepts what Windows writes: columns we do not know, deleted
//! columns, types without meaning here.

use super::{
    CONDITION_MUST_BE_NULL, IndexTraits, KEY_COLUMN_DESCENDING, Place, PlacedIndex, PlacedTable,
    column, row_type, system_tables,
};
use crate::collation::{UNICODE_LOCALE, UnicodeOrder};
use crate::schema::KEY_BYTES_MAX_DEFAULT;
use crate::{
    Column, ColumnId, ColumnType, Index, KeyColumn, KeyOrder, PageSize, Record, RecordFault,
    RecordLayout, StoredValue, Table, column_flags, index_flags,
};

/// What is wrong with a row of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogFault {
    /// The record itself is damaged.
    #[error(transparent)]
    Record(#[from] RecordFault),
    /// A column that every such row has is missing or has another length.
    #[error("a catalog row has no usable value in column {column}")]
    Missing {
        /// Number of the catalog's column.
        column: ColumnId,
    },
    /// A column or index row that belongs to no table before it.
    #[error("the catalog describes {name:?} of table object {table_object} before that table")]
    Orphan {
        /// Name in the row.
        name: String,
        /// Object number in the row.
        table_object: u32,
    },
    /// Column numbers must rise.
    #[error("column {column} of table {table} is described twice or out of order")]
    ColumnOrder {
        /// Table.
        table: String,
        /// Column number.
        column: ColumnId,
    },
}

/// Collects the tables of a database from the rows of its catalog, fed in the order of their keys.
pub struct CatalogDecoder {
    layout: RecordLayout,
    page_size: PageSize,
    tables: Vec<PlacedTable>,
}

struct Row<'a> {
    record: Record<'a>,
}

impl Row<'_> {
    fn number(&self, id: ColumnId) -> Result<Option<u32>, CatalogFault> {
        match self.record.value(id)? {
            StoredValue::Bytes(&[a, b, c, d]) => Ok(Some(u32::from_le_bytes([a, b, c, d]))),
            StoredValue::Bytes(&[a, b]) => Ok(Some(u32::from(u16::from_le_bytes([a, b])))),
            StoredValue::Bytes(_) => Err(CatalogFault::Missing { column: id }),
            _ => Ok(None),
        }
    }

    fn required(&self, id: ColumnId) -> Result<u32, CatalogFault> {
        self.number(id)?.ok_or(CatalogFault::Missing { column: id })
    }

    fn bytes(&self, id: ColumnId) -> Result<Option<&[u8]>, CatalogFault> {
        match self.record.value(id)? {
            StoredValue::Bytes(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    fn text(&self, id: ColumnId) -> Result<Option<String>, CatalogFault> {
        Ok(self.bytes(id)?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }
}

impl CatalogDecoder {
    /// A decoder for the catalog of a database with this page size.
    pub fn new(page_size: PageSize) -> Self {
        let [catalog, ..] = system_tables();
        Self { layout: RecordLayout::of(&catalog.table), page_size, tables: Vec::new() }
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// When the row is damaged or out of place; it is then not taken.
    pub fn push(&mut self, record: &[u8]) -> Result<(), CatalogFault> {
        let record = Record::parse(record, &self.layout, self.page_size)?;
        let row = Row { record };
        let table_object = row.required(column::TABLE_OBJECT)?;
        let kind = row.required(column::ROW_TYPE)? as u16;
        let name = row.text(column::NAME)?.unwrap_or_default();
        if kind == row_type::TABLE {
            self.tables.push(table(&row, name, table_object)?);
            return Ok(());
        }
        let Some(placed) = self.tables.last_mut().filter(|last| last.place.object == table_object)
        else {
            return Err(CatalogFault::Orphan { name, table_object });
        };
        match kind {
            row_type::COLUMN => push_column(placed, &row, name),
            row_type::INDEX => push_index(placed, &row, name),
            row_type::LONG_VALUES => {
                placed.long_values = Some(place(&row)?);
                Ok(())
            }
            // Callbacks and kinds invented later describe nothing we read.
            _ => Ok(()),
        }
    }

    /// The tables, each with the columns that it inherits. A template inherits from no other.
    pub fn finish(mut self) -> Vec<PlacedTable> {
        let derived: Vec<(usize, String)> = self
            .tables
            .iter()
            .enumerate()
            .filter_map(|(number, placed)| Some((number, placed.template.clone()?)))
            .collect();
        for (number, template) in derived {
            let base = self.tables.iter().find(|placed| placed.table.name == template);
            let Some(base) = base.filter(|base| base.template.is_none()) else {
                continue;
            };
            let columns = base.table.columns.clone().into_iter();
            self.tables[number].inherited =
                columns.map(|column| column.flagged(column_flags::INHERITED)).collect();
        }
        self.tables
    }
}

fn place(row: &Row<'_>) -> Result<Place, CatalogFault> {
    Ok(Place { object: row.required(column::ID)?, root: row.required(column::TYPE_OR_ROOT)? })
}

fn table(row: &Row<'_>, name: String, table_object: u32) -> Result<PlacedTable, CatalogFault> {
    Ok(PlacedTable {
        table: Table { name, columns: Vec::new(), indexes: Vec::new() },
        place: Place { object: table_object, root: row.required(column::TYPE_OR_ROOT)? },
        indexes: Vec::new(),
        long_values: None,
        flags: row.number(column::FLAGS)?.unwrap_or(0),
        density_percent: row.number(column::SPACE_USAGE)?.unwrap_or(0),
        pages_initial: row.number(column::PAGES_OR_LOCALE)?.unwrap_or(0),
        template: row.text(column::TEMPLATE)?,
        inherited: Vec::new(),
    })
}

fn push_column(placed: &mut PlacedTable, row: &Row<'_>, name: String) -> Result<(), CatalogFault> {
    let id = row.required(column::ID)? as ColumnId;
    if placed.table.columns.last().is_some_and(|last| last.id >= id) {
        return Err(CatalogFault::ColumnOrder { table: placed.table.name.clone(), column: id });
    }
    let column_type = ColumnType::from_number(row.required(column::TYPE_OR_ROOT)? as u8);
    placed.table.columns.push(Column {
        id,
        name,
        column_type,
        flags: row.number(column::FLAGS)?.unwrap_or(0),
        code_page: row.number(column::PAGES_OR_LOCALE)?.unwrap_or(0) as u16,
        bytes_max: row.number(column::SPACE_USAGE)?.unwrap_or(0),
        default: row.bytes(column::DEFAULT)?.map(<[u8]>::to_vec),
    });
    Ok(())
}

/// Key columns are listed with 16-bit numbers and flags, in very old indexes as signed numbers,
/// negative for descending.
fn key_columns(listed: &[u8], flags: u32) -> Vec<KeyColumn> {
    let order = |is_descending| {
        if is_descending { KeyOrder::Descending } else { KeyOrder::Ascending }
    };
    if flags & index_flags::EXTENDED_COLUMN_IDS == 0 {
        let numbers = listed.as_chunks::<2>().0.iter().map(|bytes| i16::from_le_bytes(*bytes));
        return numbers
            .map(|number| KeyColumn { column: number.unsigned_abs(), order: order(number < 0) })
            .collect();
    }
    let entries = listed.as_chunks::<4>().0.iter();
    entries
        .map(|[flags, _, low, high]| KeyColumn {
            column: ColumnId::from_le_bytes([*low, *high]),
            order: order(flags & KEY_COLUMN_DESCENDING != 0),
        })
        .collect()
}

/// The columns on which entries depend, listed as key columns are, and the rules that text is
/// sorted by.
fn index_traits(row: &Row<'_>, flags: u32) -> Result<IndexTraits, CatalogFault> {
    let listed = row.bytes(column::CONDITIONS)?.unwrap_or_default();
    let conditions = if flags & index_flags::EXTENDED_COLUMN_IDS == 0 {
        let numbers = listed.as_chunks::<2>().0.iter();
        numbers
            .map(|bytes| i16::from_le_bytes(*bytes))
            .map(|number| (number.unsigned_abs(), number < 0))
            .collect()
    } else {
        let entries = listed.as_chunks::<4>().0.iter();
        entries
            .map(|[flags, _, low, high]| {
                let is_null_asked = flags & CONDITION_MUST_BE_NULL != 0;
                (ColumnId::from_le_bytes([*low, *high]), is_null_asked)
            })
            .collect()
    };
    let locale = match row.bytes(column::LOCALE_NAME)? {
        Some(name) if !name.is_empty() => {
            let units = name.as_chunks::<2>().0.iter();
            Some(String::from_utf16_lossy(
                &units.map(|unit| u16::from_le_bytes(*unit)).collect::<Vec<_>>(),
            ))
        }
        _ => match row.number(column::PAGES_OR_LOCALE)?.unwrap_or(0) {
            0 => None,
            number => Some(format!("number {number:#x}")),
        },
    };
    let mapping = row.number(column::MAP_FLAGS)?.unwrap_or(0);
    Ok(IndexTraits {
        conditions,
        collation: locale.map(|locale| IndexTraits::collation_of(&locale, mapping)),
    })
}

fn push_index(placed: &mut PlacedTable, row: &Row<'_>, name: String) -> Result<(), CatalogFault> {
    let flags = row.number(column::FLAGS)?.unwrap_or(0);
    let listed = row.bytes(column::KEY_COLUMNS)?.unwrap_or_default();
    let key_bytes_max = row.number(column::KEY_MOST)?.filter(|bytes| *bytes > 0);
    let is_ours =
        row.bytes(column::LOCALE_NAME)? == Some(&super::encode::utf16(UNICODE_LOCALE)[..]);
    let index = Index {
        unicode_order: if is_ours { UnicodeOrder::Root } else { UnicodeOrder::Unknown },
        name,
        flags,
        columns: key_columns(listed, flags),
        key_bytes_max: key_bytes_max.map_or(KEY_BYTES_MAX_DEFAULT, |bytes| bytes as u16),
    };
    // The primary comes first whatever its object number.
    let at = if index.is_primary() { 0 } else { placed.indexes.len() };
    let placed_index = PlacedIndex { place: place(row)?, traits: index_traits(row, flags)? };
    placed.insert_index(at, index, placed_index);
    Ok(())
}
