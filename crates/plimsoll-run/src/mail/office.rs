//! What the tasks of a load, the watch over it and its probes share: users, their schedules, and whether the server is still there.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_clients::mail::MailError;
use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use plimsoll_measure::Histogram;
use plimsoll_workload::mail::{Day, MailHabits, MailOrder};

use super::gauges::Gauges;
use super::metrics;
use super::server::{MailServer, nanos};
use super::spec::MailSpec;
use super::user::Desk;
use crate::RunError;
use crate::context::RunContext;
use crate::events::Level;

/// Failures in a row without which a server is not given up.
const FAILURES_MIN: u64 = 3;

/// See the module text.
pub struct Office {
    /// Where it runs.
    pub run: RunContext,
    /// Workload of the plan, from 1.
    pub workload: u32,
    /// What the plan says of it.
    pub spec: MailSpec,
    /// What users do.
    pub habits: Rc<MailHabits>,
    /// Where they work.
    pub server: Rc<MailServer>,
    /// The schedule of each user.
    pub days: Vec<Rc<RefCell<Day>>>,
    /// What is under way.
    pub gauges: Rc<Gauges>,
    /// What ends the run.
    pub fatal: RefCell<Option<RunError>>,
    /// What each user keeps; nothing while it is at work.
    pub desks: RefCell<Vec<Option<Desk>>>,
    /// Tasks that failed since the last one that did not.
    failures: Cell<u64>,
    last_success: Cell<Nanos>,
}

impl Office {
    /// A load of so many users that begins now.
    pub fn new(
        run: &RunContext,
        workload: u32,
        spec: MailSpec,
        habits: MailHabits,
        server: Rc<MailServer>,
        users: u64,
        random: &Random,
    ) -> Office {
        let habits = Rc::new(habits);
        let now = run.handle.now();
        let group = random.child("days");
        let days = (0..users).map(|user| {
            let day = Day::new(habits.clone(), &group, user, users, now);
            Rc::new(RefCell::new(day))
        });
        Office {
            days: days.collect(),
            desks: RefCell::new((0..users).map(|_| Some(Desk::default())).collect()),
            run: run.clone(),
            workload,
            spec,
            habits,
            server,
            gauges: Rc::default(),
            fatal: RefCell::default(),
            failures: Cell::new(0),
            last_success: Cell::new(now),
        }
    }

    /// Takes note of how a task ended.
    ///
    /// # Errors
    /// When the server is lost.
    pub fn judge(&self, order: &MailOrder, result: &Result<(), MailError>) -> Result<(), RunError> {
        let now = self.run.handle.now();
        let Err(error) = result else {
            self.failures.set(0);
            self.last_success.set(now);
            return Ok(());
        };
        if !error.is_lost() {
            return Ok(());
        }
        self.failures.set(self.failures.get() + 1);
        let silent_ns = now - self.last_success.get();
        if self.failures.get() == 1 {
            let text = format!("user {}, {}: {error}", order.user, order.task.name());
            self.run.report(Level::Warning, "connection_lost", text);
        }
        let lost_after_ns = nanos(self.server.spec.lost_after_s);
        if self.failures.get() >= FAILURES_MIN && silent_ns >= lost_after_ns {
            let text = format!(
                "no user could finish a task for {:.0} s, last because {error}; see whether the server runs",
                silent_ns as f64 / NANOS_PER_SECOND as f64
            );
            self.run.report(Level::Error, "service_lost", text.clone());
            return Err(RunError::Service(text));
        }
        Ok(())
    }

    /// Adds bytes that were read to the contents of messages.
    pub fn note_bytes(&self, endpoint: usize, bytes: u64) {
        let recorder = &self.run.recorder;
        let key = recorder.key(self.server.number, endpoint as u32 + 1, metrics::BODY);
        recorder.merge(key.of_workload(self.workload), &Histogram::new(), bytes);
    }
}
