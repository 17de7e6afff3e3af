//! The toy by which simulators are compared: a closed queue of customers that think and then want
//! one server, first come first served, with service times of any distribution (M/G/1, here uniform
//! from 1 to 7 ms). It runs on the event queue of the modelled array. Prints one line of JSON:
//! requests per second of wall time, and the mean response, by which the rivals agree.

use std::collections::VecDeque;
use std::time::Instant;

use plimsoll_array::{Array, ArraySpec, Happening};
use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::processor::warn_of_debug_build;
use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use serde_json::json;

const THINK_NS: f64 = 100e6;
const SERVICE_NS: (f64, f64) = (1e6, 7e6);
const SERVER: u32 = u32::MAX;

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [("customers", "16"), ("requests", "4000000"), ("seed", "1")];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let (customers, requests): (u64, u64) =
        (arguments.number("customers")?, arguments.number("requests")?);
    let mut random = Random::from_seed(arguments.number("seed")?);
    let mut agenda = empty_array();
    let mut asked: Vec<Nanos> = vec![0; customers as usize];
    let mut queue: VecDeque<u32> = VecDeque::new();
    let (mut done, mut response_ns) = (0, 0u64);
    let began = Instant::now();
    for customer in 0..customers as u32 {
        agenda.set_timer(think_ns(&mut random), customer);
    }
    while done < requests {
        let Some(Happening::Timer(token)) = agenda.next(Nanos::MAX) else {
            return Err("the queue ran dry".into());
        };
        let now = agenda.now();
        if token == SERVER {
            let customer = queue.pop_front().expect("somebody was served");
            response_ns += now - asked[customer as usize];
            done += 1;
            agenda.set_timer(now + think_ns(&mut random), customer);
            if !queue.is_empty() {
                agenda.set_timer(now + service_ns(&mut random), SERVER);
            }
        } else {
            asked[token as usize] = now;
            queue.push_back(token);
            if queue.len() == 1 {
                agenda.set_timer(now + service_ns(&mut random), SERVER);
            }
        }
    }
    let wall_s = began.elapsed().as_secs_f64();
    let found = json!({
        "requests_per_second": done as f64 / wall_s,
        "response_ms": response_ns as f64 / done as f64 / 1e6,
        "simulated_s": agenda.now() as f64 / NANOS_PER_SECOND as f64,
        "wall_s": wall_s,
    });
    println!("{found}");
    Ok(())
}

fn think_ns(random: &mut Random) -> Nanos {
    (-(1.0 - random.unit()).ln() * THINK_NS) as Nanos
}

fn service_ns(random: &mut Random) -> Nanos {
    (SERVICE_NS.0 + (SERVICE_NS.1 - SERVICE_NS.0) * random.unit()) as Nanos
}

/// An array with one idle drive: of it only the event queue is used.
fn empty_array() -> Array {
    let drive = json!({"rotation_rpm": 7200.0, "read_seek_ns": 8e6, "write_seek_ns": 9e6,
        "outer_bytes_per_second": 1e8,
        "inner_bytes_per_second": 5e7, "interface_bytes_per_second": 3e8, "overhead_ns": 0,
            "buffer_bytes": 0,
        "queue_count_max": 1, "scheduling": "in_order"});
    let cache = json!({"write_back": false, "dirty_bytes_max": 1, "destage_start_share": 0.1,
        "destage_full_share": 0.8,
        "destage_rows_per_drive": 1.0, "read_preference_ns": 0, "old_data_share": 0.0,
            "recent_bytes": 0, "prefetch": null});
    let spec = json!({
        "drives": [{"name": "drive", "capacity_bytes": 1_000_000_000_000_u64,
            "kind": {"hdd": drive}}],
        "members": [{"controller_count": 1, "slot_count": 1, "read_latency_ns": 0,
            "write_latency_ns": 0,
            "latency_ns_per_byte": 0.0, "processor_ns": 0, "processor_count": 1, "failover_ns": 0,
                "cache": cache}],
        "groups": [{"name": "group", "member": 0, "drive": "drive", "level": "raid0", "sets": [1],
            "spare_count": 0,
            "element_bytes": 65536, "rebuild_bytes_per_second": 0.0}],
        "pools": [{"name": "pool", "groups": [0], "page_bytes": 1 << 20,
            "page_order": "volume_by_volume"}],
        "volumes": [{"name": "volume", "pool": 0, "capacity_bytes": 1 << 30, "shift_bytes": 0,
            "tenant": "host"}],
        "neighbours": [],
        "path": {"link_count": 1, "link_bytes_per_second": 1e8, "link_latency_ns": 0,
            "host_bytes_per_second": null,
            "host_latency_ns": 0, "policy": "round_robin", "path_timeout_ns": 0, "cap": null},
        "faults": []
    });
    let spec: ArraySpec = serde_json::from_value(spec).expect("the array is described right");
    Array::new(&spec, &Random::from_seed(1)).expect("the array can be built")
}
