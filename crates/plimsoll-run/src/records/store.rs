//! What a load on records needs of an instance, whatever keeps the records.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_workload::Done;
use plimsoll_workload::records::{Operation, Population};

use crate::RunError;
use crate::backend::Work;

/// The records of each database as all loads on it know them.
pub type Populations = Vec<Rc<RefCell<Population>>>;

/// See the module text.
pub trait RecordStore {
    /// The records of each database.
    fn populations(&self) -> Populations;

    /// Carries out one transaction on a database, its commit included.
    fn execute<'a>(
        &'a self,
        database: usize,
        operation: &'a Operation,
    ) -> Work<'a, Result<Done, RunError>>;
}

/// Shares the records among all loads of a run.
pub fn shared(populations: impl IntoIterator<Item = Population>) -> Populations {
    let each = populations.into_iter();
    each.map(|population| Rc::new(RefCell::new(population))).collect()
}
