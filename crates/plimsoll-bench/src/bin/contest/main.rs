//! Transactions per second of one store: this engine, SQLite or redb, on the same mix, records,
//! sessions and durability.
//!
//! `contest store=engine action=prepare ...` fills a database, `action=run` puts the mix on it for
//! `seconds` or `transactions_max`, whichever ends first, and closes it so that everything is on
//! stable storage; the time of closing counts. A database can be run on again and again. The caller
//! puts the process into a memory cgroup. Prints one line of JSON.
//!
//! Every store gets the same cache. The engine's sessions are tasks, those of the others are
//! threads; writers of SQLite take turns at a mutex instead of polling its file lock, which is
//! faster for SQLite. Without the feature `peers` only the engine is built.

mod engine;
#[cfg(feature = "peers")]
mod peer;
#[cfg(feature = "peers")]
mod peer_redb;
#[cfg(feature = "peers")]
mod peer_sqlite;

use std::path::PathBuf;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::field::MIX_2010;
use plimsoll_bench::processor::warn_of_debug_build;
use plimsoll_workload::records::Mix;

/// Shared by all stores.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Holds the database and nothing else.
    pub directory: PathBuf,
    /// Decides how many records there are.
    pub database_bytes: u64,
    /// Memory for pages.
    pub cache_bytes: u64,
    /// Whether every commit waits for stable storage, or none.
    pub durable: bool,
    /// Transactions under way at once.
    pub sessions: u64,
    /// Run this long at most.
    pub seconds: f64,
    /// And this many transactions at most.
    pub transactions_max: u64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    /// Transactions that did what was asked.
    pub done: u64,
    /// From the first transaction until everything was on stable storage.
    pub seconds: f64,
    /// Records the database has ever held.
    pub records_ever: u64,
}

impl Contest {
    /// The 2010 mix with all commits alike.
    pub fn mix(&self) -> Mix {
        Mix { lazy_commit_percent: if self.durable { 0 } else { 100 }, ..MIX_2010 }
    }

    fn ledger(&self) -> PathBuf {
        self.directory.join("records-ever")
    }

    fn records_ever(&self) -> Result<u64, String> {
        let text = std::fs::read_to_string(self.ledger()).map_err(|error| error.to_string())?;
        text.trim().parse().map_err(|_| "the number of records is not a number".to_owned())
    }

    fn note_records(&self, records_ever: u64) -> Result<(), String> {
        std::fs::write(self.ledger(), records_ever.to_string()).map_err(|error| error.to_string())
    }
}

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [
        ("store", "engine"),
        ("action", "run"),
        ("directory", "."),
        ("database_bytes", "1073741824"),
        ("cache_mib", "64"),
        ("durable", "1"),
        ("sessions", "8"),
        ("seconds", "5"),
        ("transactions_max", "1000000"),
    ];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let contest = Contest {
        directory: arguments.text("directory").into(),
        database_bytes: arguments.number("database_bytes")?,
        cache_bytes: arguments.number("cache_mib")? << 20,
        durable: arguments.number("durable")? == 1,
        sessions: arguments.number("sessions")?,
        seconds: arguments.decimal("seconds")?,
        transactions_max: arguments.number("transactions_max")?,
    };
    let store = arguments.text("store");
    match arguments.text("action") {
        "prepare" => contest.note_records(prepare(store, &contest)?),
        "run" => {
            let tally = run(store, &contest, contest.records_ever()?)?;
            contest.note_records(tally.records_ever)?;
            println!(
                "{{\"store\": \"{store}\", \"transactions_per_second\": {:.2}, \"transactions\": \
                 {}, \"seconds\": {:.3}}}",
                tally.done as f64 / tally.seconds,
                tally.done,
                tally.seconds
            );
            Ok(())
        }
        other => Err(format!("action={other} is unknown; use prepare or run")),
    }
}

fn prepare(store: &str, contest: &Contest) -> Result<u64, String> {
    match store {
        "engine" => engine::prepare(contest),
        #[cfg(feature = "peers")]
        "sqlite" => peer_sqlite::prepare(contest),
        #[cfg(feature = "peers")]
        "redb" => peer_redb::prepare(contest),
        other => Err(unknown(other)),
    }
}

fn run(store: &str, contest: &Contest, records_ever: u64) -> Result<Tally, String> {
    match store {
        "engine" => engine::run(contest, records_ever),
        #[cfg(feature = "peers")]
        "sqlite" => peer::run(peer_sqlite::Sqlite::open(contest)?, contest, records_ever),
        #[cfg(feature = "peers")]
        "redb" => peer::run(peer_redb::Redb::open(contest)?, contest, records_ever),
        other => Err(unknown(other)),
    }
}

fn unknown(store: &str) -> String {
    format!(
        "store={store} is not in this build; engine always is, sqlite and redb with the feature \
         peers"
    )
}
