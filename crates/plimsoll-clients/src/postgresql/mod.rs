//! An online store in PostgreSQL: the same rows and the same rules as on the engine, on a server
//! that many know.
//!
//! Each visit has a connection to itself, that of its session where it is free. The library speaks
//! over a stream of our network on our executor; nothing here has a thread. A purchase is one call
//! of a function that the session brings along and the database does not keep, so that it costs one
//! round trip and is one transaction; deadlocks and failed serialisations are tried again inside
//! the response time. A store that was there before (`source = "existing"`) is driven as it is:
//! nothing is loaded, compared or counted from zero, and its audit is held against what it held
//! when the run began.
//!
//! Limit: addresses are `host:port`; sockets of the file system are not known.

mod access;
mod audit;
mod connection;
mod copying;
mod existing;
mod prepare;
mod reviews;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{Handle, Network, Random, within};
use plimsoll_workload::store::{
    Catalogue, Entrance, Errand, Line, Population, RESTOCK_BELOW, Search, SearchBy, Step,
    StoreAudit, StoreCounts, StoreTask, Visit, VisitEnd, YEAR_DAYS, tax_cents,
};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use crate::attempts::Attempts;
use crate::client::{
    ClientError, ClientWork, Failure, Hold, Known, PAUSE_NS, Result, SameDatabase, Source,
    StoreClient, TABLES, VisitBook, acknowledge, claimed, connected, leave_unknown, marker_of,
    net_cents, own_lock,
};
use crate::dates::date;
use crate::endpoints::{Distribution, Endpoints, Open};
use crate::vocabulary::Vocabulary;

pub use access::Access;
use connection::{Connection, OUT_OF_STOCK, Plain};

/// See the module text.
pub struct PostgresStore {
    handle: Handle,
    network: Rc<dyn Network>,
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
    claim: RefCell<Option<Plain>>,
    own_lock: i64,
    /// Those that no visit uses, by session.
    idle: RefCell<BTreeMap<u64, Vec<Seat>>>,
    seats_begun: Cell<u64>,
    sessions_begun: Cell<u64>,
    counts: Cell<StoreCounts>,
    pauses: RefCell<Random>,
}

/// A client as endpoints know it: what it has from one visit to the next.
struct Seat {
    client: u64,
    open: Option<(Connection, Open)>,
}

/// What a new store knows of its database.
struct Opened {
    run: u64,
    population: Population,
    vocabulary: Vocabulary,
    before: StoreAudit,
    counts: StoreCounts,
}

type Attempt<T> = std::result::Result<T, Failure>;

/// Settings by which commits are acknowledged that are not durable, and tables that are emptied
/// when the server ends as in a crash.
const AT_RISK: &str = "SELECT concat(name, ' is ', setting) FROM pg_settings WHERE name IN \
 ('fsync', 'synchronous_commit') AND setting = 'off' UNION ALL SELECT concat('table ', relname, ' \
 is unlogged') FROM pg_class WHERE relpersistence = 'u' AND oid IN (SELECT to_regclass(name) FROM \
 unnest($1::text[]) AS name) ORDER BY 1";

