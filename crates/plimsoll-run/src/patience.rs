//! Where waiting for a storage that no longer answers ends. An I/O that does not return is reported and waited for: it is a result. But whoever asks the
//! run to stop gets what was measured, and databases that cannot be closed are left for the next run to recover.
//!
//! In virtual time nothing has to be given up: there the executor notices that nothing can happen any more.

use std::future::Future;

use std::rc::Rc;

use plimsoll_io::{Clock, Disk, NANOS_PER_MILLISECOND, Nanos, Recorded, either};

use crate::setting::Setting;

/// Who asks a run to stop waits for a single I/O for this long at most, or as long as makes it count as hung, if that is less.
const STOPPING_PATIENCE_MS: u64 = 10_000;
const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;

/// When waiting may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Until somebody asks the run to stop.
    UntilStopped,
    /// Only as long as the storage answers: the run is over already.
    WhileAnswered,
}

/// Does `work`; `None` when it was given up, because an I/O does not return.
pub async fn unless_stuck<T>(
    setting: &Setting,
    hung_after_ms: u64,
    waits: Waits,
    work: impl Future<Output = T>,
) -> Option<T> {
    if setting.clock().is_virtual() {
        return Some(work.await);
    }
    let mut result = None;
    let working = async { result = Some(work.await) };
    either(working, stuck(setting, hung_after_ms, waits)).await;
    result
}

/// Whether an I/O is under way that whoever stops a run does not wait for.
pub fn is_stuck(disk: &Recorded<Rc<dyn Disk>>, clock: &Clock, hung_after_ms: u64) -> bool {
    let patience_ns = hung_after_ms.min(STOPPING_PATIENCE_MS) * NANOS_PER_MILLISECOND;
    !clock.is_virtual() && !disk.in_flight_longer_than(patience_ns).is_empty()
}

async fn stuck(setting: &Setting, hung_after_ms: u64, waits: Waits) {
    loop {
        setting.handle.sleep(LOOK_EVERY_NS).await;
        let is_stopping = setting.stop.is_wanted();
        let patience_ms = match is_stopping {
            true => hung_after_ms.min(STOPPING_PATIENCE_MS),
            false => hung_after_ms,
        };
        let may_end = is_stopping || waits == Waits::WhileAnswered;
        let patience_ns = patience_ms * NANOS_PER_MILLISECOND;
        if may_end && !setting.disk.in_flight_longer_than(patience_ns).is_empty() {
            return;
        }
    }
}
