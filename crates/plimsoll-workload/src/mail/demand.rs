//! The demand of one user: the tasks of its day, one after the other, each from the time it was
//! due.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::{Nanos, Random};

use super::day::Day;
use super::task::MailTask;
use crate::demand::{Demand, Seen, Timed};

/// One task of one user.
#[derive(Clone, Debug)]
pub struct MailOrder {
    /// Which user, from 0.
    pub user: u64,
    /// Its how-manieth task, from 0.
    pub number: u64,
    /// What is to be done.
    pub task: MailTask,
    /// When it was due.
    pub intended: Nanos,
    /// Decides whatever is left open.
    pub random: Random,
}

/// See the module text. The day is shared with whoever counts what has become due.
#[derive(Debug)]
pub struct MailDemand {
    user: u64,
    number: u64,
    random: Random,
    day: Rc<RefCell<Day>>,
}

impl MailDemand {
    /// The demand of a user with its day.
    pub fn new(user: u64, random: &Random, day: Rc<RefCell<Day>>) -> MailDemand {
        MailDemand { user, number: 0, random: random.child(&format!("user {user} orders")), day }
    }
}

impl Demand for MailDemand {
    type Task = MailOrder;

    fn next(
        &mut self,
        _now: Nanos,
        _seen: Option<Seen<'_, MailOrder>>,
    ) -> Option<Timed<MailOrder>> {
        let (intended, task) = self.day.borrow_mut().take();
        let number = self.number;
        self.number += 1;
        let order = MailOrder {
            user: self.user,
            number,
            task,
            intended,
            random: self.random.child(&number.to_string()),
        };
        Some(Timed { intended, task: order })
    }
}
