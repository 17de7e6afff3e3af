//! Transactions on the records of several databases: a place is drawn, then an operation on one of
//! its records. An operation that came to nothing is repeated in the same place.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::{Nanos, Random};

use crate::demand::{Demand, Done, Seen, Timed};
use crate::driver::places::draw_place;
use crate::records::choice::Habits;
use crate::records::operation::Operation;
use crate::records::population::Population;
use crate::records::session::Session;
use crate::records::step::Previous;

/// A database in the list of a workload.
#[derive(Clone, Debug)]
pub struct RecordPlace {
    /// Its share of the work, relative to those of the others.
    pub weight: f64,
    /// Its records, shared by all sessions that use it.
    pub population: Rc<RefCell<Population>>,
}

/// One transaction on one of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTask {
    /// Position of the place in the list of the workload.
    pub place: usize,
    /// What is done there.
    pub operation: Operation,
}

/// See the module text.
#[derive(Debug)]
pub struct RecordDemand {
    session: Session,
    choice: Random,
    /// Positions in the list of the workload, and the places themselves.
    places: Vec<(usize, RecordPlace)>,
    weights: Vec<f64>,
}

impl RecordDemand {
    /// A demand on those places of a list that are named by their positions. `operations` decides
    /// what is done, `choice` where.
    pub fn new(
        operations: Random,
        choice: Random,
        habits: Habits,
        sluggish: f64,
        list: &[RecordPlace],
        positions: &[usize],
    ) -> RecordDemand {
        let places: Vec<_> =
            positions.iter().map(|position| (*position, list[*position].clone())).collect();
        RecordDemand {
            session: Session::new(operations, habits, sluggish),
            choice,
            weights: places.iter().map(|(_, place)| place.weight).collect(),
            places,
        }
    }

    /// Draws a place and does not use it, as every session of a closed load does before its first
    /// task: what a seed decides stays the same from version to version.
    pub fn skip_place(mut self) -> RecordDemand {
        draw_place(&self.weights, &mut self.choice);
        self
    }

    fn place_for(&mut self, previous: Option<&Seen<'_, RecordTask>>) -> (usize, RecordPlace) {
        let same = previous.filter(|seen| seen.done != Done::Done);
        let chosen = match same {
            Some(seen) => self.places.iter().position(|(position, _)| *position == seen.task.place),
            None => None,
        };
        let chosen = chosen.unwrap_or_else(|| draw_place(&self.weights, &mut self.choice));
        self.places[chosen].clone()
    }
}

impl Demand for RecordDemand {
    type Task = RecordTask;

    fn next(
        &mut self,
        now: Nanos,
        seen: Option<Seen<'_, RecordTask>>,
    ) -> Option<Timed<RecordTask>> {
        let (position, place) = self.place_for(seen.as_ref());
        let previous = seen.map(|seen| Previous {
            intended: seen.intended,
            finished: seen.finished,
            operation: seen.task.operation,
            result: seen.done,
        });
        let step = self.session.next(&mut place.population.borrow_mut(), now, previous);
        Some(Timed {
            intended: step.intended,
            task: RecordTask { place: position, operation: step.operation },
        })
    }
}
