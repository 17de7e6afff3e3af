//! The processors of a modelled host: each transaction occupies one of them for a stated time
//! before it touches the disk.
//!
//! In virtual time code takes no time at all; what it would have taken is charged here, so that a
//! modelled run on very fast storage is limited by what limits a real one. The time is a stated
//! constant, not a measurement.

use std::cell::RefCell;

use plimsoll_io::{Handle, Nanos};

/// See the module text.
#[derive(Debug)]
pub struct Processors {
    free_at: RefCell<Vec<Nanos>>,
    transaction_ns: Nanos,
}

impl Processors {
    /// So many processors, each transaction `transaction_ns` long.
    pub fn new(count: u32, transaction_ns: Nanos) -> Processors {
        Processors { free_at: RefCell::new(vec![0; count.max(1) as usize]), transaction_ns }
    }

    /// So many others, as fast as these.
    pub fn as_many(&self, count: u32) -> Processors {
        Processors::new(count, self.transaction_ns)
    }

    /// Waits for a processor and occupies it for one transaction.
    pub async fn transaction(&self, handle: &Handle) {
        if self.transaction_ns == 0 {
            return;
        }
        let done = {
            let mut free_at = self.free_at.borrow_mut();
            let first = free_at.iter_mut().min().expect("there is at least one");
            *first = (*first).max(handle.now()) + self.transaction_ns;
            *first
        };
        handle.sleep_until(done).await;
    }
}
