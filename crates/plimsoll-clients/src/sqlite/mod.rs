//! An online store in SQLite: the same rows and the same rules as on the engine, in a library that
//! many know.
//!
//! The journal is a write-ahead log and commits are synchronous in full, so a purchase is as
//! durable as on the engine. SQLite has one writer at a time: sessions queue for it here, in order,
//! and not by its polling. Each session has a connection on a thread of its own, asked once for
//! each step of a visit. Reads go through the page cache of the system: where data is smaller than
//! memory, they say little of the storage.
//!
//! Limit: real time only, because of the threads.

mod customers;
mod prepare;
mod reviews;
mod statements;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_io::{Companion, Handle, Permits, Random};
use plimsoll_workload::store::{
    Catalogue, Entrance, Errand, Population, Step, StoreAudit, StoreCounts, StoreTask, Visit,
    VisitEnd,
};
use rusqlite::{Connection, ErrorCode};

use crate::attempts::Attempts;
use crate::client::{
    ClientError, ClientWork, Failure, PAUSE_NS, Result, StoreClient, VisitBook, acknowledge,
};

use statements::Found;

type Attempt<T> = std::result::Result<T, Failure>;

/// A connection that is made when it is first used, on its thread.
struct Session {
    path: PathBuf,
    open: Option<Connection>,
}

