//! Tables: rows of typed columns with a primary key, secondary indexes kept in step, long values
//! apart from the records.
//!
//! A row operation touches several trees; within its transaction it happens whole or not at all. An
//! operation that was abandoned half-way leaves the transaction fit only for rollback.
//!
//! Values are the stored bytes of their column: integers little-endian, text as encoded. A long
//! column is kept in the record up to the table's limit and goes to the long-value tree when it is
//! longer or the record would not fit its page.

mod alter;
mod build;
mod change;
mod create;
mod held;
mod index;
mod long_value;
mod numbers;
mod row_change;
mod rows;
mod select;
mod usage;
mod values;

pub use held::StoredRow;
use held::{Held, HeldRow};
pub use long_value::{LongValueReader, LongValueWriter};
pub use rows::{Inserted, RowCursor};
pub use select::{Selected, SelectedRow, Selection};
pub(crate) use usage::Schema;
use usage::TableUse;

use std::cell::Cell;
use std::rc::{Rc, Weak};

use crate::btree::Tree;
use crate::catalog::{IndexTraits, Place, PlacedTable};
use crate::collation::UNICODE_LOCALE;
use crate::cursor::{Direction, KeyRange, Walk};
use crate::error::{EngineError, Result};
use crate::page::page_flags;
use crate::store::Store;
use crate::transaction::{Turn, Work};
use crate::{ColumnId, Index, KeyError, KeyShape, PageSize, RecordLayout, Table, column_flags};

/// Bytes a long column may keep in the record unless a table says otherwise, as in ESE.
pub const INTRINSIC_BYTES_MAX_DEFAULT: usize = 1023;

/// A table of an open database.
pub struct OpenTable {
    placed: PlacedTable,
    layout: RecordLayout,
    shapes: Vec<KeyShape>,
    size: PageSize,
    database: u8,
    intrinsic_bytes_max: Cell<usize>,
    /// What a row has that is given nothing.
    defaults: HeldRow,
    /// Columns that are not null in any row.
    required: Vec<ColumnId>,
    in_use: Rc<TableUse>,
    /// What the instance that it was opened in works on.
    store: Weak<Store>,
}

/// How the keys of an index are made, or why nobody here can keep it up.
fn shape(table: &Table, index: &Index, traits: &IndexTraits) -> Result<KeyShape> {
    let shape = KeyShape::of(table, index);
    shape.map_err(|error| match (&traits.collation, error) {
        (Some(collation), KeyError::Unsortable { column_type, .. }) if column_type.is_text() => {
            EngineError::BadRow(format!(
                "index {} of table {} sorts text by the rules of {collation}, and this program \
                 knows {UNICODE_LOCALE}: drop the index and add it again",
                index.name, table.name
            ))
        }
        (_, error) => EngineError::BadRow(error.to_string()),
    })
}

/// The values of a row that is given none.
fn defaults_of(table: &Table) -> HeldRow {
    let columns = table.columns.iter().filter(|column| !column.is_dropped());
    let defaults = columns.filter_map(|column| Some((column.id, column.default.clone()?)));
    defaults.map(|(column, default)| (column, Held::Bytes(default))).collect()
}

/// The columns that refuse null.
fn required_of(table: &Table) -> Vec<ColumnId> {
    let columns = table.columns.iter().filter(|column| !column.is_dropped());
    let required = columns.filter(|column| column.flags & column_flags::NOT_NULL != 0);
    required.map(|column| column.id).collect()
}

/// A value given for a column; `None` is null.
pub type ColumnValue<'a> = (ColumnId, Option<&'a [u8]>);

impl OpenTable {
    pub(super) fn new(
        placed: PlacedTable,
        size: PageSize,
        database: u8,
        in_use: Rc<TableUse>,
        store: &Rc<Store>,
    ) -> Result<OpenTable> {
        let indexes = placed.table.indexes.iter().zip(&placed.indexes);
        let shapes = indexes
            .map(|(index, at)| shape(&placed.table, index, &at.traits))
            .collect::<Result<Vec<_>>>()?;
        if shapes.is_empty() {
            return Err(EngineError::BadRow(format!(
                "table {} has no primary index",
                placed.table.name
            )));
        }
        Ok(OpenTable {
            layout: RecordLayout::of(&placed.table),
            defaults: defaults_of(&placed.table),
            required: required_of(&placed.table),
            placed,
            shapes,
            size,
            database,
            intrinsic_bytes_max: Cell::new(INTRINSIC_BYTES_MAX_DEFAULT),
            in_use,
            store: Rc::downgrade(store),
        })
    }

    /// What it looks like and where it lies.
    pub fn placed(&self) -> &PlacedTable {
        &self.placed
    }

