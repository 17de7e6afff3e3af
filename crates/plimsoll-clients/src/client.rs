//! What every client of a store answers, whatever database stands behind it, and why one cannot go
//! on.
//!
//! A server that says no, or is gone for a while, is an ending of a visit: it is counted, and the
//! session comes again. Only what no later visit can put right is an error: a wrong password, a
//! database of somebody else, rows that are not what was written.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_io::{CompanionError, Handle, NANOS_PER_SECOND, Nanos, StreamError};
use plimsoll_workload::store::{
    Catalogue, Errand, Line, NewReview, Population, Scale, Step, StoreAudit, StoreCounts,
    StoreTask, Visit, VisitEnd,
};

use crate::endpoints::{Endpoints, Open};

/// Why a store cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The database, or the disk below it.
    #[error("{database}: {text}")]
    Database {
        /// Which one.
        database: String,
        /// What it said.
        text: String,
    },
    /// A row is not what was written.
    #[error("{0}")]
    WrongContent(String),
    /// The database holds something else than what is asked for.
    #[error("{0}")]
    NotOurs(String),
    /// Another run works with the database.
    #[error("{0}")]
    InUse(String),
    /// The database lets nobody in as the plan describes it.
    #[error("{0}")]
    Unusable(String),
    /// A session has no thread.
    #[error(transparent)]
    Companion(#[from] CompanionError),
}

/// Whose rows a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Ours: made where there is nothing, used again where they are there.
    Made(Catalogue),
    /// Those of a DVD Store 2 or 3 schema that is there.
    Existing(Mode),
}

/// Which loop is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// That of DVD Store 2.
    Version2,
    /// That of DVD Store 3, with members and reviews.
    Version3,
}

impl Source {
    /// The rows, where they are ours.
    pub fn catalogue(self) -> Option<Catalogue> {
        match self {
            Source::Made(catalogue) => Some(catalogue),
            Source::Existing(_) => None,
        }
    }
}

/// Tables that every DVD Store has.
pub const TABLES: [&str; 6] =
    ["customers", "orders", "orderlines", "cust_hist", "products", "inventory"];

/// Why a database is no DVD Store: a table is missing.
pub fn no_dvd_store(place: &str, table: &str) -> ClientError {
    ClientError::NotOurs(format!(
        "{place} has no table {table}: it is no DVD Store; without --existing a store is made \
         in an empty database"
    ))
}

/// Rows that are drawn by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbered {
    /// How many there are.
    pub count: i64,
    /// The highest number.
    pub largest: i64,
}

/// Who can log in and what can be ordered in a DVD Store that is there.
///
/// # Errors
/// When that is nobody or nothing, or when some are missing.
pub fn population_of(
    place: &str,
    customers: Numbered,
    products: Numbered,
    reviews: i64,
) -> Result<Population> {
    if customers.count < 1 || products.count < 1 {
        return Err(ClientError::NotOurs(format!(
            "{place} has {} customers called user1 and so on, and {} products: there is nothing \
             to order",
            customers.count, products.count
        )));
    }
    for (rows, what) in [(customers, "customers called user1"), (products, "products numbered 1")] {
        if rows.count != rows.largest {
            return Err(ClientError::NotOurs(format!(
                "{place} has {} {what} to {}: each is drawn by its number, and some are missing; \
                 name a store that has them all",
                rows.count, rows.largest
            )));
        }
    }
    Ok(Population {
        customers: customers.count as u64,
        products: products.count as u64,
        reviews: reviews.max(0) as u64,
    })
}

/// The answer of a client.
pub type Result<T> = std::result::Result<T, ClientError>;

/// Work under way.
pub type ClientWork<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// A store that is open.
pub trait StoreClient {
    /// Where it lies, without a password.
    fn place(&self) -> String;

    /// The rows it was made of; nothing of a store that somebody else made.
    fn catalogue(&self) -> Option<&Catalogue>;

    /// Who can log in and what can be ordered.
    fn population(&self) -> Population;

    /// A number for a session that no other session of this run has.
    fn begin_session(&self) -> u64;

    /// What it held when it was opened, and what was acknowledged since.
    fn counts(&self) -> StoreCounts;

