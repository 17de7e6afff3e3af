//! Faults by script and by chance: rules that pick operations and say what goes wrong with them.
//!
//! Every submitted operation is shown to the rules in order. Each rule counts the operations its
//! filter matches; the first rule that wants to act decides. The effects and their exact meaning
//! are listed in `docs/reference/fault-model.md`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{Context, DiskErrorKind, InstanceId, Nanos, OperationKind, Purpose, Random};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The operation fails and nothing is changed.
    Fail(DiskErrorKind),
    /// A write fails after some of its atomic units were stored.
    FailPartly(DiskErrorKind),
    /// Service takes this many times as long.
    Slow(u64),
    /// Completion comes this much later.
    Delay(Nanos),
    /// It never completes.
    Hang,
    /// A write is acknowledged and not stored.
    LoseWrite,
    /// A write is acknowledged and only some of its atomic units are stored.
    TearWrite,
    /// A write goes to another place of the same file.
    MisdirectWithinFile,
    /// A write goes to the same or another place of another file.
    MisdirectToOtherFile,
    /// A read returns one wrong bit; the stored bytes are right.
    FlipOnRead,
    /// One bit of the range changes on the medium, after a write or before a read.
    FlipStored,
    /// One sector of the range cannot be read from now on, until it is written again.
    LoseSector,
    /// A sync of a file or directory is acknowledged and not done; a durable write is only
    /// volatile.
    SkipSync,
    /// The power is cut when the operation has been submitted.
    CutPowerWhenSubmitted,
    /// The power is cut when the operation has taken effect, before its completion is delivered.
    CutPowerWhenDone,
}

impl Effect {
    /// The name in counters and traces.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Fail(_) => "fail",
            Effect::FailPartly(_) => "fail_partly",
            Effect::Slow(_) => "slow",
            Effect::Delay(_) => "delay",
            Effect::Hang => "hang",
            Effect::LoseWrite => "lose_write",
            Effect::TearWrite => "tear_write",
            Effect::MisdirectWithinFile => "misdirect_within_file",
            Effect::MisdirectToOtherFile => "misdirect_to_other_file",
            Effect::FlipOnRead => "flip_on_read",
            Effect::FlipStored => "flip_stored",
            Effect::LoseSector => "lose_sector",
            Effect::SkipSync => "skip_sync",
            Effect::CutPowerWhenSubmitted => "cut_power_when_submitted",
            Effect::CutPowerWhenDone => "cut_power_when_done",
        }
    }

    fn concerns(self, kind: OperationKind) -> bool {
        use OperationKind::{Read, SyncDirectory, SyncFile, Write};
        match self {
            Effect::FlipOnRead => kind == Read,
            Effect::FlipStored | Effect::LoseSector => matches!(kind, Read | Write),
            Effect::SkipSync => matches!(kind, SyncFile | SyncDirectory | Write),
            Effect::FailPartly(_)
            | Effect::LoseWrite
            | Effect::TearWrite
            | Effect::MisdirectWithinFile
            | Effect::MisdirectToOtherFile => kind == Write,
            _ => true,
        }
    }
}

/// Which operations a rule looks at; everything not named matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this kind.
    pub kind: Option<OperationKind>,
    /// Only this purpose.
    pub purpose: Option<Purpose>,
    /// Only this instance.
    pub instance: Option<InstanceId>,
    /// Only this database.
    pub database: Option<u8>,
    /// Only files and directories whose path contains this.
    pub path_part: Option<String>,
}

impl Filter {
    fn matches(&self, kind: OperationKind, context: &Context, path: &Path) -> bool {
        let path_fits = |part: &String| path.to_string_lossy().contains(part.as_str());
        self.kind.is_none_or(|wanted| wanted == kind)
            && self.purpose.is_none_or(|wanted| wanted == context.purpose)
            && self.instance.is_none_or(|wanted| wanted == context.instance)
            && self.database.is_none_or(|wanted| wanted == context.database)
            && self.path_part.as_ref().is_none_or(path_fits)
    }
}

/// When something goes wrong, and what.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// Which operations.
    pub filter: Filter,
    /// Only operations submitted at or after this time.
    pub from_ns: Nanos,
    /// Only operations submitted before this time.
    pub until_ns: Nanos,
    /// Let this many matching operations pass first.
    pub skip: u64,
    /// Act at most this often.
    pub limit: u64,
    /// Act on a matching operation with this probability.
    pub probability: f64,
    /// What happens.
    pub effect: Effect,
}

impl FaultRule {
    /// Every operation the effect makes sense for.
    pub fn new(effect: Effect) -> Self {
        Self {
            filter: Filter::default(),
            from_ns: 0,
            until_ns: Nanos::MAX,
            skip: 0,
            limit: u64::MAX,
            probability: 1.0,
            effect,
        }
    }

    /// Only operations of this kind.
    pub fn with_kind(mut self, kind: OperationKind) -> Self {
        self.filter.kind = Some(kind);
        self
    }

    /// Only operations with this purpose.
    pub fn with_purpose(mut self, purpose: Purpose) -> Self {
        self.filter.purpose = Some(purpose);
        self
    }

    /// Only files and directories whose path contains `part`.
    pub fn with_path_part(mut self, part: &str) -> Self {
        self.filter.path_part = Some(part.to_owned());
        self
    }

    /// Only the n-th matching operation, counted from 1.
    pub fn nth(mut self, nth: u64) -> Self {
        (self.skip, self.limit) = (nth.saturating_sub(1), 1);
        self
    }

    /// With this probability.
    pub fn with_probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    /// Only operations submitted in this span of time.
    pub fn between(mut self, from_ns: Nanos, until_ns: Nanos) -> Self {
        (self.from_ns, self.until_ns) = (from_ns, until_ns);
        self
    }
}

struct Armed {
    rule: FaultRule,
    matched: u64,
    acted: u64,
}

/// The rules of one disk and what they did.
#[derive(Default)]
pub(crate) struct Injector {
    rules: Vec<Armed>,
    injected: BTreeMap<&'static str, u64>,
}

impl Injector {
    pub(crate) fn add(&mut self, rule: FaultRule) {
        self.rules.push(Armed { rule, matched: 0, acted: 0 });
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.rules.is_empty()
    }

    pub(crate) fn injected(&self) -> &BTreeMap<&'static str, u64> {
        &self.injected
    }

    pub(crate) fn decide(
        &mut self,
        kind: OperationKind,
        context: &Context,
        path: &Path,
        now: Nanos,
        random: &mut Random,
    ) -> Option<Effect> {
        let mut decision = None;
        for armed in &mut self.rules {
            let rule = &armed.rule;
            let in_time = (rule.from_ns..rule.until_ns).contains(&now);
            if !in_time || !rule.effect.concerns(kind) || !rule.filter.matches(kind, context, path)
            {
                continue;
            }
            armed.matched += 1;
            let may_act = armed.matched > rule.skip && armed.acted < rule.limit;
            if decision.is_none() && may_act && random.chance(rule.probability) {
                armed.acted += 1;
                decision = Some(rule.effect);
                *self.injected.entry(rule.effect.name()).or_default() += 1;
            }
        }
        decision
    }
}
