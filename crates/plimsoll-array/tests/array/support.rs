//! Small arrays for tests: every figure plain and round, so that expectations can be worked out by
//! hand.
#![allow(dead_code, reason = "each test file uses its own part of these")]

use plimsoll_array::source::{
    ClosedSpec, FlushSpec, OpenSpec, Outcome, Pattern, SessionsSpec, SimulationSpec, StreamSpec,
    simulate,
};
use plimsoll_array::spec::*;
use plimsoll_array::{Array, Completed, Happening, Request};
use plimsoll_io::Random;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
pub const KIB: u64 = 1024;
pub const MIB: u64 = 1024 * 1024;
pub const GB: u64 = 1_000_000_000;

/// A hard drive with a data sheet like that of a drive of its speed.
pub fn hdd(rotation_rpm: f64) -> DriveSpec {
    let (read_seek_ms, write_seek_ms, outer, inner) = match rotation_rpm as u32 {
        15_000 => (3.4, 3.9, 204e6, 122e6),
        10_000 => (3.8, 4.4, 150e6, 82e6),
        _ => (8.5, 9.5, 105e6, 57e6),
    };
    DriveSpec {
        name: "drive".into(),
        capacity_bytes: 600 * GB,
        kind: DriveKind::Hdd(HddSpec {
            rotation_rpm,
            read_seek_ns: read_seek_ms * 1e6,
            write_seek_ns: write_seek_ms * 1e6,
            outer_bytes_per_second: outer,
            inner_bytes_per_second: inner,
            interface_bytes_per_second: 300e6,
            overhead_ns: 200_000,
            buffer_bytes: 16 * MIB,
            queue_count_max: 32,
            scheduling: Scheduling::ShortestPositioning,
        }),
    }
}

/// A flash drive with MQSim's example times.
pub fn ssd(write_amplification: f64) -> DriveSpec {
    DriveSpec {
        name: "drive".into(),
        capacity_bytes: 400 * GB,
        kind: DriveKind::Ssd(SsdSpec {
            die_count: 64,
            unit_bytes: 16 * KIB as u32,
            units_per_block: 128,
            read_ns: 75_000,
            program_ns: 1_300_000,
            erase_ns: 3_800_000,
            channel_bytes_per_second: 200e6,
            bus_bytes_per_second: 550e6,
            overhead_ns: 30_000,
            write_amplification,
            buffer_bytes: 64 * MIB,
        }),
    }
}

/// A box without latencies of its own.
pub fn member() -> MemberSpec {
    MemberSpec {
        controller_count: 2,
        slot_count: 48,
        read_latency_ns: 0,
        write_latency_ns: 0,
        latency_ns_per_byte: 0.0,
        processor_ns: 0,
        processor_count: 1,
        failover_ns: 2 * SECOND,
        cache: CacheSpec {
            write_back: true,
            dirty_bytes_max: 512 * MIB,
            destage_start_share: 0.1,
            destage_full_share: 0.8,
            destage_rows_per_drive: 2.0,
            read_preference_ns: MS,
            old_data_share: 0.0,
            recent_bytes: 0,
            prefetch: None,
        },
    }
}

/// One group in one pool with one volume, behind two fast links without latency.
pub fn array(drive: DriveSpec, level: RaidLevel, sets: &[u32]) -> ArraySpec {
    ArraySpec {
        drives: vec![drive],
        members: vec![member()],
        groups: vec![group(0, level, sets)],
        pools: vec![PoolSpec {
            name: "pool".into(),
            groups: vec![0],
            page_bytes: 15 * MIB,
            page_order: PageOrder::VolumeByVolume,
        }],
        volumes: vec![volume("data", 100 * GB)],
        neighbours: Vec::new(),
        path: PathSpec {
            link_count: 2,
            link_bytes_per_second: 1e12,
            link_latency_ns: 0,
            host_bytes_per_second: None,
            host_latency_ns: 0,
            policy: PathPolicy::RoundRobin,
            path_timeout_ns: SECOND,
            cap: None,
            queue: None,
        },
        faults: Vec::new(),
    }
}

pub fn group(member: u32, level: RaidLevel, sets: &[u32]) -> GroupSpec {
    GroupSpec {
        name: "group".into(),
        member,
        drive: "drive".into(),
        level,
        sets: sets.to_vec(),
        spare_count: 0,
        element_bytes: 64 * KIB,
        rebuild_bytes_per_second: 0.0,
    }
}

pub fn volume(name: &str, capacity_bytes: u64) -> VolumeSpec {
    VolumeSpec { name: name.into(), pool: 0, capacity_bytes, shift_bytes: 0, tenant: Tenant::Host }
}