    /// Carries a visit out. A step begins when the one before has ended.
    fn visit<'a>(&'a self, task: &'a StoreTask) -> ClientWork<'a, Visit>;

    /// What the store holds, as one snapshot sees it.
    fn audit(&self) -> ClientWork<'_, StoreAudit>;

    /// By what its database can lose orders that it acknowledged, in words; nothing where commits
    /// are durable.
    fn commits_at_risk(&self) -> ClientWork<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Bytes that its database says to take.
    fn size_bytes(&self) -> ClientWork<'_, u64>;

    /// Stock and sales of every product, in the order of their numbers: what must be the same
    /// behind every kind of database.
    fn stock_and_sales(&self) -> ClientWork<'_, Vec<(i64, i64)>>;

    /// The endpoints of its server, and who is at which.
    fn endpoints(&self) -> Option<&Endpoints> {
        None
    }

    /// What each endpoint that answers leads to, by its place; nothing of a file.
    fn audits(&self) -> ClientWork<'_, Vec<(String, StoreAudit)>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Looks whether its database is still claimed for this run, and claims it again where the
    /// connection that did is gone. A file needs no claim.
    ///
    /// # Errors
    /// Another run that has it by now.
    fn hold(&self) -> ClientWork<'_, Hold> {
        Box::pin(async { Ok(Hold::Kept) })
    }

    /// Ends all connections.
    fn close(&self) -> ClientWork<'_, ()>;
}

/// What became of the claim of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is as it was.
    Kept,
    /// Its connection was lost, and it was claimed again.
    Again,
    /// Its connection was lost, and the server does not answer or has not noticed yet.
    Lost,
}

/// Why a step of a visit came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another session was first; the same may be tried again.
    Conflict,
    /// The connection broke, or the server did.
    Lost(String),
    /// The server has no connection left, or is just starting or stopping.
    Busy(String),
    /// There is no room where the rows would go.
    NoSpace(String),
    /// No later visit can put it right.
    Fatal(ClientError),
}

impl Failure {
    /// How a visit ends because of it, and what the database said.
    ///
    /// # Errors
    /// What no later visit can put right.
    pub fn into_end(self) -> Result<(VisitEnd, Option<String>)> {
        match self {
            Failure::Conflict => Ok((VisitEnd::GivenUp, None)),
            Failure::Lost(text) => Ok((VisitEnd::ConnectionLost, Some(text))),
            Failure::Busy(text) => Ok((VisitEnd::ConnectionRefused, Some(text))),
            Failure::NoSpace(text) => Ok((VisitEnd::NoSpace, Some(text))),
            Failure::Fatal(error) => Err(error),
        }
    }

    /// The same as an error, where nothing comes later.
    pub fn into_error(self, database: &str) -> ClientError {
        let text = match self {
            Failure::Fatal(error) => return error,
            Failure::Conflict => "another session was first again and again".to_owned(),
            Failure::Lost(text) | Failure::Busy(text) | Failure::NoSpace(text) => text,
        };
        let database = database.to_owned();
        ClientError::Database { database, text }
    }

    /// A row is not what was written.
    pub fn wrong(text: impl Into<String>) -> Failure {
        Failure::Fatal(ClientError::WrongContent(text.into()))
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Failure {
        Failure::Lost(error.to_string())
    }
}

/// What a store holds, from the columns of `audit.sql` by their positions.
pub fn audit_of_row(number: impl Fn(usize) -> u64) -> StoreAudit {
    StoreAudit {
        customers: number(0),
        orders: number(1),
        order_lines: number(2),
        history: number(3),
        sold_units: number(4),
        ordered_units: number(5),
        products_differing: number(6),
        stocks_negative: number(7),
        orders_of_wrong_size: number(8),
        lines_without_order: number(9),
        ..StoreAudit::default()
    }
}

/// How long a purchase is tried again before it is given up.
pub const TRIED_NS_MAX: Nanos = 10 * NANOS_PER_SECOND;
/// How long a session that found no connection waits before it tries once more, and how long one
/// that was refused room does.
pub const PAUSE_NS: Nanos = NANOS_PER_SECOND;

/// The record of a visit while it goes on.
pub struct VisitBook {
    visit: Visit,
    begun: Nanos,
}

impl VisitBook {
    /// A visit that begins now.
    pub fn new(task: &StoreTask, now: Nanos) -> VisitBook {
        let visit = Visit::begun(task);
        VisitBook { visit, begun: now }
    }

