//! What all tasks of a running load share: the service, whether the load is still wanted, and where
//! endings are counted.

use std::cell::{Cell, RefCell};
use std::future::Future;

use plimsoll_clients::endpoints::{Endpoints, Reached};
use plimsoll_io::{Handle, Nanos, Notify};
use plimsoll_workload::Done;

use crate::RunError;
use crate::context::RunContext;
use crate::recorder::Key;

/// Where a task works and what it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Position of the instance in the plan.
    pub instance: u32,
    /// Database of the instance, counted from 1; 0 for the instance as a whole.
    pub database: u32,
    /// One of the family's operations.
    pub operation: &'static str,
}

/// Where a service notes the inner steps of a task.
#[derive(Debug, Default)]
pub struct Book {
    steps: Vec<(&'static str, Nanos)>,
    counts: Vec<(&'static str, u64)>,
    database: Option<u32>,
    reached: Vec<(usize, Reached)>,
}

impl Book {
    /// Notes a step by its metric and how long it took.
    pub fn note(&mut self, metric: &'static str, took_ns: Nanos) {
        self.steps.push((metric, took_ns));
    }

    /// Counts so many events of a metric.
    pub fn count(&mut self, metric: &'static str, count: u64) {
        if count > 0 {
            self.counts.push((metric, count));
        }
    }

    /// The endpoint that the task turned out to be carried out at, and what is new of all of them.
    pub fn at(&mut self, endpoint: usize, endpoints: &Endpoints) {
        self.database = Some(endpoint as u32 + 1);
        self.reached = endpoints.news();
    }
}

/// What carries tasks out: the other half of a workload family.
pub trait Service {
    /// What it carries out.
    type Task;

    /// Carries a task out. A service that says no is an ending, not an error.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn execute(
        &self,
        task: &Self::Task,
        book: &mut Book,
    ) -> impl Future<Output = Result<Done, RunError>>;

    /// What is done behind a task that counts for nothing, such as waiting for news.
    fn rest(&self, _task: &Self::Task) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Where a task works and what it is called.
    fn label(&self, task: &Self::Task) -> Label;

    /// Names the metrics that count a task that ended like this, besides its operation.
    fn count(&self, task: &Self::Task, done: Done, count: &mut dyn FnMut(&'static str));
}

/// See the module text.
pub struct Shared<S> {
    workload: u32,
    run: RunContext,
    service: S,
    wanted: Cell<bool>,
    stopping: Notify,
    failed: RefCell<Option<RunError>>,
}

impl<S> Shared<S> {
    /// A load that is wanted and in which nothing has happened.
    pub fn new(run: &RunContext, workload: u32, service: S) -> Self {
        Shared {
            workload,
            run: run.clone(),
            service,
            wanted: Cell::new(true),
            stopping: Notify::new(),
            failed: RefCell::new(None),
        }
    }

    /// Tasks, timers, time.
    pub fn handle(&self) -> &Handle {
        &self.run.handle
    }

    /// Whether the load is still wanted.
    pub fn wanted(&self) -> bool {
        self.wanted.get()
    }

    /// Wants the load no more.
    pub fn stop(&self) {
        self.wanted.set(false);
        self.stopping.notify_all();
    }

    /// Waits until the load is wanted no more.
    pub fn stopped(&self) -> impl Future<Output = ()> + '_ {
        self.stopping.notified()
    }

    /// Notes an error that ends the run.
    pub fn fail(&self, error: &RunError) {
        self.stop();
        self.failed.borrow_mut().get_or_insert_with(|| error.clone());
    }

    /// The first error there was.
    pub fn failure(&self) -> Option<RunError> {
        self.failed.borrow().clone()
    }

    /// Records a time of the load as a whole.
    pub fn record(&self, metric: &str, latency_ns: Nanos) {
        self.run.recorder.record(self.key(metric), latency_ns);
    }

    /// Sets a level of the load as a whole.
    pub fn set_level(&self, metric: &str, value: f64) {
        self.run.recorder.set_level(self.key(metric), value);
    }

    fn key(&self, metric: &str) -> Key {
        Key::new(0, 0, metric).of_workload(self.workload)
    }
}

impl<S: Service> Shared<S> {
    /// Carries a task out and records how it ended; when that was, too.
    ///
    /// # Errors
    /// Whatever ends the run.
    pub async fn carry_out(
        &self,
        task: &S::Task,
        intended: Nanos,
    ) -> Result<(Done, Nanos), RunError> {
        let handle = self.handle();
        let (nodes, label) = (&self.run.nodes, self.service.label(task));
        nodes.admit(handle, label.instance).await?;
        let mut book = Book::default();
        let executing = self.service.execute(task, &mut book);
        let Some(done) = nodes.attempt(label.instance, executing).await else {
            nodes.lost(label.instance);
            return Ok((Done::Lost, handle.now()));
        };
        let (done, finished) = (done?, handle.now());
        self.note(task, label, done, finished.saturating_sub(intended), &book);
        nodes.attempt(label.instance, self.service.rest(task)).await;
        Ok((done, finished))
    }

    fn note(&self, task: &S::Task, label: Label, done: Done, response_ns: Nanos, book: &Book) {
        let recorder = &self.run.recorder;
        let key_at = |database: u32, metric: &str| {
            recorder.key(label.instance, database, metric).of_workload(self.workload)
        };
        let key = |metric: &str| key_at(book.database.unwrap_or(label.database), metric);
        if matches!(done, Done::Done | Done::RolledBack) {
            recorder.record(key(label.operation), response_ns);
            self.run.nodes.served(label.instance, self.handle().now());
        }
        for (metric, took_ns) in &book.steps {
            recorder.record(key(metric), *took_ns);
        }
        for (metric, count) in &book.counts {
            recorder.count(key(metric), *count);
        }
        for (endpoint, reached) in &book.reached {
            let key = |metric: &str| key_at(*endpoint as u32 + 1, metric);
            recorder.set_level(key("endpoint_sessions"), reached.open as f64);
            recorder.count(key("endpoint_connections"), reached.connections);
            recorder.count(key("endpoint_refused"), reached.refused);
            recorder.count(key("endpoint_moved"), reached.moved);
        }
        self.service.count(task, done, &mut |metric| recorder.count(key(metric), 1));
    }
}
