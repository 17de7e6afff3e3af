//! Filling a new index from the rows of its table.
//!
//! The entries are made by many small transactions, because one would have to keep a version of
//! each of them. Nobody sees the index before the catalog lists it, and until then recovery
//! releases its tree, so it does not matter that these commit by themselves.
//!
//! Nobody has changed rows of the table meanwhile, nor sees them as they were. So the entries are
//! right for every transaction, also for one that was begun before: it may open the table when the
//! index is there.

use std::ops::Bound;

use super::change::SchemaChange;
use super::{OpenTable, StoredRow};
use crate::cursor::{Direction, KeyRange, Walk};
use crate::error::{EngineError, Result};
use crate::transaction::{Commit, Transaction, Work};

/// Rows read by one transaction.
const ROWS_PER_STEP: usize = 100;

/// Makes the entries of an index of a table that nobody else uses.
pub(super) async fn build_index(
    change: &SchemaChange,
    table: &OpenTable,
    index: usize,
) -> Result<()> {
    let store = change.instance.store();
    let mut noted_in = store.log.tip().generation;
    let mut low = Bound::Unbounded;
    loop {
        if store.is_closing() {
            return Err(EngineError::Closing);
        }
        let transaction = Transaction::begin_entered(store);
        transaction.work().status.is_seen_by_all.set(true);
        let range = KeyRange { low, high: Bound::Unbounded };
        let last = match add_entries(transaction.work(), table, index, range).await {
            Ok(last) => last,
            Err(error) => {
                // Before the tree goes, nothing in it may be left to be undone.
                transaction.rollback().await?;
                return Err(error);
            }
        };
        transaction.commit(Commit::Lazy).await?;
        let Some(last) = last else {
            return Ok(());
        };
        low = Bound::Excluded(last);
        let generation = store.log.tip().generation;
        if generation > noted_in {
            change.note_again(table.index_tree(index)?).await?;
            noted_in = generation;
        }
    }
}

/// Says which row does not fit the index.
fn of_row(error: EngineError, key: &[u8]) -> EngineError {
    match error {
        EngineError::BadRow(why) => {
            let key = key.escape_ascii();
            EngineError::BadRow(format!("{why}; the row has the primary key b\"{key}\""))
        }
        other => other,
    }
}

/// Makes the entries of the next rows in range. The key of the last row, or `None` after the last
/// of the table.
async fn add_entries(
    work: &Work,
    table: &OpenTable,
    index: usize,
    range: KeyRange,
) -> Result<Option<Vec<u8>>> {
    let mut walk = Walk::new(work, table.row_tree(), range, Direction::Forward);
    let mut last = None;
    for _ in 0..ROWS_PER_STEP {
        let Some((key, record)) = walk.next(work).await? else {
            return Ok(None);
        };
        let row = StoredRow { key, record };
        let keys = table.keys_of(work, &table.hold(&row)?).await;
        let keys = keys.map_err(|error| of_row(error, &row.key))?;
        if let Some(entry) = keys.entry(index) {
            table.add_entry(work, index, entry, &row.key).await?;
        }
        last = Some(row.key);
    }
    Ok(last)
}
