//! The ESE-format transactional store: real pages, real logs, real recovery, on whatever [`plimsoll_io::Disk`] it is given.
//!
//! The engine takes its disk, clock and randomness as arguments and touches nothing else. On-disk facts come from the public
//! ESE source and the public format description; where our files differ (log record bodies), `docs/file-format.md` says so.

pub mod batch;
pub mod btree;
pub mod cache;
pub mod catalog;
pub mod checkpoint;
mod checksum;
pub mod create;
pub mod cursor;
pub mod database;
pub mod deep;
pub mod edit;
pub mod error;
pub mod flushmap;
mod format_error;
mod geometry;
mod header;
pub mod instance;
pub mod jobs;
mod key;
mod known_page;
pub mod log;
mod logtime;
pub mod page;
mod page_class;
mod purge;
mod purge_queue;
pub mod reader;
mod record;
pub mod repair;
pub mod replay;
pub mod retry;
mod schema;
pub mod space;
pub mod store;
pub mod table;
pub mod transaction;
pub mod verify;
pub mod versions;
pub mod whole_pages;
pub mod writers;

pub use checksum::{
    block_checksum, copy_and_checksum, header_checksum, page_checksums, set_checksum, stored_checksums,
};
pub use format_error::FormatError;
pub use geometry::{PageNumber, PageSize};
pub use header::{
    BackupMark, DatabaseHeader, DatabaseState, EventCount, FORMAT_UPDATE, FORMAT_VERSION, FileType,
    HeaderCopy, ResizeCount, SORT_VERSION_IN_LOCALES,
};
pub use key::{Key, KeyError, KeyShape};
pub use logtime::{LogPosition, LogTime, Signature};
pub use page_class::{BlockDamage, FlippedBits, PageClass, classify, correct, mend};
pub use record::{
    MultiValue, NewValue, Record, RecordError, RecordFault, RecordLayout, StoredValue, encode_record,
    value_bits,
};
pub use schema::{
    CODE_PAGE_UNICODE, CODE_PAGE_WESTERN, Column, ColumnId, ColumnStorage, ColumnType, Index,
    KEY_BYTES_MAX_DEFAULT, KeyColumn, KeyOrder, SchemaError, TAGGED_COLUMN_MIN, Table, TableBuilder,
    VARIABLE_COLUMN_MIN, column_flags, index_flags,
};