    /// A step ended.
    pub fn note(&mut self, step: Step, finished: Nanos) {
        let took = finished.saturating_sub(std::mem::replace(&mut self.begun, finished));
        self.visit.steps.push((step, took));
    }

    /// Rows were found.
    pub fn found(&mut self, rows: usize) {
        self.visit.rows_found += rows as u32;
    }

    /// The purchase is begun again.
    pub fn retried(&mut self) {
        self.visit.retries += 1;
    }

    /// A connection that broke while nobody used it is made again.
    pub fn reconnects(&mut self) {
        self.visit.reconnects += 1;
    }

    /// It is carried out there.
    pub fn is_at(&mut self, endpoint: usize) {
        self.visit.endpoint = endpoint;
    }

    /// The visit is over, one way or the other.
    ///
    /// # Errors
    /// What no later visit can put right.
    pub fn end(mut self, ended: std::result::Result<VisitEnd, Failure>) -> Result<Visit> {
        match ended {
            Ok(end) => self.visit.end = end,
            Err(failure) => (self.visit.end, self.visit.trouble) = failure.into_end()?,
        }
        Ok(self.visit)
    }
}

/// A database that is not the one that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Somebody else's, with this table.
    Table(String),
    /// A store of ours, but another.
    Store {
        /// What decided its rows.
        seed: i64,
        /// Its size.
        megabytes: u64,
    },
    /// A store of ours that has other reviews.
    Reviews {
        /// How many.
        there: u64,
        /// What was asked for.
        wanted: u64,
    },
}

impl Foreign {
    /// What is said of it. `other` is what to name in its place, such as "another file".
    pub fn refusal(&self, place: &str, catalogue: &Catalogue, other: &str) -> ClientError {
        ClientError::NotOurs(match self {
            Foreign::Table(table) => format!(
                "{place} is another user's database: it has a table {table} and no \
                 plimsoll_marker; name {other}"
            ),
            Foreign::Reviews { there, wanted } => {
                format!("{place} holds a store with {there} reviews, not {wanted}; name {other}")
            }
            Foreign::Store { seed, megabytes } => {
                let scale = Scale::of_megabytes(*megabytes);
                let size =
                    scale.map_or_else(|_| format!("{megabytes} MB"), |scale| scale.to_string());
                format!(
                    "{place} holds a store of {size} made with seed {seed}, not one of {} with \
                     seed {}; name {other}",
                    catalogue.scale(),
                    catalogue.seed()
                )
            }
        })
    }
}

/// Rows that a store of DVD Store 3 has beside the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Reviews.
    pub reviews: u64,
    /// Ratings of reviews.
    pub ratings: u64,
}

impl ReviewCounts {
    /// Puts them into an audit.
    pub fn into_audit(self, audit: StoreAudit) -> StoreAudit {
        StoreAudit { reviews: self.reviews, ratings: self.ratings, ..audit }
    }
}

/// Counts what an errand that came to its end has added.
pub fn acknowledge(errand: &Errand, counts: &mut StoreCounts) {
    match errand {
        Errand::Write(_) => counts.reviews += 1,
        Errand::Rate { .. } => counts.ratings += 1,
        Errand::Join { .. } | Errand::FindReviews { .. } | Errand::ReadReviews { .. } => {}
    }
}

/// Counts what an errand may have added whose end nobody knows.
pub fn leave_unknown(errand: &Errand, counts: &mut StoreCounts) {
    if matches!(errand, Errand::Write(_) | Errand::Rate { .. }) {
        counts.writings_unknown += 1;
    }
}

/// Whether rows are those that a catalogue made; of a store that somebody else made nothing is
/// known.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a>(pub Option<&'a Catalogue>);

