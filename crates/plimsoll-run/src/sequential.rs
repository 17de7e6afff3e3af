//! Writes a file front to back, some writes at a time: how files without an engine are prepared, so
//! that no later write meets an unwritten extent and no read a hole.

use std::collections::VecDeque;

use plimsoll_io::{Context, Durability, File};

use crate::RunError;
use crate::context::RunContext;

/// Bytes written at once.
const WRITE_BYTES: u64 = 1 << 20;
const IN_FLIGHT: usize = 8;

/// Writes `size_bytes` in pieces of whole units and makes them durable; `fill` puts into a piece
/// what belongs at its offset.
///
/// # Errors
/// What the disk reports, or a wish to stop.
pub async fn write_through(
    run: &RunContext,
    file: &File,
    (size_bytes, unit_bytes): (u64, u64),
    context: Context,
    fill: impl Fn(u64, &mut [u8]),
) -> Result<(), RunError> {
    let per_write = (WRITE_BYTES / unit_bytes).max(1) * unit_bytes;
    let mut pending = VecDeque::new();
    let mut offset = 0;
    while offset < size_bytes {
        run.check_stop()?;
        let length = per_write.min(size_bytes - offset);
        let mut buffer = file.allocate(length as usize);
        fill(offset, &mut buffer);
        pending.push_back(file.write(offset, buffer, Durability::Volatile, context));
        offset += length;
        if pending.len() >= IN_FLIGHT {
            pending.pop_front().expect("it is not empty").await?;
        }
        run.handle.yield_now().await;
    }
    for write in pending {
        write.await?;
    }
    Ok(file.sync(context).await?)
}
