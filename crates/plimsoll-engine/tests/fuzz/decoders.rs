//! Every decoder of the engine, given bytes: whatever they are, decoding ends, without a panic and
//! in bounded time and memory.
//!
//! An input is the number of the decoder, a byte of choices, and what the decoder is given. Where a
//! checksum guards a thing, one of the choices is to put the right one there, so that what lies
//! behind is reached.

use plimsoll_engine::catalog::CatalogDecoder;
use plimsoll_engine::checkpoint::{decode_checkpoint, encode_checkpoint};
use plimsoll_engine::edit::{Edit, NewNode, RowChange};
use plimsoll_engine::flushmap::{MAP_PAGE_BYTES, decode_map_header, map_page_is_whole};
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::attached::Attached;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::header::GenerationHeader;
use plimsoll_engine::log::record::{ImageRecord, LogRecord, PageEdits, RowRecord, StructureRecord};
use plimsoll_engine::page::PageView;
use plimsoll_engine::reader::decompress;
use plimsoll_engine::{
    DatabaseHeader, FileType, LogTime, PageSize, Record, RecordLayout, Signature, StoredValue,
    Table, block_checksum, classify, header_checksum, mend, set_checksum,
};
use plimsoll_prepare::{Extent, LongValues, Plan, PreparedDatabase};

const DATABASE_HEADER: u8 = 0;
const LOG_HEADER: u8 = 1;
const LOG_RECORD: u8 = 2;
const LOG_UNIT: u8 = 3;
const CHECKPOINT: u8 = 4;
const MAP_PAGE: u8 = 5;
const PAGE: u8 = 6;
const RECORD: u8 = 7;
const COMPRESSED: u8 = 8;
const CATALOG: u8 = 9;
/// How many decoders there are.
pub const DECODERS: u8 = 10;

/// The choice to put a fitting checksum there.
pub const FITS: u8 = 1;

/// What all decoders need to know beforehand.
pub struct Decoders {
    table: Table,
}

impl Decoders {
    /// Ready for inputs.
    pub fn new() -> Self {
        Self { table: prepared().schema() }
    }

    /// Gives one decoder one input.
    pub fn take(&self, input: &[u8]) {
        let &[decoder, choices, ref content @ ..] = input else {
            return;
        };
        let mut bytes = content.to_vec();
        let is_guarded = matches!(decoder, DATABASE_HEADER | LOG_HEADER | CHECKPOINT | MAP_PAGE);
        if is_guarded && choices & FITS != 0 && bytes.len() > 8 {
            let checksum = header_checksum(&bytes);
            bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        }
        match decoder {
            DATABASE_HEADER => {
                let _ = DatabaseHeader::decode(&bytes).map(|header| header.encode());
                let _ = DatabaseHeader::choose(&[bytes.clone(), bytes.clone()].concat());
                let _ = FileType::of_header(&bytes);
            }
            LOG_HEADER => {
                let _ = GenerationHeader::decode(&bytes).map(|header| header.encode());
            }
            LOG_RECORD => {
                if let Ok(Some((record, used_bytes))) = LogRecord::decode(&bytes) {
                    assert!(used_bytes <= bytes.len());
                    let _ = record.encode();
                }
            }
            LOG_UNIT => {
                let framing =
                    [Framing::Sectors512, Framing::Segments4096][usize::from(choices >> 1 & 1)];
                bytes.resize(framing.unit_bytes(), 0);
                let _ = framing.decode(&bytes, 3, 12);
                if choices & FITS != 0 {
                    let payload = bytes.clone();
                    framing.encode(
                        &mut bytes,
                        3,
                        12,
                        9,
                        &payload[..framing.payload_bytes()],
                        LogTime::default(),
                    );
                    let _ = framing.decode(&bytes, 3, 12);
                }
            }
            CHECKPOINT => {
                let _ = decode_checkpoint(&bytes);
            }
            MAP_PAGE => {
                let _ = decode_map_header(&bytes);
                let number = u32::from(choices >> 1 & 3);
                bytes.resize(MAP_PAGE_BYTES, 0);
                if choices & FITS != 0 {
                    let checksum = block_checksum(&bytes, number + 1, true);
                    bytes[..8].copy_from_slice(&checksum.to_le_bytes());
                }
                let _ = map_page_is_whole(number, &bytes);
            }
            PAGE => look_at_page(&mut bytes, choices),
            RECORD => look_at_record(&self.table, &bytes),
            COMPRESSED => {
                if let Ok(expanded) = decompress(&bytes, 20_000) {
                    assert!(expanded.len() <= 20_000);
                }
            }
            CATALOG => look_at_catalog(&bytes),
            _ => {}
        }
    }

