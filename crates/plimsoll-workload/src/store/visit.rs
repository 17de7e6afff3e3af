//! How a customer's visit went: what every backend of a store answers, whatever stands behind it.

use plimsoll_io::Nanos;

use super::reviews::Errand;
use super::task::StoreTask;

/// The steps of a visit, each timed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A known customer was looked up, and what that customer bought before.
    Login,
    /// A new customer was added.
    SignUp,
    /// Products were looked for.
    Search,
    /// A customer became a member.
    Join,
    /// Reviews were looked for.
    FindReviews,
    /// Reviews of a product were read.
    ReadReviews,
    /// A review was written.
    WriteReview,
    /// A review was rated.
    RateReview,
    /// Prices of what is to be ordered were asked for.
    Price,
    /// The order was placed, with every attempt that it took.
    Purchase,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 10] = [
        Step::Login,
        Step::SignUp,
        Step::Search,
        Step::Join,
        Step::FindReviews,
        Step::ReadReviews,
        Step::WriteReview,
        Step::RateReview,
        Step::Price,
        Step::Purchase,
    ];

    /// The name of its metric.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Login => "store_login",
            Step::SignUp => "store_new_customer",
            Step::Search => "store_search",
            Step::Join => "store_new_member",
            Step::FindReviews => "store_review_search",
            Step::ReadReviews => "store_reviews",
            Step::WriteReview => "store_new_review",
            Step::RateReview => "store_new_rating",
            Step::Price => "store_price",
            Step::Purchase => "store_purchase",
        }
    }
}

impl Errand {
    /// The step that it is.
    pub const fn step(&self) -> Step {
        match self {
            Errand::Join { .. } => Step::Join,
            Errand::FindReviews { .. } => Step::FindReviews,
            Errand::ReadReviews { .. } => Step::ReadReviews,
            Errand::Write(_) => Step::WriteReview,
            Errand::Rate { .. } => Step::RateReview,
        }
    }
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitEnd {
    /// What was ordered was sold.
    Sold,
    /// Something was out of stock and the whole order was rolled back. DVD Store counts it as an
    /// order.
    OutOfStock,
    /// Other sessions were first for as long as the order was tried. It counts as no order.
    GivenUp,
    /// The connection to a server broke, or there was none. What had been asked for last may have
    /// been done or not.
    ConnectionLost,
    /// The server had no connection left, or was just starting.
    ConnectionRefused,
    /// There was no room for the rows; whatever was begun was taken back.
    NoSpace,
}

/// A visit from the door to the till.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The steps in order, and how long each took.
    pub steps: Vec<(Step, Nanos)>,
    /// Rows that the searches found.
    pub rows_found: u32,
    /// How often the purchase was begun again because another session was first.
    pub retries: u32,
    /// Connections that were found broken before anything was asked on them.
    pub reconnects: u32,
    /// Which endpoint of its server it was carried out at, counted from 0.
    pub endpoint: usize,
    /// How it ended.
    pub end: VisitEnd,
    /// What a server said when it ended in another way than an order does.
    pub trouble: Option<String>,
}

impl Visit {
    /// One of which nothing has happened yet.
    pub fn begun(task: &StoreTask) -> Visit {
        Visit {
            steps: Vec::with_capacity(task.searches.len() + 3),
            rows_found: 0,
            retries: 0,
            reconnects: 0,
            endpoint: 0,
            end: VisitEnd::Sold,
            trouble: None,
        }
    }
}
