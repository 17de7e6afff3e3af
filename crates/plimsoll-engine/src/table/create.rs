//! Making tables and finding them again: the catalog as rows of ordinary trees.

use std::rc::Rc;

use super::OpenTable;
use super::change::{SchemaChange, refused, system_tree};
use super::usage::TableUse;
use crate::Table;
use crate::btree::Tree;
use crate::catalog::{
    CatalogDecoder, Place, PlacedTable, catalog_rows, object_rows, root_key, rows_of_same_table,
    system,
};
use crate::cursor::{Cursor, Direction, KeyRange};
use crate::error::{EngineError, Result};
use crate::instance::Instance;
use crate::page::page_flags;
use crate::schema::KEY_BYTES_MAX_LARGEST;
use crate::transaction::Transaction;

/// Pages a new table's tree starts with.
const TABLE_PAGES: u32 = 16;
/// Pages a new index or long-value tree starts with.
pub(super) const INDEX_PAGES: u32 = 8;

async fn last_long_value(transaction: &Transaction, tree: Tree) -> Result<u32> {
    let mut cursor = Cursor::new(transaction, tree, KeyRange::all(), Direction::Backward);
    let last = cursor.next().await?;
    Ok(last
        .and_then(|(key, _)| Some(u32::from_be_bytes(key.get(..4)?.try_into().ok()?)))
        .unwrap_or(0))
}

impl Instance {
    /// The tables the catalog of a database lists, the system's own among them.
    pub async fn tables(&self, database: u8) -> Result<Vec<PlacedTable>> {
        let transaction = self.begin();
        self.tables_in(database, &transaction, KeyRange::all()).await
    }

    /// The tables whose catalog rows lie in a range.
    async fn tables_in(
        &self,
        database: u8,
        transaction: &Transaction,
        range: KeyRange,
    ) -> Result<Vec<PlacedTable>> {
        let target = self.database(database)?;
        let catalog = system_tree(database, system::CATALOG_OBJECT, system::CATALOG_ROOT, 0);
        let mut cursor = Cursor::new(transaction, catalog, range, Direction::Forward);
        let mut decoder = CatalogDecoder::new(target.size());
        while let Some((_, record)) = cursor.next().await? {
            decoder.push(&record).map_err(|fault| EngineError::BadHeader {
                path: target.path().to_owned(),
                why: format!("its catalog cannot be read: {fault}"),
            })?;
        }
        Ok(decoder.finish())
    }

    /// Opens a table by its name, in upper or lower case.
    ///
    /// # Errors
    /// [`EngineError::NoSuchObject`], and [`EngineError::TableInUse`] while its schema changes.
    pub async fn open_table(&self, database: u8, name: &str) -> Result<OpenTable> {
        loop {
            let version = self.schema.version();
            let placed = self.find_table(database, name).await?;
            let entered = self.schema.enter(database, &placed, version)?;
            // Otherwise the catalog was changed while it was read.
            if let Some(in_use) = entered {
                return self.open_placed(&self.begin(), database, placed, in_use).await;
            }
        }
    }

    /// A table by its name.
    pub(super) async fn find_table(&self, database: u8, name: &str) -> Result<PlacedTable> {
        let placed = match self.look_up_table(database, name).await? {
            Some(placed) => Some(placed),
            // A name that the index does not hold as it is written here, or a table that takes
            // columns from another.
            None => {
                let mut tables = self.tables(database).await?.into_iter();
                tables.find(|placed| placed.table.name.eq_ignore_ascii_case(name))
            }
        };
        placed.ok_or_else(|| EngineError::no_such("table", name))
    }

    /// A table by the catalog's index of names: of the catalog only its own rows are read.
    async fn look_up_table(&self, database: u8, name: &str) -> Result<Option<PlacedTable>> {
        let transaction = self.begin();
        let (object, root) = (system::ROOT_INDEX_OBJECT, system::ROOT_INDEX_ROOT);
        let index = system_tree(database, object, root, page_flags::INDEX);
        let Some(key) = root_key(name) else {
            return Ok(None);
        };
        let Some(row) = transaction.get(index, &key).await? else {
            return Ok(None);
        };
        let rows = KeyRange::prefix(rows_of_same_table(&row));
        let tables = self.tables_in(database, &transaction, rows).await?;
        let is_it = |placed: &PlacedTable| {
            placed.table.name.eq_ignore_ascii_case(name) && placed.template.is_none()
        };
        Ok(tables.into_iter().find(is_it))
    }

    pub(super) async fn open_placed(
        &self,
        transaction: &Transaction,
        database: u8,
        placed: PlacedTable,
        in_use: Rc<TableUse>,
    ) -> Result<OpenTable> {
        let target = self.database(database)?;
        // Handles of one table share the counter, or two of them would give out one number twice.
        if let (None, Some(place)) = (in_use.next_long_value(), placed.long_values) {
            let tree = system_tree(database, place.object, place.root, page_flags::LONG_VALUE);
            let last = last_long_value(transaction, tree).await?;
            // Whoever looked first is right: it may have given out numbers meanwhile.
            if in_use.next_long_value().is_none() {
                in_use.set_next_long_value(last.saturating_add(1));
            }
        }
        OpenTable::new(placed, target.size(), database, in_use, &transaction.work().store)
    }

