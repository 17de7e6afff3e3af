//! What a prepared database should be, and why a wish can be impossible.

use plimsoll_engine::PageSize;

/// Record numbers, also of records inserted later, stay below this.
pub const RECORD_NUMBER_MAX: u64 = 1 << 40;
/// Page numbers stay below this.
pub(super) const PAGES_MAX: u64 = 1 << 31;

/// Everything that decides the bytes of a prepared database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides all content, signatures and times.
    pub seed: u64,
    /// Which of the databases made from this seed; every number has content of its own.
    pub database: u32,
    /// Bytes per page.
    pub page_size: PageSize,
    /// How large.
    pub extent: Extent,
    /// How long the records are.
    pub shape: RecordShape,
    /// How many percent of every record's pads a compressing device can squeeze to nothing.
    pub compressible_percent: u8,
    /// How full leaf pages of records and index entries are. 100 packs as many as fit.
    pub leaf_fill_percent: u8,
    /// How many percent of the leaves of records have room for another one; of these, as many
    /// percent have room for two, and so on to half a leaf. 0 leaves no gaps.
    pub vacancy_percent: u8,
    /// How full branch pages are.
    pub branch_fill_percent: u8,
    /// Whether the table has a secondary index.
    pub secondary: Secondary,
    /// Long values kept outside the records.
    pub long_values: Option<LongValues>,
    /// Pages left free at the end of the table's extent, for growth. The index and the long values
    /// get a share of their own.
    pub free_pages: u32,
    /// Leaves that are the same in every database made with the same sharing; absent: no two
    /// databases have content in common.
    pub sharing: Option<Sharing>,
}

/// Which leaves of records databases of one layout have in common, byte for byte: duplicates for
/// storage that deduplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Decides which leaves these are and what they hold.
    pub seed: u64,
    /// How many of a million leaves.
    pub leaves_per_million: u32,
}

/// The size of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As many records as fit into a file of at most this length.
    Bytes(u64),
    /// This many records in a file as long as they need.
    Records(u64),
}

/// The two pads of a record. Records of one database all have the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordShape {
    /// Bytes of the variable column.
    pub short_pad_bytes: u16,
    /// Bytes of the long column, which is kept inside the record.
    pub long_pad_bytes: u16,
}

impl RecordShape {
    /// 15 records of 2,164 bytes on a 32 KiB page: the growth per record seen in published Exchange
    /// 2010 qualification runs.
    pub const EXCHANGE_2010: RecordShape =
        RecordShape { short_pad_bytes: 200, long_pad_bytes: 1920 };
    /// 8 records of 1,000 bytes on an 8 KiB page.
    pub const EXCHANGE_2007: RecordShape =
        RecordShape { short_pad_bytes: 200, long_pad_bytes: 756 };
    /// 4 records of 999 bytes on a 4 KiB page.
    pub const EXCHANGE_2003: RecordShape =
        RecordShape { short_pad_bytes: 200, long_pad_bytes: 755 };
}

/// The secondary index of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secondary {
    /// None.
    Absent,
    /// A unique index over the scatter column, a permutation of the record numbers.
    Unique,
}

/// Long values in a tree of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongValues {
    /// Records whose number is a multiple of this have one.
    pub every: u64,
    /// Length of each.
    pub bytes: u32,
}

impl Plan {
    /// A plan with the defaults of the page size's Exchange edition: full leaves, one index,
    /// incompressible, no long values.
    pub fn new(page_size: PageSize, extent: Extent, seed: u64) -> Self {
        let shape = match page_size {
            PageSize::KIB_4 => RecordShape::EXCHANGE_2003,
            PageSize::KIB_8 => RecordShape::EXCHANGE_2007,
            _ => RecordShape::EXCHANGE_2010,
        };
        Self {
            seed,
            database: 1,
            page_size,
            extent,
            shape,
            compressible_percent: 0,
            leaf_fill_percent: 100,
            vacancy_percent: 0,
            branch_fill_percent: 90,
            secondary: Secondary::Unique,
            long_values: None,
            free_pages: 256,
            sharing: None,
        }
    }
}

/// Why a plan cannot be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The file is too short for even one record.
    #[error(
        "{bytes} bytes are too few for a database of this shape; ask for at least {needed_bytes} \
         or for fewer free pages"
    )]
    TooSmall {
        /// Asked for.
        bytes: u64,
        /// The least that works.
        needed_bytes: u64,
    },
    /// The format cannot number so many pages or records.
    #[error(
        "{records} records do not fit into one database at this page size; use more databases or \
         larger pages"
    )]
    TooLarge {
        /// Asked for.
        records: u64,
    },
    /// A record does not fit a page.
    #[error(
        "a record of {bytes} bytes is longer than the {bytes_max} a page of this size takes; \
         shorten the pads"
    )]
    RecordTooLong {
        /// With these pads.
        bytes: usize,
        /// What fits.
        bytes_max: usize,
    },
    /// A percentage is out of range.
    #[error("{name} is {percent}; it must be between {least} and 100")]
    Percent {
        /// Which.
        name: &'static str,
        /// Its value.
        percent: u8,
        /// The least allowed.
        least: u8,
    },
    /// More leaves in common than there are.
    #[error("{leaves_per_million} of a million leaves cannot be shared; take at most 1000000")]
    Sharing {
        /// Asked for.
        leaves_per_million: u32,
    },
    /// The long pad cannot make room for a reference to a long value.
    #[error("with long values, the long pad needs at least {bytes_min} bytes")]
    PadTooShort {
        /// The least that works.
        bytes_min: usize,
    },
    /// Index entries or long values of records that are not there.
    #[error(
        "a database with vacancies has neither index nor long values: some would belong to no \
         record"
    )]
    VacantWithOthers,
    /// Long values of no length, or one for every zeroth record.
    #[error(
        "long values need a length from 1 to {bytes_max} and an interval of at least 1; leave them \
         out for none"
    )]
    LongValues {
        /// The longest allowed.
        bytes_max: u32,
    },
}
