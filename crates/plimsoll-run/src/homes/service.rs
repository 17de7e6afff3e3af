//! The pair of the family: users, and what carries their scenarios out.

use std::rc::Rc;

use plimsoll_io::{Handle, Random};
use plimsoll_workload::Done;
use plimsoll_workload::homes::{HomeDemand, HomePlace, HomeTask, Scenarios};

use super::home_set::{HomeSet, OpenFiles};
use super::metrics::{SCENARIO, USER_WAIT};
use crate::RunError;
use crate::load::{Book, Label, Pair, Service};

/// Homes that a workload works in.
pub struct LoadedHomes {
    /// Position of their instance in the plan.
    pub instance: u32,
    /// Their share of what arrives.
    pub weight: f64,
    /// What holds them.
    pub set: Rc<HomeSet>,
}

/// See the module text.
pub struct HomePair {
    /// Time.
    pub handle: Handle,
    /// What users do.
    pub scenarios: Rc<Scenarios>,
    /// Where.
    pub homes: Vec<LoadedHomes>,
}

impl HomePair {
    fn demand(&self, operations: Random, places: Random, positions: &[usize]) -> HomeDemand {
        let on = positions.iter().map(|position| {
            let loaded = &self.homes[*position];
            (*position, HomePlace { weight: loaded.weight, homes: loaded.set.homes() })
        });
        HomeDemand::new(self.scenarios.clone(), operations, places, on.collect())
    }
}

impl Pair for HomePair {
    type Task = HomeTask;
    type Demand = HomeDemand;
    type Service = HomeService;

    fn weights(&self) -> Vec<f64> {
        self.homes.iter().map(|homes| homes.weight).collect()
    }

    fn description(&self) -> String {
        let count: u32 = self.homes.iter().map(|homes| homes.set.homes()).sum();
        format!("{count} homes, {} scenarios", self.scenarios.count())
    }

    fn session(&self, _: u32, operations: Random, places: Random, on: &[usize]) -> HomeDemand {
        self.demand(operations, places, on)
    }

    fn arrivals(&self, operations: Random, places: Random) -> HomeDemand {
        let all: Vec<usize> = (0..self.homes.len()).collect();
        self.demand(operations, places, &all)
    }

    fn into_service(self) -> HomeService {
        HomeService { handle: self.handle, scenarios: self.scenarios, homes: self.homes }
    }
}

/// Carries scenarios out.
pub struct HomeService {
    handle: Handle,
    scenarios: Rc<Scenarios>,
    homes: Vec<LoadedHomes>,
}

impl Service for HomeService {
    type Task = HomeTask;

    async fn execute(&self, task: &HomeTask, book: &mut Book) -> Result<Done, RunError> {
        let set = &self.homes[task.place].set;
        let asked = self.handle.now();
        // On a real clock time goes by even where nothing is waited for.
        let is_busy = !set.user(task.home).is_free();
        let user = set.user(task.home).acquire().await;
        let begun = self.handle.now();
        if is_busy && begun > asked {
            book.note(USER_WAIT, begun - asked);
        }
        let mut random = Random::from_seed(task.seed);
        let chosen = set.home(task.home).borrow().chosen(&self.scenarios, task.scenario);
        let moves = set.home(task.home).borrow_mut().moves(
            &self.scenarios,
            chosen,
            &set.shape().sizes,
            set.piece_bytes(),
            &mut random,
        );
        let mut open = OpenFiles::default();
        for one in &moves {
            let started = self.handle.now();
            set.make_move(task.home, one, &mut open).await?;
            book.note(one.operation().name(), self.handle.now() - started);
        }
        drop(user);
        let kind = self.scenarios.get(chosen).0.kind.name();
        book.note(kind, self.handle.now() - begun);
        set.watch().done(0, kind, begun);
        Ok(Done::Done)
    }

    fn label(&self, task: &HomeTask) -> Label {
        Label { instance: self.homes[task.place].instance, database: 1, operation: SCENARIO }
    }

    fn count(&self, _: &HomeTask, _: Done, _: &mut dyn FnMut(&'static str)) {}
}
