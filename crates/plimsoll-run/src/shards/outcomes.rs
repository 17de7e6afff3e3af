//! Puts the outcomes of the shards together: the outcome is the one that a single thread would have
//! come to.

use crate::RunError;
use crate::outcome::{Ending, ErrorReport, PhaseOutcome, PhaseResult, RunOutcome};
use crate::recorder::PhaseFigures;
use crate::stalls::longest_of_phases;

/// All outcomes as one; `None` without any.
pub fn merged(outcomes: Vec<Option<RunOutcome>>, failure: Option<&RunError>) -> Option<RunOutcome> {
    let mut outcomes = outcomes.into_iter().flatten();
    let mut merged = outcomes.next()?;
    for other in outcomes {
        if other.io_method != merged.io_method {
            let text = format!("other threads did their I/O by {}", other.io_method);
            merged.io_remarks.push(text);
        }
        add_new(&mut merged.io_remarks, other.io_remarks);
        add_new(&mut merged.io_choices, other.io_choices);
        for phase in other.phases {
            let known = merged.phases.iter_mut().find(|known| known.name == phase.name);
            match known {
                Some(known) => add_phase(known, phase),
                None => merged.phases.push(phase),
            }
        }
        merged.stalls.extend(other.stalls);
        merged.figures.extend(other.figures);
    }
    merged.stalls = longest_of_phases(merged.stalls);
    merged.figures = PhaseFigures::merged(merged.figures);
    merged.ending = Ending::of(failure);
    merged.error = failure.map(ErrorReport::from);
    Some(merged)
}

fn add_new(known: &mut Vec<String>, others: Vec<String>) {
    for other in others {
        if !known.contains(&other) {
            known.push(other);
        }
    }
}

fn add_phase(known: &mut PhaseOutcome, other: PhaseOutcome) {
    known.end_ns = known.end_ns.max(other.end_ns);
    known.complete &= other.complete;
    let (into, from) = (&mut known.result, other.result);
    for (position, databases) in from.databases.into_iter().enumerate() {
        if into.databases.len() <= position {
            into.databases.resize_with(position + 1, Vec::new);
        }
        if !databases.is_empty() {
            into.databases[position] = databases;
        }
    }
    into.checksums.extend(from.checksums);
    into.backups.extend(from.backups);
    into.kept_logs.extend(from.kept_logs);
    into.restores.extend(from.restores);
    into.audits.extend(from.audits);
    into.recoveries.extend(from.recoveries);
    into.failovers.extend(from.failovers);
    sort(into);
    // What a search or a calibration found is the same on all shards; the first one's stands.
}

fn sort(result: &mut PhaseResult) {
    result.checksums.sort_by_key(|found| (found.instance, found.database));
    result.backups.sort_by_key(|found| (found.instance, found.database));
    result.kept_logs.sort_by_key(|found| found.instance);
    result.restores.sort_by_key(|found| found.instance);
    result.audits.sort_by_key(|found| found.instance);
    result.recoveries.sort_by_key(|found| found.instance);
    result.failovers.sort_by_key(|found| (found.died_ns, found.instance));
}
