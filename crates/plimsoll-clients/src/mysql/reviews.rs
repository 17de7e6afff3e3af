//! Members, reviews and ratings: their tables, and what customers do with them, as statements.

use mysql::prelude::Queryable;
use mysql::{Conn, Error, Params};
use plimsoll_workload::store::{
    CUSTOMERS_PER_MEMBER, Catalogue, Errand, MEMBER_UNTIL_DAY, NewReview, REVIEWS_LOOKED_AT,
    ReviewOrder, SearchBy, YEAR_DAYS,
};

use super::rows::Rows;
use super::statements::all_words;
use crate::client::{Foreign, ReviewCounts};
use crate::dates::date;

/// The tables, in the order in which they are filled.
const OURS: [&str; 3] = ["MEMBERSHIP", "REVIEWS", "REVIEWS_HELPFULNESS"];

/// Reviews of the store of a database; adds them where there are none yet, or not all.
pub fn begin(connection: &mut Conn, catalogue: &Catalogue) -> Result<Result<(), Foreign>, Error> {
    let marker = "SELECT megabytes, whole FROM plimsoll_marker WHERE id = 2";
    let there: Option<(i64, i64)> = connection.query_first(marker)?;
    let wanted = catalogue.reviews() as i64;
    match there {
        Some((there, 1)) if there != wanted => {
            Ok(Err(Foreign::Reviews { there: there as u64, wanted: wanted as u64 }))
        }
        Some((_, 1)) => Ok(Ok(())),
        _ => fill(connection, catalogue).map(Ok),
    }
}

fn fill(connection: &mut Conn, catalogue: &Catalogue) -> Result<(), Error> {
    let (seed, each) = (catalogue.seed() as i64, catalogue.reviews() as i64);
    let begun = "REPLACE INTO plimsoll_marker VALUES (2, ?, ?, 0, 0)";
    connection.exec_drop(begun, (seed, each))?;
    for table in OURS {
        connection.query_drop(format!("DROP TABLE IF EXISTS {table}"))?;
    }
    for statement in include_str!("reviews.sql").split(";\n") {
        connection.query_drop(statement)?;
    }
    connection.query_drop("SET autocommit = 0")?;
    let filled = fill_tables(connection, catalogue);
    connection.query_drop("SET autocommit = 1")?;
    filled?;
    connection.query_drop(format!("ANALYZE TABLE {}", OURS.join(", ")))?;
    connection.query_drop("UPDATE plimsoll_marker SET whole = 1 WHERE id = 2")
}

fn fill_tables(connection: &mut Conn, catalogue: &Catalogue) -> Result<(), Error> {
    let mut members = Rows::of("MEMBERSHIP");
    let expires = date(MEMBER_UNTIL_DAY);
    let customers = (CUSTOMERS_PER_MEMBER..=catalogue.scale().customers())
        .step_by(CUSTOMERS_PER_MEMBER as usize);
    for customer in customers {
        if let Some(level) = catalogue.member_level(customer) {
            members.add(connection, &format!("({customer},{level},'{expires}')"))?;
        }
    }
    members.send(connection)?;
    let (mut reviews, mut ratings) = (Rows::of("REVIEWS"), Rows::of("REVIEWS_HELPFULNESS"));
    for id in 1..=catalogue.reviews() {
        let review = catalogue.review(id);
        let (day, customer, says) = (date(review.day), review.customer, &review.says);
        let NewReview { product, stars, summary, text } = says;
        let row = format!("({id},{product},'{day}',{stars},{customer},'{summary}','{text}')");
        reviews.add(connection, &row)?;
        for helpfulness in catalogue.ratings(id) {
            ratings.add(connection, &format!("(NULL,{id},{customer},{helpfulness})"))?;
        }
    }
    reviews.send(connection)?;
    ratings.send(connection)
}

/// The highest number of a review; none where there is no table of them.
pub fn there(connection: &mut Conn) -> Result<i64, Error> {
    let tables = "SELECT count(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME IN ('MEMBERSHIP', 'REVIEWS', 'REVIEWS_HELPFULNESS')";
    let tables: Option<i64> = connection.query_first(tables)?;
    if tables != Some(OURS.len() as i64) {
        return Ok(0);
    }
    let largest: Option<i64> =
        connection.query_first("SELECT coalesce(max(REVIEW_ID), 0) FROM REVIEWS")?;
    Ok(largest.unwrap_or(0))
}

