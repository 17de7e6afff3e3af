//! Simulates what is described on standard input (JSON, a list of simulations) and prints the
//! outcomes as JSON.
//!
//! For looking at the model by hand; the product goes through its Python door.

#![expect(clippy::disallowed_methods, reason = "it measures on the real clock")]

use std::io::Read;

use plimsoll_array::source::{SimulationSpec, simulate};

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("standard input is text");
    let specs: Vec<SimulationSpec> = serde_json::from_str(&text).expect("a list of simulations");
    let mut outcomes = Vec::new();
    for spec in &specs {
        let started = std::time::Instant::now();
        match simulate(spec) {
            Ok(outcome) => {
                let wall_s = started.elapsed().as_secs_f64();
                eprintln!(
                    "{:.2} s, {:.0} requests/s, {:.1} M events/s",
                    wall_s,
                    outcome.request_count as f64 / wall_s,
                    outcome.event_count as f64 / wall_s / 1e6
                );
                outcomes.push(outcome);
            }
            Err(errors) => {
                eprintln!("{errors}");
                std::process::exit(1);
            }
        }
    }
    println!("{}", serde_json::to_string(&outcomes).expect("outcomes are plain data"));
}
