//! Members, reviews and ratings of DVD Store 3 on the engine: their tables, and what customers do
//! with them, each as a transaction.
//!
//! A store has them when it is asked for them first; their marker comes last, like that of the
//! store. Ratings are kept by review, so that those of one review lie together.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::StoredRow;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnType, Table, TableBuilder};
use plimsoll_workload::store::{
    CUSTOMERS_PER_MEMBER, Catalogue, Errand, MEMBER_UNTIL_DAY, NewReview, REVIEWS_LOOKED_AT,
    ReviewOrder, SearchBy, YEAR_DAYS,
};

// Circle: a shop is prepared with its reviews, and these are filled in as its other tables are.
use super::prepare::{ACTOR_WORDS, Filler, TITLE_WORDS};
use super::schema::marker;
use super::sheet::{Sheet, Value};
// Circle: what a shop does with reviews are methods of the shop, which opens their tables.
use super::{Result, Shop, ShopError, TRIED_NS_MAX};

/// Names of the tables.
pub const NAMES: [&str; 3] = ["MEMBERSHIP", "REVIEWS", "REVIEWS_HELPFULNESS"];
/// The row of the marker that says that they are whole.
const MARKER_ROW: i64 = 2;
/// The index of reviews by product and stars.
const BY_PRODUCT: usize = 1;

const MEMBER_COLUMNS: &[(&str, ColumnType)] = &[
    ("CUSTOMERID", ColumnType::Long),
    ("MEMBERSHIPTYPE", ColumnType::Long),
    ("EXPIREDATE", ColumnType::Long),
];
const REVIEW_COLUMNS: &[(&str, ColumnType)] = &[
    ("REVIEW_ID", ColumnType::Long),
    ("PROD_ID", ColumnType::Long),
    ("REVIEW_DATE", ColumnType::Long),
    ("STARS", ColumnType::Long),
    ("CUSTOMERID", ColumnType::Long),
    ("REVIEW_SUMMARY", ColumnType::Text),
    ("REVIEW_TEXT", ColumnType::LongBinary),
];
const RATING_COLUMNS: &[(&str, ColumnType)] = &[
    ("REVIEW_ID", ColumnType::Long),
    ("REVIEW_HELPFULNESS_ID", ColumnType::LongLong),
    ("CUSTOMERID", ColumnType::Long),
    ("HELPFULNESS", ColumnType::Long),
];
const MEMBER_TYPE: usize = 1;
const MEMBER_EXPIRES: usize = 2;
const ID: usize = 0;
const PRODUCT: usize = 1;
const DAY: usize = 2;
const STARS: usize = 3;
const SUMMARY: usize = 5;
const TEXT: usize = 6;
const HELPFULNESS: usize = 3;

/// The tables, open.
pub struct Reviews {
    members: Sheet,
    reviews: Sheet,
    ratings: Sheet,
    next_review: Cell<i32>,
    ratings_made: Cell<i64>,
}

fn declared(name: &str, columns: &[(&str, ColumnType)]) -> TableBuilder {
    let table = Table::builder(name);
    columns.iter().fold(table, |table, (name, kind)| table.column(Column::new(name, *kind)))
}

fn all() -> std::result::Result<Vec<Table>, EngineError> {
    let [members, reviews, ratings] = NAMES;
    let builders = [
        declared(members, MEMBER_COLUMNS).primary("primary", &["CUSTOMERID"]),
        declared(reviews, REVIEW_COLUMNS)
            .primary("primary", &["REVIEW_ID"])
            .duplicates("by product", &["PROD_ID", "STARS"]),
        declared(ratings, RATING_COLUMNS)
            .primary("primary", &["REVIEW_ID", "REVIEW_HELPFULNESS_ID"]),
    ];
    let built = builders.into_iter().map(TableBuilder::build);
    built
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| EngineError::BadRow(error.to_string()))
}

impl Reviews {
    async fn open_tables(instance: &Instance) -> Result<Reviews> {
        let [members, reviews, ratings] = NAMES;
        Ok(Reviews {
            members: Sheet::open(instance, members, MEMBER_COLUMNS).await?,
            reviews: Sheet::open(instance, reviews, REVIEW_COLUMNS).await?,
            ratings: Sheet::open(instance, ratings, RATING_COLUMNS).await?,
            next_review: Cell::new(1),
            ratings_made: Cell::new(0),
        })
    }

    /// Opens those of a whole store; makes them first where it has none yet.
    ///
    /// # Errors
    /// What the disk reports; a store with another number of reviews; one that was left half made,
    /// which only making the store anew puts right.
    pub async fn open(
        instance: &Rc<Instance>,
        marker: &Sheet,
        catalogue: &Catalogue,
    ) -> Result<Reviews> {
        let transaction = instance.begin();
        let key = marker.key_of_number(MARKER_ROW)?;
        let there = match marker.get(&transaction, &key).await? {
            Some(row) => Some(marker.number(&row, marker::MEGABYTES)? as u64),
            None => None,
        };
        transaction.commit(Commit::Lazy).await?;
        let wanted = catalogue.reviews();
        match there {
            Some(there) if there != wanted => Err(ShopError::NotOurs(format!(
                "the store has {there} reviews, not {wanted}; say so in the plan"
            ))),
            Some(_) => {
                let reviews = Reviews::open_tables(instance).await?;
                let transaction = instance.begin();
                let last = reviews.reviews.last_number(&transaction).await?;
                transaction.commit(Commit::Lazy).await?;
                reviews.next_review.set(last + 1);
                Ok(reviews)
            }
            None => Reviews::make(instance, marker, catalogue).await,
        }
    }

