//! What the records of a table call for: entries of its indexes, references to its long values.

use std::borrow::Cow;
use std::cell::Cell;

use super::finding::{Finding, Findings};
use super::long_values::References;
use super::sums::Sum;
use super::walk::{Line, Visitor};
use crate::catalog::{IndexTraits, PlacedTable, system};
use crate::page::Node;
use crate::schema::has_entry;
use crate::{
    ColumnId, Index, KeyError, KeyShape, PageNumber, PageSize, Record, RecordLayout, StoredValue,
    Table, column_flags,
};

/// The entries a secondary index should have.
pub(super) struct ExpectedIndex {
    name: String,
    flags: u32,
    shape: Option<KeyShape>,
    /// Why the index cannot be compared.
    unchecked: Option<Cow<'static, str>>,
    /// Columns that must be null, or must not be, for a row to have an entry.
    conditions: Vec<(ColumnId, bool)>,
    sum: Sum,
}

/// Visits the records of a table.
pub(super) struct Records<'a> {
    placed: &'a PlacedTable,
    layout: RecordLayout,
    page_size: PageSize,
    primary: Option<KeyShape>,
    pub indexes: Vec<ExpectedIndex>,
    pub references: References,
    pub count: u64,
    /// Some records could not be read.
    pub has_bad: bool,
    /// Over keys and records, of the catalog and its shadow only.
    pub whole: Sum,
    /// Object, table object and type, of MSysObjids only.
    pub objects: Vec<(u32, u32, u16)>,
}

/// The entries an index has.
#[derive(Default)]
pub(super) struct Entries {
    pub sum: Sum,
}

impl Visitor for Entries {
    fn node(&mut self, _: Line, key: &[u8], node: &Node<'_>, _: &mut Findings) {
        self.sum.add(key, node.data);
    }
}

impl<'a> Records<'a> {
    pub(super) fn new(placed: &'a PlacedTable, page_size: PageSize, page_max: PageNumber) -> Self {
        let table = &placed.table;
        let primary = table.primary().and_then(|primary| KeyShape::of(table, primary).ok());
        let secondary = table
            .indexes
            .iter()
            .zip(placed.indexes.iter().map(|index| &index.traits))
            .filter(|(index, _)| !index.is_primary());
        Self {
            layout: RecordLayout::of_placed(placed),
            page_size,
            primary: primary.filter(|_| placed.template.is_none()),
            indexes: secondary
                .map(|(index, traits)| expected_index(placed, index, traits))
                .collect(),
            references: References::new(page_max),
            count: 0,
            has_bad: false,
            whole: Sum::default(),
            objects: Vec::new(),
            placed,
        }
    }

    fn has_whole_sum(&self) -> bool {
        matches!(self.placed.place.object, system::CATALOG_OBJECT | system::SHADOW_OBJECT)
    }

    fn check_primary_key(
        &self,
        at: Line,
        key: &[u8],
        record: &Record<'_>,
        findings: &mut Findings,
    ) {
        let Some(shape) = &self.primary else { return };
        let values = KeyValues::new(&self.placed.table, record);
        let made = shape.key(|column| values.get(column));
        if values.is_unknown.get() {
            return;
        }
        if made.is_ok_and(|made| made.bytes == key) {
            return;
        }
        let Line { page, line } = at;
        let table = self.placed.table.name.clone();
        findings.push(Finding::WrongPrimaryKey { page, line, table });
    }
}

impl Visitor for Records<'_> {
    fn node(&mut self, at: Line, key: &[u8], node: &Node<'_>, findings: &mut Findings) {
        self.count += 1;
        let record = match Record::parse(node.data, &self.layout, self.page_size) {
            Ok(record) => record,
            Err(fault) => {
                self.has_bad = true;
                let Line { page, line } = at;
                let table = self.placed.table.name.clone();
                findings.push(Finding::BadRecord { page, line, table, fault });
                return;
            }
        };
        if self.has_whole_sum() {
            self.whole.add(key, node.data);
        }
        if self.placed.place.object == system::OBJECT_IDS_OBJECT {
            self.objects.extend(object_row(&record));
        }
        self.check_primary_key(at, key, &record, findings);
        for index in &mut self.indexes {
            index.add(&self.placed.table, &record, key);
        }
        for_each_reference(&record, |long_value| self.references.add(long_value));
    }
}

