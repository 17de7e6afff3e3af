//! Which user goes through which scenario next. Users take turns: each is asked once before any is
//! asked again, in an order that is drawn anew each time, so all keep the same pace.

use std::rc::Rc;

use plimsoll_io::{Nanos, Random};

use super::scenario::Scenarios;
use crate::demand::{Demand, Seen, Timed};
use crate::driver::places::draw_place;

/// Homes in the list of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HomePlace {
    /// Their share of what arrives, relative to those of the others.
    pub weight: f64,
    /// How many there are.
    pub homes: u32,
}

/// One scenario of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeTask {
    /// Position of the place in the list of the workload.
    pub place: usize,
    /// The user, from 0.
    pub home: u32,
    /// Position of the scenario.
    pub scenario: usize,
    /// Decides which file it is about.
    pub seed: u64,
}

/// See the module text.
#[derive(Debug)]
pub struct HomeDemand {
    scenarios: Rc<Scenarios>,
    operations: Random,
    places: Random,
    on: Vec<(usize, HomePlace)>,
    /// Of each place, who is still to be asked.
    waiting: Vec<Vec<u32>>,
}

impl HomeDemand {
    /// Users of some of the places. `operations` decides what they do, `places` who it is.
    pub fn new(
        scenarios: Rc<Scenarios>,
        operations: Random,
        places: Random,
        on: Vec<(usize, HomePlace)>,
    ) -> HomeDemand {
        let waiting = on.iter().map(|_| Vec::new()).collect();
        HomeDemand { scenarios, operations, places, on, waiting }
    }

    fn next_home(&mut self, chosen: usize) -> u32 {
        let waiting = &mut self.waiting[chosen];
        if waiting.is_empty() {
            waiting.extend(0..self.on[chosen].1.homes);
        }
        let drawn = self.places.below(waiting.len() as u64) as usize;
        waiting.swap_remove(drawn)
    }
}

impl Demand for HomeDemand {
    type Task = HomeTask;

    fn next(&mut self, now: Nanos, _seen: Option<Seen<'_, HomeTask>>) -> Option<Timed<HomeTask>> {
        let weights: Vec<f64> = self.on.iter().map(|(_, place)| place.weight).collect();
        let chosen = match weights.len() {
            1 => 0,
            _ => draw_place(&weights, &mut self.places),
        };
        let task = HomeTask {
            place: self.on[chosen].0,
            home: self.next_home(chosen),
            scenario: self.scenarios.draw(&mut self.operations),
            seed: self.operations.next_u64(),
        };
        Some(Timed { intended: now, task })
    }
}
