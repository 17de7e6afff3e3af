//! Writes a prepared database to a new file and prints what it holds as JSON, for the reader tests
//! and for measuring.
//!
//! `prepare_file PATH PAGE_BYTES (records=N | bytes=N) [seed=N] [database=N] [every=N
//! value_bytes=N] [compressible=N] [block=BYTES] [depth=N]`

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::PageSize;
use plimsoll_io::{Caching, Clock, Disk, Executor, Files, RealDisk, RealDiskOptions};
use plimsoll_prepare::{
    Extent, LongValues, Plan, PreparedDatabase, WriteOptions, WriteReport, write_database,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("the path is missing")?);
    let page_bytes = arguments.next().ok_or("the page size is missing")?.parse()?;
    let page_size = PageSize::from_bytes(page_bytes).ok_or("no such page size")?;
    let mut plan = Plan::new(page_size, Extent::Records(1000), 1);
    let mut options = WriteOptions::default();
    let mut long_values = LongValues { every: 0, bytes: 0 };
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("arguments look like name=value")?;
        let number: u64 = value.parse()?;
        match name {
            "records" => plan.extent = Extent::Records(number),
            "bytes" => plan.extent = Extent::Bytes(number),
            "seed" => plan.seed = number,
            "database" => plan.database = u32::try_from(number)?,
            "every" => long_values.every = number,
            "value_bytes" => long_values.bytes = u32::try_from(number)?,
            "compressible" => plan.compressible_percent = u8::try_from(number)?,
            "branch_fill" => plan.branch_fill_percent = u8::try_from(number)?,
            "block" => options.block_bytes = usize::try_from(number)?,
            "depth" => options.depth = usize::try_from(number)?,
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    if long_values.every > 0 {
        plan.long_values = Some(long_values);
    }
    let database = Arc::new(PreparedDatabase::new(plan)?);
    let (report, method, poll_ns_p99) = write(path, database.clone(), options)?;
    println!(
        "{{\"pages\": {}, \"records\": {}, \"bytes\": {}, \"seconds\": {}, \"method\": \"{}\", \
         \"poll_us_p99\": {}}}",
        database.pages(),
        database.records(),
        report.bytes,
        report.elapsed_ns as f64 / 1e9,
        method,
        poll_ns_p99 / 1000
    );
    Ok(())
}

fn write(
    path: PathBuf,
    database: Arc<PreparedDatabase>,
    options: WriteOptions,
) -> Result<(WriteReport, String, u64), Box<dyn std::error::Error>> {
    let clock = Rc::new(Clock::real());
    let disk_options =
        RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
    let disk = RealDisk::open(disk_options, clock.clone())?;
    let (files, method) = (Files::new(disk.clone()), disk.facts().method);
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    let written = executor
        .run(async move { write_database(&files, &handle, &path, &database, &options).await })?;
    Ok((written?, method, executor.take_statistics().reap_gap.quantile_ns(0.99)))
}
