//! What a store holds, counted by its server.

use plimsoll_workload::store::StoreAudit;
use tokio_postgres::{Client, Error};

use crate::client::audit_of_row;

/// As one snapshot sees it, without reviews.
///
/// # Errors
/// What the database says.
pub async fn read(client: &Client) -> Result<StoreAudit, Error> {
    let row = client.query_one(include_str!("audit.sql"), &[]).await?;
    let number = |column: usize| row.get::<_, i64>(column).max(0) as u64;
    Ok(audit_of_row(number))
}
