//! Members, reviews and ratings: their tables, and what customers do with them, as statements that
//! are prepared once for a connection.

use std::fmt::Write as _;

use plimsoll_workload::store::{
    CUSTOMERS_PER_MEMBER, Catalogue, Errand, MEMBER_UNTIL_DAY, NewReview, REVIEWS_LOOKED_AT,
    ReviewOrder, SearchBy, YEAR_DAYS,
};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement, Transaction};

use super::copying::copy;
use crate::client::{Foreign, ReviewCounts};
use crate::dates::date;
use crate::vocabulary::Vocabulary;

/// What is said of members and reviews.
pub struct ReviewStatements {
    pub join: Statement,
    pub by_actor: Statement,
    pub by_title: Statement,
    pub helpful: Statement,
    pub of_stars: Statement,
    pub latest: Statement,
    pub write: Statement,
    pub rate: Statement,
}

const JOIN: &str = "INSERT INTO membership (customerid, membershiptype, expiredate) \
     VALUES ($1, $2, $3::text::date) ON CONFLICT (customerid) DO UPDATE \
     SET membershiptype = excluded.membershiptype, expiredate = excluded.expiredate";
const WRITE: &str = "INSERT INTO reviews (prod_id, review_date, stars, customerid, \
     review_summary, review_text) VALUES ($1, $2::text::date, $3, $4, $5, $6)";
const RATE: &str =
    "INSERT INTO reviews_helpfulness (review_id, customerid, helpfulness) VALUES ($1, $2, $3)";

impl ReviewStatements {
    /// Prepares them on a connection.
    pub async fn prepare(client: &Client) -> Result<ReviewStatements, Error> {
        let with_word = |column: &str| {
            helpful_of(&format!(
                "prod_id IN (SELECT prod_id FROM products WHERE to_tsvector('simple', {column}) @@ \
                 plainto_tsquery('simple', $1)) ORDER BY prod_id, review_id LIMIT \
                 {REVIEWS_LOOKED_AT}"
            ))
        };
        Ok(ReviewStatements {
            join: client.prepare(JOIN).await?,
            by_actor: client.prepare(&with_word("actor")).await?,
            by_title: client.prepare(&with_word("title")).await?,
            helpful: client.prepare(&helpful_of("prod_id = $1")).await?,
            of_stars: client.prepare(&helpful_of("prod_id = $1 AND stars = $3")).await?,
            latest: client.prepare(&latest()).await?,
            write: client.prepare(WRITE).await?,
            rate: client.prepare(RATE).await?,
        })
    }
}

impl ReviewStatements {
    /// Does what a customer wants; answers the reviews that were found.
    pub async fn carry_out(
        &self,
        client: &Client,
        errand: &Errand,
        customer: i32,
        vocabulary: &Vocabulary,
    ) -> Result<Vec<Row>, Error> {
        match errand {
            Errand::Join { customer, level } => {
                let (customer, level) = (*customer as i32, i32::from(*level));
                let values: [&(dyn ToSql + Sync); 3] = [&customer, &level, &date(MEMBER_UNTIL_DAY)];
                client.execute(&self.join, &values).await.map(|_| Vec::new())
            }
            Errand::FindReviews { by, limit } => {
                let (statement, word) = match by {
                    SearchBy::Title(word) => (&self.by_title, vocabulary.title(word)),
                    SearchBy::Actor(word) => (&self.by_actor, vocabulary.actor(word)),
                    SearchBy::Category(_) => return Ok(Vec::new()),
                };
                let word = word.split(' ').next().unwrap_or(word);
                client.query(statement, &[&word, &i64::from(*limit)]).await
            }
            Errand::ReadReviews { product, order, limit } => {
                let (product, limit) = (*product as i32, i64::from(*limit));
                match order {
                    ReviewOrder::Helpful => client.query(&self.helpful, &[&product, &limit]).await,
                    ReviewOrder::Latest => client.query(&self.latest, &[&product, &limit]).await,
                    ReviewOrder::Stars(stars) => {
                        let stars = i32::from(*stars);
                        client.query(&self.of_stars, &[&product, &limit, &stars]).await
                    }
                }
            }
            Errand::Write(NewReview { product, stars, summary, text }) => {
                let (product, stars) = (*product as i32, i32::from(*stars));
                let day = date(YEAR_DAYS as u16);
                let values: [&(dyn ToSql + Sync); 6] =
                    [&product, &day, &stars, &customer, summary, text];
                client.execute(&self.write, &values).await.map(|_| Vec::new())
            }
            Errand::Rate { review, helpfulness } => {
                let (review, helpfulness) = (*review as i32, i32::from(*helpfulness));
                let values: [&(dyn ToSql + Sync); 3] = [&review, &customer, &helpfulness];
                client.execute(&self.rate, &values).await.map(|_| Vec::new())
            }
        }
    }
}

