//! Adding a customer, when a store is filled and when one signs up.

use plimsoll_workload::store::Customer;
use rusqlite::{Statement, params};

/// Inserts a customer; without a number it gets the next one.
pub const INSERT_CUSTOMER: &str = "INSERT INTO CUSTOMERS VALUES \
    (?1, ?2, ?3, ?4, NULL, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";

/// See [`INSERT_CUSTOMER`].
pub fn insert_customer(
    statement: &mut Statement<'_>,
    id: Option<i64>,
    customer: &Customer,
) -> rusqlite::Result<()> {
    statement.execute(params![
        id,
        customer.first_name,
        customer.last_name,
        customer.address1,
        customer.city,
        customer.state,
        customer.zip,
        customer.country,
        customer.region,
        customer.email,
        customer.phone,
        customer.creditcard_type,
        customer.creditcard,
        customer.creditcard_expiration,
        customer.username,
        customer.password,
        customer.age,
        customer.income,
        customer.gender.to_string(),
    ])?;
    Ok(())
}
