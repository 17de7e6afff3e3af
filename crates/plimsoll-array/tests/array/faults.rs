//! What breaks: drives, spares, links, controllers, the cache's protection.

use crate::support::*;
use plimsoll_array::spec::{
    Fault, PathPolicy, PoolSpec, PrefetchSpec, RaidLevel, TimedFault, VolumeSpec,
};
use plimsoll_array::{Happening, Request, check};

/// Two drives of a set, the second some time after the first.
fn two_drives_fail(first_s: u64, second_s: u64) -> Vec<TimedFault> {
    let fails = |drive, at_s| TimedFault {
        at_ns: at_s * SECOND,
        fault: Fault::DriveFails { group: 0, drive },
    };
    vec![fails(0, first_s), fails(3, second_s)]
}

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
        class(&run(&simulation(spec, vec![random_reads(90 * GB, 8, 0.3)], 10, 60)), "random").1
    };
    let healthy = latency_ms(Vec::new(), 0.0);
    let degraded = latency_ms(failing(0, FIRST_DRIVE), 0.0);
    let rebuilding = latency_ms(failing(0, FIRST_DRIVE), 40e6);
    assert!(degraded > 1.1 * healthy, "{degraded} against {healthy}");
    assert!(rebuilding > 1.02 * degraded, "{rebuilding} against {degraded}");
}

/// SIM-07: a mirror is rebuilt from one drive, a RAID 5 from all of them, so under load the mirror
/// is whole sooner.
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

/// Two sets of one group share their spares: with one spare only the first loss is rebuilt, and the
/// report tells how far it is.
#[test]
fn sets_of_a_group_share_their_spares() {
    let rebuilds = |spare_count: u32| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid50, &[5, 5]);
        spec.groups[0].spare_count = spare_count;
        spec.groups[0].rebuild_bytes_per_second = 50e6;
        spec.faults = [0, 5]
            .map(|drive| TimedFault { at_ns: SECOND, fault: Fault::DriveFails { group: 0, drive } })
            .to_vec();
        let mut array = build(&spec, 1);
        array.next(11 * SECOND);
        array.report().rebuilds
    };
    assert_eq!((rebuilds(1).len(), rebuilds(2).len(), rebuilds(0).len()), (1, 2, 0));
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
        TimedFault { at_ns: 0, fault: FIRST_DRIVE },
        TimedFault { at_ns: SECOND, fault: Fault::DriveFails { group: 0, drive: 3 } },
    ];
    let mut array = build(&spec, 1);
    array.next(MS);
    assert!(!one(&mut array, request(0, 32 * KIB, false)).is_lost, "one loss is borne");
    array.next(2 * SECOND);
    assert!(one(&mut array, request(0, 32 * KIB, false)).is_lost);
    assert_eq!(array.report().volumes[0].host.lost_count, 1);
}

/// SIM-13: with half the paths lost I/O goes on over the others; with all lost it waits for one to
/// return.
#[test]
fn lost_paths_are_worked_around() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid10, &[8]);
    spec.path.link_count = 4;
    spec.path.policy = PathPolicy::RoundRobin;
    spec.faults = [0, 1]
        .map(|link| TimedFault { at_ns: 5 * SECOND, fault: Fault::LinkFails { link } })
        .to_vec();
    let outcome = run(&simulation(spec.clone(), vec![random_reads(90 * GB, 8, 0.0)], 10, 20));
    let shares: Vec<u64> = outcome.array.links.iter().map(|link| link.request_count).collect();
    assert_eq!(shares[..2], [0, 0]);
    check_near(shares[2] as f64, shares[3] as f64, 0.01);

    spec.faults.extend(
        [2, 3].map(|link| TimedFault { at_ns: 5 * SECOND, fault: Fault::LinkFails { link } }),
    );
    spec.faults.push(TimedFault { at_ns: 8 * SECOND, fault: Fault::LinkReturns { link: 2 } });
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 8, 0.0)], 0, 20));
    assert!(
        (2_900.0..4_200.0).contains(&outcome.classes[0].latency_ms_max),
        "{:?}",
        outcome.classes
    );
    assert!(outcome.classes[0].count > 10_000, "it goes on afterwards");
}

/// SIM-14: when a controller fails its partner takes over after a pause, and the cache writes
/// through from then on.
#[test]
fn a_controller_failure_is_a_pause_and_a_slower_array() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
    let fault = Fault::ControllerFails { member: 0, controller: 0 };
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
    let write_ms =
        |outcome: &plimsoll_array::source::Outcome| outcome.array.volumes[0].host.write_latency_ms;
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

/// Why: a RAID 5 with two failed drives answered at once, and was the fastest array of all. What is
/// lost is an error.
#[test]
fn lost_requests_are_errors_and_no_rate() {
    for stream in [random_reads(90 * GB, 16, 0.3), sessions(20), sequential("random", 256 * KIB, 4)]
    {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
        spec.members[0].cache.prefetch = Some(PrefetchSpec {
            chunk_bytes: MIB,
            ahead_count: 4,
            run_count_min: 2,
            pause_ns_max: SECOND,
        });
        spec.faults = two_drives_fail(2, 3);
        let outcome = run(&simulation(spec, vec![stream], 4, 20));
        let done: u64 = outcome.classes.iter().map(|class| class.count).sum();
        let host = &outcome.array.volumes[0].host;
        assert_eq!((done, host.read_count, host.write_count), (0, 0, 0), "{:?}", outcome.classes);
        assert!(outcome.classes.iter().all(|class| class.per_second == 0.0));
        let lost = &outcome.array.lost_sets;
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].group.as_str(), lost[0].at_s), ("group", 3.0));
    }
}

