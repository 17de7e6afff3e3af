//! Passive copies that replay the log later than it is written: what a lag keeps on the volume of
//! the logs. No copy is made. Each one is a durable hold on the log that moves on with the run, so
//! the engine deletes what no copy needs any more, and nothing before.
//!
//! A copy needs the generation that was written when its lag began, and all after it. Generations
//! that were there before the instance was opened count as written at its opening: after a crash a
//! copy keeps log for longer than it would have to, never for less long.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_io::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};

use super::spec::{LaggedCopySpec, RecordsInstance};

/// How holds of such copies are called, before their own name.
const HOLD_PREFIX: &str = "lagged copy ";
/// How often the log's tip is looked at.
const LOOK_EVERY_NS: Nanos = 500 * NANOS_PER_MILLISECOND;
/// The hold moves in steps of this part of the lag: each move is a durable write.
const STEPS_OF_LAG: u64 = 20;

/// How far a copy is behind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lag {
    /// What was written so long ago is replayed.
    Time(Nanos),
    /// So many closed generations are not replayed.
    Generations(u32),
}

impl Lag {
    /// What a spec says.
    ///
    /// # Errors
    /// When it says both, neither, or nothing that can be waited for.
    pub fn of(spec: &LaggedCopySpec) -> Result<Lag, String> {
        match (spec.lag_s, spec.lag_logs) {
            (Some(seconds), None) if seconds.is_finite() && seconds > 0.0 => {
                Ok(Lag::Time((seconds * NANOS_PER_SECOND as f64) as Nanos))
            }
            (None, Some(logs)) if logs > 0 => Ok(Lag::Generations(logs)),
            (lag_s, lag_logs) => Err(format!(
                "lagged copy {} has lag_s = {lag_s:?} and lag_logs = {lag_logs:?}; give one of \
                 them, above zero",
                spec.name
            )),
        }
    }

    /// How long the durable hold may stay where it is.
    fn step_ns(self) -> Nanos {
        match self {
            Lag::Time(ns) => ns / STEPS_OF_LAG,
            Lag::Generations(_) => 0,
        }
    }

    /// By how many generations the durable hold may stay behind.
    fn step_generations(self) -> u32 {
        match self {
            Lag::Time(_) => 1,
            Lag::Generations(logs) => (logs / STEPS_OF_LAG as u32).max(1),
        }
    }
}

/// Where a copy has come to, by what is seen of the log.
struct Replay {
    lag: Lag,
    /// The first generation that it needs.
    needs_from: u32,
    /// When the log was first seen to have come to which generation, the oldest first.
    seen: VecDeque<(Nanos, u32)>,
}

impl Replay {
    fn new(lag: Lag, needs_from: u32) -> Replay {
        Replay { lag, needs_from, seen: VecDeque::new() }
    }

    /// The log has come to `tip`: the first generation that the copy needs now.
    fn look(&mut self, now: Nanos, tip: u32) -> u32 {
        let reached = match self.lag {
            Lag::Generations(logs) => tip.saturating_sub(logs),
            Lag::Time(lag_ns) => {
                if self.seen.back().is_none_or(|(_, seen)| *seen < tip) {
                    self.seen.push_back((now, tip));
                }
                let mut reached = 0;
                while let Some(&(at, generation)) = self.seen.front()
                    && now - at >= lag_ns
                {
                    reached = generation;
                    self.seen.pop_front();
                }
                reached
            }
        };
        self.needs_from = self.needs_from.max(reached);
        self.needs_from
    }
}

/// A copy that follows, and what came of it.
pub struct LaggedCopy {
    name: String,
    lag: Lag,
    /// The first generation that it needs; zero before it follows.
    pub needs_from: Cell<u32>,
    /// The most generations that were kept for it, the current one included.
    pub kept_max: Cell<u32>,
    /// Whether its lag has passed, so that log of this run was let go.
    pub has_replayed: Cell<bool>,
    /// Set to end it.
    pub stop: Cell<bool>,
}

impl fmt::Display for LaggedCopy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached = match self.has_replayed.get() {
            true => "its lag was reached",
            false => "the run was too short for its lag",
        };
        let (name, kept) = (&self.name, self.kept_max.get());
        write!(
            formatter,
            "lagged copy {name} needs log from generation {} on; up to {kept} MiB of log were \
             kept for it, and {reached}",
            self.needs_from.get()
        )
    }
}

impl LaggedCopy {
    /// A copy as the spec wants it.
    ///
    /// # Errors
    /// As [`Lag::of`].
    pub fn new(spec: &LaggedCopySpec) -> Result<LaggedCopy, String> {
        Ok(LaggedCopy {
            name: spec.name.clone(),
            lag: Lag::of(spec)?,
            needs_from: Cell::new(0),
            kept_max: Cell::new(0),
            has_replayed: Cell::new(false),
            stop: Cell::new(false),
        })
    }

