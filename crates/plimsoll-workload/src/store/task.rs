//! What one customer does from coming in to paying: the task of a store.

// Circle: a visit is a task with its errands, and these search as visits do.
use super::reviews::Errand;

/// How a customer comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// A prepared customer logs in.
    Login {
        /// From 1 on.
        customer: u64,
    },
    /// Someone signs up. The service makes the name of the session, of this and of the number of
    /// its run.
    SignUp {
        /// How many this session has signed up before.
        number: u64,
    },
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchBy {
    /// Special offers of a genre.
    Category(u8),
    /// Products with an actor, by first and last name.
    Actor(String),
    /// Products with both words in their titles.
    Title(String),
}

/// One search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// What for.
    pub by: SearchBy,
    /// Rows that are wanted at most.
    pub limit: u32,
}

/// So much of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// From 1 on.
    pub product: u64,
    /// 1 to 3.
    pub quantity: u32,
}

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreTask {
    /// Number of the session, of all that the run has begun.
    pub session: u64,
    /// How the customer comes in.
    pub entrance: Entrance,
    /// What is looked for, in this order.
    pub searches: Vec<Search>,
    /// What is done with members and reviews then; nothing in DVD Store 2.
    pub errands: Vec<Errand>,
    /// What is ordered then. The same product may stand in several lines.
    pub lines: Vec<Line>,
}
