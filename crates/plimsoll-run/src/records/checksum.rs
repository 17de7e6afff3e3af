//! The checksum pass over a closed database of the engine.

use plimsoll_engine::flushmap::{flush_map_path, flush_map_path_of_device};
use plimsoll_engine::verify::{Depth, HeaderCheck, VerifyOptions, verify};

use super::engine::until_stop;
use crate::RunError;
use crate::context::RunContext;
use crate::events::Level;
use crate::family::ChecksumReads;
use crate::outcome::ChecksumReport;
use crate::spec::InstanceSpec;

/// Reads a whole closed database and judges every page, both copies of the header, its length, and
/// that what is in use was written.
///
/// # Errors
/// When the file cannot be read at all, or a wish to stop.
pub async fn checksum(
    run: &RunContext,
    position: usize,
    instance: &InstanceSpec,
    reads: ChecksumReads,
) -> Result<ChecksumReport, RunError> {
    let path = instance.database_path(position);
    let options = VerifyOptions {
        depth: Depth::Space,
        read_bytes: (reads.read_bytes as usize).next_multiple_of(32 * 1024),
        reads_outstanding: reads.in_flight.max(1) as usize,
        flush_maps: vec![
            flush_map_path(&path),
            flush_map_path_of_device(&instance.log_directory, position as u8 + 1),
        ],
        ..VerifyOptions::default()
    };
    let paths = [path.clone()];
    let work = verify(&run.files, &run.handle, &paths, &options);
    let mut report = until_stop(run, work).await?;
    let file = report.files.remove(0);
    if let Some(error) = file.error {
        return Err(RunError::Corruption(error));
    }
    for finding in &file.findings {
        let text = format!("{}: page {}: {:?}", path.display(), finding.page, finding.class);
        run.report(Level::Error, "bad_pages", text);
    }
    for reason in &file.reasons {
        let text = format!("{}: {reason}", path.display());
        run.report(Level::Error, "bad_pages", text);
    }
    let headers_bad = file.headers.iter().filter(|check| **check == HeaderCheck::Bad);
    let beside_pages =
        headers_bad.count() as u64 + file.pages_missing + file.blank_in_use + file.lost;
    // A piece of a page, or a file without any, is a damaged page, too.
    let others = u64::from(file.trailing_bytes > 0) + u64::from(file.pages_seen == 0);
    let pages_bad = file.bad + file.unreadable + beside_pages + others;
    Ok(ChecksumReport {
        path,
        pages_seen: file.pages_seen,
        bad: pages_bad.max(u64::from(!file.reasons.is_empty())),
        reasons: file.reasons,
        correctable: file.correctable,
        wrong_page_number: file.wrong_page_number,
        uninitialized: file.uninitialized,
    })
}
