//! The steps of a visit as statements, each step on one connection.

use mysql::prelude::Queryable;
use mysql::{Conn, Error, TxOpts, params};
use plimsoll_workload::store::{
    Customer, Line, RESTOCK_BELOW, Search, SearchBy, StoreAudit, VisitEnd, YEAR_DAYS, tax_cents,
};

use crate::client::{Claim, Marker, Numbered, TABLES, audit_of_row};
use crate::dates::date;
use crate::vocabulary::SAMPLE_ROWS;

/// Words of an index of text have so many letters unless the server is told otherwise.
const WORD_LETTERS_MIN: usize = 3;
/// What the server says of a table that is not there.
const NO_SUCH_TABLE: u16 = 1146;
/// Titles that a login shows at most.
const TITLES_MAX: u32 = 10;

/// What a server may be set to otherwise. What it acknowledges is committed, and who thinks or has
/// claimed a database waits for as long as the run takes: a year is the most there is.
pub const SESSION: [&str; 2] = ["SET autocommit = 1", "SET SESSION wait_timeout = 31536000"];
/// Of all runs on a database, one; by the first lock a run knows its own connection again. Names
/// of locks are short, those of databases need not be.
const CLAIM: &str = "SELECT GET_LOCK(CONCAT('plimsoll own ', ?), 0), \
 GET_LOCK(CONCAT('plimsoll run ', SHA1(DATABASE())), 0)";
const HOLDER: &str = "SELECT ID, HOST FROM information_schema.PROCESSLIST WHERE ID = \
 IS_USED_LOCK(CONCAT('plimsoll run ', SHA1(DATABASE())))";
const MARKER: &str = "SELECT seed, megabytes, runs FROM plimsoll_marker WHERE id = 1";

/// A product that was found: number, title, actor, price in cents.
pub type FoundProduct = (i64, String, String, i64);

/// A known customer and what was bought before.
pub struct LoggedIn {
    /// The number.
    pub customer: i64,
    /// Products with their titles.
    pub titles: Vec<(i64, String)>,
}

/// Claims the database for as long as the connection lasts. `own` is a lock of this run.
pub fn claim(connection: &mut Conn, own: i64) -> Result<Claim, Error> {
    let answer: Option<(Option<i64>, Option<i64>)> = connection.exec_first(CLAIM, (own,))?;
    let (has_own, has_database) = answer.unwrap_or_default();
    Ok(Claim::of(has_database == Some(1), has_own == Some(1)))
}

/// Who has claimed the database, as far as the server tells.
pub fn holder(connection: &mut Conn) -> Result<Option<String>, Error> {
    let found: Option<(u64, String)> = connection.query_first(HOLDER)?;
    Ok(found.map(|(number, host)| format!("connection {number} of the server, from {host}")))
}

/// The marker of the store; nothing where there is none.
pub fn marker(connection: &mut Conn) -> Result<Option<Marker>, Error> {
    match connection.query_first(MARKER) {
        Err(Error::MySqlError(said)) if said.code == NO_SUCH_TABLE => Ok(None),
        found => found,
    }
}

/// The number of a customer, with titles bought before and for each one that others bought with it.
pub fn log_in(connection: &mut Conn, username: &str) -> Result<Option<LoggedIn>, Error> {
    let by_name = "SELECT CUSTOMERID FROM CUSTOMERS WHERE USERNAME = ? AND PASSWORD = ?";
    let found: Option<i64> = connection.exec_first(by_name, (username, "password"))?;
    let Some(customer) = found else {
        return Ok(None);
    };
    let history = "SELECT one.PROD_ID, one.TITLE, other.PROD_ID, other.TITLE FROM CUST_HIST \
        JOIN PRODUCTS one ON one.PROD_ID = CUST_HIST.PROD_ID JOIN PRODUCTS other ON other.PROD_ID \
        = one.COMMON_PROD_ID \
        WHERE CUST_HIST.CUSTOMERID = ? ORDER BY CUST_HIST.ORDERID LIMIT ?";
    let rows: Vec<(i64, String, i64, String)> = connection.exec(history, (customer, TITLES_MAX))?;
    let both = rows.into_iter().flat_map(|(one, title, other, also)| [(one, title), (other, also)]);
    Ok(Some(LoggedIn { customer, titles: both.collect() }))
}