    async fn make(
        instance: &Rc<Instance>,
        marker: &Sheet,
        catalogue: &Catalogue,
    ) -> Result<Reviews> {
        for table in all()? {
            match instance.create_table(1, table).await {
                Ok(_) => {}
                Err(error) => {
                    return Err(ShopError::NotOurs(format!(
                        "reviews were begun and not finished in the store ({error}); let it be \
                         made again: source = \"new\""
                    )));
                }
            }
        }
        let reviews = Reviews::open_tables(instance).await?;
        let mut filler = Filler::new(instance);
        let customers = (CUSTOMERS_PER_MEMBER..=catalogue.scale().customers())
            .step_by(CUSTOMERS_PER_MEMBER as usize);
        for customer in customers {
            if let Some(level) = catalogue.member_level(customer) {
                let values = [customer as i64, i64::from(level), i64::from(MEMBER_UNTIL_DAY)];
                filler.insert(&reviews.members, &values.map(Value::Number)).await?;
            }
        }
        for id in 1..=catalogue.reviews() {
            let review = catalogue.review(id);
            let day = i64::from(review.day);
            let customer = review.customer as i64;
            let values = review_values(id as i64, day, customer, &review.says);
            filler.insert(&reviews.reviews, &values).await?;
        }
        for id in 1..=catalogue.reviews() {
            let customer = catalogue.review(id).customer as i64;
            for (helpfulness, number) in catalogue.ratings(id).into_iter().zip(1..) {
                let values = [id as i64, number, customer, i64::from(helpfulness)];
                filler.insert(&reviews.ratings, &values.map(Value::Number)).await?;
            }
        }
        let (seed, each) = (catalogue.seed() as i64, catalogue.reviews() as i64);
        filler.insert(marker, &[MARKER_ROW, seed, each, 0].map(Value::Number)).await?;
        filler.finish(Commit::Durable).await?;
        reviews.next_review.set(catalogue.reviews() as i32 + 1);
        Ok(reviews)
    }

    /// Rows of reviews and of ratings.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn counts(&self, transaction: &Transaction) -> Result<(u64, u64)> {
        let reviews = self.reviews.count(transaction).await?;
        Ok((reviews, self.ratings.count(transaction).await?))
    }
}

fn review_values<'a>(id: i64, day: i64, customer: i64, says: &'a NewReview) -> [Value<'a>; 7] {
    [
        Value::Number(id),
        Value::Number(says.product as i64),
        Value::Number(day),
        Value::Number(i64::from(says.stars)),
        Value::Number(customer),
        says.summary.as_str().into(),
        Value::Bytes(says.text.as_bytes()),
    ]
}

/// A review that was found, and by what it is put in order.
struct Ranked {
    by: i64,
    id: i64,
    row: StoredRow,
}

impl Shop {
    /// Does what a customer wants with members and reviews; answers how many reviews were read.
    ///
    /// # Errors
    /// What the disk reports, a review that is not what was written, or a store without reviews.
    pub async fn errand(&self, errand: &Errand, customer: i64) -> Result<u32> {
        let Some(reviews) = &self.reviews else {
            return Err(ShopError::NotOurs("the store has no reviews".into()));
        };
        match errand {
            Errand::Join { customer, level } => {
                self.join(reviews, *customer as i64, i64::from(*level)).await?;
                Ok(0)
            }
            Errand::FindReviews { by, limit } => self.find_reviews(reviews, by, *limit).await,
            Errand::ReadReviews { product, order, limit } => {
                self.read_reviews(reviews, *product as i64, *order, *limit).await
            }
            Errand::Write(says) => {
                let begun = self.now();
                let transaction = self.instance.begin();
                let id = reviews.next_review.replace(reviews.next_review.get() + 1);
                let values = review_values(i64::from(id), YEAR_DAYS as i64, customer, says);
                reviews.reviews.insert(&transaction, &values).await?;
                self.commit(transaction, errand.step(), begun).await?;
                self.count(|counts| counts.reviews += 1);
                Ok(0)
            }
            Errand::Rate { review, helpfulness } => {
                let begun = self.now();
                let transaction = self.instance.begin();
                let made = reviews.ratings_made.replace(reviews.ratings_made.get() + 1);
                let number = ((self.run as i64) << 32) | made;
                let values = [*review as i64, number, customer, i64::from(*helpfulness)];
                reviews.ratings.insert(&transaction, &values.map(Value::Number)).await?;
                self.commit(transaction, errand.step(), begun).await?;
                self.count(|counts| counts.ratings += 1);
                Ok(0)
            }
        }
    }

