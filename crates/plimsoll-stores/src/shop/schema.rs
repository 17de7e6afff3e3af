//! The tables: names and columns of DVD Store, which are facts that tools for it know, with two
//! differences. Histories have a line number, because every table here has a key; and full-text
//! search is a table of words, each with the numbers of the products it leads to.

use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::{Column, ColumnType, Table, TableBuilder};

use super::sheet::Sheet;

/// The table that says whose database this is, and that it is whole.
pub const MARKER: &str = "plimsoll_marker";
/// Stock and sales.
pub const INVENTORY: &str = "INVENTORY";
/// Lines of orders.
pub const ORDERLINES: &str = "ORDERLINES";
const CUSTOMERS: &str = "CUSTOMERS";
const ORDERS: &str = "ORDERS";
const HISTORY: &str = "CUST_HIST";
const PRODUCTS: &str = "PRODUCTS";
const WORDS: &str = "WORDS";

/// All tables.
pub const NAMES: [&str; 8] =
    [CUSTOMERS, ORDERS, ORDERLINES, HISTORY, PRODUCTS, INVENTORY, WORDS, MARKER];

/// Positions of the columns of a table, and the table.
macro_rules! table {
    ($module:ident, $table:ident, [$($position:ident = $name:literal: $kind:ident),+ $(,)?]) => {
        #[doc = concat!("Positions of the columns of ", stringify!($table), ".")]
        #[allow(dead_code, reason = "not every column is read")]
        pub mod $module {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms,
                reason = "an enumeration that only counts")]
            enum Position { $($position),+ }
            $(pub const $position: usize = Position::$position as usize;)+
            pub(super) const COLUMNS: &[(&str, plimsoll_engine::ColumnType)] =
                &[$(($name, plimsoll_engine::ColumnType::$kind)),+];
        }
    };
}

table!(marker, MARKER, [ID = "id": Long, SEED = "seed": LongLong,
    MEGABYTES = "megabytes": LongLong, RUNS = "runs": LongLong]);
table!(customers, CUSTOMERS, [
    ID = "CUSTOMERID": Long, FIRST = "FIRSTNAME": Text, LAST = "LASTNAME": Text,
        ADDRESS1 = "ADDRESS1": Text,
    ADDRESS2 = "ADDRESS2": Text, CITY = "CITY": Text, STATE = "STATE": Text, ZIP = "ZIP": Text,
    COUNTRY = "COUNTRY": Text, REGION = "REGION": Short, EMAIL = "EMAIL": Text,
        PHONE = "PHONE": Text,
    CARD_TYPE = "CREDITCARDTYPE": Long, CARD = "CREDITCARD": Text,
        CARD_EXPIRES = "CREDITCARDEXPIRATION": Text,
    USERNAME = "USERNAME": Text, PASSWORD = "PASSWORD": Text, AGE = "AGE": Short,
        INCOME = "INCOME": Long,
    GENDER = "GENDER": Text,
]);
table!(orders, ORDERS, [
    ID = "ORDERID": Long, DAY = "ORDERDATE": Long, CUSTOMER = "CUSTOMERID": Long,
        NET = "NETAMOUNT": LongLong,
    TAX = "TAX": LongLong, TOTAL = "TOTALAMOUNT": LongLong,
]);
table!(orderlines, ORDERLINES, [
    LINE = "ORDERLINEID": Long, ORDER = "ORDERID": Long, PRODUCT = "PROD_ID": Long,
        QUANTITY = "QUANTITY": Long,
    DAY = "ORDERDATE": Long,
]);
table!(history, HISTORY, [
    CUSTOMER = "CUSTOMERID": Long, ORDER = "ORDERID": Long, LINE = "ORDERLINEID": Long,
        PRODUCT = "PROD_ID": Long,
]);
table!(products, PRODUCTS, [
    ID = "PROD_ID": Long, CATEGORY = "CATEGORY": Long, TITLE = "TITLE": Text, ACTOR = "ACTOR": Text,
    PRICE = "PRICE": LongLong, SPECIAL = "SPECIAL": Long, COMMON = "COMMON_PROD_ID": Long,
]);
table!(inventory, INVENTORY, [ID = "PROD_ID": Long, STOCK = "QUAN_IN_STOCK": Long,
    SALES = "SALES": Long]);
table!(words, WORDS, [KIND = "KIND": Long, WORD = "WORD": Text, PRODUCTS = "PRODUCTS": LongBinary]);

/// The tables of a store, open.
pub struct Tables {
    pub marker: Sheet,
    pub customers: Sheet,
    pub orders: Sheet,
    pub orderlines: Sheet,
    pub history: Sheet,
    pub products: Sheet,
    pub inventory: Sheet,
    pub words: Sheet,
}

/// The index of customers by their names.
pub const BY_USERNAME: usize = 1;
/// The index of products by category and whether they are on special offer.
pub const BY_CATEGORY: usize = 1;

fn declared(name: &str, columns: &[(&str, ColumnType)]) -> TableBuilder {
    let table = Table::builder(name);
    columns.iter().fold(table, |table, (name, kind)| table.column(Column::new(name, *kind)))
}

/// Every table with its indexes, in the order in which they are made; the marker is the last one.
fn all() -> Result<Vec<Table>, EngineError> {
    let builders = [
        declared(CUSTOMERS, customers::COLUMNS)
            .primary("primary", &["CUSTOMERID"])
            .unique("by username", &["USERNAME"]),
        declared(ORDERS, orders::COLUMNS)
            .primary("primary", &["ORDERID"])
            .duplicates("by customer", &["CUSTOMERID"]),
        declared(ORDERLINES, orderlines::COLUMNS).primary("primary", &["ORDERID", "ORDERLINEID"]),
        declared(HISTORY, history::COLUMNS)
            .primary("primary", &["CUSTOMERID", "ORDERID", "ORDERLINEID"]),
        declared(PRODUCTS, products::COLUMNS)
            .primary("primary", &["PROD_ID"])
            .duplicates("by category", &["CATEGORY", "SPECIAL"]),
        declared(INVENTORY, inventory::COLUMNS).primary("primary", &["PROD_ID"]),
        declared(WORDS, words::COLUMNS).primary("primary", &["KIND", "WORD"]),
        declared(MARKER, marker::COLUMNS).primary("primary", &["id"]),
    ];
    let built = builders.into_iter().map(TableBuilder::build);
    built.collect::<Result<_, _>>().map_err(|error| EngineError::BadRow(error.to_string()))
}

impl Tables {
    /// Makes all of them.
    pub async fn create(instance: &Rc<Instance>) -> Result<Tables, EngineError> {
        for table in all()? {
            instance.create_table(1, table).await?;
        }
        Tables::open(instance).await
    }

    /// Opens all of them.
    pub async fn open(instance: &Instance) -> Result<Tables, EngineError> {
        let open = async |name, columns| Sheet::open(instance, name, columns).await;
        Ok(Tables {
            marker: open(MARKER, marker::COLUMNS).await?,
            customers: open(CUSTOMERS, customers::COLUMNS).await?,
            orders: open(ORDERS, orders::COLUMNS).await?,
            orderlines: open(ORDERLINES, orderlines::COLUMNS).await?,
            history: open(HISTORY, history::COLUMNS).await?,
            products: open(PRODUCTS, products::COLUMNS).await?,
            inventory: open(INVENTORY, inventory::COLUMNS).await?,
            words: open(WORDS, words::COLUMNS).await?,
        })
    }
}