    /// Makes a table with its indexes, and a long-value tree if it has long columns. Durable when
    /// this returns; if it fails, nothing is left of it.
    ///
    /// # Errors
    /// [`EngineError::BadChange`] when a table of this name exists, a column has a flag that is not
    /// kept to (see [`column_flags`](crate::column_flags)), or a tree cannot be made.
    pub async fn create_table(self: &Rc<Self>, database: u8, table: Table) -> Result<OpenTable> {
        self.change_schema(database, async move |change| change.create_table(table).await).await
    }
}

impl SchemaChange {
    async fn create_table(&mut self, table: Table) -> Result<OpenTable> {
        let database = self.database;
        let tables = self.instance.tables(database).await?;
        let mut known = tables.iter().map(|placed| &placed.table.name);
        if let Some(known) = known.find(|known| known.eq_ignore_ascii_case(&table.name)) {
            let why = format!("there is {known} already: open it, or take another name");
            return Err(refused(&table, why));
        }
        table.check_flags().map_err(|error| refused(&table, error.to_string()))?;
        self.check_key_lengths(&table)?;
        let object = self.next_object(&tables)?;
        let placed = self.place_table(table, object).await?;
        self.raise_object_max(placed.object_max()).await?;
        self.rewrite(None, Some(&placed)).await?;
        self.commit().await?;
        let instance = &self.instance;
        let in_use = instance.schema.used_alone(database, &placed);
        let transaction = Transaction::begin_entered(instance.store());
        instance.open_placed(&transaction, database, placed, in_use).await
    }

    /// Refuses keys that are longer than pages of this size are meant to have.
    pub(super) fn check_key_lengths(&self, table: &Table) -> Result<()> {
        let size = self.instance.database(self.database)?.size();
        let bytes_max = match size.bytes() {
            ..=4096 => KEY_BYTES_MAX_LARGEST / 2,
            _ => KEY_BYTES_MAX_LARGEST,
        };
        match table.indexes.iter().find(|index| index.key_bytes_max > bytes_max) {
            None => Ok(()),
            Some(index) => {
                let (name, may_have) = (&index.name, index.key_bytes_max);
                let why = format!(
                    "keys of index {name} may have {may_have} bytes, and pages of {size} allow \
                     {bytes_max}"
                );
                Err(refused(table, why))
            }
        }
    }

    /// The first object number that was never used.
    pub(super) fn next_object(&self, tables: &[PlacedTable]) -> Result<u32> {
        let target = self.instance.database(self.database)?;
        let highest = tables.iter().map(PlacedTable::object_max).max().unwrap_or(0);
        let pending = self.instance.store().pending.borrow().object_max(self.database);
        let taken = [highest, target.header().object_max, system::USER_OBJECT_MIN - 1, pending];
        Ok(taken.into_iter().max().unwrap_or(0) + 1)
    }

    async fn place_table(&mut self, table: Table, object: u32) -> Result<PlacedTable> {
        let root = self.make_tree(1, object, 0, TABLE_PAGES).await?.root;
        let mut next = object + 1;
        let mut secondary_roots = Vec::new();
        for _ in 1..table.indexes.len() {
            let tree = self.make_tree(root, next, page_flags::INDEX, INDEX_PAGES).await?;
            secondary_roots.push(tree.root);
            next += 1;
        }
        let long_value_root = if table.columns.iter().any(|column| column.column_type.is_long()) {
            let tree = self.make_tree(root, next, page_flags::LONG_VALUE, INDEX_PAGES).await?;
            Some(tree.root)
        } else {
            None
        };
        let place = Place { object, root };
        Ok(PlacedTable::new(table, place, &secondary_roots, long_value_root, TABLE_PAGES))
    }

    /// Makes the catalog say what a table is, where it said what it was.
    pub(super) async fn rewrite(
        &mut self,
        old: Option<&PlacedTable>,
        new: Option<&PlacedTable>,
    ) -> Result<()> {
        let size = self.instance.database(self.database)?.size();
        let rows = |placed: Option<&PlacedTable>| {
            placed.map_or(Vec::new(), |placed| catalog_rows(placed, size))
        };
        let objects = |placed: Option<&PlacedTable>| {
            placed.map_or(Vec::new(), |placed| object_rows(std::slice::from_ref(placed), size))
        };
        let (old_rows, mut added) = (rows(old), rows(new));
        let mut removed = Vec::new();
        for row in old_rows {
            match added.iter().position(|new| new.key == row.key) {
                None => removed.push(row),
                Some(at) => {
                    let new = added.remove(at);
                    if new != row {
                        self.replace_in_catalog(&row, &new).await?;
                    }
                }
            }
        }
        let (old_objects, new_objects) = (objects(old), objects(new));
        let without = |objects: &[(Vec<u8>, Vec<u8>)], others: &[(Vec<u8>, Vec<u8>)]| {
            let rest = objects.iter().filter(|row| !others.contains(row));
            rest.cloned().collect::<Vec<_>>()
        };
        self.remove_from_catalog(&removed, &without(&old_objects, &new_objects)).await?;
        self.add_to_catalog(&added, &without(&new_objects, &old_objects)).await
    }
}
