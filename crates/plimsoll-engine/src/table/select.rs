//! Reading some columns of some rows: what is asked for is taken from the pages where it lies.
//!
//! Rows are looked at a few at a time. What was looked at is what the transaction's snapshot holds;
//! when the transaction itself changes anything, the rows ahead are looked at again.

use std::collections::VecDeque;
use std::ops::Bound;

use super::OpenTable;
use super::long_value::LongValueReader;
use crate::cursor::{Direction, KeyRange, Walk};
use crate::error::{EngineError, Result};
use crate::transaction::{Transaction, Work};
use crate::{ColumnId, StoredValue};

/// Rows looked at in one go.
const ROWS_PER_LOOK: u64 = 32;

/// Which columns of which rows to read, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    columns: Vec<ColumnId>,
    index: usize,
    range: KeyRange,
    direction: Direction,
    limit: u64,
}

impl Selection {
    /// These columns of all rows, in the order of their primary keys.
    pub fn of(columns: &[ColumnId]) -> Selection {
        Selection {
            columns: columns.to_vec(),
            index: 0,
            range: KeyRange::all(),
            direction: Direction::Forward,
            limit: u64::MAX,
        }
    }

    /// In the order of an index, of the rows that it holds.
    pub fn through(mut self, index: usize) -> Selection {
        self.index = index;
        self
    }

    /// Of rows whose key in the index lies in a range.
    pub fn within(mut self, range: KeyRange) -> Selection {
        self.range = range;
        self
    }

    /// The other way round.
    pub fn backward(mut self) -> Selection {
        self.direction = Direction::Backward;
        self
    }

    /// No more rows than this.
    pub fn limit(mut self, rows: u64) -> Selection {
        self.limit = rows;
        self
    }
}

/// What was read of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedRow {
    /// Its primary key.
    pub key: Vec<u8>,
    /// The values of the columns asked for, in their order; `None` is null.
    pub values: Vec<Option<Vec<u8>>>,
}

/// A value as it was found in a record.
enum Found {
    Null,
    Bytes(Vec<u8>),
    Apart(u32),
}

/// A row of the index, ready to be given: its key there, the primary key, and what the record holds
/// if that was looked at already.
struct Ready {
    place: Vec<u8>,
    key: Vec<u8>,
    found: Option<Vec<Found>>,
}

/// Rows in the order of an index, of which only some columns are read.
pub struct Selected<'t> {
    table: &'t OpenTable,
    work: &'t Work,
    selection: Selection,
    walk: Result<Walk>,
    ready: VecDeque<Ready>,
    /// Where reading goes on: behind the row given last, or at a key that was sought.
    position: Bound<Vec<u8>>,
    /// How far the transaction had come when the rows were looked at.
    looked: (usize, u64),
    left: u64,
}

impl OpenTable {
    /// Reads some columns of some rows.
    pub fn select<'t>(
        &'t self,
        transaction: &'t Transaction,
        selection: Selection,
    ) -> Selected<'t> {
        let work: &Work = transaction.work();
        let range = selection.range.clone();
        let known = selection.columns.iter().try_for_each(|column| self.check_known(*column));
        let walk =
            known.and_then(|()| self.walk(work, selection.index, range, selection.direction));
        Selected {
            table: self,
            work,
            walk,
            ready: VecDeque::new(),
            position: Bound::Unbounded,
            looked: work.progress(),
            left: selection.limit,
            selection,
        }
    }

    /// Some columns of the row with this primary key; the rest of it is not copied.
    pub async fn get_columns(
        &self,
        transaction: &Transaction,
        key: &[u8],
        columns: &[ColumnId],
    ) -> Result<Option<Vec<Option<Vec<u8>>>>> {
        columns.iter().try_for_each(|column| self.check_known(*column))?;
        let work = transaction.work();
        let _reading = self.begin_read(work)?;
        match self.find_columns(work, key, columns).await? {
            Some(found) => self.fetch(work, found).await.map(Some),
            None => Ok(None),
        }
    }

    async fn find_columns(
        &self,
        work: &Work,
        key: &[u8],
        columns: &[ColumnId],
    ) -> Result<Option<Vec<Found>>> {
        let found = work.get_with(self.row_tree(), key, |record| self.found_in(record, columns));
        found.await?.transpose()
    }

    fn found_in(&self, record: &[u8], columns: &[ColumnId]) -> Result<Vec<Found>> {
        let record = self.parse(record)?;
        let found = columns.iter().map(|column| match self.value_in(&record, *column)? {
            StoredValue::Bytes(bytes) => Ok(Found::Bytes(bytes.to_vec())),
            StoredValue::Separated { long_value, .. } => Ok(Found::Apart(long_value as u32)),
            StoredValue::Absent | StoredValue::Null => Ok(Found::Null),
            other => Err(EngineError::BadRow(format!(
                "column {column} holds {other:?}, which this engine does not write"
            ))),
        });
        found.collect()
    }

    /// Reads what lies apart.
    async fn fetch(&self, work: &Work, found: Vec<Found>) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = Vec::with_capacity(found.len());
        for value in found {
            values.push(match value {
                Found::Null => None,
                Found::Bytes(bytes) => Some(bytes),
                Found::Apart(number) => {
                    let reader = LongValueReader::open(self, work, number).await?;
                    let bytes = reader.size_bytes() as usize;
                    Some(reader.read_start(bytes).await?)
                }
            });
        }
        Ok(values)
    }
}

