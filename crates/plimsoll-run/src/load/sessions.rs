//! A closed load: each session waits for its task, thinks, and asks for the next one. A storage
//! that stalls is asked for less, so the mean outstanding I/O is bounded by the number of sessions
//! and a stall delays only those who are in it.

use std::rc::Rc;

use plimsoll_io::{Handle, JoinHandle, NANOS_PER_MILLISECOND, Nanos, Random, either};
use plimsoll_workload::{Demand, Done, Seen, Timed};

use super::pair::Pair;
use super::shared::{Service, Shared};
use crate::RunError;

/// A session that thinks ends after so long at most when the load does.
const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;

/// What `count` sessions for each place of weight 1 ask for, or for all places together.
pub fn demands<P: Pair>(pair: &P, count: u32, one_pool: bool, random: &Random) -> Vec<P::Demand> {
    let weights = pair.weights();
    let all: Vec<usize> = (0..weights.len()).collect();
    let groups: Vec<&[usize]> = if one_pool { vec![&all] } else { all.chunks(1).collect() };
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
    let tasks = demands.into_iter().map(|demand| SessionTask { demand, shared: shared.clone() });
    tasks.map(|session| shared.handle().spawn(session.work())).collect()
}

/// Waits until a task is due. A session that thinks is woken by nothing but that and the end of the
/// load, which it heeds after a whole number of looks since its wait began, as if it had looked all
/// the time: the times of a simulated run do not depend on who is woken how often.
async fn wait_for(handle: &Handle, intended: Nanos, stopped: impl Future<Output = ()>) {
    let begun = handle.now();
    if begun >= intended {
        return;
    }
    either(handle.sleep_until(intended), stopped).await;
    let now = handle.now();
    if now < intended {
        let looks = (now - begun).div_ceil(LOOK_EVERY_NS);
        handle.sleep_until(intended.min(begun + looks * LOOK_EVERY_NS)).await;
    }
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
            wait_for(&handle, step.intended, self.shared.stopped()).await;
            if !self.shared.wanted() {
                break;
            }
            let (done, finished) = self.shared.carry_out(&step.task, step.intended).await?;
            ended = Some((step, done, finished));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use plimsoll_io::{Clock, Disk, Executor, MemoryDisk, MemoryOptions, Notify};

    use super::*;

    const MS: Nanos = NANOS_PER_MILLISECOND;

    /// When a session that begins to wait at `begun` for `intended` goes on, the load ending at
    /// `stop`; and as it was when it looked every 50 ms.
    fn ends(begun: Nanos, intended: Nanos, stop: Nanos, looks: bool) -> Nanos {
        let clock = Rc::new(Clock::simulated());
        let disk: Rc<dyn Disk> =
            MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
        let executor = Executor::new(clock, disk);
        let handle = executor.handle();
        let ended = executor.run(async move {
            let (wanted, stopping) = (Rc::new(Cell::new(true)), Rc::new(Notify::new()));
            let (told, heard, stopper) = (wanted.clone(), stopping.clone(), handle.clone());
            drop(handle.spawn(async move {
                stopper.sleep_until(stop).await;
                told.set(false);
                heard.notify_all();
            }));
            handle.sleep_until(begun).await;
            if looks {
                while wanted.get() && handle.now() < intended {
                    handle.sleep_until(intended.min(handle.now() + LOOK_EVERY_NS)).await;
                }
            } else {
                wait_for(&handle, intended, stopping.notified()).await;
            }
            handle.now()
        });
        ended.unwrap_or_default()
    }

    /// Whatever the moments are, a session goes on when it would have, had it looked all the time.
    #[test]
    fn a_session_that_sleeps_ends_when_one_that_looks_does() {
        let mut random = Random::from_seed(7);
        for _ in 0..200 {
            let begun = random.below(500 * MS);
            let intended = begun + random.below(700 * MS);
            let stop = begun + 1 + random.below(900 * MS);
            let wanted = ends(begun, intended, stop, true);
            assert_eq!(ends(begun, intended, stop, false), wanted, "{begun} {intended} {stop}");
        }
        // The load ends at the moment of a look.
        let [begun, intended, stop] = [10 * MS, 400 * MS, 160 * MS];
        assert_eq!(ends(begun, intended, stop, false), 160 * MS);
    }
}
