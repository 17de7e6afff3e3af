//! An online store in MySQL or MariaDB: the same rows and the same rules as on the engine.
//!
//! The library blocks, so each connection lives on a thread of its own, asked once for each step of a visit. A purchase is one transaction of
//! several statements, as in the original driver for this server; each of them costs a round trip.
//!
//! Limits: real time only, because of the threads; no TLS; a store that somebody else made is not driven here.

mod prepare;
mod statements;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use mysql::{Conn, Error, OptsBuilder};
use plimsoll_io::{Companion, Handle, Nanos, Random};
use plimsoll_workload::store::{
    Catalogue, Entrance, Population, Step, StoreAudit, StoreCounts, StoreTask, Visit, VisitEnd,
};

use crate::attempts::Attempts;
use crate::client::{
    ClientError, ClientWork, Failure, Known, PAUSE_NS, Result, StoreClient, VisitBook, net_cents,
};

type Attempt<T> = std::result::Result<T, Failure>;

/// How a server is reached and who comes.
#[derive(Clone)]
pub struct Access {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// By what; never shown.
    pub password: Option<String>,
    /// What is used there.
    pub database: String,
    /// A server that does not answer for so long is lost.
    pub timeout_ns: Nanos,
}

impl Access {
    /// Where it is, without a password.
    pub fn place(&self) -> String {
        format!(
            "mysql://{}@{}:{}/{}",
            self.user, self.host, self.port, self.database
        )
    }

    fn connect(&self) -> std::result::Result<Conn, Error> {
        let timeout = Some(Duration::from_nanos(self.timeout_ns));
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(self.host.as_str()))
            .tcp_port(self.port)
            .prefer_socket(false)
            .tcp_nodelay(true)
            .user(Some(self.user.as_str()))
            .pass(self.password.as_deref())
            .db_name(Some(self.database.as_str()))
            .tcp_connect_timeout(timeout)
            .read_timeout(timeout)
            .write_timeout(timeout)
            .stmt_cache_size(128);
        Conn::new(options)
    }

    fn says(&self, text: impl std::fmt::Display) -> String {
        format!("{}: {text}", self.place())
    }

    /// What an error of the library means for a visit. The numbers are those of the server's manual.
    fn failure(&self, error: &Error) -> Failure {
        let Error::MySqlError(said) = error else {
            return match error {
                Error::IoError(_) | Error::CodecError(_) | Error::DriverError(_) => {
                    Failure::Lost(self.says(error))
                }
                other => Failure::Fatal(ClientError::Unusable(self.says(other))),
            };
        };
        let text = self.says(format!("{} (error {})", said.message, said.code));
        match said.code {
            1205 | 1213 | 1020 => Failure::Conflict,
            1040 | 1203 | 1226 => Failure::Busy(text),
            1053 | 1927 | 1152 | 1158..=1161 => Failure::Lost(text),
            1021 | 1114 => Failure::NoSpace(text),
            1044 | 1045 | 1251 | 1698 => Failure::Fatal(ClientError::Unusable(format!(
                "{text}; see to the user in the address and to password_file"
            ))),
            1049 => Failure::Fatal(ClientError::Unusable(format!(
                "{text}; make it (`CREATE DATABASE {}`) or name another one in the address",
                self.database
            ))),
            1034 | 1194 | 1712 => Failure::wrong(text),
            code => Failure::Fatal(ClientError::Database {
                database: self.place(),
                text: format!("{} (error {code})", said.message),
            }),
        }
    }
}

/// A connection that is made when it is first used, on its thread.
struct Session {
    access: Access,
    open: Option<Conn>,
}

impl Session {
    /// Connects if need be. A connection that broke is not used again.
    fn connect(&mut self) -> Attempt<()> {
        if self.open.is_none() {
            let opened = self.access.connect();
            self.open = Some(opened.map_err(|error| self.access.failure(&error))?);
        }
        Ok(())
    }

