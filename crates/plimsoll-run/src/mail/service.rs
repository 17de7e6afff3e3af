//! The pair of the family: a session is a user, and each of its tasks is carried out on a
//! connection of its own.
//!
//! A task that the server refuses, answers too late or cuts off is counted and ends nothing; the
//! user connects again with its next task. A server that nobody could use for the stated time ends
//! the run, and so does one that is too far behind the schedule.

use std::rc::Rc;

use plimsoll_clients::mail::{Imap, MailError};
use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use plimsoll_workload::Done;
use plimsoll_workload::mail::{MailDemand, MailOrder};

use super::gauges::Gauge;
use super::group::Group;
use super::metrics::{self, metrics_of};
use super::office::Office;
use super::tasks;
use super::user::{Desk, User};
use super::watch::count_due;
use crate::RunError;
use crate::load::{Book, Label, Pair, Service};
use crate::records::until_stop;

/// What a failed connection waits before its task is over, so that late users do not storm a server
/// that is down.
const AFTER_FAILURE_NS: Nanos = NANOS_PER_SECOND;
const REFUSED: u32 = 1;

fn count_failure(book: &mut Book, error: &MailError) {
    match error {
        MailError::No { .. } => book.count(metrics::REFUSED_COMMANDS, 1),
        MailError::Bad { .. } | MailError::Unsendable { .. } => {
            book.count(metrics::BAD_COMMANDS, 1)
        }
        MailError::TimedOut { .. } => {
            book.count(metrics::TIMED_OUT, 1);
            book.count(metrics::CONNECTION_LOST, 1);
        }
        _ => book.count(metrics::CONNECTION_LOST, 1),
    }
}

/// The two halves of a load of mail users.
pub struct MailPair {
    /// What they share.
    pub office: Rc<Office>,
}

impl Pair for MailPair {
    type Task = MailOrder;
    type Demand = MailDemand;
    type Service = MailService;

    fn weights(&self) -> Vec<f64> {
        vec![1.0]
    }

    fn description(&self) -> String {
        let Group { spec, habits, .. } = &*self.office.group;
        format!(
            "{} accounts of {}, {:.1} tasks a user and day of {} h",
            self.office.server.accounts.len(),
            self.office.server.address_of(0),
            habits.tasks_per_day(),
            spec.day_h
        )
    }

    fn session(&self, number: u32, operations: Random, _: Random, _: &[usize]) -> MailDemand {
        let day = self.office.group.days[number as usize].clone();
        MailDemand::new(u64::from(number), &operations, day)
    }

    fn arrivals(&self, operations: Random, _: Random) -> MailDemand {
        // Refused with the plan: users have schedules of their own.
        MailDemand::new(0, &operations, self.office.group.days[0].clone())
    }

    fn into_service(self) -> MailService {
        MailService { office: self.office }
    }
}

/// Carries tasks out.
pub struct MailService {
    office: Rc<Office>,
}

impl MailService {
    /// One task of a user at its desk, which is returned; it goes back into IDLE, where that is
    /// wanted.
    async fn perform(
        &self,
        order: &MailOrder,
        desk: Desk,
        book: &mut Book,
    ) -> (Desk, Result<(), MailError>) {
        let office = &self.office;
        let before = desk.imap.as_ref().map_or(0, Imap::unparsed);
        let mut user = User {
            desk,
            account: order.user,
            server: &office.server,
            habits: &office.group.habits,
            book,
            gauges: &office.group.gauges,
            bytes_read: 0,
            random: order.random.clone(),
        };
        let result = tasks::carry_out(&mut user, order.task).await;
        let bytes = user.bytes_read;
        let mut desk = user.desk;
        office.group.note_bytes(office.group.database_of(order.user), bytes);
        if let Some(imap) = &desk.imap {
            book.count(metrics::UNPARSED, imap.unparsed().saturating_sub(before));
        }
        if let Err(error) = &result {
            count_failure(book, error);
            if error.is_lost() {
                (desk.imap, desk.open) = (None, None);
            }
        }
        (desk, result)
    }

    async fn wait_for_news(&self, desk: &mut Desk) {
        let Some(imap) = desk.imap.as_mut() else {
            return;
        };
        if self.office.group.spec.idle && imap.is_open() && imap.offers("IDLE") {
            // If it fails, the connection is gone, and the next task makes another.
            let _ = imap.begin_idle().await;
        }
        imap.rest();
    }
}

impl Service for MailService {
    type Task = MailOrder;

    async fn execute(&self, order: &MailOrder, book: &mut Book) -> Result<Done, RunError> {
        let office = &self.office;
        if let Some(fatal) = office.group.fatal.borrow().clone() {
            return Err(fatal);
        }
        let begun = office.group.run.handle.now();
        let place = order.user as usize;
        // Whatever is done was planned, also when the watch has not looked since it came due.
        count_due(&office.group, place, begun);
        let desk = office.desks.borrow_mut()[place].take().unwrap_or_default();
        let open = office.group.gauges.enter(Gauge::Task);
        let work = until_stop(&office.group.run, self.perform(order, desk, book));
        let (desk, result) = work.await?;
        drop(open);
        let endpoints = &office.server.endpoints;
        book.at(endpoints.of(order.user), endpoints);
        let took_ns = office.group.run.handle.now() - begun;
        let is_lost = result.as_ref().is_err_and(MailError::is_lost);
        let is_down = is_lost && desk.imap.is_none() && took_ns < AFTER_FAILURE_NS;
        office.desks.borrow_mut()[place] = Some(desk);
        office.judge(order, &result)?;
        match result {
            Ok(()) => {
                if let Some(metrics) = metrics_of(order.task) {
                    book.note(metrics.service, took_ns);
                }
                Ok(Done::Done)
            }
            Err(_) => {
                if is_down {
                    office.group.run.handle.sleep(AFTER_FAILURE_NS).await;
                }
                Ok(Done::Refused(REFUSED))
            }
        }
    }

    fn label(&self, order: &MailOrder) -> Label {
        let server = &self.office.server;
        Label {
            instance: server.number,
            database: server.endpoints.of(order.user) as u32 + 1,
            operation: metrics_of(order.task)
                .map_or(metrics::OPERATIONS[0], |metrics| metrics.response),
        }
    }

    fn count(&self, order: &MailOrder, done: Done, count: &mut dyn FnMut(&'static str)) {
        if let (Done::Refused(_), Some(metrics)) = (done, metrics_of(order.task)) {
            count(metrics.refused);
        }
    }

    async fn rest(&self, order: &MailOrder) {
        let place = order.user as usize;
        let taken = self.office.desks.borrow_mut()[place].take();
        if let Some(mut desk) = taken {
            // A run that should stop does not wait for a server that hangs.
            let resting = self.wait_for_news(&mut desk);
            if until_stop(&self.office.group.run, resting).await.is_ok() {
                self.office.desks.borrow_mut()[place] = Some(desk);
            }
        }
    }
}
