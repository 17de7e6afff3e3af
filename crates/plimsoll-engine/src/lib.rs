//! The ESE-format transactional store: real pages, real logs, real recovery, on whatever
//! [`plimsoll_io::Disk`] it is given.
//!
//! The engine takes its disk, clock and randomness as arguments and touches nothing else. On-disk
//! facts come from the public ESE source and the public format description; where our files differ
//! (log record bodies), `docs/file-format.md` says so.
//!
//! | what | where |
//! |---|---|
//! | a new database file | [`create_database`] |
//! | databases opened together, with one log and one cache | [`Instance`], [`InstanceOptions`] |
//! | what a table looks like | [`Table`], [`Column`], [`ColumnType`], [`NewIndex`] |
//! | rows | [`OpenTable`]: insert, update, delete, get, scan, count, long values |
//! | several operations as one | [`Transaction`], [`Commit`]; [`Instance::transact`] tries again after a conflict, see [`retry::Retry`] |
//! | which rows | [`KeyRange`], [`Direction`] |
//! | what went wrong | [`EngineError`] |
//! | whether a file makes sense | [`deep::verify_deep`], [`verify`] |
//! | backup, recovery in steps, maintenance | [`jobs`], [`instance::Recovery`] |
//! | a backup as files that can be opened | [`jobs::copy::Copy`], [`jobs::copy::seal`] |
//! | the log as it becomes durable | [`log::tap::Subscription`], by `instance.store().log` |
//!
//! Tables are made, changed and dropped while the instance is open: [`Instance::create_table`],
//! [`Instance::add_index`], [`Instance::drop_index`], [`Instance::add_column`],
//! [`Instance::drop_column`], [`Instance::drop_table`].
//!
//! # Example
//!
//! A table in memory, in virtual time. On a real disk only the first lines differ, see below.
//!
//! ```
//! use std::path::{Path, PathBuf};
//! use std::rc::Rc;
//!
//! use plimsoll_engine::log::{framing::Framing, names::LogNames};
//! use plimsoll_engine::{
//!     Column, ColumnType, Commit, Direction, Instance, InstanceOptions, KeyRange, LogTime, NewIndex, PageSize,
//!     Signature, Table, create_database,
//! };
//! use plimsoll_io::{Clock, Context, Executor, Files, MemoryDisk, MemoryOptions, Random};
//!
//! let mut random = Random::from_seed(1);
//! let clock = Rc::new(Clock::simulated());
//! let created = LogTime::from_utc_ns(clock.anchor().utc_ns);
//! let disk = MemoryDisk::new(clock.clone(), random.child("disk"), MemoryOptions::default());
//! disk.create_directory("/data");
//! let executor = Executor::new(clock, disk.clone());
//! let (files, handle) = (Files::new(disk), executor.handle());
//! let path = PathBuf::from("/data/mail.edb");
//! let options = InstanceOptions {
//!     context: Context::default(),
//!     log: LogNames::new(Path::new("/data"), "E00"),
//!     databases: vec![path.clone()],
//!     framing: Framing::Segments4096,
//!     circular: true,
//!     hold_checkpoint: false,
//!     log_buffer_bytes: 1 << 20,
//!     cache_bytes_min: 0,
//!     cache_bytes_max: 16 << 20,
//!     checkpoint_depth_bytes: 20 << 20,
//!     version_store_bytes_max: 16 << 20,
//!     page_images: true,
//!     extension_pages: 256,
//!     waypoint_generations: 0,
//!     writes_outstanding_max: 64,
//! };
//! let work = async move {
//!     let signature = Signature::new(random.next_u64() as u32, created);
//!     create_database(&files, &path, PageSize::KIB_32, signature, options.context).await?;
//!     let (instance, _) = Instance::open(files, handle, options, &mut random).await?;
//!
//!     let messages = Table::builder("Messages")
//!         .column(Column::new("id", ColumnType::Long))
//!         .column(Column::new("subject", ColumnType::Text))
//!         .primary("primary", &["id"])
//!         .build()
//!         .expect("a table that makes sense");
//!     let table = instance.create_table(1, messages).await?;
//!     let (id, subject) = (table.column("id")?, table.column("subject")?);
//!     let transaction = instance.begin();
//!     for (number, text) in [(1i32, "hello"), (2, "again"), (3, "and again")] {
//!         let values = [(id, Some(&number.to_le_bytes()[..])), (subject, Some(text.as_bytes()))];
//!         table.insert(&transaction, &values).await?;
//!     }
//!     transaction.commit(Commit::Durable).await?;
//!     drop(table);
//!
//!     // An index is added to a table that nobody has open.
//!     let index = NewIndex::unique("by subject", &["subject"]);
//!     instance.add_index(1, "Messages", index).await?;
//!     let table = instance.open_table(1, "Messages").await?;
//!     let transaction = instance.begin();
//!     let by_subject = table.index("by subject")?;
//!     let mut rows = table.scan(&transaction, by_subject, KeyRange::all(), Direction::Forward);
//!     let first = rows.next().await?.expect("there are three");
//!     let text = table.value(&transaction, &first, subject).await?;
//!     assert_eq!(text.as_deref(), Some(&b"again"[..]));
//!     drop(rows);
//!     transaction.commit(Commit::Lazy).await?;
//!     instance.close().await
//! };
//! executor.run(work).expect("nobody waits for ever")?;
//! # Ok::<(), plimsoll_engine::EngineError>(())
//! ```

