//! Prepared databases: files of any size whose every page is a pure function of the plan and the
//! page number.
//!
//! A qualification run needs a database as large as the storage, and building one record by record
//! takes days. Here every page can be written on its own, in any order, by any number of writers,
//! at the speed of the disk; a simulated disk need not store it at all. The price is a regular
//! shape: records of one length, so many to a leaf, trees in one extent each. The result is an
//! ordinary clean database that any reader of the format opens and that the engine then changes
//! like any other.
//!
//! [`Plan`] says what is wanted, [`PreparedDatabase`] answers for every page, record and long
//! value, [`write_database`] makes the file. `docs/reference/prepared-database.md` draws the
//! layout.

mod database;
mod delta;
mod filler;
mod identity;
mod keys;
mod layout;
mod permutation;
mod plan;
mod record;
mod sparse;
mod tree;
mod vacancy;
mod value;
mod writer;

pub use self::database::PreparedDatabase;
pub use self::delta::PageDelta;
pub use self::identity::{INDEX_NAME, PRIMARY_NAME, TABLE_NAME};
pub use self::plan::{
    Extent, LongValues, Plan, PlanError, RECORD_NUMBER_MAX, RecordShape, Secondary, Sharing,
};
pub use self::record::{RecordColumns, column};
pub use self::sparse::PreparedContent;
pub use self::writer::{PrepareError, WriteOptions, WriteReport, write_database};
