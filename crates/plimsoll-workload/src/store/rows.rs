//! The rows of a store, each a pure function of the seed and its number.
//!
//! Distributions are those of DVD Store. Money is in cents and days are counted from the first day
//! of the prepared year, so that every database gets exactly the same values. Sales in the
//! inventory are the quantities of all prepared orders, so that the sum of sales equals the sum of
//! quantities from the first moment on: that is what the audit holds a run against.

use plimsoll_io::Random;

use super::scale::Scale;
use super::task::Line;
use super::words::{FIRST_NAMES, LAST_NAMES, WORDS, first_name, last_name, word};

/// Genres.
pub const CATEGORIES: u64 = 16;
/// Every so many products one sells ten times as well and is stocked ten times as high.
pub const HOT_EVERY: u64 = 10_000;
const HOT_FACTOR: u64 = 10;
const STOCK_MAX: u64 = 500;
const QUANTITY_MAX: u64 = 3;
/// Lines of a prepared order at most.
const LINES_MAX: u64 = 9;
const NET_CENTS_MAX: u64 = 40_000;
/// In hundredths of a percent.
const TAX_RATE: u64 = 825;
/// The prepared year.
pub const YEAR_DAYS: u64 = 365;
/// In most stores one product of a hundred is on special offer, in large ones one of ten thousand.
const SPECIAL_ONE_OF: u64 = 100;
const SPECIAL_ONE_OF_LARGE: u64 = 10_000;
const LARGE_PRODUCTS: u64 = 100_000;

/// The tables, as far as they tell generators apart.
#[derive(Clone, Copy)]
pub(super) enum TableOf {
    Customers = 1,
    Products = 2,
    Inventory = 3,
    Orders = 4,
    NewCustomers = 5,
    Reviews = 6,
    Ratings = 7,
}

/// What a customer has said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the columns of the table")]
pub struct Customer {
    pub first_name: String,
    pub last_name: String,
    pub address1: String,
    pub city: String,
    pub state: Option<String>,
    pub zip: String,
    pub country: String,
    /// 1 for the first half of the customers, 2 for the second.
    pub region: u8,
    pub email: String,
    pub phone: String,
    pub creditcard_type: u8,
    pub creditcard: String,
    pub creditcard_expiration: String,
    pub username: String,
    pub password: String,
    pub age: u8,
    pub income: u32,
    pub gender: char,
}

/// A product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// From 1 on.
    pub id: u64,
    /// 1 to 16.
    pub category: u8,
    /// Two words.
    pub title: String,
    /// First and last name.
    pub actor: String,
    /// 9.99 to 29.99.
    pub price_cents: u32,
    /// Whether it is found by its category.
    pub is_special: bool,
    /// What those who bought it also bought.
    pub common_product: u64,
}

/// A prepared order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// From 1 on.
    pub id: u64,
    /// Whose.
    pub customer: u64,
    /// Day of the prepared year, from 0.
    pub day: u16,
    /// Without tax.
    pub net_cents: u32,
    /// Tax.
    pub tax_cents: u32,
    /// 1 to 9.
    pub lines: Vec<Line>,
}

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Catalogue {
    seed: u64,
    scale: Scale,
    reviews: u64,
}

/// Tax on an amount, rounded down.
pub fn tax_cents(net_cents: u64) -> u64 {
    net_cents * TAX_RATE / 10_000
}

/// Whether a product sells ten times as well as others.
pub fn is_hot(product: u64) -> bool {
    product.is_multiple_of(HOT_EVERY)
}

fn capitals(random: &mut Random, letters: usize) -> String {
    let letter = |_| char::from(b'A' + random.below(26) as u8);
    (0..letters).map(letter).collect()
}

fn digits(random: &mut Random, count: usize) -> String {
    let digit = |_| char::from(b'0' + random.below(10) as u8);
    (0..count).map(digit).collect()
}

impl Catalogue {
    /// The store of a seed and size.
    pub fn new(seed: u64, scale: Scale) -> Catalogue {
        Catalogue { seed, scale, reviews: 0 }
    }

    /// The same with so many reviews: that of DVD Store 3.
    pub fn with_reviews(self, reviews: u64) -> Catalogue {
        Catalogue { reviews, ..self }
    }

    /// Prepared reviews, numbered from 1; none in a store of DVD Store 2.
    pub fn reviews(&self) -> u64 {
        self.reviews
    }

