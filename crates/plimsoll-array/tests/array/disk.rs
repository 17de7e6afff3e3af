//! The array as a disk: the contract of every disk, and the times of the array.

use std::rc::Rc;

use crate::support::*;
use plimsoll_array::spec::{Fault, NeighbourPattern, NeighbourSpec, RaidLevel, Tenant, VolumeSpec};
use plimsoll_array::{ArraySpec, ModelledDisk};
use plimsoll_io::conformance::{CASES, Subject};
use plimsoll_io::{
    Clock, Context, Disk, Durability, Executor, Files, MemoryDisk, MemoryOptions, OpenMode,
    Purpose, Random,
};

type Modelled = ModelledDisk<Rc<MemoryDisk>>;

fn modelled(
    spec: &ArraySpec,
    folders: Vec<(std::path::PathBuf, u32)>,
) -> (Rc<Clock>, Rc<Modelled>) {
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    memory.create_directory("data");
    memory.create_directory("logs");
    let disk = ModelledDisk::new(memory, clock.clone(), build(spec, 1), folders);
    (clock, Rc::new(disk))
}

/// The engine relies on every promise of a disk; a modelled one must keep them all in virtual time.
#[test]
fn the_modelled_disk_keeps_the_contract() {
    let spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    // Only disks in real time are waited for.
    for (name, case) in CASES.iter().filter(|(name, _)| *name != "waiting ends at its deadline") {
        println!("case: {name}");
        let (clock, disk) = modelled(&spec, Vec::new());
        case(&Subject { disk, clock, folder: "data".into() });
    }
}

/// Reads take the drive's time, cached writes do not, and what was written comes back.
#[test]
fn transfers_take_the_arrays_time() {
    let (clock, disk) = modelled(&array(hdd(15_000.0), RaidLevel::Raid5, &[5]), Vec::new());
    let files = Files::new(disk.clone());
    let executor = Executor::new(clock.clone(), disk.clone());
    let handle = executor.handle();
    let context = Context::of(Purpose::DatabaseRead);
    let (write_ns, read_ns) = executor
        .run(async move {
            let file = files.open("data/a", OpenMode::Create, context).await.expect("it is new");
            file.extend(GB, context).await.expect("there is room");
            let start = handle.now();
            let mut page = file.allocate(32 * 1024);
            page[7] = 42;
            file.write(MIB, page, Durability::Durable, context).await.expect("the array is whole");
            let written = handle.now();
            let buffer = file.allocate(32 * 1024);
            let far = file.read(500 * MIB, buffer, context).await.expect("the array is whole");
            let read = handle.now();
            assert_eq!(far[7], 0);
            let back = file
                .read(MIB, file.allocate(32 * 1024), context)
                .await
                .expect("the array is whole");
            assert_eq!(back[7], 42);
            (written - start, read - written)
        })
        .expect("every operation completes");
    assert!(write_ns < MS / 10, "{write_ns}");
    assert!((MS..20 * MS).contains(&read_ns), "{read_ns}");
    let report = disk.report();
    assert_eq!((report.volumes[0].host.read_count, report.volumes[0].host.write_count), (2, 1));
    assert!(disk.facts().remarks[0].starts_with("MODELLED"));
}

/// Folders lead to volumes, so that logs can have spindles of their own.
#[test]
fn folders_lead_to_volumes() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    spec.volumes.push(volume("logs", GB));
    let (clock, disk) = modelled(&spec, vec![("data".into(), 0), ("logs".into(), 1)]);
    let files = Files::new(disk.clone());
    let context = Context::of(Purpose::LogWrite);
    Executor::new(clock, disk.clone())
        .run(async move {
            let file =
                files.open("logs/e00.log", OpenMode::Create, context).await.expect("it is new");
            let buffer = file.allocate(4096);
            file.extend(MIB, context).await.expect("there is room");
            file.write(0, buffer, Durability::Durable, context).await.expect("the array is whole");
        })
        .expect("every operation completes");
    let report = disk.report();
    assert_eq!((report.volumes[0].host.write_count, report.volumes[1].host.write_count), (0, 1));
}

