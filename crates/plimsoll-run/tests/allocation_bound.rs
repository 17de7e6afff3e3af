//! What a run of the engine allocates on a real disk, counted by the allocator: at most the cache's
//! maximum and 64 MiB, per instance.
//!
//! Everything counts: frames, buffers known to the kernel, version store, log buffers, histograms,
//! samples not yet fetched. The bound is what a user reckons with when he puts several instances
//! beside each other into a container. The file holds one test, because tests in one process would
//! be counted together.

#![expect(clippy::disallowed_methods, reason = "it makes directories on the real disk")]

use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{Caching, Clock, CountingAllocator, RealDisk, RealDiskOptions};
use plimsoll_run::{Ending, Output, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const MIB: u64 = 1 << 20;
const CACHE_BYTES_MAX: u64 = 48 * MIB;
const BESIDE_BYTES_MAX: u64 = 64 * MIB;

fn instance(directory: &str, number: u64) -> Value {
    let database = |place: u64| {
        json!({
            "file_name": format!("database{place:03}.edb"), "size_bytes": 80 * MIB,
                "seed": 10 * number + place,
            "record_bytes": 2164, "compressible_percent": 0, "existing_records": null
        })
    };
    let home = format!("{directory}/instance{number}");
    json!({
        "name": format!("instance{number}"), "target": "disk", "backend": "engine",
            "unfinished": false, "directory": home,
        "log_directory": home, "page_bytes": 32768, "databases": [database(1), database(2)],
        "cache_bytes_min": MIB, "cache_bytes_max": CACHE_BYTES_MAX,
            "checkpoint_depth_bytes": 20 * MIB,
        "circular_log": true, "log_framing": "sector_512", "page_images": false, "copies_count": 2,
        "maintenance": {"throttle_ms": 5, "read_bytes": 262_144}, "log_buffer_bytes": MIB,
        "version_store_bytes_max": 128 * MIB, "extension_pages": 256, "waypoint_generations": 0,
        "writes_outstanding_max": 32
    })
}

fn spec(directory: &str, instances: u64) -> Value {
    let numbers = 1..=instances;
    let names: Vec<String> = numbers.clone().map(|number| format!("instance{number}")).collect();
    json!({
        "schema_version": 1, "seed": 1, "sample_interval_ms": 500, "hung_after_ms": 30000,
            "io_method": "auto", "destroy_serials": [], "max_iops": null, "max_mib_per_s": null,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": directory}],
        "instances": numbers.map(|number| instance(directory, number)).collect::<Vec<_>>(),
        "workloads": [{
            "name": "mix", "instances": names, "sluggish": 0.0, "load": {"sessions": 16,
                "shared": false},
            "mix": {"insert_percent": 40, "delete_percent": 20, "replace_percent": 5,
                "read_percent": 35,
                    "lazy_commit_percent": 70}
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "warm up", "action": {"kind": "warm_up", "cache_percent": 95,
                "timeout_s": 60.0}, "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure", "duration_s": 2.0},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []},
            {"name": "checksum", "action": {"kind": "checksum", "read_bytes": 65536,
                "reads_in_flight": 8}, "workloads": []}
        ]
    })
}

/// Bytes allocated at the highest moment of a run, beyond what was allocated before it.
fn allocated_by_a_run(directory: &str, instances: u64) -> u64 {
    let spec =
        RunSpec::from_json(&spec(directory, instances).to_string()).expect("the spec is right");
    let before = ALLOCATOR.live_bytes();
    ALLOCATOR.forget_max();
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions {
        // The build directory may lie where direct I/O is refused; what is allocated is the same.
        caching: Caching::AllowBuffered,
        ..RealDiskOptions::default()
    };
    let disk = RealDisk::open(options, clock.clone()).expect("a real disk can be had");
    let (samples, _rows) = channel();
    let (events, _told) = channel();
    let outcome = execute(spec, clock, disk, Output { samples, events }, StopSignal::default());
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    (ALLOCATOR.live_bytes_max() - before) as u64
}

/// An engine that takes more than it says is killed by the container it was planned for, in the
/// middle of a qualification.
#[test]
fn a_run_allocates_at_most_the_cache_and_64_mib_per_instance() {
    for instances in [1, 2] {
        let home = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("allocation{instances}"));
        let _ = std::fs::remove_dir_all(&home);
        for number in 1..=instances {
            std::fs::create_dir_all(home.join(format!("instance{number}")))
                .expect("a directory of our own");
        }
        let allocated = allocated_by_a_run(home.to_str().expect("a plain path"), instances);
        std::fs::remove_dir_all(&home).expect("what was made can be removed");
        println!("{instances} instances: {:.1} MiB", allocated as f64 / MIB as f64);
        assert!(allocated > instances * CACHE_BYTES_MAX, "the caches were filled");
        assert!(
            allocated <= instances * (CACHE_BYTES_MAX + BESIDE_BYTES_MAX),
            "{allocated} bytes by {instances} instances"
        );
    }
}
