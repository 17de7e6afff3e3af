//! Asks every instance that can be audited whether what it holds is what was done to it, and waits
//! for the answer. Nothing may run meanwhile.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::events::Level;
use crate::outcome::{AuditResult, PhaseResult};
use crate::state::RunState;

pub async fn act(state: &mut RunState, name: &str) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    let mut audits = Vec::new();
    let backends = state.backends.borrow().clone();
    for (&number, backend) in &backends {
        let Some(able) = backend.audits() else {
            continue;
        };
        let started = state.run.handle.now();
        let report = able.audit().await?;
        let seconds = (state.run.handle.now() - started) as f64 / NANOS_PER_SECOND as f64;
        let instance = &state.spec.instances[number].name;
        for finding in &report.findings {
            state.run.report(Level::Error, "audit_failed", format!("{instance}: {finding}"));
        }
        if report.findings.is_empty() {
            let counts: Vec<_> = report
                .counts
                .iter()
                .map(|(what, count)| format!("{} {count}", what.replace('_', " ")))
                .collect();
            let text =
                format!("{instance} holds what it must in {seconds:.1} s: {}", counts.join(", "));
            state.run.report(Level::Info, "audited", text);
        }
        audits.push(AuditResult { instance: number as u32, seconds, report });
    }
    let audited = state.run.gather(!audits.is_empty()).await?;
    if !audited.contains(&true) {
        return Err(RunError::Spec(format!(
            "phase {name} audits, but no instance of the plan can be audited; take backend store, \
             or leave the phase out"
        )));
    }
    Ok(PhaseResult { databases: state.databases(), audits, ..PhaseResult::default() })
}
