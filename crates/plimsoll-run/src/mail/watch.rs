//! The watch over a load: counts what has become due, shows what is under way, and ends a run whose server is too far behind.
//!
//! It looks four times a second, so counts of a phase are exact to a quarter of a second. A task that begins was counted before.

use std::rc::{Rc, Weak};

use plimsoll_io::{NANOS_PER_SECOND, Nanos};
use plimsoll_workload::mail::MailTask;

use super::gauges::Gauge;
use super::metrics::{self, metrics_of};
use super::office::Office;
use crate::RunError;
use crate::recorder::Key;

const LOOK_EVERY_NS: Nanos = NANOS_PER_SECOND / 4;

/// Watches until the load is gone.
pub async fn watch(office: Weak<Office>) {
    loop {
        let Some(handle) = office.upgrade().map(|office| office.run.handle.clone()) else {
            return;
        };
        handle.sleep(LOOK_EVERY_NS).await;
        let Some(office) = office.upgrade() else { return };
        look(&office);
    }
}

/// Counts once.
pub fn look(office: &Rc<Office>) {
    let now = office.run.handle.now();
    let mut waiting = 0;
    for user in 0..office.days.len() {
        waiting += count_due(office, user, now) as u64;
    }
    let open = office.gauges.count(Gauge::Task);
    show(office, waiting);
    let limit = office.spec.unfinished_max_per_user * office.days.len() as f64;
    // A group of one user may have one task under way and one waiting.
    if (open + waiting) as f64 > limit.max(2.0) && office.fatal.borrow().is_none() {
        let text = format!(
            "too much load: {} tasks are unfinished, more than {limit:.0} ({} a user); take fewer users, a lighter profile or a longer day",
            open + waiting,
            office.spec.unfinished_max_per_user
        );
        *office.fatal.borrow_mut() = Some(RunError::TooMuchLoad(text));
    }
}

/// Counts what has become due for a user; how many of its tasks wait.
pub fn count_due(office: &Office, user: usize, now: Nanos) -> usize {
    let recorder = &office.run.recorder;
    let endpoint = office.server.endpoint_of(user as u64) as u32 + 1;
    let mut came_due = |task: MailTask| {
        if let Some(metrics) = metrics_of(task) {
            let key = recorder.key(office.server.number, endpoint, metrics.planned);
            recorder.count(key.of_workload(office.workload), 1);
        }
    };
    let mut day = office.days[user].borrow_mut();
    day.advance(now, &mut came_due);
    day.waiting()
}

/// Shows what is under way.
pub fn show(office: &Office, waiting: u64) {
    let recorder = &office.run.recorder;
    for (metric, value) in [
        (metrics::OPEN, office.gauges.count(Gauge::Task)),
        (metrics::WAITING, waiting),
        (metrics::QUEUED, office.gauges.count(Gauge::Queued)),
        (metrics::COMMANDS_OPEN, office.gauges.count(Gauge::Command)),
    ] {
        let key = Key {
            workload: office.workload,
            ..recorder.key(0, 0, metric)
        };
        recorder.set_level(key, value as f64);
    }
}