/// Rows of reviews and ratings.
pub fn counts(connection: &mut Conn) -> Result<ReviewCounts, Error> {
    let text = "SELECT (SELECT count(*) FROM REVIEWS), (SELECT count(*) FROM REVIEWS_HELPFULNESS)";
    let counted: Option<(u64, u64)> = connection.query_first(text)?;
    let (reviews, ratings) = counted.unwrap_or_default();
    Ok(ReviewCounts { reviews, ratings })
}

/// A review as it is read: number, product, stars, summary, text.
type Row = (i64, u64, u8, String, String);

/// Does what a customer wants; answers the reviews that were found.
pub fn errand(
    connection: &mut Conn,
    errand: &Errand,
    customer: i64,
) -> Result<Vec<(i64, NewReview)>, Error> {
    match errand {
        Errand::Join { customer, level } => {
            let text = "INSERT INTO MEMBERSHIP VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE \
                 MEMBERSHIPTYPE = VALUES(MEMBERSHIPTYPE), EXPIREDATE = VALUES(EXPIREDATE)";
            connection.exec_drop(text, (customer, level, date(MEMBER_UNTIL_DAY)))?;
            Ok(Vec::new())
        }
        Errand::FindReviews { by, limit } => {
            let (column, word) = match by {
                SearchBy::Title(word) => ("TITLE", word.as_str()),
                SearchBy::Actor(word) => ("ACTOR", word.as_str()),
                SearchBy::Category(_) => return Ok(Vec::new()),
            };
            let those = format!(
                "PROD_ID IN (SELECT PROD_ID FROM PRODUCTS WHERE MATCH ({column}) AGAINST (? IN \
                 BOOLEAN MODE)) ORDER BY PROD_ID, REVIEW_ID LIMIT {REVIEWS_LOOKED_AT}"
            );
            read(connection, &helpful_of(&those), (all_words(word), limit))
        }
        Errand::ReadReviews { product, order, limit } => match order {
            ReviewOrder::Helpful => read(connection, &helpful_of("PROD_ID = ?"), (product, limit)),
            ReviewOrder::Stars(stars) => {
                let those = "PROD_ID = ? AND STARS = ?";
                read(connection, &helpful_of(those), (product, stars, limit))
            }
            ReviewOrder::Latest => {
                let text = format!(
                    "SELECT REVIEW_ID, PROD_ID, STARS, REVIEW_SUMMARY, REVIEW_TEXT FROM (SELECT \
                     {COLUMNS} FROM REVIEWS those WHERE PROD_ID = ? \
                     ORDER BY REVIEW_DATE DESC, REVIEW_ID LIMIT ?) found"
                );
                read(connection, &text, (product, limit))
            }
        },
        Errand::Write(NewReview { product, stars, summary, text }) => {
            let insert = "INSERT INTO REVIEWS (PROD_ID, REVIEW_DATE, STARS, CUSTOMERID, \
                 REVIEW_SUMMARY, REVIEW_TEXT) VALUES (?, ?, ?, ?, ?, ?)";
            let day = date(YEAR_DAYS as u16);
            connection.exec_drop(insert, (product, day, stars, customer, summary, text))?;
            Ok(Vec::new())
        }
        Errand::Rate { review, helpfulness } => {
            let insert = "INSERT INTO REVIEWS_HELPFULNESS (REVIEW_ID, CUSTOMERID, HELPFULNESS) \
                 VALUES (?, ?, ?)";
            connection.exec_drop(insert, (review, customer, helpfulness))?;
            Ok(Vec::new())
        }
    }
}

const COLUMNS: &str = "REVIEW_ID, PROD_ID, STARS, REVIEW_SUMMARY, REVIEW_TEXT, \
     coalesce((SELECT sum(HELPFULNESS) FROM REVIEWS_HELPFULNESS rated WHERE rated.REVIEW_ID = \
     those.REVIEW_ID), 0) AS TOTAL";

fn helpful_of(those: &str) -> String {
    format!(
        "SELECT REVIEW_ID, PROD_ID, STARS, REVIEW_SUMMARY, REVIEW_TEXT FROM (SELECT {COLUMNS} \
         FROM (SELECT * FROM REVIEWS WHERE {those}) those ORDER BY TOTAL DESC, REVIEW_ID LIMIT ?) \
         found"
    )
}

fn read(
    connection: &mut Conn,
    text: &str,
    values: impl Into<Params>,
) -> Result<Vec<(i64, NewReview)>, Error> {
    let rows: Vec<Row> = connection.exec(text, values)?;
    let read = rows.into_iter().map(|(id, product, stars, summary, text)| {
        (id, NewReview { product, stars, summary, text })
    });
    Ok(read.collect())
}