impl PostgresStore {
    /// Opens the store of a database. One of ours is made if the database is empty. Each access is
    /// an endpoint of its server; there is at least one.
    ///
    /// # Errors
    /// A server that lets nobody in, a database that another run works with, a store of another
    /// seed or size, or a database of somebody else, which is left as it is.
    pub async fn open(
        handle: &Handle,
        network: Rc<dyn Network>,
        accesses: Vec<Access>,
        distribution: Distribution,
        source: Source,
    ) -> Result<PostgresStore> {
        let place = accesses[0].place();
        let (mut plain, at) = Plain::open_any(handle, network.as_ref(), &accesses)
            .await
            .map_err(|failure| failure.into_error(&place))?;
        let access = &accesses[at];
        let failed = |error: Error| access.failure(&error).into_error(&place);
        let own_lock = own_lock(handle);
        let claim = async || plain.claim(own_lock).await.map_err(failed);
        claimed(handle, &place, claim, async || plain.holder().await).await?;
        let opened = match source {
            Source::Made(catalogue) => {
                let begun =
                    prepare::begin_run(&mut plain.client, &catalogue).await.map_err(failed)?;
                let begun = begun
                    .map_err(|foreign| foreign.refusal(&place, &catalogue, "another database"))?;
                Opened {
                    run: begun.run,
                    population: Population::from(&catalogue),
                    vocabulary: Vocabulary::default(),
                    before: StoreAudit::default(),
                    counts: begun.counts,
                }
            }
            Source::Existing(mode) => {
                let found = existing::found(&mut plain, access, mode).await?;
                Opened {
                    // Nothing there counts runs, and no name of a customer may come twice.
                    run: handle.clock().anchor().utc_ns / plimsoll_io::NANOS_PER_MILLISECOND,
                    population: found.population,
                    vocabulary: found.vocabulary,
                    counts: StoreCounts {
                        customers: found.before.customers,
                        orders: found.before.orders,
                        reviews: found.before.reviews,
                        ratings: found.before.ratings,
                        ..StoreCounts::default()
                    },
                    before: found.before,
                }
            }
        };
        let catalogue = source.catalogue();
        let seed = catalogue.map_or(0, |catalogue| catalogue.seed());
        let marker = catalogue.map(|catalogue| marker_of(&catalogue, opened.run));
        Ok(PostgresStore {
            handle: handle.clone(),
            network,
            endpoints: Endpoints::new(distribution, accesses.len()),
            same: SameDatabase::new(access.place(), marker),
            accesses,
            catalogue,
            population: opened.population,
            vocabulary: opened.vocabulary,
            seed,
            run: opened.run,
            before: opened.before,
            claim: RefCell::new(Some(plain)),
            own_lock,
            idle: RefCell::default(),
            seats_begun: Cell::new(0),
            sessions_begun: Cell::new(0),
            counts: Cell::new(opened.counts),
            pauses: RefCell::new(Random::from_seed(seed).child("pauses")),
        })
    }

