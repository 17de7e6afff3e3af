//! What lies where a database should be: nothing, the beginning of one, the one that is wanted, or
//! another.
//!
//! The signature in a database's header follows from its seed, so a database of another seed or
//! owner is known before a byte of it is changed. A file whose first bytes are blank was begun and
//! not finished: its preparation writes them last.

use std::path::Path;

use plimsoll_engine::database::peek_header;
use plimsoll_engine::error::EngineError;
use plimsoll_io::{Context, DiskErrorKind, OpenMode, is_zero};
use plimsoll_prepare::PreparedDatabase;

use crate::RunError;
use crate::context::RunContext;
use crate::events::Level;

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The database has to be prepared.
    Absent,
    /// It is there, whatever its state.
    Whole,
}

/// Looks at what an unfinished run may have left, and deletes what was only begun.
///
/// # Errors
/// When it is another database, when its headers are damaged, or what the disk reports.
pub async fn examine(
    run: &RunContext,
    path: &Path,
    wanted: &PreparedDatabase,
    context: Context,
) -> Result<Existing, RunError> {
    match peek_header(&run.files, path, context).await {
        Ok(_) => check(run, path, wanted, context).await.map(|()| Existing::Whole),
        Err(EngineError::Disk(error)) if error.kind == DiskErrorKind::NotFound => {
            Ok(Existing::Absent)
        }
        Err(EngineError::BadHeader { why, .. }) => {
            if !begins_blank(run, path, context).await? {
                return Err(RunError::Corruption(format!(
                    "{} has no sound header: {why}; keep it if you want to know why, then run \
                     `plimsoll clean`",
                    path.display()
                )));
            }
            discard(run, path, context).await?;
            Ok(Existing::Absent)
        }
        Err(error) => Err(error.into()),
    }
}

/// Fails unless the database at `path` is the one that is wanted. Changes nothing.
///
/// # Errors
/// [`RunError::Spec`] with what is different, or what the disk reports.
pub async fn check(
    run: &RunContext,
    path: &Path,
    wanted: &PreparedDatabase,
    context: Context,
) -> Result<(), RunError> {
    let header = peek_header(&run.files, path, context).await?;
    let different = |what: String| {
        Err(RunError::Spec(format!(
            "{} is another database than the plan describes: {what}; change the plan, name another \
             path, or delete it with \
             `plimsoll clean`",
            path.display()
        )))
    };
    match header.page_size() {
        Some(size) if size != wanted.page_size() => {
            different(format!("its pages have {size}, not {}", wanted.page_size()))
        }
        _ if header.signature != wanted.header().signature => {
            different("it was made from another seed or by another program".into())
        }
        _ => Ok(()),
    }
}

/// Whether a file was begun and never got its first bytes.
///
/// # Errors
/// What the disk reports.
pub async fn begins_blank(
    run: &RunContext,
    path: &Path,
    context: Context,
) -> Result<bool, RunError> {
    const LOOKED_AT_BYTES: u64 = 8192;
    let file = run.files.open(path, OpenMode::Read, context).await?;
    let alignment = u64::from(file.opened().alignment_bytes.max(1));
    let length = file.opened().length_bytes.min(LOOKED_AT_BYTES) / alignment * alignment;
    let blank = match length {
        0 => Ok(true),
        _ => {
            let read = file.read(0, file.allocate(length as usize), context).await;
            read.map(|bytes| is_zero(&bytes))
        }
    };
    file.close(context).await?;
    Ok(blank?)
}

/// A device cannot be deleted, and need not be: what lies on it is taken for nothing.
async fn discard(run: &RunContext, path: &Path, context: Context) -> Result<(), RunError> {
    let deleted = run.files.delete(path, context).await;
    deleted.or_else(|error| match error.kind {
        DiskErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })?;
    let text =
        format!("{}: an earlier preparation was not finished; it is made again", path.display());
    run.report(Level::Warning, "prepared_anew", text);
    Ok(())
}
