//! The steps of a visit as statements, each step on one connection.

use std::time::Duration;

use plimsoll_workload::store::{
    Catalogue, Customer, Line, RESTOCK_BELOW, Search, SearchBy, StoreAudit, VisitEnd, YEAR_DAYS,
    tax_cents,
};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::customers::{INSERT_CUSTOMER, insert_customer};

/// What a statement found, or what is wrong with it.
pub type Found<T> = Result<T, String>;

/// A customer's number, and titles with those that others bought with them.
type LoggedIn = (i64, Vec<(String, String)>);

/// How long a connection waits for another program that writes. Sessions of a run wait for each
/// other before.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);
/// Titles that a login shows at most.
const TITLES_MAX: i64 = 10;

/// Makes commits durable.
pub fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_PATIENCE)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// The number of a customer, with titles bought before and for each one that others bought with it.
pub fn log_in(
    connection: &Connection,
    username: &str,
    catalogue: &Catalogue,
) -> rusqlite::Result<Found<LoggedIn>> {
    let mut by_name = connection
        .prepare_cached("SELECT CUSTOMERID FROM CUSTOMERS WHERE USERNAME = ?1 AND PASSWORD = ?2")?;
    let customer: Option<i64> =
        by_name.query_row(params![username, "password"], |row| row.get(0)).optional()?;
    let Some(customer) = customer else {
        return Ok(Err(format!("customer {username} is missing")));
    };
    let mut history = connection.prepare_cached(
        "SELECT one.PROD_ID, one.TITLE, other.PROD_ID, other.TITLE FROM CUST_HIST \
         JOIN PRODUCTS one ON one.PROD_ID = CUST_HIST.PROD_ID JOIN PRODUCTS other ON other.PROD_ID \
         = one.COMMON_PROD_ID \
         WHERE CUST_HIST.CUSTOMERID = ?1 ORDER BY CUST_HIST.ORDERID, CUST_HIST.ORDERLINEID LIMIT \
         ?2",
    )?;
    let mut rows = history.query(params![customer, TITLES_MAX])?;
    let mut titles = Vec::new();
    while let Some(row) = rows.next()? {
        let both: [(i64, String); 2] = [(row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?)];
        for (product, title) in &both {
            if catalogue.product(*product as u64).title != *title {
                return Ok(Err(format!("product {product} is not what was written")));
            }
        }
        let [(_, title), (_, other)] = both;
        titles.push((title, other));
    }
    Ok(Ok((customer, titles)))
}

/// Adds a customer; answers the number it got.
pub fn sign_up(connection: &Connection, customer: &Customer) -> rusqlite::Result<i64> {
    let mut insert = connection.prepare_cached(INSERT_CUSTOMER)?;
    insert_customer(&mut insert, None, customer)?;
    Ok(connection.last_insert_rowid())
}

