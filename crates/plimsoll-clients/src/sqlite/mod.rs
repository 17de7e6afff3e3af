//! An online store in SQLite: the same rows and the same rules as on the engine, in a library that many know.
//!
//! The journal is a write-ahead log and commits are synchronous in full, so a purchase is as durable as on the engine. SQLite has one writer at a
//! time: sessions queue for it here, in order, and not by its polling. Each session has a connection on a thread of its own, asked once
//! for each step of a visit. Reads go through the page cache of the system: where data is smaller than memory, they say little of
//! the storage.
//!
//! Limit: real time only, because of the threads.

mod prepare;
mod statements;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{Companion, CompanionError, Handle, Nanos, Permits};
use plimsoll_workload::store::{
    Catalogue, Entrance, Scale, Step, StoreAudit, StoreCounts, StoreTask, Visit, VisitEnd,
};
use rusqlite::Connection;

use statements::Found;

/// Why the store cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqliteError {
    /// SQLite, or the disk below it.
    #[error("SQLite, {path}: {text}")]
    Database {
        /// The file.
        path: String,
        /// What it said.
        text: String,
    },
    /// A row is not what was written.
    #[error("{0}")]
    WrongContent(String),
    /// The file holds something else than what is asked for.
    #[error("{0}")]
    NotOurs(String),
    /// A session has no thread.
    #[error(transparent)]
    Companion(#[from] CompanionError),
}

type Result<T> = std::result::Result<T, SqliteError>;

/// A connection that is made when it is first used, on its thread.
struct Session {
    path: PathBuf,
    open: Option<Connection>,
}

impl Session {
    fn work<T>(&mut self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T> {
        let found = self.connection().and_then(work);
        found.map_err(|error| SqliteError::Database {
            path: self.path.display().to_string(),
            text: error.to_string(),
        })
    }

    fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
        if self.open.is_none() {
            let connection = Connection::open(&self.path)?;
            statements::set_up(&connection)?;
            self.open = Some(connection);
        }
        match &mut self.open {
            Some(connection) => Ok(connection),
            None => unreachable!("it was just opened"),
        }
    }
}

/// See the module text.
pub struct SqliteStore {
    handle: Handle,
    path: PathBuf,
    catalogue: Catalogue,
    run: u64,
    sessions: RefCell<BTreeMap<u64, Rc<Companion<Session>>>>,
    sessions_begun: Cell<u64>,
    writer: Permits,
    counts: Cell<StoreCounts>,
}

/// The number of the thread that prepares and audits: no session has it.
const OWN: u64 = u64::MAX;

impl SqliteStore {
    /// Opens the store of a file, which is made if it is not there or empty; the run takes the next number.
    ///
    /// # Errors
    /// What SQLite reports, a store of another seed or size, or a database of somebody else, which is left as it is.
    pub async fn open(handle: &Handle, path: &Path, catalogue: Catalogue) -> Result<SqliteStore> {
        let store = SqliteStore {
            handle: handle.clone(),
            path: path.to_owned(),
            catalogue,
            run: 0,
            sessions: RefCell::default(),
            sessions_begun: Cell::new(0),
            writer: Permits::new(1),
            counts: Cell::default(),
        };
        let begun = store
            .ask(OWN, move |session| {
                session.work(|connection| prepare::begin_run(connection, &catalogue))
            })
            .await?;
        let begun = begun.map_err(|foreign| store.not_ours(&foreign))?;
        Ok(SqliteStore {
            run: begun.run,
            counts: Cell::new(begun.counts),
            ..store
        })
    }

    fn not_ours(&self, foreign: &prepare::Foreign) -> SqliteError {
        let path = self.path.display();
        SqliteError::NotOurs(match foreign {
            prepare::Foreign::Tables(table) => format!(
                "{path} is a database of somebody else: it has a table {table} and no plimsoll_marker; name another file"
            ),
            prepare::Foreign::Store { seed, megabytes } => {
                let scale = Scale::of_megabytes(*megabytes);
                let size = scale.map_or_else(|_| format!("{megabytes} MB"), |scale| scale.to_string());
                format!(
                    "{path} holds a store of {size} made with seed {seed}, not one of {} with seed {}; name another file",
                    self.catalogue.scale(),
                    self.catalogue.seed()
                )
            }
        })
    }

    /// What it holds.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Which run of the database this is, from 1 on.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// A number for a session that no other session of this run has.
    pub fn begin_session(&self) -> u64 {
        self.sessions_begun.replace(self.sessions_begun.get() + 1)
    }

    /// What it held when it was opened, and what was acknowledged since.
    pub fn counts(&self) -> StoreCounts {
        self.counts.get()
    }

