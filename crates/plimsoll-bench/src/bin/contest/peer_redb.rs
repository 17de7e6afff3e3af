//! redb as a contestant: immediate durability for durable commits, none for lazy ones, everything
//! else as it comes.
//!
//! redb keeps what lazy commits changed in memory until the next durable one, without a limit: left
//! alone it is killed by the memory cgroup. Every so many lazy commits one is therefore durable.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::{
    Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition,
    WriteTransaction,
};

use crate::Contest;
use crate::peer::{Peer, prepared};

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// Lazy commits between two durable ones.
const LAZY_RUN: u64 = 256;

/// The open database.
pub struct Redb {
    database: Database,
    durability: Durability,
    commits: AtomicU64,
}

fn text(error: impl std::fmt::Display) -> String {
    format!("redb: {error}")
}

fn path(contest: &Contest) -> PathBuf {
    contest.directory.join("records.redb")
}

/// Fills the table; how many records it has.
pub fn prepare(contest: &Contest) -> Result<u64, String> {
    let prepared = prepared(contest)?;
    let mut builder = Builder::new();
    builder.set_cache_size(contest.cache_bytes as usize);
    let database = builder.create(path(contest)).map_err(text)?;
    let mut next = 0;
    while next < prepared.records() {
        let until = (next + 50_000).min(prepared.records());
        let transaction = database.begin_write().map_err(text)?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(text)?;
            for number in next..until {
                table.insert(number, prepared.record(number, 0).as_slice()).map_err(text)?;
            }
        }
        transaction.commit().map_err(text)?;
        next = until;
    }
    Ok(prepared.records())
}

impl Redb {
    /// For a database that is there.
    pub fn open(contest: &Contest) -> Result<Redb, String> {
        let mut builder = Builder::new();
        builder.set_cache_size(contest.cache_bytes as usize);
        Ok(Redb {
            database: builder.open(path(contest)).map_err(text)?,
            commits: AtomicU64::new(0),
            durability: if contest.durable { Durability::Immediate } else { Durability::None },
        })
    }

    fn begin(&self) -> Result<WriteTransaction, String> {
        let mut transaction = self.database.begin_write().map_err(text)?;
        let number = self.commits.fetch_add(1, Ordering::Relaxed);
        if number % LAZY_RUN != LAZY_RUN - 1 {
            transaction.set_durability(self.durability).map_err(text)?;
        }
        Ok(transaction)
    }
}

impl Peer for Redb {
    type Connection = ();

    fn connect(&self) -> Result<(), String> {
        Ok(())
    }

    fn read(&self, _connection: &mut (), number: u64) -> Result<Option<Vec<u8>>, String> {
        let transaction = self.database.begin_read().map_err(text)?;
        let table = transaction.open_table(RECORDS).map_err(text)?;
        let found = table.get(number).map_err(text)?;
        Ok(found.map(|record| record.value().to_vec()))
    }

    fn insert(&self, _connection: &mut (), number: u64, record: &[u8]) -> Result<(), String> {
        let transaction = self.begin()?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(text)?;
            table.insert(number, record).map_err(text)?;
        }
        transaction.commit().map_err(text)
    }

    fn delete(&self, _connection: &mut (), number: u64) -> Result<bool, String> {
        let transaction = self.begin()?;
        let found = {
            let mut table = transaction.open_table(RECORDS).map_err(text)?;
            table.remove(number).map_err(text)?.is_some()
        };
        if found {
            transaction.commit().map_err(text)?;
        } else {
            transaction.abort().map_err(text)?;
        }
        Ok(found)
    }

    fn replace(
        &self,
        _connection: &mut (),
        number: u64,
        renew: &dyn Fn(&[u8]) -> Vec<u8>,
    ) -> Result<bool, String> {
        let transaction = self.begin()?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(text)?;
            let record = table.get(number).map_err(text)?.map(|record| renew(record.value()));
            let Some(record) = record else {
                return Ok(false);
            };
            table.insert(number, record.as_slice()).map_err(text)?;
        }
        transaction.commit().map_err(text)?;
        Ok(true)
    }

    /// A last durable commit covers all lazy ones before it.
    fn finish(self) -> Result<(), String> {
        let transaction = self.database.begin_write().map_err(text)?;
        transaction.commit().map_err(text)
    }
}
