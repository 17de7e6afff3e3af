//! What everything inside a running instance shares.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_io::{Context, Files, Handle};

use crate::batch::{Batch, PageImages, Step};
use crate::cache::Cache;
use crate::database::Database;
use crate::databases::Databases;
use crate::error::{EngineError, Result};
use crate::log::Lsn;
use crate::log::writer::Log;
use crate::pending::PendingTrees;
use crate::phase::{Entered, Life, Phase};
use crate::purge_queue::WaitingRows;
pub use crate::stepping::Progress;
use crate::stepping::Stepper;
use crate::versions::VersionStore;
use crate::writers::Writers;

/// Where an instance works, and how.
pub(crate) struct Surroundings {
    pub(crate) handle: Handle,
    pub(crate) files: Files,
    pub(crate) context: Context,
    pub(crate) version_store_bytes_max: usize,
    pub(crate) images: PageImages,
    /// Pages a database file grows by.
    pub(crate) extension_pages: u32,
}

/// What an instance finds when it begins.
pub(crate) struct Found {
    pub(crate) cache: Rc<Cache>,
    pub(crate) databases: Rc<Databases>,
    pub(crate) log: Rc<Log>,
    pub(crate) next_transaction: u64,
    pub(crate) checkpoint: Lsn,
    pub(crate) pending: PendingTrees,
}

/// See the module text.
pub struct Store {
    /// The executor.
    pub handle: Handle,
    /// The disk's files.
    pub files: Files,
    /// The label of this instance's I/O.
    pub context: Context,
    /// The page cache.
    pub cache: Rc<Cache>,
    /// The log.
    pub log: Rc<Log>,
    /// The databases.
    pub databases: Rc<Databases>,
    /// Versions of rows.
    pub versions: RefCell<VersionStore>,
    /// Rows that may be left on their pages as deleted nodes.
    pub purge: WaitingRows,
    /// Redo would start here.
    pub checkpoint: Cell<Lsn>,
    /// Transactions that recovery may have to undo.
    pub(crate) writers: RefCell<Writers>,
    /// Trees that are being made or dropped.
    pub(crate) pending: RefCell<PendingTrees>,
    /// How far the instance has come, and what a close waits for.
    pub(crate) life: Rc<Life>,
    stepper: Stepper,
    next_transaction: Cell<u64>,
}

impl Store {
    /// What an instance begins with.
    pub(crate) fn new(surroundings: Surroundings, found: Found) -> Store {
        let Surroundings { handle, files, context, .. } = surroundings;
        let life: Rc<Life> = Rc::default();
        let pages = (found.cache.clone(), found.log.clone());
        let how = (surroundings.images, surroundings.extension_pages);
        Store {
            stepper: Stepper::new(handle.clone(), pages, how, life.clone()),
            handle,
            files,
            context,
            cache: found.cache,
            log: found.log,
            databases: found.databases,
            versions: RefCell::new(VersionStore::new(surroundings.version_store_bytes_max)),
            purge: WaitingRows::default(),
            checkpoint: Cell::new(found.checkpoint),
            writers: RefCell::default(),
            pending: RefCell::new(found.pending),
            life,
            next_transaction: Cell::new(found.next_transaction),
        }
    }

    /// The database of a tree.
    pub fn database(&self, number: u8) -> Result<Rc<Database>> {
        self.life.check_open()?;
        self.databases.get(number).ok_or_else(|| EngineError::no_such_number("database", number))
    }

    /// Whether the instance is closing, or closed.
    pub fn is_closing(&self) -> bool {
        self.life.has_come_to(Phase::Closing)
    }

    /// Whether background work is to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.life.has_come_to(Phase::Stopping)
    }

    /// Begins work that is no transaction of a caller's; a close waits for it.
    ///
    /// # Errors
    /// [`EngineError::Closing`].
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        self.life.enter()
    }

    /// The next number of a transaction.
    pub(crate) fn take_transaction_number(&self) -> u64 {
        let number = self.next_transaction.get();
        self.next_transaction.set(number + 1);
        number
    }

    /// Carries a changing step to its end. The step runs again from the start after every wait, so
    /// it must not have side effects until it is certain to finish.
    pub async fn change<R>(
        &self,
        database: &Rc<Database>,
        step: impl FnMut(&mut Batch<'_>) -> Step<Progress<R>>,
    ) -> Result<R> {
        self.stepper.change(database, step).await
    }

    /// Carries a reading step to its end.
    pub async fn read<R>(
        &self,
        database: &Rc<Database>,
        step: impl FnMut(&Batch<'_>) -> Step<R>,
    ) -> Result<R> {
        self.stepper.read(database, step).await
    }

    /// Finds out how far a database reaches, for whoever walks all of its pages. The length of a
    /// file tells that already.
    pub(crate) async fn note_last_owned(&self, database: &Rc<Database>) -> Result<()> {
        self.stepper.note_last_owned(database).await
    }

    /// Fails where the file ends before the last page that the database owns.
    pub(crate) async fn check_length(&self, database: &Rc<Database>) -> Result<()> {
        self.stepper.check_length(database).await
    }
}
