//! How long a run waits for storage that no longer answers. An I/O that does not return is reported
//! and waited for: it is a result. A phase with a time of its own goes on to its end, with whatever
//! still answers. What has none, and the sessions that finish after a phase, are given up some
//! minutes after the I/O began; then the run has failed. When the run is asked to stop, they are
//! given up sooner. Either way what was measured is returned, and databases that cannot be closed
//! are left for the next run to recover.

use std::future::Future;

use std::rc::Rc;

use plimsoll_io::{Clock, Disk, NANOS_PER_MILLISECOND, Nanos, Recorded, either};

use crate::RunError;
use crate::context::RunContext;

/// After a request to stop a single I/O is waited for this long at most, or as long as makes it
/// count as hung, if that is less.
const STOPPING_TIMEOUT_MS: u64 = 10_000;
const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;

/// Without a request to stop an I/O is waited for until it has hung this many times as long as
/// makes it count as hung...
const HOPELESS_TIMES: u64 = 5;
/// ... and at most this long.
const HOPELESS_MS_MAX: u64 = 300_000;

/// When waiting may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Until the run is asked to stop; and from this time on until an I/O has not returned for so
    /// long that it never will.
    HopefullyUntil(Nanos),
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
    let mut result = None;
    let working = async { result = Some(work.await) };
    either(working, stuck(run, hung_after_ms, waits)).await;
    result
}

/// Why something was given up.
pub fn why_given_up(run: &RunContext) -> RunError {
    if run.stop.was_asked() { RunError::Stuck } else { RunError::HungIo }
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
        let timeout_ms = match waits {
            Waits::HopefullyUntil(_) if !is_stopping => {
                timeout_ms + HOPELESS_MS_MAX.min(timeout_ms * HOPELESS_TIMES)
            }
            _ => timeout_ms,
        };
        let may_end = match waits {
            Waits::HopefullyUntil(time) => is_stopping || run.handle.now() >= time,
            Waits::WhileAnswered => true,
        };
        let timeout_ns = timeout_ms * NANOS_PER_MILLISECOND;
        if may_end && !run.disk.in_flight_longer_than(timeout_ns).is_empty() {
            return;
        }
    }
}
