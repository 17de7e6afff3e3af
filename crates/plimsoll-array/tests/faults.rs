//! What breaks: drives, spares, links, controllers, the cache's protection.

mod support;

use plimsoll_array::spec::{Fault, PathPolicy, RaidLevel, TimedFault};
use support::*;

fn failing(at_ns: u64, fault: Fault) -> Vec<TimedFault> {
    vec![TimedFault { at_ns, fault }]
}

const FIRST_DRIVE: Fault = Fault::DriveFails { group: 0, drive: 0 };

/// SIM-07, HA-04: a degraded array is slower, and slower still while a spare is being filled.
#[test]
fn a_lost_drive_slows_the_array() {
    let latency_ms = |faults: Vec<TimedFault>, rebuild: f64| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
        spec.groups[0].spare_count = 1;
        spec.groups[0].rebuild_bytes_per_second = rebuild;
        spec.faults = faults;
        class(
            &run(&simulation(spec, vec![random_reads(90 * GB, 8, 0.3)], 10, 60)),
            "random",
        )
        .1
    };
    let healthy = latency_ms(Vec::new(), 0.0);
    let degraded = latency_ms(failing(0, FIRST_DRIVE), 0.0);
    let rebuilding = latency_ms(failing(0, FIRST_DRIVE), 40e6);
    assert!(degraded > 1.1 * healthy, "{degraded} against {healthy}");
    assert!(rebuilding > 1.02 * degraded, "{rebuilding} against {degraded}");
}

/// SIM-07: a mirror is rebuilt from one drive, a RAID 5 from all of them, so under load the mirror is whole sooner.
#[test]
fn rebuilds_end_and_mirrors_end_sooner() {
    let seconds = |level, drives: u32| {
        let mut drive = hdd(15_000.0);
        drive.capacity_bytes = 8 * GB;
        let mut spec = array(drive, level, &[drives]);
        spec.volumes[0].capacity_bytes = 10 * GB;
        spec.groups[0].spare_count = 1;
        spec.groups[0].rebuild_bytes_per_second = 1e9;
        spec.faults = failing(0, FIRST_DRIVE);
        let mut array = build(&spec, 1);
        let mut random = plimsoll_io::Random::from_seed(1);
        let (mut submitted, mut done) = (0u64, 0u64);
        while array.rebuilds().is_empty() {
            while submitted < done + 6 {
                let offset = random.below(10 * GB / (32 * KIB) - 1) * 32 * KIB;
                array.submit(array.now(), request(offset, 32 * KIB, false));
                submitted += 1;
            }
            if array.next(array.next_time().unwrap_or(u64::MAX)).is_some() {
                done += 1;
            }
        }
        let progress = array.rebuilds()[0];
        assert_eq!(progress.row_count, 8 * GB / (64 * KIB));
        (progress.finished.unwrap_or(0) - progress.started) as f64 / 1e9
    };
    let (raid5, raid10) = (seconds(RaidLevel::Raid5, 8), seconds(RaidLevel::Raid10, 8));
    assert!(raid10 < raid5, "{raid10} against {raid5}");
}

/// Two sets of one group share their spares: with one spare only the first loss is rebuilt, and the report tells how far it is.
#[test]
fn sets_of_a_group_share_their_spares() {
    let rebuilds = |spare_count: u32| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid50, &[5, 5]);
        spec.groups[0].spare_count = spare_count;
        spec.groups[0].rebuild_bytes_per_second = 50e6;
        spec.faults = [0, 5]
            .map(|drive| TimedFault {
                at_ns: SECOND,
                fault: Fault::DriveFails { group: 0, drive },
            })
            .to_vec();
        let mut array = build(&spec, 1);
        array.next(11 * SECOND);
        array.report().rebuilds
    };
    assert_eq!(
        (rebuilds(1).len(), rebuilds(2).len(), rebuilds(0).len()),
        (1, 2, 0)
    );
    let one = &rebuilds(1)[0];
    check_near(one.duration_s, 10.0, 0.01);
    // Ten seconds at 50 MB/s of a drive's whole capacity.
    let capacity = hdd(15_000.0).capacity_bytes as f64;
    check_near(one.share, 500e6 / capacity, 0.05);
}

