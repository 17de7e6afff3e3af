//! The loop of a session: come in, look around, order, think.
//!
//! A share of the customers sign up, the others log in. Counts are uniform from 1 to twice the mean
//! less one, as in DVD Store; think time is uniform from nothing to twice its mean. Products are
//! drawn with hot ones ten times as likely. A session thinks before its first order, too, so that
//! sessions that begin together do not order together.

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};

use super::reviews::{ReviewHabits, errands};
use super::rows::{CATEGORIES, Catalogue, HOT_EVERY};
use super::task::{Entrance, Line, Search, SearchBy, StoreTask};
use super::words::{FIRST_NAMES, LAST_NAMES, WORDS, first_name, last_name, word};
use crate::demand::{Demand, Seen, Timed};
use crate::store::formula::places;

/// Lines of an order at most.
pub const LINES_MAX: u64 = 10;
const QUANTITY_MAX: u64 = 3;

/// What sessions do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreHabits {
    /// Mean think time between two orders.
    pub think_s: f64,
    /// Share of the customers that sign up.
    pub new_customers_percent: f64,
    /// Mean number of searches before an order.
    pub searches_mean: u32,
    /// Mean number of rows a search wants.
    pub search_rows_mean: u32,
    /// Mean number of lines of an order.
    pub lines_mean: u32,
    /// What is done with members and reviews, in a store that has them.
    pub reviews: ReviewHabits,
}

impl StoreHabits {
    /// The usual values of DVD Store: no think time, a fifth new customers, three searches of five
    /// rows, five lines.
    pub const USUAL: StoreHabits = StoreHabits {
        think_s: 0.0,
        new_customers_percent: 20.0,
        searches_mean: 3,
        search_rows_mean: 5,
        lines_mean: 5,
        reviews: ReviewHabits::USUAL,
    };

    /// Whether the values are possible.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self) -> Result<(), String> {
        if !(self.think_s.is_finite() && (0.0..=86_400.0).contains(&self.think_s)) {
            return Err(format!("think_s is {}; take 0 to 86400", self.think_s));
        }
        if !(0.0..=100.0).contains(&self.new_customers_percent) {
            return Err(format!(
                "new_customers_percent is {}; take 0 to 100",
                self.new_customers_percent
            ));
        }
        let counts = [
            ("searches_mean", self.searches_mean),
            ("search_rows_mean", self.search_rows_mean),
            ("lines_mean", self.lines_mean),
        ];
        for (name, value) in counts {
            if !(1..=1000).contains(&value) {
                return Err(format!("{name} is {value}; take 1 to 1000"));
            }
        }
        self.reviews.check()
    }
}

/// Who can log in, and what can be ordered: both are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// Customers of known names.
    pub customers: u64,
    /// Products.
    pub products: u64,
    /// Reviews that were there; none in a store of DVD Store 2.
    pub reviews: u64,
}

impl From<&Catalogue> for Population {
    fn from(catalogue: &Catalogue) -> Population {
        Population {
            customers: catalogue.scale().customers(),
            products: catalogue.scale().products(),
            reviews: catalogue.reviews(),
        }
    }
}

/// See the module text.
#[derive(Debug)]
pub struct StoreDemand {
    random: Random,
    thinking: Random,
    reviewing: Random,
    habits: StoreHabits,
    customers: u64,
    products: u64,
    reviews: u64,
    session: u64,
    signed_up: u64,
}

impl StoreDemand {
    /// The demand of a session with a number of its own. Think time is drawn apart from orders: it
    /// does not change them.
    pub fn new(
        random: Random,
        habits: StoreHabits,
        population: impl Into<Population>,
        session: u64,
    ) -> StoreDemand {
        let Population { customers, products, reviews } = population.into();
        StoreDemand {
            thinking: random.child("think time"),
            reviewing: random.child("reviews"),
            random,
            habits,
            customers,
            products,
            reviews,
            session,
            signed_up: 0,
        }
    }

    /// Uniform from 1 to twice the mean less one.
    fn count(&mut self, mean: u32) -> u64 {
        1 + self.random.below(2 * u64::from(mean) - 1)
    }

    fn think_ns(&mut self) -> Nanos {
        (self.thinking.unit() * 2.0 * self.habits.think_s * NANOS_PER_SECOND as f64) as Nanos
    }

    fn entrance(&mut self) -> Entrance {
        if self.random.unit() * 100.0 >= self.habits.new_customers_percent {
            return Entrance::Login { customer: 1 + self.random.below(self.customers) };
        }
        self.signed_up += 1;
        Entrance::SignUp { number: self.signed_up - 1 }
    }

    fn search(&mut self) -> Search {
        let limit = self.count(self.habits.search_rows_mean) as u32;
        let by = match self.random.below(3) {
            0 => SearchBy::Category(1 + self.random.below(CATEGORIES) as u8),
            1 => SearchBy::Actor(format!(
                "{} {}",
                first_name(self.random.below(FIRST_NAMES)),
                last_name(self.random.below(LAST_NAMES))
            )),
            _ => SearchBy::Title(format!(
                "{} {}",
                word(self.random.below(WORDS)),
                word(self.random.below(WORDS))
            )),
        };
        Search { by, limit }
    }

    fn line(&mut self) -> Line {
        Line { product: self.product(), quantity: 1 + self.random.below(QUANTITY_MAX) as u32 }
    }

    /// From a wheel on which hot products have ten places: behind the places of all products come
    /// nine more of each hot one.
    fn product(&mut self) -> u64 {
        let hot = self.products / HOT_EVERY;
        let more = places(HOT_EVERY) - 1;
        let place = self.random.below(self.products + hot * more);
        match place.checked_sub(self.products) {
            None => 1 + place,
            Some(beyond) => HOT_EVERY * (1 + beyond / more),
        }
    }

    fn task(&mut self) -> StoreTask {
        let entrance = self.entrance();
        let searches = self.count(self.habits.searches_mean);
        let searches = (0..searches).map(|_| self.search()).collect();
        let errands = match self.reviews {
            0 => Vec::new(),
            reviews => errands(
                &mut self.reviewing,
                &self.habits.reviews,
                Population { customers: self.customers, products: self.products, reviews },
                self.habits.search_rows_mean,
            ),
        };
        let lines = self.count(self.habits.lines_mean).min(LINES_MAX);
        StoreTask {
            session: self.session,
            entrance,
            searches,
            errands,
            lines: (0..lines).map(|_| self.line()).collect(),
        }
    }
}

impl Demand for StoreDemand {
    type Task = StoreTask;

    fn next(&mut self, now: Nanos, seen: Option<Seen<'_, StoreTask>>) -> Option<Timed<StoreTask>> {
        let intended = match seen {
            Some(seen) if !seen.done.is_final() => seen.intended,
            Some(seen) => seen.finished + self.think_ns(),
            None => now + self.think_ns(),
        };
        Some(Timed { intended, task: self.task() })
    }
}
