//! What everything inside a running instance shares, and the loop that carries a step through page
//! faults and file growth.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{Context, Files, Handle, Notify, Purpose};

use crate::PageNumber;
use crate::batch::{Batch, PageImages, Step, Stop};
use crate::btree::{Tree, descend_last};
use crate::cache::{Cache, Frame};
use crate::database::Database;
use crate::error::{EngineError, PageDamage, Result};
use crate::log::Lsn;
use crate::log::writer::Log;
use crate::page::page_flags;
use crate::pending::PendingTrees;
use crate::purge_queue::PurgeQueue;
use crate::space::{SpaceHeader, grow_database};
use crate::versions::{RowKey, VersionStore};
use crate::writers::Writers;

/// What a step came to.
pub enum Progress<R> {
    /// Finished.
    Done(R),
    /// One structural change was made; the step has to be looked at again.
    Again,
}

/// The databases of an instance by number.
#[derive(Default)]
pub struct Databases {
    open: RefCell<BTreeMap<u8, Rc<Database>>>,
}

impl Databases {
    /// Adds a database.
    pub fn insert(&self, database: Rc<Database>) {
        self.open.borrow_mut().insert(database.number(), database);
    }

    /// A database.
    pub fn get(&self, number: u8) -> Option<Rc<Database>> {
        self.open.borrow().get(&number).cloned()
    }

    /// All of them in order.
    pub fn all(&self) -> Vec<Rc<Database>> {
        self.open.borrow().values().cloned().collect()
    }

    /// Takes all away.
    pub fn take_all(&self) -> Vec<Rc<Database>> {
        std::mem::take(&mut *self.open.borrow_mut()).into_values().collect()
    }
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
    /// Transactions that recovery may have to take back.
    pub writers: RefCell<Writers>,
    /// Trees that are being made or dropped.
    pub(crate) pending: RefCell<PendingTrees>,
    /// Transactions begun and not ended, and other work that a close waits for.
    pub active: Cell<usize>,
    /// The next transaction number.
    pub next_transaction: Cell<u64>,
    /// Rows that may be left on their pages as deleted nodes.
    pub purge: RefCell<PurgeQueue>,
    /// Something was added to what is to be purged, or the instance is stopping.
    pub purge_wanted: Notify,
    /// A transaction ended.
    pub ended: Notify,
    /// Redo would start here.
    pub checkpoint: Cell<Lsn>,
    /// Whether page images are logged.
    pub page_images: PageImages,
    /// Pages a database file grows by.
    pub extension_pages: u32,
    /// Databases that are growing.
    pub growing: RefCell<Vec<u8>>,
    /// A database has grown.
    pub grown: Notify,
    /// The instance is closing: nothing new is begun, and what is under way is waited for.
    pub closing: Cell<bool>,
    /// The instance is closing: background tasks end.
    pub stopping: Cell<bool>,
    /// Nothing is looked at or changed any more: pages changed now would be in no file, whatever
    /// the log says.
    pub sealed: Cell<bool>,
}

impl Store {
    /// The database of a tree.
    pub fn database(&self, number: u8) -> Result<Rc<Database>> {
        self.check_open()?;
        self.databases
            .get(number)
            .ok_or(EngineError::NoSuchObject { what: "database", name: number.to_string() })
    }

