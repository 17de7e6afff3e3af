//! The file of the holds on a log: who needs which generations, named by clients, kept until they
//! are released.
//!
//! Two identical 4 KiB blocks, each with its own checksum, written one after the other. The first
//! is written first, so it is the newer one where they differ. What is found is made durable and
//! alike in both blocks before anybody relies on it: the process that wrote it may have died
//! half-way.
//!
//! ```text
//! block: u32 CRC-32C of the rest | 4: magic | 8: log signature | 36: u32 count | 40: per hold u32 generation, u16 length of its name, the name in UTF-8
//!        | zeros
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use crc_fast::{CrcAlgorithm, Digest};
use plimsoll_io::{Context, DiskErrorKind, Durability, File, Files, OpenMode, Purpose, is_zero};

use super::names::LogNames;
use crate::error::{EngineError, Result};
use crate::logtime::Signature;

const BLOCK_BYTES: usize = 4096;
const MAGIC: u32 = 0x444C_4F48;
const SIGNATURE_AT: usize = 8;
const COUNT_AT: usize = 36;
const HOLDS_AT: usize = 40;

/// Name of the hold that stands for all that cannot be read any more.
pub const LOST_HOLDS: &str = "(holds that cannot be read)";

/// First generation needed, by name.
pub type NamedHolds = BTreeMap<String, u32>;

/// A block with these holds.
///
/// # Errors
/// When they do not fit.
pub fn encode_holds(holds: &NamedHolds, signature: Signature) -> Result<Vec<u8>> {
    let mut block = vec![0; HOLDS_AT];
    block[4..8].copy_from_slice(&MAGIC.to_le_bytes());
    block[SIGNATURE_AT..SIGNATURE_AT + Signature::BYTES].copy_from_slice(&signature.to_bytes());
    block[COUNT_AT..COUNT_AT + 4].copy_from_slice(&(holds.len() as u32).to_le_bytes());
    for (name, generation) in holds {
        block.extend(generation.to_le_bytes());
        // A name that is too long for this is too long for the block.
        block.extend((name.len() as u16).to_le_bytes());
        block.extend(name.as_bytes());
    }
    if block.len() > BLOCK_BYTES {
        return Err(EngineError::BadOption {
            name: "hold",
            why: format!(
                "{} holds with their names take {} bytes, and there is room for {BLOCK_BYTES}: \
                 release some, or choose shorter names",
                holds.len(),
                block.len()
            ),
        });
    }
    block.resize(BLOCK_BYTES, 0);
    let checksum = checksum_of(&block);
    block[..4].copy_from_slice(&checksum.to_le_bytes());
    Ok(block)
}

/// The holds of a block and the log they are of; `None` if it is damaged.
pub fn decode_holds(block: &[u8]) -> Option<(NamedHolds, Signature)> {
    let block = block.get(..BLOCK_BYTES)?;
    let word =
        |offset: usize| Some(u32::from_le_bytes(block.get(offset..offset + 4)?.try_into().ok()?));
    if word(0)? != checksum_of(block) || word(4)? != MAGIC {
        return None;
    }
    let signature = block[SIGNATURE_AT..SIGNATURE_AT + Signature::BYTES].try_into().ok()?;
    let (mut holds, mut at) = (NamedHolds::new(), HOLDS_AT);
    for _ in 0..word(COUNT_AT)? {
        let generation = word(at)?;
        let length = usize::from(u16::from_le_bytes(block.get(at + 4..at + 6)?.try_into().ok()?));
        let name = block.get(at + 6..at + 6 + length)?;
        holds.insert(String::from_utf8(name.to_vec()).ok()?, generation);
        at += 6 + length;
    }
    Some((holds, Signature::from_bytes(signature)))
}

/// The holds of a file of them and the log they are of; `None` if neither block can be read.
pub fn decode_file(blocks: &[u8]) -> Option<(NamedHolds, Signature)> {
    decode_holds(blocks).or_else(|| decode_holds(blocks.get(BLOCK_BYTES..)?))
}

