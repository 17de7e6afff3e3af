//! An online store that sells discs: the second workload family. Customers log in or sign up, look
//! for products, ask for prices and order.
//!
//! The loop, the tables and the distributions are those of DVD Store 2, a public benchmark; facts
//! only were taken from it. Its vocabulary and its generators were not: words are made of syllables
//! here, and every row is a pure function of the seed and its number, so that the same seed gives
//! the same rows behind every kind of database. Three of its faults are left out on purpose: new
//! customers never run out of names, sizes follow one rule that always rises, and every order draws
//! from one seed, so a run can be repeated. A store that has reviews is that of DVD Store 3: its
//! customers also become members, and read, write and rate reviews.

pub(crate) mod audit;
pub(crate) mod demand;
pub(crate) mod formula;
pub(crate) mod model;
pub(crate) mod reviews;
pub(crate) mod rows;
pub(crate) mod scale;
pub(crate) mod task;
pub(crate) mod visit;
pub(crate) mod words;

pub use audit::{StoreAudit, StoreCounts};
pub use demand::{Population, StoreDemand, StoreHabits};
pub use formula::{ceiling_opm, expected_rollback_share, opm};
pub use model::{RESTOCK_BELOW, Shelves, left_in_stock};
pub use reviews::{
    CUSTOMERS_PER_MEMBER, Errand, MEMBER_UNTIL_DAY, NewReview, REVIEWS_LOOKED_AT, Review,
    ReviewHabits, ReviewOrder,
};
pub use rows::{CATEGORIES, Catalogue, Customer, Order, Product, YEAR_DAYS, is_hot, tax_cents};
pub use scale::{Scale, ScaleError};
pub use task::{Entrance, Line, Search, SearchBy, StoreTask};
pub use visit::{Step, Visit, VisitEnd};
pub use words::{FIRST_NAMES, LAST_NAMES, WORDS, first_name, last_name, word};
