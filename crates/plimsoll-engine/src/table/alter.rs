//! Changes of tables that are there: indexes and columns added and dropped, tables dropped.
//!
//! A change has its table alone: it is refused while somebody has the table open or a transaction
//! has changed rows of it, and the table cannot be opened while it is changed. Whatever happens,
//! the table is afterwards what it was or what it was to become.
//!
//! A dropped column keeps its number and its place in the record, as in ESE: its row of the catalog
//! stays, with type 0 and a name that says so. What rows hold of it stays with them. Rows that are
//! there when a column is added are left as they are: they have its default value, which is null
//! unless declared.

use std::rc::Rc;

use super::OpenTable;
use super::build::build_index;
use super::change::{SchemaChange, refused};
use super::create::INDEX_PAGES;
use crate::catalog::{Place, PlacedIndex, PlacedTable, system};
use crate::error::{EngineError, Result};
use crate::instance::Instance;
use crate::page::page_flags;
use crate::schema::NewIndex;
use crate::transaction::Transaction;
use crate::{Column, ColumnType, Table, column_flags};

/// How a change of one table turns out: what it is afterwards.
type Changed = Result<Option<PlacedTable>>;

impl Instance {
    /// Drops a table with its indexes and long values. Durable when this returns; the space is free
    /// again.
    ///
    /// # Errors
    /// [`EngineError::TableInUse`], [`EngineError::NoSuchObject`], [`EngineError::BadChange`] for a
    /// table of the system, ...
    pub async fn drop_table(self: &Rc<Self>, database: u8, name: &str) -> Result<()> {
        self.alter(database, name, async |change, placed| {
            for place in placed.places() {
                change.drop_tree(place).await?;
            }
            Ok(None)
        })
        .await
    }

    /// Adds an index to a table and fills it from the rows that are there. Durable when this
    /// returns; if it fails, nothing is left of it. It holds up a close for a moment only: then it
    /// ends with [`EngineError::Closing`].
    ///
    /// # Errors
    /// [`EngineError::KeyDuplicate`] where rows share a key of a unique index,
    /// [`EngineError::BadRow`] with the primary key of a row that has no key in the index,
    /// [`EngineError::TableInUse`], [`EngineError::BadChange`], ...
    pub async fn add_index(
        self: &Rc<Self>,
        database: u8,
        name: &str,
        index: NewIndex,
    ) -> Result<()> {
        self.alter(database, name, async move |change, placed| {
            change.add_index(placed, index).await.map(Some)
        })
        .await
    }

    /// Drops a secondary index. Durable when this returns; the space is free again.
    ///
    /// # Errors
    /// [`EngineError::TableInUse`], [`EngineError::BadChange`] for the primary index,
    /// [`EngineError::NoSuchObject`], ...
    pub async fn drop_index(self: &Rc<Self>, database: u8, name: &str, index: &str) -> Result<()> {
        let index = index.to_owned();
        self.alter(database, name, async move |change, mut placed| {
            let at = placed.table.index_named(&index);
            let at = at.ok_or_else(|| EngineError::no_such("index", index))?;
            if placed.table.indexes[at].is_primary() {
                return Err(refused(&placed.table, "the primary index is the table itself"));
            }
            let dropped = placed.remove_index(at);
            change.drop_tree(dropped.place).await?;
            Ok(Some(placed))
        })
        .await
    }

    /// Adds a column. The rows that are there have its default value, and are null where it has
    /// none. Durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::BadChange`] for a name that is taken, a default value that the column cannot
    /// hold, a counter, a flag that is not kept to (see [`column_flags`]), or a column that refuses
    /// null and has no default value; [`EngineError::TableInUse`], ...
    pub async fn add_column(
        self: &Rc<Self>,
        database: u8,
        name: &str,
        column: Column,
    ) -> Result<()> {
        self.alter(database, name, async move |change, placed| {
            change.add_column(placed, column).await.map(Some)
        })
        .await
    }

    /// Drops a column that belongs to no index, nor to the condition of one. Its name is free
    /// again, its number is not. Durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::BadChange`] for a column of an index, [`EngineError::NoSuchObject`],
    /// [`EngineError::TableInUse`], ...
    pub async fn drop_column(
        self: &Rc<Self>,
        database: u8,
        name: &str,
        column: &str,
    ) -> Result<()> {
        let column = column.to_owned();
        self.alter(database, name, async move |_, mut placed| {
            placed.table = without_column(&placed, &column)?;
            Ok(Some(placed))
        })
        .await
    }

