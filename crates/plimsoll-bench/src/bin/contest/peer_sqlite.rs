//! SQLite as a contestant: write-ahead log, FULL for durable commits and NORMAL for lazy ones,
//! everything else as it comes.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::Contest;
use crate::peer::{Peer, prepared};

/// The database file and the turn of its writers.
pub struct Sqlite {
    path: PathBuf,
    synchronous: &'static str,
    /// KiB of each connection's page cache, which together make the cache asked for.
    cache_kib: u64,
    writer: Mutex<()>,
}

fn text(error: rusqlite::Error) -> String {
    format!("SQLite: {error}")
}

fn path(contest: &Contest) -> PathBuf {
    contest.directory.join("records.sqlite")
}

/// Fills the table; how many records it has.
pub fn prepare(contest: &Contest) -> Result<u64, String> {
    let prepared = prepared(contest)?;
    let mut connection = Connection::open(path(contest)).map_err(text)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(text)?;
    connection
        .execute("CREATE TABLE records (number INTEGER PRIMARY KEY, record BLOB NOT NULL)", [])
        .map_err(text)?;
    let mut next = 0;
    while next < prepared.records() {
        let until = (next + 50_000).min(prepared.records());
        let transaction = connection.transaction().map_err(text)?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO records VALUES (?1, ?2)").map_err(text)?;
            for number in next..until {
                insert.execute(params![number as i64, prepared.record(number, 0)]).map_err(text)?;
            }
        }
        transaction.commit().map_err(text)?;
        next = until;
    }
    truncate_log(&connection)?;
    Ok(prepared.records())
}

/// Moves the whole log into the database, both synced.
fn truncate_log(connection: &Connection) -> Result<(), String> {
    connection.pragma_update(None, "synchronous", "FULL").map_err(text)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(text)
}

impl Sqlite {
    /// For a database that is there.
    pub fn open(contest: &Contest) -> Result<Sqlite, String> {
        Ok(Sqlite {
            path: path(contest),
            synchronous: if contest.durable { "FULL" } else { "NORMAL" },
            cache_kib: contest.cache_bytes / 1024 / contest.sessions,
            writer: Mutex::new(()),
        })
    }

    fn turn(&self) -> Result<MutexGuard<'_, ()>, String> {
        self.writer.lock().map_err(|error| error.to_string())
    }
}

const SELECT: &str = "SELECT record FROM records WHERE number = ?1";

impl Peer for Sqlite {
    type Connection = Connection;

    fn connect(&self) -> Result<Connection, String> {
        let connection = Connection::open(&self.path).map_err(text)?;
        connection.pragma_update(None, "synchronous", self.synchronous).map_err(text)?;
        connection.pragma_update(None, "cache_size", -(self.cache_kib as i64)).map_err(text)?;
        connection.busy_timeout(std::time::Duration::from_secs(60)).map_err(text)?;
        Ok(connection)
    }

    fn read(&self, connection: &mut Connection, number: u64) -> Result<Option<Vec<u8>>, String> {
        let mut select = connection.prepare_cached(SELECT).map_err(text)?;
        select.query_row([number as i64], |row| row.get(0)).optional().map_err(text)
    }

    fn insert(
        &self,
        connection: &mut Connection,
        number: u64,
        record: &[u8],
    ) -> Result<(), String> {
        let _turn = self.turn()?;
        let mut insert =
            connection.prepare_cached("INSERT INTO records VALUES (?1, ?2)").map_err(text)?;
        insert.execute(params![number as i64, record]).map_err(text)?;
        Ok(())
    }

    fn delete(&self, connection: &mut Connection, number: u64) -> Result<bool, String> {
        let _turn = self.turn()?;
        let mut delete =
            connection.prepare_cached("DELETE FROM records WHERE number = ?1").map_err(text)?;
        Ok(delete.execute([number as i64]).map_err(text)? > 0)
    }

    fn replace(
        &self,
        connection: &mut Connection,
        number: u64,
        renew: &dyn Fn(&[u8]) -> Vec<u8>,
    ) -> Result<bool, String> {
        let _turn = self.turn()?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(text)?;
        let found: Option<Vec<u8>> = {
            let mut select = transaction.prepare_cached(SELECT).map_err(text)?;
            select.query_row([number as i64], |row| row.get(0)).optional().map_err(text)?
        };
        let Some(record) = found else {
            return Ok(false);
        };
        {
            let mut update = transaction
                .prepare_cached("UPDATE records SET record = ?2 WHERE number = ?1")
                .map_err(text)?;
            update.execute(params![number as i64, renew(&record)]).map_err(text)?;
        }
        transaction.commit().map_err(text)?;
        Ok(true)
    }

    fn finish(self) -> Result<(), String> {
        truncate_log(&Connection::open(&self.path).map_err(text)?)
    }
}
