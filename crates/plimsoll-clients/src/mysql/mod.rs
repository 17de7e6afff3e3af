//! An online store in MySQL or MariaDB: the same rows and the same rules as on the engine.
//!
//! The library blocks, so each connection lives on a thread of its own, asked once for each step of
//! a visit. A purchase is one transaction of several statements, as in the original driver for this
//! server; each of them costs a round trip.
//!
//! A store that was there before (`source = "existing"`) is driven as it is, as on PostgreSQL.
//!
//! Limits: real time only, because of the threads; no TLS.

mod prepare;
mod reviews;
mod rows;
mod statements;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use mysql::{Conn, Error, OptsBuilder};
use plimsoll_io::{Companion, Handle, NANOS_PER_MILLISECOND, Nanos, Random};
use plimsoll_workload::store::{
    Catalogue, Entrance, Errand, Population, Scale, Search, SearchBy, Step, StoreAudit,
    StoreCounts, StoreTask, Visit, VisitEnd,
};

use crate::attempts::Attempts;
use crate::client::{
    Claim, ClientError, ClientWork, Failure, Hold, Known, Mode, PAUSE_NS, Result, SameDatabase,
    Source, StoreClient, VisitBook, acknowledge, claimed, connected, leave_unknown, marker_of,
    net_cents, no_dvd_store, own_lock, population_of,
};
use crate::endpoints::{Distribution, Endpoints, Open};
use crate::vocabulary::Vocabulary;

type Attempt<T> = std::result::Result<T, Failure>;

