//! What the tasks of a load, the watch over it and its probes share: users, their schedules, and
//! whether the server is still there.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_clients::mail::MailError;
use plimsoll_io::{NANOS_PER_SECOND, Nanos};
use plimsoll_workload::mail::MailOrder;

use super::group::Group;
use super::server::{MailServer, nanos};
use super::user::Desk;
use crate::RunError;
use crate::events::Level;

/// Failures in a row without which a server is not given up.
const FAILURES_MIN: u64 = 3;

/// See the module text.
pub struct Office {
    /// Who works.
    pub group: Rc<Group>,
    /// Where they work.
    pub server: Rc<MailServer>,
    /// What each user keeps; nothing while it is at work.
    pub desks: RefCell<Vec<Option<Desk>>>,
    /// Tasks that failed since the last one that did not.
    failures: Cell<u64>,
    last_success: Cell<Nanos>,
}

impl Office {
    /// A load that begins now.
    pub fn new(group: Rc<Group>, server: Rc<MailServer>) -> Office {
        let users = group.days.len();
        Office {
            desks: RefCell::new((0..users).map(|_| Some(Desk::default())).collect()),
            failures: Cell::new(0),
            last_success: Cell::new(group.run.handle.now()),
            group,
            server,
        }
    }

    /// Takes note of how a task ended.
    ///
    /// # Errors
    /// When the server is lost.
    pub fn judge(&self, order: &MailOrder, result: &Result<(), MailError>) -> Result<(), RunError> {
        let now = self.group.run.handle.now();
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
            self.group.run.report(Level::Warning, "connection_lost", text);
        }
        let lost_after_ns = nanos(self.server.spec.lost_after_s);
        if self.failures.get() >= FAILURES_MIN && silent_ns >= lost_after_ns {
            let text = format!(
                "no user could finish a task for {:.0} s, last because {error}; see whether the \
                 server runs",
                silent_ns as f64 / NANOS_PER_SECOND as f64
            );
            self.group.run.report(Level::Error, "service_lost", text.clone());
            return Err(RunError::Service(text));
        }
        Ok(())
    }
}