impl Known<'_> {
    /// A product that was found.
    ///
    /// # Errors
    /// When it is not what was written.
    pub fn check_product(
        &self,
        number: i64,
        title: &str,
        actor: Option<&str>,
        price_cents: Option<i64>,
    ) -> std::result::Result<(), Failure> {
        let Some(catalogue) = self.0 else {
            return Ok(());
        };
        let product = catalogue.product(number.max(1) as u64);
        let is_right = product.title == title
            && actor.is_none_or(|actor| actor == product.actor)
            && price_cents.is_none_or(|cents| cents == i64::from(product.price_cents));
        match is_right {
            true => Ok(()),
            false => Err(Failure::wrong(format!("product {number} is not what was written"))),
        }
    }

    /// A review that was found.
    ///
    /// # Errors
    /// When it was prepared and is not what was written.
    pub fn check_review(&self, id: i64, says: &NewReview) -> std::result::Result<(), Failure> {
        let Some(catalogue) = self.0 else {
            return Ok(());
        };
        let is_prepared = (1..=catalogue.reviews() as i64).contains(&id);
        match !is_prepared || catalogue.review(id as u64).says == *says {
            true => Ok(()),
            false => Err(Failure::wrong(format!("review {id} is not what was written"))),
        }
    }

    /// A customer that logged in under the name of customer `wanted`.
    ///
    /// # Errors
    /// When it is another one.
    pub fn check_customer(&self, wanted: u64, number: i64) -> std::result::Result<(), Failure> {
        match self.0.is_none() || number == wanted as i64 {
            true => Ok(()),
            false => {
                Err(Failure::wrong(format!("user{wanted} is customer {number}, not {wanted}")))
            }
        }
    }
}

/// What the lines of an order cost without tax.
///
/// # Errors
/// A product without a price, or with another than was written.
pub fn net_cents(
    lines: &[Line],
    known: Known<'_>,
    price_of: impl Fn(i64) -> Option<i64>,
) -> std::result::Result<i64, Failure> {
    let mut net = 0;
    for line in lines {
        let number = line.product as i64;
        let cents = price_of(number);
        let written =
            known.0.map(|catalogue| i64::from(catalogue.product(line.product).price_cents));
        let (Some(cents), true) = (cents, written.is_none() || written == cents) else {
            return Err(Failure::wrong(format!(
                "the price of product {number} is not what was written"
            )));
        };
        net += cents * i64::from(line.quantity);
    }
    Ok(net)
}

/// A server notices within moments that a process was killed which had claimed a database: so long
/// the next one waits.
const CLAIM_NS_MAX: Nanos = 3 * NANOS_PER_SECOND;
const CLAIM_PAUSE_NS: Nanos = NANOS_PER_SECOND / 10;

/// What a server answers to a run that claims a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The run has it.
    Granted,
    /// Another run has it.
    Another,
    /// The run has it by a connection that broke and that the server has not given up yet.
    Lingering,
}

impl Claim {
    /// From the answers to two locks: that of the database, and one that this run alone knows.
    pub(crate) fn of(has_database: bool, has_own: bool) -> Claim {
        match (has_database, has_own) {
            (true, _) => Claim::Granted,
            (false, true) => Claim::Another,
            (false, false) => Claim::Lingering,
        }
    }

    /// What it means in the middle of a run, whose connection was lost.
    ///
    /// # Errors
    /// Another run that has the database.
    pub(crate) fn in_the_middle(self, place: &str) -> Result<Hold> {
        match self {
            Claim::Granted => Ok(Hold::Again),
            Claim::Lingering => Ok(Hold::Lost),
            Claim::Another => Err(ClientError::Database {
                database: place.to_owned(),
                text: "the server closed the connection that claimed the database for this run, \
                       and another run works with it since; begin again when that run has ended"
                    .to_owned(),
            }),
        }
    }
}

/// The number of a lock that no other run asks for.
pub(crate) fn own_lock(handle: &Handle) -> i64 {
    let now = handle.clock().anchor().utc_ns.wrapping_add(handle.now());
    (now ^ (u64::from(std::process::id()) << 40)).cast_signed()
}

