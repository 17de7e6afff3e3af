//! Where mailboxes live: in the first database or in a further one, between which they are moved.
//! Users and deliveries go in and out of a mailbox; while it changes its home nobody is in it, and
//! who comes waits.
//!
//! A mailbox is where its row of `Mailbox` is. Only while its original is deleted are rows of it in
//! both, and a mark says which of them is the original.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_io::Notify;

use super::schema::{Tables, mailbox, moving};
use crate::shop::Sheet;

/// What a database knows of a mailbox that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum Mark {
    /// What it holds of it is a copy that is being made.
    Coming = 1,
    /// It holds the original, which goes when the other database has a row of the mailbox.
    Leaving = 2,
}

/// A database of mailboxes with its tables.
pub(super) struct Home {
    pub mail: Rc<Instance>,
    pub tables: Tables,
    /// Marks of moves, where there are two databases.
    pub marks: Option<Sheet>,
}

impl Home {
    /// The mailboxes that have a row here.
    pub async fn mailboxes(&self) -> Result<BTreeSet<u32>> {
        let transaction = self.mail.begin();
        let sheet = &self.tables.mailboxes;
        let mut rows = sheet.rows(&transaction, 0, &[])?;
        let mut found = BTreeSet::new();
        while let Some(row) = rows.next().await? {
            found.insert(sheet.number(&row, mailbox::NUMBER)? as u32);
        }
        Ok(found)
    }

    /// The sheet of marks.
    ///
    /// # Errors
    /// Where the store has no further database.
    pub fn marks(&self) -> Result<&Sheet> {
        let none = || EngineError::BadRow("there is no further database of mailboxes".into());
        self.marks.as_ref().ok_or_else(none)
    }

    /// The mailboxes with a mark of this kind.
    pub async fn marked(&self, mark: Mark) -> Result<BTreeSet<u32>> {
        let mut found = BTreeSet::new();
        let Some(sheet) = &self.marks else { return Ok(found) };
        let transaction = self.mail.begin();
        let mut rows = sheet.rows(&transaction, 0, &[])?;
        while let Some(row) = rows.next().await? {
            if sheet.number(&row, moving::KIND)? == mark as i64 {
                found.insert(sheet.number(&row, moving::MAILBOX)? as u32);
            }
        }
        Ok(found)
    }
}

/// Who is in which mailbox, and which of them nobody may enter.
#[derive(Default)]
pub(super) struct Doors {
    inside: RefCell<BTreeMap<u32, u32>>,
    closed: RefCell<BTreeSet<u32>>,
    /// Nobody knows where these live until the store is opened again, and why.
    doubtful: RefCell<BTreeMap<u32, EngineError>>,
    changed: Notify,
}

/// A mailbox that somebody is in: it stays where it is for as long.
pub(super) struct Inside<'a> {
    doors: &'a Doors,
    mailbox: u32,
    home: &'a Home,
}

impl Deref for Inside<'_> {
    type Target = Home;

    fn deref(&self) -> &Home {
        self.home
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut inside = self.doors.inside.borrow_mut();
        if let Some(count) = inside.get_mut(&self.mailbox) {
            *count -= 1;
            if *count == 0 {
                inside.remove(&self.mailbox);
            }
        }
        self.doors.changed.notify_all();
    }
}

/// A mailbox that nobody is in; others may come again when this is dropped.
pub(super) struct Closed<'a> {
    doors: &'a Doors,
    mailbox: u32,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.doors.closed.borrow_mut().remove(&self.mailbox);
        self.doors.changed.notify_all();
    }
}

/// A mailbox whose switch is under way: where it lives is not known until its commit has come back.
pub(super) struct InDoubt<'a> {
    doors: &'a Doors,
    mailbox: u32,
    /// What is told to whoever comes, unless it is settled.
    why: Option<EngineError>,
}

impl InDoubt<'_> {
    /// It is known where it lives.
    pub fn settle(mut self) {
        self.why = None;
    }

    /// It is not known, and why.
    pub fn failed(mut self, error: &EngineError) {
        self.why = Some(error.clone());
    }
}

impl Drop for InDoubt<'_> {
    fn drop(&mut self) {
        if let Some(why) = self.why.take() {
            let told = EngineError::Poisoned { cause: Box::new(why) };
            self.doors.doubtful.borrow_mut().insert(self.mailbox, told);
        }
    }
}

impl Doors {
    /// Lets nobody in any more, and waits until all have gone.
    pub async fn close(&self, mailbox: u32) -> Closed<'_> {
        self.closed.borrow_mut().insert(mailbox);
        let closed = Closed { doors: self, mailbox };
        loop {
            let changed = self.changed.notified();
            if !self.inside.borrow().contains_key(&mailbox) {
                return closed;
            }
            changed.await;
        }
    }

    /// Waits until the mailbox may be entered, and counts who does. `home` is asked for then.
    ///
    /// # Errors
    /// [`EngineError::Poisoned`] where nobody knows which database it lives in.
    pub async fn enter<'a>(
        &'a self,
        mailbox: u32,
        home: impl FnOnce() -> &'a Home,
    ) -> Result<Inside<'a>> {
        loop {
            let changed = self.changed.notified();
            if !self.closed.borrow().contains(&mailbox) {
                break;
            }
            changed.await;
        }
        if let Some(why) = self.doubtful.borrow().get(&mailbox) {
            return Err(why.clone());
        }
        *self.inside.borrow_mut().entry(mailbox).or_default() += 1;
        Ok(Inside { doors: self, mailbox, home: home() })
    }

    /// Whoever comes to the mailbox is turned away from now on, unless this is settled.
    pub fn doubt(&self, mailbox: u32) -> InDoubt<'_> {
        InDoubt { doors: self, mailbox, why: Some(EngineError::HalfDone) }
    }
}