    async fn alter(
        self: &Rc<Self>,
        database: u8,
        name: &str,
        make: impl AsyncFnOnce(&mut SchemaChange, PlacedTable) -> Changed + 'static,
    ) -> Result<()> {
        let name = name.to_owned();
        self.change_schema(database, async move |change| {
            let instance = change.instance.clone();
            let placed = instance.find_table(database, &name).await?;
            check_ours(&placed)?;
            let _alone = instance.schema.take(instance.store(), database, &placed).await?;
            let changed = make(change, placed.clone()).await?;
            change.rewrite(Some(&placed), changed.as_ref()).await?;
            change.commit().await?;
            if changed.is_none() {
                instance.schema.forget(database, placed.place.object);
            }
            Ok(())
        })
        .await
    }
}

/// Refuses tables that others made in ways we cannot keep up.
fn check_ours(placed: &PlacedTable) -> Result<()> {
    if placed.place.object < system::USER_OBJECT_MIN {
        return Err(refused(&placed.table, "it is a table of the system"));
    }
    if placed.template.is_some() || placed.table.primary().is_none() {
        return Err(refused(
            &placed.table,
            "it takes columns from another table or has no primary index",
        ));
    }
    Ok(())
}

fn without_column(placed: &PlacedTable, name: &str) -> Result<Table> {
    let mut table = placed.table.clone();
    let is_it = |column: &&mut Column| column.name.eq_ignore_ascii_case(name);
    let Some(column) = table.columns.iter_mut().find(is_it) else {
        return Err(EngineError::no_such("column", name));
    };
    if column.is_dropped() {
        return Err(refused(&placed.table, format!("column {name} was dropped before")));
    }
    let id = column.id;
    if let Some(bytes) = column.column_type.fixed_bytes() {
        // Its place in the record stays as wide as it is, and the type no longer says so.
        column.bytes_max = bytes as u32;
    }
    column.column_type = ColumnType::Other(0);
    column.name = stub_name(&placed.table, format!("JetStub_{}_{id}", placed.place.object));
    column.flags &= !(column_flags::DEFAULT | column_flags::NOT_NULL);
    column.default = None;
    let mut key_columns = table.indexes.iter().flat_map(|index| &index.columns);
    let mut conditions = placed.indexes.iter().flat_map(|index| &index.traits.conditions);
    if key_columns.any(|key_column| key_column.column == id)
        || conditions.any(|(column, _)| *column == id)
    {
        return Err(refused(
            &placed.table,
            format!("column {name} is part of an index; drop the index first"),
        ));
    }
    Ok(table)
}

/// The name of a dropped column, longer than usual where a column has that.
fn stub_name(table: &Table, mut name: String) -> String {
    while table.columns.iter().any(|column| column.name.eq_ignore_ascii_case(&name)) {
        name.push('_');
    }
    name
}

impl SchemaChange {
    async fn add_index(&mut self, mut placed: PlacedTable, index: NewIndex) -> Result<PlacedTable> {
        let declared = placed.table.with_index(index);
        placed.table = declared.map_err(|error| refused(&placed.table, error.to_string()))?;
        self.check_key_lengths(&placed.table)?;
        let tree = self.make_child(placed.place.root, page_flags::INDEX).await?;
        placed.indexes.push(PlacedIndex::ours(tree));
        let instance = self.instance.clone();
        let in_use = instance.schema.used_alone(self.database, &placed);
        let transaction = Transaction::begin_entered(instance.store());
        let opened = instance.open_placed(&transaction, self.database, placed.clone(), in_use);
        let table: OpenTable = opened.await?;
        drop(transaction);
        build_index(self, &table, placed.table.indexes.len() - 1).await?;
        Ok(placed)
    }

    async fn add_column(&mut self, mut placed: PlacedTable, column: Column) -> Result<PlacedTable> {
        if column.flags & column_flags::AUTO_INCREMENT != 0 {
            let why = "the rows that are there would have no number in a column that is filled \
                       from a counter: make a table with it, and bring the rows there";
            return Err(refused(&placed.table, why));
        }
        if column.flags & column_flags::NOT_NULL != 0 && column.default.is_none() {
            let why = "the rows that are there would be null in a column that refuses null: give \
                       the column a default value, which they have then";
            return Err(refused(&placed.table, why));
        }
        let is_long = column.column_type.is_long();
        let declared = placed.table.with_column(column);
        placed.table = declared.map_err(|error| refused(&placed.table, error.to_string()))?;
        if is_long && placed.long_values.is_none() {
            let tree = self.make_child(placed.place.root, page_flags::LONG_VALUE);
            placed.long_values = Some(tree.await?);
        }
        Ok(placed)
    }

    /// Makes a tree below a table's.
    async fn make_child(&mut self, parent: u32, kind: u32) -> Result<Place> {
        let tables = self.instance.tables(self.database).await?;
        let object = self.next_object(&tables)?;
        let root = self.make_tree(parent, object, kind, INDEX_PAGES).await?.root;
        self.raise_object_max(object).await?;
        Ok(Place { object, root })
    }
}
