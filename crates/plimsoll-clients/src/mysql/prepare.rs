//! Whose database it is, and filling one that is nobody's yet.
//!
//! Statements that make tables end the transaction that they stand in, so a store cannot be made
//! whole or not at all. The marker comes first and says that the store is not whole; a store that
//! was begun and not finished is ours, and is made anew.

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use plimsoll_workload::store::{Catalogue, StoreCounts};

use super::reviews;
use super::rows::Rows;
use crate::client::{Foreign, ReviewCounts};
use crate::dates::date;

/// The run that begins.
pub struct Begun {
    /// Its number, from 1 on.
    pub run: u64,
    /// What there is.
    pub counts: StoreCounts,
}

/// Of all programs that make a store in a database, one does; the others wait for it as long as a
/// large one takes. The name of a lock has 64 letters at most, as has that of a database.
const LOCK: &str = "SELECT GET_LOCK(CONCAT('plimsoll make ', SHA1(DATABASE())), 86400)";
const UNLOCK: &str = "DO RELEASE_LOCK(CONCAT('plimsoll make ', SHA1(DATABASE())))";
const TABLES: &str = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = \
 DATABASE() ORDER BY TABLE_NAME";
const OURS: [&str; 6] = ["CUSTOMERS", "ORDERS", "ORDERLINES", "CUST_HIST", "PRODUCTS", "INVENTORY"];

/// Begins a run on the store of a database; makes the store first where there is nothing.
pub fn begin_run(
    connection: &mut Conn,
    catalogue: &Catalogue,
) -> Result<Result<Begun, Foreign>, Error> {
    connection.query_drop(LOCK)?;
    let begun = begin_locked(connection, catalogue);
    connection.query_drop(UNLOCK)?;
    begun
}

fn begin_locked(
    connection: &mut Conn,
    catalogue: &Catalogue,
) -> Result<Result<Begun, Foreign>, Error> {
    let tables: Vec<String> = connection.query(TABLES)?;
    let is_ours = tables.iter().any(|table| table == "plimsoll_marker");
    if let (false, Some(foreign)) = (is_ours, tables.first()) {
        return Ok(Err(Foreign::Table(foreign.clone())));
    }
    let whole: Option<i64> = match is_ours {
        true => connection.query_first("SELECT whole FROM plimsoll_marker WHERE id = 1")?,
        false => None,
    };
    if whole != Some(1) {
        // What was begun and not finished has only tables of these names.
        for table in OURS.iter().chain(&["plimsoll_marker"]) {
            connection.query_drop(format!("DROP TABLE IF EXISTS {table}"))?;
        }
        fill(connection, catalogue)?;
    }
    let marker: Option<(i64, i64, i64)> =
        connection.query_first("SELECT seed, megabytes, runs FROM plimsoll_marker WHERE id = 1")?;
    let (seed, megabytes, runs) = marker.unwrap_or_default();
    if (seed, megabytes) != (catalogue.seed() as i64, catalogue.scale().megabytes() as i64) {
        let megabytes = megabytes as u64;
        return Ok(Err(Foreign::Store { seed, megabytes }));
    }
    let mut written = ReviewCounts::default();
    if catalogue.reviews() > 0 {
        if let Err(foreign) = reviews::begin(connection, catalogue)? {
            return Ok(Err(foreign));
        }
        written = reviews::counts(connection)?;
    }
    connection.query_drop("UPDATE plimsoll_marker SET runs = runs + 1 WHERE id = 1")?;
    let counted: Option<(u64, u64)> = connection
        .query_first("SELECT (SELECT count(*) FROM CUSTOMERS), (SELECT count(*) FROM ORDERS)")?;
    let (customers, orders) = counted.unwrap_or_default();
    Ok(Ok(Begun {
        run: runs as u64 + 1,
        counts: StoreCounts {
            customers,
            orders,
            reviews: written.reviews,
            ratings: written.ratings,
            ..StoreCounts::default()
        },
    }))
}

fn fill(connection: &mut Conn, catalogue: &Catalogue) -> Result<(), Error> {
    for statement in include_str!("tables.sql").split(";\n") {
        connection.query_drop(statement)?;
    }
    connection.query_drop("SET autocommit = 0")?;
    let filled = fill_tables(connection, catalogue);
    connection.query_drop("SET autocommit = 1")?;
    filled?;
    // Words are looked for once they are all there: indexes of text that grow row by row take many
    // times as long.
    connection.query_drop("CREATE FULLTEXT INDEX IX_PROD_ACTOR ON PRODUCTS (ACTOR)")?;
    connection.query_drop("CREATE FULLTEXT INDEX IX_PROD_TITLE ON PRODUCTS (TITLE)")?;
    connection.query_drop(format!("ANALYZE TABLE {}", OURS.join(", ")))?;
    let whole = "UPDATE plimsoll_marker SET seed = ?, megabytes = ?, whole = 1 WHERE id = 1";
    let values = (catalogue.seed() as i64, catalogue.scale().megabytes() as i64);
    connection.exec_drop(whole, values)
}

fn fill_tables(connection: &mut Conn, catalogue: &Catalogue) -> Result<(), Error> {
    let scale = catalogue.scale();
    let mut customers = Rows::of("CUSTOMERS");
    for id in 1..=scale.customers() {
        let customer = catalogue.customer(id);
        let state = customer.state.map_or("NULL".to_owned(), |state| format!("'{state}'"));
        let row = format!(
            "({id},'{}','{}','{}',NULL,'{}',{state},{},'{}',{},'{}','{}',{},'{}','{}','{}','{}',{},{},'{}')",
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
        customers.add(connection, &row)?;
    }
    customers.send(connection)?;
    let (mut products, mut inventory) = (Rows::of("PRODUCTS"), Rows::of("INVENTORY"));
    for (sold, id) in catalogue.sales().into_iter().zip(1..) {
        let product = catalogue.product(id);
        let (price, special) = (cents(product.price_cents), u8::from(product.is_special));
        let row = format!(
            "({id},{},'{}','{}',{price},{special},{})",
            product.category, product.title, product.actor, product.common_product
        );
        products.add(connection, &row)?;
        inventory.add(connection, &format!("({id},{},{sold})", catalogue.stock(id)))?;
    }
    products.send(connection)?;
    inventory.send(connection)?;
    let (mut orders, mut lines) = (Rows::of("ORDERS"), Rows::of("ORDERLINES"));
    let mut history = Rows::of("CUST_HIST");
    for id in 1..=scale.orders() {
        let order = catalogue.order(id);
        let (day, customer) = (date(order.day), order.customer);
        let (net, tax) = (order.net_cents, order.tax_cents);
        let row =
            format!("({id},'{day}',{customer},{},{},{})", cents(net), cents(tax), cents(net + tax));
        orders.add(connection, &row)?;
        for (line, number) in order.lines.iter().zip(1..) {
            let row = format!("({number},{id},{},{},'{day}')", line.product, line.quantity);
            lines.add(connection, &row)?;
            history.add(connection, &format!("({customer},{id},{})", line.product))?;
        }
    }
    orders.send(connection)?;
    lines.send(connection)?;
    history.send(connection)
}

fn cents(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