/// Numbers of the products that a search finds, which rise, no more than it wants.
pub fn search(
    connection: &Connection,
    search: &Search,
    catalogue: &Catalogue,
) -> rusqlite::Result<Found<Vec<i64>>> {
    let (condition, wanted) = match &search.by {
        SearchBy::Category(category) => ("CATEGORY = ?1 AND SPECIAL = 1", category.to_string()),
        SearchBy::Actor(name) => (BY_TEXT, format!("ACTOR : ({})", all_words(name))),
        SearchBy::Title(both) => (BY_TEXT, format!("TITLE : ({})", all_words(both))),
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT PROD_ID, TITLE, ACTOR, PRICE FROM PRODUCTS WHERE {condition} ORDER BY PROD_ID \
         LIMIT ?2"
    ))?;
    let mut rows = statement.query(params![wanted, search.limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let (title, actor, price): (String, String, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let product = catalogue.product(number as u64);
        if (title, actor, price) != (product.title, product.actor, i64::from(product.price_cents)) {
            return Ok(Err(format!("product {number} is not what was written")));
        }
        found.push(number);
    }
    Ok(Ok(found))
}

pub const BY_TEXT: &str = "PROD_ID IN (SELECT rowid FROM PRODUCT_TEXT WHERE PRODUCT_TEXT MATCH ?1)";

/// Words are letters only, but quoted all the same: an operator of the search language among them
/// would be one.
fn all_words(text: &str) -> String {
    let quoted: Vec<_> = text.split(' ').map(|word| format!("\"{word}\"")).collect();
    quoted.join(" AND ")
}

/// What lines cost without tax.
pub fn price(
    connection: &Connection,
    lines: &[Line],
    catalogue: &Catalogue,
) -> rusqlite::Result<Found<i64>> {
    let mut statement =
        connection.prepare_cached("SELECT PRICE FROM PRODUCTS WHERE PROD_ID = ?1")?;
    let mut net_cents = 0;
    for line in lines {
        let number = line.product as i64;
        let price: Option<i64> = statement.query_row([number], |row| row.get(0)).optional()?;
        if price != Some(i64::from(catalogue.product(line.product).price_cents)) {
            return Ok(Err(format!("the price of product {number} is not what was written")));
        }
        net_cents += price.unwrap_or_default() * i64::from(line.quantity);
    }
    Ok(Ok(net_cents))
}

/// Places an order as one transaction. Products come in rising order.
pub fn purchase(
    connection: &mut Connection,
    customer: i64,
    lines: &[Line],
    net_cents: i64,
) -> rusqlite::Result<VisitEnd> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (day, tax) = (YEAR_DAYS as i64, tax_cents(net_cents as u64) as i64);
    let order = {
        let mut insert =
            transaction.prepare_cached("INSERT INTO ORDERS VALUES (NULL, ?1, ?2, ?3, ?4, ?5)")?;
        insert.insert(params![day, customer, net_cents, tax, net_cents + tax])?
    };
    for (line, number) in lines.iter().zip(1i64..) {
        let product = line.product as i64;
        // Stock and sales change in one statement that is also the question whether there is
        // enough.
        let mut take = transaction.prepare_cached(
            "UPDATE INVENTORY SET SALES = SALES + ?2, \
             QUAN_IN_STOCK = CASE WHEN QUAN_IN_STOCK - ?2 < ?3 THEN QUAN_IN_STOCK ELSE \
             QUAN_IN_STOCK - ?2 END \
             WHERE PROD_ID = ?1 AND QUAN_IN_STOCK >= ?2",
        )?;
        if take.execute(params![product, line.quantity, RESTOCK_BELOW])? == 0 {
            drop(take);
            transaction.rollback()?;
            return Ok(VisitEnd::OutOfStock);
        }
        let mut insert =
            transaction.prepare_cached("INSERT INTO ORDERLINES VALUES (?1, ?2, ?3, ?4, ?5)")?;
        insert.execute(params![number, order, product, line.quantity, day])?;
        let mut insert =
            transaction.prepare_cached("INSERT INTO CUST_HIST VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute(params![customer, order, number, product])?;
    }
    transaction.commit()?;
    Ok(VisitEnd::Sold)
}

/// What the store holds.
pub fn audit(connection: &mut Connection) -> rusqlite::Result<StoreAudit> {
    let snapshot = connection.transaction()?;
    let number = |sql: &str| -> rusqlite::Result<u64> {
        let number: i64 = snapshot.query_row(sql, [], |row| row.get(0))?;
        Ok(number.max(0) as u64)
    };
    Ok(StoreAudit {
        customers: number("SELECT count(*) FROM CUSTOMERS")?,
        orders: number("SELECT count(*) FROM ORDERS")?,
        order_lines: number("SELECT count(*) FROM ORDERLINES")?,
        history: number("SELECT count(*) FROM CUST_HIST")?,
        sold_units: number("SELECT coalesce(sum(SALES), 0) FROM INVENTORY")?,
        ordered_units: number("SELECT coalesce(sum(QUANTITY), 0) FROM ORDERLINES")?,
        products_differing: number(
            "SELECT count(*) FROM INVENTORY LEFT JOIN (SELECT PROD_ID AS product, sum(QUANTITY) AS \
             units FROM ORDERLINES \
             GROUP BY PROD_ID) ON product = PROD_ID WHERE SALES <> coalesce(units, 0)",
        )?,
        stocks_negative: number("SELECT count(*) FROM INVENTORY WHERE QUAN_IN_STOCK < 0")?,
        orders_of_wrong_size: number(
            "SELECT count(*) FROM ORDERS LEFT JOIN (SELECT ORDERID AS of, count(*) AS size FROM \
             ORDERLINES GROUP BY ORDERID) \
             ON of = ORDERID WHERE coalesce(size, 0) NOT BETWEEN 1 AND 10",
        )?,
        lines_without_order: number(
            "SELECT count(*) FROM ORDERLINES WHERE ORDERID NOT IN (SELECT ORDERID FROM ORDERS)",
        )?,
        ..StoreAudit::default()
    })
}

/// Stock and sales of every product.
pub fn stock_and_sales(connection: &Connection) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement =
        connection.prepare_cached("SELECT QUAN_IN_STOCK, SALES FROM INVENTORY ORDER BY PROD_ID")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Bytes of the pages in use.
pub fn size_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let text = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, \
     pragma_freelist_count, pragma_page_size";
    let bytes: i64 = connection.query_row(text, [], |row| row.get(0))?;
    Ok(bytes.max(0) as u64)
}

/// Moves what the write-ahead log holds into the file, as far as nobody reads it.
pub fn fold_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