impl Session {
    fn work<T>(&mut self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Attempt<T> {
        let found = self.connection().and_then(work);
        found.map_err(|error| failure(&self.path, &error))
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

/// What an error of the library means for a visit.
fn failure(path: &Path, error: &rusqlite::Error) -> Failure {
    let said = format!("SQLite, {}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Conflict,
        Some(ErrorCode::DiskFull) => Failure::NoSpace(said),
        Some(ErrorCode::DatabaseCorrupt) => Failure::wrong(said),
        Some(ErrorCode::NotADatabase) => {
            Failure::Fatal(ClientError::NotOurs(format!("{said}; name another file")))
        }
        Some(ErrorCode::CannotOpen) => Failure::Fatal(ClientError::Unusable(format!(
            "{said}; the folder must be there and writable"
        ))),
        _ => Failure::Fatal(ClientError::Database {
            database: format!("SQLite, {}", path.display()),
            text: error.to_string(),
        }),
    }
}

/// See the module text.
pub struct SqliteStore {
    handle: Handle,
    path: PathBuf,
    catalogue: Catalogue,
    run: u64,
    /// Those that no visit uses, by session.
    idle: RefCell<BTreeMap<u64, Vec<Companion<Session>>>>,
    sessions_begun: Cell<u64>,
    writer: Permits,
    counts: Cell<StoreCounts>,
    pauses: RefCell<Random>,
}

/// The number of the thread that prepares and audits: no session has it.
const OWN: u64 = u64::MAX;

impl SqliteStore {
    /// Opens the store of a file, which is made if it is not there or empty; the run takes the next
    /// number.
    ///
    /// # Errors
    /// What SQLite reports, a store of another seed or size, or a database of somebody else, which
    /// is left as it is.
    pub async fn open(handle: &Handle, path: &Path, catalogue: Catalogue) -> Result<SqliteStore> {
        let store = SqliteStore {
            handle: handle.clone(),
            path: path.to_owned(),
            catalogue,
            run: 0,
            idle: RefCell::default(),
            sessions_begun: Cell::new(0),
            writer: Permits::new(1),
            counts: Cell::default(),
            pauses: RefCell::new(Random::from_seed(catalogue.seed()).child("pauses")),
        };
        let begun = store
            .ask(move |session| {
                session.work(|connection| prepare::begin_run(connection, &catalogue))
            })
            .await?;
        let begun = begun.map_err(|foreign| {
            foreign.refusal(&store.path.display().to_string(), &store.catalogue, "another file")
        })?;
        Ok(SqliteStore { run: begun.run, counts: Cell::new(begun.counts), ..store })
    }

    /// Which run of the database this is, from 1 on.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The thread of a session that no visit uses, or another one.
    fn companion(&self, session: u64) -> Result<Companion<Session>> {
        let idle = self.idle.borrow_mut().get_mut(&session).and_then(Vec::pop);
        let path = self.path.clone();
        match idle {
            Some(idle) => Ok(idle),
            None => Ok(Companion::new(&self.handle, "sqlite session", move || Session {
                path,
                open: None,
            })?),
        }
    }

    fn put_back(&self, session: u64, companion: Companion<Session>) {
        self.idle.borrow_mut().entry(session).or_default().push(companion);
    }

    /// Asks a connection that no session has.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Session) -> Attempt<T> + Send + 'static,
    ) -> Result<T> {
        let companion = self.companion(OWN)?;
        let (answer, _) = companion.call(work).await;
        self.put_back(OWN, companion);
        answer.map_err(|failure| failure.into_error(&format!("SQLite, {}", self.path.display())))
    }

    async fn steps(
        &self,
        on: &Companion<Session>,
        task: &StoreTask,
        book: &mut VisitBook,
    ) -> Attempt<VisitEnd> {
        let customer = self.enter(on, task, book).await?;
        for search in &task.searches {
            let (search, catalogue) = (search.clone(), self.catalogue);
            let work = move |session: &mut Session| {
                session.work(|open| statements::search(open, &search, &catalogue))
            };
            let (found, finished) = on.call(work).await;
            book.found(right(found?)?.len());
            book.note(Step::Search, finished);
        }
        for errand in &task.errands {
            self.errand(on, errand, customer, book).await?;
        }
        let (lines, catalogue) = (task.lines.clone(), self.catalogue);
        let work = move |session: &mut Session| {
            session.work(|open| statements::price(open, &lines, &catalogue))
        };
        let (net_cents, finished) = on.call(work).await;
        let net_cents = right(net_cents?)?;
        book.note(Step::Price, finished);
        let mut lines = task.lines.clone();
        lines.sort_unstable();
        let mut attempts = Attempts::begin(&self.handle);
        loop {
            let turn = self.writer.acquire().await;
            let lines = lines.clone();
            let work = move |session: &mut Session| {
                session.work(|open| statements::purchase(open, customer, &lines, net_cents))
            };
            let (end, finished) = on.call(work).await;
            drop(turn);
            match end {
                Ok(end) => {
                    if end == VisitEnd::Sold {
                        self.count(|counts| counts.orders += 1);
                    }
                    book.note(Step::Purchase, finished);
                    return Ok(end);
                }
                Err(Failure::Conflict) if attempts.again(&self.handle, &self.pauses).await => {
                    book.retried()
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Those that write wait for the writer before them.
    async fn errand(
        &self,
        on: &Companion<Session>,
        errand: &Errand,
        customer: i64,
        book: &mut VisitBook,
    ) -> Attempt<()> {
        let is_reading = matches!(errand, Errand::FindReviews { .. } | Errand::ReadReviews { .. });
        let turn = match is_reading {
            true => None,
            false => Some(self.writer.acquire().await),
        };
        let (asked, catalogue) = (errand.clone(), self.catalogue);
        let work = move |session: &mut Session| {
            session.work(|open| reviews::errand(open, &asked, customer, &catalogue))
        };
        let (found, finished) = on.call(work).await;
        drop(turn);
        book.found(right(found?)?);
        self.count(|counts| acknowledge(errand, counts));
        book.note(errand.step(), finished);
        Ok(())
    }

    async fn enter(
        &self,
        on: &Companion<Session>,
        task: &StoreTask,
        book: &mut VisitBook,
    ) -> Attempt<i64> {
        match task.entrance {
            Entrance::Login { customer } => {
                let catalogue = self.catalogue;
                let work = move |session: &mut Session| {
                    session.work(|open| {
                        statements::log_in(open, &format!("user{customer}"), &catalogue)
                    })
                };
                let (found, finished) = on.call(work).await;
                let (number, _titles) = right(found?)?;
                book.note(Step::Login, finished);
                match number == customer as i64 {
                    true => Ok(number),
                    false => Err(Failure::wrong(format!(
                        "user{customer} is customer {number}, not {customer}"
                    ))),
                }
            }
            Entrance::SignUp { number } => {
                let customer = self.catalogue.new_customer(self.run, task.session, number);
                let turn = self.writer.acquire().await;
                let work = move |session: &mut Session| {
                    session.work(|open| statements::sign_up(open, &customer))
                };
                let (number, finished) = on.call(work).await;
                drop(turn);
                let number = number?;
                self.count(|counts| counts.customers += 1);
                book.note(Step::SignUp, finished);
                Ok(number)
            }
        }
    }

    fn count(&self, add: impl FnOnce(&mut StoreCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}

impl StoreClient for SqliteStore {
    fn place(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        Some(&self.catalogue)
    }

    fn population(&self) -> Population {
        Population::from(&self.catalogue)
    }

    fn begin_session(&self) -> u64 {
        self.sessions_begun.replace(self.sessions_begun.get() + 1)
    }

    fn counts(&self) -> StoreCounts {
        self.counts.get()
    }

    fn visit<'a>(&'a self, task: &'a StoreTask) -> ClientWork<'a, Visit> {
        Box::pin(async move {
            let mut book = VisitBook::new(task, self.handle.now());
            let companion = self.companion(task.session)?;
            let ended = self.steps(&companion, task, &mut book).await;
            self.put_back(task.session, companion);
            if matches!(ended, Err(Failure::NoSpace(_))) {
                self.handle.sleep(PAUSE_NS).await;
            }
            book.end(ended)
        })
    }

    fn audit(&self) -> ClientWork<'_, StoreAudit> {
        let has_reviews = self.catalogue.reviews() > 0;
        Box::pin(self.ask(move |session| {
            let audit = session.work(statements::audit)?;
            match has_reviews {
                true => Ok(session.work(|open| reviews::counts(open))?.into_audit(audit)),
                false => Ok(audit),
            }
        }))
    }

    fn size_bytes(&self) -> ClientWork<'_, u64> {
        Box::pin(self.ask(|session| session.work(|open| statements::size_bytes(open))))
    }

    fn stock_and_sales(&self) -> ClientWork<'_, Vec<(i64, i64)>> {
        Box::pin(self.ask(|session| session.work(|open| statements::stock_and_sales(open))))
    }

    /// What the write-ahead log holds goes into the file, which is then the whole store.
    fn close(&self) -> ClientWork<'_, ()> {
        Box::pin(async move {
            for (session, companions) in self.idle.take() {
                if session != OWN {
                    drop(companions);
                }
            }
            self.ask(|session| session.work(|open| statements::fold_log(open))).await?;
            self.idle.take();
            Ok(())
        })
    }
}

fn right<T>(found: Found<T>) -> Attempt<T> {
    found.map_err(Failure::wrong)
}
