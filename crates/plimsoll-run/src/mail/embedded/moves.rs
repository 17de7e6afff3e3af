//! Mailboxes that are moved between the two databases of a store at a steady rate, as long as a
//! load goes on: each in turn, one at a time, and back when all have been moved.
//!
//! A move is due when the rate says so. One that is late, because the one before it took longer, is
//! begun at once, so the rate is kept where the storage can. A move that the end of the load cuts
//! off keeps its copy, and the next load goes on with it.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use plimsoll_engine::error::EngineError;
use plimsoll_io::{NANOS_PER_SECOND, Nanos};
use plimsoll_measure::Histogram;
use plimsoll_stores::mail::{MailStore, Moved};

use crate::context::RunContext;
use crate::mail::group::{Group, Place};
use crate::mail::metrics;

/// How often the job looks whether its load is still there.
const LOOK_EVERY_NS: Nanos = NANOS_PER_SECOND / 4;
const NS_PER_H: f64 = 3_600.0 * NANOS_PER_SECOND as f64;

/// Moves mailboxes until the load or the store goes.
pub async fn move_mailboxes(
    run: RunContext,
    store: Rc<MailStore>,
    group: Weak<Group>,
    is_stopping: impl Fn() -> bool,
    per_h: f64,
) -> Result<(), EngineError> {
    let goes_on = || group.strong_count() > 0 && !is_stopping();
    let Some(place) = group.upgrade().map(|group| group.place) else { return Ok(()) };
    let interval_ns = NS_PER_H / per_h;
    let (begun, mailboxes) = (run.handle.now(), store.filling().mailboxes);
    // Where the runs before it came to.
    let mut turn = store.moved() as u32 % mailboxes;
    for number in 0u64.. {
        let due = begun + ((number as f64 + 0.5) * interval_ns) as Nanos;
        while goes_on() && run.handle.now() < due {
            run.handle.sleep(LOOK_EVERY_NS.min(due - run.handle.now())).await;
        }
        if !goes_on() {
            break;
        }
        note(&run, place, |run, key| run.recorder.count(key(metrics::MOVES_PLANNED), 1));
        let mailbox = store.begun_moves().first().copied().unwrap_or(turn);
        if move_one(&run, &store, place, mailbox, &goes_on).await? {
            turn = (turn + u32::from(mailbox == turn)) % mailboxes;
            let took = run.handle.now() - due;
            note(&run, place, |run, key| run.recorder.record(key(metrics::MAILBOX_MOVED), took));
        }
    }
    Ok(())
}

/// Moves one mailbox; whether it lives at its new place. What others were in the way of is tried
/// again until it is done or the load goes.
async fn move_one(
    run: &RunContext,
    store: &MailStore,
    place: Place,
    mailbox: u32,
    goes_on: &dyn Fn() -> bool,
) -> Result<bool, EngineError> {
    while goes_on() {
        let counted = Cell::new(Moved::default());
        let count = |moved: &Moved| {
            let before = counted.replace(*moved);
            note(run, place, |run, key| {
                for (metric, bytes) in [
                    (metrics::MOVES_READ, moved.read_bytes - before.read_bytes),
                    (metrics::MOVES_WRITTEN, moved.written_bytes - before.written_bytes),
                    (metrics::MOVES_LOG, moved.log_bytes - before.log_bytes),
                ] {
                    run.recorder.merge(key(metric), &Histogram::new(), bytes);
                }
            });
            goes_on()
        };
        match store.move_mailbox(mailbox, &count).await {
            Ok(moved) => {
                count(&moved);
                if moved.is_over {
                    note(run, place, |run, key| {
                        run.recorder.record(key(metrics::MAILBOX_CLOSED), moved.closed_ns);
                    });
                    return Ok(true);
                }
            }
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
        run.handle.sleep(LOOK_EVERY_NS).await;
    }
    Ok(false)
}

/// Counts something of the load.
fn note(
    run: &RunContext,
    place: Place,
    work: impl FnOnce(&RunContext, &dyn Fn(&str) -> crate::recorder::Key),
) {
    let key = |metric: &str| run.recorder.key(place.number, 1, metric).of_workload(place.workload);
    work(run, &key);
}
