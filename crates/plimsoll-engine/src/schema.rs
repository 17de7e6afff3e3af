//! What tables look like: columns, indexes, and how both are declared.
//!
//! A column's number says how it is stored: 1 to 127 fixed length, 128 to 255 variable length, from
//! 256 on tagged (present only where it has a value; the home of long values). The first index of a
//! table is its primary: the table is the tree of that index. A secondary index maps its key to the
//! primary key.
//!
//! We have no index with equal keys: an index declared with [`TableBuilder::duplicates`] gets the
//! primary key's columns appended and is unique. Every independent reader understands that, and
//! separators stay short.

mod builder;

use crate::collation::UnicodeOrder;

pub use builder::{NewIndex, SchemaError, TableBuilder};

/// Number of a column in its table.
pub type ColumnId = u16;

/// First number of variable-length columns.
pub const VARIABLE_COLUMN_MIN: ColumnId = 128;
/// First number of tagged columns.
pub const TAGGED_COLUMN_MIN: ColumnId = 256;

/// Code page of single-byte text.
pub const CODE_PAGE_WESTERN: u16 = 1252;
/// Code page of UTF-16LE text.
pub const CODE_PAGE_UNICODE: u16 = 1200;

/// Bits of [`Column::flags`].
///
/// Tables of other programs may have all of them, and are read. A column that is made here may have
/// [`NOT_NULL`](column_flags::NOT_NULL), [`AUTO_INCREMENT`](column_flags::AUTO_INCREMENT),
/// [`ESCROW`](column_flags::ESCROW) and, with a value, [`DEFAULT`](column_flags::DEFAULT). The
/// others are refused: rows written here would not be what the flag says.
pub mod column_flags {
    /// A value is required.
    pub const NOT_NULL: u32 = 0x1;
    /// Counts the changes of its row. Refused in columns made here, where nothing counts them.
    pub const VERSION: u32 = 0x2;
    /// Filled from a counter: every row gets the next number, and nobody gives it another.
    pub const AUTO_INCREMENT: u32 = 0x4;
    /// May hold several values. Refused in columns made here, where no call gives a second value.
    pub const MULTI_VALUED: u32 = 0x8;
    /// Has a default value. Set by [`Column::with_default`](super::Column::with_default), and
    /// refused without a value.
    pub const DEFAULT: u32 = 0x10;
    /// A counter changed by delta. [`OpenTable::add`](crate::OpenTable::add) changes every column
    /// of 4 or 8 byte integers so, with this flag or without.
    pub const ESCROW: u32 = 0x20;
    /// Values may be stored compressed. Refused in columns made here, where none is compressed.
    pub const COMPRESSED: u32 = 0x1000;
    /// Values are stored encrypted. Refused in columns made here: they would lie in plain text.
    pub const ENCRYPTED: u32 = 0x2000;
    /// Declared by the template of the table. Set while reading, in no catalog; refused in columns
    /// made here.
    pub const INHERITED: u32 = 0x8000_0000;
}

/// Bits of [`Index::flags`].
pub mod index_flags {
    /// No two entries have the same key.
    pub const UNIQUE: u32 = 0x1;
    /// Rows whose key columns are all null have an entry.
    pub const ALLOW_ALL_NULLS: u32 = 0x2;
    /// Rows whose first key column is null have an entry.
    pub const ALLOW_FIRST_NULL: u32 = 0x4;
    /// Rows with any null key column have an entry.
    pub const ALLOW_SOME_NULLS: u32 = 0x8;
    /// Null keys are refused.
    pub const NO_NULLS: u32 = 0x10;
    /// The table itself.
    pub const PRIMARY: u32 = 0x20;
    /// Null sorts after every value.
    pub const NULLS_HIGH: u32 = 0x800;
    /// Keys that are too long for the index are refused; otherwise they are cut, and rows whose
    /// keys differ only behind the cut share one.
    pub const REFUSE_TRUNCATION: u32 = 0x4000;
    /// Set in every index we know: key columns are listed with 16-bit numbers.
    pub const EXTENDED_COLUMN_IDS: u32 = 0x1_0000;
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// One byte, 0x00 or 0xFF.
    Bit,
    /// Unsigned 8 bits.
    UnsignedByte,
    /// Signed 16 bits.
    Short,
    /// Signed 32 bits.
    Long,
    /// Signed 64 bits, in ten-thousandths.
    Currency,
    /// 32-bit floating point.
    Single,
    /// 64-bit floating point.
    Double,
    /// Eight bytes: days since 1899-12-30 as floating point, or whatever its user puts there.
    DateTime,
    /// Up to 255 bytes.
    Binary,
    /// Up to 255 bytes of text, one for each character, as in code page 1252; of
    /// [`Column::unicode`] text in UTF-16. A single-byte column may hold any byte, but an index on
    /// it refuses what is not ASCII, and orders upper and lower case as the same. Use
    /// [`Column::unicode`] for other text that is to be indexed.
    Text,
    /// Up to 2 GiB.
    LongBinary,
    /// Up to 2 GiB of text. Indexes on it are as those on [`ColumnType::Text`].
    LongText,
    /// Unsigned 32 bits.
    UnsignedLong,
    /// Signed 64 bits.
    LongLong,
    /// Sixteen bytes.
    Guid,
    /// Unsigned 16 bits.
    UnsignedShort,
    /// Unsigned 64 bits.
    UnsignedLongLong,
    /// A type we do not know, or (0) a deleted column. Values are bytes.
    Other(u8),
}

