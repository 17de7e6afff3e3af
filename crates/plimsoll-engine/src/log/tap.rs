//! A subscription to what has become durable, from memory.
//!
//! After every flush that is durable each subscriber is handed what was in it: whole records, and
//! how they lie in the file of their generation, so that a copy of the file can be made to the byte
//! without reading it. Nobody is told of anything that a power cut could still take back.
//!
//! What waits for a subscriber is bounded in bytes. Who is too slow keeps what waits already, is
//! then told that it has lagged and up to where, and reads that from the files
//! ([`LogTail`](super::tail::LogTail) does so by itself); what comes after that place waits in
//! memory again.
//!
//! # Example
//!
//! ```
//! # mod shared { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/documented/mod.rs")); }
//! # use shared::*;
//! # on_a_disk(async |files, handle| {
//! # let instance = create_and_open(&files, &handle).await?;
//! use plimsoll_engine::Commit;
//! use plimsoll_engine::log::tap::{Subscription, Told};
//!
//! let mut subscription = Subscription::begin(&instance.store().log, 1 << 20);
//! let table = instance.open_table(1, "Messages").await?;
//! let transaction = instance.begin();
//! table.insert(&transaction, &[(table.column("id")?, Some(&7i32.to_le_bytes()))]).await?;
//! transaction.commit(Commit::Durable).await?;
//! match subscription.next().await? {
//!     Some(Told::Run(run)) => {
//!         for (at, record) in run.records()? {
//!             println!("{at} {record:?}");
//!         }
//!     }
//!     Some(Told::Lagged { from, upto }) => println!("read {from} to {upto} from the files"),
//!     None => println!("the log was closed"),
//! }
//! # drop(table);
//! # instance.close().await
//! # });
//! ```

use std::rc::Rc;

use super::Lsn;
pub use super::run::LogRun;
use super::subscribers::Queue;
pub use super::subscribers::Told;
use super::writer::Log;
use crate::error::Result;

/// A subscription to a log; it ends when it is dropped. See the module text.
pub struct Subscription {
    log: Rc<Log>,
    queue: Rc<Queue>,
    start: Lsn,
}

impl Subscription {
    /// Begins with what becomes durable after this call. At most `bytes_max` bytes of log wait for
    /// the subscriber.
    pub fn begin(log: &Rc<Log>, bytes_max: usize) -> Subscription {
        Subscription {
            start: log.durable(),
            queue: log.subscribers().add(bytes_max),
            log: log.clone(),
        }
    }

    /// Everything before this was durable when it began.
    pub fn start(&self) -> Lsn {
        self.start
    }

    /// Bytes of log that wait for the subscriber.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// What comes next, waiting for it; `None` when the log was closed and everything has been
    /// told. It may be dropped while it waits: nothing is lost.
    ///
    /// # Errors
    /// What the log failed with, after everything that had become durable before.
    pub async fn next(&mut self) -> Result<Option<Told>> {
        loop {
            if let Some(told) = self.queue.pop(self.log.durable()) {
                return Ok(Some(told));
            }
            let told = self.log.subscribers().told();
            self.log.check()?;
            if self.log.is_stopped() {
                return Ok(None);
            }
            told.await;
        }
    }
}
