//! A small mail store on a disk in memory: mailboxes in one folder, the transport queue in another.

use std::path::Path;
use std::rc::Rc;

use plimsoll_engine::create::create_database;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::{LogTime, PageSize, Signature};
use plimsoll_io::{
    Clock, Context, Disk, Executor, Files, Handle, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    Random,
};
use plimsoll_stores::mail::{Filling, Layout, MailStore, MailStoreError};
use plimsoll_workload::mail::{Corpus, SizeClass};

pub const SEED: u64 = 17;
pub const FILLING: Filling = Filling {
    mailboxes: 8,
    folders: 2,
    messages_per_folder: 3,
    inbox: 4,
    layout: Layout::PerMailbox,
    views: 0,
    is_indexed: false,
};
/// As an older edition keeps its mail: one copy for all, views kept, words indexed.
pub const SHARED: Filling =
    Filling { layout: Layout::Shared, views: 2, is_indexed: true, ..FILLING };
const FOLDERS: [&str; 2] = ["/mail", "/queue"];
/// Where the further database lies, to which mailboxes are moved.
const FURTHER: &str = "/further";

pub fn corpus() -> Corpus {
    let size =
        |weight, body_bytes, attachment_bytes| SizeClass { weight, body_bytes, attachment_bytes };
    Corpus::new(SEED, vec![size(3.0, 400, 0), size(1.0, 6_000, 9_000)], 30, 10)
        .expect("a corpus that makes sense")
}

/// How both engines of a store are set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub size: PageSize,
    pub framing: Framing,
    pub has_images: bool,
    pub cache_bytes_max: u64,
    pub checkpoint_depth_bytes: u64,
}

pub const USUAL: Setup = Setup {
    size: PageSize::KIB_8,
    framing: Framing::Segments4096,
    has_images: true,
    cache_bytes_max: 4 << 20,
    checkpoint_depth_bytes: 4 << 20,
};

fn options(folder: &str, setup: Setup) -> InstanceOptions {
    InstanceOptions {
        context: Context::default(),
        log: LogNames::new(folder, "E00"),
        databases: vec![Path::new(folder).join("data.edb")],
        framing: setup.framing,
        circular: true,
        log_buffer_bytes: 1 << 20,
        cache_bytes_min: 0,
        cache_bytes_max: setup.cache_bytes_max,
        checkpoint_depth_bytes: setup.checkpoint_depth_bytes,
        hold_checkpoint: false,
        version_store_bytes_max: 16 << 20,
        page_images: setup.has_images,
        extension_pages: 256,
        waypoint_generations: 0,
        writes_outstanding_max: 32,
    }
}

/// A disk on which everything takes half a millisecond.
pub fn disk() -> Rc<MemoryDisk> {
    let latency = LatencyPlan::of(Latency::Constant(500_000));
    disk_of(3, MemoryOptions { latency, ..MemoryOptions::default() })
}

/// A disk with the folders of a store.
pub fn disk_of(seed: u64, options: MemoryOptions) -> Rc<MemoryDisk> {
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(seed), options);
    for folder in FOLDERS.iter().chain([&FURTHER]) {
        disk.create_directory(folder);
    }
    disk
}

/// Runs a task on a disk in virtual time; nothing when the power goes off before its end.
pub fn run_on<T: 'static, F: Future<Output = T> + 'static>(
    disk: &Rc<MemoryDisk>,
    work: impl FnOnce(Files, Handle) -> F,
) -> Option<T> {
    let seam: Rc<dyn Disk> = disk.clone();
    let executor = Executor::new(disk.clock().clone(), seam.clone());
    let handle = executor.handle();
    executor.run(work(Files::new(seam), handle)).ok()
}

/// Both instances, recovered where that is needed.
pub async fn open_instances(files: &Files, handle: &Handle) -> [Rc<Instance>; 2] {
    try_instances(files, handle, USUAL).await.expect("they open")
}

/// The same with engines of another kind, on a disk that may fail.
///
/// # Errors
/// What the disk reports.
pub async fn try_instances(
    files: &Files,
    handle: &Handle,
    setup: Setup,
) -> Result<[Rc<Instance>; 2], EngineError> {
    let mut random = Random::from_seed(5).child("instance");
    let mut open = async |folder| {
        let options = options(folder, setup);
        Instance::open(files.clone(), handle.clone(), options, &mut random).await
    };
    Ok([open(FOLDERS[0]).await?.0, open(FOLDERS[1]).await?.0])
}

pub async fn try_store(
    instances: &[Rc<Instance>; 2],
    filling: Filling,
) -> Result<Option<MailStore>, MailStoreError> {
    MailStore::open(&instances[0], &instances[1], Rc::new(corpus()), filling).await
}

/// Adds the further database to a store.
pub async fn make_further(files: &Files, setup: Setup) {
    let path = Path::new(FURTHER).join("data.edb");
    let signature = Signature::new(10, LogTime::from_utc_ns(1_600_000_000_000_000_000));
    let made = create_database(files, &path, setup.size, signature, Context::default()).await;
    made.expect("there is room");
}

/// Mailboxes, queue, and the further database where there is one, on a disk that may fail.
///
/// # Errors
/// What the disk reports.
pub async fn try_all(
    files: &Files,
    handle: &Handle,
    setup: Setup,
    has_further: bool,
) -> Result<Vec<Rc<Instance>>, EngineError> {
    let mut all = try_instances(files, handle, setup).await?.to_vec();
    if has_further {
        let mut random = Random::from_seed(6).child("further");
        let options = options(FURTHER, setup);
        all.push(Instance::open(files.clone(), handle.clone(), options, &mut random).await?.0);
    }
    Ok(all)
}

/// The store of such instances.
///
/// # Errors
/// What the disk reports, or another store.
pub async fn try_store_of(
    all: &[Rc<Instance>],
    filling: Filling,
) -> Result<Option<MailStore>, MailStoreError> {
    MailStore::open_with(&all[0], all.get(2), &all[1], Rc::new(corpus()), filling).await
}

pub async fn open_store(instances: &[Rc<Instance>; 2], filling: Filling) -> Rc<MailStore> {
    let opened = try_store(instances, filling).await.expect("it can be read");
    Rc::new(opened.expect("it is whole"))
}

/// Makes a new store; answers its instances.
pub async fn new_instances(files: &Files, handle: &Handle, filling: Filling) -> [Rc<Instance>; 2] {
    make(files, handle, filling, USUAL).await
}

/// The same with engines of another kind.
pub async fn make(
    files: &Files,
    handle: &Handle,
    filling: Filling,
    setup: Setup,
) -> [Rc<Instance>; 2] {
    for folder in FOLDERS {
        let path = Path::new(folder).join("data.edb");
        let signature = Signature::new(9, LogTime::from_utc_ns(1_600_000_000_000_000_000));
        let made = create_database(files, &path, setup.size, signature, Context::default()).await;
        made.expect("there is room");
    }
    let instances = try_instances(files, handle, setup).await.expect("they open");
    let told = |_: u32| {};
    let corpus = corpus();
    let prepared = MailStore::prepare(&instances[0], &instances[1], &corpus, filling, &told).await;
    prepared.expect("it is filled");
    instances
}

pub async fn close(instances: impl IntoIterator<Item = Rc<Instance>>) {
    for instance in instances {
        instance.close().await.expect("it closes");
    }
}