/// A read of data that is lost is an error of the medium, as on a real array that has failed.
#[test]
fn lost_data_is_a_medium_error() {
    let (clock, disk) = modelled(&array(hdd(15_000.0), RaidLevel::Raid0, &[4]), Vec::new());
    let files = Files::new(disk.clone());
    let context = Context::of(Purpose::DatabaseRead);
    let breaking = disk.clone();
    let error = Executor::new(clock, disk)
        .run(async move {
            let file = files.open("data/a", OpenMode::Create, context).await.expect("it is new");
            file.extend(MIB, context).await.expect("there is room");
            breaking.break_now(Fault::DriveFails { group: 0, drive: 1 });
            file.read(0, file.allocate(4096), context)
                .await
                .expect_err("a stripe without redundancy is gone")
        })
        .expect("every operation completes");
    assert_eq!(error.kind, plimsoll_io::DiskErrorKind::Medium);
}

/// One seed, one run: the engine's deterministic tests hold on a modelled array too.
#[test]
fn times_repeat_exactly() {
    let run = || {
        let (clock, disk) = modelled(&array(hdd(10_000.0), RaidLevel::Raid6, &[8]), Vec::new());
        let files = Files::new(disk.clone());
        let executor = Executor::new(clock.clone(), disk.clone());
        let handle = executor.handle();
        let context = Context::of(Purpose::DatabaseWrite);
        executor
            .run(async move {
                let file =
                    files.open("data/a", OpenMode::Create, context).await.expect("it is new");
                file.extend(GB, context).await.expect("there is room");
                let mut times = Vec::new();
                let mut random = Random::from_seed(5);
                for number in 0..200 {
                    let offset = random.below(GB / 4096) * 4096;
                    let buffer = file.allocate(4096);
                    if number % 3 == 0 {
                        file.write(offset, buffer, Durability::Durable, context)
                            .await
                            .expect("whole");
                    } else {
                        file.read(offset, buffer, context).await.expect("whole");
                    }
                    times.push(handle.now());
                }
                times
            })
            .expect("every operation completes")
    };
    assert_eq!(run(), run());
}

/// SIM-09: the engine feels a neighbour as the light load does, hears nothing of its requests, and
/// time does not go on for its sake.
#[test]
fn a_neighbour_slows_a_file_and_keeps_no_clock_going() {
    let mean_ns = |per_second: f64| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
        spec.volumes
            .push(VolumeSpec { tenant: Tenant::NeighbourBehind, ..volume("erp", 100 * GB) });
        spec.neighbours.push(NeighbourSpec {
            name: "erp".into(),
            volume: 1,
            per_second,
            read_share: 1.0,
            request_bytes: 8 * KIB,
            pattern: NeighbourPattern::Random,
            outstanding_max: 32,
            shares_links: true,
        });
        let (clock, disk) = modelled(&spec, Vec::new());
        let files = Files::new(disk.clone());
        let executor = Executor::new(clock.clone(), disk.clone());
        let context = Context::of(Purpose::DatabaseRead);
        let handle = executor.handle();
        let took_ns = executor
            .run(async move {
                let file =
                    files.open("data/a", OpenMode::Create, context).await.expect("it is new");
                file.extend(GB, context).await.expect("there is room");
                let start = handle.now();
                for number in 0..100 {
                    let buffer = file.allocate(32 * 1024);
                    file.read(number * 7 * MIB, buffer, context).await.expect("the array is whole");
                }
                (handle.now() - start, handle.now())
            })
            .expect("everything is answered");
        let (took_ns, ended) = took_ns;
        assert_eq!(clock.now(), ended);
        let report = disk.report();
        assert_eq!(report.volumes[0].host.read_count, 100);
        let expected = per_second * clock.now() as f64 / SECOND as f64;
        check_near(report.neighbours[0].host.read_count as f64, expected, 0.25);
        took_ns / 100
    };
    let (quiet, busy) = (mean_ns(100.0), mean_ns(600.0));
    assert!(busy > quiet * 5 / 4, "{busy} against {quiet}");
}