impl Selected<'_> {
    /// The next row.
    ///
    /// # Errors
    /// [`EngineError::TransactionBusy`] while the transaction changes something,
    /// [`EngineError::NoSuchObject`] without such an index or column, damaged pages, ...
    pub async fn next(&mut self) -> Result<Option<SelectedRow>> {
        let (table, work) = (self.table, self.work);
        let _reading = table.begin_read(work)?;
        if self.left == 0 {
            return Ok(None);
        }
        self.forget_what_changed();
        if self.ready.is_empty() {
            self.look_on().await?;
        }
        let Some(ready) = self.ready.pop_front() else {
            return Ok(None);
        };
        let found = match ready.found {
            Some(found) => found,
            None => {
                let found = table.find_columns(work, &ready.key, &self.selection.columns).await?;
                found.ok_or_else(|| {
                    EngineError::BadRow(format!(
                        "index {} names a row that is not in its table",
                        self.selection.index
                    ))
                })?
            }
        };
        let values = table.fetch(work, found).await?;
        self.position = Bound::Excluded(ready.place);
        self.left -= 1;
        let key = ready.key;
        Ok(Some(SelectedRow { key, values }))
    }

    /// Goes on with the first row whose key in the index is at or behind `key` in the order of
    /// reading, before or behind where reading was. It stays within the range, and what the limit
    /// leaves.
    pub fn seek(&mut self, key: &[u8]) {
        self.start_at(Bound::Included(key.to_vec()));
    }

    /// Goes on from a key of the index; from the start of the range if there is none, or it lies
    /// before that in the order of reading.
    fn start_at(&mut self, bound: Bound<Vec<u8>>) {
        let mut range = self.selection.range.clone();
        let start = match self.selection.direction {
            Direction::Forward => &mut range.low,
            Direction::Backward => &mut range.high,
        };
        let is_before_start = match (&bound, &*start) {
            (
                Bound::Included(key) | Bound::Excluded(key),
                Bound::Included(first) | Bound::Excluded(first),
            ) => match self.selection.direction {
                Direction::Forward => key < first,
                Direction::Backward => key > first,
            },
            (Bound::Unbounded, _) => true,
            _ => false,
        };
        // Where both name one key, the one that leaves it out holds.
        let is_start_stricter = matches!((&bound, &*start), (Bound::Included(key),
            Bound::Excluded(first)) if key == first);
        if !is_before_start && !is_start_stricter {
            *start = bound.clone();
        }
        let (index, direction) = (self.selection.index, self.selection.direction);
        self.walk = self.table.walk(self.work, index, range, direction);
        self.ready.clear();
        self.looked = self.work.progress();
        self.position = bound;
    }

    /// Looks again from where reading is if the transaction has changed anything since.
    fn forget_what_changed(&mut self) {
        if self.looked != self.work.progress() {
            self.start_at(self.position.clone());
        }
    }

    async fn look_on(&mut self) -> Result<()> {
        let (table, columns) = (self.table, &self.selection.columns);
        let walk = self.walk.as_mut().map_err(|error| error.clone())?;
        let rows_max = self.left.min(ROWS_PER_LOOK) as usize;
        self.ready = if self.selection.index == 0 {
            let picked = walk.pick(self.work, rows_max, |record| table.found_in(record, columns));
            let ready = picked.await?.into_iter().map(|(key, found)| Ready {
                place: key.clone(),
                key,
                found: Some(found),
            });
            ready.collect()
        } else {
            let picked = walk.pick(self.work, rows_max, |key| Ok(key.to_vec()));
            let ready =
                picked.await?.into_iter().map(|(place, key)| Ready { place, key, found: None });
            ready.collect()
        };
        self.looked = self.work.progress();
        Ok(())
    }
}