    /// Sound inputs to every decoder; `catalog_rows` are rows of a catalog as they lie on its
    /// pages.
    pub fn sound(&self, catalog_rows: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let prepared = prepared();
        let mut inputs = Vec::new();
        let mut add = |decoder: u8, choices: u8, content: &[u8]| {
            inputs.push([&[decoder, choices], content].concat())
        };
        add(DATABASE_HEADER, FITS, &prepared.header_page());
        let signature = Signature::new(5, LogTime::default());
        for (number, framing) in
            [Framing::Sectors512, Framing::Segments4096].into_iter().enumerate()
        {
            add(LOG_HEADER, FITS, &log_header(framing, signature).encode());
            let mut unit = vec![0; framing.unit_bytes()];
            framing.encode(&mut unit, 3, 12, 9, &[7; 100], LogTime::default());
            add(LOG_UNIT, 2 * number as u8, &unit);
        }
        log_records().iter().for_each(|record| add(LOG_RECORD, 0, record));
        add(CHECKPOINT, FITS, &encode_checkpoint(Lsn::new(3, 99), signature, Framing::Sectors512));
        add(MAP_PAGE, FITS, &[0x55; 8192]);
        for (large, size) in [PageSize::KIB_4, PageSize::KIB_32].into_iter().enumerate() {
            let plan = Plan::new(size, Extent::Records(100), 5);
            let database = PreparedDatabase::new(plan).expect("a possible plan");
            for page in 1..=database.pages().min(40) {
                let mut bytes = vec![0; size.bytes()];
                database.page(page, &mut bytes);
                add(PAGE, FITS + large as u8 * LARGE + page as u8 * 4, &bytes);
            }
        }
        for number in 0..8 {
            add(RECORD, 0, &prepared.record(number, 0));
        }
        // Seven-bit text, the same as two bytes a character, and LZ77 with a match that reaches
        // into itself.
        let lz77 =
            [&[0x18, 40, 0, 0, 0, 0, 0x40, b'a', 0x07, 0x00, 0x0F, 12][..], &[0; 30]].concat();
        for packed in [vec![0x0F; 60], vec![0x15; 60], lz77] {
            add(COMPRESSED, 0, &packed);
        }
        for rows in catalog_rows.chunks(12) {
            let with_lengths =
                rows.iter().flat_map(|row| [&(row.len() as u16).to_le_bytes(), &row[..]].concat());
            add(CATALOG, 0, &with_lengths.collect::<Vec<u8>>());
        }
        inputs
    }
}

/// The choice of pages of 32 KiB.
const LARGE: u8 = 2;

fn prepared() -> PreparedDatabase {
    let plan = Plan {
        long_values: Some(LongValues { every: 5, bytes: 9_000 }),
        ..Plan::new(PageSize::KIB_4, Extent::Records(200), 4)
    };
    PreparedDatabase::new(plan).expect("a possible plan")
}

fn log_header(framing: Framing, signature: Signature) -> GenerationHeader {
    GenerationHeader {
        generation: 3,
        created: LogTime::default(),
        previous_created: LogTime::default(),
        previous_end: Lsn::ZERO,
        signature,
        framing,
        page_size: PageSize::KIB_4,
        flush: 9,
        circular: true,
        attached: Attached::nothing(),
    }
}