const NUMBERED_TYPES: [(ColumnType, u8, usize); 17] = [
    (ColumnType::Bit, 1, 1),
    (ColumnType::UnsignedByte, 2, 1),
    (ColumnType::Short, 3, 2),
    (ColumnType::Long, 4, 4),
    (ColumnType::Currency, 5, 8),
    (ColumnType::Single, 6, 4),
    (ColumnType::Double, 7, 8),
    (ColumnType::DateTime, 8, 8),
    (ColumnType::Binary, 9, 0),
    (ColumnType::Text, 10, 0),
    (ColumnType::LongBinary, 11, 0),
    (ColumnType::LongText, 12, 0),
    (ColumnType::UnsignedLong, 14, 4),
    (ColumnType::LongLong, 15, 8),
    (ColumnType::Guid, 16, 16),
    (ColumnType::UnsignedShort, 17, 2),
    (ColumnType::UnsignedLongLong, 18, 8),
];

impl ColumnType {
    /// The type with this number in the catalog.
    pub fn from_number(number: u8) -> Self {
        let known = NUMBERED_TYPES.iter().find(|(_, known, _)| *known == number);
        known.map_or(Self::Other(number), |(column_type, ..)| *column_type)
    }

    /// Its number in the catalog.
    pub fn number(self) -> u8 {
        match self {
            Self::Other(number) => number,
            known => known.row().1,
        }
    }

    /// Its name in lists of columns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bit => "bit",
            Self::UnsignedByte => "unsigned byte",
            Self::Short => "short",
            Self::Long => "long",
            Self::Currency => "currency",
            Self::Single => "single",
            Self::Double => "double",
            Self::DateTime => "date-time",
            Self::Binary => "binary",
            Self::Text => "text",
            Self::LongBinary => "long binary",
            Self::LongText => "long text",
            Self::UnsignedLong => "unsigned long",
            Self::LongLong => "long long",
            Self::Guid => "guid",
            Self::UnsignedShort => "unsigned short",
            Self::UnsignedLongLong => "unsigned long long",
            Self::Other(_) => "unknown",
        }
    }

    /// Bytes of every value, or `None` if values differ in length.
    pub fn fixed_bytes(self) -> Option<usize> {
        match self {
            Self::Other(_) => None,
            known => Some(known.row().2).filter(|bytes| *bytes > 0),
        }
    }

    /// Whether values may be too long for a record.
    pub fn is_long(self) -> bool {
        matches!(self, Self::LongBinary | Self::LongText)
    }

    /// Whether values are text.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::LongText)
    }

    fn row(self) -> &'static (ColumnType, u8, usize) {
        let row = NUMBERED_TYPES.iter().find(|(known, ..)| *known == self);
        row.expect("every known type has a row")
    }
}

/// How a column is stored in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnStorage {
    /// At a fixed offset.
    Fixed,
    /// In the list of variable-length values.
    Variable,
    /// In the list of tagged values.
    Tagged,
}

impl ColumnStorage {
    /// How the column with this number is stored.
    pub fn of(column: ColumnId) -> Self {
        match column {
            0..VARIABLE_COLUMN_MIN => Self::Fixed,
            VARIABLE_COLUMN_MIN..TAGGED_COLUMN_MIN => Self::Variable,
            _ => Self::Tagged,
        }
    }

    fn ids(self) -> std::ops::RangeInclusive<ColumnId> {
        match self {
            Self::Fixed => 1..=VARIABLE_COLUMN_MIN - 1,
            Self::Variable => VARIABLE_COLUMN_MIN..=TAGGED_COLUMN_MIN - 1,
            Self::Tagged => TAGGED_COLUMN_MIN..=64_993,
        }
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Number; 0 until the table is built.
    pub id: ColumnId,
    /// Name.
    pub name: String,
    /// Type.
    pub column_type: ColumnType,
    /// See [`column_flags`].
    pub flags: u32,
    /// Code page of text, 0 for everything else.
    pub code_page: u16,
    /// Longest value; 0 means no limit but the type's. Where all values of the type have one
    /// length, a table that is built has that.
    pub bytes_max: u32,
    /// Value of rows that do not hold the column. Those that were given null hold that.
    pub default: Option<Vec<u8>>,
}

impl Column {
    /// A column that may be null; text is single-byte.
    pub fn new(name: &str, column_type: ColumnType) -> Self {
        let bytes_max = match column_type {
            ColumnType::Binary | ColumnType::Text => 255,
            other => other.fixed_bytes().unwrap_or(0) as u32,
        };
        Self {
            id: 0,
            name: name.to_owned(),
            column_type,
            flags: 0,
            code_page: if column_type.is_text() { CODE_PAGE_WESTERN } else { 0 },
            bytes_max,
            default: None,
        }
    }

