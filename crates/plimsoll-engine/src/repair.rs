//! Mends pages in place: those in which the error-correcting code finds one flipped bit per block,
//! and a header whose other copy is sound.
//!
//! Only on request, only on a database that was shut down cleanly, and under its lock. A mended
//! page holds byte for byte what was once written, so that nothing else has to change; the header
//! counts it, as the published engine does. What cannot be mended is left alone and counted. A
//! power cut in the middle leaves pages mended or not, and always one sound header.

use std::path::Path;

use plimsoll_io::{Buffer, Context, DiskError, Durability, File, Files, Handle, OpenMode, Purpose};
use serde::Serialize;

use crate::reader::ReadError;
use crate::verify::used::reach;
use crate::{
    DatabaseHeader, DatabaseState, FormatError, HeaderCopy, LogTime, PageClass, PageNumber,
    PageSize, classify, header_checksum, mend,
};

/// Bytes per read; whole pages of every size.
const READ_BYTES: u64 = 256 * 1024;
/// Pages listed by number; further ones are counted only.
const LISTED_MAX: usize = 1_000;
/// Two copies of the longest header.
const HEADERS_BYTES_MAX: u64 = 2 * 32768;
/// Where a header counts mended pages: how many, and when the last was.
const MENDED_COUNT: usize = 368;
const MENDED_TIME: usize = 372;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Pages looked at.
    pub pages_seen: u64,
    /// Pages rewritten.
    pub pages_mended: u64,
    /// The first of them by number.
    pub mended: Vec<PageNumber>,
    /// Pages with more wrong than can be put right; they are as they were.
    pub pages_beyond_repair: u64,
    /// The first of them by number.
    pub beyond_repair: Vec<PageNumber>,
    /// The copy of the header that was rewritten from the other: 0 or 1.
    pub header_copy_mended: Option<u8>,
    /// Pages that the database owns and the file is too short for: nothing brings them back.
    pub pages_missing: u64,
    /// Whether more may be missing: what says how far the database reaches is among them.
    pub is_more_missing: bool,
    /// Bytes after the last whole page.
    pub trailing_bytes: u64,
}

/// Mends what can be mended.
///
/// # Errors
/// When the file cannot be read, written or locked, is no database, or was not shut down cleanly:
/// then its log mends it.
pub async fn repair(
    files: &Files,
    handle: &Handle,
    path: &Path,
) -> Result<RepairReport, ReadError> {
    let context = Context::of(Purpose::Checksum);
    let file = files.open(path, OpenMode::Write, context).await?;
    let repaired = repair_open(&file, handle).await;
    let closed = file.close(context).await;
    let report = repaired?;
    closed?;
    Ok(report)
}

async fn repair_open(file: &File, handle: &Handle) -> Result<RepairReport, ReadError> {
    let context = Context::of(Purpose::Checksum);
    let start = read_start(file).await?;
    let length_bytes = file.opened().length_bytes;
    let format_error = |fault: FormatError| ReadError::Format {
        path: file.path().to_owned(),
        fault: fault.of_file(length_bytes),
    };
    let (header, copy) = DatabaseHeader::choose(&start).map_err(format_error)?;
    if header.state != DatabaseState::Clean {
        return Err(ReadError::Dirty { path: file.path().to_owned() });
    }
    let size = header.page_size().expect("a decoded header has a valid page size");
    if start.len() < 2 * size.bytes() {
        let found_bytes = start.len();
        return Err(format_error(FormatError::HeaderShort { found_bytes }));
    }
    let mut report = RepairReport::default();
    let pages =
        (length_bytes / size.bytes() as u64).saturating_sub(2).min(u64::from(PageNumber::MAX));
    let pages_per_read = READ_BYTES / size.bytes() as u64;
    let mut first = 1;
    while first <= pages {
        let count = (pages + 1 - first).min(pages_per_read);
        repair_pages(file, size, first, count, &mut report).await?;
        first += count;
        handle.yield_now().await;
    }
    file.sync(context).await?;
    repair_headers(file, size, &start, copy, handle.clock().anchor().utc_ns, &mut report).await?;
    // Asked last, because a mended page may be needed to know.
    let reach = reach(file, size).await?;
    (report.pages_missing, report.is_more_missing) = reach.pages_missing(size, length_bytes);
    report.trailing_bytes = length_bytes % size.bytes() as u64;
    Ok(report)
}