    /// Fails once nothing may be looked at or changed any more.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.sealed.get() {
            return Err(EngineError::Closing);
        }
        Ok(())
    }

    /// Begins work that is no transaction of a caller's; a close waits for it.
    ///
    /// # Errors
    /// [`EngineError::Closing`].
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        if self.closing.get() {
            return Err(EngineError::Closing);
        }
        self.active.set(self.active.get() + 1);
        Ok(Entered { store: self })
    }

    fn batch<'a>(&'a self, database: &'a Database) -> Batch<'a> {
        Batch::new(&self.cache, &self.log, database, self.page_images)
    }

    /// Carries a changing step to its end. The step runs again from the start after every wait, so
    /// it must not have side effects until it is certain to finish.
    pub async fn change<R>(
        &self,
        database: &Rc<Database>,
        mut step: impl FnMut(&mut Batch<'_>) -> Step<Progress<R>>,
    ) -> Result<R> {
        let mut pins: Vec<Rc<Frame>> = Vec::new();
        loop {
            // Callers may loop over rows in memory without ever waiting.
            self.handle.breathe().await;
            self.log.room().await?;
            self.check_open()?;
            let mut batch = self.batch(database);
            match step(&mut batch) {
                Ok(Progress::Done(result)) => {
                    batch.commit();
                    return Ok(result);
                }
                Ok(Progress::Again) => {
                    batch.commit();
                    pins.clear();
                }
                Err(stop) => {
                    drop(batch);
                    self.resume(database, stop, &mut pins).await?;
                }
            }
        }
    }

    /// Carries a looking step to its end.
    pub async fn look<R>(
        &self,
        database: &Rc<Database>,
        mut step: impl FnMut(&Batch<'_>) -> Step<R>,
    ) -> Result<R> {
        let mut pins: Vec<Rc<Frame>> = Vec::new();
        loop {
            self.handle.breathe().await;
            self.check_open()?;
            let batch = self.batch(database);
            match step(&batch) {
                Ok(result) => return Ok(result),
                Err(stop) => {
                    drop(batch);
                    self.resume(database, stop, &mut pins).await?;
                }
            }
        }
    }

    async fn resume(
        &self,
        database: &Rc<Database>,
        stop: Stop,
        pins: &mut Vec<Rc<Frame>>,
    ) -> Result<()> {
        match stop {
            Stop::Fault(page) => {
                pins.push(self.cache.load(database, page, Purpose::DatabaseRead).await?);
                Ok(())
            }
            Stop::Grow { pages } => {
                pins.clear();
                self.grow(database, pages).await
            }
            // Whoever starts the step again lets others run before.
            Stop::Breathe => Ok(()),
            Stop::Failed(error) => Err(error),
        }
    }

    /// Makes the file and the root's space larger. One at a time per database; who comes second
    /// looks again.
    async fn grow(&self, database: &Rc<Database>, pages: u32) -> Result<()> {
        let number = database.number();
        if self.growing.borrow().contains(&number) {
            self.grown.notified().await;
            return self.log.check();
        }
        self.growing.borrow_mut().push(number);
        let _growing = Growing { store: self, number };
        self.grow_alone(database, pages).await
    }

    /// Finds out how far a database reaches, for whoever walks all of its pages. The length of a
    /// file tells that already.
    pub(crate) async fn note_last_owned(&self, database: &Rc<Database>) -> Result<()> {
        if database.is_device() {
            database.set_last_owned(self.look(database, last_owned_page).await?);
        }
        Ok(())
    }

    /// Fails where the file ends before the last page that the database owns.
    pub(crate) async fn check_length(&self, database: &Rc<Database>) -> Result<()> {
        let last = Box::pin(self.look(database, last_owned_page)).await?;
        let there = database.pages_owned();
        if last <= there {
            return Ok(());
        }
        Err(EngineError::DamagedPage {
            path: database.path().to_owned(),
            page: there + 1,
            damage: PageDamage::Missing { last },
        })
    }

    async fn grow_alone(&self, database: &Rc<Database>, pages: u32) -> Result<()> {
        let last = Box::pin(self.look(database, last_owned_page)).await?;
        // Extent trees may take a few pages of the new extent for themselves.
        let grow_by = (pages + 8).next_multiple_of(self.extension_pages.max(1));
        database.extend(last + grow_by).await?;
        if database.is_device() {
            database.blank(last + 1, grow_by).await?;
        }
        if let Err(error) = database.sync_length().await {
            // After a failed sync nobody knows what the file holds.
            self.log.fail(&error);
            return Err(error);
        }
        let mut pins: Vec<Rc<Frame>> = Vec::new();
        loop {
            self.log.room().await?;
            let mut batch = self.batch(database);
            match grow_database(&mut batch, last + 1, grow_by) {
                Ok(()) => {
                    batch.commit();
                    database.set_last_owned(last + grow_by);
                    return Ok(());
                }
                Err(Stop::Fault(page)) => {
                    drop(batch);
                    pins.push(self.cache.load(database, page, Purpose::DatabaseRead).await?);
                }
                Err(Stop::Breathe) => self.handle.breathe().await,
                Err(Stop::Grow { .. }) => {
                    unreachable!("the new extent is larger than its trees can need")
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    /// Queues rows whose nodes may be removed for good.
    pub fn queue_purge(&self, rows: Vec<RowKey>) {
        if !rows.is_empty() {
            self.purge.borrow_mut().extend(rows);
            self.purge_wanted.notify_all();
        }
    }
}

/// Work under way that a close waits for. See [`Store::enter`].
pub(crate) struct Entered<'a> {
    store: &'a Store,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.store.active.set(self.store.active.get() - 1);
        self.store.ended.notify_all();
    }
}

/// Ends the turn of who makes a database grow, also when its future is dropped half-way.
struct Growing<'a> {
    store: &'a Store,
    number: u8,
}

impl Drop for Growing<'_> {
    fn drop(&mut self) {
        self.store.growing.borrow_mut().retain(|growing| *growing != self.number);
        self.store.grown.notify_all();
    }
}

/// The last page that the database root owns.
fn last_owned_page(batch: &Batch<'_>) -> Step<PageNumber> {
    let header = batch.with(1, |view| Ok(SpaceHeader::from_bytes(view.external()?)))?;
    let header = header.ok_or_else(|| {
        batch.damaged(1, crate::error::PageDamage::Link("the database root has no space header"))
    })?;
    let owned = Tree {
        database: batch.database().number(),
        root: header.owned_root_or_bitmap,
        object: 1,
        kind: page_flags::SPACE,
    };
    let path = descend_last(batch, &owned)?;
    let key = batch.with(path.leaf, |view| match view.lines() {
        0 => Ok(Vec::new()),
        lines => Ok(view.node(lines - 1)?.key()),
    })?;
    let last = key
        .len()
        .checked_sub(4)
        .and_then(|start| key[start..].try_into().ok())
        .map(u32::from_be_bytes);
    last.ok_or_else(|| {
        batch.damaged(path.leaf, crate::error::PageDamage::Link("the database owns no extent"))
    })
}