/// A review that was found, and its number.
pub fn read(row: &Row) -> (i64, NewReview) {
    let (id, product, stars): (i32, i32, i32) = (row.get(0), row.get(1), row.get(2));
    let (product, stars) = (product as u64, stars as u8);
    (i64::from(id), NewReview { product, stars, summary: row.get(3), text: row.get(4) })
}

const COLUMNS: &str = "review_id, prod_id, stars, review_summary, review_text, \
     coalesce((SELECT sum(helpfulness) FROM reviews_helpfulness rated WHERE rated.review_id = \
     those.review_id), 0)::bigint AS total";

fn helpful_of(those: &str) -> String {
    format!(
        "SELECT {COLUMNS} FROM (SELECT * FROM reviews WHERE {those}) those \
         ORDER BY total DESC, review_id LIMIT $2"
    )
}

fn latest() -> String {
    format!(
        "SELECT {COLUMNS} FROM reviews those WHERE prod_id = $1 \
         ORDER BY review_date DESC, review_id LIMIT $2"
    )
}

/// Reviews of the store of a database; adds them where there are none yet.
pub async fn begin(
    transaction: &Transaction<'_>,
    catalogue: &Catalogue,
) -> Result<Result<bool, Foreign>, Error> {
    let marker = "SELECT megabytes FROM plimsoll_marker WHERE id = 2";
    let there = transaction.query_opt(marker, &[]).await?;
    let there: Option<i64> = there.map(|row| row.get(0));
    let wanted = catalogue.reviews() as i64;
    match there {
        Some(there) if there != wanted => {
            Ok(Err(Foreign::Reviews { there: there as u64, wanted: wanted as u64 }))
        }
        Some(_) => Ok(Ok(false)),
        None => fill(transaction, catalogue).await.map(|()| Ok(true)),
    }
}

async fn fill(transaction: &Transaction<'_>, catalogue: &Catalogue) -> Result<(), Error> {
    transaction.batch_execute(include_str!("review_tables.sql")).await?;
    let expires = date(MEMBER_UNTIL_DAY);
    let customers = (CUSTOMERS_PER_MEMBER..=catalogue.scale().customers())
        .step_by(CUSTOMERS_PER_MEMBER as usize);
    let members = customers.filter_map(|customer| {
        let (level, expires) = (catalogue.member_level(customer)?, expires.clone());
        Some(move |line: &mut String| {
            let _ = writeln!(line, "{customer}\t{level}\t{expires}");
        })
    });
    copy(transaction, "membership", members).await?;
    let reviews = (1..=catalogue.reviews()).map(|id| {
        let review = catalogue.review(id);
        move |line: &mut String| {
            let (day, customer, says) = (date(review.day), review.customer, &review.says);
            let _ = writeln!(
                line,
                "{id}\t{}\t{day}\t{}\t{customer}\t{}\t{}",
                says.product, says.stars, says.summary, says.text
            );
        }
    });
    copy(transaction, "reviews", reviews).await?;
    let ratings = (1..=catalogue.reviews()).map(|id| {
        let (customer, ratings) = (catalogue.review(id).customer, catalogue.ratings(id));
        move |text: &mut String| {
            for helpfulness in ratings {
                let _ = writeln!(text, "{id}\t{customer}\t{helpfulness}");
            }
        }
    });
    let columns = "reviews_helpfulness (review_id, customerid, helpfulness)";
    copy(transaction, columns, ratings).await?;
    transaction.batch_execute(include_str!("review_indexes.sql")).await?;
    let (seed, each) = (catalogue.seed() as i64, catalogue.reviews() as i64);
    let marker = "INSERT INTO plimsoll_marker VALUES (2, $1, $2, 0)";
    transaction.execute(marker, &[&seed, &each]).await?;
    Ok(())
}

/// Rows of reviews and ratings.
pub async fn counts(client: &Client) -> Result<ReviewCounts, Error> {
    let text = "SELECT (SELECT count(*) FROM reviews), (SELECT count(*) FROM reviews_helpfulness)";
    let row = client.query_one(text, &[]).await?;
    let number = |column: usize| row.get::<_, i64>(column).max(0) as u64;
    Ok(ReviewCounts { reviews: number(0), ratings: number(1) })
}