fn checksum_of(block: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&block[4..]);
    digest.finalize() as u32
}

fn with_purpose(context: Context, purpose: Purpose) -> Context {
    Context { purpose, ..context }
}

/// Writes the holds durably, making the file if needed.
pub async fn write_holds(
    files: &Files,
    names: &LogNames,
    holds: &NamedHolds,
    signature: Signature,
    context: Context,
) -> Result<()> {
    let block = encode_holds(holds, signature)?;
    let metadata = with_purpose(context, Purpose::Metadata);
    let file = match files.open(&names.holds(), OpenMode::Write, metadata).await {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => {
            files.open(&names.holds(), OpenMode::Create, metadata).await?
        }
        Err(error) => return Err(error.into()),
    };
    let written = write_blocks(files, names.directory(), &file, &block, context).await;
    file.close(metadata).await?;
    written
}

async fn write_blocks(
    files: &Files,
    directory: &Path,
    file: &File,
    block: &[u8],
    context: Context,
) -> Result<()> {
    let header = with_purpose(context, Purpose::Header);
    // Also a file that an earlier attempt has left unfinished.
    if file.opened().length_bytes < 2 * BLOCK_BYTES as u64 {
        file.extend(2 * BLOCK_BYTES as u64, header).await?;
        file.sync(header).await?;
        files.sync_directory(directory, with_purpose(context, Purpose::Metadata)).await?;
    }
    for copy in 0..2 {
        let mut buffer = file.allocate(BLOCK_BYTES);
        buffer.copy_from_slice(block);
        file.write(copy * BLOCK_BYTES as u64, buffer, Durability::Durable, header).await?;
    }
    Ok(())
}

/// Reads the holds of a log and makes durable what it found. Those of another log count for
/// nothing; where neither block can be read, everything from `oldest` on is held under
/// [`LOST_HOLDS`] until somebody releases it.
pub async fn read_holds(
    files: &Files,
    names: &LogNames,
    signature: Signature,
    oldest: u32,
    context: Context,
) -> Result<NamedHolds> {
    let metadata = with_purpose(context, Purpose::Metadata);
    let file = match files.open(&names.holds(), OpenMode::Write, metadata).await {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(NamedHolds::new()),
        Err(error) => return Err(error.into()),
    };
    let read = read_blocks(&file, signature, oldest, context).await;
    file.close(metadata).await?;
    let holds = read?;
    files.sync_directory(names.directory(), metadata).await?;
    Ok(holds)
}

async fn read_blocks(
    file: &File,
    signature: Signature,
    oldest: u32,
    context: Context,
) -> Result<NamedHolds> {
    let header = with_purpose(context, Purpose::Header);
    if file.opened().length_bytes < 2 * BLOCK_BYTES as u64 {
        // Nobody was told that anything is held before it was as long as that.
        return Ok(NamedHolds::new());
    }
    let blocks = file.read(0, file.allocate(2 * BLOCK_BYTES), header).await?;
    let (first, second) = blocks.split_at(BLOCK_BYTES);
    let (holds, of_log) = match decode_file(&blocks) {
        Some(found) => found,
        // The first write of the file tears, and nobody was told that anything is held; a second
        // block that is not blank was acknowledged.
        None if is_zero(second) => return Ok(NamedHolds::new()),
        None => (NamedHolds::from([(LOST_HOLDS.to_owned(), oldest)]), signature),
    };
    if of_log != signature {
        return Ok(NamedHolds::new());
    }
    // A process that died had written it and not waited until it was stable.
    file.sync(header).await?;
    if first != second {
        let mut buffer = file.allocate(BLOCK_BYTES);
        buffer.copy_from_slice(&encode_holds(&holds, signature)?);
        // Not the block that was read: while the other is written it is the only one.
        let other = u64::from(decode_holds(first).is_some());
        file.write(other * BLOCK_BYTES as u64, buffer, Durability::Durable, header).await?;
    }
    Ok(holds)
}