/// How long an answer is waited for that takes as long as a store is large.
const ANSWER_MAX: Duration = Duration::from_secs(86_400);
/// By so much silence a machine that is gone is told from one that works.
const KEEPALIVE_MS: u32 = 60_000;

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
        format!("mysql://{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }

    /// An answer that takes as long as a store is large, such as that of an audit, is waited for by
    /// who is patient.
    fn connect(&self, is_patient: bool) -> std::result::Result<Conn, Error> {
        let timeout = Some(Duration::from_nanos(self.timeout_ns));
        let answer_timeout = if is_patient { Some(ANSWER_MAX) } else { timeout };
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(self.host.as_str()))
            .tcp_port(self.port)
            .prefer_socket(false)
            .tcp_nodelay(true)
            .user(Some(self.user.as_str()))
            .pass(self.password.as_deref())
            .db_name(Some(self.database.as_str()))
            .tcp_connect_timeout(timeout)
            .read_timeout(answer_timeout)
            .write_timeout(timeout)
            .tcp_keepalive_time_ms(Some(KEEPALIVE_MS))
            .init(statements::SESSION.to_vec())
            .stmt_cache_size(128);
        Conn::new(options)
    }

    fn says(&self, text: impl std::fmt::Display) -> String {
        format!("{}: {text}", self.place())
    }

    /// What an error of the library means for a visit. The numbers are those of the server's
    /// manual.
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
            1142 => Failure::Fatal(ClientError::Unusable(format!(
                "{text}; grant it to the user in the address"
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
    /// Of each endpoint.
    accesses: Vec<Access>,
    /// Which of them it speaks to.
    at: usize,
    is_patient: bool,
    open: Option<Conn>,
}

/// A client as endpoints know it, with its thread.
struct Seat {
    client: u64,
    companion: Companion<Session>,
    open: Option<Open>,
}

impl Session {
    /// Connects if need be. A connection that broke is not used again.
    fn connect(&mut self) -> Attempt<()> {
        if self.open.is_none() {
            let access = &self.accesses[self.at];
            if self.is_patient {
                // A server that says nothing at all is found out first.
                access.connect(false).map_err(|error| access.failure(&error))?;
            }
            self.open =
                Some(access.connect(self.is_patient).map_err(|error| access.failure(&error))?);
        }
        Ok(())
    }

    /// Connects to this endpoint, in the place of any other.
    fn connect_to(&mut self, at: usize) -> Attempt<()> {
        (self.at, self.open) = (at, None);
        self.connect()
    }

    /// Whether the connection that claimed the database still does; nothing where it does, and
    /// otherwise what the server answers to another one, by whichever endpoint lets it in.
    fn hold(&mut self, own_lock: i64) -> Attempt<Option<Claim>> {
        if self.open.as_mut().is_some_and(|open| open.ping().is_ok()) {
            return Ok(None);
        }
        let mut connected = Ok(());
        for at in 0..self.accesses.len() {
            connected = self.connect_to(at);
            if !matches!(connected, Err(Failure::Lost(_) | Failure::Busy(_))) {
                break;
            }
        }
        connected?;
        let claim = self.work(|open| statements::claim(open, own_lock))?;
        if claim != Claim::Granted {
            self.open = None;
        }
        Ok(Some(claim))
    }

    fn work<T>(
        &mut self,
        work: impl FnOnce(&mut Conn) -> std::result::Result<T, Error>,
    ) -> Attempt<T> {
        self.connect()?;
        let Some(open) = &mut self.open else { unreachable!("it was just opened") };
        let access = &self.accesses[self.at];
        let answer = work(open).map_err(|error| access.failure(&error));
        if matches!(answer, Err(Failure::Lost(_) | Failure::Fatal(_))) {
            self.open = None;
        }
        answer
    }
}

/// See the module text.
pub struct MysqlStore {
    handle: Handle,
    /// Of each endpoint.
    accesses: Vec<Access>,
    endpoints: Rc<Endpoints>,
    same: SameDatabase,
    catalogue: Option<Catalogue>,
    population: Population,
    vocabulary: Vocabulary,
    seed: u64,
    run: u64,
    before: StoreAudit,
    /// What has the database claimed for this run; the server lets go of it when it ends.
    claim: RefCell<Option<Rc<Companion<Session>>>>,
    own_lock: i64,
    /// Those that no visit uses, by session.
    idle: RefCell<BTreeMap<u64, Vec<Seat>>>,
    seats_begun: Cell<u64>,
    sessions_begun: Cell<u64>,
    counts: Cell<StoreCounts>,
    pauses: RefCell<Random>,
}

impl MysqlStore {
    /// Opens the store of a database. One of ours is made if the database is empty, and the run
    /// takes the next number. Each access is an endpoint of its server; there is at least one.
    ///
    /// # Errors
    /// A server that lets nobody in, a database that another run works with, a store of another
    /// seed or size, or a database of somebody else, which is left as it is.
    pub async fn open(
        handle: &Handle,
        accesses: Vec<Access>,
        distribution: Distribution,
        source: Source,
    ) -> Result<MysqlStore> {
        let catalogue = source.catalogue();
        let seed = catalogue.map_or(0, |catalogue| catalogue.seed());
        let store = MysqlStore {
            handle: handle.clone(),
            endpoints: Endpoints::new(distribution, accesses.len()),
            same: SameDatabase::new(accesses[0].place(), None),
            accesses,
            catalogue,
            population: Population { customers: 0, products: 0, reviews: 0 },
            vocabulary: Vocabulary::default(),
            seed,
            run: 0,
            before: StoreAudit::default(),
            claim: RefCell::default(),
            own_lock: own_lock(handle),
            idle: RefCell::default(),
            seats_begun: Cell::new(0),
            sessions_begun: Cell::new(0),
            counts: Cell::default(),
            pauses: RefCell::new(Random::from_seed(seed).child("pauses")),
        };
        store.claim().await?;
        match source {
            Source::Made(catalogue) => store.begin(catalogue).await,
            Source::Existing(mode) => store.begin_existing(mode).await,
        }
    }

    async fn claim(&self) -> Result<()> {
        let (companion, own_lock) = (self.companion(false)?, self.own_lock);
        let claim =
            async || self.ask_on(&companion, move |open| statements::claim(open, own_lock)).await;
        let holder = async || self.ask_on(&companion, statements::holder).await.ok().flatten();
        claimed(&self.handle, &self.place(), claim, holder).await?;
        self.claim.replace(Some(Rc::new(companion)));
        Ok(())
    }

    /// A run on rows of ours.
    async fn begin(self, catalogue: Catalogue) -> Result<MysqlStore> {
        let begun = self.ask(move |connection| prepare::begin_run(connection, &catalogue)).await?;
        let begun = begun
            .map_err(|foreign| foreign.refusal(&self.place(), &catalogue, "another database"))?;
        Ok(MysqlStore {
            population: Population::from(&catalogue),
            run: begun.run,
            same: SameDatabase::new(self.place(), Some(marker_of(&catalogue, begun.run))),
            counts: Cell::new(begun.counts),
            ..self
        })
    }

    /// A run on rows of somebody else.
    async fn begin_existing(self, mode: Mode) -> Result<MysqlStore> {
        let place = self.place();
        let found = self.ask(statements::existing).await?;
        let found = found.map_err(|table| no_dvd_store(&place, table))?;
        let reviews = match mode {
            Mode::Version2 => 0,
            Mode::Version3 => self.ask(reviews::there).await?,
        };
        let population = population_of(&place, found.customers, found.products, reviews)?;
        let mut before = self.ask(statements::audit).await?;
        if reviews > 0 {
            before = self.ask(reviews::counts).await?.into_audit(before);
        }
        let (customers, orders) = (before.customers, before.orders);
        Ok(MysqlStore {
            population,
            vocabulary: Vocabulary::new(found.actors, found.titles),
            // Nothing there counts runs, and no name of a customer may come twice.
            run: self.handle.clock().anchor().utc_ns / NANOS_PER_MILLISECOND,
            counts: Cell::new(StoreCounts {
                customers,
                orders,
                reviews: before.reviews,
                ratings: before.ratings,
                ..StoreCounts::default()
            }),
            before,
            ..self
        })
    }

    fn known(&self) -> Known<'_> {
        Known(self.catalogue.as_ref())
    }

    /// What a search stands for in a store of somebody else.
    fn translated(&self, search: &Search) -> Search {
        let by = match &search.by {
            SearchBy::Actor(name) => SearchBy::Actor(self.vocabulary.actor(name).to_owned()),
            SearchBy::Title(both) => SearchBy::Title(self.vocabulary.title(both).to_owned()),
            SearchBy::Category(category) => SearchBy::Category(*category),
        };
        Search { by, limit: search.limit }
    }

    /// The seat of a session that no visit uses, or another one.
    fn seat(&self, session: u64) -> Result<Seat> {
        let idle = self.idle.borrow_mut().get_mut(&session).and_then(Vec::pop);
        if let Some(idle) = idle {
            return Ok(idle);
        }
        let client = self.seats_begun.replace(self.seats_begun.get() + 1);
        Ok(Seat { client, companion: self.companion(false)?, open: None })
    }

    fn companion(&self, is_patient: bool) -> Result<Companion<Session>> {
        let accesses = self.accesses.clone();
        let session = move || Session { accesses, at: 0, is_patient, open: None };
        Ok(Companion::new(&self.handle, "mysql session", session)?)
    }

    /// Asks a connection that no session has, after those of the sessions are given back: the
    /// server may have no more than they had.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> std::result::Result<T, Error> + Send + 'static,
    ) -> Result<T> {
        self.idle.take();
        self.ask_on(&self.companion(true)?, work).await
    }

    async fn ask_on<T: Send + 'static>(
        &self,
        companion: &Companion<Session>,
        work: impl FnOnce(&mut Conn) -> std::result::Result<T, Error> + Send + 'static,
    ) -> Result<T> {
        let mut attempts = Attempts::begin(&self.handle);
        let mut at = 0;
        while let (Err(Failure::Busy(_) | Failure::Lost(_)), _) =
            companion.call(move |session| session.connect_to(at)).await
        {
            at = (at + 1) % self.accesses.len();
            if at == 0 && !attempts.again(&self.handle, &self.pauses).await {
                break;
            }
        }
        let (answer, _) = companion.call(move |session| session.work(work)).await;
        answer.map_err(|failure| failure.into_error(&self.accesses[0].place()))
    }

    /// Where there is no connection, at any endpoint where the client may be, it is tried once more
    /// a second later.
    async fn connect(&self, seat: &mut Seat, book: &mut VisitBook) -> Attempt<()> {
        if let Some(open) = &seat.open {
            book.is_at(open.at());
            return Ok(());
        }
        let Seat { client, companion, .. } = seat;
        let connecting = connected(&self.endpoints, *client, &self.handle, book, async |at| {
            companion.call(move |session| session.connect_to(at)).await.0?;
            let marker =
                async || companion.call(|session| session.work(statements::marker)).await.0;
            self.same.check(&self.handle, at, &self.accesses[at].place(), marker).await
        });
        seat.open = Some(connecting.await?.1);
        Ok(())
    }

    async fn steps(
        &self,
        on: &Companion<Session>,
        task: &StoreTask,
        book: &mut VisitBook,
    ) -> Attempt<VisitEnd> {
        let known = self.known();
        let customer = self.enter(on, task, book).await?;
        for search in &task.searches {
            let search = self.translated(search);
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
        for errand in &task.errands {
            self.errand(on, errand, customer, book).await?;
        }
        let lines = task.lines.clone();
        let (prices, finished) =
            on.call(move |session| session.work(|open| statements::prices(open, &lines))).await;
        let prices = prices?;
        let price_of =
            |number| prices.iter().find(|(product, _)| *product == number).map(|(_, cents)| *cents);
        let net = net_cents(&task.lines, known, price_of)?;
        book.note(Step::Price, finished);
        self.purchase(on, customer, task, net, book).await
    }

    async fn errand(
        &self,
        on: &Companion<Session>,
        errand: &Errand,
        customer: i64,
        book: &mut VisitBook,
    ) -> Attempt<()> {
        let asked = self.translated_errand(errand);
        let work = move |session: &mut Session| {
            session.work(|open| reviews::errand(open, &asked, customer))
        };
        let mut attempts = Attempts::begin(&self.handle);
        let (found, finished) = loop {
            let work = work.clone();
            match on.call(work).await {
                (Err(Failure::Conflict), _) if attempts.again(&self.handle, &self.pauses).await => {
                    book.retried();
                }
                answer => break answer,
            }
        };
        if matches!(found, Err(Failure::Lost(_))) {
            self.count(|counts| leave_unknown(errand, counts));
        }
        let found = found?;
        for (id, says) in &found {
            self.known().check_review(*id, says)?;
        }
        book.found(found.len());
        self.count(|counts| acknowledge(errand, counts));
        book.note(errand.step(), finished);
        Ok(())
    }

    /// What an errand stands for in a store of somebody else.
    fn translated_errand(&self, errand: &Errand) -> Errand {
        match errand {
            Errand::FindReviews { by, limit } => {
                let search = self.translated(&Search { by: by.clone(), limit: *limit });
                let by = match search.by {
                    SearchBy::Actor(name) => SearchBy::Actor(first_word(&name)),
                    SearchBy::Title(both) => SearchBy::Title(first_word(&both)),
                    SearchBy::Category(category) => SearchBy::Category(category),
                };
                Errand::FindReviews { by, limit: *limit }
            }
            other => other.clone(),
        }
    }

    async fn enter(
        &self,
        on: &Companion<Session>,
        task: &StoreTask,
        book: &mut VisitBook,
    ) -> Attempt<i64> {
        let known = self.known();
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
                let any = Catalogue::new(self.seed, Scale::SMALL);
                let made = self.catalogue.unwrap_or(any);
                let customer = made.new_customer(self.run, task.session, number);
                let (number, finished) = on
                    .call(move |session| session.work(|open| statements::sign_up(open, &customer)))
                    .await;
                match &number {
                    Ok(_) => {
                        self.count(|counts| counts.customers += 1);
                        book.note(Step::SignUp, finished);
                    }
                    Err(Failure::Lost(_)) => self.count(|counts| counts.customers_unknown += 1),
                    Err(_) => {}
                }
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
                Err(Failure::Conflict) if attempts.again(&self.handle, &self.pauses).await => {
                    book.retried()
                }
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

fn first_word(text: &str) -> String {
    text.split(' ').next().unwrap_or(text).to_owned()
}

impl StoreClient for MysqlStore {
    fn place(&self) -> String {
        self.accesses[0].place()
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        self.catalogue.as_ref()
    }

    fn population(&self) -> Population {
        self.population
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
            let mut seat = self.seat(task.session)?;
            let ended = match self.connect(&mut seat, &mut book).await {
                Ok(()) => self.steps(&seat.companion, task, &mut book).await,
                Err(failure) => Err(failure),
            };
            if matches!(ended, Err(Failure::Lost(_) | Failure::Fatal(_))) {
                seat.open = None;
            }
            self.idle.borrow_mut().entry(task.session).or_default().push(seat);
            if matches!(ended, Err(Failure::NoSpace(_))) {
                self.handle.sleep(PAUSE_NS).await;
            }
            book.end(ended)
        })
    }

    fn audit(&self) -> ClientWork<'_, StoreAudit> {
        Box::pin(async move {
            let audit = self.ask(statements::audit).await?;
            let audit = match self.population.reviews {
                0 => audit,
                _ => self.ask(reviews::counts).await?.into_audit(audit),
            };
            Ok(audit.since(&self.before))
        })
    }

    fn commits_at_risk(&self) -> ClientWork<'_, Vec<String>> {
        Box::pin(self.ask(statements::commits_at_risk))
    }

    fn size_bytes(&self) -> ClientWork<'_, u64> {
        Box::pin(self.ask(statements::size_bytes))
    }

    fn stock_and_sales(&self) -> ClientWork<'_, Vec<(i64, i64)>> {
        Box::pin(self.ask(statements::stock_and_sales))
    }

    fn endpoints(&self) -> Option<&Endpoints> {
        Some(&self.endpoints)
    }

    fn audits(&self) -> ClientWork<'_, Vec<(String, StoreAudit)>> {
        Box::pin(async move {
            let (companion, mut found) = (self.companion(true)?, Vec::new());
            for at in 0..self.accesses.len() {
                let audited = companion.call(move |session| {
                    session.connect_to(at)?;
                    session.work(statements::audit)
                });
                let place = self.accesses[at].place();
                match audited.await.0 {
                    Ok(audit) => found.push((place, audit)),
                    Err(Failure::Lost(_) | Failure::Busy(_)) => {}
                    Err(failure) => return Err(failure.into_error(&place)),
                }
            }
            Ok(found)
        })
    }

    fn hold(&self) -> ClientWork<'_, Hold> {
        Box::pin(async move {
            let Some(companion) = self.claim.borrow().clone() else {
                return Ok(Hold::Kept);
            };
            let own_lock = self.own_lock;
            match companion.call(move |session| session.hold(own_lock)).await.0 {
                Ok(None) => Ok(Hold::Kept),
                Ok(Some(claim)) => claim.in_the_middle(&self.place()),
                Err(Failure::Lost(_) | Failure::Busy(_)) => Ok(Hold::Lost),
                Err(failure) => Err(failure.into_error(&self.place())),
            }
        })
    }

    fn close(&self) -> ClientWork<'_, ()> {
        Box::pin(async move {
            self.idle.take();
            self.claim.take();
            Ok(())
        })
    }
}
