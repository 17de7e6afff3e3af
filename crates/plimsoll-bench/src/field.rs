//! One prepared database of the 2010 edition and one instance on it, set up as the product sets
//! them up by default.
//!
//! The values are those of `python/plimsoll/data/editions.toml` and `config.py`; page images are
//! off, as in the published editions.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::Result;
use plimsoll_engine::instance::{Instance, InstanceOptions, RecoveryReport};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_io::{Context, Files, Handle, InstanceId, Random};
use plimsoll_prepare::{Extent, Plan, PlanError, PreparedDatabase, Secondary, TABLE_NAME};
use plimsoll_workload::records::Mix;

/// The 2010 edition: insert, delete, replace, read; seven commits in ten do not wait.
pub const MIX_2010: Mix = Mix {
    insert_percent: 40,
    delete_percent: 20,
    replace_percent: 5,
    read_percent: 35,
    lazy_commit_percent: 70,
};
/// Sessions of that edition.
pub const SESSIONS_2010: u64 = 3;
/// The log that a crash may leave to be redone.
pub const CHECKPOINT_DEPTH_BYTES: u64 = 20 << 20;

/// Where the files lie and how much memory they may have.
#[derive(Clone, Debug)]
pub struct Field {
    /// Holds everything.
    pub directory: PathBuf,
    /// The cache.
    pub cache_bytes: u64,
    /// The log that a crash may leave to be redone.
    pub checkpoint_depth_bytes: u64,
}

impl Field {
    /// The database file.
    pub fn database_path(&self) -> PathBuf {
        self.directory.join("priv0001.edb")
    }

    fn options(&self) -> InstanceOptions {
        InstanceOptions {
            context: Context { instance: InstanceId(1), ..Context::default() },
            log: LogNames::new(&self.directory, "E00"),
            databases: vec![self.database_path()],
            framing: Framing::Sectors512,
            circular: true,
            hold_checkpoint: false,
            log_buffer_bytes: 1 << 20,
            cache_bytes_min: self.cache_bytes / 8,
            cache_bytes_max: self.cache_bytes,
            checkpoint_depth_bytes: self.checkpoint_depth_bytes,
            version_store_bytes_max: 8192 * 16 * 1024,
            page_images: false,
            extension_pages: 256,
            waypoint_generations: 0,
            writes_outstanding_max: 32,
        }
    }

    /// Opens the instance, recovering it if need be.
    ///
    /// # Errors
    /// What the engine reports.
    pub async fn open(
        &self,
        files: &Files,
        handle: &Handle,
    ) -> Result<(Rc<Instance>, RecoveryReport)> {
        let mut random = Random::from_seed(1).child("instance");
        Instance::open(files.clone(), handle.clone(), self.options(), &mut random).await
    }
}

/// A prepared database of the 2010 edition of this size: one tree, as the published test has it.
///
/// # Errors
/// When the size is impossible.
pub fn prepared_2010(bytes: u64) -> std::result::Result<Arc<PreparedDatabase>, PlanError> {
    let plan = Plan {
        secondary: Secondary::Absent,
        ..Plan::new(PageSize::KIB_32, Extent::Bytes(bytes), 1)
    };
    PreparedDatabase::new(plan).map(Arc::new)
}

/// The tree of the records, by the database's own catalog.
///
/// # Panics
/// When the file is not a prepared database: these programs have just made it.
pub async fn record_tree(files: &Files, handle: &Handle, path: &Path) -> Tree {
    let reader = DatabaseReader::open(files, handle, path, WhenDirty::Read).await;
    let reader = reader.expect("a prepared database can be read");
    let place = reader.table(TABLE_NAME).expect("a prepared database has the table").place;
    Tree { database: 1, root: place.root, object: place.object, kind: 0 }
}
