//! The loop that carries a step through page faults and file growth.
//!
//! A step finds every page it needs in memory, or stops and says what it waits for; then it runs
//! again from the start. So nothing of it is done until it is certain to finish.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::{Handle, Notify, Purpose};

use crate::PageNumber;
use crate::batch::{Batch, PageImages, Step, Stop};
use crate::btree::{Tree, descend_last};
use crate::cache::{Cache, Claim, Frame};
use crate::database::Database;
use crate::error::{EngineError, PageDamage, Result};
use crate::log::writer::Log;
use crate::page::page_flags;
use crate::phase::Life;
use crate::space::{SpaceHeader, grow_database};

/// What a step came to.
pub enum Progress<R> {
    /// Finished.
    Done(R),
    /// One structural change was made; the step has to be looked at again.
    Again,
}

/// More pages than a look at a few leaves needs at once.
const PINS_MIN: usize = 12;

/// Databases that are growing; one at a time grows each.
struct Growth {
    /// Pages a database file grows by.
    extension_pages: u32,
    growing: RefCell<Vec<u8>>,
    /// A database has grown.
    grown: Notify,
}

/// See the module text.
pub(crate) struct Stepper {
    handle: Handle,
    cache: Rc<Cache>,
    log: Rc<Log>,
    images: PageImages,
    life: Rc<Life>,
    growth: Growth,
}

impl Stepper {
    /// Over these pages and this log, for as long as `life` has not come to its end.
    pub(crate) fn new(
        handle: Handle,
        (cache, log): (Rc<Cache>, Rc<Log>),
        (images, extension_pages): (PageImages, u32),
        life: Rc<Life>,
    ) -> Stepper {
        let growth = Growth { extension_pages, growing: RefCell::default(), grown: Notify::new() };
        Stepper { handle, cache, log, images, life, growth }
    }

    fn batch<'a>(&'a self, database: &'a Database) -> Batch<'a> {
        Batch::new(&self.cache, &self.log, database, self.images)
    }