/// Adds a customer; answers the number it got.
pub fn sign_up(connection: &mut Conn, customer: &Customer) -> Result<i64, Error> {
    let insert = "INSERT INTO CUSTOMERS (FIRSTNAME, LASTNAME, ADDRESS1, CITY, STATE, ZIP, COUNTRY, \
     REGION, EMAIL, PHONE, CREDITCARDTYPE, \
        CREDITCARD, CREDITCARDEXPIRATION, USERNAME, PASSWORD, AGE, INCOME, GENDER) VALUES (:first, \
        :last, :address, :city, :state, :zip, \
        :country, :region, :email, :phone, :type, :card, :expiration, :username, :password, :age, \
        :income, :gender)";
    connection.exec_drop(
        insert,
        params! {
            "first" => &customer.first_name,
            "last" => &customer.last_name,
            "address" => &customer.address1,
            "city" => &customer.city,
            "state" => &customer.state,
            "zip" => &customer.zip,
            "country" => &customer.country,
            "region" => customer.region,
            "email" => &customer.email,
            "phone" => &customer.phone,
            "type" => customer.creditcard_type,
            "card" => &customer.creditcard,
            "expiration" => &customer.creditcard_expiration,
            "username" => &customer.username,
            "password" => &customer.password,
            "age" => customer.age,
            "income" => customer.income,
            "gender" => customer.gender.to_string(),
        },
    )?;
    Ok(connection.last_insert_id() as i64)
}

/// Products that a search finds, no more than it wants.
pub fn search(connection: &mut Conn, search: &Search) -> Result<Vec<FoundProduct>, Error> {
    let (condition, wanted) = match &search.by {
        SearchBy::Category(category) => ("CATEGORY = ? AND SPECIAL = 1", category.to_string()),
        SearchBy::Actor(name) => ("MATCH (ACTOR) AGAINST (? IN BOOLEAN MODE)", all_words(name)),
        SearchBy::Title(both) => ("MATCH (TITLE) AGAINST (? IN BOOLEAN MODE)", all_words(both)),
    };
    let text = format!(
        "SELECT PROD_ID, TITLE, ACTOR, CAST(PRICE * 100 AS SIGNED) FROM PRODUCTS WHERE {condition} \
         ORDER BY PROD_ID LIMIT ?"
    );
    connection.exec(text, (wanted, search.limit))
}

/// Letters and digits only: anything else is an operator of the search language, or parts words.
/// Indexes leave words out that are shorter, and what must be there would then never be found.
pub fn all_words(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let wanted: Vec<_> = words
        .filter(|word| word.chars().count() >= WORD_LETTERS_MIN)
        .map(|word| format!("+{word}"))
        .collect();
    wanted.join(" ")
}

/// A DVD Store that is there.
pub struct Existing {
    /// Those called user1 and so on.
    pub customers: Numbered,
    /// All of them.
    pub products: Numbered,
    /// Some of those that can be searched for.
    pub actors: Vec<String>,
    /// The same of titles.
    pub titles: Vec<String>,
}

/// What a DVD Store holds that is there; a table that is missing.
pub fn existing(connection: &mut Conn) -> Result<Result<Existing, &'static str>, Error> {
    for table in TABLES {
        let there = format!("SELECT 1 FROM {} LIMIT 1", table.to_ascii_uppercase());
        match connection.query_drop(there) {
            Err(Error::MySqlError(said)) if said.code == NO_SUCH_TABLE => return Ok(Err(table)),
            other => other?,
        }
    }
    let mut numbered = |text: &str| -> Result<Numbered, Error> {
        let counted: Option<(i64, i64)> = connection.query_first(text)?;
        Ok(counted.map_or_else(Numbered::default, |(count, largest)| Numbered { count, largest }))
    };
    let customers = numbered(
        "SELECT count(*), coalesce(max(CAST(SUBSTR(USERNAME, 5) AS SIGNED)), 0) FROM CUSTOMERS \
         WHERE USERNAME REGEXP '^user[0-9]{1,9}$'",
    )?;
    let products =
        numbered("SELECT count(*), CAST(coalesce(max(PROD_ID), 0) AS SIGNED) FROM PRODUCTS")?;
    let text = "SELECT ACTOR, TITLE FROM PRODUCTS WHERE PROD_ID % greatest(1, ? DIV ?) = 0 \
         ORDER BY PROD_ID LIMIT ?";
    let values = (products.largest, SAMPLE_ROWS, SAMPLE_ROWS);
    let rows: Vec<(String, String)> = connection.exec(text, values)?;
    let (actors, titles) = rows.into_iter().unzip();
    Ok(Ok(Existing { customers, products, actors, titles }))
}

/// Prices of products, in cents, each with its number.
pub fn prices(connection: &mut Conn, lines: &[Line]) -> Result<Vec<(i64, i64)>, Error> {
    let marks = vec!["?"; lines.len()].join(", ");
    let text = format!(
        "SELECT PROD_ID, CAST(PRICE * 100 AS SIGNED) FROM PRODUCTS WHERE PROD_ID IN ({marks})"
    );
    let wanted: Vec<u64> = lines.iter().map(|line| line.product).collect();
    connection.exec(text, wanted)
}

