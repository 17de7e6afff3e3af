//! Visits to the stores of a workload: which session goes to which, and what becomes of each.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use plimsoll_workload::store::{StoreDemand, StoreHabits, StoreTask, Visit, VisitEnd};
use plimsoll_workload::{Demand, Done, Seen, Timed, draw_place};

use super::client::ClientInstance;
use super::instance::StoreInstance;
use super::open::OpenStore;
use crate::RunError;
use crate::backend::{Backend, Seat};
use crate::context::RunContext;
use crate::events::Level;
use crate::load::{Book, Label, Pair, Service};

/// The operation of the family.
pub const ORDER: &str = "order";
/// Counts orders without stock.
pub const ROLLED_BACK: &str = "store_rolled_back";
/// Counts attempts at purchases that came to nothing.
pub const RETRIED: &str = "store_retry";
/// Counts purchases that were given up.
pub const GIVEN_UP: &str = "store_given_up";
/// Counts connections that broke.
pub const CONNECTION_LOST: &str = "store_connection_lost";
/// Counts orders for which the server had no connection.
pub const CONNECTION_REFUSED: &str = "store_connection_refused";
/// Counts orders for which there was no room.
pub const NO_SPACE: &str = "store_no_space";
/// How a service says that a purchase was given up, and so on: the metrics in their order, from 1.
const REFUSALS: [&str; 4] = [GIVEN_UP, CONNECTION_LOST, CONNECTION_REFUSED, NO_SPACE];

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

    fn next(
        &mut self,
        now: Nanos,
        seen: Option<Seen<'_, StoreVisit>>,
    ) -> Option<Timed<StoreVisit>> {
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
        Some(Timed { intended, task: StoreVisit { place: *place, task } })
    }
}

/// The two halves of a load on stores.
pub struct StorePair {
    pub run: RunContext,
    pub habits: StoreHabits,
    /// Position of each in the plan, its weight, and the store.
    pub stores: Vec<(u32, f64, Rc<dyn OpenStore>)>,
    /// Where each is to be found later on.
    pub seats: Vec<Seat>,
}

impl StorePair {
    fn demand(&self, place: usize, random: Random) -> (usize, StoreDemand) {
        let store = &self.stores[place].2;
        let session = store.begin_session();
        (place, StoreDemand::new(random, self.habits, store.population(), session))
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
        let sizes: Vec<_> = self.stores.iter().map(|(_, _, store)| store.size_in_words()).collect();
        let StoreHabits { think_s, new_customers_percent, lines_mean, .. } = self.habits;
        format!(
            "stores of {}, thinking {think_s} s, {new_customers_percent} % new customers, \
             {lines_mean} lines an order",
            sizes.join(", ")
        )
    }

    fn session(
        &self,
        _: u32,
        operations: Random,
        mut places: Random,
        positions: &[usize],
    ) -> VisitDemand {
        let weights: Vec<f64> = positions.iter().map(|place| self.stores[*place].1).collect();
        let place = positions[draw_place(&weights, &mut places)];
        VisitDemand { demands: vec![self.demand(place, operations)], weights: Vec::new(), places }
    }

    fn arrivals(&self, operations: Random, places: Random) -> VisitDemand {
        let demands = (0..self.stores.len())
            .map(|place| self.demand(place, operations.child(&format!("store {place}"))));
        VisitDemand { demands: demands.collect(), weights: self.weights(), places }
    }

    fn into_service(self) -> StoreService {
        StoreService {
            health: self.stores.iter().map(|_| Health::default()).collect(),
            run: self.run,
            numbers: self.stores.iter().map(|(number, ..)| *number).collect(),
            seats: self.seats,
        }
    }
}

/// The store behind an instance, if it holds one.
pub fn store_of(backend: &Rc<dyn Backend>) -> Option<Rc<dyn OpenStore>> {
    match backend.clone().into_any().downcast::<StoreInstance>() {
        Ok(store) => Some(store),
        Err(other) => Some(other.downcast::<ClientInstance>().ok()?),
    }
}

/// Carries visits out.
pub struct StoreService {
    run: RunContext,
    /// Position of each in the plan.
    numbers: Vec<u32>,
    seats: Vec<Seat>,
    health: Vec<Health>,
}

/// Since when a store has not done what it is asked to, and what of its troubles was told. While
/// nobody asks, as customers are rare or think, it is in no trouble.
#[derive(Default)]
struct Health {
    last_end: Cell<Nanos>,
    failing_since: Cell<Option<Nanos>>,
    told: RefCell<BTreeSet<&'static str>>,
}