    /// Its size.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// What decides its rows.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn random(&self, table: TableOf, number: u64) -> Random {
        let salted = self.seed ^ (table as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Random::from_seed(salted.rotate_left(29) ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    /// Prepared customer `id`, from 1 on.
    pub fn customer(&self, id: u64) -> Customer {
        let region = 1 + u8::from(id > self.scale.customers() / 2);
        customer(&mut self.random(TableOf::Customers, id), format!("user{id}"), region)
    }

    /// The `number`th customer that a session of a run makes. No two runs on one database, sessions
    /// or numbers share a name.
    pub fn new_customer(&self, run: u64, session: u64, number: u64) -> Customer {
        let mixed = run.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ session.rotate_left(32) ^ number;
        let mut random = self.random(TableOf::NewCustomers, mixed);
        let region = 1 + random.below(2) as u8;
        let username = format!("new-{}-{run}-{session}-{number}", self.seed);
        customer(&mut random, username, region)
    }

    /// Product `id`, from 1 on.
    pub fn product(&self, id: u64) -> Product {
        let mut random = self.random(TableOf::Products, id);
        let products = self.scale.products();
        let one_of = if products > LARGE_PRODUCTS { SPECIAL_ONE_OF_LARGE } else { SPECIAL_ONE_OF };
        Product {
            id,
            category: 1 + random.below(CATEGORIES) as u8,
            title: title(id),
            actor: format!(
                "{} {}",
                first_name(random.below(FIRST_NAMES)),
                last_name(random.below(LAST_NAMES))
            ),
            price_cents: 999 + 100 * random.below(21) as u32,
            is_special: random.below(one_of) == 0,
            common_product: 1 + random.below(products),
        }
    }

    /// What is in stock of product `id` when prepared.
    pub fn stock(&self, id: u64) -> u32 {
        let stock = self.random(TableOf::Inventory, id).below(STOCK_MAX + 1);
        let factor = if is_hot(id) { HOT_FACTOR } else { 1 };
        (stock * factor) as u32
    }

    /// Prepared order `id`, from 1 on.
    pub fn order(&self, id: u64) -> Order {
        let mut random = self.random(TableOf::Orders, id);
        // Orders come in the order of their days, as those of months do that are loaded one after
        // the other.
        let day = ((id - 1) * YEAR_DAYS / self.scale.orders()) as u16;
        let net_cents = 1 + random.below(NET_CENTS_MAX);
        let customer = 1 + random.below(self.scale.customers());
        let products = self.scale.products();
        let line = |random: &mut Random| Line {
            product: 1 + random.below(products),
            quantity: 1 + random.below(QUANTITY_MAX) as u32,
        };
        let count = 1 + random.below(LINES_MAX);
        Order {
            id,
            customer,
            day,
            net_cents: net_cents as u32,
            tax_cents: tax_cents(net_cents) as u32,
            lines: (0..count).map(|_| line(&mut random)).collect(),
        }
    }

    /// Units of every product sold in the prepared orders; product 1 first.
    pub fn sales(&self) -> Vec<u32> {
        let mut sold = vec![0; self.scale.products() as usize];
        for order in 1..=self.scale.orders() {
            for line in self.order(order).lines {
                sold[line.product as usize - 1] += line.quantity;
            }
        }
        sold
    }
}

/// Two words tell a million products apart; beyond that there is a third.
fn title(id: u64) -> String {
    let index = id - 1;
    let both = format!("{} {}", word(index / WORDS % WORDS), word(index % WORDS));
    match index / (WORDS * WORDS) {
        0 => both,
        more => format!("{both} {}", word(more % WORDS)),
    }
}

fn customer(random: &mut Random, username: String, region: u8) -> Customer {
    let first_name = capitals(random, 6);
    let last_name = capitals(random, 10);
    let is_first = region == 1;
    Customer {
        address1: format!("{} {} St", digits(random, 5), capitals(random, 7)),
        city: capitals(random, 7),
        state: is_first.then(|| capitals(random, 2)),
        zip: if is_first { digits(random, 5) } else { "0".into() },
        country: if is_first { "HOME".into() } else { format!("ABROAD{}", random.below(10)) },
        region,
        email: format!("{last_name}@store.example"),
        phone: digits(random, 10),
        creditcard_type: 1 + random.below(5) as u8,
        creditcard: digits(random, 16),
        creditcard_expiration: format!("{}/{:02}", 2030 + random.below(5), 1 + random.below(12)),
        username,
        password: "password".into(),
        age: 18 + random.below(73) as u8,
        income: 20_000 * (1 + random.below(5)) as u32,
        gender: if random.below(2) == 0 { 'M' } else { 'F' },
        first_name,
        last_name,
    }
}
