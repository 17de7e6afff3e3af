//! A table whose columns are named by their positions, and rows whose values are numbers and texts.

use std::ops::Bound;

use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::{OpenTable, RowCursor, StoredRow};
use plimsoll_engine::transaction::Transaction;
use plimsoll_engine::{ColumnId, ColumnType, StoredValue};

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Of an integer column, whatever its width.
    Number(i64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// None.
    Null,
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Value::Number(i64::from(number))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

/// See the module text.
pub struct Sheet {
    table: OpenTable,
    columns: Vec<(ColumnId, ColumnType)>,
}

/// The stored bytes of a value. Numbers are told apart from other columns by their width.
fn bytes_of<'a>(value: Value<'a>, kind: ColumnType, space: &'a mut [u8; 8]) -> Option<&'a [u8]> {
    match value {
        Value::Number(number) => {
            *space = number.to_le_bytes();
            Some(&space[..kind.fixed_bytes().unwrap_or(8)])
        }
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        Value::Null => None,
    }
}

/// A little-endian signed number of 2, 4 or 8 bytes.
fn number_of(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        2 => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
        4 => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
        8 => i64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

impl Sheet {
    /// Opens a table of the instance's first database.
    ///
    /// # Errors
    /// When the table or a column is not there.
    pub async fn open(
        instance: &Instance,
        name: &str,
        columns: &[(&str, ColumnType)],
    ) -> Result<Sheet> {
        let table = instance.open_table(1, name).await?;
        let columns = columns
            .iter()
            .map(|(name, kind)| Ok((table.column(name)?, *kind)))
            .collect::<Result<_>>()?;
        Ok(Sheet { table, columns })
    }

    /// Inserts a row: a value for each column in order.
    ///
    /// # Errors
    /// As the engine's tables.
    pub async fn insert(&self, transaction: &Transaction, values: &[Value<'_>]) -> Result<()> {
        let mut spaces = vec![[0; 8]; values.len()];
        let given: Vec<_> = values
            .iter()
            .zip(&self.columns)
            .zip(&mut spaces)
            .map(|((value, (column, kind)), space)| (*column, bytes_of(*value, *kind, space)))
            .collect();
        self.table.insert(transaction, &given).await.map(drop)
    }

    /// Gives numbers of a row new values.
    ///
    /// # Errors
    /// As the engine's tables.
    pub async fn set(
        &self,
        transaction: &Transaction,
        key: &[u8],
        values: &[(usize, i64)],
    ) -> Result<()> {
        let mut spaces = vec![[0; 8]; values.len()];
        let given: Vec<_> = values
            .iter()
            .zip(&mut spaces)
            .map(|((position, number), space)| {
                let (column, kind) = self.columns[*position];
                (column, bytes_of(Value::Number(*number), kind, space))
            })
            .collect();
        self.table.update(transaction, key, &given).await
    }

    /// Adds to a number of a row; several transactions may add to one number at a time.
    ///
    /// # Errors
    /// As the engine's tables.
    pub async fn add(
        &self,
        transaction: &Transaction,
        key: &[u8],
        position: usize,
        amount: i64,
    ) -> Result<()> {
        let (column, _) = self.columns[position];
        self.table.add(transaction, key, column, amount).await
    }

    /// Deletes the row with this key.
    ///
    /// # Errors
    /// As the engine's tables.
    pub async fn delete(&self, transaction: &Transaction, key: &[u8]) -> Result<()> {
        self.table.delete(transaction, key).await
    }

    /// The row with this key.
    ///
    /// # Errors
    /// As the engine's tables.
    pub async fn get(&self, transaction: &Transaction, key: &[u8]) -> Result<Option<StoredRow>> {
        self.table.get(transaction, key).await
    }

    /// The row that an entry of a unique index leads to.
    ///
    /// # Errors
    /// As the engine's tables.
    pub async fn get_by(
        &self,
        transaction: &Transaction,
        index: usize,
        value: Value<'_>,
    ) -> Result<Option<StoredRow>> {
        let key = self.prefix(index, &[value])?;
        match transaction.get(self.table.index_tree(index)?, &key).await? {
            Some(primary) => self.get(transaction, &primary).await,
            None => Ok(None),
        }
    }

    /// The start of all keys of an index that begin with these values.
    ///
    /// # Errors
    /// When a value has no key.
    pub fn prefix(&self, index: usize, values: &[Value<'_>]) -> Result<Vec<u8>> {
        let indexed = &self.table.placed().table.indexes[index].columns;
        let mut spaces = vec![[0; 8]; values.len()];
        let given: Vec<_> = values
            .iter()
            .zip(indexed)
            .zip(&mut spaces)
            .map(|((value, column), space)| {
                let found = self.columns.iter().find(|(id, _)| *id == column.column);
                let kind = found.map_or(ColumnType::Long, |(_, kind)| *kind);
                bytes_of(*value, kind, space)
            })
            .collect();
        self.table.index_prefix(index, &given)
    }

    /// The primary key of a row that has one number for it.
    ///
    /// # Errors
    /// When it has no such key.
    pub fn key_of_number(&self, number: i64) -> Result<Vec<u8>> {
        self.prefix(0, &[Value::Number(number)])
    }

    /// Rows in the order of an index, from those that begin with these values.
    ///
    /// # Errors
    /// When a value has no key.
    pub fn rows<'t>(
        &'t self,
        transaction: &'t Transaction,
        index: usize,
        values: &[Value<'_>],
    ) -> Result<RowCursor<'t>> {
        let range = match values {
            [] => KeyRange::all(),
            values => KeyRange::prefix(&self.prefix(index, values)?),
        };
        Ok(self.table.scan(transaction, index, range, Direction::Forward))
    }

    /// Rows in the order of an index from the last one back, of those that begin with these values.
    ///
    /// # Errors
    /// When a value has no key.
    pub fn rows_backward<'t>(
        &'t self,
        transaction: &'t Transaction,
        index: usize,
        values: &[Value<'_>],
    ) -> Result<RowCursor<'t>> {
        let range = KeyRange::prefix(&self.prefix(index, values)?);
        Ok(self.table.scan(transaction, index, range, Direction::Backward))
    }

    /// Rows in the order of their primary keys from these values on, as long as the first `same` of
    /// them stay the same.
    ///
    /// # Errors
    /// When a value has no key.
    pub fn rows_from<'t>(
        &'t self,
        transaction: &'t Transaction,
        values: &[Value<'_>],
        same: usize,
    ) -> Result<RowCursor<'t>> {
        let within = KeyRange::prefix(&self.prefix(0, &values[..same])?);
        let low = Bound::Included(self.prefix(0, values)?);
        let range = KeyRange { low, ..within };
        Ok(self.table.scan(transaction, 0, range, Direction::Forward))
    }

    /// Rows whose primary keys begin with these values, in their order: those behind a key, or all.
    ///
    /// # Errors
    /// When a value has no key.
    pub fn rows_after<'t>(
        &'t self,
        transaction: &'t Transaction,
        values: &[Value<'_>],
        after: Option<&[u8]>,
    ) -> Result<RowCursor<'t>> {
        let within = KeyRange::prefix(&self.prefix(0, values)?);
        let range = match after {
            Some(key) => KeyRange { low: Bound::Excluded(key.to_vec()), ..within },
            None => within,
        };
        Ok(self.table.scan(transaction, 0, range, Direction::Forward))
    }

    /// How many rows there are whose primary keys begin with these values.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn count_of(&self, transaction: &Transaction, values: &[Value<'_>]) -> Result<u64> {
        let range = KeyRange::prefix(&self.prefix(0, values)?);
        self.table.count(transaction, 0, range, u64::MAX).await
    }

    /// The kinds of its columns, in their order.
    pub fn kinds(&self) -> impl Iterator<Item = ColumnType> + '_ {
        self.columns.iter().map(|(_, kind)| *kind)
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn count(&self, transaction: &Transaction) -> Result<u64> {
        self.table.count(transaction, 0, KeyRange::all(), u64::MAX).await
    }

    /// The highest number of a table whose key is one number; 0 of an empty one.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn last_number(&self, transaction: &Transaction) -> Result<i32> {
        let tree = self.table.row_tree();
        let mut cursor = Cursor::new(transaction, tree, KeyRange::all(), Direction::Backward);
        let Some((key, record)) = cursor.next().await? else {
            return Ok(0);
        };
        Ok(self.number(&StoredRow { key, record }, 0)? as i32)
    }

    fn bytes<'r>(&'r self, row: &'r StoredRow, position: usize) -> Result<&'r [u8]> {
        match self.table.stored(row, self.columns[position].0)? {
            StoredValue::Bytes(bytes) => Ok(bytes),
            other => Err(self.unexpected(position, &format!("{other:?}"))),
        }
    }

    fn unexpected(&self, position: usize, found: &str) -> EngineError {
        let table = &self.table.placed().table;
        let column = &table.columns.iter().find(|column| column.id == self.columns[position].0);
        let column = column.map_or("?", |column| column.name.as_str());
        EngineError::BadRow(format!("{column} of a row of {} holds {found}", table.name))
    }

    /// A number of a row.
    ///
    /// # Errors
    /// When there is none.
    pub fn number(&self, row: &StoredRow, position: usize) -> Result<i64> {
        let bytes = self.bytes(row, position)?;
        number_of(bytes).ok_or_else(|| self.unexpected(position, "no number"))
    }

    /// A text of a row.
    ///
    /// # Errors
    /// When there is none.
    pub fn text<'r>(&'r self, row: &'r StoredRow, position: usize) -> Result<&'r str> {
        let bytes = self.bytes(row, position)?;
        std::str::from_utf8(bytes).map_err(|_| self.unexpected(position, "no text"))
    }

    /// A long value of a row, wherever it lies.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn long_value(
        &self,
        transaction: &Transaction,
        row: &StoredRow,
        position: usize,
    ) -> Result<Vec<u8>> {
        let value = self.table.value(transaction, row, self.columns[position].0).await?;
        Ok(value.unwrap_or_default())
    }
}
