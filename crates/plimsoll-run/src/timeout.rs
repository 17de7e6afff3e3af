//! How long a run waits for storage that no longer answers. An I/O that does not return is reported and waited for: it is a result.
//! When the run is asked to stop, what was measured is returned, and databases that cannot be closed are left for the next run to
//! recover.
//!
//! In virtual time nothing has to be given up: there the executor notices that nothing can happen any more.

use std::future::Future;

use std::rc::Rc;

use plimsoll_io::{Clock, Disk, NANOS_PER_MILLISECOND, Nanos, Recorded, either};

use crate::context::RunContext;

/// After a request to stop a single I/O is waited for this long at most, or as long as makes it count as hung, if that is less.
const STOPPING_TIMEOUT_MS: u64 = 10_000;
const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;

/// When waiting may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Until the run is asked to stop.
    UntilStopped,
    /// Only as long as the storage answers: the run is over already.
    WhileAnswered,
}

/// Does `work`; `None` when it was given up, because an I/O does not return.
pub async fn unless_stuck<T>(
    run: &RunContext,
    hung_after_ms: u64,
    waits: Waits,
    work: impl Future<Output = T>,
) -> Option<T> {
    if run.clock().is_virtual() {
        return Some(work.await);
    }
    let mut result = None;
    let working = async { result = Some(work.await) };
    either(working, stuck(run, hung_after_ms, waits)).await;
    result
}

/// Whether an I/O is under way that a stopping run does not wait for.
pub fn is_stuck(disk: &Recorded<Rc<dyn Disk>>, clock: &Clock, hung_after_ms: u64) -> bool {
    let timeout_ns = hung_after_ms.min(STOPPING_TIMEOUT_MS) * NANOS_PER_MILLISECOND;
    !clock.is_virtual() && !disk.in_flight_longer_than(timeout_ns).is_empty()
}

async fn stuck(run: &RunContext, hung_after_ms: u64, waits: Waits) {
    loop {
        run.handle.sleep(LOOK_EVERY_NS).await;
        let is_stopping = run.stop.is_wanted();
        let timeout_ms = match is_stopping {
            true => hung_after_ms.min(STOPPING_TIMEOUT_MS),
            false => hung_after_ms,
        };
        let may_end = is_stopping || waits == Waits::WhileAnswered;
        let timeout_ns = timeout_ms * NANOS_PER_MILLISECOND;
        if may_end && !run.disk.in_flight_longer_than(timeout_ns).is_empty() {
            return;
        }
    }
}