/// What is lost while it is counted stands with the class it belongs to.
#[test]
fn errors_are_counted_by_class() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    spec.faults = two_drives_fail(2, 3);
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 16, 0.0)], 1, 20));
    let class = &outcome.classes[0];
    assert!(class.count > 100);
    assert_eq!(class.error_count, outcome.array.volumes[0].host.lost_count);
    assert_eq!(class.error_count, 16, "each of the sixteen meets one error and goes no further");
}

/// Why: whoever met an error asked again at once, and the simulation worked through millions of
/// refusals of a dead array.
#[test]
fn a_dead_array_costs_no_work() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    spec.faults = two_drives_fail(0, 1);
    let outcome =
        run(&simulation(spec, vec![random_reads(90 * GB, 64, 0.5), sessions(20)], 1, 3600));
    assert!(outcome.request_count < 20_000, "{}", outcome.request_count);
}

/// Why: what a lost set had in the cache stayed there for ever, and held back everybody else's
/// writes.
#[test]
fn the_cache_does_not_keep_what_nothing_can_take() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    spec.members[0].cache.dirty_bytes_max = 16 * MIB;
    let mut second = group(0, RaidLevel::Raid5, &[5]);
    second.name = "other".into();
    spec.groups.push(second);
    spec.pools.push(PoolSpec { name: "other".into(), groups: vec![1], ..spec.pools[0].clone() });
    spec.volumes.push(VolumeSpec { pool: 1, ..volume("other", 100 * GB) });
    spec.faults = two_drives_fail(1, 1);
    let mut array = build(&spec, 1);
    array.next(SECOND - 1);
    for number in 0..400 {
        array.submit(array.now(), request(number * MIB, 32 * KIB, true));
    }
    let other = Request { volume: 1, token: 7, ..request(0, 32 * KIB, true) };
    array.submit(array.now(), other);
    let mut answered = Vec::new();
    while let Some(happening) = array.next(60 * SECOND) {
        if let Happening::Completed(completed) = happening {
            answered.push(completed);
        }
    }
    assert_eq!(answered.len(), 401, "everybody is answered");
    let other = answered.iter().find(|completed| completed.request.token == 7);
    assert!(other.is_some_and(|completed| !completed.is_lost));
    assert_eq!(array.dirty_bytes(0), 32 * KIB, "nothing but the other set's");
}

/// An array that has lost its data before anything begins can hold nothing, and a drive fails once.
#[test]
fn states_that_cannot_be_are_refused() {
    let refused = |level, sets: &[u32], faults: Vec<TimedFault>| {
        let mut spec = array(hdd(15_000.0), level, sets);
        spec.faults = faults;
        check(&spec).err().map(|errors| errors.to_string())
    };
    let two = || two_drives_fail(0, 0);
    let words = refused(RaidLevel::Raid5, &[5], two()).unwrap_or_default();
    assert!(words.contains("faults") && words.contains("lost its data before"), "{words}");
    assert_eq!(refused(RaidLevel::Raid6, &[6], two()), None);
    assert_eq!(refused(RaidLevel::Raid50, &[3, 3], two()), None, "one drive of each set");
    assert!(refused(RaidLevel::Raid0, &[4], failing(0, FIRST_DRIVE)).is_some());
    assert_eq!(refused(RaidLevel::Raid10, &[4], two()), None, "one drive of each pair");
    assert_eq!(
        refused(RaidLevel::Raid5, &[5], two_drives_fail(0, 1)),
        None,
        "a loss while it runs can be"
    );
    let twice = [failing(0, FIRST_DRIVE), failing(SECOND, FIRST_DRIVE)].concat();
    let words = refused(RaidLevel::Raid6, &[6], twice).unwrap_or_default();
    assert!(words.contains("fails twice"), "{words}");
}

/// A spare that fails while it is being filled: the next one is filled from the beginning, by its
/// own reads.
#[test]
fn a_spare_that_fails_is_followed_by_the_next() {
    for failed_ns in (0..60).map(|number| 100 * MS + number * MS / 2) {
        let mut drive = hdd(15_000.0);
        drive.capacity_bytes = 200 * 1000 * 1000;
        let mut spec = array(drive, RaidLevel::Raid5, &[5]);
        spec.volumes[0].capacity_bytes = GB / 10;
        spec.groups[0].spare_count = 2;
        spec.groups[0].rebuild_bytes_per_second = 20e6;
        let again = failing(failed_ns, FIRST_DRIVE);
        spec.faults = [failing(0, FIRST_DRIVE), again].concat();
        let mut array = build(&spec, 1);
        array.next(100 * SECOND);
        let ended = array.rebuilds();
        assert_eq!(ended.len(), 1, "failed at {failed_ns}");
        assert_eq!(ended[0].started, failed_ns);
        assert_eq!(ended[0].row_count, 200 * 1000 * 1000 / (64 * KIB));
    }
}
