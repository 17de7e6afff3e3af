//! The database header: one page of fields at the start of the file, and its shadow, an identical
//! second page.
//!
//! The header is written copy 0 first, made durable, then copy 1; at least one of them is therefore
//! whole. It is read as copy 0 if its checksum is right, else as copy 1. Field offsets come from
//! the public format description and the public ESE source; fields from offset 671 on belong to
//! later formats than ours and stay zero.

use crate::checksum::header_checksum;
use crate::{FormatError, LogPosition, LogTime, PageNumber, PageSize, Signature};

/// Format version of the files we write, and the oldest whose pages carry the correcting checksum.
pub const FORMAT_VERSION: u32 = 0x620;
/// Update of the format version that we write: the newest that every independent reader accepts.
pub const FORMAT_UPDATE: u32 = 0x14;
/// "Sort versions are in MSysLocales."
pub const SORT_VERSION_IN_LOCALES: u64 = u64::MAX;
/// The word after the checksum of every ESE database header.
const MAGIC: u32 = 0x89AB_CDEF;
const MAGIC_OFFSET: usize = 4;
const FILE_TYPE_OFFSET: usize = 667;
const FIELDS_END: usize = 671;

/// Whether a database can be opened as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatabaseState {
    /// Created and never opened.
    #[default]
    JustCreated,
    /// In use, or left behind by a crash: needs recovery.
    Dirty,
    /// Everything is in the file.
    Clean,
    /// A state this engine neither makes nor accepts for writing: converting, force-detached, being
    /// reseeded, patched, reverting.
    Other(u32),
}

/// What kind of file a header begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileType {
    /// A database.
    #[default]
    Database,
    /// A streaming file of Exchange 2000 and 2003.
    Streaming,
    /// A log generation.
    Log,
    /// A checkpoint file.
    Checkpoint,
    /// A temporary database.
    TemporaryDatabase,
    /// A flush map.
    FlushMap,
    /// Something else.
    Other(u32),
}

impl FileType {
    /// The type that the header at the start of a file states.
    pub fn of_header(header: &[u8]) -> Option<FileType> {
        let bytes = header.get(FILE_TYPE_OFFSET..FILE_TYPE_OFFSET + 4)?;
        Some(Field::get(bytes))
    }
}

/// A backup that was made: log position, time and the generations it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupMark {
    /// Log position when it began.
    pub position: LogPosition,
    /// When.
    pub time: LogTime,
    /// First generation needed.
    pub generation_min: u32,
    /// Last generation needed.
    pub generation_max: u32,
}

/// Something that happened to the database a number of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// How often since the last repair.
    pub count: u32,
    /// The last time.
    pub time: LogTime,
    /// How often before the last repair.
    pub count_before_repair: u32,
}

/// A change of the file's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResizeCount {
    /// How often.
    pub count: u32,
    /// The last time.
    pub time: LogTime,
}

