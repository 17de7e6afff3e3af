//! Whose database it is, and filling one that is nobody's yet: tables, rows, indexes and marker in
//! one transaction.

use std::fmt::Write as _;

use plimsoll_workload::store::{Catalogue, StoreCounts};
use tokio_postgres::{Client, Error, Transaction};

use super::copying::copy;
use super::reviews;
use crate::client::{Foreign, ReviewCounts};
use crate::dates::date;

/// The run that begins.
pub struct Begun {
    /// Its number, from 1 on.
    pub run: u64,
    /// What there is.
    pub counts: StoreCounts,
}

/// Of all programs that make a store in a database, one does.
const LOCK: &str = "SELECT pg_advisory_xact_lock(5064277810246)";
const FOREIGN: &str = "SELECT tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', \
 'information_schema') AND NOT EXISTS \
    (SELECT 1 FROM pg_tables WHERE tablename = 'plimsoll_marker') ORDER BY tablename LIMIT 1";
const HAS_TABLES: &str =
    "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";

/// Begins a run on the store of a database; makes the store first where there is nothing.
pub async fn begin_run(
    client: &mut Client,
    catalogue: &Catalogue,
) -> Result<Result<Begun, Foreign>, Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK).await?;
    if let Some(row) = transaction.query_opt(FOREIGN, &[]).await? {
        return Ok(Err(Foreign::Table(row.get(0))));
    }
    let tables: i64 = transaction.query_one(HAS_TABLES, &[]).await?.get(0);
    if tables == 0 {
        fill(&transaction, catalogue).await?;
    }
    let marker =
        "UPDATE plimsoll_marker SET runs = runs + 1 WHERE id = 1 RETURNING seed, megabytes, runs";
    let row = transaction.query_one(marker, &[]).await?;
    let (seed, megabytes, runs): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if (seed, megabytes) != (catalogue.seed() as i64, catalogue.scale().megabytes() as i64) {
        let megabytes = megabytes as u64;
        return Ok(Err(Foreign::Store { seed, megabytes }));
    }
    let mut is_new = tables == 0;
    if catalogue.reviews() > 0 {
        match reviews::begin(&transaction, catalogue).await? {
            Ok(made) => is_new |= made,
            Err(foreign) => return Ok(Err(foreign)),
        }
    }
    let row = transaction
        .query_one("SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM orders)", &[])
        .await?;
    let counts = StoreCounts {
        customers: row.get::<_, i64>(0) as u64,
        orders: row.get::<_, i64>(1) as u64,
        ..StoreCounts::default()
    };
    transaction.commit().await?;
    if is_new {
        // Statistics and visibility, which no transaction may hold: without them the first queries
        // are planned blindly.
        client.batch_execute("VACUUM ANALYZE").await?;
    }
    let written = match catalogue.reviews() {
        0 => ReviewCounts::default(),
        _ => reviews::counts(client).await?,
    };
    let ReviewCounts { reviews, ratings } = written;
    Ok(Ok(Begun { run: runs as u64, counts: StoreCounts { reviews, ratings, ..counts } }))
}

async fn fill(transaction: &Transaction<'_>, catalogue: &Catalogue) -> Result<(), Error> {
    transaction.batch_execute(include_str!("tables.sql")).await?;
    let scale = catalogue.scale();
    let customers = (1..=scale.customers()).map(|id| {
        let customer = catalogue.customer(id);
        move |line: &mut String| {
            let state = customer.state.as_deref().unwrap_or("\\N");
            let _ = writeln!(
                line,
                "{id}\t{}\t{}\t{}\t\\N\t{}\t{state}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                customer.first_name,
                customer.last_name,
                customer.address1,
                customer.city,
                customer.zip,
                customer.country,
                customer.region,
                customer.email,
                customer.phone,
                customer.creditcard_type,
                customer.creditcard,
                customer.creditcard_expiration,
                customer.username,
                customer.password,
                customer.age,
                customer.income,
                customer.gender,
            );
        }
    });
    copy(transaction, "customers", customers).await?;
    let products = (1..=scale.products()).map(|id| {
        let product = catalogue.product(id);
        move |line: &mut String| {
            let (price, special) =
                (cents(u64::from(product.price_cents)), u8::from(product.is_special));
            let _ = writeln!(
                line,
                "{id}\t{}\t{}\t{}\t{price}\t{special}\t{}",
                product.category, product.title, product.actor, product.common_product
            );
        }
    });
    copy(transaction, "products", products).await?;
    let inventory = catalogue.sales().into_iter().zip(1..).map(|(sold, id)| {
        let stock = catalogue.stock(id);
        move |line: &mut String| {
            let _ = writeln!(line, "{id}\t{stock}\t{sold}");
        }
    });
    copy(transaction, "inventory", inventory).await?;
    copy_orders(transaction, catalogue).await?;
    transaction.batch_execute(include_str!("indexes.sql")).await?;
    let (seed, megabytes) = (catalogue.seed() as i64, scale.megabytes() as i64);
    transaction
        .execute("INSERT INTO plimsoll_marker VALUES (1, $1, $2, 0)", &[&seed, &megabytes])
        .await?;
    Ok(())
}

async fn copy_orders(transaction: &Transaction<'_>, catalogue: &Catalogue) -> Result<(), Error> {
    let ids = 1..=catalogue.scale().orders();
    let orders = ids.clone().map(|id| {
        let order = catalogue.order(id);
        move |line: &mut String| {
            let (net, tax) = (u64::from(order.net_cents), u64::from(order.tax_cents));
            let (day, customer) = (date(order.day), order.customer);
            let _ = writeln!(
                line,
                "{id}\t{day}\t{customer}\t{}\t{}\t{}",
                cents(net),
                cents(tax),
                cents(net + tax)
            );
        }
    });
    copy(transaction, "orders", orders).await?;
    let lines = ids.clone().map(|id| {
        let order = catalogue.order(id);
        move |text: &mut String| {
            let day = date(order.day);
            for (line, number) in order.lines.iter().zip(1..) {
                let _ =
                    writeln!(text, "{number}\t{id}\t{}\t{}\t{day}", line.product, line.quantity);
            }
        }
    });
    copy(transaction, "orderlines", lines).await?;
    let history = ids.map(|id| {
        let order = catalogue.order(id);
        move |text: &mut String| {
            for line in &order.lines {
                let _ = writeln!(text, "{}\t{id}\t{}", order.customer, line.product);
            }
        }
    });
    copy(transaction, "cust_hist", history).await
}

fn cents(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
