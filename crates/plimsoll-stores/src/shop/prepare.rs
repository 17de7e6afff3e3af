//! Filling the tables by ordinary transactions, table after table in the order of their keys. The
//! marker comes last: without it the database is not whole, and whoever opens it next makes it
//! anew.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_workload::store::{Catalogue, Customer};

use super::schema::Tables;
use super::sheet::{Sheet, Value};
use super::{Result, Shop};

/// Rows of one transaction: few enough for any version store, many enough that commits cost
/// nothing.
const ROWS_PER_TRANSACTION: usize = 500;
/// Lists of products begin with a byte that other readers do not take for a mark of compression.
pub const LIST_FIRST_BYTE: u8 = 0x41;
/// Words of actors and of titles.
pub const ACTOR_WORDS: i32 = 1;
/// See [`ACTOR_WORDS`].
pub const TITLE_WORDS: i32 = 2;

/// Told how far preparing has come.
pub type Preparing<'a> = &'a dyn Fn(&'static str, u64);

/// A transaction that commits itself every so many rows.
pub struct Filler<'a> {
    instance: &'a Rc<Instance>,
    transaction: Option<Transaction>,
    rows: usize,
}

impl<'a> Filler<'a> {
    /// Nothing is begun yet.
    pub fn new(instance: &'a Rc<Instance>) -> Filler<'a> {
        Filler { instance, transaction: None, rows: 0 }
    }

    /// Inserts a row.
    pub async fn insert(&mut self, sheet: &Sheet, values: &[Value<'_>]) -> Result<()> {
        let transaction = self.transaction.get_or_insert_with(|| self.instance.begin());
        sheet.insert(transaction, values).await?;
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_TRANSACTION) {
            self.finish(Commit::Lazy).await?;
        }
        self.instance.store().handle.breathe().await;
        Ok(())
    }

    /// Commits what was begun last.
    pub async fn finish(&mut self, how: Commit) -> Result<()> {
        match self.transaction.take() {
            Some(transaction) => Ok(transaction.commit(how).await?),
            None => Ok(()),
        }
    }
}

impl Shop {
    /// Makes the tables of a database that has none, and fills them.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn prepare(
        instance: &Rc<Instance>,
        catalogue: &Catalogue,
        told: Preparing<'_>,
    ) -> Result<()> {
        let tables = Tables::create(instance).await?;
        let mut filler = Filler::new(instance);
        let scale = catalogue.scale();
        for id in 1..=scale.customers() {
            insert_customer(&mut filler, &tables.customers, id as i32, &catalogue.customer(id))
                .await?;
        }
        told("customers", scale.customers());
        fill_products(&mut filler, &tables, catalogue).await?;
        told("products", scale.products());
        fill_orders(&mut filler, &tables, catalogue).await?;
        told("orders", scale.orders());
        fill_words(&mut filler, &tables.words, catalogue).await?;
        let (seed, megabytes) = (catalogue.seed() as i64, scale.megabytes() as i64);
        let marker =
            [Value::Number(1), Value::Number(seed), Value::Number(megabytes), Value::Number(0)];
        filler.insert(&tables.marker, &marker).await?;
        // The log keeps the order of commits: with this one all that were lazy are durable.
        filler.finish(Commit::Durable).await
    }
}

async fn insert_customer(
    filler: &mut Filler<'_>,
    sheet: &Sheet,
    id: i32,
    customer: &Customer,
) -> Result<()> {
    let gender = customer.gender.to_string();
    filler.insert(sheet, &customer_values(id, customer, &gender)).await
}

