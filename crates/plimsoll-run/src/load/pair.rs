//! What a family brings to a load: the two halves, and the instances they work on.

use std::rc::Rc;

use plimsoll_io::Random;
use plimsoll_workload::Demand;

use super::shared::Service;
use crate::backend::{Backend, Seat};

/// An instance that a load works on.
pub struct LoadInstance {
    /// Position in the plan.
    pub number: u32,
    /// Its share of the work, relative to those of the others.
    pub weight: f64,
    /// What stands behind it when the load starts.
    pub backend: Rc<dyn Backend>,
    /// Where to look for what stands behind it later on.
    pub seat: Seat,
}

/// The two halves of a load: who asks, and who carries out.
pub trait Pair {
    /// What is asked for.
    type Task: 'static;
    /// Who asks.
    type Demand: Demand<Task = Self::Task> + 'static;
    /// Who carries out.
    type Service: Service<Task = Self::Task> + 'static;

    /// The weights of the places that tasks go to, such as databases; at least one.
    fn weights(&self) -> Vec<f64>;

    /// What the load does and where, for the event that tells of its start.
    fn description(&self) -> String;

    /// A session on some of the places, counted from 0 among those on the same ones. `operations`
    /// decides what it does, `places` where.
    fn session(
        &self,
        number: u32,
        operations: Random,
        places: Random,
        positions: &[usize],
    ) -> Self::Demand;

    /// Arrivals on all of the places together.
    fn arrivals(&self, operations: Random, places: Random) -> Self::Demand;

    /// What carries the tasks out.
    fn into_service(self) -> Self::Service;
}
