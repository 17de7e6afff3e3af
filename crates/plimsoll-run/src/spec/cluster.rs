//! The nodes of a cluster: which instances each of them carries, and when one dies.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{PhaseAction, RunSpec};

/// The nodes that the instances of a run live on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterSpec {
    /// Its nodes.
    pub nodes: Vec<NodeSpec>,
    /// Those that die, in the order of time.
    pub deaths: Vec<NodeDeathSpec>,
}

/// A node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name in the plan.
    pub name: String,
    /// How many of its transactions are worked on at once, on a modelled array.
    pub processors: u32,
    /// The instances it carries at first.
    pub instances: Vec<String>,
}

/// A node that dies, and what becomes of its instances.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeDeathSpec {
    /// The event of the plan.
    pub event: String,
    /// The phase it happens in.
    pub phase: String,
    /// When, from the start of the phase.
    pub after_s: f64,
    /// Who dies.
    pub node: String,
    /// Who survives.
    pub to: String,
    /// What comes to the survivor.
    pub taken: Vec<TakenSpec>,
    /// Why the cluster stops, where too few votes are left; absent: it goes on.
    pub quorum_lost: Option<String>,
}

/// An instance on the survivor.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakenSpec {
    /// Which one.
    pub instance: String,
    /// Its cache never shrinks below this there.
    pub cache_bytes_min: u64,
    /// Its cache never grows above this there.
    pub cache_bytes_max: u64,
}

impl ClusterSpec {
    /// Whether an instance is on a node that dies.
    pub(crate) fn loses(&self, instance: &str) -> bool {
        let mut taken = self.deaths.iter().flat_map(|death| &death.taken);
        taken.any(|taken| taken.instance == instance)
    }

    /// Whether names and phases are those of the run.
    pub(super) fn check(&self, run: &RunSpec) -> Result<(), String> {
        let instances: BTreeSet<_> = run.instances.iter().map(|item| item.name.as_str()).collect();
        let mut placed = BTreeSet::new();
        for node in &self.nodes {
            for name in &node.instances {
                if !instances.contains(name.as_str()) || !placed.insert(name) {
                    return Err(format!(
                        "node {} carries instance {name}, which is on another node or not in the \
                         list",
                        node.name
                    ));
                }
            }
        }
        self.deaths.iter().try_for_each(|death| self.check_death(death, run))
    }

    fn check_death(&self, death: &NodeDeathSpec, run: &RunSpec) -> Result<(), String> {
        let event = &death.event;
        for name in [&death.node, &death.to] {
            if !self.nodes.iter().any(|node| &node.name == name) {
                return Err(format!("event {event} names node {name}, which is not in the list"));
            }
        }
        let placed: Vec<_> = self.nodes.iter().flat_map(|node| &node.instances).collect();
        if let Some(other) = death.taken.iter().find(|taken| !placed.contains(&&taken.instance)) {
            return Err(format!("event {event} takes {}, which is on no node", other.instance));
        }
        let phase = run.phases.iter().find(|phase| phase.name == death.phase);
        let loads = |action: &PhaseAction| {
            matches!(action, PhaseAction::Measure { .. } | PhaseAction::Soak { .. })
        };
        match phase {
            Some(phase) if loads(&phase.action) => Ok(()),
            _ => Err(format!(
                "event {event} is in phase {}, which does not measure or soak",
                death.phase
            )),
        }
    }
}
