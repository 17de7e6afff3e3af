//! A transaction that stays open for minutes next to a load, as a report or a copy made by reading
//! does. Everything the load changes meanwhile has to be kept for it as it was; and what it reads
//! must stay the same.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use plimsoll_engine::catalog::system;
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND};

/// Rows of each table that it reads, from either end.
const ROWS: u64 = 500;
/// How often it reads them.
const LOOK_EVERY_NS: u64 = 5 * NANOS_PER_SECOND;
/// How often it looks whether it is to end.
const PAUSE_NS: u64 = 200 * NANOS_PER_MILLISECOND;

/// What came of it.
#[derive(Default)]
pub struct LongReader {
    /// How often it read its rows.
    pub looks: Cell<u64>,
    /// Rows read each time.
    pub rows: Cell<u64>,
    /// How long it was open.
    pub open_ns: Cell<u64>,
    /// The most bytes of old versions there were meanwhile.
    pub version_bytes_max: Cell<usize>,
    /// Set to end it.
    pub stop: Cell<bool>,
}

impl fmt::Display for LongReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a transaction was open for {:.1} s and read the same {} rows {} times; up to {} MiB \
             of old versions were kept",
            self.open_ns.get() as f64 / NANOS_PER_SECOND as f64,
            self.rows.get(),
            self.looks.get(),
            self.version_bytes_max.get() >> 20
        )
    }
}

/// Keeps a transaction open for so long, or until it is told to stop.
///
/// # Errors
/// What reading meets; [`EngineError::BadRow`] where it does not find what it has found before.
pub async fn read_for_long(
    instance: Rc<Instance>,
    open_ns: u64,
    seen: Rc<LongReader>,
) -> Result<(), EngineError> {
    let handle = instance.store().handle.clone();
    let transaction = instance.begin();
    let began = handle.now();
    let mut first = None;
    let mut next_look = began;
    while handle.now() < began + open_ns && !seen.stop.get() {
        let versions = instance.store().versions.borrow().bytes();
        seen.version_bytes_max.set(seen.version_bytes_max.get().max(versions));
        seen.open_ns.set(handle.now() - began);
        if handle.now() >= next_look {
            let found = look(&instance, &transaction).await?;
            seen.looks.set(seen.looks.get() + 1);
            seen.rows.set(found.len() as u64);
            if *first.get_or_insert_with(|| found.clone()) != found {
                let why = "a transaction that stayed open found other rows than before";
                return Err(EngineError::BadRow(why.into()));
            }
            next_look = handle.now() + LOOK_EVERY_NS;
        }
        handle.sleep(PAUSE_NS).await;
    }
    transaction.commit(Commit::Lazy).await
}

/// The first and the last rows of each table: where a load deletes and where it inserts.
async fn look(
    instance: &Rc<Instance>,
    transaction: &Transaction,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, EngineError> {
    let mut found = Vec::new();
    for database in 1..=instance.options().databases.len() as u8 {
        for placed in instance.tables(database).await? {
            if placed.place.object < system::USER_OBJECT_MIN {
                continue;
            }
            let table = instance.open_table(database, &placed.table.name).await?;
            for direction in [Direction::Forward, Direction::Backward] {
                let all = KeyRange::all();
                let mut cursor = Cursor::new(transaction, table.row_tree(), all, direction);
                for _ in 0..ROWS {
                    let Some(row) = cursor.next().await? else { break };
                    found.push(row);
                }
            }
        }
    }
    Ok(found)
}