fn log_records() -> Vec<Vec<u8>> {
    let row = |change| {
        LogRecord::Row(RowRecord {
            transaction: 7,
            database: 1,
            root: 31,
            object: 8,
            page: 40,
            dbtime: 99,
            dbtime_before: 98,
            line: 3,
            compensation: false,
            key: b"a key".to_vec(),
            change,
        })
    };
    let node = NewNode { flags: 0, key: b"key".to_vec(), data: vec![5; 40] };
    let alike = NewNode { flags: 0, key: vec![1; 20], data: vec![6; 30] };
    let edits = vec![
        Edit::Format {
            object: 8,
            flags: 2,
            previous: 0,
            next: 9,
            external: vec![1; 16],
            nodes: vec![node.clone().laid(2, &[1; 16]), alike.laid(2, &[1; 16])],
        },
        Edit::Insert { line: 1, node },
        Edit::SetSiblings { previous: 3, next: 4 },
        Edit::MadeBy { transaction: 7, object: 9 },
        Edit::DroppedBy { transaction: 700, object: 900 },
        Edit::SetExternal { external: vec![2; 16] },
    ];
    let structure = LogRecord::Structure(StructureRecord {
        database: 1,
        dbtime: 100,
        pages_owned: 300,
        pages: vec![PageEdits { page: 40, dbtime_before: 99, edits }],
    });
    let image = LogRecord::Image(ImageRecord {
        database: 1,
        page: 40,
        front: vec![1; 300],
        back: vec![2; 20],
    });
    let splice = RowChange::Splice { at: 4, old: vec![1; 9], new: vec![2; 12] };
    let delta = RowChange::Delta { at: 4, width: 8, amount: -3 };
    let insert = RowChange::Insert { data: vec![3; 60] };
    let records = [structure, image, row(splice), row(delta), row(insert), LogRecord::Term];
    records.iter().map(LogRecord::encode).collect()
}

fn look_at_page(bytes: &mut Vec<u8>, choices: u8) {
    let size = [PageSize::KIB_4, PageSize::KIB_32][usize::from(choices & LARGE != 0)];
    let number = u32::from(choices / 4);
    bytes.resize(size.bytes(), 0);
    if choices & FITS != 0 {
        set_checksum(bytes, number);
    }
    let _ = classify(bytes, number);
    let _ = mend(&mut bytes.clone(), number);
    let view = PageView::new(bytes, size);
    let _ = (view.external(), view.check_structure());
    // What the engine does with a page begins with its bounds.
    if view.check_bounds().is_err() {
        return;
    }
    for line in 0..view.lines() {
        if let Ok(node) = view.node(line) {
            let _ = (node.key(), node.is_deleted());
        }
        let _ = view.child(line);
    }
    let _ = (view.find(b"key"), view.find_child(b"key"));
}

/// Rows with their lengths before them make the tables; what is left is read as a record of each.
fn look_at_catalog(bytes: &[u8]) {
    let (mut decoder, mut rest) = (CatalogDecoder::new(PageSize::KIB_4), bytes);
    while let &[low, high, ref content @ ..] = rest {
        let Some((row, behind)) =
            content.split_at_checked(usize::from(u16::from_le_bytes([low, high])))
        else {
            break;
        };
        let _ = decoder.push(row);
        rest = behind;
    }
    for placed in decoder.finish() {
        look_at_record(&placed.table, rest);
    }
}

/// Bytes read as a record, with every value of every multi-value.
fn look_at_record(table: &Table, bytes: &[u8]) {
    let layout = RecordLayout::of(table);
    for size in [PageSize::KIB_4, PageSize::KIB_32] {
        let Ok(record) = Record::parse(bytes, &layout, size) else {
            continue;
        };
        for column in record.tagged_columns().chain(table.columns.iter().map(|column| column.id)) {
            if let Ok(StoredValue::Multi(values)) = record.value(column) {
                for number in 0..values.count().unwrap_or(0) {
                    let _ = values.value(number);
                }
            }
        }
    }
}
