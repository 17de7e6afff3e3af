//! Stations against queueing theory: what a textbook says exactly, the model must give too.
//! Little's law: `stations.rs`.

use crate::support::*;
use plimsoll_array::spec::{DriveKind, Scheduling};
use plimsoll_array::{Array, Happening, Request};
use plimsoll_io::Random;

/// Poisson arrivals of reads of 512 bytes times a drawn number, all waiting for one link; gives the
/// mean time in it.
fn mean_time_in_link_ns(
    mean_sectors: f64,
    utilisation: f64,
    draw: impl Fn(&mut Random) -> f64,
) -> f64 {
    let mut spec = array(ssd(1.5), plimsoll_array::spec::RaidLevel::Raid0, &[1]);
    spec.path.link_count = 1;
    // 512 bytes take a microsecond.
    spec.path.link_bytes_per_second = 512e6;
    let mut array = build(&spec, 1);
    let mut random = Random::from_seed(3);
    let mean_service_ns = mean_sectors * 1_000.0;
    let (mut total_ns, mut count, mut at) = (0.0, 0u32, 0.0);
    let mut latency = |array: &mut Array, until: u64| {
        while let Some(happening) = array.next(until) {
            if let Happening::Completed(done) = happening {
                total_ns += (done.completed - done.submitted) as f64;
                count += 1;
            }
        }
    };
    for _ in 0..200_000 {
        at += -(1.0 - random.unit()).ln() * mean_service_ns / utilisation;
        latency(&mut array, at as u64);
        let sectors = draw(&mut random).max(1.0) as u64;
        let write = Request { offset: 0, ..request(0, sectors * 512, true) };
        array.submit(at as u64, write);
    }
    latency(&mut array, u64::MAX / 2);
    total_ns / f64::from(count)
}

/// M/M/1: exponential sizes on one link. Time in the system is the service time over one less the
/// utilisation.
#[test]
fn a_link_with_exponential_transfers_is_an_mm1_queue() {
    for utilisation in [0.3, 0.6, 0.8] {
        let mean = 100.0;
        let measured = mean_time_in_link_ns(mean, utilisation, |random| {
            (-(1.0 - random.unit()).ln() * mean).round()
        });
        check_near(measured, mean * 1_000.0 / (1.0 - utilisation), 0.04);
    }
}

/// M/D/1, the case of M/G/1 with fixed service: Pollaczek and Khinchine give half the wait of
/// M/M/1.
#[test]
fn a_link_with_equal_transfers_is_an_md1_queue() {
    let (service_ns, utilisation) = (100_000.0, 0.7);
    let measured = mean_time_in_link_ns(100.0, utilisation, |_| 100.0);
    check_near(measured, service_ns * (1.0 + utilisation / (2.0 * (1.0 - utilisation))), 0.03);
}

fn in_order_drive() -> plimsoll_array::ArraySpec {
    let mut drive = hdd(15_000.0);
    let DriveKind::Hdd(spec) = &mut drive.kind else { unreachable!() };
    spec.scheduling = Scheduling::InOrder;
    one_drive(drive)
}

/// M/G/1 on the arm itself: the service times are measured one at a time, and Pollaczek and
/// Khinchine then foretell the wait under Poisson arrivals. The seek, the turn and the queue have
/// to be right together.
#[test]
fn a_drive_in_order_is_an_mg1_queue() {
    let mut array = build(&in_order_drive(), 5);
    let mut random = Random::from_seed(11);
    let (mut sum, mut squares, count) = (0.0, 0.0, 20_000);
    for _ in 0..count {
        let offset = random.below(90 * GB / (32 * KIB)) * 32 * KIB;
        let done = one(&mut array, request(offset, 32 * KIB, false));
        let service_s = (done.completed - done.submitted) as f64 / 1e9;
        sum += service_s;
        squares += service_s * service_s;
    }
    let (mean, second) = (sum / f64::from(count), squares / f64::from(count));
    for utilisation in [0.4, 0.7] {
        let per_second = utilisation / mean;
        let stream = open(per_second, 32 * KIB, 90 * GB / (32 * KIB) * (32 * KIB), 0.0);
        let outcome = run(&simulation(in_order_drive(), vec![stream], 20, 1_500));
        let expected_s = mean + per_second * second / (2.0 * (1.0 - utilisation));
        check_near(class(&outcome, "open").1, expected_s * 1e3, 0.06);
    }
}

/// Little's law at the host (requests there = rate x latency) and at the drives, which see the same
/// requests.
#[test]
fn littles_law_holds_at_host_and_drives() {
    let mut spec = array(hdd(15_000.0), plimsoll_array::spec::RaidLevel::Raid0, &[4]);
    spec.path.link_count = 1;
    spec.path.link_bytes_per_second = 100e6;
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 12, 0.0)], 5, 60));
    let (per_second, latency_ms) = class(&outcome, "random");
    check_near(per_second * latency_ms / 1e3, 12.0, 0.005);
    let at_drives: f64 = outcome
        .array
        .drives
        .iter()
        .map(|drive| {
            let count: u64 = drive.operations.iter().map(|(_, count)| count).sum();
            count as f64 / 60.0 * drive.response_ms / 1e3
        })
        .sum();
    let on_link = outcome.array.links[0].to_host_utilisation;
    // The rest is on the link, being sent or waiting to be: at least its utilisation, and not much
    // more when it is idle.
    assert!(at_drives + on_link <= 12.01, "{at_drives} and {on_link}");
    assert!(at_drives + 1.3 * on_link >= 11.9, "{at_drives} and {on_link}");
}

/// Work is conserved: a drive that always has something to do is busy all the time.
#[test]
fn a_loaded_drive_is_never_idle() {
    let outcome =
        run(&simulation(one_drive(hdd(10_000.0)), vec![random_reads(90 * GB, 8, 0.0)], 5, 60));
    check_near(outcome.array.drives[0].utilisation, 1.0, 0.001);
}
