//! Making tables and finding them again: the catalog as rows of ordinary trees.

use std::cell::Cell;
use std::rc::Rc;

use super::OpenTable;
use crate::btree::Tree;
use crate::catalog::{
    CatalogDecoder, Place, PlacedTable, catalog_rows, object_rows, root_key, rows_of_same_table, system,
};
use crate::cursor::{Cursor, Direction, KeyRange};
use crate::error::{EngineError, Result};
use crate::instance::Instance;
use crate::page::page_flags;
use crate::transaction::{Commit, Transaction};
use crate::{ColumnType, Table};

/// Pages a new table's tree starts with.
const TABLE_PAGES: u32 = 16;
/// Pages a new index or long-value tree starts with.
const INDEX_PAGES: u32 = 8;

fn system_tree(database: u8, object: u32, root: u32, kind: u32) -> Tree {
    Tree {
        database,
        root,
        object,
        kind,
    }
}

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

    /// Opens a table.
    pub async fn open_table(&self, database: u8, name: &str) -> Result<OpenTable> {
        let placed = match self.look_up_table(database, name).await? {
            Some(placed) => Some(placed),
            // A name that the index does not hold as it is written here, or a table that takes columns from another.
            None => {
                let mut tables = self.tables(database).await?.into_iter();
                tables.find(|placed| placed.table.name == name)
            }
        };
        let placed = placed.ok_or(EngineError::NoSuchObject {
            what: "table",
            name: name.to_owned(),
        })?;
        self.open_placed(&self.begin(), database, placed).await
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
        let is_it = |placed: &PlacedTable| placed.table.name == name && placed.template.is_none();
        Ok(tables.into_iter().find(is_it))
    }

    async fn open_placed(
        &self,
        transaction: &Transaction,
        database: u8,
        placed: PlacedTable,
    ) -> Result<OpenTable> {
        let target = self.database(database)?;
        // Handles of one table share the counter, or two of them would give out one number twice.
        let known = self.long_value_counter(database, placed.place.object);
        let counter = match (known, placed.long_values) {
            (Some(counter), _) => counter,
            (None, None) => Rc::new(Cell::new(1)),
            (None, Some(place)) => {
                let tree = system_tree(database, place.object, place.root, page_flags::LONG_VALUE);
                let counter = Rc::new(Cell::new(
                    last_long_value(transaction, tree).await?.saturating_add(1),
                ));
                self.keep_long_value_counter(database, placed.place.object, counter.clone())
            }
        };
        OpenTable::new(placed, target.size(), database, counter)
    }

    /// Makes a table with its indexes, and a long-value tree if it has long columns. Durable when this returns.
    ///
    /// # Errors
    /// When a table of this name exists, or a tree cannot be made.
    pub async fn create_table(self: &Rc<Self>, database: u8, table: Table) -> Result<OpenTable> {
        // A task of its own: a caller that stops waiting must not leave trees that belong to no table.
        let this = self.clone();
        let task = self.store().handle.spawn(async move {
            // One change of schema at a time: object numbers are taken from what the catalog holds.
            let _alone = this.schema_changes().acquire().await;
            this.create_table_alone(database, table).await
        });
        task.await
    }

    async fn create_table_alone(&self, database: u8, table: Table) -> Result<OpenTable> {
        // A close that is begun meanwhile waits until all is done.
        let _entered = self.store().enter()?;
        let target = self.database(database)?;
        let transaction = Transaction::begin_entered(self.store());
        let tables = self.tables(database).await?;
        if tables.iter().any(|placed| placed.table.name == table.name) {
            return Err(EngineError::BadRow(format!(
                "a table named {} exists already",
                table.name
            )));
        }
        let highest = tables.iter().map(PlacedTable::object_max).max().unwrap_or(0);
        let object = highest
            .max(target.header().object_max)
            .max(system::USER_OBJECT_MIN - 1)
            + 1;
        let placed = self.place_table(database, table, object).await?;
        let object_max = placed.object_max();
        target
            .update_header(move |header| header.object_max = header.object_max.max(object_max))
            .await?;
        self.write_catalog(&transaction, database, &placed).await?;
        transaction.commit(Commit::Durable).await?;
        let transaction = Transaction::begin_entered(self.store());
        self.open_placed(&transaction, database, placed).await
    }

    async fn place_table(&self, database: u8, table: Table, object: u32) -> Result<PlacedTable> {
        let root = self.make_tree(database, 1, object, 0, TABLE_PAGES).await?.root;
        let mut next = object + 1;
        let mut secondary_roots = Vec::new();
        for _ in 1..table.indexes.len() {
            secondary_roots.push(
                self.make_tree(database, root, next, page_flags::INDEX, INDEX_PAGES)
                    .await?
                    .root,
            );
            next += 1;
        }
        let is_long = |column_type| matches!(column_type, ColumnType::LongBinary | ColumnType::LongText);
        let long_value_root = if table.columns.iter().any(|column| is_long(column.column_type)) {
            Some(
                self.make_tree(database, root, next, page_flags::LONG_VALUE, INDEX_PAGES)
                    .await?
                    .root,
            )
        } else {
            None
        };
        let place = Place { object, root };
        Ok(PlacedTable::new(
            table,
            place,
            &secondary_roots,
            long_value_root,
            TABLE_PAGES,
        ))
    }

    async fn write_catalog(
        &self,
        transaction: &Transaction,
        database: u8,
        placed: &PlacedTable,
    ) -> Result<()> {
        let size = self.database(database)?.size();
        let catalog = system_tree(database, system::CATALOG_OBJECT, system::CATALOG_ROOT, 0);
        let shadow = system_tree(database, system::SHADOW_OBJECT, system::SHADOW_ROOT, 0);
        let names = system_tree(
            database,
            system::NAME_INDEX_OBJECT,
            system::NAME_INDEX_ROOT,
            page_flags::INDEX,
        );
        let roots = system_tree(
            database,
            system::ROOT_INDEX_OBJECT,
            system::ROOT_INDEX_ROOT,
            page_flags::INDEX,
        );
        for row in catalog_rows(placed, size) {
            transaction.insert(catalog, &row.key, &row.record).await?;
            transaction.insert(shadow, &row.key, &row.record).await?;
            transaction.insert(names, &row.name_key, &row.key).await?;
            if let Some(root_key) = &row.root_key {
                transaction.insert(roots, root_key, &row.key).await?;
            }
        }
        let objects = system_tree(database, system::OBJECT_IDS_OBJECT, system::OBJECT_IDS_ROOT, 0);
        for (key, record) in object_rows(std::slice::from_ref(placed), size) {
            transaction.insert(objects, &key, &record).await?;
        }
        Ok(())
    }
}
