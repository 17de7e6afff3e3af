//! Checks a database file as a whole and prints what was found, how fast, and how long others had
//! to wait at most.
//!
//! `deep_file PATH`

#![expect(clippy::disallowed_methods, reason = "it asks for a length before there is a disk")]

use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_io::{Caching, Clock, Executor, Files, RealDisk, RealDiskOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("the path is missing")?);
    let bytes = std::fs::metadata(&path)?.len();
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone())?;
    let files = Files::new(disk.clone());
    let executor = Executor::new(clock.clone(), disk);
    let handle = executor.handle();
    let started = clock.now();
    let report = executor
        .run(async move { verify_deep(&files, &handle, &path, DeepOptions::default()).await })??;
    let elapsed_ns = clock.now() - started;
    let statistics = executor.take_statistics();
    println!("{report:#?}");
    println!(
        "{:.2} s, {:.0} MB/s, polls: 99 % within {} us, longest {} us",
        elapsed_ns as f64 / 1e9,
        bytes as f64 / 1e6 / (elapsed_ns as f64 / 1e9),
        statistics.reap_gap.quantile_ns(0.99) / 1000,
        statistics.poll_ns_max / 1000
    );
    Ok(())
}
