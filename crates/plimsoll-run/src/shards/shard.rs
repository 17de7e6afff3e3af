//! A shard as the code of a run knows it: which part of the plan is its own, and how it meets the
//! others.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::board::Board;
use super::message::Message;
use crate::RunError;
use crate::spec::{InstanceSpec, RunSpec, WorkloadSpec};

/// See the module text.
#[derive(Clone)]
pub struct Shard {
    number: usize,
    /// The shard of each instance, by its position in the plan; empty where one shard has all.
    of_instances: Rc<[usize]>,
    others: Option<Others>,
}

#[derive(Clone)]
struct Others {
    count: usize,
    board: Arc<Board>,
    messages: Sender<Message>,
}

impl Shard {
    /// The one shard of a run on one thread.
    pub fn only() -> Shard {
        Shard { number: 0, of_instances: Rc::new([]), others: None }
    }

    /// One of several.
    pub fn one_of(
        of_instances: &[usize],
        number: usize,
        board: Arc<Board>,
        messages: Sender<Message>,
        count: usize,
    ) -> Shard {
        let others = Others { count, board, messages };
        Shard { number, of_instances: of_instances.into(), others: Some(others) }
    }

    /// Its position.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its number among several threads, counted from 1, as samples name it.
    pub fn thread(&self) -> Option<u32> {
        self.others.as_ref().map(|_| self.number as u32 + 1)
    }

    /// Whether it carries the whole run.
    pub fn is_only(&self) -> bool {
        self.others.is_none()
    }

    /// Whether it speaks for all.
    pub fn is_first(&self) -> bool {
        self.number == 0
    }

    /// What it shares with the others, if there are any.
    pub fn board(&self) -> Option<&Board> {
        self.others.as_ref().map(|others| others.board.as_ref())
    }

    /// Sends to the thread that puts the shards together, if there is one.
    pub fn send(&self, message: Message) {
        if let Some(others) = &self.others {
            // That thread waits for all shards; without it nobody is left to hear.
            drop(others.messages.send(message));
        }
    }

    /// Whether the instance at this position of the plan is its own.
    pub fn owns(&self, instance: usize) -> bool {
        self.others.is_none() || self.of_instances[instance] == self.number
    }

    /// Its instances with their positions.
    pub fn own<'a>(
        &'a self,
        instances: &'a [InstanceSpec],
    ) -> impl Iterator<Item = (usize, &'a InstanceSpec)> {
        instances.iter().enumerate().filter(|(position, _)| self.owns(*position))
    }

    /// What of a load falls to each shard: its databases by the weights of their instances.
    fn weights(&self, spec: &RunSpec, workload: Option<&WorkloadSpec>) -> Vec<f64> {
        let count = self.others.as_ref().map_or(1, |others| others.count);
        let mut weights = vec![0.0; count];
        for (position, instance) in spec.instances.iter().enumerate() {
            if workload.is_none_or(|workload| workload.instances.contains(&instance.name)) {
                let shard = self.of_instances.get(position).copied().unwrap_or(0);
                weights[shard] += instance.weight.unwrap_or(1.0) * instance.databases.len() as f64;
            }
        }
        weights
    }

    /// Its share of a workload, from 0 to 1.
    pub fn share(&self, spec: &RunSpec, workload: &WorkloadSpec) -> f64 {
        if self.is_only() {
            return 1.0;
        }
        let weights = self.weights(spec, Some(workload));
        weights[self.number] / weights.iter().sum::<f64>()
    }

    /// Its share of all that the run holds, from 0 to 1.
    pub fn share_of_all(&self, spec: &RunSpec) -> f64 {
        if self.is_only() {
            return 1.0;
        }
        let weights = self.weights(spec, None);
        weights[self.number] / weights.iter().sum::<f64>()
    }

    /// Its part of so many sessions of a workload, or of all workloads together.
    pub fn part(&self, count: u32, spec: &RunSpec, workload: Option<&WorkloadSpec>) -> u32 {
        match self.is_only() {
            true => count,
            false => split(count, &self.weights(spec, workload))[self.number],
        }
    }

    /// Notes what ended it and asks the others to stop; whether that ended the run.
    pub fn fail(&self, error: &RunError) -> bool {
        self.board().is_none_or(|board| board.fail(error))
    }
}

/// Whole parts by weight that add up to `count`: the largest remainders are rounded up.
pub fn split(count: u32, weights: &[f64]) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|weight| f64::from(count) * weight / total).collect();
    let mut parts: Vec<u32> = exact.iter().map(|part| part.floor() as u32).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|left, right| exact[*right].fract().total_cmp(&exact[*left].fract()));
    let missing = count - parts.iter().sum::<u32>();
    for shard in order.into_iter().take(missing as usize) {
        parts[shard] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn parts_add_up_and_follow_the_weights() {
        let check =
            |count, weights: &[f64], expected: &[u32]| assert_eq!(split(count, weights), expected);
        check(7, &[1.0, 1.0], &[4, 3]);
        check(10, &[3.0, 1.0], &[8, 2]);
        check(5, &[1.0, 0.0, 1.0], &[3, 0, 2]);
        check(1, &[1.0, 1.0, 1.0], &[1, 0, 0]);
        check(100, &[0.2, 0.2, 0.6], &[20, 20, 60]);
    }
}