impl Health {
    /// A visit came to its end.
    fn ended(&self, now: Nanos) {
        self.last_end.set(now);
        self.failing_since.set(None);
    }

    /// A visit that began then came to nothing: for how long all of them have.
    fn failed_ns(&self, begun: Nanos, now: Nanos) -> Nanos {
        let since = self.failing_since.get().unwrap_or(begun).max(self.last_end.get());
        self.failing_since.set(Some(since));
        now.saturating_sub(since)
    }
}

impl StoreService {
    /// Tells of the trouble, and ends the run when nothing has come to an end for too long.
    fn trouble(
        &self,
        place: usize,
        store: &Rc<dyn OpenStore>,
        kind: &'static str,
        went: &Visit,
        begun: Nanos,
    ) -> Result<(), RunError> {
        let said = went.trouble.as_deref().unwrap_or("the server said nothing");
        self.tell(place, kind, said);
        let silent_ns = self.health[place].failed_ns(begun, self.run.handle.now());
        match store.lost_after_ns().is_some_and(|most| silent_ns > most) {
            true => Err(RunError::Service(format!(
                "no order has come to an end for {} s: {said}",
                silent_ns / NANOS_PER_SECOND
            ))),
            false => Ok(()),
        }
    }

    /// Tells of the first trouble of a kind.
    fn tell(&self, place: usize, kind: &'static str, said: &str) {
        if self.health[place].told.borrow_mut().insert(kind) {
            self.run.report(Level::Warning, kind, said.to_owned());
        }
    }
}

impl Service for StoreService {
    type Task = StoreVisit;

    async fn execute(&self, visit: &StoreVisit, book: &mut Book) -> Result<Done, RunError> {
        let store = store_of(&self.seats[visit.place].backend()?);
        let store = store.ok_or_else(|| RunError::Spec("an instance holds no store".into()))?;
        let begun = self.run.handle.now();
        let went = store.visit(&visit.task).await?;
        if let Some(endpoints) = store.endpoints() {
            book.at(went.endpoint, endpoints);
        }
        for (step, took_ns) in &went.steps {
            book.note(step.name(), *took_ns);
        }
        book.count(RETRIED, u64::from(went.retries));
        book.count(CONNECTION_LOST, u64::from(went.reconnects));
        let refused = match went.end {
            VisitEnd::Sold | VisitEnd::OutOfStock => {
                self.health[visit.place].ended(self.run.handle.now());
                if went.reconnects > 0 {
                    let said = "the server closed a connection between two orders";
                    self.tell(visit.place, CONNECTION_LOST, said);
                }
                let is_sold = went.end == VisitEnd::Sold;
                return Ok(if is_sold { Done::Done } else { Done::RolledBack });
            }
            VisitEnd::GivenUp => GIVEN_UP,
            VisitEnd::ConnectionLost => CONNECTION_LOST,
            VisitEnd::ConnectionRefused => CONNECTION_REFUSED,
            VisitEnd::NoSpace => NO_SPACE,
        };
        if refused != GIVEN_UP {
            self.trouble(visit.place, &store, refused, &went, begun)?;
        }
        let code = (1..).zip(REFUSALS).find(|(_, metric)| *metric == refused);
        Ok(Done::Refused(code.map_or(0, |(code, _)| code)))
    }

    fn label(&self, visit: &StoreVisit) -> Label {
        Label { instance: self.numbers[visit.place], database: 1, operation: ORDER }
    }

    fn count(&self, _: &StoreVisit, done: Done, count: &mut dyn FnMut(&'static str)) {
        match done {
            Done::RolledBack => count(ROLLED_BACK),
            Done::Refused(code) => {
                if let Some(metric) = REFUSALS.get(code as usize - 1) {
                    count(metric);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = NANOS_PER_SECOND;

    #[test]
    fn a_store_fails_for_as_long_as_it_was_asked_in_vain() {
        let health = Health::default();
        health.ended(10 * S);
        assert_eq!(health.failed_ns(70 * S, 71 * S), S, "nobody had asked for a minute");
        assert_eq!(health.failed_ns(75 * S, 80 * S), 10 * S, "since the first in vain");
        health.ended(81 * S);
        assert_eq!(health.failed_ns(20 * S, 82 * S), S, "others came to their end meanwhile");
    }
}
