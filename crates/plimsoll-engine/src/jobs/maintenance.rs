//! Background database maintenance: walks through each database in large sequential reads, at its
//! own slow pace, and checks every page's checksum and flush type.
//!
//! The pace is a pause before each read, so the rate depends on how fast the reads are, as in ESE.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_io::{Nanos, Purpose};

use super::scan::read_chunk;
use crate::PageNumber;
use crate::error::{PageDamage, Result};
use crate::instance::Instance;

/// The pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceOptions {
    /// Bytes of one read.
    pub read_bytes: usize,
    /// Pause before each read.
    pub pause_ns: Nanos,
}

/// What maintenance has seen; shared with whoever reports it.
#[derive(Default)]
pub struct MaintenanceProgress {
    /// Pages checked, passes added up.
    pub pages_checked: Cell<u64>,
    /// Times the whole database was walked.
    pub passes: Cell<u64>,
    /// Pages found damaged.
    pub damaged: RefCell<Vec<(PageNumber, PageDamage)>>,
    /// Set to end the walk after the current read.
    pub stop: Cell<bool>,
}

/// Walks one database until `progress.stop` is set or the instance closes.
pub async fn maintain(
    instance: Rc<Instance>,
    database: u8,
    options: MaintenanceOptions,
    progress: Rc<MaintenanceProgress>,
) -> Result<()> {
    let store = instance.store().clone();
    let target = store.database(database)?;
    let pages_per_read = (options.read_bytes / target.size().bytes()).max(1) as u32;
    let mut next: PageNumber = 1;
    loop {
        store.handle.sleep(options.pause_ns).await;
        if progress.stop.get() || store.is_stopping() {
            return store.log.check();
        }
        let count = pages_per_read.min(target.pages_in_use() + 1 - next);
        let chunk = read_chunk(&store.handle, &target, next, count, Purpose::Maintenance).await?;
        progress.pages_checked.set(progress.pages_checked.get() + u64::from(count));
        progress.damaged.borrow_mut().extend(chunk.damaged);
        next += count;
        if next > target.pages_in_use() {
            next = 1;
            progress.passes.set(progress.passes.get() + 1);
        }
    }
}
