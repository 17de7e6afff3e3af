//! How hard a workload presses: one way of several, told apart by their keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use plimsoll_workload::Spacing;

/// One way to load.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LoadSpec {
    /// Sessions that each do one transaction after the other.
    Sessions(SessionsSpec),
    /// Arrivals at a stated rate.
    Rate(RateSpec),
    /// Arrivals at the rate that makes so much database I/O.
    TargetIops(TargetIopsSpec),
    /// The highest rate of arrivals, or the most sessions, that keep the limits.
    Search(SearchSpec),
}

/// Sessions: for each database, or for all of them together.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionsSpec {
    /// How many.
    pub sessions: u32,
    /// Whether they are one pool over all databases.
    pub shared: bool,
}

/// Arrivals at a stated rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateSpec {
    /// Transactions per second.
    pub transactions_per_s: f64,
    /// How they are spaced.
    pub spacing: SpacingSpec,
    /// Open transactions at once, over all arrival loads of the run.
    pub sessions_max: u32,
    /// What comes of the rate in a measured phase, one stage after the other; absent: all of it.
    #[serde(default)]
    pub stages: Vec<StageSpec>,
}

/// Shorter stages would be without end in a phase.
const STAGE_S_MIN: f64 = 0.001;

/// A share of a rate for a while.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// The share.
    pub rate_percent: f64,
    /// How long.
    pub for_s: f64,
}

/// Arrivals whose rate follows from the database I/O of a transaction, measured while warming up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetIopsSpec {
    /// Database reads and writes per second.
    pub target_iops: f64,
    /// How arrivals are spaced.
    pub spacing: SpacingSpec,
    /// Open transactions at once, over all arrival loads of the run.
    pub sessions_max: u32,
    /// Database I/O of a transaction before any was measured.
    pub io_per_transaction_assumed: f64,
    /// How long one measurement of it takes.
    pub calibrate_s: f64,
    /// What comes of the rate in a measured phase, one stage after the other; absent: all of it.
    #[serde(default)]
    pub stages: Vec<StageSpec>,
}

/// A search for the highest rate, or for the most sessions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchSpec {
    /// What is looked for.
    pub search: SearchGoal,
    /// Sessions while warming up; their rate, or their number, is where the search begins.
    pub sessions: u32,
    /// Whether these sessions are one pool over all databases.
    pub shared: bool,
    /// How arrivals are spaced.
    pub spacing: SpacingSpec,
    /// Open transactions at once, over all arrival loads of the run.
    pub sessions_max: u32,
    /// How long one rate is measured.
    pub step_s: f64,
    /// How long a new rate runs before it is measured.
    pub settle_s: f64,
    /// The search ends when the lowest failing rate is this close above the highest passing one.
    pub tolerance_percent: f64,
    /// What a passing rate keeps.
    pub criteria: Vec<CriterionSpec>,
    /// The share of what was found that the load then stays at; absent: all of it.
    pub throughput_percent: Option<f64>,
    /// What completed transactions may fall short of those that arrived by, besides chance; absent:
    /// 2.
    pub shortfall_percent: Option<f64>,
}

/// What can be looked for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchGoal {
    /// The highest rate.
    Max,
    /// The most sessions: of each database, or in all where they are one pool. `sessions_max` is
    /// the highest number that is tried.
    MaxSessions,
}

/// A limit on one figure of every place that has it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CriterionSpec {
    /// What to call it.
    pub name: String,
    /// The metric that is looked at.
    pub metric: String,
    /// Which figure of it.
    pub statistic: StatisticSpec,
    /// The most it may be: milliseconds, or events per second.
    pub limit: f64,
}

/// A figure of a metric.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum StatisticSpec {
    /// The mean latency in milliseconds.
    Mean,
    /// The 95th percentile of latency in milliseconds.
    P95,
    /// The 99th percentile of latency in milliseconds.
    P99,
    /// Events per second.
    PerS,
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SpacingSpec {
    /// Independently.
    Poisson,
    /// Evenly.
    Regular,
}

impl SpacingSpec {
    /// The name used in texts.
    pub fn name(self) -> &'static str {
        match self {
            SpacingSpec::Poisson => "Poisson",
            SpacingSpec::Regular => "regular",
        }
    }
}

impl From<SpacingSpec> for Spacing {
    fn from(spec: SpacingSpec) -> Spacing {
        match spec {
            SpacingSpec::Poisson => Spacing::Poisson,
            SpacingSpec::Regular => Spacing::Regular,
        }
    }
}

impl LoadSpec {
    /// Sessions that are one pool over all databases, where there are such.
    pub fn pooled_sessions(&self) -> Option<u32> {
        match self {
            LoadSpec::Sessions(spec) if spec.shared => Some(spec.sessions),
            LoadSpec::Search(spec) if spec.shared => Some(spec.sessions),
            _ => None,
        }
    }

    /// Open transactions at once; zero where sessions bound themselves.
    pub fn sessions_max(&self) -> u32 {
        match self {
            LoadSpec::Sessions(_) => 0,
            LoadSpec::Rate(spec) => spec.sessions_max,
            LoadSpec::TargetIops(spec) => spec.sessions_max,
            LoadSpec::Search(spec) => spec.sessions_max,
        }
    }

    /// What comes of its rate in a measured phase, one after the other; none where all of it does.
    pub fn stages(&self) -> &[StageSpec] {
        match self {
            LoadSpec::Rate(spec) => &spec.stages,
            LoadSpec::TargetIops(spec) => &spec.stages,
            LoadSpec::Sessions(_) | LoadSpec::Search(_) => &[],
        }
    }

    /// Whether the database I/O of this load must be told from that of others.
    pub fn counts_database_io(&self) -> bool {
        matches!(self, LoadSpec::TargetIops(_) | LoadSpec::Search(_))
    }

    /// Whether the values are possible.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self) -> Result<(), String> {
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(format!("{name} is {value}; take a number above zero"))
            }
        };
        for stage in self.stages() {
            positive("rate_percent of a stage", stage.rate_percent)?;
            if !(stage.for_s.is_finite() && stage.for_s >= STAGE_S_MIN) {
                let given = stage.for_s;
                return Err(format!("for_s of a stage is {given}; take {STAGE_S_MIN} or more"));
            }
        }
        match self {
            LoadSpec::Sessions(spec) => positive("sessions", f64::from(spec.sessions)),
            LoadSpec::Rate(spec) => {
                positive("transactions_per_s", spec.transactions_per_s)?;
                positive("sessions_max", f64::from(spec.sessions_max))
            }
            LoadSpec::TargetIops(spec) => {
                positive("target_iops", spec.target_iops)?;
                positive("sessions_max", f64::from(spec.sessions_max))?;
                positive("io_per_transaction_assumed", spec.io_per_transaction_assumed)?;
                positive("calibrate_s", spec.calibrate_s)
            }
            LoadSpec::Search(spec) => {
                positive("sessions", f64::from(spec.sessions))?;
                positive("sessions_max", f64::from(spec.sessions_max))?;
                positive("step_s", spec.step_s)?;
                positive("tolerance_percent", spec.tolerance_percent)?;
                positive("throughput_percent", spec.throughput_percent.unwrap_or(100.0))?;
                positive("shortfall_percent", spec.shortfall_percent.unwrap_or(2.0))?;
                if spec.criteria.is_empty() {
                    return Err("a search needs at least one criterion".into());
                }
                for criterion in &spec.criteria {
                    positive("limit", criterion.limit)?;
                }
                Ok(())
            }
        }
    }
}
