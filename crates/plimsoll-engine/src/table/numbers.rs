//! Columns that are filled from a counter.
//!
//! Every row that is inserted gets the next number. Numbers are unique and rise; one that was seen
//! with a committed row is never given again, also when that row is deleted and the power fails.
//! For that, numbers are taken in blocks: the catalog row of the column says up to where they were
//! taken, changed by a transaction of its own that the log holds before any row with a number of
//! the block. What is left of a block when an instance ends is not given out.
//!
//! The mark stands in the column Stats of the catalog row, which other engines leave empty for
//! columns. Where it is not there yet, numbers go on behind the highest in the table.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::Permits;

use super::change::system_tree;
use super::usage::TableUse;
use super::{ColumnValue, OpenTable};
use crate::catalog::{column_key, numbers_taken, system, with_numbers_taken};
use crate::cursor::{Direction, KeyRange, Walk};
use crate::error::{EngineError, Result};
use crate::store::Store;
use crate::transaction::{Commit, Transaction, Work};
use crate::{Column, ColumnType, StoredValue, column_flags};

/// Numbers taken at a time.
const BLOCK: u64 = 100;

/// The numbers of a table's column that were taken and not given out.
pub(super) struct Numbers {
    next: Cell<u64>,
    /// The first that is not taken; 0 before anybody has looked.
    end: Cell<u64>,
    /// One block at a time.
    taking: Permits,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { next: Cell::new(1), end: Cell::new(0), taking: Permits::new(1) }
    }
}

impl Numbers {
    fn give(&self) -> Option<u64> {
        let number = self.next.get();
        (number < self.end.get()).then(|| {
            self.next.set(number + 1);
            number
        })
    }
}

/// The highest number that a column can hold.
fn number_max(column: &Column) -> u64 {
    match column.column_type {
        ColumnType::Long => i32::MAX as u64,
        ColumnType::UnsignedLong => u64::from(u32::MAX),
        _ => i64::MAX as u64,
    }
}

impl OpenTable {
    /// The column that is filled from a counter.
    pub(super) fn numbered_column(&self) -> Option<&Column> {
        let mut columns = self.placed.table.columns.iter();
        columns
            .find(|column| column.flags & column_flags::AUTO_INCREMENT != 0 && !column.is_dropped())
    }

    /// Refuses values for a column that is filled from a counter.
    pub(super) fn check_numbered(&self, values: &[ColumnValue<'_>]) -> Result<()> {
        let Some(column) = self.numbered_column() else {
            return Ok(());
        };
        if values.iter().all(|(id, _)| *id != column.id) {
            return Ok(());
        }
        Err(EngineError::BadRow(format!(
            "column {} is filled from a counter: leave it out",
            column.name
        )))
    }

    /// The next number for a column, as it is stored.
    pub(super) async fn next_number(&self, work: &Work, column: &Column) -> Result<(u64, Vec<u8>)> {
        let numbers = &self.in_use.numbers;
        loop {
            if let Some(number) = numbers.give() {
                let bytes = column.fixed_bytes();
                return Ok((number, number.to_le_bytes()[..bytes].to_vec()));
            }
            self.take_block(work, column).await?;
        }
    }

    /// A task of its own: whoever stops waiting for a number must not leave a block half taken.
    async fn take_block(&self, work: &Work, column: &Column) -> Result<()> {
        let highest = match self.in_use.numbers.end.get() {
            0 => self.highest_number(work, column).await?,
            _ => 0,
        };
        let block = Block {
            store: work.store.clone(),
            in_use: self.in_use.clone(),
            database: self.database,
            key: column_key(self.placed.place.object, column.id),
            highest,
            number_max: number_max(column),
            column: column.name.clone(),
        };
        let task = work.store.handle.spawn(async move { block.take().await });
        task.await
    }

    /// The highest number in the table, if the catalog does not say up to where they were taken.
    async fn highest_number(&self, work: &Work, column: &Column) -> Result<u64> {
        let catalog = system_tree(self.database, system::CATALOG_OBJECT, system::CATALOG_ROOT, 0);
        let key = column_key(self.placed.place.object, column.id);
        let row = work.get(catalog, &key).await?;
        if row.is_some_and(|row| numbers_taken(&row, self.size).is_some()) {
            return Ok(0);
        }
        let mut walk = Walk::new(work, self.row_tree(), KeyRange::all(), Direction::Forward);
        let mut highest = 0;
        while let Some((_, record)) = walk.next(work).await? {
            if let Ok(StoredValue::Bytes(bytes)) = self.parse(&record)?.value(column.id) {
                let mut number = [0; 8];
                number[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
                let number = u64::from_le_bytes(number);
                // A negative number is no obstacle.
                highest = highest.max(if number > number_max(column) { 0 } else { number });
            }
        }
        Ok(highest)
    }
}

/// A block of numbers to be taken.
struct Block {
    store: Rc<Store>,
    in_use: Rc<TableUse>,
    database: u8,
    /// The column's row in the catalog.
    key: Vec<u8>,
    highest: u64,
    number_max: u64,
    column: String,
}

impl Block {
    async fn take(self) -> Result<()> {
        let numbers = &self.in_use.numbers;
        let _alone = numbers.taking.acquire().await;
        if numbers.next.get() < numbers.end.get() {
            return Ok(());
        }
        let transaction = Transaction::begin_entered(&self.store);
        match self.take_in(&transaction).await {
            Ok((first, end)) => {
                // In the log before any row with such a number, so durable before that.
                transaction.commit(Commit::Lazy).await?;
                numbers.next.set(first);
                numbers.end.set(end);
                Ok(())
            }
            Err(error) => {
                transaction.rollback().await?;
                Err(error)
            }
        }
    }

    async fn take_in(&self, transaction: &Transaction) -> Result<(u64, u64)> {
        let database = self.store.database(self.database)?;
        let size = database.size();
        let catalog = system_tree(self.database, system::CATALOG_OBJECT, system::CATALOG_ROOT, 0);
        let shadow = system_tree(self.database, system::SHADOW_OBJECT, system::SHADOW_ROOT, 0);
        let row = transaction.get(catalog, &self.key).await?;
        let row = row.ok_or_else(|| EngineError::no_such("column", &self.column))?;
        let taken = numbers_taken(&row, size).unwrap_or(0);
        let first = taken.max(self.highest) + 1;
        let last = (taken.max(self.highest) + BLOCK).min(self.number_max);
        if first > last {
            let column = &self.column;
            let why = format!("column {column} has been given every number there is for it");
            return Err(EngineError::BadRow(why));
        }
        // Without a mark that lasts, the numbers would be given again after a restart.
        let row = with_numbers_taken(&row, size, last).map_err(|why| EngineError::BadHeader {
            path: database.path().to_owned(),
            why: format!("its catalog cannot say which numbers {} was given: {why}", self.column),
        })?;
        transaction.replace(catalog, &self.key, &row).await?;
        transaction.replace(shadow, &self.key, &row).await?;
        Ok((first, last + 1))
    }
}