    /// Sessions may want the same customer: whoever comes second tries again.
    async fn join(&self, reviews: &Reviews, customer: i64, level: i64) -> Result<()> {
        let begun = self.now();
        loop {
            let transaction = self.instance.begin();
            let until = i64::from(MEMBER_UNTIL_DAY);
            match join_once(&reviews.members, &transaction, customer, level, until).await {
                Ok(()) => {
                    let step = Errand::Join { customer: 1, level: 1 }.step();
                    return self.commit(transaction, step, begun).await;
                }
                Err(error) => {
                    transaction.rollback().await?;
                    if !error.is_transient() || self.now() - begun > TRIED_NS_MAX {
                        return Err(error.into());
                    }
                }
            }
            self.instance.store().handle.sleep(plimsoll_io::NANOS_PER_MILLISECOND).await;
        }
    }

    async fn find_reviews(&self, reviews: &Reviews, by: &SearchBy, limit: u32) -> Result<u32> {
        let (kind, word) = match by {
            SearchBy::Actor(word) => (ACTOR_WORDS, word),
            SearchBy::Title(word) => (TITLE_WORDS, word),
            SearchBy::Category(_) => {
                return Err(ShopError::WrongContent("reviews have no category".into()));
            }
        };
        let transaction = self.instance.begin();
        let products = self.with_words(&transaction, kind, word, usize::MAX).await?;
        let mut found = Vec::new();
        for product in products {
            if found.len() >= REVIEWS_LOOKED_AT as usize {
                break;
            }
            let mut rows =
                reviews.reviews.rows(&transaction, BY_PRODUCT, &[Value::Number(product)])?;
            while let Some(row) = rows.next().await? {
                found.push(ranked(reviews, &transaction, row, ReviewOrder::Helpful).await?);
            }
        }
        found.truncate(REVIEWS_LOOKED_AT as usize);
        let count = self.shown(reviews, &transaction, found, limit).await?;
        transaction.commit(Commit::Lazy).await?;
        Ok(count)
    }

    async fn read_reviews(
        &self,
        reviews: &Reviews,
        product: i64,
        order: ReviewOrder,
        limit: u32,
    ) -> Result<u32> {
        let transaction = self.instance.begin();
        let mut wanted = vec![Value::Number(product)];
        if let ReviewOrder::Stars(stars) = order {
            wanted.push(Value::Number(i64::from(stars)));
        }
        let mut rows = reviews.reviews.rows(&transaction, BY_PRODUCT, &wanted)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().await? {
            found.push(ranked(reviews, &transaction, row, order).await?);
        }
        drop(rows);
        let count = self.shown(reviews, &transaction, found, limit).await?;
        transaction.commit(Commit::Lazy).await?;
        Ok(count)
    }

    /// Reads the first of the reviews, and compares those that were prepared.
    async fn shown(
        &self,
        reviews: &Reviews,
        transaction: &Transaction,
        mut found: Vec<Ranked>,
        limit: u32,
    ) -> Result<u32> {
        found.sort_unstable_by_key(|review| (std::cmp::Reverse(review.by), review.id));
        found.truncate(limit as usize);
        let sheet = &reviews.reviews;
        for Ranked { id, row, .. } in &found {
            let text = sheet.long_value(transaction, row, TEXT).await?;
            if !(1..=self.catalogue.reviews() as i64).contains(id) {
                continue;
            }
            let says = NewReview {
                product: sheet.number(row, PRODUCT)? as u64,
                stars: sheet.number(row, STARS)? as u8,
                summary: sheet.text(row, SUMMARY)?.to_owned(),
                text: String::from_utf8_lossy(&text).into_owned(),
            };
            if self.catalogue.review(*id as u64).says != says {
                let text = format!("review {id} is not what was written");
                return Err(ShopError::WrongContent(text));
            }
        }
        Ok(found.len() as u32)
    }
}

async fn join_once(
    members: &Sheet,
    transaction: &Transaction,
    customer: i64,
    level: i64,
    until: i64,
) -> std::result::Result<(), EngineError> {
    let key = members.key_of_number(customer)?;
    match members.get(transaction, &key).await? {
        Some(_) => {
            let values = [(MEMBER_TYPE, level), (MEMBER_EXPIRES, until)];
            members.set(transaction, &key, &values).await
        }
        None => members.insert(transaction, &[customer, level, until].map(Value::Number)).await,
    }
}

async fn ranked(
    reviews: &Reviews,
    transaction: &Transaction,
    row: StoredRow,
    order: ReviewOrder,
) -> Result<Ranked> {
    let sheet = &reviews.reviews;
    let id = sheet.number(&row, ID)?;
    let by = match order {
        ReviewOrder::Latest => sheet.number(&row, DAY)?,
        ReviewOrder::Helpful | ReviewOrder::Stars(_) => {
            let mut rated = reviews.ratings.rows(transaction, 0, &[Value::Number(id)])?;
            let mut sum = 0;
            while let Some(rating) = rated.next().await? {
                sum += reviews.ratings.number(&rating, HELPFULNESS)?;
            }
            sum
        }
    };
    Ok(Ranked { by, id, row })
}
