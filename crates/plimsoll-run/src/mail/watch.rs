//! The watch over a load: counts what has become due, shows what is under way, and ends a run whose
//! server is too far behind.
//!
//! It looks four times a second, so counts of a phase are exact to a quarter of a second. A task
//! that begins was counted before.

use std::rc::{Rc, Weak};

use plimsoll_io::{NANOS_PER_SECOND, Nanos};
use plimsoll_workload::mail::MailTask;

use super::gauges::Gauge;
use super::group::Group;
use super::metrics::{self, metrics_of};
use crate::RunError;
use crate::recorder::Key;

const LOOK_EVERY_NS: Nanos = NANOS_PER_SECOND / 4;

/// Watches until the load is gone.
pub async fn watch(group: Weak<Group>) {
    loop {
        let Some(handle) = group.upgrade().map(|group| group.run.handle.clone()) else {
            return;
        };
        handle.sleep(LOOK_EVERY_NS).await;
        let Some(group) = group.upgrade() else {
            return;
        };
        look(&group);
    }
}

/// Counts once.
pub fn look(group: &Rc<Group>) {
    let now = group.run.handle.now();
    let mut waiting = 0;
    for user in 0..group.days.len() {
        waiting += count_due(group, user, now) as u64;
    }
    let open = group.gauges.count(Gauge::Task);
    show(group, waiting);
    let limit = group.spec.unfinished_max_per_user * group.days.len() as f64;
    // A group of one user may have one task under way and one waiting.
    if (open + waiting) as f64 > limit.max(2.0) && group.fatal.borrow().is_none() {
        let text = format!(
            "too much load: {} tasks are unfinished, more than {limit:.0} ({} a user); take fewer \
             users, a lighter profile or a longer day",
            open + waiting,
            group.spec.unfinished_max_per_user
        );
        *group.fatal.borrow_mut() = Some(RunError::TooMuchLoad(text));
    }
}

/// Counts what has become due for a user; how many of its tasks wait.
pub fn count_due(group: &Group, user: usize, now: Nanos) -> usize {
    let recorder = &group.run.recorder;
    let endpoint = group.database_of(user as u64);
    let mut came_due = |task: MailTask| {
        if let Some(metrics) = metrics_of(task) {
            let key = recorder.key(group.place.number, endpoint, metrics.planned);
            recorder.count(key.of_workload(group.place.workload), 1);
        }
    };
    let mut day = group.days[user].borrow_mut();
    day.advance(now, &mut came_due);
    day.waiting()
}

/// Shows what is under way.
pub fn show(group: &Group, waiting: u64) {
    let recorder = &group.run.recorder;
    let queued = match &group.queued {
        Some(queued) => queued(),
        None => group.gauges.count(Gauge::Queued),
    };
    for (metric, value) in [
        (metrics::OPEN, group.gauges.count(Gauge::Task)),
        (metrics::WAITING, waiting),
        (metrics::QUEUED, queued),
        (metrics::COMMANDS_OPEN, group.gauges.count(Gauge::Command)),
    ] {
        let key = Key { workload: group.place.workload, ..recorder.key(0, 0, metric) };
        recorder.set_level(key, value as f64);
    }
}
