//! A closed load: each session waits for its transaction, thinks, and draws the next one. A storage that stalls is asked for
//! less, so the mean outstanding I/O is bounded by the number of sessions and a stall delays only those who are in it.

use std::rc::Rc;

use plimsoll_io::{JoinHandle, NANOS_PER_MILLISECOND, Random};
use plimsoll_workload::{Previous, Result as OperationResult, Session};

use super::{LoadPlace, Shared};
use crate::RunError;
use crate::spec::WorkloadSpec;

/// Starts `count` sessions for each database of weight 1, or for all databases together.
pub fn start(
    shared: &Rc<Shared>,
    spec: &WorkloadSpec,
    count: u32,
    one_pool: bool,
    random: &Random,
) -> Vec<JoinHandle<Result<(), RunError>>> {
    let groups: Vec<Vec<LoadPlace>> = if one_pool {
        vec![shared.places.clone()]
    } else {
        shared.places.iter().map(|place| vec![place.clone()]).collect()
    };
    let mut tasks = Vec::new();
    for (group, places) in groups.into_iter().enumerate() {
        // A pool shares its work out by weight; sessions of a database of its own are more or fewer.
        let count = if one_pool {
            count
        } else {
            ((f64::from(count) * places[0].weight).round() as u32).max(1)
        };
        for session in 0..count {
            let name = format!("group {group} session {session}");
            let customer = SessionTask {
                session: Session::new(random.child(&name), spec.habits(), spec.sluggish),
                choice: random.child(&format!("{name} place")),
                places: places.clone(),
                shared: shared.clone(),
            };
            tasks.push(shared.run.handle.spawn(customer.work()));
        }
    }
    tasks
}

struct SessionTask {
    session: Session,
    choice: Random,
    places: Vec<LoadPlace>,
    shared: Rc<Shared>,
}

impl SessionTask {
    async fn work(mut self) -> Result<(), RunError> {
        let result = self.transactions().await;
        if let Err(error) = &result {
            self.shared.fail(error);
        }
        result
    }

    async fn transactions(&mut self) -> Result<(), RunError> {
        let handle = self.shared.run.handle.clone();
        let mut previous: Option<Previous> = None;
        let mut place = self.draw_place();
        while self.shared.wanted() {
            if previous.is_none_or(|previous| previous.result == OperationResult::Done) {
                place = self.draw_place();
            }
            let step = {
                let mut population = place.population.borrow_mut();
                self.session.next(&mut population, handle.now(), previous)
            };
            while self.shared.wanted() && handle.now() < step.intended {
                // In steps, so that a long think time does not hold up the end of a run.
                let soon = handle.now() + 50 * NANOS_PER_MILLISECOND;
                handle.sleep_until(step.intended.min(soon)).await;
            }
            if !self.shared.wanted() {
                break;
            }
            self.shared.run.processors.transaction(&handle).await;
            let result = place.backend.execute(place.database, &step.operation).await?;
            let finished = handle.now();
            let response_ns = finished.saturating_sub(step.intended);
            self.shared.record(&place, &step.operation, result, response_ns);
            previous = Some(Previous {
                intended: step.intended,
                finished,
                operation: step.operation,
                result,
            });
        }
        Ok(())
    }

    fn draw_place(&mut self) -> LoadPlace {
        let chosen = super::draw(&self.places, &mut self.choice);
        self.places[chosen].clone()
    }
}