/// One loss too many is told, not hidden: requests to the set fail and others go on.
#[test]
fn losing_more_than_the_redundancy_bears_loses_data() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    spec.faults = vec![
        TimedFault {
            at_ns: 0,
            fault: FIRST_DRIVE,
        },
        TimedFault {
            at_ns: SECOND,
            fault: Fault::DriveFails { group: 0, drive: 3 },
        },
    ];
    let mut array = build(&spec, 1);
    array.next(MS);
    assert!(
        !one(&mut array, request(0, 32 * KIB, false)).is_lost,
        "one loss is borne"
    );
    array.next(2 * SECOND);
    assert!(one(&mut array, request(0, 32 * KIB, false)).is_lost);
    assert_eq!(array.report().volumes[0].host.lost_count, 1);
}

/// SIM-13: with half the paths lost I/O goes on over the others; with all lost it waits for one to return.
#[test]
fn lost_paths_are_worked_around() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid10, &[8]);
    spec.path.link_count = 4;
    spec.path.policy = PathPolicy::RoundRobin;
    spec.faults = [0, 1]
        .map(|link| TimedFault {
            at_ns: 5 * SECOND,
            fault: Fault::LinkFails { link },
        })
        .to_vec();
    let outcome = run(&simulation(
        spec.clone(),
        vec![random_reads(90 * GB, 8, 0.0)],
        10,
        20,
    ));
    let shares: Vec<u64> = outcome
        .array
        .links
        .iter()
        .map(|link| link.request_count)
        .collect();
    assert_eq!(shares[..2], [0, 0]);
    check_near(shares[2] as f64, shares[3] as f64, 0.01);

    spec.faults.extend([2, 3].map(|link| TimedFault {
        at_ns: 5 * SECOND,
        fault: Fault::LinkFails { link },
    }));
    spec.faults.push(TimedFault {
        at_ns: 8 * SECOND,
        fault: Fault::LinkReturns { link: 2 },
    });
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 8, 0.0)], 0, 20));
    assert!(
        (2_900.0..4_200.0).contains(&outcome.classes[0].latency_ms_max),
        "{:?}",
        outcome.classes
    );
    assert!(outcome.classes[0].count > 10_000, "it goes on afterwards");
}

/// SIM-14: when a controller fails its partner takes over after a pause, and the cache writes through from then on.
#[test]
fn a_controller_failure_is_a_pause_and_a_slower_array() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
    let fault = Fault::ControllerFails {
        member: 0,
        controller: 0,
    };
    spec.faults = failing(5 * SECOND, fault);
    let stream = open(50.0, 32 * KIB, 90 * GB / (32 * KIB) * (32 * KIB), 0.5);
    let outcome = run(&simulation(spec.clone(), vec![stream.clone()], 0, 20));
    assert!(
        (1_800.0..2_600.0).contains(&outcome.classes[0].latency_ms_max),
        "{:?}",
        outcome.classes
    );
    let after = run(&simulation(spec.clone(), vec![stream.clone()], 10, 20));
    spec.faults.clear();
    let before = run(&simulation(spec, vec![stream], 10, 20));
    let write_ms = |outcome: &plimsoll_array::source::Outcome| outcome.array.volumes[0].host.write_latency_ms;
    assert!(
        write_ms(&before) < 1.0 && write_ms(&after) > 8.0,
        "{} {}",
        write_ms(&before),
        write_ms(&after)
    );
}

/// A cache that loses its protection writes through until it is protected again.
#[test]
fn a_cache_without_protection_writes_through() {
    let mut array = build(&array(hdd(15_000.0), RaidLevel::Raid5, &[7]), 1);
    let write = |array: &mut plimsoll_array::Array, number: u64| {
        let done = one(array, request(number * MIB, 32 * KIB, true));
        done.completed - done.submitted
    };
    assert!(write(&mut array, 1) < MS);
    array.break_at(array.now(), Fault::CacheLost { member: 0 });
    array.next(array.now());
    assert!(write(&mut array, 2) > 2 * MS);
    array.break_at(array.now(), Fault::CacheReturns { member: 0 });
    array.next(array.now());
    assert!(write(&mut array, 3) < MS);
}
