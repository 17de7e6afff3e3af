//! A node dies while loads run: its instances are dropped as by a crash, and opened again on the
//! survivor with the cache that is left for them there. Each replays its log before it is spoken
//! to. What its clients were told is carried over, so that an audit can hold it against what is
//! there.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_SECOND, Nanos};

use crate::RunError;
use crate::backend::{Backend, Crashes, OpenBackends, unable};
use crate::context::RunContext;
use crate::events::Level;
use crate::family::Families;
use crate::outcome::Failover;
use crate::spec::{ClusterSpec, InstanceSpec, NodeDeathSpec, RunSpec, TakenSpec};
use crate::state::RunState;

/// Lets the nodes die that the phase is to lose, each at its time.
pub fn schedule(state: &RunState, phase: &str) {
    let Some(cluster) = &state.spec.cluster else { return };
    let begun = state.run.handle.now();
    for death in cluster.deaths.iter().filter(|death| death.phase == phase) {
        let takeover = Takeover {
            spec: state.spec.clone(),
            run: state.run.clone(),
            families: state.families.clone(),
            backends: state.backends.clone(),
        };
        let at = begun + (death.after_s * NANOS_PER_SECOND as f64) as Nanos;
        drop(state.run.handle.spawn(takeover.at(at, cluster.clone(), death.clone())));
    }
}

/// Opens instances as a crash has left them, all at once; those that could be opened are put among
/// the open ones.
///
/// # Errors
/// The first error that one of them met.
pub async fn open_crashed(
    run: &RunContext,
    families: &Families,
    backends: &OpenBackends,
    instances: impl IntoIterator<Item = (usize, InstanceSpec)>,
) -> Result<(), RunError> {
    let mut tasks = Vec::new();
    for (number, instance) in instances {
        let (run, families) = (run.clone(), families.clone());
        let family = families.of_instance(&instance).map_err(RunError::Spec)?;
        let crashed = family.as_crashed(&instance);
        let handle = run.handle.clone();
        let opening = async move { families.open(&run, number as u16, &crashed).await };
        tasks.push((number, handle.spawn(opening)));
    }
    let mut first_error = None;
    for (number, task) in tasks {
        match task.await {
            Ok(backend) => drop(backends.borrow_mut().insert(number, backend)),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

struct Takeover {
    spec: Rc<RunSpec>,
    run: RunContext,
    families: Families,
    backends: OpenBackends,
}

impl Takeover {
    async fn at(self, at: Nanos, cluster: ClusterSpec, death: NodeDeathSpec) {
        let nodes = self.run.nodes.clone();
        let phase = nodes.phase();
        self.run.handle.sleep_until(at).await;
        if nodes.begin(phase) {
            nodes.end(self.happens(&cluster, &death).await);
        }
    }

    async fn happens(&self, cluster: &ClusterSpec, death: &NodeDeathSpec) -> Result<(), RunError> {
        let died_ns = self.run.handle.now();
        let taken = self.taken(death);
        let numbers = taken.iter().map(|(number, _)| *number);
        let (coming, alive): (Vec<_>, Vec<_>) =
            numbers.partition(|number| self.run.nodes.is_down(*number));
        let text = format!("node {} died; what it carried comes to {}", death.node, death.to);
        self.run.report_once(Level::Info, "node_died", text);
        let mut memories = BTreeMap::new();
        for numbers in [alive, coming] {
            // What is still being opened on the node that dies dies when it is open.
            self.run.nodes.arrived(&numbers).await?;
            self.run.nodes.kill(&numbers).await;
            for number in numbers {
                let crashing = self.crashing(number)?;
                self.backends.borrow_mut().remove(&number);
                memories.insert(number, crashing.abandon().await?);
            }
        }
        if let Some(why) = &death.quorum_lost {
            return Err(RunError::QuorumLost(why.clone()));
        }
        let on_survivor =
            taken.iter().map(|(number, taken)| (*number, self.limited(*number, taken)));
        open_crashed(&self.run, &self.families, &self.backends, on_survivor).await?;
        let to = cluster.nodes.iter().position(|node| node.name == death.to).unwrap_or_default();
        for (number, taken) in taken {
            let lost_count = self.run.nodes.lost_count(number);
            let crashing = self.crashing(number)?;
            memories.remove(&number).into_iter().for_each(|it| crashing.remember(it, lost_count));
            let failover = Failover {
                event: death.event.clone(),
                instance: number as u32,
                node: death.node.clone(),
                to: death.to.clone(),
                died_ns,
                opened_ns: self.run.handle.now(),
                served_ns: None,
                lost_count,
                cache_bytes_max: taken.cache_bytes_max,
                recovery: self.backends.borrow()[&number].recovery(),
            };
            self.run.nodes.revive(number, to, failover);
            let seconds = (self.run.handle.now() - died_ns) as f64 / NANOS_PER_SECOND as f64;
            let text = format!(
                "instance {} is back on node {} after {seconds:.1} s, with a cache of {} MiB; \
                 {lost_count} operations were lost",
                self.spec.instances[number].name,
                death.to,
                taken.cache_bytes_max >> 20
            );
            self.run.report(Level::Info, "node_taken_over", text);
        }
        Ok(())
    }

    /// What of the node is this shard's.
    fn taken<'a>(&self, death: &'a NodeDeathSpec) -> Vec<(usize, &'a TakenSpec)> {
        let own = self.run.shard.own(&self.spec.instances);
        own.filter_map(|(number, instance)| {
            let found = death.taken.iter().find(|taken| taken.instance == instance.name)?;
            Some((number, found))
        })
        .collect()
    }

    fn crashing(&self, number: usize) -> Result<Rc<dyn Crashes>, RunError> {
        let open: Option<Rc<dyn Backend>> = self.backends.borrow().get(&number).cloned();
        let crashing = open.and_then(Backend::crashes);
        crashing.ok_or_else(|| unable(&self.spec.instances[number]))
    }

    /// An instance with the cache that the survivor has for it.
    fn limited(&self, number: usize, taken: &TakenSpec) -> InstanceSpec {
        let mut instance = self.spec.instances[number].clone();
        let limits = [
            ("cache_bytes_min", taken.cache_bytes_min),
            ("cache_bytes_max", taken.cache_bytes_max),
        ];
        for (key, bytes) in limits {
            instance.options.insert(key.into(), bytes.into());
        }
        instance
    }
}
