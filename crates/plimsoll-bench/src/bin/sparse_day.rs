//! A database of a terabyte under load in virtual time: simulated hours per wall hour, and what the
//! sparse disk keeps in memory.
//!
//! Sessions begin transactions of the 2010 mix at fixed intervals, so many that the database I/O
//! comes to about `iops`. Runs for `hours` of virtual time or `wall_seconds`, whichever ends first,
//! and says which time it really simulated. Prints one line of JSON.

use std::rc::Rc;
use std::time::Instant;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::counted::Counted;
use plimsoll_bench::field::{CHECKPOINT_DEPTH_BYTES, Field, MIX_2010, prepared_2010, record_tree};
use plimsoll_bench::load::{Load, Pace, finish};
use plimsoll_bench::processor::{memory_bytes, processor_ns, warn_of_debug_build};
use plimsoll_io::{
    Clock, Executor, Files, Handle, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Purpose, Random,
};
use plimsoll_prepare::PreparedContent;

const SESSIONS: u64 = 16;
/// Database reads and writes per transaction of the mix, measured; only the pace depends on it.
const OPERATIONS_PER_TRANSACTION: f64 = 1.29;
const HOUR_NS: f64 = 3600.0 * NANOS_PER_SECOND as f64;

#[derive(Clone, Copy)]
struct Setting {
    database_bytes: u64,
    cache_bytes: u64,
    iops: f64,
    hours: f64,
    wall_seconds: f64,
}

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [
        ("database_bytes", "1000000000000"),
        ("cache_mib", "256"),
        ("iops", "330"),
        ("read_ms", "12"),
        ("hours", "24"),
        ("wall_seconds", "300"),
    ];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let setting = Setting {
        database_bytes: arguments.number("database_bytes")?,
        cache_bytes: arguments.number("cache_mib")? << 20,
        iops: arguments.decimal("iops")?,
        hours: arguments.decimal("hours")?,
        wall_seconds: arguments.decimal("wall_seconds")?,
    };
    let clock = Rc::new(Clock::simulated());
    let page_latency = Latency::Constant(arguments.number("read_ms")? * NANOS_PER_MILLISECOND);
    let log_latency = Latency::Constant(NANOS_PER_MILLISECOND);
    let options = MemoryOptions {
        latency: LatencyPlan::of(page_latency)
            .with_purpose(Purpose::LogWrite, log_latency)
            .with_purpose(Purpose::LogFormat, log_latency),
        ..MemoryOptions::ram()
    };
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), options);
    let counted = Counted::new(disk.clone());
    let executor = Executor::new(clock, counted.clone());
    let (files, handle) = (Files::new(counted.clone()), executor.handle());
    let line = executor.run(simulate(setting, files, handle, disk, counted));
    println!("{}", line.map_err(|stalled| stalled.to_string())??);
    Ok(())
}

async fn simulate(
    setting: Setting,
    files: Files,
    handle: Handle,
    disk: Rc<MemoryDisk>,
    counted: Rc<Counted>,
) -> Result<String, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let field = Field {
        directory: "/field".into(),
        cache_bytes: setting.cache_bytes,
        checkpoint_depth_bytes: CHECKPOINT_DEPTH_BYTES,
    };
    let prepared = prepared_2010(setting.database_bytes).map_err(|error| text(&error))?;
    let path = field.database_path();
    disk.load_sparse(&path, prepared.file_bytes(), PreparedContent::sparse(&prepared));
    let tree = record_tree(&files, &handle, &path).await;
    let (instance, _) = field.open(&files, &handle).await.map_err(|error| text(&error))?;
    let load = Load::new(instance.clone(), handle.clone(), prepared.clone(), tree);
    let transactions_per_second = setting.iops / OPERATIONS_PER_TRANSACTION;
    let interval = (NANOS_PER_SECOND as f64 * SESSIONS as f64 / transactions_per_second) as u64;
    let sessions = load.start(SESSIONS, MIX_2010, Pace::Every(interval), 1);
    let (began, wall, spent) = (handle.now(), Instant::now(), processor_ns());
    let end = began + (setting.hours * HOUR_NS) as u64;
    // From the moment the cache is full only the disk's differences grow.
    let (cache, mut warm) = (&instance.store().cache, None);
    while handle.now() < end && wall.elapsed().as_secs_f64() < setting.wall_seconds {
        handle.sleep(NANOS_PER_SECOND.min(end - handle.now())).await;
        if warm.is_none() && cache.statistics().evictions > 0 {
            warm = Some((handle.now() - began, memory_bytes("VmRSS")));
        }
    }
    let (warm_ns, warm_bytes) = warm.unwrap_or((0, 0));
    let resident_bytes = memory_bytes("VmRSS");
    let simulated_ns = (handle.now() - began) as f64;
    let (wall_s, spent_s) = (wall.elapsed().as_secs_f64(), (processor_ns() - spent) as f64 / 1e9);
    let (counts, done) = (counted.counts(), load.done());
    load.stop();
    finish(sessions).await.map_err(|error| text(&error))?;
    instance.close().await.map_err(|error| text(&error))?;
    Ok(format!(
        "{{\"database_bytes\": {}, \"simulated_hours\": {:.4}, \"wall_s\": {wall_s:.1}, \
         \"processor_s\": {spent_s:.1}, \
         \"simulated_hours_per_wall_hour\": {:.1}, \"simulated_hours_per_processor_hour\": {:.1}, \
         \"database_iops\": {:.1}, \
         \"transactions\": {done}, \"database_reads\": {}, \"database_writes\": {}, \
         \"disk_stored_bytes\": {}, \
         \"resident_bytes\": {resident_bytes}, \"warm_hours\": {:.4}, \"warm_resident_bytes\": \
         {warm_bytes}, \
         \"resident_bytes_max\": {}}}",
        prepared.file_bytes(),
        simulated_ns / HOUR_NS,
        simulated_ns / 1e9 / wall_s,
        simulated_ns / 1e9 / spent_s,
        counts.database_operations() as f64 / (simulated_ns / 1e9),
        counts.database_reads,
        counts.database_writes,
        disk.stored_bytes(),
        warm_ns as f64 / HOUR_NS,
        memory_bytes("VmHWM"),
    ))
}
