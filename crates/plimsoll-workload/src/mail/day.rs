//! When a user does what: its own schedule, which knows nothing of the server.
//!
//! *Even* is how LoadGen dispatches: the tasks of a group come at one interval, a day divided by
//! all its tasks. Time is cut into rounds in which each user has one task; its place in the round
//! changes from round to round, by a permutation that any host can compute. *Poisson* is what
//! independent people make: exponential gaps. Tasks that are due while the user is busy wait in
//! order.

use std::collections::VecDeque;
use std::rc::Rc;

use plimsoll_io::{Nanos, Random};

use super::habits::{Dispatch, MailHabits};
use super::task::MailTask;

/// See the module text.
#[derive(Debug)]
pub struct Day {
    habits: Rc<MailHabits>,
    /// Of the group: decides the order of each round.
    group: Random,
    gaps: Random,
    tasks: Random,
    user: u64,
    users: u64,
    origin: Nanos,
    /// Tasks that were given a time so far.
    drawn: u64,
    /// Since the origin, with the fraction of a nanosecond.
    last_due_ns: f64,
    waiting: VecDeque<(Nanos, MailTask)>,
    /// Handed out before they were counted as due, in order.
    ahead: VecDeque<(Nanos, MailTask)>,
    /// Drawn, not due and not handed out.
    drawn_next: Option<(Nanos, MailTask)>,
}

impl Day {
    /// The schedule of user `user` of `users`, from `origin` on. `group` is the same for all of
    /// them.
    pub fn new(
        habits: Rc<MailHabits>,
        group: &Random,
        user: u64,
        users: u64,
        origin: Nanos,
    ) -> Day {
        let own = group.child(&format!("user {user}"));
        Day {
            habits,
            group: group.child("rounds"),
            gaps: own.child("gaps"),
            tasks: own.child("tasks"),
            user,
            users,
            origin,
            drawn: 0,
            last_due_ns: 0.0,
            waiting: VecDeque::new(),
            ahead: VecDeque::new(),
            drawn_next: None,
        }
    }

    fn draw(&mut self) -> (Nanos, MailTask) {
        let gap_ns = self.habits.gap_ns_mean();
        self.last_due_ns = match self.habits.dispatch {
            Dispatch::Poisson => self.last_due_ns + self.gaps.exponential() * gap_ns,
            Dispatch::Even => {
                let place = place_in_round(&self.group, self.drawn, self.user, self.users);
                (self.drawn as f64 + (place as f64 + 0.5) / self.users as f64) * gap_ns
            }
        };
        self.drawn += 1;
        let task = self.habits.draw_task(&mut self.tasks);
        (self.origin + self.last_due_ns as Nanos, task)
    }

    /// Tells which tasks have become due up to `now`, each once.
    pub fn advance(&mut self, now: Nanos, came_due: &mut dyn FnMut(MailTask)) {
        while let Some((_, task)) = self.ahead.front().copied().filter(|(due, _)| *due <= now) {
            self.ahead.pop_front();
            came_due(task);
        }
        loop {
            let next = match self.drawn_next.take() {
                Some(next) => next,
                None => self.draw(),
            };
            if next.0 > now {
                self.drawn_next = Some(next);
                return;
            }
            came_due(next.1);
            self.waiting.push_back(next);
        }
    }

    /// The next task and when it is due: the oldest that waits, or one that is not due yet.
    pub fn take(&mut self) -> (Nanos, MailTask) {
        if let Some(oldest) = self.waiting.pop_front() {
            return oldest;
        }
        let next = match self.drawn_next.take() {
            Some(next) => next,
            None => self.draw(),
        };
        self.ahead.push_back(next);
        next
    }

    /// Tasks that were due and have not been handed out.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// The place of a user in a round: a permutation of the users that every host computes alike.
fn place_in_round(group: &Random, round: u64, user: u64, users: u64) -> u64 {
    if users == 1 {
        return 0;
    }
    let mut random = group.child(&format!("round {round}"));
    let shift = random.below(users);
    let factor = loop {
        let candidate = 1 + random.below(users - 1).max(users / 3);
        if divisor(candidate, users) == 1 {
            break candidate;
        }
    };
    ((u128::from(factor) * u128::from(user) + u128::from(shift)) % u128::from(users)) as u64
}

fn divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { divisor(right, left % right) }
}
