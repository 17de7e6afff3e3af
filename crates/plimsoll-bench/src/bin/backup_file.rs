//! Reads a whole database on the real disk as a streaming backup does, to compare with fio reading
//! the same file.
//!
//! The instance is open and idle; the copy goes nowhere, so only reading and checking are measured.
//! Prints one line of JSON.

use std::rc::Rc;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::field::{CHECKPOINT_DEPTH_BYTES, Field};
use plimsoll_bench::processor::warn_of_debug_build;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_io::{Clock, Executor, Files, Handle, NANOS_PER_SECOND, RealDisk, RealDiskOptions};

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [("directory", "."), ("read_bytes", "1048576")];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let field = Field {
        directory: arguments.text("directory").into(),
        cache_bytes: 8 << 20,
        checkpoint_depth_bytes: CHECKPOINT_DEPTH_BYTES,
    };
    let read_bytes = arguments.number("read_bytes")? as usize;
    let clock = Rc::new(Clock::real());
    let disk = RealDisk::open(RealDiskOptions::default(), clock.clone())
        .map_err(|error| error.to_string())?;
    let executor = Executor::new(clock, disk.clone());
    let (files, handle) = (Files::new(disk), executor.handle());
    let line = executor.run(back_up(field, read_bytes, files, handle));
    println!("{}", line.map_err(|stalled| stalled.to_string())??);
    Ok(())
}

async fn back_up(
    field: Field,
    read_bytes: usize,
    files: Files,
    handle: Handle,
) -> Result<String, String> {
    let text = |error: plimsoll_engine::error::EngineError| error.to_string();
    let (instance, _) = field.open(&files, &handle).await.map_err(text)?;
    let began = handle.now();
    let mut backup = Backup::start(&instance, 1, read_bytes).map_err(text)?;
    while backup.next_chunk().await.map_err(text)?.is_some() {}
    let report = backup.finish().await.map_err(text)?;
    let seconds = (handle.now() - began) as f64 / NANOS_PER_SECOND as f64;
    drop(backup);
    instance.close().await.map_err(text)?;
    Ok(format!(
        "{{\"bytes\": {}, \"seconds\": {seconds:.4}, \"mib_per_s\": {:.1}}}",
        report.bytes,
        report.bytes as f64 / seconds / f64::from(1 << 20)
    ))
}
