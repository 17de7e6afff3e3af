//! The users of a load, whatever keeps their mail: their schedules, what is under way, and what
//! ends the run.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_clients::endpoints::Endpoints;
use plimsoll_io::Random;
use plimsoll_measure::Histogram;
use plimsoll_workload::mail::{Day, MailHabits};

use super::gauges::Gauges;
use super::metrics;
use super::spec::MailSpec;
use crate::RunError;
use crate::context::RunContext;

/// Whose mail it is and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Workload of the plan, from 1.
    pub workload: u32,
    /// Position of the instance in the plan.
    pub number: u32,
    /// How many users there are.
    pub users: u64,
}

/// See the module text.
pub struct Group {
    /// Where it runs.
    pub run: RunContext,
    /// Whose mail it is and where it lies.
    pub place: Place,
    /// What the plan says of the load.
    pub spec: MailSpec,
    /// What users do.
    pub habits: Rc<MailHabits>,
    /// The schedule of each user.
    pub days: Vec<Rc<RefCell<Day>>>,
    /// What is under way.
    pub gauges: Rc<Gauges>,
    /// What ends the run.
    pub fatal: RefCell<Option<RunError>>,
    /// Messages that were taken and wait, where that can be known.
    pub queued: Option<Box<dyn Fn() -> u64>>,
    /// Where users are, on a server.
    pub endpoints: Option<Rc<Endpoints>>,
}

impl Group {
    /// Users whose day begins now.
    pub fn new(
        run: &RunContext,
        place: Place,
        spec: MailSpec,
        habits: MailHabits,
        random: &Random,
    ) -> Group {
        let habits = Rc::new(habits);
        let now = run.handle.now();
        let group = random.child("days");
        let days = (0..place.users).map(|user| {
            let day = Day::new(habits.clone(), &group, user, place.users, now);
            Rc::new(RefCell::new(day))
        });
        Group {
            days: days.collect(),
            run: run.clone(),
            place,
            spec,
            habits,
            gauges: Rc::default(),
            fatal: RefCell::default(),
            queued: None,
            endpoints: None,
        }
    }

    /// The endpoint of a user, counted from 1 as databases are.
    pub fn database_of(&self, user: u64) -> u32 {
        self.endpoints.as_ref().map_or(1, |endpoints| endpoints.of(user) as u32 + 1)
    }

    /// Adds bytes that were read to the contents of messages.
    pub fn note_bytes(&self, database: u32, bytes: u64) {
        let recorder = &self.run.recorder;
        let key = recorder.key(self.place.number, database, metrics::BODY);
        recorder.merge(key.of_workload(self.place.workload), &Histogram::new(), bytes);
    }
}
