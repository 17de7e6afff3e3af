//! Filling a table by COPY.

use bytes::Bytes;
use futures_util::{SinkExt, pin_mut};
use tokio_postgres::{Error, Transaction};

/// Text of a copy is sent in pieces of about this size.
const PIECE_BYTES: usize = 256 * 1024;

/// Fills a table with lines of text.
pub async fn copy<W: FnOnce(&mut String)>(
    transaction: &Transaction<'_>,
    table: &str,
    lines: impl Iterator<Item = W>,
) -> Result<(), Error> {
    let sink = transaction.copy_in(&format!("COPY {table} FROM STDIN")).await?;
    pin_mut!(sink);
    let mut piece = String::with_capacity(PIECE_BYTES + 4096);
    for write in lines {
        write(&mut piece);
        if piece.len() >= PIECE_BYTES {
            sink.send(Bytes::from(std::mem::take(&mut piece))).await?;
        }
    }
    sink.send(Bytes::from(piece)).await?;
    sink.finish().await?;
    Ok(())
}
