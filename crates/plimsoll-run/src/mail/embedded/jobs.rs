//! What a mail store does besides what users ask for: the mover delivers what was accepted, the
//! indexer reads what was delivered once more, and mailboxes are moved as long as a load wants it.
//! All go on until the store is closed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_io::{JoinHandle, NANOS_PER_SECOND, Nanos, Notify, either};
use plimsoll_stores::mail::MailStore;

use super::moves::move_mailboxes;
use crate::RunError;
use crate::context::RunContext;
use crate::mail::group::Group;
use crate::mail::metrics;

/// A message is indexed so long after it was delivered at most.
const INDEX_LAG_NS: Nanos = 5 * NANOS_PER_SECOND;
/// Messages that are indexed in one go.
const INDEXED_TOGETHER: usize = 64;

/// What jobs and loads share.
#[derive(Default)]
pub struct Shared {
    is_stopping: Cell<bool>,
    stopping: Notify,
    /// The load whose deliveries are timed, counted from 1.
    workload: Cell<u32>,
    failed: RefCell<Option<RunError>>,
}

/// See the module text.
pub struct MailJobs {
    shared: Rc<Shared>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
}

impl MailJobs {
    /// Starts them.
    pub fn start(run: &RunContext, number: u32, store: &Rc<MailStore>) -> MailJobs {
        let shared = Rc::new(Shared::default());
        let mut tasks = Vec::new();
        let mover = move_mail(run.clone(), number, store.clone(), shared.clone());
        tasks.push(run.handle.spawn(noted(shared.clone(), mover)));
        if store.filling().is_indexed {
            let indexer = index(run.clone(), store.clone(), shared.clone());
            tasks.push(run.handle.spawn(noted(shared.clone(), indexer)));
        }
        MailJobs { shared, tasks: RefCell::new(tasks) }
    }

    /// Works for a load from now on: times deliveries, and moves mailboxes where it says so.
    pub fn work_for(&self, group: &Rc<Group>, store: &Rc<MailStore>) {
        self.shared.workload.set(group.place.workload);
        if let Some(per_h) = group.spec.mailbox_moves_per_h {
            let (run, shared) = (group.run.clone(), self.shared.clone());
            let is_stopping = move || shared.is_stopping.get();
            let weak = Rc::downgrade(group);
            let moves = move_mailboxes(run, store.clone(), weak, is_stopping, per_h);
            let task = group.run.handle.spawn(noted(self.shared.clone(), moves));
            self.tasks.borrow_mut().push(task);
        }
    }

    /// The error that ended a job, if one did.
    pub fn failure(&self) -> Option<RunError> {
        self.shared.failed.borrow().clone()
    }

    /// Ends them after what they are doing; what still waits stays in the queue.
    ///
    /// # Errors
    /// The first error one of them met.
    pub async fn stop(self) -> Result<(), RunError> {
        self.shared.is_stopping.set(true);
        self.shared.stopping.notify_all();
        for task in self.tasks.into_inner() {
            task.await;
        }
        self.shared.failed.take().map_or(Ok(()), Err)
    }
}

async fn noted(shared: Rc<Shared>, job: impl Future<Output = Result<(), EngineError>>) {
    if let Err(error) = job.await {
        shared.failed.borrow_mut().get_or_insert(error.into());
    }
}

async fn move_mail(
    run: RunContext,
    number: u32,
    store: Rc<MailStore>,
    shared: Rc<Shared>,
) -> Result<(), EngineError> {
    let told = |took_ns: Nanos| {
        if shared.workload.get() > 0 {
            let key = run.recorder.key(number, 1, metrics::DELIVERY);
            run.recorder.record(key.of_workload(shared.workload.get()), took_ns);
        }
    };
    while !shared.is_stopping.get() {
        if store.waiting() == 0 {
            either(store.news(), shared.stopping.notified()).await;
            continue;
        }
        store.deliver_next(&told).await?;
    }
    Ok(())
}

async fn index(
    run: RunContext,
    store: Rc<MailStore>,
    shared: Rc<Shared>,
) -> Result<(), EngineError> {
    while !shared.is_stopping.get() {
        either(run.handle.sleep(INDEX_LAG_NS), shared.stopping.notified()).await;
        while !shared.is_stopping.get() && store.index_delivered(INDEXED_TOGETHER).await? > 0 {}
    }
    Ok(())
}
