//! Visits to the stores of a workload: which session goes to which, and what becomes of each.

use std::rc::Rc;

use plimsoll_io::{Nanos, Random};
use plimsoll_workload::store::{StoreDemand, StoreHabits, StoreTask, VisitEnd};
use plimsoll_workload::{Demand, Done, Seen, Timed, draw_place};

use super::instance::StoreInstance;
use crate::RunError;
use crate::load::{Book, Label, Pair, Service};

/// The operation of the family.
pub const ORDER: &str = "order";
/// Counts orders without stock.
pub const ROLLED_BACK: &str = "store_rolled_back";
/// Counts attempts at purchases that came to nothing.
pub const RETRIED: &str = "store_retry";
/// Counts purchases that were given up.
pub const GIVEN_UP: &str = "store_given_up";
/// How a service says that a purchase was given up.
const GIVEN_UP_CODE: u32 = 1;

/// A visit to one of the stores.
pub struct StoreVisit {
    place: usize,
    task: StoreTask,
}

/// A session visits one store; arrivals go to all of them by their weights.
pub struct VisitDemand {
    demands: Vec<(usize, StoreDemand)>,
    weights: Vec<f64>,
    places: Random,
}

impl Demand for VisitDemand {
    type Task = StoreVisit;

    fn next(&mut self, now: Nanos, seen: Option<Seen<'_, StoreVisit>>) -> Option<Timed<StoreVisit>> {
        let chosen = match self.demands.len() {
            1 => 0,
            _ => draw_place(&self.weights, &mut self.places),
        };
        let (place, demand) = &mut self.demands[chosen];
        let seen = seen.map(|seen| Seen {
            intended: seen.intended,
            finished: seen.finished,
            task: &seen.task.task,
            done: seen.done,
        });
        let Timed { intended, task } = demand.next(now, seen)?;
        Some(Timed {
            intended,
            task: StoreVisit { place: *place, task },
        })
    }
}

/// The two halves of a load on stores.
pub struct StorePair {
    pub habits: StoreHabits,
    /// Position of each in the plan, its weight, and the store.
    pub stores: Vec<(u32, f64, Rc<StoreInstance>)>,
}

impl StorePair {
    fn demand(&self, place: usize, random: Random) -> (usize, StoreDemand) {
        let shop = self.stores[place].2.shop();
        let session = shop.begin_session();
        (
            place,
            StoreDemand::new(random, self.habits, shop.catalogue(), session),
        )
    }
}

impl Pair for StorePair {
    type Task = StoreVisit;
    type Demand = VisitDemand;
    type Service = StoreService;

    fn weights(&self) -> Vec<f64> {
        self.stores.iter().map(|(_, weight, _)| *weight).collect()
    }

    fn description(&self) -> String {
        let sizes: Vec<_> = self
            .stores
            .iter()
            .map(|(_, _, store)| store.shop().catalogue().scale().to_string())
            .collect();
        let StoreHabits {
            think_s,
            new_customers_percent,
            lines_mean,
            ..
        } = self.habits;
        format!(
            "stores of {}, thinking {think_s} s, {new_customers_percent} % new customers, {lines_mean} lines an order",
            sizes.join(", ")
        )
    }

    fn session(&self, _: u32, operations: Random, mut places: Random, positions: &[usize]) -> VisitDemand {
        let weights: Vec<f64> = positions.iter().map(|place| self.stores[*place].1).collect();
        let place = positions[draw_place(&weights, &mut places)];
        VisitDemand {
            demands: vec![self.demand(place, operations)],
            weights: Vec::new(),
            places,
        }
    }

    fn arrivals(&self, operations: Random, places: Random) -> VisitDemand {
        let demands = (0..self.stores.len())
            .map(|place| self.demand(place, operations.child(&format!("store {place}"))));
        VisitDemand {
            demands: demands.collect(),
            weights: self.weights(),
            places,
        }
    }

    fn into_service(self) -> StoreService {
        StoreService { stores: self.stores }
    }
}

/// Carries visits out.
pub struct StoreService {
    stores: Vec<(u32, f64, Rc<StoreInstance>)>,
}

impl Service for StoreService {
    type Task = StoreVisit;

    async fn execute(&self, visit: &StoreVisit, book: &mut Book) -> Result<Done, RunError> {
        let (_, _, store) = &self.stores[visit.place];
        let went = store.shop().visit(&visit.task).await?;
        for (step, took_ns) in &went.steps {
            book.note(step.name(), *took_ns);
        }
        book.count(RETRIED, u64::from(went.retries));
        Ok(match went.end {
            VisitEnd::Sold => Done::Done,
            VisitEnd::OutOfStock => Done::RolledBack,
            VisitEnd::GivenUp => Done::Refused(GIVEN_UP_CODE),
        })
    }

    fn label(&self, visit: &StoreVisit) -> Label {
        Label {
            instance: self.stores[visit.place].0,
            database: 1,
            operation: ORDER,
        }
    }

    fn count(&self, _: &StoreVisit, done: Done, count: &mut dyn FnMut(&'static str)) {
        match done {
            Done::RolledBack => count(ROLLED_BACK),
            Done::Refused(GIVEN_UP_CODE) => count(GIVEN_UP),
            _ => {}
        }
    }
}
