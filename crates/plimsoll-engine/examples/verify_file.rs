//! Verifies files on the real disk and prints one line per file, to compare this crate with fio
//! reading the same file:
//!
//!     verify_file READ_BYTES READS_OUTSTANDING FILE...
//!
//! The files should not be in the operating system's cache; direct I/O sees to that unless the file
//! system refuses it.

use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::verify::{FileReport, VerifyOptions, verify};
use plimsoll_io::{Clock, Disk, Executor, Files, RealDisk, RealDiskOptions};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let numbers = (
        arguments.next().and_then(|text| text.parse().ok()),
        arguments.next().and_then(|text| text.parse().ok()),
    );
    let (Some(read_bytes), Some(reads_outstanding)) = numbers else {
        eprintln!("usage: verify_file READ_BYTES READS_OUTSTANDING FILE...");
        std::process::exit(2);
    };
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let options = VerifyOptions { read_bytes, reads_outstanding, ..VerifyOptions::default() };
    let clock = Rc::new(Clock::real());
    let disk = match RealDisk::open(RealDiskOptions::default(), clock.clone()) {
        Ok(disk) => disk,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    let executor = Executor::new(clock, disk.clone());
    let (files, handle) = (Files::new(disk.clone()), executor.handle());
    let work = async move { verify(&files, &handle, &paths, &options).await };
    let report = executor.run(work).expect("a real disk answers or the process waits");
    report.files.iter().for_each(print);
    let statistics = executor.take_statistics();
    println!(
        "{}; {} polls, the longest {} us, busy {} ms",
        disk.facts().method,
        statistics.polls,
        statistics.poll_ns_max / 1000,
        statistics.busy_ns / 1_000_000
    );
    std::process::exit(i32::from(!report.is_sound()));
}

fn print(file: &FileReport) {
    println!(
        "{} {:?} pages_seen={} bad={} correctable={} wrong_page_number={} uninitialized={} \
         unreadable={} seconds={:.3} mib_per_s={:.1} {}",
        file.path.display(),
        file.verdict,
        file.pages_seen,
        file.bad,
        file.correctable,
        file.wrong_page_number,
        file.uninitialized,
        file.unreadable,
        file.seconds,
        file.mib_per_s,
        file.error.as_deref().unwrap_or_default()
    );
}
