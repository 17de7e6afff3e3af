//! Two ways to a durable log write on the real disk: one write with RWF_DSYNC, or a write and then
//! fdatasync.
//!
//! Writes of `bytes`, one at a time, onto a file that was written before, as the log does; the ways
//! take turns in batches of `batch`, so that a slow moment of the disk hits both. Prints one line
//! of JSON with the median and the 99th percentile of each, in microseconds.

use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::processor::warn_of_debug_build;
use plimsoll_io::{
    Clock, Context, Durability, DurableBy, Executor, File, Files, Handle, Nanos, OpenMode, Purpose,
    RealDisk, RealDiskOptions,
};

const FILE_BYTES: u64 = 1 << 20;

#[derive(Clone)]
struct Setting {
    path: PathBuf,
    bytes: usize,
    batch: usize,
}

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [("directory", "."), ("bytes", "4096"), ("batch", "50"), ("batches", "40")];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let setting = Setting {
        path: PathBuf::from(arguments.text("directory")).join("durable.log"),
        bytes: arguments.number("bytes")? as usize,
        batch: arguments.number("batch")? as usize,
    };
    let mut taken: [Vec<Nanos>; 2] = Default::default();
    for number in 0..arguments.number("batches")? {
        let ways = [DurableBy::Flag, DurableBy::WriteThenSync];
        for place in if number % 2 == 0 { [0, 1] } else { [1, 0] } {
            taken[place].extend(batch(setting.clone(), ways[place])?);
        }
    }
    let [flag, sync] = taken.map(|mut taken_ns| {
        taken_ns.sort_unstable();
        let at = |part: f64| taken_ns[((taken_ns.len() - 1) as f64 * part) as usize] as f64 / 1e3;
        (at(0.5), at(0.99))
    });
    println!(
        "{{\"bytes\": {}, \"flag_us_median\": {:.1}, \"flag_us_p99\": {:.1}, \"sync_us_median\": \
         {:.1}, \"sync_us_p99\": {:.1}}}",
        setting.bytes, flag.0, flag.1, sync.0, sync.1
    );
    std::fs::remove_file(&setting.path).map_err(|error| error.to_string())
}

/// How long each write of a batch took.
fn batch(setting: Setting, durable_by: DurableBy) -> Result<Vec<Nanos>, String> {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { durable_by, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone()).map_err(|error| error.to_string())?;
    let executor = Executor::new(clock, disk.clone());
    let (files, handle) = (Files::new(disk), executor.handle());
    executor
        .run(write(setting, files, handle))
        .map_err(|stalled| stalled.to_string())?
        .map_err(|error| error.to_string())
}

async fn write(
    setting: Setting,
    files: Files,
    handle: Handle,
) -> Result<Vec<Nanos>, plimsoll_io::DiskError> {
    let context = Context::of(Purpose::LogWrite);
    let is_there = files.exists(&setting.path, context).await?;
    let mode = if is_there { OpenMode::Write } else { OpenMode::Create };
    let file = files.open(&setting.path, mode, context).await?;
    if !is_there {
        format(&file, context).await?;
    }
    let mut taken = Vec::with_capacity(setting.batch);
    let mut buffer = file.allocate(setting.bytes);
    for number in 0..setting.batch {
        let offset = (number * setting.bytes) as u64 % (FILE_BYTES - setting.bytes as u64);
        let offset = offset / setting.bytes as u64 * setting.bytes as u64;
        buffer.fill(number as u8);
        let began = handle.now();
        buffer = file.write(offset, buffer, Durability::Durable, context).await?;
        taken.push(handle.now() - began);
    }
    file.close(context).await?;
    Ok(taken)
}

async fn format(file: &File, context: Context) -> Result<(), plimsoll_io::DiskError> {
    file.extend(FILE_BYTES, context).await?;
    let mut buffer = file.allocate(FILE_BYTES as usize);
    buffer.fill(0);
    file.write(0, buffer, Durability::Volatile, context).await?;
    file.sync(context).await
}
