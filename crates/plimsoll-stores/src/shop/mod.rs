//! The online store on the engine: one database, its tables, and the steps of a visit as
//! transactions.
//!
//! Rows are those of [`plimsoll_workload::store::Catalogue`], so what is read is compared with what
//! must be there. A visit's reads are one transaction each; the purchase is one transaction with a
//! durable commit, begun again when another session was first. Sessions share the tables and take
//! numbers of customers and orders from counters that are read from the tables when they are
//! opened.

mod audit;
mod orders;
mod prepare;
mod reviews;
mod schema;
mod search;
mod sheet;

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Nanos, Random};
use plimsoll_workload::store::{Catalogue, Scale, Step, StoreCounts};

pub use prepare::Preparing;
use reviews::Reviews;
pub use schema::{INVENTORY, MARKER, ORDERLINES};
use schema::{Tables, marker};
pub use sheet::{Sheet, Value};

/// How long a purchase is tried before it is given up, when other sessions are first again and
/// again.
const TRIED_NS_MAX: Nanos = 10 * plimsoll_io::NANOS_PER_SECOND;

/// Why the store cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ShopError {
    /// The engine or the disk below it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A row is not what was written.
    #[error("{0}")]
    WrongContent(String),
    /// The database holds something else than what is asked for.
    #[error("{0}")]
    NotOurs(String),
}

type Result<T> = std::result::Result<T, ShopError>;

/// Told of each transaction that wrote: the step it belongs to, when it was begun and when its
/// commit was.
pub type CommitWatch = Box<dyn Fn(Step, Nanos, Nanos)>;

/// See [`Shop::remembered`].
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    counts: StoreCounts,
    sessions_begun: u64,
}

/// See the module text.
pub struct Shop {
    instance: Rc<Instance>,
    tables: Tables,
    reviews: Option<Reviews>,
    catalogue: Catalogue,
    run: u64,
    next_customer: Cell<i32>,
    next_order: Cell<i32>,
    sessions_begun: Cell<u64>,
    counts: Cell<StoreCounts>,
    pauses: std::cell::RefCell<Random>,
    watch: CommitWatch,
}

impl Shop {
    /// Opens the store of a database, if there is a whole one; the run takes the next number.
    ///
    /// # Errors
    /// What the disk reports, or a store of another seed or size.
    pub async fn open(
        instance: &Rc<Instance>,
        catalogue: Catalogue,
        watch: CommitWatch,
    ) -> Result<Option<Shop>> {
        if !has_marker_table(instance).await? {
            return Ok(None);
        }
        let tables = Tables::open(instance).await?;
        let transaction = instance.begin();
        let key = tables.marker.key_of_number(1)?;
        let Some(row) = tables.marker.get(&transaction, &key).await? else {
            return Ok(None);
        };
        let found = |column| tables.marker.number(&row, column);
        let (seed, megabytes, runs) =
            (found(marker::SEED)?, found(marker::MEGABYTES)?, found(marker::RUNS)?);
        let wanted = (catalogue.seed() as i64, catalogue.scale().megabytes() as i64);
        if (seed, megabytes) != wanted {
            let scale = Scale::of_megabytes(megabytes as u64);
            return Err(ShopError::NotOurs(format!(
                "the database holds a store of {} made with seed {seed}, not one of {} with seed \
                 {}; say so in the plan, or let it be made again",
                scale.map_or_else(|_| format!("{megabytes} MB"), |scale| scale.to_string()),
                catalogue.scale(),
                catalogue.seed()
            )));
        }
        tables.marker.set(&transaction, &key, &[(marker::RUNS, runs + 1)]).await?;
        transaction.commit(Commit::Durable).await?;
        let reviews = match catalogue.reviews() {
            0 => None,
            _ => Some(Reviews::open(instance, &tables.marker, &catalogue).await?),
        };
        let transaction = instance.begin();
        let (written, rated) = match &reviews {
            Some(reviews) => reviews.counts(&transaction).await?,
            None => (0, 0),
        };
        let counts = StoreCounts {
            reviews: written,
            ratings: rated,
            customers: tables.customers.count(&transaction).await?,
            orders: tables.orders.count(&transaction).await?,
            ..StoreCounts::default()
        };
        let [customer, order] = [
            tables.customers.last_number(&transaction).await?,
            tables.orders.last_number(&transaction).await?,
        ];
        transaction.commit(Commit::Lazy).await?;
        Ok(Some(Shop {
            instance: instance.clone(),
            tables,
            reviews,
            catalogue,
            run: runs as u64 + 1,
            next_customer: Cell::new(customer + 1),
            next_order: Cell::new(order + 1),
            sessions_begun: Cell::new(0),
            counts: Cell::new(counts),
            pauses: std::cell::RefCell::new(Random::from_seed(catalogue.seed()).child("pauses")),
            watch,
        }))
    }

    /// Whether a table of this name is one of a store.
    pub fn is_table(name: &str) -> bool {
        schema::NAMES.contains(&name) || reviews::NAMES.contains(&name)
    }

    /// What it holds.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The instance it lies in.
    pub fn instance(&self) -> &Rc<Instance> {
        &self.instance
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

    /// What its clients know of it, for the next life after a crash.
    pub fn remembered(&self) -> Remembered {
        Remembered { counts: self.counts.get(), sessions_begun: self.sessions_begun.get() }
    }

    /// Expects what clients of the life before the crash were told, in the place of what was found;
    /// of so many operations nobody knows whether they took place.
    pub fn remember(&self, told: &Remembered, lost_count: u64) {
        self.sessions_begun.set(told.sessions_begun);
        let counts = told.counts;
        self.counts.set(StoreCounts {
            orders_unknown: counts.orders_unknown + lost_count,
            customers_unknown: counts.customers_unknown + lost_count,
            writings_unknown: counts.writings_unknown + lost_count,
            ..counts
        });
    }

    /// Orders that were ever placed or tried, rolled back ones included.
    pub fn orders_ever(&self) -> u64 {
        self.next_order.get() as u64 - 1
    }

    fn count(&self, add: impl FnOnce(&mut StoreCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }

    fn now(&self) -> Nanos {
        self.instance.store().handle.now()
    }
}

async fn has_marker_table(instance: &Instance) -> Result<bool> {
    match instance.open_table(1, MARKER).await {
        Ok(_) => Ok(true),
        Err(EngineError::NoSuchObject { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
