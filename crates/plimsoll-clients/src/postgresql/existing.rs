//! A DVD Store that is there: what a run on it begins with.

use plimsoll_workload::store::{Population, StoreAudit};
use tokio_postgres::{Client, Error};

use super::access::Access;
use super::connection::Plain;
use super::{audit, reviews};
use crate::client::{Mode, Numbered, Result, TABLES, no_dvd_store, population_of};
use crate::vocabulary::{SAMPLE_ROWS, Vocabulary};

/// Customers and products of a store that is there: how many, and up to which number.
const NUMBERED: &str = "SELECT customers.*, products.* FROM (SELECT count(*), \
 coalesce(max(substr(username, 5)::bigint), 0) FROM customers WHERE username ~ '^user[0-9]{1,9}$') \
 customers, (SELECT count(*), coalesce(max(prod_id), 0)::bigint FROM products) products";

/// See the module text.
pub struct Existing {
    /// Who can log in and what can be ordered.
    pub population: Population,
    /// What can be searched for.
    pub vocabulary: Vocabulary,
    /// What it holds before the run.
    pub before: StoreAudit,
}

/// What is found in the database.
///
/// # Errors
/// A database that holds no whole DVD Store, or what it said.
pub async fn found(plain: &mut Plain, access: &Access, mode: Mode) -> Result<Existing> {
    let place = access.place();
    let failed = |error: Error| access.failure(&error).into_error(&place);
    for table in TABLES {
        let there = plain.client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await;
        if !there.map_err(failed)?.get::<_, bool>(0) {
            return Err(no_dvd_store(&place, table));
        }
    }
    let row = plain.client.query_one(NUMBERED, &[]).await.map_err(failed)?;
    let numbered = |at: usize| Numbered { count: row.get(at), largest: row.get(at + 1) };
    let (customers, products) = (numbered(0), numbered(2));
    let reviews = match mode {
        Mode::Version2 => 0,
        Mode::Version3 => reviews_there(plain).await.map_err(failed)?,
    };
    let population = population_of(&place, customers, products, reviews)?;
    let vocabulary = vocabulary_of(&plain.client).await.map_err(failed)?;
    let mut before = audit::read(&plain.client).await.map_err(failed)?;
    if reviews > 0 {
        let written = reviews::counts(&plain.client).await.map_err(failed)?;
        before = written.into_audit(before);
    }
    Ok(Existing { population, vocabulary, before })
}

/// The highest number of a review; none where there is no table of them.
async fn reviews_there(plain: &mut Plain) -> std::result::Result<i64, Error> {
    let there = "SELECT to_regclass('reviews') IS NOT NULL AND to_regclass('membership') IS NOT \
         NULL AND to_regclass('reviews_helpfulness') IS NOT NULL";
    if !plain.client.query_one(there, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let largest = "SELECT coalesce(max(review_id), 0)::bigint FROM reviews";
    Ok(plain.client.query_one(largest, &[]).await?.get(0))
}

/// Actors and titles of products evenly spread over their numbers.
async fn vocabulary_of(client: &Client) -> std::result::Result<Vocabulary, Error> {
    let text = "SELECT actor, title FROM products WHERE prod_id % greatest(1, (SELECT count(*) \
         FROM products) / $1) = 0 ORDER BY prod_id LIMIT $1";
    let rows = client.query(text, &[&SAMPLE_ROWS]).await?;
    let texts = |column: usize| rows.iter().map(|row| row.get(column)).collect();
    Ok(Vocabulary::new(texts(0), texts(1)))
}
