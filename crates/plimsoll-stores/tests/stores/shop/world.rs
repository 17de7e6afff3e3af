//! A small store on a disk in memory, and sessions that visit it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::create::create_database;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::{LogTime, PageSize, Signature};
use plimsoll_io::{
    Clock, Context, Disk, Executor, Files, Handle, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    Nanos, Random,
};
use plimsoll_stores::shop::Shop;
use plimsoll_workload::store::{
    Catalogue, Scale, StoreDemand, StoreHabits, StoreTask, Visit, VisitEnd,
};
use plimsoll_workload::{Demand, Done, Seen};

pub const SEED: u64 = 11;

pub fn catalogue() -> Catalogue {
    Catalogue::new(SEED, Scale::of_megabytes(1).expect("a size"))
}

pub fn database() -> PathBuf {
    Path::new("/data").join("store.edb")
}

pub fn options(size: PageSize) -> InstanceOptions {
    InstanceOptions {
        context: Context::default(),
        log: LogNames::new("/data", "E00"),
        databases: vec![database()],
        framing: Framing::Segments4096,
        circular: true,
        log_buffer_bytes: 1 << 20,
        cache_bytes_min: 0,
        cache_bytes_max: 600 * size.bytes() as u64,
        checkpoint_depth_bytes: 4 << 20,
        hold_checkpoint: false,
        version_store_bytes_max: 64 << 20,
        page_images: true,
        extension_pages: 256,
        waypoint_generations: 0,
        writes_outstanding_max: 32,
    }
}

/// A disk on which everything takes half a millisecond.
pub fn disk() -> Rc<MemoryDisk> {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(500_000)),
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(3), options);
    disk.create_directory("/data");
    disk
}

/// Runs a task on a disk in virtual time.
pub fn run_on<T: 'static, F: Future<Output = T> + 'static>(
    disk: &Rc<MemoryDisk>,
    work: impl FnOnce(Files, Handle) -> F,
) -> T {
    let seam: Rc<dyn Disk> = disk.clone();
    let executor = Executor::new(disk.clock().clone(), seam.clone());
    let handle = executor.handle();
    executor.run(work(Files::new(seam), handle)).expect("it comes to an end")
}

pub async fn open_instance(files: &Files, handle: &Handle, size: PageSize) -> Rc<Instance> {
    let mut random = Random::from_seed(5).child("instance");
    let opened = Instance::open(files.clone(), handle.clone(), options(size), &mut random).await;
    opened.expect("it opens").0
}

/// Makes a new store and opens it.
pub async fn new_shop(files: &Files, handle: &Handle, size: PageSize) -> Rc<Shop> {
    let signature = Signature::new(9, LogTime::from_utc_ns(1_600_000_000_000_000_000));
    let made = create_database(files, &database(), size, signature, Context::default()).await;
    made.expect("there is room");
    let instance = open_instance(files, handle, size).await;
    assert!(open_shop(&instance).await.is_none(), "an empty database is no store");
    let prepared = Shop::prepare(&instance, &catalogue(), &|_, _| {}).await;
    prepared.expect("it is filled");
    Rc::new(open_shop(&instance).await.expect("it is whole"))
}

pub async fn open_shop(instance: &Rc<Instance>) -> Option<Shop> {
    let opened = Shop::open(instance, catalogue(), Box::new(|_, _, _| {})).await;
    opened.expect("it can be read")
}

/// Closes the instance of a store that nobody else holds.
pub async fn close(shop: Rc<Shop>) {
    let instance = shop.instance().clone();
    drop(shop);
    instance.close().await.expect("it closes");
}

pub fn demand(shop: &Shop, think_s: f64) -> StoreDemand {
    let session = shop.begin_session();
    let habits = StoreHabits { think_s, ..StoreHabits::USUAL };
    let random = Random::from_seed(SEED).child(&format!("session {session}"));
    StoreDemand::new(random, habits, shop.catalogue(), session)
}

/// One session until a deadline: its visits with how long each took from its intended start.
pub async fn session(
    handle: Handle,
    shop: Rc<Shop>,
    think_s: f64,
    deadline: Nanos,
) -> Vec<(Visit, Nanos)> {
    let mut demand = demand(&shop, think_s);
    let mut visits = Vec::new();
    let mut last: Option<(Nanos, StoreTask)> = None;
    loop {
        let seen = last.as_ref().map(|(finished, task)| Seen {
            intended: 0,
            finished: *finished,
            task,
            done: Done::Done,
        });
        let step = demand.next(handle.now(), seen).expect("a store never closes");
        if step.intended >= deadline {
            return visits;
        }
        handle.sleep_until(step.intended).await;
        let visit = shop.visit(&step.task).await.expect("the disk is sound");
        visits.push((visit, handle.now() - step.intended));
        last = Some((handle.now(), step.task));
    }
}

pub fn ended(visits: &[(Visit, Nanos)], end: VisitEnd) -> u64 {
    visits.iter().filter(|(visit, _)| visit.end == end).count() as u64
}
