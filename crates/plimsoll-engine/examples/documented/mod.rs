// What the examples in the documentation share: a disk in memory, in virtual time, and an instance
// on it with a table. They include this file.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::error::Result;
use plimsoll_engine::log::{framing::Framing, names::LogNames};
use plimsoll_engine::{
    Column, ColumnType, Instance, InstanceOptions, LogTime, PageSize, Signature, Table,
    create_database,
};
use plimsoll_io::{Clock, Context, Executor, Files, Handle, MemoryDisk, MemoryOptions, Random};

/// Runs a story on a disk with the directories `/data` and `/backup`.
pub fn on_a_disk(story: impl AsyncFnOnce(Files, Handle) -> Result<()> + 'static) {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::default());
    disk.create_directory("/data");
    disk.create_directory("/backup");
    let executor = Executor::new(clock, disk.clone());
    let (files, handle) = (Files::new(disk), executor.handle());
    let told = executor.run(async move { story(files, handle).await });
    told.expect("it ends").expect("it ends well");
}

/// Options for the database `/data/mail.edb`.
pub fn options() -> InstanceOptions {
    InstanceOptions {
        context: Context::default(),
        log: LogNames::new(Path::new("/data"), "E00"),
        databases: vec![PathBuf::from("/data/mail.edb")],
        framing: Framing::Segments4096,
        circular: true,
        hold_checkpoint: false,
        log_buffer_bytes: 1 << 20,
        cache_bytes_min: 0,
        cache_bytes_max: 16 << 20,
        checkpoint_depth_bytes: 20 << 20,
        version_store_bytes_max: 16 << 20,
        page_images: true,
        extension_pages: 256,
        waypoint_generations: 0,
        writes_outstanding_max: 64,
    }
}

/// Makes that database with the table `Messages`, and opens it.
pub async fn create_and_open(files: &Files, handle: &Handle) -> Result<Rc<Instance>> {
    let (options, mut random) = (options(), Random::from_seed(2));
    let created = LogTime::from_utc_ns(handle.clock().anchor().utc_ns);
    let signature = Signature::new(random.next_u64() as u32, created);
    let (path, context) = (&options.databases[0], options.context);
    create_database(files, path, PageSize::KIB_32, signature, context).await?;
    let (files, handle) = (files.clone(), handle.clone());
    let (instance, _) = Instance::open(files, handle, options, &mut random).await?;
    let messages = Table::builder("Messages")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("subject", ColumnType::LongText).unicode())
        .primary("primary", &["id"])
        .build()
        .expect("a table that makes sense");
    drop(instance.create_table(1, messages).await?);
    Ok(instance)
}
