//! What DVD Store 3 adds to a store: members, reviews of products, and how helpful others found
//! them.
//!
//! Distributions are those of DVD Store 3: twenty reviews a product, one to five stars, a summary
//! of three words and a text of 6 to 129, two to 39 ratings a review by its own author, and one
//! customer of ten is a member. Shares are drawn each by itself; there one draw serves for all, so
//! that only new customers ever write. A search for reviews looks at a hundred reviews of the
//! products that it finds; there it is five hundred rows of reviews and ratings, in no order.

use plimsoll_io::Random;

// Circle: visits draw errands about reviews, and these are drawn from the same population.
use super::demand::Population;
use super::rows::{Catalogue, TableOf, YEAR_DAYS};
use super::task::SearchBy;
use super::words::{FIRST_NAMES, WORDS, first_name, word};

/// Reviews that a search looks at.
pub const REVIEWS_LOOKED_AT: u32 = 100;
/// One customer of so many is a member when prepared.
pub const CUSTOMERS_PER_MEMBER: u64 = 10;
/// Memberships run out a month after the prepared year, on this day counted from its first.
pub const MEMBER_UNTIL_DAY: u16 = YEAR_DAYS as u16 + 30;
const LEVELS: u64 = 3;
const STARS_MAX: u64 = 5;
const HELPFULNESS_MAX: u64 = 10;
const SUMMARY_WORDS: u64 = 3;
const TEXT_WORDS_MIN: u64 = 6;
const TEXT_WORDS_MAX: u64 = 129;
const RATINGS_MIN: u64 = 2;
const RATINGS_MAX: u64 = 39;

/// How much of it customers do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReviewHabits {
    /// Share of the visits in which a customer becomes a member.
    pub new_members_percent: f64,
    /// Mean number of searches for reviews before an order; as many times again reviews of one
    /// product are read.
    pub reviews_mean: u32,
    /// Share of the visits in which a review is written.
    pub new_reviews_percent: f64,
    /// Share of the visits in which a review is rated.
    pub new_ratings_percent: f64,
}

impl ReviewHabits {
    /// The usual values of DVD Store 3.
    pub const USUAL: ReviewHabits = ReviewHabits {
        new_members_percent: 1.0,
        reviews_mean: 3,
        new_reviews_percent: 5.0,
        new_ratings_percent: 10.0,
    };

    /// Whether the values are possible.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            ("new_members_percent", self.new_members_percent),
            ("new_reviews_percent", self.new_reviews_percent),
            ("new_ratings_percent", self.new_ratings_percent),
        ];
        for (name, value) in shares {
            if !(0.0..=100.0).contains(&value) {
                return Err(format!("{name} is {value}; take 0 to 100"));
            }
        }
        match self.reviews_mean {
            1..=1000 => Ok(()),
            other => Err(format!("reviews_mean is {other}; take 1 to 1000")),
        }
    }
}

/// In which order reviews of a product are read, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewOrder {
    /// The most helpful first.
    Helpful,
    /// Those of so many stars, the most helpful first.
    Stars(u8),
    /// The latest first.
    Latest,
}

/// What a customer does with members and reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Makes a customer a member, or renews the membership.
    Join {
        /// From 1 on.
        customer: u64,
        /// 1 to 3.
        level: u8,
    },
    /// Looks for reviews of products by one word of their actors or titles.
    FindReviews {
        /// An actor or a title.
        by: SearchBy,
        /// Rows that are wanted at most.
        limit: u32,
    },
    /// Reads reviews of a product.
    ReadReviews {
        /// From 1 on.
        product: u64,
        /// Which, and in which order.
        order: ReviewOrder,
        /// Rows that are wanted at most.
        limit: u32,
    },
    /// Writes a review.
    Write(NewReview),
    /// Says how helpful a review is.
    Rate {
        /// From 1 on.
        review: u64,
        /// 1 to 10.
        helpfulness: u8,
    },
}