    fn work<T>(&mut self, work: impl FnOnce(&mut Conn) -> std::result::Result<T, Error>) -> Attempt<T> {
        self.connect()?;
        let Some(open) = &mut self.open else {
            unreachable!("it was just opened")
        };
        let answer = work(open).map_err(|error| self.access.failure(&error));
        if matches!(answer, Err(Failure::Lost(_) | Failure::Fatal(_))) {
            self.open = None;
        }
        answer
    }
}

/// See the module text.
pub struct MysqlStore {
    handle: Handle,
    access: Access,
    catalogue: Catalogue,
    run: u64,
    /// Those that no visit uses, by session.
    idle: RefCell<BTreeMap<u64, Vec<Companion<Session>>>>,
    sessions_begun: Cell<u64>,
    counts: Cell<StoreCounts>,
    pauses: RefCell<Random>,
}

/// The number of the thread that prepares and audits: no session has it.
const OWN: u64 = u64::MAX;

impl MysqlStore {
    /// Opens the store of a database, which is made if the database is empty; the run takes the next number.
    ///
    /// # Errors
    /// A server that lets nobody in, a store of another seed or size, or a database of somebody else, which is left as it is.
    pub async fn open(handle: &Handle, access: Access, catalogue: Catalogue) -> Result<MysqlStore> {
        let store = MysqlStore {
            handle: handle.clone(),
            access,
            catalogue,
            run: 0,
            idle: RefCell::default(),
            sessions_begun: Cell::new(0),
            counts: Cell::default(),
            pauses: RefCell::new(Random::from_seed(catalogue.seed()).child("pauses")),
        };
        let begun = store
            .ask(move |connection| prepare::begin_run(connection, &catalogue))
            .await?;
        let begun = begun.map_err(|foreign| {
            foreign.refusal(&store.access.place(), &store.catalogue, "another database")
        })?;
        Ok(MysqlStore {
            run: begun.run,
            counts: Cell::new(begun.counts),
            ..store
        })
    }

    /// The thread of a session that no visit uses, or another one.
    fn companion(&self, session: u64) -> Result<Companion<Session>> {
        let idle = self.idle.borrow_mut().get_mut(&session).and_then(Vec::pop);
        let access = self.access.clone();
        match idle {
            Some(idle) => Ok(idle),
            None => Ok(Companion::new(&self.handle, "mysql session", move || Session {
                access,
                open: None,
            })?),
        }
    }

    fn put_back(&self, session: u64, companion: Companion<Session>) {
        self.idle.borrow_mut().entry(session).or_default().push(companion);
    }