async fn read_start(file: &File) -> Result<Buffer, DiskError> {
    let alignment = u64::from(file.opened().alignment_bytes.max(1));
    let length = file.opened().length_bytes.min(HEADERS_BYTES_MAX) / alignment * alignment;
    let start = file.allocate(length as usize);
    if length == 0 {
        return Ok(start);
    }
    file.read(0, start, Context::of(Purpose::Header)).await
}

async fn repair_pages(
    file: &File,
    size: PageSize,
    first: u64,
    count: u64,
    report: &mut RepairReport,
) -> Result<(), DiskError> {
    let context = Context::of(Purpose::Checksum);
    let offset = size.offset_of(first as PageNumber);
    let buffer = file.allocate(count as usize * size.bytes());
    let mut bytes = file.read(offset, buffer, context).await?;
    for (number, page) in bytes.chunks_exact_mut(size.bytes()).enumerate() {
        let page_number = (first + number as u64) as PageNumber;
        report.pages_seen += 1;
        match classify(page, page_number) {
            PageClass::Ok | PageClass::Uninitialized => continue,
            PageClass::Correctable { .. } if mend(page, page_number).is_some() => {}
            _ => {
                report.pages_beyond_repair += 1;
                list(&mut report.beyond_repair, page_number);
                continue;
            }
        }
        let mut mended = file.allocate(size.bytes());
        mended.copy_from_slice(page);
        file.write(size.offset_of(page_number), mended, Durability::Volatile, context).await?;
        report.pages_mended += 1;
        list(&mut report.mended, page_number);
    }
    Ok(())
}

fn list(pages: &mut Vec<PageNumber>, page: PageNumber) {
    if pages.len() < LISTED_MAX {
        pages.push(page);
    }
}

/// Counts the mended pages in both copies of the header, which also puts a damaged copy right. The
/// copy that is not needed is written first.
async fn repair_headers(
    file: &File,
    size: PageSize,
    start: &[u8],
    sound: HeaderCopy,
    utc_ns: u64,
    report: &mut RepairReport,
) -> Result<(), DiskError> {
    let copy_of = |number: usize| &start[number * size.bytes()..(number + 1) * size.bytes()];
    let (sound, other) = match sound {
        HeaderCopy::Primary => (0, 1),
        HeaderCopy::Shadow => (1, 0),
    };
    let is_other_sound = DatabaseHeader::decode(copy_of(other)).is_ok();
    if is_other_sound && report.pages_mended == 0 {
        return Ok(());
    }
    let mut header = copy_of(sound).to_vec();
    if report.pages_mended > 0 {
        count_mended(&mut header, report.pages_mended, utc_ns);
    }
    let context = Context::of(Purpose::Header);
    for number in [other, sound] {
        let mut buffer = file.allocate(size.bytes());
        buffer.copy_from_slice(&header);
        file.write((number * size.bytes()) as u64, buffer, Durability::Volatile, context).await?;
        file.sync(context).await?;
    }
    report.header_copy_mended = (!is_other_sound).then_some(other as u8);
    Ok(())
}

fn count_mended(header: &mut [u8], pages: u64, utc_ns: u64) {
    let place = MENDED_COUNT..MENDED_COUNT + 4;
    let before = u32::from_le_bytes(header[place.clone()].try_into().expect("four bytes"));
    let count = before.saturating_add(u32::try_from(pages).unwrap_or(u32::MAX));
    header[place].copy_from_slice(&count.to_le_bytes());
    let time = LogTime::from_utc_ns(utc_ns).0;
    header[MENDED_TIME..MENDED_TIME + time.len()].copy_from_slice(&time);
    let checksum = header_checksum(header);
    header[..4].copy_from_slice(&checksum.to_le_bytes());
}
