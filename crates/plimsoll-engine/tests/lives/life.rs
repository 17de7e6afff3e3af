//! One life after the other on one disk.

#![allow(dead_code, reason = "each test program uses its own part of the lives")]

use std::future::Future;
use std::rc::Rc;

use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_io::{
    Clock, Files, Handle, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Random,
};

use crate::support::*;

/// The longest that what a dead process had asked of the disk takes.
const SETTLING_NS: u64 = NANOS_PER_SECOND;

/// A disk with empty databases.
pub fn disk_with_databases(seed: u64, setup: &Setup, memory: MemoryOptions) -> Rc<MemoryDisk> {
    let disk = new_disk(&Rc::new(Clock::simulated()), seed, memory);
    let setup = setup.clone();
    live(&disk, move |files, _| async move { create_databases(&files, &setup).await.unwrap() });
    disk
}

/// The life of a process. It ends when `work` does, at once and whatever else is under way: nothing
/// is closed that `work` does not close.
pub fn live<T: 'static, F: Future<Output = T> + 'static>(
    disk: &Rc<MemoryDisk>,
    work: impl FnOnce(Files, Handle) -> F + 'static,
) -> T {
    let dying = disk.clone();
    let life = run_on(&disk.clock().clone(), disk, move |files, handle| async move {
        let lived = work(files, handle).await;
        dying.process_died();
        lived
    });
    let lived = life.expect("somebody waits for ever");
    let settled = run_on(&disk.clock().clone(), disk, |_, handle| async move {
        handle.sleep(SETTLING_NS).await;
    });
    settled.expect("a sleep ends");
    lived
}

/// The disk as it is found after a power cut that spares nothing it may take.
pub fn cut_power(disk: &Rc<MemoryDisk>) -> Rc<MemoryDisk> {
    disk.power_cut();
    disk.crash_image(Loss::Everything, &mut Random::from_seed(1))
}

/// Opens with options of its own.
pub async fn open_with(files: &Files, handle: &Handle, options: InstanceOptions) -> Rc<Instance> {
    let mut random = Random::from_seed(1).child("instance");
    let (instance, _) = Instance::open(files.clone(), handle.clone(), options, &mut random)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    instance
}

/// Makes everything logged so far durable.
pub async fn make_durable(instance: &Instance) {
    let log = &instance.store().log;
    log.make_durable(log.tip()).await.unwrap();
}
