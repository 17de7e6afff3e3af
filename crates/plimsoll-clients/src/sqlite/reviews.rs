//! Members, reviews and ratings: their tables, and what customers do with them, as statements.

use plimsoll_workload::store::{
    CUSTOMERS_PER_MEMBER, Catalogue, Errand, MEMBER_UNTIL_DAY, NewReview, REVIEWS_LOOKED_AT,
    ReviewOrder, SearchBy, YEAR_DAYS,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::statements::{BY_TEXT, Found};
use crate::client::{Foreign, ReviewCounts};

const TABLES: &str = include_str!("reviews.sql");
const INDEXES: &str = "CREATE INDEX IX_REVIEWS_PROD_STARS ON REVIEWS (PROD_ID, STARS); \
     CREATE INDEX IX_HELPFULNESS_REVIEW ON REVIEWS_HELPFULNESS (REVIEW_ID); ANALYZE;";

/// Reviews a product of the store of a database; adds them where there are none yet.
pub fn begin(
    connection: &Connection,
    catalogue: &Catalogue,
) -> rusqlite::Result<Result<(), Foreign>> {
    let marker = "SELECT megabytes FROM plimsoll_marker WHERE id = 2";
    let there: Option<i64> = connection.query_row(marker, [], |row| row.get(0)).optional()?;
    let wanted = catalogue.reviews() as i64;
    match there {
        Some(there) if there != wanted => {
            Ok(Err(Foreign::Reviews { there: there as u64, wanted: wanted as u64 }))
        }
        Some(_) => Ok(Ok(())),
        None => fill(connection, catalogue).map(Ok),
    }
}

fn fill(connection: &Connection, catalogue: &Catalogue) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    let mut members = connection.prepare("INSERT INTO MEMBERSHIP VALUES (?1, ?2, ?3)")?;
    for customer in (0..=catalogue.scale().customers()).step_by(CUSTOMERS_PER_MEMBER as usize) {
        if let (1.., Some(level)) = (customer, catalogue.member_level(customer)) {
            members.execute(params![customer as i64, level, MEMBER_UNTIL_DAY])?;
        }
    }
    let mut reviews =
        connection.prepare("INSERT INTO REVIEWS VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let mut ratings =
        connection.prepare("INSERT INTO REVIEWS_HELPFULNESS VALUES (NULL, ?1, ?2, ?3)")?;
    for id in 1..=catalogue.reviews() {
        let review = catalogue.review(id);
        let NewReview { product, stars, summary, text } = &review.says;
        let (id, customer) = (id as i64, review.customer as i64);
        let product = *product as i64;
        reviews.execute(params![id, product, review.day, stars, customer, summary, text])?;
        for helpfulness in catalogue.ratings(review.id) {
            ratings.execute(params![id, customer, helpfulness])?;
        }
    }
    connection.execute_batch(INDEXES)?;
    let marker = params![catalogue.seed() as i64, catalogue.reviews() as i64];
    connection.execute("INSERT INTO plimsoll_marker VALUES (2, ?1, ?2, 0)", marker)?;
    Ok(())
}

/// Rows of reviews and ratings.
pub fn counts(connection: &Connection) -> rusqlite::Result<ReviewCounts> {
    let text = "SELECT (SELECT count(*) FROM REVIEWS), (SELECT count(*) FROM REVIEWS_HELPFULNESS)";
    connection.query_row(text, [], |row| {
        let (reviews, ratings): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok(ReviewCounts { reviews: reviews as u64, ratings: ratings as u64 })
    })
}

/// Does what a customer wants; answers how many rows were found.
pub fn errand(
    connection: &Connection,
    errand: &Errand,
    customer: i64,
    catalogue: &Catalogue,
) -> rusqlite::Result<Found<usize>> {
    match errand {
        Errand::Join { customer, level } => {
            let text = "INSERT INTO MEMBERSHIP VALUES (?1, ?2, ?3) ON CONFLICT (CUSTOMERID) DO \
                 UPDATE SET MEMBERSHIPTYPE = ?2, EXPIREDATE = ?3";
            let values = params![*customer as i64, level, MEMBER_UNTIL_DAY];
            connection.prepare_cached(text)?.execute(values)?;
            Ok(Ok(0))
        }
        Errand::FindReviews { by, limit } => {
            let wanted = match by {
                SearchBy::Actor(word) => format!("ACTOR : \"{word}\""),
                SearchBy::Title(word) => format!("TITLE : \"{word}\""),
                SearchBy::Category(_) => return Ok(Err("reviews have no category".into())),
            };
            let those = format!("{BY_TEXT} ORDER BY PROD_ID, REVIEW_ID LIMIT {REVIEWS_LOOKED_AT}");
            let text = helpful_of(&those);
            let mut found = connection.prepare_cached(&text)?;
            let rows = found.query(params![wanted, limit])?;
            read(rows, catalogue)
        }
        Errand::ReadReviews { product, order, limit } => {
            let product = *product as i64;
            let (text, stars) = match order {
                ReviewOrder::Helpful => (helpful_of("PROD_ID = ?1 AND ?3 = 0"), 0),
                ReviewOrder::Stars(stars) => (helpful_of("PROD_ID = ?1 AND STARS = ?3"), *stars),
                ReviewOrder::Latest => (LATEST.to_owned(), 0),
            };
            let mut found = connection.prepare_cached(&text)?;
            let rows = found.query(params![product, limit, stars])?;
            read(rows, catalogue)
        }
        Errand::Write(NewReview { product, stars, summary, text }) => {
            let insert = "INSERT INTO REVIEWS VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6)";
            let day = YEAR_DAYS as i64;
            let values = params![*product as i64, day, stars, customer, summary, text];
            connection.prepare_cached(insert)?.execute(values)?;
            Ok(Ok(0))
        }
        Errand::Rate { review, helpfulness } => {
            let insert = "INSERT INTO REVIEWS_HELPFULNESS VALUES (NULL, ?1, ?2, ?3)";
            let values = params![*review as i64, customer, helpfulness];
            connection.prepare_cached(insert)?.execute(values)?;
            Ok(Ok(0))
        }
    }
}

const LATEST: &str = "SELECT REVIEW_ID, PROD_ID, STARS, REVIEW_SUMMARY, REVIEW_TEXT, \
     (SELECT sum(HELPFULNESS) FROM REVIEWS_HELPFULNESS rated WHERE rated.REVIEW_ID = \
     REVIEWS.REVIEW_ID) FROM REVIEWS WHERE PROD_ID = ?1 AND ?3 = 0 \
     ORDER BY REVIEW_DATE DESC, REVIEW_ID LIMIT ?2";

fn helpful_of(those: &str) -> String {
    format!(
        "SELECT REVIEW_ID, PROD_ID, STARS, REVIEW_SUMMARY, REVIEW_TEXT, \
         coalesce((SELECT sum(HELPFULNESS) FROM REVIEWS_HELPFULNESS rated WHERE rated.REVIEW_ID = \
         those.REVIEW_ID), 0) AS TOTAL FROM (SELECT * FROM REVIEWS WHERE {those}) those \
         ORDER BY TOTAL DESC, REVIEW_ID LIMIT ?2"
    )
}

/// Reads the reviews, compares those that were prepared with what was written, and counts them.
fn read(mut rows: rusqlite::Rows<'_>, catalogue: &Catalogue) -> rusqlite::Result<Found<usize>> {
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let (id, found) = review(row)?;
        if (1..=catalogue.reviews() as i64).contains(&id)
            && catalogue.review(id as u64).says != found
        {
            return Ok(Err(format!("review {id} is not what was written")));
        }
        count += 1;
    }
    Ok(Ok(count))
}

fn review(row: &Row<'_>) -> rusqlite::Result<(i64, NewReview)> {
    let product: i64 = row.get(1)?;
    let (stars, summary, text) = (row.get(2)?, row.get(3)?, row.get(4)?);
    Ok((row.get(0)?, NewReview { product: product as u64, stars, summary, text }))
}