/// A value with a fixed place in a header.
trait Field: Sized {
    const BYTES: usize;
    /// Reads exactly `BYTES` bytes.
    fn get(bytes: &[u8]) -> Self;
    /// Writes exactly `BYTES` bytes.
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! number_fields {
    ($($number:ty),*) => {$(
        impl Field for $number {
            const BYTES: usize = size_of::<$number>();
            fn get(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("the field's length"))
            }
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
number_fields!(u32, u64);

impl<const N: usize> Field for [u8; N] {
    const BYTES: usize = N;
    fn get(bytes: &[u8]) -> Self {
        bytes.try_into().expect("the field's length")
    }
    fn put(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self);
    }
}

macro_rules! converted_fields {
    ($($type:ty, $bytes:expr, $get:expr, $put:expr;)*) => {$(
        impl Field for $type {
            const BYTES: usize = $bytes;
            fn get(bytes: &[u8]) -> Self {
                $get(Field::get(bytes))
            }
            fn put(&self, bytes: &mut [u8]) {
                Field::put(&$put(*self), bytes);
            }
        }
    )*};
}
converted_fields! {
    LogTime, 8, LogTime, |time: LogTime| time.0;
    LogPosition, 8, LogPosition::from_bytes, LogPosition::to_bytes;
    Signature, 28, Signature::from_bytes, Signature::to_bytes;
    DatabaseState, 4, DatabaseState::from_number, DatabaseState::number;
    FileType, 4, FileType::from_number, FileType::number;
}

/// A value made of fields that follow one another.
macro_rules! compound_field {
    ($type:ident { $($name:ident: $field:ty),* }) => {
        impl Field for $type {
            const BYTES: usize = 0 $(+ <$field as Field>::BYTES)*;
            fn get(bytes: &[u8]) -> Self {
                let mut rest = bytes;
                $(
                    let ($name, after) = rest.split_at(<$field as Field>::BYTES);
                    rest = after;
                )*
                debug_assert!(rest.is_empty());
                Self { $($name: Field::get($name)),* }
            }
            fn put(&self, bytes: &mut [u8]) {
                let mut rest = bytes;
                $(
                    let (place, after) = rest.split_at_mut(<$field as Field>::BYTES);
                    self.$name.put(place);
                    rest = after;
                )*
                debug_assert!(rest.is_empty());
            }
        }
    };
}
compound_field!(BackupMark {
    position: LogPosition,
    time: LogTime,
    generation_min: u32,
    generation_max: u32
});
compound_field!(EventCount { count: u32, time: LogTime, count_before_repair: u32 });
compound_field!(ResizeCount { count: u32, time: LogTime });

impl DatabaseState {
    fn from_number(number: u32) -> Self {
        match number {
            1 => Self::JustCreated,
            2 => Self::Dirty,
            3 => Self::Clean,
            other => Self::Other(other),
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::JustCreated => 1,
            Self::Dirty => 2,
            Self::Clean => 3,
            Self::Other(other) => other,
        }
    }
}

impl FileType {
    fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Database,
            2 => Self::Streaming,
            3 => Self::Log,
            4 => Self::Checkpoint,
            5 => Self::TemporaryDatabase,
            7 => Self::FlushMap,
            other => Self::Other(other),
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Database => 1,
            Self::Streaming => 2,
            Self::Log => 3,
            Self::Checkpoint => 4,
            Self::TemporaryDatabase => 5,
            Self::FlushMap => 7,
            Self::Other(other) => other,
        }
    }
}

/// Declares the struct and both directions of its encoding from one list, in the order of the file.
macro_rules! header_fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $offset:literal;)*) => {
        /// A database header. `Default` is all zeros with the format's constants missing; see
        /// [`DatabaseHeader::new`].
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct DatabaseHeader {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl DatabaseHeader {
            fn get_fields(page: &[u8]) -> Self {
                Self { $($name: Field::get(&page[$offset..$offset + <$type as Field>::BYTES]),)* }
            }

            fn put_fields(&self, page: &mut [u8]) {
                $(self.$name.put(&mut page[$offset..$offset + <$type as Field>::BYTES]);)*
            }

            /// Name, offset and length of every field, in the order of the file.
            pub fn layout() -> &'static [(&'static str, usize, usize)] {
                &[$((stringify!($name), $offset, <$type as Field>::BYTES)),*]
            }
        }
    };
}

