//! The databases of an instance.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::database::Database;

/// As many as an instance has.
pub const DATABASES_MAX: usize = 100;

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