/// A review that a customer writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReview {
    /// From 1 on.
    pub product: u64,
    /// 1 to 5.
    pub stars: u8,
    /// Three words.
    pub summary: String,
    /// 6 to 129 words.
    pub text: String,
}

/// A prepared review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// From 1 on.
    pub id: u64,
    /// Day of the prepared year, from 0.
    pub day: u16,
    /// Who wrote it.
    pub customer: u64,
    /// What it says.
    pub says: NewReview,
}

/// The errands of one visit, in their order.
pub(super) fn errands(
    random: &mut Random,
    habits: &ReviewHabits,
    population: Population,
    rows_mean: u32,
) -> Vec<Errand> {
    let Population { customers, products, reviews } = population;
    let count = |random: &mut Random, mean: u32| 1 + random.below(2 * u64::from(mean) - 1);
    let happens = |random: &mut Random, percent: f64| random.unit() * 100.0 < percent;
    let mut found = Vec::new();
    if happens(random, habits.new_members_percent) {
        let customer = 1 + random.below(customers);
        found.push(Errand::Join { customer, level: 1 + random.below(LEVELS) as u8 });
    }
    let searches = count(random, habits.reviews_mean);
    for _ in 0..searches {
        let limit = count(random, rows_mean) as u32;
        found.push(Errand::FindReviews { by: one_word(random), limit });
    }
    for _ in 0..searches {
        let limit = count(random, rows_mean) as u32;
        let product = 1 + random.below(products);
        let order = match random.below(3) {
            0 => ReviewOrder::Helpful,
            1 => ReviewOrder::Stars(1 + random.below(STARS_MAX) as u8),
            _ => ReviewOrder::Latest,
        };
        found.push(Errand::ReadReviews { product, order, limit });
    }
    if happens(random, habits.new_reviews_percent) {
        found.push(Errand::Write(written(random, products)));
    }
    if happens(random, habits.new_ratings_percent) {
        let helpfulness = 1 + random.below(HELPFULNESS_MAX) as u8;
        found.push(Errand::Rate { review: 1 + random.below(reviews), helpfulness });
    }
    found
}

fn one_word(random: &mut Random) -> SearchBy {
    match random.below(2) {
        0 => SearchBy::Actor(first_name(random.below(FIRST_NAMES))),
        _ => SearchBy::Title(word(random.below(WORDS))),
    }
}

fn written(random: &mut Random, products: u64) -> NewReview {
    let product = 1 + random.below(products);
    let stars = 1 + random.below(STARS_MAX) as u8;
    let summary = words(random, SUMMARY_WORDS);
    let count = TEXT_WORDS_MIN + random.below(TEXT_WORDS_MAX - TEXT_WORDS_MIN + 1);
    NewReview { product, stars, summary, text: words(random, count) }
}

fn words(random: &mut Random, count: u64) -> String {
    let drawn: Vec<String> = (0..count).map(|_| word(random.below(WORDS))).collect();
    drawn.join(" ")
}

impl Catalogue {
    /// Prepared review `id`, from 1 on.
    pub fn review(&self, id: u64) -> Review {
        let mut random = self.random(TableOf::Reviews, id);
        let customer = 1 + random.below(self.scale().customers());
        let day = random.below(YEAR_DAYS) as u16;
        Review { id, day, customer, says: written(&mut random, self.scale().products()) }
    }

    /// What the ratings of prepared review `id` say, each 1 to 10.
    pub fn ratings(&self, id: u64) -> Vec<u8> {
        let mut random = self.random(TableOf::Ratings, id);
        let count = RATINGS_MIN + random.below(RATINGS_MAX - RATINGS_MIN + 1);
        (0..count).map(|_| 1 + random.below(HELPFULNESS_MAX) as u8).collect()
    }

    /// The level of a customer that is a member when prepared.
    pub fn member_level(&self, customer: u64) -> Option<u8> {
        let is_member = self.reviews() > 0 && customer.is_multiple_of(CUSTOMERS_PER_MEMBER);
        is_member.then(|| 1 + (customer / CUSTOMERS_PER_MEMBER % LEVELS) as u8)
    }
}