header_fields! {
    /// Format version.
    version: u32 = 8;
    /// 0 for a database.
    attributes: u32 = 12;
    /// At least as high as the database time of any page.
    dbtime_max: u64 = 16;
    /// Identity of this database.
    signature: Signature = 24;
    /// Whether it was shut down cleanly.
    state: DatabaseState = 52;
    /// Log position up to which the file is complete when clean.
    consistent_position: LogPosition = 56;
    /// When that was.
    consistent_time: LogTime = 64;
    /// When it was last opened for writing.
    attach_time: LogTime = 72;
    /// Log position of that.
    attach_position: LogPosition = 80;
    /// When it was last closed cleanly.
    detach_time: LogTime = 88;
    /// Log position of that; none while open.
    detach_position: LogPosition = 96;
    /// Number of the database in its log stream.
    database_id: u32 = 104;
    /// Identity of the log stream.
    log_signature: Signature = 108;
    /// Last full backup.
    full_backup: BackupMark = 136;
    /// Last incremental backup.
    incremental_backup: BackupMark = 160;
    /// Full backup in progress.
    current_full_backup: BackupMark = 184;
    /// Bit 0: no shadow catalog. Bit 1: upgrading.
    flags: u32 = 208;
    /// Highest object number given out.
    object_max: u32 = 212;
    /// Operating system that last wrote the file.
    os_major: u32 = 216;
    /// Its minor version.
    os_minor: u32 = 220;
    /// Its build.
    os_build: u32 = 224;
    /// Its service pack.
    os_service_pack: u32 = 228;
    /// Update of the format version.
    update: u32 = 232;
    /// Bytes per page.
    page_bytes: u32 = 236;
    /// Repairs.
    repair_count: u32 = 240;
    /// Last repair.
    repair_time: LogTime = 244;
    /// Identity of a streaming file; obsolete.
    stream_signature: Signature = 252;
    /// Database time of the last scrub.
    scrub_dbtime: u64 = 280;
    /// Last scrub.
    scrub_time: LogTime = 288;
    /// First log generation recovery needs; 0 when clean.
    generation_min_required: u32 = 296;
    /// Last log generation recovery needs; 0 when clean.
    generation_max_required: u32 = 300;
    /// Upgrade bookkeeping of old versions.
    upgrade_info: [u8; 12] = 304;
    /// Snapshot backup.
    snapshot_backup: BackupMark = 316;
    /// Format version when created.
    version_created: u32 = 340;
    /// Update when created.
    update_created: u32 = 344;
    /// When the last required generation was created.
    generation_max_time: LogTime = 348;
    /// Kind of the last full backup.
    full_backup_kind: u32 = 356;
    /// Kind of the last incremental backup.
    incremental_backup_kind: u32 = 360;
    /// Repairs before the last one that succeeded.
    repair_count_old: u32 = 364;
    /// Pages repaired through their checksum.
    ecc_fixed: EventCount = 368;
    /// Pages whose checksum could not repair them.
    ecc_unfixable: EventCount = 384;
    /// Pages with a bad checksum of the old kind.
    bad_checksum: EventCount = 400;
    /// Last log generation known to hold committed transactions.
    generation_max_committed: u32 = 416;
    /// Last copy backup.
    copy_backup: BackupMark = 420;
    /// Last differential backup.
    differential_backup: BackupMark = 444;
    /// Kind of the last copy backup.
    copy_backup_kind: u32 = 468;
    /// Kind of the last differential backup.
    differential_backup_kind: u32 = 472;
    /// Reseeds.
    reseed: EventCount = 476;
    /// Pages patched from a copy.
    page_patch: EventCount = 492;
    /// Version of the Unicode sort order.
    sort_version: u64 = 508;
    /// When the last background scan was completed.
    scan_completed_time: LogTime = 516;
    /// When the current background scan was started.
    scan_started_time: LogTime = 524;
    /// Highest page of the current scan without a gap before it.
    scan_page: PageNumber = 532;
    /// Generation being recovered.
    generation_recovering: u32 = 536;
    /// Extensions of the file.
    extend: ResizeCount = 540;
    /// Truncations of the file.
    shrink: ResizeCount = 552;
    /// When it was last attached again by recovery.
    reattach_time: LogTime = 564;
    /// Log position of that.
    reattach_position: LogPosition = 572;
    /// Trims.
    trim_count: u32 = 580;
    /// Changes with every header write; the flush map repeats it.
    header_flush_signature: Signature = 584;
    /// Changes with every flush-map header write; repeated here.
    flush_map_signature: Signature = 612;
    /// Lowest generation at which the file is consistent.
    generation_min_consistent: u32 = 640;
    /// Minor update of the format version.
    update_minor: u32 = 644;
    /// Newest engine format that ever opened the file.
    engine_format_max: u32 = 648;
    /// Highest page ever scanned.
    scan_page_max: PageNumber = 652;
    /// Log position of the last change of size.
    resize_position: LogPosition = 656;
    /// Unused.
    reserved: [u8; 3] = 664;
    /// Always [`FileType::Database`] here.
    file_type: FileType = 667;
}

