//! The checkpoint file: up to where no log is needed any more. Two identical 4 KiB blocks, each
//! with its own checksum, written one after the other.
//!
//! It is for people and other readers: redo begins where the database headers say, which belong to
//! their files, as this one may not.
//!
//! ```text
//! block: u32 XOR checksum | 12: checkpoint as LGPOS (for people) | 20: log signature | 48: our exact record position, u32 generation, u32 payload offset
//!        | .. | u32 type 4 at 667
//! ```

use std::path::Path;

use plimsoll_io::{Context, DiskErrorKind, Durability, Files, OpenMode, Purpose};

use crate::checksum::header_checksum;
use crate::error::Result;
use crate::log::Lsn;
use crate::log::framing::Framing;
use crate::logtime::Signature;

const BLOCK_BYTES: usize = 4096;
const FILE_TYPE_CHECKPOINT: u32 = 4;
const FILE_TYPE_AT: usize = 667;
const POSITION_AT: usize = 12;
const SIGNATURE_AT: usize = 20;
const EXACT_AT: usize = 48;

/// The bytes of one block.
pub fn encode_checkpoint(checkpoint: Lsn, signature: Signature, framing: Framing) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    block[POSITION_AT..POSITION_AT + 8].copy_from_slice(&framing.position(checkpoint).to_bytes());
    block[SIGNATURE_AT..SIGNATURE_AT + Signature::BYTES].copy_from_slice(&signature.to_bytes());
    block[EXACT_AT..EXACT_AT + 4].copy_from_slice(&checkpoint.generation.to_le_bytes());
    block[EXACT_AT + 4..EXACT_AT + 8].copy_from_slice(&checkpoint.offset.to_le_bytes());
    block[FILE_TYPE_AT..FILE_TYPE_AT + 4].copy_from_slice(&FILE_TYPE_CHECKPOINT.to_le_bytes());
    let checksum = header_checksum(&block);
    block[..4].copy_from_slice(&checksum.to_le_bytes());
    block
}

/// Reads a block: the checkpoint and the log signature. `None` if it is damaged.
pub fn decode_checkpoint(block: &[u8]) -> Option<(Lsn, Signature)> {
    let block = block.get(..BLOCK_BYTES)?;
    let word = |offset: usize| {
        u32::from_le_bytes(block[offset..offset + 4].try_into().expect("four bytes"))
    };
    if word(0) != header_checksum(block) || word(FILE_TYPE_AT) != FILE_TYPE_CHECKPOINT {
        return None;
    }
    let signature =
        block[SIGNATURE_AT..SIGNATURE_AT + Signature::BYTES].try_into().expect("signature bytes");
    Some((Lsn::new(word(EXACT_AT), word(EXACT_AT + 4)), Signature::from_bytes(signature)))
}

/// Whether a sound block is of our log: others do not repeat the generation.
pub fn is_our_checkpoint(block: &[u8]) -> bool {
    block[POSITION_AT + 4..POSITION_AT + 8] == block[EXACT_AT..EXACT_AT + 4]
}

/// Writes the checkpoint durably, making the file if needed.
pub async fn write_checkpoint(
    files: &Files,
    path: &Path,
    checkpoint: Lsn,
    signature: Signature,
    framing: Framing,
    context: Context,
) -> Result<()> {
    let context = Context { purpose: Purpose::Header, ..context };
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    let file = match files.open(path, OpenMode::Write, metadata).await {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => {
            let file = files.open(path, OpenMode::Create, metadata).await?;
            file.extend(2 * BLOCK_BYTES as u64, context).await?;
            file.sync(context).await?;
            files.sync_directory(path.parent().unwrap_or(Path::new(".")), metadata).await?;
            file
        }
        Err(error) => return Err(error.into()),
    };
    let block = encode_checkpoint(checkpoint, signature, framing);
    for copy in 0..2 {
        let mut buffer = file.allocate(BLOCK_BYTES);
        buffer.copy_from_slice(&block);
        file.write(copy * BLOCK_BYTES as u64, buffer, Durability::Durable, context).await?;
    }
    file.close(metadata).await?;
    Ok(())
}

/// Reads the checkpoint; `None` if there is none or both blocks are damaged.
pub async fn read_checkpoint(
    files: &Files,
    path: &Path,
    context: Context,
) -> Result<Option<(Lsn, Signature)>> {
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    let file = match files.open(path, OpenMode::Read, metadata).await {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut found = None;
    if file.opened().length_bytes >= 2 * BLOCK_BYTES as u64 {
        let buffer = file.read(0, file.allocate(2 * BLOCK_BYTES), context).await?;
        // The first block is written first, so it is the newer one if they differ.
        found = decode_checkpoint(&buffer).or_else(|| decode_checkpoint(&buffer[BLOCK_BYTES..]));
    }
    file.close(metadata).await?;
    Ok(found)
}
