//! What executor and engine cost: processor microseconds per database I/O on a RAM disk that
//! answers at once.
//!
//! The disk holds a prepared database `ratio` times the cache. The 2010 mix runs at full speed
//! until the cache is full and warm, then for `seconds`. Everything the process does in that time
//! is counted: transactions, the load that makes them up, log, write-back, checksums, and the
//! copying that stands for the disk. Memory that the files grow into is touched before. Prints one
//! line of JSON.

use std::rc::Rc;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::counted::Counted;
use plimsoll_bench::field::{
    CHECKPOINT_DEPTH_BYTES, Field, MIX_2010, SESSIONS_2010, prepared_2010, record_tree,
};
use plimsoll_bench::load::{Load, Pace, finish};
use plimsoll_bench::processor::{processor_ns, warn_of_debug_build};
use plimsoll_io::{
    Clock, Executor, Files, Handle, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Random,
};
use plimsoll_prepare::{WriteOptions, write_database};

#[derive(Clone, Copy)]
struct Setting {
    cache_bytes: u64,
    ratio: u64,
    seconds: f64,
    sessions: u64,
    touched_bytes: u64,
}

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [
        ("cache_mib", "64"),
        ("ratio", "32"),
        ("seconds", "10"),
        ("sessions", &*SESSIONS_2010.to_string()),
        ("touched_mib", "1536"),
    ];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let setting = Setting {
        cache_bytes: arguments.number("cache_mib")? << 20,
        ratio: arguments.number("ratio")?,
        seconds: arguments.decimal("seconds")?,
        sessions: arguments.number("sessions")?,
        touched_bytes: arguments.number("touched_mib")? << 20,
    };
    let clock = Rc::new(Clock::real());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    disk.create_directory("/field");
    let counted = Counted::new(disk);
    let executor = Executor::new(clock, counted.clone());
    let (files, handle) = (Files::new(counted.clone()), executor.handle());
    let line = executor.run(measure(setting, files, handle, counted));
    println!("{}", line.map_err(|stalled| stalled.to_string())??);
    Ok(())
}

/// Touches memory and gives it back to the program's allocator, for the files to grow into: what
/// the kernel (and the host of a virtual machine) takes to hand out a page for the first time is no
/// part of a device. What is returned keeps the allocator from giving it back.
fn touch_memory(bytes: u64) -> Vec<Box<[u8]>> {
    let piece_bytes = 32 << 10;
    let mut pieces: Vec<Box<[u8]>> =
        (0..bytes / piece_bytes).map(|_| vec![1; piece_bytes as usize].into()).collect();
    // The last one lies at the end of the heap.
    pieces.drain(..pieces.len().saturating_sub(1));
    pieces
}

async fn measure(
    setting: Setting,
    files: Files,
    handle: Handle,
    disk: Rc<Counted>,
) -> Result<String, String> {
    let field = Field {
        directory: "/field".into(),
        cache_bytes: setting.cache_bytes,
        checkpoint_depth_bytes: CHECKPOINT_DEPTH_BYTES,
    };
    let text = |error: &dyn std::error::Error| error.to_string();
    let prepared =
        prepared_2010(setting.cache_bytes * setting.ratio).map_err(|error| text(&error))?;
    let path = field.database_path();
    let written = write_database(&files, &handle, &path, &prepared, &WriteOptions::default()).await;
    written.map_err(|error| text(&error))?;
    let tree = record_tree(&files, &handle, &path).await;
    let (instance, _) = field.open(&files, &handle).await.map_err(|error| text(&error))?;
    let _keeps_the_heap = touch_memory(setting.touched_bytes);
    let load = Load::new(instance.clone(), handle.clone(), prepared, tree);
    let sessions = load.start(setting.sessions, MIX_2010, Pace::Sluggish(0.0), 1);
    let cache = &instance.store().cache;
    // Warm: every frame has been replaced once.
    while cache.statistics().evictions < cache.limits().frames_max as u64 {
        handle.sleep(NANOS_PER_SECOND / 100).await;
    }
    let (counts, done, spent, began) = (disk.counts(), load.done(), processor_ns(), handle.now());
    handle.sleep((setting.seconds * NANOS_PER_SECOND as f64) as u64).await;
    let counts = disk.counts().since(&counts);
    let (done, spent_ns, wall_ns) =
        (load.done() - done, processor_ns() - spent, handle.now() - began);
    load.stop();
    finish(sessions).await.map_err(|error| text(&error))?;
    instance.close().await.map_err(|error| text(&error))?;
    let operations = counts.database_operations();
    Ok(format!(
        "{{\"processor_us_per_database_io\": {:.3}, \"database_reads\": {}, \"database_writes\": \
         {}, \"transactions\": {done}, \
         \"processor_us_per_transaction\": {:.3}, \"log_writes\": {}, \"log_write_bytes\": {}, \
         \"processor_s\": {:.3}, \"wall_s\": {:.3}}}",
        spent_ns as f64 / 1e3 / operations as f64,
        counts.database_reads,
        counts.database_writes,
        spent_ns as f64 / 1e3 / done as f64,
        counts.log_writes,
        counts.log_write_bytes,
        spent_ns as f64 / 1e9,
        wall_ns as f64 / 1e9,
    ))
}