/// Claims a database for a run, so that no other drives it meanwhile. `holder` says who has it.
///
/// # Errors
/// Another run that has it, or what the database said.
pub(crate) async fn claimed(
    handle: &Handle,
    place: &str,
    claim: impl AsyncFn() -> Result<Claim>,
    holder: impl AsyncFn() -> Option<String>,
) -> Result<()> {
    let begun = handle.now();
    while claim().await? != Claim::Granted {
        if handle.now() - begun >= CLAIM_NS_MAX {
            let by = holder().await.map_or(String::new(), |who| format!(" by {who}"));
            return Err(ClientError::InUse(format!(
                "{place} is in use{by}; stop the run that works with it first"
            )));
        }
        handle.sleep(CLAIM_PAUSE_NS).await;
    }
    Ok(())
}

/// Servers that hand changes on to each other have done it after so long.
const HANDED_ON_NS_MAX: Nanos = 3 * NANOS_PER_SECOND;

/// The marker of a store: seed, megabytes, and how many runs it has seen.
pub(crate) type Marker = (i64, i64, i64);

/// What the marker of a store says in a run.
pub(crate) fn marker_of(catalogue: &Catalogue, run: u64) -> Marker {
    let (seed, megabytes) = (catalogue.seed(), catalogue.scale().megabytes());
    (seed.cast_signed(), megabytes.cast_signed(), run.cast_signed())
}

/// Which endpoints were seen to lead to the database of the run.
pub(crate) struct SameDatabase {
    /// What its marker says; nothing of a store that somebody else made.
    marker: Option<Marker>,
    place: String,
    seen: RefCell<BTreeSet<usize>>,
}

impl SameDatabase {
    /// No endpoint was seen.
    pub(crate) fn new(place: String, marker: Option<Marker>) -> SameDatabase {
        SameDatabase { marker, place, seen: RefCell::default() }
    }

    /// Compares the marker behind an endpoint with that of the run, where nobody has yet. Servers
    /// that hand changes on to each other are given a moment.
    ///
    /// # Errors
    /// Another database, or what the server said.
    pub(crate) async fn check(
        &self,
        handle: &Handle,
        at: usize,
        other: &str,
        read: impl AsyncFn() -> std::result::Result<Option<Marker>, Failure>,
    ) -> std::result::Result<(), Failure> {
        if self.marker.is_none() || self.seen.borrow().contains(&at) {
            return Ok(());
        }
        let begun = handle.now();
        loop {
            let found = read().await?;
            if found == self.marker {
                self.seen.borrow_mut().insert(at);
                return Ok(());
            }
            if handle.now() - begun >= HANDED_ON_NS_MAX {
                let holds = match found {
                    Some((seed, megabytes, runs)) => format!(
                        "a store of {megabytes} MB made with seed {seed} that has seen {runs} runs"
                    ),
                    None => "no store".to_owned(),
                };
                return Err(Failure::Fatal(ClientError::NotOurs(format!(
                    "{other} is another database than {}: it holds {holds}; name endpoints of one \
                     database",
                    self.place
                ))));
            }
            handle.sleep(CLAIM_PAUSE_NS).await;
        }
    }
}

/// Connects a client to an endpoint where it may be; where nobody answers, once more a second
/// later.
///
/// # Errors
/// What the last endpoint said, or what no other attempt can put right.
pub(crate) async fn connected<T>(
    endpoints: &Rc<Endpoints>,
    client: u64,
    handle: &Handle,
    book: &mut VisitBook,
    connect: impl AsyncFn(usize) -> std::result::Result<T, Failure>,
) -> std::result::Result<(T, Open), Failure> {
    let mut is_second = false;
    loop {
        let mut refusal = None;
        for at in endpoints.tries(client) {
            book.is_at(at);
            match connect(at).await {
                Ok(connected) => return Ok((connected, endpoints.opened(Some(client), at))),
                Err(failure @ (Failure::Lost(_) | Failure::Busy(_))) => {
                    endpoints.refused(at);
                    refusal = Some(failure);
                }
                Err(other) => return Err(other),
            }
        }
        match refusal {
            Some(failure) if is_second => return Err(failure),
            _ => handle.sleep(PAUSE_NS).await,
        }
        is_second = true;
    }
}