    /// Adds bits of [`column_flags`].
    pub fn flagged(mut self, flags: u32) -> Self {
        self.flags |= flags;
        self
    }

    /// Gives rows this value that are given none: of the rows that are there when the column is
    /// added each has it, too. At most 255 bytes.
    pub fn with_default(mut self, value: &[u8]) -> Self {
        self.flags |= column_flags::DEFAULT;
        self.default = Some(value.to_vec());
        self
    }

    /// Makes the text UTF-16LE. Indexes sort it by the root collation of CLDR, see
    /// [`UnicodeOrder`].
    pub fn unicode(mut self) -> Self {
        self.code_page = CODE_PAGE_UNICODE;
        self
    }

    /// Whether it was dropped: its number and its place in the record are not used again.
    pub fn is_dropped(&self) -> bool {
        self.column_type == ColumnType::Other(0)
    }

    /// How it is stored.
    pub fn storage(&self) -> ColumnStorage {
        ColumnStorage::of(self.id)
    }

    /// Bytes in the fixed part of a record; only for fixed columns.
    pub fn fixed_bytes(&self) -> usize {
        self.column_type.fixed_bytes().unwrap_or(self.bytes_max as usize)
    }

    fn natural_storage(&self) -> ColumnStorage {
        match self.column_type {
            ColumnType::LongBinary | ColumnType::LongText => ColumnStorage::Tagged,
            ColumnType::Binary | ColumnType::Text => ColumnStorage::Variable,
            _ => ColumnStorage::Fixed,
        }
    }
}

/// One column of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyColumn {
    /// Which.
    pub column: ColumnId,
    /// Which way it sorts.
    pub order: KeyOrder,
}

/// Which way a key column sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// Small values first.
    Ascending,
    /// Large values first.
    Descending,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name.
    pub name: String,
    /// See [`index_flags`].
    pub flags: u32,
    /// Key columns, most significant first.
    pub columns: Vec<KeyColumn>,
    /// Longest key.
    pub key_bytes_max: u16,
    /// How it sorts Unicode text.
    pub unicode_order: UnicodeOrder,
}

/// The longest keys that an index may allow, with pages of 8 KiB or more; with smaller ones it is
/// half of that.
pub const KEY_BYTES_MAX_LARGEST: u16 = 2_000;
/// The most columns of a key, those of the primary key that are appended to it among them: more do
/// not fit the row of the catalog that lists them.
pub const KEY_COLUMNS_MAX: usize = 63;
/// The longest keys of an index that says nothing else. Longer ones are cut, but refused in an
/// index with the whole primary key in it, as [`NewIndex::duplicates`] makes them: cut short of the
/// primary key, two rows would have one entry. [`NewIndex::key_bytes_max`] allows longer ones.
pub const KEY_BYTES_MAX_DEFAULT: u16 = 255;

impl Index {
    /// Whether this is the table's own tree.
    pub fn is_primary(&self) -> bool {
        self.flags & index_flags::PRIMARY != 0
    }
}

/// Whether a row whose key columns are null as given has an entry.
pub(crate) fn has_entry(flags: u32, nulls: &[bool]) -> bool {
    let required = if !nulls.contains(&true) {
        return true;
    } else if nulls.iter().all(|is_null| *is_null) {
        index_flags::ALLOW_ALL_NULLS
    } else if nulls[0] {
        index_flags::ALLOW_FIRST_NULL
    } else {
        index_flags::ALLOW_SOME_NULLS
    };
    flags & required != 0
}

/// A table: columns in ascending order of their numbers, and indexes, of which the first is the
/// primary.
///
/// Names of tables, columns and indexes are ASCII of at most 64 characters. They keep their case
/// and are found in any, as in ESE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name.
    pub name: String,
    /// Columns by ascending number.
    pub columns: Vec<Column>,
    /// Indexes, the primary first. A table without one is kept in order of insertion; we do not
    /// make such tables.
    pub indexes: Vec<Index>,
}

impl Table {
    /// Starts declaring a table.
    pub fn builder(name: &str) -> TableBuilder {
        TableBuilder::new(name)
    }

    /// The column with this number.
    pub fn column(&self, id: ColumnId) -> Option<&Column> {
        // In the order of their numbers when read, and in that of their making before.
        match self.columns.binary_search_by_key(&id, |column| column.id) {
            Ok(at) => self.columns.get(at),
            Err(_) => self.columns.iter().find(|column| column.id == id),
        }
    }

    /// The column with this name, in upper or lower case.
    pub fn column_named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The position of the index with this name, in upper or lower case; 0 is the primary.
    pub fn index_named(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// The primary index.
    pub fn primary(&self) -> Option<&Index> {
        self.indexes.first().filter(|index| index.is_primary())
    }
}
