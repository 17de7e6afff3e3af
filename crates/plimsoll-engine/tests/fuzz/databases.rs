//! Whole databases with damaged pages whose checksums fit: what reads tables, records, catalogs,
//! multi-values, long values and compressed bytes ends with an error or an answer, without a panic.
//! So do the deep check and the repair.
//!
//! An input is the number of the database, a byte of choices, and changes: the page, the place on
//! it, how many bytes, the bytes. Places may be counted from the end of the page, where its tags
//! are.

use std::ops::ControlFlow;
use std::path::Path;

use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::reader::{DatabaseReader, TextFormat, WhenDirty, write_table};
use plimsoll_engine::repair::repair;
use plimsoll_engine::{PageSize, header_checksum, set_checksum};
use plimsoll_io::{Files, Handle, Random};

use crate::golden::{DATABASE, golden, on_memory_disk};

/// Text that one table may give: a thousand times what the sound ones give.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// The choice to leave the checksums as they were.
const AS_IT_IS: u8 = 1;
/// The bit of a place that counts it from the end of the page.
const FROM_END: u16 = 0x8000;

/// The sound databases of an independent prototype.
pub struct Databases {
    sound: Vec<(PageSize, Vec<u8>)>,
}

impl Databases {
    /// Reads them.
    pub fn new() -> Self {
        let sizes = [(4096, "syn4k.edb"), (8192, "syn8k.edb"), (32 << 10, "syn32k.edb")];
        let sound =
            sizes.map(|(bytes, name)| (PageSize::from_bytes(bytes).expect("a size"), golden(name)));
        Self { sound: sound.into() }
    }

    /// Changes a database as the input says, and has it read, checked and repaired.
    pub fn take(&self, input: &[u8]) {
        let &[database, choices, ref changes @ ..] = input else {
            return;
        };
        let (size, sound) = &self.sound[usize::from(database) % self.sound.len()];
        let mut bytes = sound.clone();
        for page in change(*size, &mut bytes, changes) {
            let content = &mut bytes[page * size.bytes()..(page + 1) * size.bytes()];
            match page {
                _ if choices & AS_IT_IS != 0 => {}
                0 | 1 => {
                    let checksum = header_checksum(content);
                    content[..4].copy_from_slice(&checksum.to_le_bytes());
                }
                _ => set_checksum(content, page as u32 - 1),
            }
        }
        on_memory_disk(&bytes, read_everything);
    }

    /// A hundred inputs to begin with.
    pub fn sound(&self) -> Vec<Vec<u8>> {
        let mut random = Random::from_seed(1);
        (0..100).map(|_| self.by_chance(&mut random)).collect()
    }

    /// Inputs that change a few bytes of a few pages, most of them among the first, which hold the
    /// catalog and the roots.
    fn by_chance(&self, random: &mut Random) -> Vec<u8> {
        let mut input = vec![random.below(3) as u8, u8::from(random.chance(0.1))];
        let (size, sound) = &self.sound[usize::from(input[0])];
        let pages = (sound.len() / size.bytes()) as u64;
        for _ in 0..1 + random.below(8) {
            let likely = if random.chance(0.5) { pages.min(60) } else { pages };
            let page = random.below(likely);
            let place = match random.chance(0.5) {
                true => FROM_END | random.below(128) as u16,
                false => random.below(size.bytes() as u64) as u16 & !FROM_END,
            };
            let limits =
                [0u16, 1, 0x1FFF, 0x4000, 0x7FFF, 0x8000, 0xFFFF, random.next_u64() as u16];
            let value = limits[random.below(8) as usize];
            input.extend((page as u16).to_le_bytes());
            input.extend(place.to_le_bytes());
            input.push(1);
            input.extend(value.to_le_bytes());
        }
        input
    }
}

/// Makes the changes; the pages that were changed.
fn change(size: PageSize, bytes: &mut [u8], mut changes: &[u8]) -> Vec<usize> {
    let (pages, mut changed) = (bytes.len() / size.bytes(), Vec::new());
    while let &[page_low, page_high, low, high, count, ref rest @ ..] = changes {
        let page = usize::from(u16::from_le_bytes([page_low, page_high])) % pages;
        let (new, behind) = rest.split_at(rest.len().min(1 + usize::from(count) % 64));
        changes = behind;
        let place = u16::from_le_bytes([low, high]);
        let at = match place & FROM_END {
            0 => usize::from(place) % size.bytes(),
            _ => size.bytes() - 1 - usize::from(place & !FROM_END) % size.bytes(),
        };
        let end = (at + new.len()).min(size.bytes());
        bytes[page * size.bytes() + at..page * size.bytes() + end]
            .copy_from_slice(&new[..end - at]);
        changed.push(page);
    }
    changed.sort_unstable();
    changed.dedup();
    changed
}

async fn read_everything(files: Files, handle: Handle) {
    if let Ok(reader) = DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Read).await {
        for (number, placed) in reader.tables().iter().enumerate() {
            let format = [TextFormat::Csv, TextFormat::JsonLines][number % 2];
            let mut given = 0;
            let mut sink = |piece: Vec<u8>| {
                given += piece.len();
                match given < TEXT_BYTES_MAX {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            };
            let _ = write_table(&reader, placed, format, &mut sink).await;
        }
        let _ = reader.close().await;
    }
    let _ = verify_deep(&files, &handle, DATABASE, DeepOptions::default()).await;
    let _ = repair(&files, &handle, Path::new(DATABASE)).await;
}

/// The rows of the catalog of a database, as they lie on its pages.
pub fn catalog_rows() -> Vec<Vec<u8>> {
    on_memory_disk(&golden("syn4k.edb"), |files, handle| async move {
        let reader = DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse)
            .await
            .expect("a sound database");
        let place = reader.table("MSysObjects").expect("every database has it").place;
        let (mut scan, mut rows) = (reader.scan(place), Vec::new());
        while let Some(leaf) = scan.next_leaf().await.expect("a sound tree") {
            for line in 0..leaf.view().lines() {
                rows.push(leaf.view().node(line).expect("a sound node").data.to_vec());
            }
        }
        rows
    })
}