/// Which copy of the header was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderCopy {
    /// The first page.
    Primary,
    /// The second page, because the first is damaged.
    Shadow,
}

impl DatabaseHeader {
    /// Whether the database was not shut down cleanly.
    pub fn needs_recovery(&self) -> bool {
        !matches!(self.state, DatabaseState::Clean | DatabaseState::JustCreated)
    }

    /// Whether the database is a backup that was not recovered yet.
    pub fn is_backup_copy(&self) -> bool {
        self.current_full_backup.generation_min > 0
    }

    /// The header of a new, clean, empty-handed database in our format version.
    pub fn new(page_size: PageSize, signature: Signature, log_signature: Signature) -> Self {
        Self {
            version: FORMAT_VERSION,
            update: FORMAT_UPDATE,
            version_created: FORMAT_VERSION,
            update_created: FORMAT_UPDATE,
            dbtime_max: 0x40,
            signature,
            log_signature,
            state: DatabaseState::Clean,
            database_id: 1,
            page_bytes: page_size.bytes() as u32,
            sort_version: SORT_VERSION_IN_LOCALES,
            ..Self::default()
        }
    }

    /// The page size, if it is one.
    pub fn page_size(&self) -> Option<PageSize> {
        PageSize::from_bytes(self.page_bytes)
    }

    /// The header as a page of `page_bytes` bytes, checksum included; both copies are the same.
    ///
    /// # Panics
    /// When `page_bytes` is no page size.
    pub fn encode(&self) -> Vec<u8> {
        let page_size = self.page_size().expect("headers are written with a valid page size");
        let mut page = vec![0; page_size.bytes()];
        MAGIC.put(&mut page[MAGIC_OFFSET..MAGIC_OFFSET + 4]);
        self.put_fields(&mut page);
        let checksum = header_checksum(&page);
        checksum.put(&mut page[..4]);
        page
    }

    /// Reads one copy, which must begin at the start of `bytes` and may be followed by anything.
    ///
    /// # Errors
    /// When this is no database header, or its checksum is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() < FIELDS_END {
            return Err(FormatError::HeaderShort { found_bytes: bytes.len() });
        }
        let magic: u32 = Field::get(&bytes[MAGIC_OFFSET..MAGIC_OFFSET + 4]);
        if magic != MAGIC {
            return Err(FormatError::NotEse { found: magic });
        }
        let header = Self::get_fields(bytes);
        let size =
            header.page_size().ok_or(FormatError::PageSize { found_bytes: header.page_bytes })?;
        let page = bytes
            .get(..size.bytes())
            .ok_or(FormatError::HeaderShort { found_bytes: bytes.len() })?;
        let (stored, computed): (u32, u32) = (Field::get(&page[..4]), header_checksum(page));
        if stored != computed {
            return Err(FormatError::HeaderChecksum { stored, computed });
        }
        if header.file_type != FileType::Database {
            return Err(FormatError::FileType { found: header.file_type });
        }
        Ok(header)
    }

    /// Reads the header by the shadow rule from the first bytes of a file, which should hold two of
    /// the largest pages or the whole file. If the first copy is too damaged to say how long a page
    /// is, the shadow is looked for at every page size.
    ///
    /// # Errors
    /// The error of the first copy when neither copy is whole.
    pub fn choose(start_of_file: &[u8]) -> Result<(Self, HeaderCopy), FormatError> {
        let error = match Self::decode(start_of_file) {
            Ok(header) => return Ok((header, HeaderCopy::Primary)),
            Err(error) => error,
        };
        for size in PageSize::ALL {
            let shadow = start_of_file.get(size.bytes()..).map(Self::decode);
            if let Some(Ok(header)) = shadow
                && header.page_bytes as usize == size.bytes()
            {
                return Ok((header, HeaderCopy::Shadow));
            }
        }
        Err(error)
    }
}
