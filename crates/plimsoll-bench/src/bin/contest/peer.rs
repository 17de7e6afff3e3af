//! Stores that block: one thread for each session.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_bench::field::prepared_2010;
use plimsoll_io::Random;
use plimsoll_prepare::PreparedDatabase;
use plimsoll_workload::Done as Ending;
use plimsoll_workload::records::{Kind, Operation, Population, Previous, Session};

use crate::{Contest, Tally};

/// Where a record holds its version.
const VERSION_PLACE: std::ops::Range<usize> = 20..24;

/// A store that several threads may use.
pub trait Peer: Sync {
    /// What a thread works with.
    type Connection;
    /// Makes one.
    fn connect(&self) -> Result<Self::Connection, String>;
    /// Reads a record.
    fn read(
        &self,
        connection: &mut Self::Connection,
        number: u64,
    ) -> Result<Option<Vec<u8>>, String>;
    /// Inserts a record and commits.
    fn insert(
        &self,
        connection: &mut Self::Connection,
        number: u64,
        record: &[u8],
    ) -> Result<(), String>;
    /// Deletes a record and commits; whether there was one.
    fn delete(&self, connection: &mut Self::Connection, number: u64) -> Result<bool, String>;
    /// Reads a record and writes what `renew` makes of it, in one transaction; whether there was
    /// one.
    fn replace(
        &self,
        connection: &mut Self::Connection,
        number: u64,
        renew: &dyn Fn(&[u8]) -> Vec<u8>,
    ) -> Result<bool, String>;
    /// Closes; everything is on stable storage afterwards.
    fn finish(self) -> Result<(), String>;
}

struct Shared<'a, P> {
    peer: &'a P,
    prepared: PreparedDatabase,
    population: Mutex<Population>,
    stopping: AtomicBool,
    done: AtomicU64,
    started: Instant,
}

/// Runs the mix.
pub fn run<P: Peer>(peer: P, contest: &Contest, records_ever: u64) -> Result<Tally, String> {
    let shared = Shared {
        peer: &peer,
        prepared: prepared(contest)?,
        population: Mutex::new(Population::prepared(records_ever)),
        stopping: AtomicBool::new(false),
        done: AtomicU64::new(0),
        started: Instant::now(),
    };
    let random = Random::from_seed(records_ever);
    let (done, records_ever) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..contest.sessions)
            .map(|number| {
                let (shared, random) = (&shared, random.child(&format!("session {number}")));
                scope.spawn(move || session(shared, contest, random))
            })
            .collect();
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
            if shared.started.elapsed().as_secs_f64() >= contest.seconds {
                shared.stopping.store(true, Ordering::Relaxed);
            }
        }
        for thread in threads {
            thread.join().map_err(|_| "a session panicked".to_owned())??;
        }
        let population = shared.population.lock().map_err(|error| error.to_string())?;
        Ok::<_, String>((shared.done.load(Ordering::Relaxed), population.records_ever()))
    })?;
    let started = shared.started;
    drop(shared);
    peer.finish()?;
    Ok(Tally { done, seconds: started.elapsed().as_secs_f64(), records_ever })
}

/// The source of records; the same as the engine's.
pub fn prepared(contest: &Contest) -> Result<PreparedDatabase, String> {
    let prepared = prepared_2010(contest.database_bytes).map_err(|error| error.to_string())?;
    PreparedDatabase::new(prepared.plan().clone()).map_err(|error| error.to_string())
}

fn session<P: Peer>(
    shared: &Shared<'_, P>,
    contest: &Contest,
    random: Random,
) -> Result<(), String> {
    let mut connection = shared.peer.connect()?;
    let mut session = Session::new(random, contest.mix(), 0.0);
    let mut previous = None;
    let now = || shared.started.elapsed().as_nanos() as u64;
    while !shared.stopping.load(Ordering::Relaxed)
        && shared.done.load(Ordering::Relaxed) < contest.transactions_max
    {
        let step = {
            let mut population = shared.population.lock().map_err(|error| error.to_string())?;
            session.next(&mut population, now(), previous)
        };
        let found = execute(shared, &mut connection, &step.operation)?;
        shared.done.fetch_add(u64::from(found), Ordering::Relaxed);
        previous = Some(Previous {
            intended: step.intended,
            operation: step.operation,
            finished: now(),
            result: if found { Ending::Done } else { Ending::Missing },
        });
    }
    Ok(())
}

fn execute<P: Peer>(
    shared: &Shared<'_, P>,
    connection: &mut P::Connection,
    operation: &Operation,
) -> Result<bool, String> {
    let (number, prepared) = (operation.record, &shared.prepared);
    match operation.kind {
        Kind::Insert => {
            let record = prepared.record(number, 0);
            shared.peer.insert(connection, number, &record).map(|()| true)
        }
        Kind::Delete => shared.peer.delete(connection, number),
        Kind::Read => shared.peer.read(connection, number).map(|found| found.is_some()),
        Kind::Replace => shared.peer.replace(connection, number, &|record| {
            let version = record.get(VERSION_PLACE).and_then(|bytes| bytes.try_into().ok());
            let version = version.map_or(0, u32::from_le_bytes);
            prepared.record(number, version.wrapping_add(1))
        }),
    }
}
