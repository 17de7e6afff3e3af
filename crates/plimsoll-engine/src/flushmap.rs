//! The flush map: two bits per database page telling which of three flush types its latest write
//! carried.
//!
//! Every write of a page moves its type on, 1 → 2 → 3 → 1. A page read back with another type than
//! the map's was not written when the disk said so: a lost flush. Type 0 means "not known"; the
//! next read or write makes it known.
//!
//! The map is made durable before a checkpoint passes the writes it records, and redo does not
//! consult it, so after a crash it never accuses a sound page. A map page torn by the crash becomes
//! "not known". A lost write shows as long as the write before it carried another type, that is
//! always except when a whole multiple of three consecutive writes of one page is lost.
//!
//! ```text
//! .jfm: header, 8 KiB: u32 XOR checksum | u32 magic | u32 version | u32 database page count | database signature | .. | u32 type 7 at 667
//!       data pages, 8 KiB: u64 checksum seeded with the page's index | 32 zero bytes | 2 bits per database page, lowest first
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_io::{Context, DiskErrorKind, Durability, File, Files, OpenMode, Purpose, is_zero};

use crate::PageNumber;
use crate::checksum::{block_checksum, header_checksum};
use crate::error::{EngineError, Result};
use crate::logtime::Signature;

/// Bytes of a flush map page.
pub const MAP_PAGE_BYTES: usize = 8192;
const MAP_HEADER_BYTES: usize = 40;
const MAGIC: u32 = 0x504D_4A46;
const VERSION: u32 = 1;
const FILE_TYPE_FLUSH_MAP: u32 = 7;
const FILE_TYPE_AT: usize = 667;
const TYPES_PER_PAGE: u32 = ((MAP_PAGE_BYTES - MAP_HEADER_BYTES) * 4) as u32;

/// The path of a database's flush map: beside the database.
pub fn flush_map_path(database: &Path) -> PathBuf {
    database.with_extension("jfm")
}

/// The path of the flush map of a database that is a whole block device: in the directory of the
/// log, because a device has no directory of its own. Instances that share that directory share the
/// name, too: one is refused while another has the file open, and one that comes later finds the
/// map of another database and begins its own.
pub fn flush_map_path_of_device(log_directory: &Path, database: u8) -> PathBuf {
    log_directory.join(format!("device{database:03}.jfm"))
}

/// The types themselves, in memory.
#[derive(Clone, Debug, Default)]
pub struct FlushMap {
    packed: Vec<u8>,
    changed: BTreeSet<u32>,
}

impl FlushMap {
    /// The recorded type of a page, 0 if not known.
    pub fn get(&self, page: PageNumber) -> u8 {
        let byte = self.packed.get(page as usize / 4).copied().unwrap_or(0);
        byte >> (page % 4 * 2) & 3
    }

    /// Records a type.
    pub fn set(&mut self, page: PageNumber, flush_type: u8) {
        let index = page as usize / 4;
        if index >= self.packed.len() {
            self.packed.resize(index + 1, 0);
        }
        let shift = page % 4 * 2;
        self.packed[index] = self.packed[index] & !(3 << shift) | (flush_type & 3) << shift;
        self.changed.insert(page / TYPES_PER_PAGE);
    }

    /// The type that follows.
    pub fn next_type(flush_type: u8) -> u8 {
        flush_type % 3 + 1
    }

    /// Whether anything changed since the last [`FlushMap::take_changed`].
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The changed map pages, ready to be written, as (byte offset in the file, page).
    pub fn take_changed(&mut self) -> Vec<(u64, Vec<u8>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|index| (file_offset(index), self.encode_page(index))).collect()
    }

    fn span(&self, index: u32) -> std::ops::Range<usize> {
        let bytes_per_page = TYPES_PER_PAGE as usize / 4;
        let start = (index as usize * bytes_per_page).min(self.packed.len());
        start..(start + bytes_per_page).min(self.packed.len())
    }

    fn encode_page(&self, index: u32) -> Vec<u8> {
        let mut page = vec![0; MAP_PAGE_BYTES];
        let types = &self.packed[self.span(index)];
        page[MAP_HEADER_BYTES..MAP_HEADER_BYTES + types.len()].copy_from_slice(types);
        let checksum = block_checksum(&page, index + 1, true);
        page[..8].copy_from_slice(&checksum.to_le_bytes());
        page
    }

    /// Takes over a map page; returns whether it was whole. Blank and damaged pages leave their
    /// types unknown.
    fn decode_page(&mut self, index: u32, page: &[u8]) -> bool {
        if is_zero(page) {
            return true;
        }
        let stored = u64::from_le_bytes(page[..8].try_into().expect("eight bytes"));
        if stored != block_checksum(page, index + 1, true) {
            return false;
        }
        let bytes_per_page = TYPES_PER_PAGE as usize / 4;
        let end = (index as usize + 1) * bytes_per_page;
        if self.packed.len() < end {
            self.packed.resize(end, 0);
        }
        self.packed[index as usize * bytes_per_page..end]
            .copy_from_slice(&page[MAP_HEADER_BYTES..]);
        true
    }
}

fn file_offset(index: u32) -> u64 {
    (u64::from(index) + 1) * MAP_PAGE_BYTES as u64
}

fn map_pages(pages: u32) -> u32 {
    pages / TYPES_PER_PAGE + 1
}