    /// Asks the connection of a session; answers when its work ended.
    async fn ask_timed<T: Send + 'static>(
        &self,
        session: u64,
        work: impl FnOnce(&mut Session) -> Result<T> + Send + 'static,
    ) -> Result<(T, Nanos)> {
        let known = self.sessions.borrow().get(&session).cloned();
        let companion = match known {
            Some(companion) => companion,
            None => {
                let path = self.path.clone();
                let made = Companion::new(&self.handle, "sqlite session", move || Session {
                    path,
                    open: None,
                })?;
                let made = Rc::new(made);
                self.sessions.borrow_mut().insert(session, made.clone());
                made
            }
        };
        let (answer, finished) = companion.call(work).await;
        Ok((answer?, finished))
    }

    async fn ask<T: Send + 'static>(
        &self,
        session: u64,
        work: impl FnOnce(&mut Session) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        Ok(self.ask_timed(session, work).await?.0)
    }

    /// Carries a visit out. A step begins when the one before has ended, and ends when the work of its thread has.
    ///
    /// # Errors
    /// What SQLite reports, or a row that is not what was written.
    pub async fn visit(&self, task: &StoreTask) -> Result<Visit> {
        let mut visit = Visit {
            steps: Vec::with_capacity(task.searches.len() + 3),
            rows_found: 0,
            retries: 0,
            end: VisitEnd::Sold,
        };
        let mut begun = self.handle.now();
        let mut note = |visit: &mut Visit, step: Step, finished: Nanos| {
            let took = finished.saturating_sub(std::mem::replace(&mut begun, finished));
            visit.steps.push((step, took));
        };
        let customer = self
            .enter(task, &mut |visit_step, finished| {
                note(&mut visit, visit_step, finished)
            })
            .await?;
        for search in &task.searches {
            let (search, catalogue) = (search.clone(), self.catalogue);
            let work = move |session: &mut Session| {
                session.work(|open| statements::search(open, &search, &catalogue))
            };
            let (found, finished) = self.ask_timed(task.session, work).await?;
            visit.rows_found += right(found)?.len() as u32;
            note(&mut visit, Step::Search, finished);
        }
        let (lines, catalogue) = (task.lines.clone(), self.catalogue);
        let work =
            move |session: &mut Session| session.work(|open| statements::price(open, &lines, &catalogue));
        let (net_cents, finished) = self.ask_timed(task.session, work).await?;
        let net_cents = right(net_cents)?;
        note(&mut visit, Step::Price, finished);
        let mut lines = task.lines.clone();
        lines.sort_unstable();
        let turn = self.writer.acquire().await;
        let work = move |session: &mut Session| {
            session.work(|open| statements::purchase(open, customer, &lines, net_cents))
        };
        let (end, finished) = self.ask_timed(task.session, work).await?;
        drop(turn);
        if end == VisitEnd::Sold {
            self.count(|counts| counts.orders += 1);
        }
        visit.end = end;
        note(&mut visit, Step::Purchase, finished);
        Ok(visit)
    }

    async fn enter(&self, task: &StoreTask, note: &mut impl FnMut(Step, Nanos)) -> Result<i64> {
        match task.entrance {
            Entrance::Login { customer } => {
                let catalogue = self.catalogue;
                let work = move |session: &mut Session| {
                    session.work(|open| statements::log_in(open, &format!("user{customer}"), &catalogue))
                };
                let (found, finished) = self.ask_timed(task.session, work).await?;
                note(Step::Login, finished);
                let (number, _titles) = right(found)?;
                match number == customer as i64 {
                    true => Ok(number),
                    false => Err(SqliteError::WrongContent(format!(
                        "user{customer} is customer {number}, not {customer}"
                    ))),
                }
            }
            Entrance::SignUp { number } => {
                let customer = self.catalogue.new_customer(self.run, task.session, number);
                let turn = self.writer.acquire().await;
                let work =
                    move |session: &mut Session| session.work(|open| statements::sign_up(open, &customer));
                let (number, finished) = self.ask_timed(task.session, work).await?;
                drop(turn);
                self.count(|counts| counts.customers += 1);
                note(Step::SignUp, finished);
                Ok(number)
            }
        }
    }

    fn count(&self, add: impl FnOnce(&mut StoreCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }

    /// What the store holds, as one snapshot sees it.
    ///
    /// # Errors
    /// What SQLite reports.
    pub async fn audit(&self) -> Result<StoreAudit> {
        self.ask(OWN, |session| session.work(statements::audit)).await
    }

    /// Stock and sales of every product, in the order of their numbers: what must be the same behind every kind of database.
    ///
    /// # Errors
    /// What SQLite reports.
    pub async fn stock_and_sales(&self) -> Result<Vec<(i64, i64)>> {
        self.ask(OWN, |session| {
            session.work(|open| statements::stock_and_sales(open))
        })
        .await
    }
}

fn right<T>(found: Found<T>) -> Result<T> {
    found.map_err(SqliteError::WrongContent)
}
