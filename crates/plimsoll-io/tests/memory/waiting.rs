//! What a condition keeps of those who wait for it.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use plimsoll_io::Notify;

/// Tells in which order tasks were woken.
struct Named {
    name: usize,
    woken: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Named {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push(self.name);
    }
}

fn named(count: usize) -> (Vec<Arc<Named>>, Arc<Mutex<Vec<usize>>>) {
    let woken = Arc::default();
    let task = |name| Arc::new(Named { name, woken: Arc::clone(&woken) });
    ((0..count).map(task).collect(), woken)
}

/// A task that begins to wait and then gives up, as one does whose sleep was over first.
fn waits_and_gives_up(notify: &Notify, task: &Arc<Named>) {
    let waker = Waker::from(task.clone());
    let poll = pin!(notify.notified()).poll(&mut Context::from_waker(&waker));
    assert_eq!(poll, Poll::Pending);
}

#[test]
fn a_wait_that_was_given_up_leaves_nothing() {
    let notify = Notify::new();
    let (tasks, _) = named(300);
    for _ in 0..1_000 {
        for task in &tasks {
            waits_and_gives_up(&notify, task);
        }
    }
    let kept: usize = tasks.iter().map(|task| Arc::strong_count(task) - 1).sum();
    assert!(kept <= 2 * tasks.len(), "{kept} wakers of {} tasks are kept", tasks.len());
}

#[test]
fn tasks_are_woken_in_the_order_in_which_they_first_came() {
    let notify = Notify::new();
    let (tasks, woken) = named(100);
    for task in tasks.iter().chain(tasks.iter().rev()).chain(&tasks) {
        waits_and_gives_up(&notify, task);
    }
    notify.notify_all();
    let mut order = woken.lock().unwrap().clone();
    let mut seen = std::collections::HashSet::new();
    order.retain(|name| seen.insert(*name));
    assert_eq!(order, (0..100).collect::<Vec<_>>());
    assert!(
        tasks.iter().all(|task| Arc::strong_count(task) == 1),
        "wakers are kept after all were woken"
    );
}
