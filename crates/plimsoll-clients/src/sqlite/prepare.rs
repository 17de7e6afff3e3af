//! Whose database a file is, and filling one that is nobody's yet: tables, rows, indexes and marker
//! in one transaction.

use plimsoll_workload::store::{Catalogue, StoreCounts};
use rusqlite::{Connection, OptionalExtension, params};

use super::customers::{INSERT_CUSTOMER, insert_customer};
use super::reviews;
use crate::client::{Foreign, ReviewCounts};

/// The run that begins.
pub struct Begun {
    /// Its number, from 1 on.
    pub run: u64,
    /// What there is.
    pub counts: StoreCounts,
}

/// Begins a run on the store of a database; makes the store first where there is nothing.
pub fn begin_run(
    connection: &mut Connection,
    catalogue: &Catalogue,
) -> rusqlite::Result<Result<Begun, Foreign>> {
    if let Some(foreign) = foreign_table(connection)? {
        return Ok(Err(Foreign::Table(foreign)));
    }
    // Only now: it is kept in the file, and a file of somebody else is not changed by a byte.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What decides is read and changed under one lock: of two who begin at once, one makes the
    // store and the other finds it.
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if let Some(foreign) = foreign_table(&transaction)? {
        return Ok(Err(Foreign::Table(foreign)));
    }
    if !has_tables(&transaction)? {
        fill(&transaction, catalogue)?;
    }
    let (seed, megabytes, runs): (i64, i64, i64) = transaction.query_row(
        "SELECT seed, megabytes, runs FROM plimsoll_marker WHERE id = 1",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    if (seed, megabytes) != (catalogue.seed() as i64, catalogue.scale().megabytes() as i64) {
        let megabytes = megabytes as u64;
        return Ok(Err(Foreign::Store { seed, megabytes }));
    }
    transaction.execute("UPDATE plimsoll_marker SET runs = runs + 1 WHERE id = 1", [])?;
    let mut written = ReviewCounts::default();
    if catalogue.reviews() > 0 {
        if let Err(foreign) = reviews::begin(&transaction, catalogue)? {
            return Ok(Err(foreign));
        }
        written = reviews::counts(&transaction)?;
    }
    let count = |table: &str| -> rusqlite::Result<u64> {
        let count: i64 =
            transaction
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        Ok(count as u64)
    };
    let counts = StoreCounts {
        customers: count("CUSTOMERS")?,
        orders: count("ORDERS")?,
        reviews: written.reviews,
        ratings: written.ratings,
        ..StoreCounts::default()
    };
    transaction.commit()?;
    Ok(Ok(Begun { run: runs as u64 + 1, counts }))
}

fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) > 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// A table of a database that has some and not our marker.
fn foreign_table(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let ours = "SELECT name FROM sqlite_schema WHERE type = 'table' AND NOT EXISTS \
        (SELECT 1 FROM sqlite_schema WHERE name = 'plimsoll_marker') ORDER BY name LIMIT 1";
    connection.query_row(ours, [], |row| row.get(0)).optional()
}

fn fill(connection: &Connection, catalogue: &Catalogue) -> rusqlite::Result<()> {
    connection.execute_batch(include_str!("tables.sql"))?;
    let scale = catalogue.scale();
    let mut customers = connection.prepare(INSERT_CUSTOMER)?;
    for id in 1..=scale.customers() {
        insert_customer(&mut customers, Some(id as i64), &catalogue.customer(id))?;
    }
    let mut products =
        connection.prepare("INSERT INTO PRODUCTS VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let mut inventory = connection.prepare("INSERT INTO INVENTORY VALUES (?1, ?2, ?3)")?;
    for (sold, id) in catalogue.sales().into_iter().zip(1..) {
        let product = catalogue.product(id);
        let common = product.common_product as i64;
        products.execute(params![
            id as i64,
            product.category,
            product.title,
            product.actor,
            product.price_cents,
            product.is_special,
            common
        ])?;
        inventory.execute(params![id as i64, catalogue.stock(id), sold])?;
    }
    let mut orders = connection.prepare("INSERT INTO ORDERS VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut lines = connection.prepare("INSERT INTO ORDERLINES VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut history = connection.prepare("INSERT INTO CUST_HIST VALUES (?1, ?2, ?3, ?4)")?;
    for id in 1..=scale.orders() {
        let order = catalogue.order(id);
        let (id, customer) = (id as i64, order.customer as i64);
        let total = order.net_cents + order.tax_cents;
        orders.execute(params![
            id,
            order.day,
            customer,
            order.net_cents,
            order.tax_cents,
            total
        ])?;
        for (line, number) in order.lines.iter().zip(1i64..) {
            let product = line.product as i64;
            lines.execute(params![number, id, product, line.quantity, order.day])?;
            history.execute(params![customer, id, number, product])?;
        }
    }
    connection.execute_batch(include_str!("indexes.sql"))?;
    let marker = params![catalogue.seed() as i64, scale.megabytes() as i64];
    connection.execute("INSERT INTO plimsoll_marker VALUES (1, ?1, ?2, 0)", marker)?;
    Ok(())
}