fn encode_header(pages: u32, signature: Signature) -> Vec<u8> {
    let mut header = vec![0; MAP_PAGE_BYTES];
    header[4..8].copy_from_slice(&MAGIC.to_le_bytes());
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&pages.to_le_bytes());
    header[16..16 + Signature::BYTES].copy_from_slice(&signature.to_bytes());
    header[FILE_TYPE_AT..FILE_TYPE_AT + 4].copy_from_slice(&FILE_TYPE_FLUSH_MAP.to_le_bytes());
    let checksum = header_checksum(&header);
    header[..4].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The database a flush map belongs to, from its header page.
pub fn decode_map_header(header: &[u8]) -> std::result::Result<Signature, String> {
    if header.len() != MAP_PAGE_BYTES {
        return Err("a flush map header has 8192 bytes".into());
    }
    let word = |offset: usize| {
        u32::from_le_bytes(header[offset..offset + 4].try_into().expect("four bytes"))
    };
    if word(0) != header_checksum(header) {
        return Err("the header checksum is wrong".into());
    }
    if word(4) != MAGIC || word(8) != VERSION || word(FILE_TYPE_AT) != FILE_TYPE_FLUSH_MAP {
        return Err("it is not a flush map of this version".into());
    }
    Ok(Signature::from_bytes(
        header[16..16 + Signature::BYTES].try_into().expect("signature bytes"),
    ))
}

/// Whether the header of a flush map has the mark and version of ours.
pub fn is_our_map(header: &[u8]) -> bool {
    header.get(4..8) == Some(&MAGIC.to_le_bytes()[..])
        && header.get(8..12) == Some(&VERSION.to_le_bytes()[..])
}

/// Whether one data page of a map file is blank or whole.
pub fn map_page_is_whole(index: u32, page: &[u8]) -> bool {
    FlushMap::default().decode_page(index, page)
}

/// Opens the flush map at `path`, making an empty one if there is none, it belongs to another
/// database, or it `is_of_another_time`. Returns the file, the map and how many of its pages were
/// damaged.
pub async fn open_flush_map(
    files: &Files,
    path: PathBuf,
    signature: Signature,
    (pages, is_of_another_time): (u32, bool),
    context: Context,
) -> Result<(File, FlushMap, u32)> {
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    match files.open(&path, OpenMode::Write, metadata).await {
        Ok(file) => match load(&file, signature, context).await? {
            Some((map, damaged)) if !is_of_another_time => Ok((file, map, damaged)),
            _ => {
                // Another database's map, or none at all: of no use to anybody.
                file.close(metadata).await?;
                files.delete(&path, metadata).await?;
                let file = create(files, &path, signature, pages, context).await?;
                Ok((file, FlushMap::default(), 0))
            }
        },
        Err(error) if error.kind == DiskErrorKind::NotFound => {
            let file = create(files, &path, signature, pages, context).await?;
            Ok((file, FlushMap::default(), 0))
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads the flush map of a closed database without changing anything; `None` where there is none,
/// or it belongs to another database.
///
/// # Errors
/// What the disk reports of a map that is there.
pub async fn read_flush_map(
    files: &Files,
    path: &Path,
    signature: Signature,
    context: Context,
) -> Result<Option<FlushMap>> {
    let file = match files.open(path, OpenMode::Read, context).await {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = load(&file, signature, context).await;
    // A close that fails has nothing to do with what was read.
    let _ = file.close(context).await;
    Ok(found?.map(|(map, _)| map))
}

async fn create(
    files: &Files,
    path: &Path,
    signature: Signature,
    pages: u32,
    context: Context,
) -> Result<File> {
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    let file = files.open(path, OpenMode::Create, metadata).await?;
    file.extend(u64::from(1 + map_pages(pages)) * MAP_PAGE_BYTES as u64, context).await?;
    let mut header = file.allocate(MAP_PAGE_BYTES);
    header.copy_from_slice(&encode_header(pages, signature));
    file.write(0, header, Durability::Volatile, context).await?;
    file.sync(context).await?;
    files.sync_directory(path.parent().unwrap_or(Path::new(".")), metadata).await?;
    Ok(file)
}

async fn load(
    file: &File,
    signature: Signature,
    context: Context,
) -> Result<Option<(FlushMap, u32)>> {
    let length_bytes = file.opened().length_bytes;
    if length_bytes < MAP_PAGE_BYTES as u64 {
        return Ok(None);
    }
    let header = file.read(0, file.allocate(MAP_PAGE_BYTES), context).await?;
    if decode_map_header(&header) != Ok(signature) {
        return Ok(None);
    }
    let (mut map, mut damaged) = (FlushMap::default(), 0);
    let mut buffer = header;
    for index in 0..(length_bytes / MAP_PAGE_BYTES as u64 - 1) as u32 {
        buffer = file.read(file_offset(index), buffer, context).await?;
        damaged += u32::from(!map.decode_page(index, &buffer));
    }
    Ok(Some((map, damaged)))
}

/// Writes the changed pages of a map and makes them durable.
pub async fn save_flush_map(
    file: &File,
    changed: Vec<(u64, Vec<u8>)>,
    context: Context,
) -> Result<()> {
    for (offset, page) in changed {
        let mut buffer = file.allocate(MAP_PAGE_BYTES);
        buffer.copy_from_slice(&page);
        file.write(offset, buffer, Durability::Volatile, context).await?;
    }
    file.sync(context).await.map_err(EngineError::from)
}
