//! Writing a prepared database to a new file: sequential, in large blocks, several at a time, so
//! that the disk and not the program decides how long it takes.
//!
//! The two headers are written last, after everything else is on stable storage. A run that is
//! cancelled, or loses power, leaves a file whose header is empty: nothing takes it for a database,
//! and nothing is left to resume but to delete it and begin again.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_io::{Buffer, Context, DiskError, Durability, File, Files, Handle, OpenMode, Purpose};

use super::PreparedDatabase;

/// Bytes made between two chances for other tasks to run: at most some forty microseconds of work,
/// for a page of index entries.
const SLICE_BYTES: usize = 32 * 1024;

/// How to write.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Bytes per write, a multiple of the page size.
    pub block_bytes: usize,
    /// Writes in flight at a time.
    pub depth: usize,
    /// For whom the I/O is done; the purpose is set here.
    pub context: Context,
    /// Counts the bytes written, for whoever shows progress.
    pub progress: Rc<Cell<u64>>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            block_bytes: 1 << 20,
            depth: 16,
            context: Context::of(Purpose::Prepare),
            progress: Rc::default(),
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteReport {
    /// Length of the file.
    pub bytes: u64,
    /// From creation to the last sync.
    pub elapsed_ns: u64,
}

/// Why a database was not written.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The block size does not suit the pages or the device.
    #[error(
        "blocks of {block_bytes} bytes cannot be written; take a multiple of both the page \
         ({page_bytes} bytes) and the device's unit ({alignment_bytes} bytes), and at least one \
         write in flight"
    )]
    Blocks {
        /// Asked for.
        block_bytes: usize,
        /// Page size.
        page_bytes: usize,
        /// What the file wants.
        alignment_bytes: u32,
    },
}

type PendingWrite = Pin<Box<dyn Future<Output = Result<Buffer, DiskError>>>>;

/// Writes the database to `path`, which must not exist. On failure what was begun is deleted.
///
/// # Errors
/// [`DiskErrorKind::Full`](plimsoll_io::DiskErrorKind::Full) before anything is filled if the space
/// is not there; anything else the disk says.
pub async fn write_database(
    files: &Files,
    handle: &Handle,
    path: &Path,
    database: &PreparedDatabase,
    options: &WriteOptions,
) -> Result<WriteReport, PrepareError> {
    let started = handle.now();
    let context = Context { purpose: Purpose::Prepare, ..options.context };
    let file = files.open(path, OpenMode::Create, context).await?;
    let mut written = fill(&file, handle, database, options, context).await;
    let closed = file.close(context).await;
    if written.is_ok() {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        written = match closed {
            Ok(()) => files
                .sync_directory(directory.unwrap_or(Path::new(".")), context)
                .await
                .map_err(Into::into),
            Err(error) => Err(error.into()),
        };
    }
    if let Err(error) = written {
        // The first error is the one to report; a file that cannot be deleted either is still no
        // database.
        let _ = files.delete(path, context).await;
        return Err(error);
    }
    Ok(WriteReport { bytes: database.file_bytes(), elapsed_ns: handle.now() - started })
}

async fn fill(
    file: &File,
    handle: &Handle,
    database: &PreparedDatabase,
    options: &WriteOptions,
    context: Context,
) -> Result<(), PrepareError> {
    let (block_bytes, page_bytes) = (options.block_bytes, database.page_size().bytes());
    let alignment_bytes = file.opened().alignment_bytes;
    let fits = block_bytes.is_multiple_of(page_bytes)
        && page_bytes.is_multiple_of(alignment_bytes.max(1) as usize);
    if block_bytes == 0 || options.depth == 0 || !fits {
        return Err(PrepareError::Blocks { block_bytes, page_bytes, alignment_bytes });
    }
    file.extend(database.file_bytes(), context).await?;
    write_blocks(file, handle, database, options, context).await?;
    file.sync(context).await?;
    let header = database.header_page();
    for copy in 0..2 {
        let mut buffer = file.allocate(page_bytes);
        buffer.copy_from_slice(&header);
        let offset = copy * page_bytes as u64;
        file.write(offset, buffer, Durability::Volatile, context).await?;
        file.sync(context).await?;
    }
    Ok(())
}

/// Writes everything, the headers as zeros.
async fn write_blocks(
    file: &File,
    handle: &Handle,
    database: &PreparedDatabase,
    options: &WriteOptions,
    context: Context,
) -> Result<(), PrepareError> {
    let mut in_flight: VecDeque<PendingWrite> = VecDeque::new();
    let mut spare = Vec::new();
    let mut offset = 0;
    while offset < database.file_bytes() {
        let mut buffer = match spare.pop() {
            Some(buffer) => buffer,
            None if in_flight.len() < options.depth => file.allocate(options.block_bytes),
            None => finish_one(&mut in_flight, options).await?,
        };
        let left_bytes = database.file_bytes() - offset;
        buffer.set_length(left_bytes.min(options.block_bytes as u64) as usize);
        make_block(handle, database, offset, &mut buffer).await;
        let length_bytes = buffer.len() as u64;
        in_flight.push_back(Box::pin(file.write(offset, buffer, Durability::Volatile, context)));
        offset += length_bytes;
        if in_flight.len() >= options.depth {
            spare.push(finish_one(&mut in_flight, options).await?);
        }
    }
    while !in_flight.is_empty() {
        finish_one(&mut in_flight, options).await?;
    }
    Ok(())
}

async fn finish_one(
    in_flight: &mut VecDeque<PendingWrite>,
    options: &WriteOptions,
) -> Result<Buffer, DiskError> {
    let oldest = in_flight.pop_front().expect("only called with writes in flight");
    let buffer = oldest.await?;
    options.progress.set(options.progress.get() + buffer.len() as u64);
    Ok(buffer)
}

async fn make_block(handle: &Handle, database: &PreparedDatabase, offset: u64, block: &mut [u8]) {
    let page_bytes = database.page_size().bytes();
    let mut index = offset / page_bytes as u64;
    for slice in block.chunks_mut(SLICE_BYTES.max(page_bytes)) {
        for page in slice.chunks_exact_mut(page_bytes) {
            match u32::try_from(index).unwrap_or(0).checked_sub(1) {
                None | Some(0) => page.fill(0),
                Some(number) => database.page(number, page),
            }
            index += 1;
        }
        handle.yield_now().await;
    }
}