/// One drive and nothing else: no cache, no latency but its own.
pub fn one_drive(drive: DriveSpec) -> ArraySpec {
    let mut spec = array(drive, RaidLevel::Raid0, &[1]);
    spec.members[0].cache.write_back = false;
    spec.groups[0].element_bytes = MIB;
    spec
}

pub fn request(offset: u64, bytes: u64, is_write: bool) -> Request {
    Request { volume: 0, offset, bytes: bytes as u32, is_write, is_durable: false, token: 0 }
}

pub fn build(spec: &ArraySpec, seed: u64) -> Array {
    Array::new(spec, &Random::from_seed(seed)).expect("the test's array can be built")
}

/// Submits one request now and waits for it.
pub fn one(array: &mut Array, request: Request) -> Completed {
    array.submit(array.now(), request);
    loop {
        match array.next(u64::MAX) {
            Some(Happening::Completed(completed)) => return completed,
            Some(Happening::Timer(_)) => {}
            None => panic!("the request is never answered"),
        }
    }
}

/// Random 32 KiB requests over the first `span_bytes` of the volume, so many at once.
pub fn random_reads(span_bytes: u64, depth: u32, write_share: f64) -> StreamSpec {
    StreamSpec::Closed(ClosedSpec {
        class: "random".into(),
        volume: 0,
        start_bytes: 0,
        span_bytes,
        pattern: Pattern::Random,
        request_bytes_mean: 32.0 * KIB as f64,
        page_bytes: 32 * KIB,
        depth,
        think_ns: 0,
        is_serial: false,
        is_batch: false,
        write_share,
        is_durable: false,
    })
}

pub fn open(per_second: f64, bytes: u64, span_bytes: u64, write_share: f64) -> StreamSpec {
    StreamSpec::Open(OpenSpec {
        class: "open".into(),
        volume: 0,
        start_bytes: 0,
        span_bytes,
        pattern: Pattern::Random,
        request_bytes: bytes,
        page_bytes: bytes,
        per_second,
        write_share,
    })
}

pub fn sequential(class: &str, bytes: u64, depth: u32) -> StreamSpec {
    StreamSpec::Closed(ClosedSpec {
        class: class.into(),
        volume: 0,
        start_bytes: 0,
        span_bytes: 20 * GB,
        pattern: Pattern::Sequential,
        request_bytes_mean: bytes as f64,
        page_bytes: bytes,
        depth,
        think_ns: 0,
        is_serial: false,
        is_batch: false,
        write_share: 0.0,
        is_durable: false,
    })
}

/// Sessions of a database on volume 0 with its log behind it.
pub fn sessions(session_count: u32) -> StreamSpec {
    StreamSpec::Sessions(SessionsSpec {
        volume: 0,
        start_bytes: 0,
        database_bytes: 90 * GB / (32 * KIB) * (32 * KIB),
        log_volume: 0,
        log_start_bytes: 95 * GB / 512 * 512,
        log_bytes: GB / 512 * 512,
        session_count,
        page_bytes: 32 * KIB,
        read_bytes_mean: 33_600.0,
        processor_ns: 600_000,
        latency_factor: 1.32,
        log_latency_factor: 0.0,
        writes_per_read: 0.61,
        write_bytes_mean: 37_500.0,
        flush: FlushSpec::Pages(49),
        write_depth: 64,
        log_writes_per_read: 0.49,
        log_write_bytes_mean: 5_300.0,
    })
}

pub fn simulation(
    array: ArraySpec,
    streams: Vec<StreamSpec>,
    warm_up_s: u64,
    measure_s: u64,
) -> SimulationSpec {
    SimulationSpec {
        array,
        streams,
        seed: 1,
        warm_up_ns: warm_up_s * SECOND,
        measure_ns: measure_s * SECOND,
    }
}

pub fn run(spec: &SimulationSpec) -> Outcome {
    simulate(spec).expect("the test's array can be built")
}

/// Requests per second and mean latency in milliseconds of a class.
pub fn class(outcome: &Outcome, name: &str) -> (f64, f64) {
    let found = outcome.classes.iter().find(|class| class.class == name);
    let found = found.unwrap_or_else(|| panic!("no class {name}"));
    (found.per_second, found.latency_ms_mean)
}

/// Whether two figures agree within a share.
#[track_caller]
pub fn check_near(measured: f64, expected: f64, share: f64) {
    let error = (measured / expected - 1.0).abs();
    assert!(error <= share, "{measured} is {:.1} % off {expected}", error * 100.0);
}