    /// Lets long columns keep up to this many bytes in the record.
    pub fn set_intrinsic_bytes_max(&self, bytes: usize) {
        self.intrinsic_bytes_max.set(bytes);
    }

    /// The number of a column by name, in upper or lower case.
    ///
    /// # Errors
    /// [`EngineError::NoSuchObject`].
    pub fn column(&self, name: &str) -> Result<ColumnId> {
        let found = self.placed.table.column_named(name).map(|column| column.id);
        found.ok_or_else(|| EngineError::no_such("column", name))
    }

    /// The position of an index by name, in upper or lower case; 0 is the primary.
    ///
    /// # Errors
    /// [`EngineError::NoSuchObject`].
    pub fn index(&self, name: &str) -> Result<usize> {
        let found = self.placed.table.index_named(name);
        found.ok_or_else(|| EngineError::no_such("index", name))
    }

    fn tree(&self, place: Place, kind: u32) -> Tree {
        Tree { database: self.database, root: place.root, object: place.object, kind }
    }

    /// The tree of the rows themselves.
    pub fn row_tree(&self) -> Tree {
        self.tree(self.placed.place, 0)
    }

    /// The tree of an index; index 0 is the table's own.
    ///
    /// # Errors
    /// [`EngineError::NoSuchObject`].
    pub fn index_tree(&self, index: usize) -> Result<Tree> {
        match self.placed.indexes.get(index) {
            Some(_) if index == 0 => Ok(self.row_tree()),
            Some(at) => Ok(self.tree(at.place, page_flags::INDEX)),
            None => Err(self.no_index(index)),
        }
    }

    fn no_index(&self, index: usize) -> EngineError {
        let name = format!("{index} of table {}", self.placed.table.name);
        EngineError::no_such_number("index", name)
    }

    /// Begins an operation of a transaction that only looks at the table.
    fn begin_read<'w>(&self, work: &'w Work) -> Result<Turn<'w>> {
        self.check_instance(work)?;
        work.begin_read()
    }

    /// Begins an operation of a transaction that changes the table.
    fn begin_change<'w>(&self, work: &'w Work) -> Result<Turn<'w>> {
        self.check_instance(work)?;
        work.begin_change()
    }

    /// Every operation passes here. What the handle knows holds in its own instance only: in
    /// another the table may have become something else, or be none.
    fn check_instance(&self, work: &Work) -> Result<()> {
        if std::ptr::eq(self.store.as_ptr(), Rc::as_ptr(&work.store)) {
            return Ok(());
        }
        Err(EngineError::ForeignTable { table: self.placed.table.name.clone() })
    }

    /// A walk along an index.
    fn walk(
        &self,
        work: &Work,
        index: usize,
        range: KeyRange,
        direction: Direction,
    ) -> Result<Walk> {
        Ok(Walk::new(work, self.index_tree(index)?, range, direction))
    }

    fn long_value_tree(&self) -> Result<Tree> {
        let name = &self.placed.table.name;
        let place = self.placed.long_values;
        let place = place.ok_or_else(|| EngineError::no_such("long-value tree", name))?;
        Ok(self.tree(place, page_flags::LONG_VALUE))
    }

    /// The primary key of a row with these key column values, in the order of the key.
    ///
    /// # Errors
    /// [`EngineError::BadRow`] for values that have no key, or for more or fewer than the key has
    /// columns.
    pub fn key(&self, values: &[Option<&[u8]>]) -> Result<Vec<u8>> {
        let columns = self.shapes[0].columns().count();
        if values.len() != columns {
            return Err(wrong_values(columns, values.len()));
        }
        self.index_prefix(0, values)
    }

    /// The start of all keys of an index that begin with these values.
    ///
    /// # Errors
    /// [`EngineError::NoSuchObject`], [`EngineError::BadRow`] for values that have no key, or for
    /// more than the index has columns.
    pub fn index_prefix(&self, index: usize, values: &[Option<&[u8]>]) -> Result<Vec<u8>> {
        let shape = self.shapes.get(index).ok_or_else(|| self.no_index(index))?;
        if values.len() > shape.columns().count() {
            return Err(wrong_values(shape.columns().count(), values.len()));
        }
        let key = shape.prefix(values).map_err(|error| {
            let given: Vec<_> = shape.columns().zip(values.iter().copied()).collect();
            let value = |column: ColumnId| given.iter().find(|(id, _)| *id == column)?.1;
            self.bad_key(&self.placed.table.indexes[index], shape.at_fault(value), error)
        })?;
        Ok(key.bytes)
    }
}

fn wrong_values(columns: usize, values: usize) -> EngineError {
    EngineError::BadRow(format!("its key has {columns} columns, and {values} values are given"))
}