    fn known(&self) -> Known<'_> {
        Known(self.catalogue.as_ref())
    }

    /// A free seat of a session, or a new one.
    fn seat(&self, session: u64) -> Seat {
        let free = self.idle.borrow_mut().get_mut(&session).and_then(Vec::pop);
        free.unwrap_or_else(|| {
            let client = self.seats_begun.replace(self.seats_begun.get() + 1);
            Seat { client, open: None }
        })
    }

    /// The connection of a client, or a new one. Where there is none, at any endpoint where the
    /// client may be, it is tried once more a second later.
    async fn connection(
        &self,
        seat: &mut Seat,
        book: &mut VisitBook,
    ) -> Attempt<(Connection, Open)> {
        match seat.open.take() {
            Some((free, open)) if !free.client.is_closed() => return Ok((free, open)),
            Some(_) => book.reconnects(),
            None => {}
        }
        let has_reviews = self.population.reviews > 0;
        let connecting = connected(&self.endpoints, seat.client, &self.handle, book, async |at| {
            let (handle, access) = (&self.handle, &self.accesses[at]);
            let plain = Plain::open(handle, self.network.as_ref(), access).await?;
            let marker = async || plain.marker().await.map_err(|error| access.failure(&error));
            self.same.check(handle, at, &access.place(), marker).await?;
            Connection::begin(plain, handle, access, at, has_reviews).await
        });
        connecting.await
    }

    /// Claims the database by a new connection, in the place of one that is gone.
    async fn claim_again(&self) -> Attempt<Hold> {
        let network = self.network.as_ref();
        let (plain, at) = Plain::open_any(&self.handle, network, &self.accesses).await?;
        let access = &self.accesses[at];
        let Some(claim) = within(&self.handle, access.timeout_ns, plain.claim(self.own_lock)).await
        else {
            return Err(access.silent());
        };
        let claim = claim.map_err(|error| access.failure(&error))?;
        let hold = claim.in_the_middle(&self.place()).map_err(Failure::Fatal)?;
        let mut claim = self.claim.borrow_mut();
        // A store that was closed meanwhile needs none.
        if hold == Hold::Again && claim.is_some() {
            *claim = Some(plain);
        }
        Ok(hold)
    }

    /// Asks again while another session was first: what failed so has done nothing.
    async fn asked<T>(
        &self,
        on: &Connection,
        book: &mut VisitBook,
        question: impl AsyncFn() -> std::result::Result<T, Error>,
    ) -> Attempt<T> {
        let access = &self.accesses[on.at];
        let mut attempts = Attempts::begin(&self.handle);
        loop {
            let failure = match within(&self.handle, access.timeout_ns, question()).await {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(error)) => access.failure(&error),
                None => access.silent(),
            };
            match failure {
                Failure::Conflict if attempts.again(&self.handle, &self.pauses).await => {
                    book.retried()
                }
                failure => return Err(failure),
            }
        }
    }

    async fn attempt(&self, task: &StoreTask, book: &mut VisitBook) -> Attempt<VisitEnd> {
        let mut seat = self.seat(task.session);
        let ended = match self.connection(&mut seat, book).await {
            Ok((connection, open)) => {
                book.is_at(open.at());
                let ended = self.steps(&connection, task, book).await;
                if !matches!(ended, Err(Failure::Lost(_) | Failure::Fatal(_))) {
                    seat.open = Some((connection, open));
                }
                ended
            }
            Err(failure) => Err(failure),
        };
        self.idle.borrow_mut().entry(task.session).or_default().push(seat);
        ended
    }

    async fn steps(
        &self,
        on: &Connection,
        task: &StoreTask,
        book: &mut VisitBook,
    ) -> Attempt<VisitEnd> {
        let customer = match task.entrance {
            Entrance::Login { customer } => {
                let number = self.log_in(on, customer, book).await?;
                book.note(Step::Login, self.handle.now());
                number
            }
            Entrance::SignUp { number } => {
                let number = self.sign_up(on, task.session, number, book).await?;
                book.note(Step::SignUp, self.handle.now());
                number
            }
        };
        for search in &task.searches {
            let found = self.search(on, search, book).await?;
            book.found(found);
            book.note(Step::Search, self.handle.now());
        }
        for errand in &task.errands {
            self.errand(on, errand, customer, book).await?;
            book.note(errand.step(), self.handle.now());
        }
        let net = self.price(on, &task.lines, book).await?;
        book.note(Step::Price, self.handle.now());
        let end = self.purchase(on, customer, &task.lines, net, book).await?;
        book.note(Step::Purchase, self.handle.now());
        Ok(end)
    }

    async fn log_in(&self, on: &Connection, customer: u64, book: &mut VisitBook) -> Attempt<i32> {
        let name = format!("user{customer}");
        let asking = async || on.client.query(&on.says.log_in, &[&name, &"password"]).await;
        let rows = self.asked(on, book, asking).await?;
        let Some(first) = rows.first() else {
            return Err(Failure::wrong(format!("customer {name} is missing")));
        };
        let number: i32 = first.get(0);
        self.known().check_customer(customer, i64::from(number))?;
        for row in &rows {
            for column in [1, 3] {
                if let (Some(product), Some(title)) =
                    (row.get::<_, Option<i32>>(column), row.get::<_, Option<&str>>(column + 1))
                {
                    self.known().check_product(i64::from(product), title, None, None)?;
                }
            }
        }
        Ok(number)
    }

    async fn sign_up(
        &self,
        on: &Connection,
        session: u64,
        number: u64,
        book: &mut VisitBook,
    ) -> Attempt<i32> {
        let any = Catalogue::new(self.seed, plimsoll_workload::store::Scale::SMALL);
        let customer = self.catalogue.unwrap_or(any).new_customer(self.run, session, number);
        let (region, age) = (i16::from(customer.region), i16::from(customer.age));
        let (card, income) = (i32::from(customer.creditcard_type), customer.income as i32);
        let gender = customer.gender.to_string();
        let values: [&(dyn ToSql + Sync); 18] = [
            &customer.first_name,
            &customer.last_name,
            &customer.address1,
            &customer.city,
            &customer.state,
            &customer.zip,
            &customer.country,
            &region,
            &customer.email,
            &customer.phone,
            &card,
            &customer.creditcard,
            &customer.creditcard_expiration,
            &customer.username,
            &customer.password,
            &age,
            &income,
            &gender,
        ];
        let inserting = async || on.client.query_one(&on.says.sign_up, &values).await;
        match self.asked(on, book, inserting).await {
            Ok(row) => {
                self.count(|counts| counts.customers += 1);
                Ok(row.get(0))
            }
            Err(lost @ Failure::Lost(_)) => {
                self.count(|counts| counts.customers_unknown += 1);
                Err(lost)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn search(
        &self,
        on: &Connection,
        search: &Search,
        book: &mut VisitBook,
    ) -> Attempt<usize> {
        let limit = i64::from(search.limit);
        let category: i16;
        let text: &str;
        let (says, wanted): (_, &(dyn ToSql + Sync)) = match &search.by {
            SearchBy::Category(number) => {
                category = i16::from(*number);
                (&on.says.by_category, &category)
            }
            SearchBy::Actor(name) => {
                text = self.vocabulary.actor(name);
                (&on.says.by_actor, &text)
            }
            SearchBy::Title(words) => {
                text = self.vocabulary.title(words);
                (&on.says.by_title, &text)
            }
        };
        let asking = async || on.client.query(says, &[wanted, &limit]).await;
        let rows = self.asked(on, book, asking).await?;
        for row in &rows {
            let number: i32 = row.get(0);
            self.known().check_product(
                i64::from(number),
                row.get(1),
                Some(row.get(2)),
                Some(row.get(3)),
            )?;
        }
        Ok(rows.len())
    }

    async fn errand(
        &self,
        on: &Connection,
        errand: &Errand,
        customer: i32,
        book: &mut VisitBook,
    ) -> Attempt<()> {
        let Some(says) = &on.of_reviews else {
            return Err(Failure::wrong("the store has no reviews"));
        };
        let asking = async || says.carry_out(&on.client, errand, customer, &self.vocabulary).await;
        match self.asked(on, book, asking).await {
            Ok(rows) => {
                for row in &rows {
                    let (id, says) = reviews::read(row);
                    self.known().check_review(id, &says)?;
                }
                book.found(rows.len());
                self.count(|counts| acknowledge(errand, counts));
                Ok(())
            }
            Err(lost @ Failure::Lost(_)) => {
                self.count(|counts| leave_unknown(errand, counts));
                Err(lost)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn price(&self, on: &Connection, lines: &[Line], book: &mut VisitBook) -> Attempt<i64> {
        let wanted: Vec<i32> = lines.iter().map(|line| line.product as i32).collect();
        let asking = async || on.client.query(&on.says.prices, &[&wanted]).await;
        let rows = self.asked(on, book, asking).await?;
        let prices: Vec<(i64, i64)> =
            rows.iter().map(|row| (i64::from(row.get::<_, i32>(0)), row.get(1))).collect();
        let price_of =
            |number| prices.iter().find(|(product, _)| *product == number).map(|(_, cents)| *cents);
        net_cents(lines, self.known(), price_of)
    }

    async fn purchase(
        &self,
        on: &Connection,
        customer: i32,
        lines: &[Line],
        net: i64,
        book: &mut VisitBook,
    ) -> Attempt<VisitEnd> {
        // Everyone takes products in the same order.
        let mut lines = lines.to_vec();
        lines.sort_unstable();
        let products: Vec<i32> = lines.iter().map(|line| line.product as i32).collect();
        let quantities: Vec<i32> = lines.iter().map(|line| line.quantity as i32).collect();
        let (day, tax) = (date(YEAR_DAYS as u16), tax_cents(net as u64) as i64);
        let restock_below = RESTOCK_BELOW as i32;
        let values: [&(dyn ToSql + Sync); 7] =
            [&customer, &day, &net, &tax, &products, &quantities, &restock_below];
        let placing = async || match on.client.query_one(&on.says.purchase, &values).await {
            Err(error) if error.code().is_some_and(|code| code.code() == OUT_OF_STOCK) => {
                Ok(VisitEnd::OutOfStock)
            }
            placed => placed.map(|_| VisitEnd::Sold),
        };
        let ended = self.asked(on, book, placing).await;
        match &ended {
            Ok(VisitEnd::Sold) => self.count(|counts| counts.orders += 1),
            Err(Failure::Lost(_)) => self.count(|counts| counts.orders_unknown += 1),
            _ => {}
        }
        ended
    }

    fn count(&self, add: impl FnOnce(&mut StoreCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }

    /// A connection of its own, after those of the sessions are given back: the server may have no
    /// more than they had.
    async fn plain(&self) -> Result<Plain> {
        self.hang_up();
        let mut attempts = Attempts::begin(&self.handle);
        loop {
            match Plain::open_any(&self.handle, self.network.as_ref(), &self.accesses).await {
                Ok((plain, _)) => {
                    // What is counted takes as long as the store is large.
                    let unlimited = plain.client.batch_execute("SET statement_timeout = 0").await;
                    unlimited.map_err(|error| self.failed(&error))?;
                    return Ok(plain);
                }
                Err(Failure::Busy(_) | Failure::Lost(_))
                    if attempts.again(&self.handle, &self.pauses).await => {}
                Err(failure) => return Err(failure.into_error(&self.place())),
            }
        }
    }

    /// Ends what no visit uses. A client that comes again is the one it was.
    fn hang_up(&self) {
        self.idle.borrow_mut().values_mut().flatten().for_each(|seat| seat.open = None);
    }

    fn failed(&self, error: &Error) -> ClientError {
        self.accesses[0].failure(error).into_error(&self.place())
    }
}

impl StoreClient for PostgresStore {
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
            let ended = self.attempt(task, &mut book).await;
            if matches!(ended, Err(Failure::NoSpace(_))) {
                self.handle.sleep(PAUSE_NS).await;
            }
            book.end(ended)
        })
    }

    fn audit(&self) -> ClientWork<'_, StoreAudit> {
        Box::pin(async move {
            let plain = self.plain().await?;
            let found = audit::read(&plain.client).await.map_err(|error| self.failed(&error))?;
            let found = match self.population.reviews {
                0 => found,
                _ => {
                    let counted = reviews::counts(&plain.client).await;
                    counted.map_err(|error| self.failed(&error))?.into_audit(found)
                }
            };
            Ok(found.since(&self.before))
        })
    }

    fn commits_at_risk(&self) -> ClientWork<'_, Vec<String>> {
        Box::pin(async move {
            let plain = self.plain().await?;
            let rows = plain.client.query(AT_RISK, &[&TABLES.as_slice()]).await;
            Ok(rows.map_err(|error| self.failed(&error))?.iter().map(|row| row.get(0)).collect())
        })
    }

    fn size_bytes(&self) -> ClientWork<'_, u64> {
        Box::pin(async move {
            let plain = self.plain().await?;
            let asking = plain.client.query_one("SELECT pg_database_size(current_database())", &[]);
            let row = asking.await.map_err(|error| self.failed(&error))?;
            Ok(row.get::<_, i64>(0).max(0) as u64)
        })
    }

    fn stock_and_sales(&self) -> ClientWork<'_, Vec<(i64, i64)>> {
        Box::pin(async move {
            let plain = self.plain().await?;
            let text =
                "SELECT quan_in_stock::bigint, sales::bigint FROM inventory ORDER BY prod_id";
            let rows = plain.client.query(text, &[]).await.map_err(|error| self.failed(&error))?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }

    fn endpoints(&self) -> Option<&Endpoints> {
        Some(&self.endpoints)
    }

    fn audits(&self) -> ClientWork<'_, Vec<(String, StoreAudit)>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for access in &self.accesses {
                let opened = Plain::open(&self.handle, self.network.as_ref(), access).await;
                if let Ok(plain) = opened {
                    let audit = audit::read(&plain.client).await;
                    let audit = audit
                        .map_err(|error| access.failure(&error).into_error(&access.place()))?;
                    found.push((access.place(), audit));
                }
            }
            Ok(found)
        })
    }

    fn hold(&self) -> ClientWork<'_, Hold> {
        Box::pin(async move {
            if self.claim.borrow().as_ref().is_none_or(|plain| !plain.client.is_closed()) {
                return Ok(Hold::Kept);
            }
            match self.claim_again().await {
                Err(Failure::Lost(_) | Failure::Busy(_)) => Ok(Hold::Lost),
                Err(failure) => Err(failure.into_error(&self.place())),
                Ok(hold) => Ok(hold),
            }
        })
    }

    fn close(&self) -> ClientWork<'_, ()> {
        Box::pin(async move {
            self.hang_up();
            self.claim.take();
            Ok(())
        })
    }
}
