//! The file of a generation before anything is logged in it.

use plimsoll_io::{Context, DiskErrorKind, Durability, File, Files, OpenMode, Purpose};

use super::header::GenerationHeader;
use super::names::LogNames;
use super::{GENERATION_BYTES, HEADER_BYTES};
use crate::error::Result;

/// Bytes of one formatting write.
const FORMAT_BYTES: usize = 128 * 1024;

/// Writes the header of a generation durably.
pub(super) async fn write_header(
    file: &File,
    header: &GenerationHeader,
    context: Context,
) -> Result<()> {
    let mut buffer = file.allocate(HEADER_BYTES);
    buffer.copy_from_slice(&header.encode());
    let context = Context { purpose: Purpose::Header, ..context };
    file.write(0, buffer, Durability::Durable, context).await?;
    Ok(())
}

/// Makes `E00tmp.log`: full length, every block written, so that later writes change no metadata.
pub(super) async fn format_generation(
    files: &Files,
    names: &LogNames,
    context: Context,
) -> Result<File> {
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    let format = Context { purpose: Purpose::LogFormat, ..context };
    let path = names.prepared();
    match files.delete(&path, metadata).await {
        Ok(()) => {}
        Err(error) if error.kind == DiskErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let file = files.open(&path, OpenMode::Create, metadata).await?;
    file.extend(GENERATION_BYTES, format).await?;
    let mut offset = 0;
    while offset < GENERATION_BYTES {
        let mut buffer = file.allocate(FORMAT_BYTES);
        buffer.fill(0);
        file.write(offset, buffer, Durability::Volatile, format).await?;
        offset += FORMAT_BYTES as u64;
    }
    file.sync(format).await?;
    Ok(file)
}