/// Places an order as one transaction. Products come in rising order.
pub fn purchase(
    connection: &mut Conn,
    customer: i64,
    lines: &[Line],
    net_cents: i64,
) -> Result<VisitEnd, Error> {
    let (day, tax) = (date(YEAR_DAYS as u16), tax_cents(net_cents as u64) as i64);
    let mut transaction = connection.start_transaction(TxOpts::default())?;
    let insert = "INSERT INTO ORDERS (ORDERDATE, CUSTOMERID, NETAMOUNT, TAX, TOTALAMOUNT) VALUES \
     (?, ?, ? / 100, ? / 100, ? / 100)";
    transaction.exec_drop(insert, (&day, customer, net_cents, tax, net_cents + tax))?;
    let order = transaction.last_insert_id().unwrap_or_default();
    for line in lines {
        // Stock and sales change in one statement that is also the question whether there is
        // enough.
        let take = "UPDATE INVENTORY SET SALES = SALES + :wanted, \
            QUAN_IN_STOCK = IF(QUAN_IN_STOCK - :wanted < :least, QUAN_IN_STOCK, QUAN_IN_STOCK - \
            :wanted) \
            WHERE PROD_ID = :product AND QUAN_IN_STOCK >= :wanted";
        let values = params! { "wanted" => line.quantity, "least" => RESTOCK_BELOW,
        "product" => line.product };
        transaction.exec_drop(take, values)?;
        if transaction.affected_rows() == 0 {
            transaction.rollback()?;
            return Ok(VisitEnd::OutOfStock);
        }
    }
    let rows = vec!["(?, ?, ?, ?, ?)"; lines.len()].join(", ");
    let values: Vec<mysql::Value> = lines
        .iter()
        .zip(1i64..)
        .flat_map(|(line, number)| {
            let day = day.as_str();
            [number.into(), order.into(), line.product.into(), line.quantity.into(), day.into()]
        })
        .collect();
    transaction.exec_drop(
        format!(
            "INSERT INTO ORDERLINES (ORDERLINEID, ORDERID, PROD_ID, QUANTITY, ORDERDATE) \
         VALUES {rows}"
        ),
        values,
    )?;
    let rows = vec!["(?, ?, ?)"; lines.len()].join(", ");
    let values: Vec<mysql::Value> = lines
        .iter()
        .flat_map(|line| [customer.into(), order.into(), line.product.into()])
        .collect();
    transaction.exec_drop(
        format!("INSERT INTO CUST_HIST (CUSTOMERID, ORDERID, PROD_ID) VALUES {rows}"),
        values,
    )?;
    transaction.commit()?;
    Ok(VisitEnd::Sold)
}

/// What the store holds, as one snapshot sees it.
pub fn audit(connection: &mut Conn) -> Result<StoreAudit, Error> {
    let row: Option<mysql::Row> = connection.query_first(include_str!("audit.sql"))?;
    let number = |column: usize| {
        let found: Option<i64> = row.as_ref().and_then(|row| row.get(column));
        found.unwrap_or_default().max(0) as u64
    };
    Ok(audit_of_row(number))
}

/// Stock and sales of every product.
pub fn stock_and_sales(connection: &mut Conn) -> Result<Vec<(i64, i64)>, Error> {
    connection.query("SELECT QUAN_IN_STOCK, SALES FROM INVENTORY ORDER BY PROD_ID")
}

/// By what the server can lose commits that it acknowledged, in words. With a binary log it is this
/// log that decides after a crash what was committed.
pub fn commits_at_risk(connection: &mut Conn) -> Result<Vec<String>, Error> {
    let settings: Vec<(String, String)> = connection.query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', \
         'innodb_flush_method', 'log_bin', 'sync_binlog')",
    )?;
    let value = |name: &str| {
        let found = settings.iter().find(|(setting, _)| setting.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    };
    let is_logged = value("log_bin").eq_ignore_ascii_case("on");
    let flushed = value("innodb_flush_log_at_trx_commit");
    let judged = [
        ("innodb_flush_log_at_trx_commit", matches!(flushed, "0" | "2")),
        ("innodb_flush_method", value("innodb_flush_method").eq_ignore_ascii_case("nosync")),
        ("sync_binlog", is_logged && value("sync_binlog") != "1"),
    ];
    let at_risk = judged.iter().filter(|(_, is_at_risk)| *is_at_risk);
    let mut found: Vec<_> = at_risk.map(|(name, _)| format!("{name} is {}", value(name))).collect();
    let tables: Vec<String> = connection.query(
        "SELECT CONCAT('table ', TABLE_NAME, ' is kept by ', ENGINE) FROM \
         information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('CUSTOMERS', \
         'ORDERS', 'ORDERLINES', 'CUST_HIST', 'INVENTORY') AND ENGINE IN ('MyISAM', 'Aria', \
         'MEMORY') ORDER BY TABLE_NAME",
    )?;
    found.extend(tables);
    Ok(found)
}

/// Bytes of the tables and their indexes, as far as the server has counted them.
pub fn size_bytes(connection: &mut Conn) -> Result<u64, Error> {
    let text = "SELECT CAST(coalesce(sum(DATA_LENGTH + INDEX_LENGTH), 0) AS UNSIGNED) FROM \
     information_schema.TABLES \
        WHERE TABLE_SCHEMA = DATABASE()";
    Ok(connection.query_first(text)?.unwrap_or_default())
}
