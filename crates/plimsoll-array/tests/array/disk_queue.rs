//! The queue of a virtual disk: what many requests cost each other, what a flush costs, and what a
//! host is told when.

use plimsoll_array::spec::{ArraySpec, QueueSpec, RaidLevel};
use plimsoll_array::{Array, Completed, Happening, Request};

use crate::support::{GB, KIB, array, build, one, request, ssd};

const NOTICE_NS: u64 = 20_000;
const REQUEST_NS: u64 = 10_000;
const FLUSH_NS: u64 = 3_000;
const DURABLE_NS: u64 = 5_000;

/// A virtual disk below which everything is done in no time.
fn virtual_disk() -> ArraySpec {
    let mut spec = array(ssd(1.0), RaidLevel::Raid0, &[1]);
    spec.members[0].read_latency_ns = 0;
    spec.members[0].write_latency_ns = 0;
    spec.members[0].latency_ns_per_byte = 0.0;
    spec.members[0].processor_ns = 0;
    spec.path.link_bytes_per_second = 1e15;
    spec.path.queue = Some(QueueSpec {
        notice_ns: NOTICE_NS,
        request_ns: REQUEST_NS,
        read_ns_per_byte: 0.0,
        write_ns_per_byte: 0.0,
        flush_ns: FLUSH_NS,
        durable_ns: DURABLE_NS,
    });
    spec
}

fn durable(offset: u64) -> Request {
    Request { is_durable: true, ..request(offset, 4 * KIB, true) }
}

/// Puts them all in now; when each was told of, by the order in which that was.
fn all_at_once(array: &mut Array, requests: &[Request]) -> Vec<u64> {
    let began = array.now();
    for request in requests {
        array.submit(began, *request);
    }
    let mut latencies = Vec::new();
    while let Some(happening) = array.next(began + 1_000_000_000) {
        if let Happening::Completed(Completed { completed, .. }) = happening {
            latencies.push(completed - began);
        }
    }
    latencies
}

/// The law a virtual disk was measured to obey: a constant, and the same again for each request
/// that is under way.
#[test]
fn latency_grows_by_one_request_for_each_that_is_under_way() {
    for depth in [1, 2, 7, 32] {
        let mut array = build(&virtual_disk(), 1);
        let writes: Vec<Request> =
            (0..depth).map(|n| request(n * 4 * KIB, 4 * KIB, true)).collect();
        let latencies = all_at_once(&mut array, &writes);
        assert_eq!(latencies, vec![2 * NOTICE_NS + depth * REQUEST_NS; depth as usize]);
    }
}

/// What comes while the queue is worked on is told of with the rest, and needs not be noticed
/// first.
#[test]
fn a_request_that_comes_meanwhile_ends_with_the_others() {
    let mut array = build(&virtual_disk(), 1);
    array.submit(0, request(0, 4 * KIB, true));
    array.submit(NOTICE_NS + 1, request(GB, 4 * KIB, true));
    let told = 2 * NOTICE_NS + 2 * REQUEST_NS;
    for _ in 0..2 {
        let Some(Happening::Completed(done)) = array.next(u64::MAX) else {
            panic!("both are told of");
        };
        assert_eq!(done.completed, told);
    }
}

/// A durable write is followed by a flush, and reads and other writes by none.
#[test]
fn a_durable_write_takes_a_flush_more() {
    let mut array = build(&virtual_disk(), 1);
    let plain = one(&mut array, request(0, 4 * KIB, true));
    let flushed = one(&mut array, durable(0));
    let difference = (flushed.completed - flushed.submitted) - (plain.completed - plain.submitted);
    assert_eq!(difference, FLUSH_NS + NOTICE_NS + DURABLE_NS);
    let read = Request { is_durable: true, ..request(0, 4 * KIB, false) };
    let read = one(&mut array, read);
    assert!(read.completed - read.submitted < flushed.completed - flushed.submitted);
}

/// Only one flush is under way: the first write begins it, and the others share the next.
#[test]
fn writes_that_want_a_flush_meanwhile_share_the_next() {
    let mut array = build(&virtual_disk(), 1);
    let writes: Vec<Request> = (0..5).map(|n| durable(n * 4 * KIB)).collect();
    let latencies = all_at_once(&mut array, &writes);
    let written = 2 * NOTICE_NS + 5 * REQUEST_NS;
    let flush = FLUSH_NS + NOTICE_NS;
    let mut expected = vec![written + 2 * flush + DURABLE_NS; 5];
    expected[0] = written + flush + DURABLE_NS;
    assert_eq!(latencies, expected);
    assert_eq!(array.report().members[0].host.write_count, 5);
}

/// Without such a queue nobody pays for a flush: a cache that is protected keeps what it has taken.
#[test]
fn an_array_with_a_protected_cache_needs_no_flush() {
    let mut spec = virtual_disk();
    spec.path.queue = None;
    let mut array = build(&spec, 1);
    let plain = one(&mut array, request(0, 4 * KIB, true));
    let flushed = one(&mut array, durable(0));
    assert_eq!(flushed.completed - flushed.submitted, plain.completed - plain.submitted);
}

/// The queue is a stage like any other, and the first bottleneck where it is the busiest.
#[test]
fn the_queue_is_a_stage_of_the_report() {
    let mut array = build(&virtual_disk(), 1);
    let began = array.now();
    let requests: Vec<Request> = (0..50).map(|n| request(n * 4 * KIB, 4 * KIB, true)).collect();
    all_at_once(&mut array, &requests);
    let report = array.report();
    let stage = report.stages.iter().find(|stage| stage.stage == "disk queue");
    let busy_ns = stage.expect("it is a stage").utilisation * report.interval_ns as f64;
    assert!((busy_ns - (50 * REQUEST_NS) as f64).abs() < 1.0, "{busy_ns}");
    assert!(array.now() > began);
}

/// Nothing is faster than in no time.
#[test]
fn a_queue_that_gives_time_back_is_refused() {
    let mut spec = virtual_disk();
    spec.path.queue.as_mut().expect("it has one").read_ns_per_byte = -1.0;
    assert!(plimsoll_array::check(&spec).is_err());
}
