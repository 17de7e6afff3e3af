//! A closed load: each session waits for its task, thinks, and asks for the next one. A storage that stalls is asked for less, so the mean
//! outstanding I/O is bounded by the number of sessions and a stall delays only those who are in it.

use std::rc::Rc;

use plimsoll_io::{JoinHandle, NANOS_PER_MILLISECOND, Random};
use plimsoll_workload::{Demand, Done, Seen, Timed};

use super::pair::Pair;
use super::shared::{Service, Shared};
use crate::RunError;

/// What `count` sessions for each place of weight 1 ask for, or for all places together.
pub fn demands<P: Pair>(pair: &P, count: u32, one_pool: bool, random: &Random) -> Vec<P::Demand> {
    let weights = pair.weights();
    let all: Vec<usize> = (0..weights.len()).collect();
    let groups: Vec<&[usize]> = if one_pool {
        vec![&all]
    } else {
        all.chunks(1).collect()
    };
    let mut demands = Vec::new();
    for (group, positions) in groups.into_iter().enumerate() {
        // A pool shares its work out by weight; sessions of a place of its own are more or fewer.
        let count = if one_pool {
            count
        } else {
            ((f64::from(count) * weights[positions[0]]).round() as u32).max(1)
        };
        for session in 0..count {
            let name = format!("group {group} session {session}");
            let places = random.child(&format!("{name} place"));
            demands.push(pair.session(session, random.child(&name), places, positions));
        }
    }
    demands
}

/// Starts a session for each demand.
pub fn start<D, S>(shared: &Rc<Shared<S>>, demands: Vec<D>) -> Vec<JoinHandle<Result<(), RunError>>>
where
    D: Demand<Task = S::Task> + 'static,
    S: Service + 'static,
{
    let tasks = demands.into_iter().map(|demand| SessionTask {
        demand,
        shared: shared.clone(),
    });
    tasks
        .map(|session| shared.handle().spawn(session.work()))
        .collect()
}

struct SessionTask<D, S> {
    demand: D,
    shared: Rc<Shared<S>>,
}

impl<S: Service, D: Demand<Task = S::Task>> SessionTask<D, S> {
    async fn work(mut self) -> Result<(), RunError> {
        let result = self.transactions().await;
        if let Err(error) = &result {
            self.shared.fail(error);
        }
        result
    }

    async fn transactions(&mut self) -> Result<(), RunError> {
        let handle = self.shared.handle().clone();
        let mut ended: Option<(Timed<S::Task>, Done, u64)> = None;
        while self.shared.wanted() {
            let seen = ended.as_ref().map(|(step, done, finished)| Seen {
                intended: step.intended,
                finished: *finished,
                task: &step.task,
                done: *done,
            });
            let Some(step) = self.demand.next(handle.now(), seen) else {
                break;
            };
            while self.shared.wanted() && handle.now() < step.intended {
                // In steps, so that a long think time does not hold up the end of a run.
                let soon = handle.now() + 50 * NANOS_PER_MILLISECOND;
                handle.sleep_until(step.intended.min(soon)).await;
            }
            if !self.shared.wanted() {
                break;
            }
            let (done, finished) = self.shared.carry_out(&step.task, step.intended).await?;
            ended = Some((step, done, finished));
        }
        Ok(())
    }
}