    /// Asks a connection that no session has, after those of the sessions are given back: the server may have no more than they had.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> std::result::Result<T, Error> + Send + 'static,
    ) -> Result<T> {
        // Its own of before may have broken meanwhile, which only asking would show.
        self.idle.take();
        let companion = self.companion(OWN)?;
        let mut attempts = Attempts::begin(&self.handle);
        while let (Err(Failure::Busy(_) | Failure::Lost(_)), _) = companion.call(Session::connect).await {
            if !attempts.again(&self.handle, &self.pauses).await {
                break;
            }
        }
        let (answer, _) = companion.call(move |session| session.work(work)).await;
        self.put_back(OWN, companion);
        answer.map_err(|failure| failure.into_error(&self.access.place()))
    }

    /// Where there is no connection, it is tried once more a second later.
    async fn connect(&self, on: &Companion<Session>) -> Attempt<()> {
        match on.call(Session::connect).await.0 {
            Err(Failure::Lost(_) | Failure::Busy(_)) => {
                self.handle.sleep(PAUSE_NS).await;
                on.call(Session::connect).await.0
            }
            connected => connected,
        }
    }

    async fn steps(
        &self,
        on: &Companion<Session>,
        task: &StoreTask,
        book: &mut VisitBook,
    ) -> Attempt<VisitEnd> {
        self.connect(on).await?;
        let known = Known(Some(&self.catalogue));
        let customer = self.enter(on, task, book).await?;
        for search in &task.searches {
            let search = search.clone();
            let (found, finished) = on
                .call(move |session| session.work(|open| statements::search(open, &search)))
                .await;
            let found = found?;
            for (number, title, actor, price) in &found {
                known.check_product(*number, title, Some(actor), Some(*price))?;
            }
            book.found(found.len());
            book.note(Step::Search, finished);
        }
        let lines = task.lines.clone();
        let (prices, finished) = on
            .call(move |session| session.work(|open| statements::prices(open, &lines)))
            .await;
        let prices = prices?;
        let price_of = |number| {
            prices
                .iter()
                .find(|(product, _)| *product == number)
                .map(|(_, cents)| *cents)
        };
        let net = net_cents(&task.lines, known, price_of)?;
        book.note(Step::Price, finished);
        self.purchase(on, customer, task, net, book).await
    }

    async fn enter(&self, on: &Companion<Session>, task: &StoreTask, book: &mut VisitBook) -> Attempt<i64> {
        let known = Known(Some(&self.catalogue));
        match task.entrance {
            Entrance::Login { customer } => {
                let name = format!("user{customer}");
                let (found, finished) = on
                    .call(move |session| session.work(|open| statements::log_in(open, &name)))
                    .await;
                let Some(found) = found? else {
                    return Err(Failure::wrong(format!("customer user{customer} is missing")));
                };
                known.check_customer(customer, found.customer)?;
                for (product, title) in &found.titles {
                    known.check_product(*product, title, None, None)?;
                }
                book.note(Step::Login, finished);
                Ok(found.customer)
            }
            Entrance::SignUp { number } => {
                let customer = self.catalogue.new_customer(self.run, task.session, number);
                let (number, finished) = on
                    .call(move |session| session.work(|open| statements::sign_up(open, &customer)))
                    .await;
                match &number {
                    Ok(_) => self.count(|counts| counts.customers += 1),
                    Err(Failure::Lost(_)) => self.count(|counts| counts.customers_unknown += 1),
                    Err(_) => {}
                }
                book.note(Step::SignUp, finished);
                number
            }
        }
    }

    async fn purchase(
        &self,
        on: &Companion<Session>,
        customer: i64,
        task: &StoreTask,
        net: i64,
        book: &mut VisitBook,
    ) -> Attempt<VisitEnd> {
        // Everyone takes products in the same order.
        let mut sorted = task.lines.clone();
        sorted.sort_unstable();
        let mut attempts = Attempts::begin(&self.handle);
        loop {
            let lines = sorted.clone();
            let buying = move |session: &mut Session| {
                session.work(|open| statements::purchase(open, customer, &lines, net))
            };
            let (end, finished) = on.call(buying).await;
            match end {
                Ok(end) => {
                    if end == VisitEnd::Sold {
                        self.count(|counts| counts.orders += 1);
                    }
                    book.note(Step::Purchase, finished);
                    return Ok(end);
                }
                Err(Failure::Conflict) if attempts.again(&self.handle, &self.pauses).await => book.retried(),
                Err(failure) => {
                    if matches!(failure, Failure::Lost(_)) {
                        self.count(|counts| counts.orders_unknown += 1);
                    }
                    return Err(failure);
                }
            }
        }
    }

    fn count(&self, add: impl FnOnce(&mut StoreCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}

impl StoreClient for MysqlStore {
    fn place(&self) -> String {
        self.access.place()
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
        Box::pin(self.ask(statements::audit))
    }

    fn size_bytes(&self) -> ClientWork<'_, u64> {
        Box::pin(self.ask(statements::size_bytes))
    }

    fn stock_and_sales(&self) -> ClientWork<'_, Vec<(i64, i64)>> {
        Box::pin(self.ask(statements::stock_and_sales))
    }

    fn close(&self) -> ClientWork<'_, ()> {
        Box::pin(async move {
            self.idle.take();
            Ok(())
        })
    }
}
