//! The end of a measured phase: what its sessions still finish afterwards is not part of it.
//!
//! Why it matters: with many sessions behind a ceiling, hundreds of transfers end after the time
//! that they would be divided by.

use plimsoll_measure::metric_code;
use serde_json::json;

use super::support::*;

#[test]
fn what_drains_after_a_phase_counts_for_no_phase() {
    let mut plan = spec("raw_files", json!({"sessions": 400, "shared": false}), 15.0);
    plan["max_iops"] = json!(100.0);
    let ran = run_on(&constant(1_000_000), &plan);
    assert_eq!(ran.outcome.error.as_ref().map(|error| error.text.as_str()), None);
    let measured = &ran.outcome.phases[MEASURE as usize];
    let transfers = ["database_read", "database_write", "log_write"];
    let seconds = (measured.end_ns - measured.start_ns) as f64 / 1e9;
    assert!((seconds - 15.0).abs() < 0.2, "{seconds}");
    let of_distributions: u64 = transfers.iter().map(|metric| ran.count(metric)).sum();
    let per_s = of_distributions as f64 / seconds;
    assert!(per_s < 102.0, "{per_s}/s behind a ceiling of 100/s");
    let codes = transfers.map(|metric| metric_code(metric).expect("a metric"));
    let rows = || ran.rows.iter().filter(|row| codes.contains(&row.metric));
    let of_samples: u64 = rows().filter(|row| row.phase == MEASURE).map(|row| row.count).sum();
    assert_eq!(of_samples, of_distributions);
    let late = rows().filter(|row| row.phase == MEASURE && row.end_ns > measured.end_ns);
    assert_eq!(late.count(), 0, "samples end with their phase");
    // Nothing is lost: it stands in rows of its own, the second number after those of the phases.
    let between = plan["phases"].as_array().map_or(0, Vec::len) as u32 + 1;
    let drained: u64 = rows().filter(|row| row.phase == between).map(|row| row.count).sum();
    assert!(drained > 300, "{drained}");
}
