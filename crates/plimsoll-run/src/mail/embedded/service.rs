//! The pair of a load on a mail store: a session is a user, and each of its tasks is some steps on
//! the store.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use plimsoll_io::Random;
use plimsoll_stores::mail::MailStore;
use plimsoll_workload::Done;
use plimsoll_workload::mail::{MailDemand, MailOrder};

use super::instance::EmbeddedMail;
use super::tasks::{Desk, User, carry_out, read_behind};
use crate::RunError;
use crate::backend::Seat;
use crate::load::{Book, Label, Pair, Service};
use crate::mail::gauges::Gauge;
use crate::mail::group::Group;
use crate::mail::metrics::{self, metrics_of};
use crate::mail::watch::count_due;
use crate::records::until_stop;

const REFUSED: u32 = 1;

/// The two halves of a load on a mail store.
pub struct StorePair {
    /// Who works.
    pub group: Rc<Group>,
    /// Where.
    pub instance: Rc<EmbeddedMail>,
    /// Where that is to be found later on.
    pub seat: Seat,
}

impl Pair for StorePair {
    type Task = MailOrder;
    type Demand = MailDemand;
    type Service = StoreService;

    fn weights(&self) -> Vec<f64> {
        vec![1.0]
    }

    fn description(&self) -> String {
        let Group { spec, habits, .. } = &*self.group;
        let filling = self.instance.store().filling();
        format!(
            "{} mailboxes of {} messages on the engine, {:.1} tasks a user and day of {} h",
            filling.mailboxes,
            filling.messages(),
            habits.tasks_per_day(),
            spec.day_h
        )
    }

    fn session(&self, number: u32, operations: Random, _: Random, _: &[usize]) -> MailDemand {
        let day = self.group.days[number as usize].clone();
        MailDemand::new(u64::from(number), &operations, day)
    }

    fn arrivals(&self, operations: Random, _: Random) -> MailDemand {
        // Refused with the plan: users have schedules of their own.
        MailDemand::new(0, &operations, self.group.days[0].clone())
    }

    fn into_service(self) -> StoreService {
        let users = self.group.days.len();
        StoreService {
            group: self.group,
            seat: self.seat,
            life: RefCell::new(Rc::downgrade(self.instance.store())),
            desks: (0..users).map(|_| RefCell::default()).collect(),
            met_behind: RefCell::default(),
        }
    }
}

/// Carries tasks out.
pub struct StoreService {
    group: Rc<Group>,
    seat: Seat,
    /// The life of the store that users know.
    life: RefCell<Weak<MailStore>>,
    desks: Vec<RefCell<Desk>>,
    /// What reading behind a task has met, until the next one can tell.
    met_behind: RefCell<Option<RunError>>,
}

impl StoreService {
    fn check(&self, instance: &EmbeddedMail) -> Result<(), RunError> {
        let fatal = self.group.fatal.borrow().clone();
        let met = || self.met_behind.borrow().clone();
        fatal.or_else(met).or_else(|| instance.jobs().failure()).map_or(Ok(()), Err)
    }

    /// The store as it is now. Users of one that came back from a crash connect again and ask for
    /// everything.
    fn instance(&self) -> Result<Rc<EmbeddedMail>, RunError> {
        let instance = self.seat.holder::<EmbeddedMail>()?;
        let life = Rc::downgrade(instance.store());
        if !life.ptr_eq(&self.life.borrow()) {
            self.desks.iter().for_each(|desk| drop(desk.take()));
            self.life.replace(life);
            instance.jobs().work_for(&self.group, instance.store());
        }
        Ok(instance)
    }
}

impl Service for StoreService {
    type Task = MailOrder;

    async fn execute(&self, order: &MailOrder, book: &mut Book) -> Result<Done, RunError> {
        let instance = self.instance()?;
        self.check(&instance)?;
        let group = &self.group;
        let begun = group.run.handle.now();
        // Whatever is done was planned, also when the watch has not looked since it came due.
        count_due(group, order.user as usize, begun);
        let _open = group.gauges.enter(Gauge::Task);
        // A user does one thing after the other, so nobody else has its desk.
        let desk = self.desks[order.user as usize].take();
        let mut user = User {
            desk,
            account: order.user as u32,
            store: instance.store(),
            habits: &group.habits,
            older_per_visit: group.spec.older_per_visit.unwrap_or_default(),
            handle: &group.run.handle,
            gauges: &group.gauges,
            book,
            bytes_read: 0,
            random: order.random.clone(),
        };
        let work = async { carry_out(&mut user, order.task).await };
        let result = until_stop(&group.run, work).await;
        let (bytes, desk) = (user.bytes_read, user.desk);
        self.desks[order.user as usize].replace(desk);
        group.note_bytes(1, bytes);
        match result? {
            Ok(()) => {
                if let Some(metrics) = metrics_of(order.task) {
                    book.note(metrics.service, group.run.handle.now() - begun);
                }
                Ok(Done::Done)
            }
            // Others were first again and again.
            Err(error) if error.is_transient() => {
                book.count(metrics::REFUSED_COMMANDS, 1);
                Ok(Done::Refused(REFUSED))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn label(&self, order: &MailOrder) -> Label {
        Label {
            instance: self.group.place.number,
            database: 1,
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
        let reads = self.group.spec.background_reads_per_task.unwrap_or_default();
        let Ok(instance) = self.instance() else { return };
        let behind = read_behind(instance.store(), order, reads);
        // A wish to stop ends what is behind a task, too, and is no error of it.
        if let Ok(Err(error)) = until_stop(&self.group.run, behind).await {
            self.met_behind.borrow_mut().get_or_insert(error.into());
        }
    }
}