/// The columns of a customer in their order.
pub fn customer_values<'a>(id: i32, customer: &'a Customer, gender: &'a str) -> [Value<'a>; 20] {
    [
        id.into(),
        customer.first_name.as_str().into(),
        customer.last_name.as_str().into(),
        customer.address1.as_str().into(),
        Value::Null,
        customer.city.as_str().into(),
        customer.state.as_deref().map_or(Value::Null, Value::Text),
        customer.zip.as_str().into(),
        customer.country.as_str().into(),
        Value::Number(i64::from(customer.region)),
        customer.email.as_str().into(),
        customer.phone.as_str().into(),
        Value::Number(i64::from(customer.creditcard_type)),
        customer.creditcard.as_str().into(),
        customer.creditcard_expiration.as_str().into(),
        customer.username.as_str().into(),
        customer.password.as_str().into(),
        Value::Number(i64::from(customer.age)),
        Value::Number(i64::from(customer.income)),
        gender.into(),
    ]
}

async fn fill_products(
    filler: &mut Filler<'_>,
    tables: &Tables,
    catalogue: &Catalogue,
) -> Result<()> {
    for id in 1..=catalogue.scale().products() {
        let product = catalogue.product(id);
        let values = [
            Value::Number(id as i64),
            Value::Number(i64::from(product.category)),
            product.title.as_str().into(),
            product.actor.as_str().into(),
            Value::Number(i64::from(product.price_cents)),
            Value::Number(i64::from(product.is_special)),
            Value::Number(product.common_product as i64),
        ];
        filler.insert(&tables.products, &values).await?;
    }
    for (sold, id) in catalogue.sales().into_iter().zip(1..) {
        let stock = catalogue.stock(id);
        let values = [id as i64, i64::from(stock), i64::from(sold)].map(Value::Number);
        filler.insert(&tables.inventory, &values).await?;
    }
    Ok(())
}

async fn fill_orders(
    filler: &mut Filler<'_>,
    tables: &Tables,
    catalogue: &Catalogue,
) -> Result<()> {
    // Histories are kept by customer, orders come by day: sorted, they fill their leaves.
    let mut histories = Vec::new();
    for id in 1..=catalogue.scale().orders() {
        let order = catalogue.order(id);
        let (id, customer, day) = (id as i64, order.customer as i64, i64::from(order.day));
        let (net, tax) = (i64::from(order.net_cents), i64::from(order.tax_cents));
        let values = [id, day, customer, net, tax, net + tax].map(Value::Number);
        filler.insert(&tables.orders, &values).await?;
        for (line, number) in order.lines.iter().zip(1..) {
            let product = line.product as i64;
            let values = [number, id, product, i64::from(line.quantity), day].map(Value::Number);
            filler.insert(&tables.orderlines, &values).await?;
            histories.push([customer as i32, id as i32, number as i32, product as i32]);
        }
    }
    histories.sort_unstable();
    for entry in histories {
        filler.insert(&tables.history, &entry.map(Value::from)).await?;
    }
    Ok(())
}

async fn fill_words(filler: &mut Filler<'_>, sheet: &Sheet, catalogue: &Catalogue) -> Result<()> {
    let mut lists: BTreeMap<(i32, String), Vec<u8>> = BTreeMap::new();
    for id in 1..=catalogue.scale().products() {
        let product = catalogue.product(id);
        for (kind, text) in [(ACTOR_WORDS, &product.actor), (TITLE_WORDS, &product.title)] {
            let mut words: Vec<&str> = text.split(' ').collect();
            words.sort_unstable();
            words.dedup();
            for word in words {
                let list = lists.entry((kind, word.to_owned()));
                list.or_insert_with(|| vec![LIST_FIRST_BYTE]).extend((id as u32).to_le_bytes());
            }
        }
    }
    for ((kind, word), list) in &lists {
        let values = [Value::from(*kind), word.as_str().into(), Value::Bytes(list)];
        filler.insert(sheet, &values).await?;
    }
    Ok(())
}

/// The numbers of a list of products, which rise.
pub fn products_of(list: &[u8]) -> std::result::Result<Vec<u32>, EngineError> {
    let damaged = || EngineError::BadRow("a list of products is damaged".into());
    let numbers = list.strip_prefix(&[LIST_FIRST_BYTE]).ok_or_else(damaged)?;
    let (numbers, rest) = numbers.as_chunks::<4>();
    match rest {
        [] => Ok(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()),
        _ => Err(damaged()),
    }
}