    fn hold_name(&self) -> String {
        format!("{HOLD_PREFIX}{}", self.name)
    }

    /// Follows the log until it is told to stop or the instance closes. The hold stays then.
    ///
    /// # Errors
    /// What moving the hold meets.
    pub async fn follow(self: Rc<Self>, instance: Rc<Instance>) -> Result<(), EngineError> {
        let store = instance.store().clone();
        let name = self.hold_name();
        let held = held_by(&instance, &name);
        let first = held.unwrap_or_else(|| store.log.tip().generation);
        self.needs_from.set(first);
        if held.is_none() {
            instance.hold_log_durably(&name, first).await?;
        }
        let mut replay = Replay::new(self.lag, first);
        let (mut moved_to, mut moved_at) = (first, store.handle.now());
        while !(self.stop.get() || store.log.is_stopped()) {
            let (now, tip) = (store.handle.now(), store.log.tip().generation);
            let needs_from = replay.look(now, tip);
            self.needs_from.set(needs_from);
            self.kept_max.set(self.kept_max.get().max(tip - needs_from + 1));
            let is_far = needs_from - moved_to >= self.lag.step_generations();
            if is_far && now - moved_at >= self.lag.step_ns() {
                match instance.hold_log_durably(&name, needs_from).await {
                    Err(EngineError::Closing) => return Ok(()),
                    moved => moved?,
                }
                (moved_to, moved_at) = (needs_from, now);
                self.has_replayed.set(true);
            }
            store.log.check()?;
            store.handle.sleep(LOOK_EVERY_NS).await;
        }
        Ok(())
    }
}

/// The copies that an instance wants.
///
/// # Errors
/// As [`Lag::of`], and where two are called alike.
pub fn lagged_copies_of(settings: &RecordsInstance) -> Result<Vec<Rc<LaggedCopy>>, String> {
    let specs = settings.lagged_copies.as_deref().unwrap_or_default();
    let mut copies: Vec<Rc<LaggedCopy>> = Vec::new();
    for spec in specs {
        if copies.iter().any(|copy| copy.name == spec.name) {
            return Err(format!("two lagged copies are called {}; rename one", spec.name));
        }
        copies.push(Rc::new(LaggedCopy::new(spec)?));
    }
    Ok(copies)
}

/// The first generation that a durable hold of this name keeps.
fn held_by(instance: &Instance, name: &str) -> Option<u32> {
    let mut holds = instance.holds().into_iter();
    holds.find(|hold| hold.is_durable && hold.name == name).map(|hold| hold.generation)
}

/// Ends the holds of lagged copies, but for those in `but`: the copies of a run end with it, and
/// what a killed run left is of no use to one that has no such copy.
///
/// # Errors
/// What writing meets.
pub async fn release_all(
    instance: &Rc<Instance>,
    but: &[Rc<LaggedCopy>],
) -> Result<(), EngineError> {
    for hold in instance.holds() {
        let is_kept = but.iter().any(|copy| copy.hold_name() == hold.name);
        if hold.is_durable && hold.name.starts_with(HOLD_PREFIX) && !is_kept {
            instance.release_durably(&hold.name).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a copy needs decides what is deleted: one generation too far, and it could not go on.
    #[test]
    fn a_copy_needs_what_was_written_when_its_lag_began() {
        let seconds = |count: u64| count * NANOS_PER_SECOND;
        let mut replay = Replay::new(Lag::Time(seconds(10)), 5);
        for (at, tip, needs_from) in [
            (0, 5, 5),
            (4, 8, 5),
            (9, 12, 5),
            // What was written by second 0 and 4 is replayed; generation 8 was not closed then.
            (10, 12, 5),
            (14, 13, 8),
            (18, 13, 8),
            (19, 13, 12),
            // Nothing was written since: the copy comes to the tip and needs the open generation.
            (60, 13, 13),
        ] {
            assert_eq!(replay.look(seconds(at), tip), needs_from, "at {at} s");
        }
    }

    /// The rule of the sizing: all after the newest closed generation less the lag.
    #[test]
    fn a_lag_in_generations_keeps_so_many_closed_ones() {
        let mut replay = Replay::new(Lag::Generations(4), 7);
        for (tip, needs_from) in [(7, 7), (10, 7), (11, 7), (12, 8), (30, 26)] {
            assert_eq!(replay.look(0, tip), needs_from, "at generation {tip}");
        }
    }

    /// A copy that a killed run left behind keeps its log: what was there counts as written now.
    #[test]
    fn what_was_held_before_stays_held_for_a_whole_lag() {
        let mut replay = Replay::new(Lag::Time(10), 3);
        assert_eq!((replay.look(100, 9), replay.look(109, 12)), (3, 3));
        assert_eq!(replay.look(110, 12), 9);
    }
}