fn expected_index(placed: &PlacedTable, index: &Index, traits: &IndexTraits) -> ExpectedIndex {
    let shape = KeyShape::of(&placed.table, index);
    let holds_several = index.columns.iter().any(|key_column| {
        let column = placed.table.column(key_column.column);
        column.is_some_and(|column| column.flags & column_flags::MULTI_VALUED != 0)
    });
    let unchecked = if placed.template.is_some() {
        Some("its table inherits columns from a template".into())
    } else if let Err(error) = &shape {
        Some(match (&traits.collation, error) {
            (Some(collation), KeyError::Unsortable { column_type, .. })
                if column_type.is_text() =>
            {
                format!("its text is sorted by the rules of {collation}, which are not known here")
                    .into()
            }
            _ => format!("its keys cannot be made here: {error}").into(),
        })
    } else if holds_several {
        Some("its column holds several values".into())
    } else {
        None
    };
    ExpectedIndex {
        name: index.name.clone(),
        flags: index.flags,
        shape: shape.ok(),
        unchecked,
        conditions: traits.conditions.clone(),
        sum: Sum::default(),
    }
}

impl ExpectedIndex {
    fn add(&mut self, table: &Table, record: &Record<'_>, primary_key: &[u8]) {
        let Some(shape) = self.shape.as_ref().filter(|_| self.unchecked.is_none()) else {
            return;
        };
        let values = KeyValues::new(table, record);
        let nulls: Vec<bool> = shape.columns().map(|column| values.get(column).is_none()).collect();
        let made = shape.key(|column| values.get(column));
        if values.is_unknown.get() {
            self.unchecked =
                Some("a key column holds a compressed, encrypted or separated value".into());
            return;
        }
        let is_met = |(column, must_be_null): &(ColumnId, bool)| {
            values.is_set(*column) != Some(*must_be_null)
        };
        if !self.conditions.iter().all(is_met) {
            return;
        }
        if !has_entry(self.flags, &nulls) {
            return;
        }
        match made {
            Ok(key) => self.sum.add(&key.bytes, primary_key),
            Err(_) => {
                self.unchecked =
                    Some("a key column holds a value that does not fit its type".into())
            }
        }
    }

    /// Reports the index if its entries are not the expected ones.
    pub(super) fn compare(
        &self,
        findings: &mut Findings,
        placed: &PlacedTable,
        entries: &Entries,
        is_whole: bool,
    ) {
        let table = placed.table.name.clone();
        let cut = (!is_whole).then_some(Cow::Borrowed("it or its table could not be read in full"));
        if let Some(reason) = self.unchecked.clone().or(cut) {
            findings.not_checked(format!("index {} of table {table}", self.name), reason);
        } else if entries.sum != self.sum {
            findings.push(Finding::IndexDisagrees {
                table,
                index: self.name.clone(),
                entries: entries.sum.count(),
                expected: self.sum.count(),
            });
        }
    }
}

/// Gives key columns their values, and notes when one cannot be given.
struct KeyValues<'v> {
    table: &'v Table,
    record: &'v Record<'v>,
    is_unknown: Cell<bool>,
}

impl<'v> KeyValues<'v> {
    fn new(table: &'v Table, record: &'v Record<'v>) -> Self {
        Self { table, record, is_unknown: Cell::new(false) }
    }

    /// Whether a column has a value, wherever and however it is stored; `None` for a record that
    /// cannot be read there.
    fn is_set(&self, column: ColumnId) -> Option<bool> {
        match self.record.value(column) {
            Ok(StoredValue::Null) => Some(false),
            Ok(StoredValue::Absent) => Some(self.table.column(column)?.default.is_some()),
            Ok(_) => Some(true),
            Err(_) => None,
        }
    }

    fn get(&self, column: ColumnId) -> Option<&'v [u8]> {
        match self.record.value(column) {
            Ok(StoredValue::Bytes(bytes)) => Some(bytes),
            Ok(StoredValue::Null) => None,
            Ok(StoredValue::Absent) => self.table.column(column)?.default.as_deref(),
            _ => {
                self.is_unknown.set(true);
                None
            }
        }
    }
}

/// Calls `each` with every long value the record refers to.
pub(super) fn for_each_reference(record: &Record<'_>, mut each: impl FnMut(u64)) {
    for value in record.tagged_values() {
        match value {
            Ok(StoredValue::Separated { long_value, .. }) => each(long_value),
            Ok(StoredValue::Multi(values)) => {
                for number in 0..values.count().unwrap_or(0) {
                    if let Ok(StoredValue::Separated { long_value, .. }) = values.value(number) {
                        each(long_value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A row of MSysObjids.
fn object_row(record: &Record<'_>) -> Option<(u32, u32, u16)> {
    let number = |column: ColumnId| match record.value(column) {
        Ok(StoredValue::Bytes(&[a, b, c, d])) => Some(u32::from_le_bytes([a, b, c, d])),
        Ok(StoredValue::Bytes(&[a, b])) => Some(u32::from(u16::from_le_bytes([a, b]))),
        _ => None,
    };
    Some((number(256)?, number(257)?, number(258)? as u16))
}
