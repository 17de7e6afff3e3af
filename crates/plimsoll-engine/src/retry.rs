//! A transaction that is begun again when another was first: rolled back, a pause, and once more,
//! until it succeeds or its time is over.

use plimsoll_io::Random;

use crate::error::Result;
use crate::instance::Instance;
use crate::transaction::{Commit, Transaction};

/// How long a transaction is tried.
///
/// ```
/// # mod shared { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/documented/mod.rs")); }
/// # use shared::*;
/// # on_a_disk(async |files, handle| {
/// # let instance = create_and_open(&files, &handle).await?;
/// use plimsoll_engine::Commit;
/// use plimsoll_engine::retry::Retry;
/// # use plimsoll_io::Random;
///
/// # let mut random = Random::from_seed(3);
/// let table = instance.open_table(1, "Messages").await?;
/// let id = table.column("id")?;
/// // For a second from now, on the clock of the instance.
/// let retry = Retry::until(handle.now() + 1_000_000_000);
/// let inserted = instance.transact(Commit::Durable, retry, &mut random, async |transaction| {
///     table.insert(transaction, &[(id, Some(&7i32.to_le_bytes()))]).await
/// });
/// let key = inserted.await?;
/// # assert_eq!(key, table.key(&[Some(&7i32.to_le_bytes())])?);
/// # drop(table);
/// # instance.close().await
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// When it is not begun again any more, on the clock of the instance.
    pub deadline_ns: u64,
    /// The first pause at most. Each pause is drawn from half of its length to all of it, and the
    /// next is twice as long.
    pub pause_ns: u64,
    /// No pause is longer.
    pub pause_ns_max: u64,
}

impl Retry {
    /// Until a moment on the clock of the instance, such as `handle.now()` and a second, with one
    /// millisecond to a hundred between attempts.
    pub fn until(deadline_ns: u64) -> Retry {
        Retry { deadline_ns, pause_ns: 1_000_000, pause_ns_max: 100_000_000 }
    }
}

impl Instance {
    /// Runs `work` in a transaction and commits it. If another transaction was first, or the
    /// version store is full, all of it is rolled back and done again; so `work` must do nothing
    /// that cannot be done twice. `random` draws the pauses, so that sessions that met do not meet
    /// again.
    ///
    /// # Errors
    /// What `work` or the commit fails with; [`crate::error::EngineError::WriteConflict`] and
    /// [`crate::error::EngineError::VersionStoreFull`] only when the next attempt would begin after
    /// the deadline.
    pub async fn transact<T>(
        &self,
        how: Commit,
        retry: Retry,
        random: &mut Random,
        work: impl AsyncFn(&Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut pause_ns = retry.pause_ns.max(1);
        loop {
            let transaction = self.begin();
            let error = match work(&transaction).await {
                Ok(value) => return transaction.commit(how).await.map(|()| value),
                Err(error) => error,
            };
            transaction.rollback().await?;
            let drawn_ns = pause_ns / 2 + random.below(pause_ns / 2 + 1);
            let handle = &self.store().handle;
            if !error.is_transient() || handle.now() + drawn_ns > retry.deadline_ns {
                return Err(error);
            }
            handle.sleep(drawn_ns).await;
            pause_ns = (2 * pause_ns).min(retry.pause_ns_max.max(1));
        }
    }
}
