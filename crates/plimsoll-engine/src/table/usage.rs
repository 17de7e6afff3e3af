//! Who uses which table, so that nobody changes a table under somebody's hands.
//!
//! Every handle of a table keeps its [`TableUse`], and so does what reads or writes a long value of
//! it. A change of a table's schema is refused while there is one, or while a transaction has
//! changed rows of the table; a table is not opened while its schema changes. A handle therefore
//! always knows the table as it is.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_SECOND, Permits, either};

use crate::catalog::PlacedTable;
use crate::error::{EngineError, Result};
use crate::store::Store;
// Circle: the numbers are kept with the use of the table, in a file of their own.
use super::numbers::Numbers;

/// How long a change of a schema waits until no transaction needs older versions of the table's
/// rows.
const WAIT_NS_MAX: u64 = 2 * NANOS_PER_SECOND;

/// What all handles of one table share.
#[derive(Default)]
pub(crate) struct TableUse {
    /// The number of the next long value, once somebody has looked.
    next_long_value: Cell<Option<u32>>,
    /// The numbers of the column that is filled from a counter.
    pub(super) numbers: Numbers,
}

impl TableUse {
    pub(super) fn next_long_value(&self) -> Option<u32> {
        self.next_long_value.get()
    }

    pub(super) fn set_next_long_value(&self, number: u32) {
        self.next_long_value.set(Some(number));
    }
}

/// A table by database and object.
type TableKey = (u8, u32);

/// What an instance knows of its tables.
pub(crate) struct Schema {
    uses: RefCell<BTreeMap<TableKey, Rc<TableUse>>>,
    /// Tables whose schema changes at the moment.
    changing: RefCell<BTreeSet<TableKey>>,
    /// Changes begun and ended so far.
    version: Cell<u64>,
    /// One change at a time: object numbers are taken from what the catalog holds.
    pub(super) changes: Permits,
}

impl Default for Schema {
    fn default() -> Self {
        Self {
            uses: RefCell::default(),
            changing: RefCell::default(),
            version: Cell::new(0),
            changes: Permits::new(1),
        }
    }
}

impl Schema {
    /// Differs from what it was before if any table's schema has changed, or changes.
    pub(super) fn version(&self) -> u64 {
        self.version.get()
    }

    /// Begins to use a table whose rows in the catalog were read when the schema had `version`;
    /// `None` if they may be others by now.
    pub(super) fn enter(
        &self,
        database: u8,
        placed: &PlacedTable,
        version: u64,
    ) -> Result<Option<Rc<TableUse>>> {
        let key = (database, placed.place.object);
        if self.changing.borrow().contains(&key) {
            return Err(EngineError::TableInUse {
                table: placed.table.name.clone(),
                why: "its schema is being changed; open it again when that is done",
            });
        }
        let is_current = self.version.get() == version;
        Ok(is_current.then(|| self.uses.borrow_mut().entry(key).or_default().clone()))
    }

    /// Has a table for the change of its schema alone, until what this returns is dropped.
    ///
    /// # Errors
    /// [`EngineError::TableInUse`].
    pub(super) async fn take(
        &self,
        store: &Store,
        database: u8,
        placed: &PlacedTable,
    ) -> Result<Taken<'_>> {
        let key = (database, placed.place.object);
        self.changing.borrow_mut().insert(key);
        self.version.set(self.version.get() + 1);
        let taken = Taken { schema: self, key };
        let table = &placed.table.name;
        let refused = |why: &'static str| {
            let table = table.clone();
            Err(EngineError::TableInUse { table, why })
        };
        let uses = self.uses.borrow().get(&key).map_or(0, Rc::strong_count);
        if uses > 1 {
            return refused("another user has it open; drop all handles of it, then change it");
        }
        let places = placed.places();
        let until_ns = store.handle.now() + WAIT_NS_MAX;
        while store.versions.borrow().has_versions_in(|tree| {
            let is_tree = |object| tree.database == database && tree.object == object;
            places.iter().any(|place| is_tree(place.object))
        }) {
            let now_ns = store.handle.now();
            if now_ns >= until_ns {
                return refused(
                    "a transaction has changed rows of it, or may still see them as they were; end \
                     it, then change the table",
                );
            }
            either(store.life.ended(), store.handle.sleep(until_ns - now_ns)).await;
        }
        Ok(taken)
    }

    /// The use of a table that the caller has taken.
    pub(super) fn used_alone(&self, database: u8, placed: &PlacedTable) -> Rc<TableUse> {
        let key = (database, placed.place.object);
        self.uses.borrow_mut().entry(key).or_default().clone()
    }

    /// Forgets a table that is gone.
    pub(super) fn forget(&self, database: u8, object: u32) {
        self.uses.borrow_mut().remove(&(database, object));
    }
}

/// A table that somebody has alone.
pub(super) struct Taken<'a> {
    schema: &'a Schema,
    key: TableKey,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.schema.changing.borrow_mut().remove(&self.key);
        self.schema.version.set(self.schema.version.get() + 1);
    }
}