//! # On a real disk
//!
//! The clock is that of the machine, and the disk a [`plimsoll_io::RealDisk`]. The seed of all
//! randomness is drawn once. A [`Signature`] says which database a file is: make it of a random
//! number and the time, so that no two databases have the same.
//!
//! ```no_run
//! use std::hash::{BuildHasher, Hasher, RandomState};
//! use std::rc::Rc;
//!
//! use plimsoll_engine::{LogTime, Signature};
//! use plimsoll_io::{Caching, Clock, Executor, Files, Random, RealDisk, RealDiskOptions};
//!
//! let mut random = Random::from_seed(RandomState::new().build_hasher().finish());
//! let clock = Rc::new(Clock::real());
//! let created = LogTime::from_utc_ns(clock.anchor().utc_ns);
//! let signature = Signature::new(random.next_u64() as u32, created);
//! // By default I/O is direct. A tmpfs, or the overlay files of a container, may refuse that.
//! let options = RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
//! let disk = RealDisk::open(options, clock.clone())?;
//! let executor = Executor::new(clock, disk.clone());
//! let (files, handle) = (Files::new(disk), executor.handle());
//! # drop((files, handle, signature));
//! # Ok::<(), plimsoll_io::DiskError>(())
//! ```
//!
//! The directories of databases and log have to be there. [`create_database`] makes a database
//! where there is none yet; [`Instance::open`] recovers one that was not closed.
//!
//! # When the schema changes
//!
//! A program that is newer than its database adds what is missing, each time it starts. Every
//! change is durable by itself, so that the next start goes on after a crash. A table that is
//! changed must not be open.
//!
//! ```
//! # mod shared { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/documented/mod.rs")); }
//! # use shared::*;
//! # on_a_disk(async |files, handle| {
//! # let instance = create_and_open(&files, &handle).await?;
//! use plimsoll_engine::{Column, ColumnType, NewIndex};
//!
//! let table = instance.open_table(1, "Messages").await?;
//! let (has_size, has_index) = (table.column("size").is_ok(), table.index("by size").is_ok());
//! drop(table);
//! if !has_size {
//!     // The rows that are there have the default value.
//!     let size = Column::new("size", ColumnType::Long).with_default(&0i32.to_le_bytes());
//!     instance.add_column(1, "Messages", size).await?;
//! }
//! if !has_index {
//!     instance.add_index(1, "Messages", NewIndex::duplicates("by size", &["-size"])).await?;
//! }
//! let table = instance.open_table(1, "Messages").await?;
//! # table.index("by size")?;
//! # drop(table);
//! # instance.close().await
//! # });
//! ```
//!
//! # Text
//!
//! Text in a column of type [`ColumnType::Text`] is one byte for each character, as in code page
//! 1252; [`Column::unicode`] columns hold UTF-16. An index on single-byte text refuses rows whose
//! text is not ASCII. An index orders Unicode text as people do. A unique index on either takes
//! letters of upper and lower case for the same.

// Users of the engine call these.
pub mod create;
pub mod cursor;
pub mod deep;
pub mod error;
pub mod instance;
pub mod jobs;
pub mod log;
pub mod reader;
pub mod repair;
pub mod retry;
pub mod table;
pub mod transaction;
pub mod verify;

// What the files are made of: for what prepares, checks and damages databases without an instance,
// and for tests.
#[doc(hidden)]
pub mod btree;
#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod catalog;
#[doc(hidden)]
pub mod checkpoint;
#[doc(hidden)]
pub mod database;
#[doc(hidden)]
pub mod edit;
#[doc(hidden)]
pub mod flushmap;
#[doc(hidden)]
pub mod page;
#[doc(hidden)]
pub mod space;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod whole_pages;

mod batch;
mod bounds;
mod checksum;
mod collation;
mod databases;
mod format_error;
mod free_space;
mod geometry;
mod header;
mod key;
mod known_page;
mod logtime;
mod page_class;
mod pending;
mod phase;
mod purge;
mod purge_queue;
mod record;
mod replay;
mod schema;
mod stepping;
mod versions;
mod writers;

pub use create::create_database;
pub use cursor::{Direction, KeyRange};
pub use error::EngineError;
pub use geometry::PageSize;
pub use instance::{Instance, InstanceOptions};
pub use logtime::{LogTime, Signature};
pub use schema::{
    Column, ColumnId, ColumnStorage, ColumnType, KEY_BYTES_MAX_DEFAULT, NewIndex, SchemaError,
    Table, TableBuilder, column_flags, index_flags,
};
pub use table::OpenTable;
pub use transaction::{Commit, Transaction};

#[doc(hidden)]
pub use checksum::{
    block_checksum, copy_and_checksum, header_checksum, page_checksums, set_checksum,
    stored_checksums,
};
#[doc(hidden)]
pub use collation::{UNICODE_LOCALE, UNICODE_UNITS_MAX, UnicodeOrder};
#[doc(hidden)]
pub use format_error::FormatError;
#[doc(hidden)]
pub use geometry::PageNumber;
#[doc(hidden)]
pub use header::{
    BackupMark, DatabaseHeader, DatabaseState, EventCount, FORMAT_UPDATE, FORMAT_VERSION, FileType,
    HeaderCopy, ResizeCount, SORT_VERSION_IN_LOCALES,
};
#[doc(hidden)]
pub use key::{Key, KeyError, KeyShape};
#[doc(hidden)]
pub use logtime::LogPosition;
#[doc(hidden)]
pub use page_class::{BlockDamage, FlippedBits, PageClass, classify, correct, mend};
#[doc(hidden)]
pub use record::{
    MultiValue, NewValue, Record, RecordError, RecordFault, RecordLayout, StoredValue,
    encode_record, value_bits,
};
#[doc(hidden)]
pub use schema::{
    CODE_PAGE_UNICODE, CODE_PAGE_WESTERN, Index, KeyColumn, KeyOrder, TAGGED_COLUMN_MIN,
    VARIABLE_COLUMN_MIN,
};