    /// Carries a changing step to its end. The step runs again from the start after every wait, so
    /// it must not have side effects until it is certain to finish.
    pub(crate) async fn change<R>(
        &self,
        database: &Rc<Database>,
        mut step: impl FnMut(&mut Batch<'_>) -> Step<Progress<R>>,
    ) -> Result<R> {
        let mut pins = Pins::new(&self.cache, usize::MAX);
        loop {
            // Callers may loop over rows in memory without ever waiting.
            self.handle.breathe().await;
            self.log.room().await?;
            self.life.check_open()?;
            let mut batch = self.batch(database);
            match step(&mut batch) {
                Ok(Progress::Done(result)) => {
                    batch.commit();
                    return Ok(result);
                }
                Ok(Progress::Again) => {
                    batch.commit();
                    pins.let_go();
                }
                Err(stop) => {
                    drop(batch);
                    self.resume(database, stop, &mut pins).await?;
                }
            }
        }
    }

    /// Carries a reading step to its end.
    pub(crate) async fn read<R>(
        &self,
        database: &Rc<Database>,
        mut step: impl FnMut(&Batch<'_>) -> Step<R>,
    ) -> Result<R> {
        let mut pins = Pins::new(&self.cache, self.cache.limits().frames_max / 2);
        loop {
            self.handle.breathe().await;
            self.life.check_open()?;
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

    async fn resume(&self, database: &Rc<Database>, stop: Stop, pins: &mut Pins<'_>) -> Result<()> {
        match stop {
            Stop::Fault(page) => pins.load(database, page).await,
            Stop::Grow { pages } => {
                // Another may make it grow, and wait for frames meanwhile.
                pins.let_go();
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
        if self.growth.growing.borrow().contains(&number) {
            self.growth.grown.notified().await;
            return self.log.check();
        }
        self.growth.growing.borrow_mut().push(number);
        let _growing = Growing { growth: &self.growth, number };
        self.grow_alone(database, pages).await
    }

    /// Finds out how far a database reaches, for whoever walks all of its pages. The length of a
    /// file tells that already.
    pub(crate) async fn note_last_owned(&self, database: &Rc<Database>) -> Result<()> {
        if database.is_device() {
            database.set_last_owned(self.read(database, last_owned_page).await?);
        }
        Ok(())
    }

    /// Fails where the file ends before the last page that the database owns.
    pub(crate) async fn check_length(&self, database: &Rc<Database>) -> Result<()> {
        let last = Box::pin(self.read(database, last_owned_page)).await?;
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
        let last = Box::pin(self.read(database, last_owned_page)).await?;
        // Extent trees may take a few pages of the new extent for themselves.
        let grow_by = (pages + 8).next_multiple_of(self.growth.extension_pages.max(1));
        database.extend(last + grow_by).await?;
        if database.is_device() {
            database.blank(last + 1, grow_by).await?;
        }
        if let Err(error) = database.sync_length().await {
            // After a failed sync nobody knows what the file holds.
            self.log.fail(&error);
            return Err(error);
        }
        let mut pins = Pins::new(&self.cache, usize::MAX);
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
                    pins.load(database, page).await?;
                }
                Err(Stop::Breathe) => self.handle.breathe().await,
                Err(Stop::Grow { .. }) => {
                    unreachable!("the new extent is larger than its trees can need")
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }
}

/// Pages that a step has waited for. They stay in memory until it has run with all that it needs.
/// Others may change the tree while it waits, so that it needs other pages each time: what it holds
/// is let go now and then.
struct Pins<'a> {
    cache: &'a Cache,
    frames: Vec<Rc<Frame>>,
    /// Of the step, while it holds pages.
    claim: Claim<'a>,
    /// Let go when there are so many, which then doubles, in case that the step needs them.
    let_go_at: usize,
    /// Does not count while it is the step's turn to go beyond the maximum: then what it lets go of
    /// is dropped at once, and it may need more.
    let_go_at_most_at: usize,
}

impl<'a> Pins<'a> {
    fn new(cache: &'a Cache, at_most: usize) -> Pins<'a> {
        let (frames, claim) = (Vec::new(), cache.claim());
        let let_go_at_most_at = at_most.max(PINS_MIN);
        Pins { cache, frames, claim, let_go_at: PINS_MIN, let_go_at_most_at }
    }

    /// Waits for a page, and holds it.
    async fn load(&mut self, database: &Database, page: PageNumber) -> Result<()> {
        let purpose = Purpose::DatabaseRead;
        let frame = self.cache.load_for(&self.claim, database, page, purpose).await?;
        let has_turn = self.claim.has_turn();
        if frame.is_beyond() && !has_turn {
            return Ok(());
        }
        if self.frames.len() >= self.let_go_at {
            self.frames.clear();
            let at_most = if has_turn { usize::MAX } else { self.let_go_at_most_at };
            self.let_go_at = self.let_go_at.saturating_mul(2).min(at_most);
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Lets go of every page, and of the place in line.
    fn let_go(&mut self) {
        self.frames.clear();
        self.claim.end();
    }
}

/// Ends the turn of who makes a database grow, also when its future is dropped half-way.
struct Growing<'a> {
    growth: &'a Growth,
    number: u8,
}

impl Drop for Growing<'_> {
    fn drop(&mut self) {
        self.growth.growing.borrow_mut().retain(|growing| *growing != self.number);
        self.growth.grown.notify_all();
    }
}

/// The last page that the database root owns.
fn last_owned_page(batch: &Batch<'_>) -> Step<PageNumber> {
    let header = batch.with(1, |view| Ok(SpaceHeader::from_bytes(view.external()?)))?;
    let header = header.ok_or_else(|| {
        batch.damaged(1, PageDamage::Link("the database root has no space header"))
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
    last.ok_or_else(|| batch.damaged(path.leaf, PageDamage::Link("the database owns no extent")))
}
