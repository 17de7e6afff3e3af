//! The operation mix on an instance: sessions that do one transaction after the other until
//! somebody says stop.
//!
//! A record read for a replacement is read by its key and written anew with the next version; a
//! record read for its own sake is not compared with what it should be, which is the business of a
//! run and not of the engine under measurement.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{Handle, JoinHandle, Nanos, Random};
use plimsoll_prepare::PreparedDatabase;
use plimsoll_workload::Done as Ending;
use plimsoll_workload::records::{
    Commit as Wanted, Kind, Mix, Operation, Population, Previous, Session,
};

/// Where a record holds its version.
const VERSION_PLACE: std::ops::Range<usize> = 20..24;

/// When a session begins its next transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// After thinking for this many times what the last one took; zero is full speed.
    Sluggish(f64),
    /// At fixed intervals, whatever the last one took.
    Every(Nanos),
}

/// See the module text.
pub struct Load {
    instance: Rc<Instance>,
    handle: Handle,
    prepared: Arc<PreparedDatabase>,
    tree: Tree,
    population: RefCell<Population>,
    done: Cell<u64>,
    done_max: Cell<u64>,
    stopping: Cell<bool>,
}

impl Load {
    /// A load on the records of a prepared database.
    pub fn new(
        instance: Rc<Instance>,
        handle: Handle,
        prepared: Arc<PreparedDatabase>,
        tree: Tree,
    ) -> Rc<Load> {
        Rc::new(Load {
            population: RefCell::new(Population::prepared(prepared.records())),
            instance,
            handle,
            prepared,
            tree,
            done: Cell::new(0),
            done_max: Cell::new(u64::MAX),
            stopping: Cell::new(false),
        })
    }

    /// Continues on a database that has held this many records by now.
    pub fn continue_after(&self, records_ever: u64) {
        *self.population.borrow_mut() = Population::prepared(records_ever);
    }

    /// Records the database has ever held.
    pub fn records_ever(&self) -> u64 {
        self.population.borrow().records_ever()
    }

    /// Transactions that did what was asked.
    pub fn done(&self) -> u64 {
        self.done.get()
    }

    /// Lets every session end after its present transaction.
    pub fn stop(&self) {
        self.stopping.set(true);
    }

    /// Lets the sessions end when this many transactions are done.
    pub fn stop_after(&self, transactions: u64) {
        self.done_max.set(transactions);
    }

    /// Starts sessions. Each ends with an error of the engine, or when it is stopped.
    pub fn start(
        self: &Rc<Self>,
        sessions: u64,
        mix: Mix,
        pace: Pace,
        seed: u64,
    ) -> Vec<JoinHandle<Result<()>>> {
        let random = Random::from_seed(seed);
        (0..sessions)
            .map(|number| {
                let random = random.child(&format!("session {number}"));
                let load = self.clone();
                self.handle.spawn(async move { load.session(random, mix, pace).await })
            })
            .collect()
    }

    async fn session(self: Rc<Self>, mut random: Random, mix: Mix, pace: Pace) -> Result<()> {
        let (sluggish, interval) = match pace {
            Pace::Sluggish(factor) => (factor, 0),
            Pace::Every(interval) => (0.0, interval),
        };
        let mut next_start = self.handle.now() + random.below(interval.max(1));
        let mut session = Session::new(random, mix, sluggish);
        let mut previous = None;
        while !self.stopping.get() && self.done.get() < self.done_max.get() {
            let step = session.next(&mut self.population.borrow_mut(), self.handle.now(), previous);
            let intended = if interval > 0 { next_start } else { step.intended };
            if intended > self.handle.now() {
                self.handle.sleep_until(intended).await;
            }
            next_start += interval;
            let result = self.execute(&step.operation).await?;
            if result == Ending::Done {
                self.done.set(self.done.get() + 1);
            }
            previous = Some(Previous {
                intended,
                finished: self.handle.now(),
                operation: step.operation,
                result,
            });
        }
        Ok(())
    }

    async fn execute(&self, operation: &Operation) -> Result<Ending> {
        let transaction = self.instance.begin();
        let how = match operation.commit {
            Wanted::Durable => Commit::Durable,
            Wanted::Lazy => Commit::Lazy,
        };
        match self.change(&transaction, operation).await {
            Ok(()) => transaction.commit(how).await.map(|()| Ending::Done),
            Err(EngineError::RowNotFound) => transaction.rollback().await.map(|()| Ending::Missing),
            Err(EngineError::WriteConflict) => {
                transaction.rollback().await.map(|()| Ending::Conflict)
            }
            Err(error) => Err(error),
        }
    }

    async fn change(&self, transaction: &Transaction, operation: &Operation) -> Result<()> {
        let key = self.prepared.record_key(operation.record);
        match operation.kind {
            Kind::Insert => {
                let record = self.prepared.record(operation.record, 0);
                transaction.insert(self.tree, &key, &record).await
            }
            Kind::Delete => transaction.delete(self.tree, &key).await,
            Kind::Read => self.read(transaction, &key).await.map(|_| ()),
            Kind::Replace => {
                let version = self.read(transaction, &key).await?;
                let record = self.prepared.record(operation.record, version.wrapping_add(1));
                transaction.replace(self.tree, &key, &record).await
            }
        }
    }

    /// The version of a record.
    async fn read(&self, transaction: &Transaction, key: &[u8]) -> Result<u32> {
        let record = transaction.get(self.tree, key).await?.ok_or(EngineError::RowNotFound)?;
        let version = record.get(VERSION_PLACE).and_then(|bytes| bytes.try_into().ok());
        version
            .map(u32::from_le_bytes)
            .ok_or_else(|| EngineError::BadRow("a record too short to hold its version".into()))
    }
}

/// Waits for all sessions.
///
/// # Errors
/// The first error any of them met.
pub async fn finish(sessions: Vec<JoinHandle<Result<()>>>) -> Result<()> {
    for session in sessions {
        session.await?;
    }
    Ok(())
}
