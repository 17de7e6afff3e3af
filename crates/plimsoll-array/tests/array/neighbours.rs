//! Other hosts on the same array: what they take from the host, that they are counted apart, and
//! what cannot be.

use crate::support::*;
use plimsoll_array::spec::{
    NeighbourPattern, NeighbourSpec, PageOrder, PoolSpec, RaidLevel, Tenant, VolumeSpec,
};
use plimsoll_array::{ArraySpec, SpecErrors, StageUse, check};

fn neighbour(per_second: f64, request_bytes: u64, read_share: f64) -> NeighbourSpec {
    NeighbourSpec {
        name: "erp".into(),
        volume: 1,
        per_second,
        read_share,
        request_bytes,
        pattern: NeighbourPattern::Random,
        outstanding_max: 32,
        shares_links: true,
    }
}

fn theirs(tenant: Tenant) -> VolumeSpec {
    VolumeSpec { tenant, ..volume("erp", 100 * GB) }
}

/// Seven 15k drives in RAID 5 with the host's volume, another's behind it, and those neighbours on
/// it.
fn shared(neighbours: Vec<NeighbourSpec>) -> ArraySpec {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
    spec.volumes.push(theirs(Tenant::NeighbourBehind));
    spec.neighbours = neighbours;
    spec
}

fn stage<'a>(outcome: &'a plimsoll_array::source::Outcome, name: &str) -> &'a StageUse {
    let mut stages = outcome.array.stages.iter();
    stages.find(|stage| stage.stage == name).unwrap_or_else(|| panic!("no stage {name}"))
}

/// SIM-09: the reason why a mail server is slow on a shared array has to be in the model, and to be
/// told apart from the server itself.
#[test]
fn a_neighbour_slows_the_host_and_is_counted_apart() {
    let of = |neighbours| {
        let streams = vec![open(100.0, 32 * KIB, 90 * GB / (32 * KIB) * (32 * KIB), 0.3)];
        run(&simulation(shared(neighbours), streams, 5, 60))
    };
    let (alone, both) = (of(Vec::new()), of(vec![neighbour(600.0, 8 * KIB, 0.7)]));
    let (alone_ms, shared_ms) = (class(&alone, "open").1, class(&both, "open").1);
    assert!(shared_ms > 1.2 * alone_ms, "{shared_ms} against {alone_ms}");

    // The host's own counters still are the host's, and those of the box hold everybody's.
    assert_eq!(both.classes.len(), 1);
    let names: Vec<&str> = both.array.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["data"]);
    let count = |host: &plimsoll_array::VolumeReport| host.host.read_count + host.host.write_count;
    assert_eq!(both.classes[0].count, count(&both.array.volumes[0]));
    let other = &both.array.neighbours[0];
    assert_eq!((other.name.as_str(), other.volume.as_str()), ("erp", "erp"));
    let theirs = other.host.read_count + other.host.write_count;
    let member = both.array.members[0].host;
    assert_eq!(member.read_count + member.write_count, both.classes[0].count + theirs);
    check_near(theirs as f64 / 60.0, 600.0, 0.03);
    check_near(other.host.read_count as f64 / theirs as f64, 0.7, 0.03);
    assert_eq!(other.left_out_count, 0);
    assert_eq!(other.host.read_bytes, other.host.read_count * 8 * KIB);
    assert!(alone.array.neighbours.is_empty());
}

/// A share that missed the parity writes of the neighbour, or counted the host's, would name the
/// wrong guilty one.
#[test]
fn all_the_work_of_a_stage_belongs_to_those_who_caused_it() {
    for drive in [hdd(15_000.0), ssd(2.0)] {
        let mut spec = shared(vec![neighbour(200.0, 8 * KIB, 0.5)]);
        (spec.drives[0], spec.members[0].processor_ns) = (drive, 100_000);
        let idle_host = run(&simulation(spec.clone(), Vec::new(), 20, 60));
        for name in ["drives", "controllers", "links to the array", "links to the host"] {
            let found = stage(&idle_host, name);
            assert!(found.utilisation > 0.0, "{name}");
            check_near(found.neighbour_utilisation, found.utilisation, 0.03);
        }
        spec.neighbours.clear();
        let alone = run(&simulation(spec, vec![random_reads(90 * GB, 4, 0.5)], 5, 20));
        assert!(alone.array.stages.iter().all(|stage| stage.neighbour_utilisation == 0.0));
    }
}

/// An application with so many threads asks no further while all of them wait: its load must not
/// grow beyond all bounds in the model.
#[test]
fn a_neighbour_the_array_cannot_carry_leaves_requests_out() {
    let mut greedy = neighbour(100_000.0, 8 * KIB, 1.0);
    greedy.outstanding_max = 8;
    let outcome = run(&simulation(shared(vec![greedy]), Vec::new(), 2, 10));
    let found = &outcome.array.neighbours[0];
    assert!(found.host.read_count > 5_000, "{}", found.host.read_count);
    check_near((found.host.read_count + found.left_out_count) as f64 / 10.0, 100_000.0, 0.02);
    // Eight at once, each as long as it takes: Little's law.
    check_near(found.host.read_count as f64 / 10.0 * found.host.read_latency_ms / 1e3, 8.0, 0.02);
}

/// Whoever was there first has the fast outer rim, and what comes later the slow inner one.
#[test]
fn what_was_there_first_lies_nearer_the_rim() {
    let rate = |tenant| {
        let mut spec = one_drive(hdd(7_200.0));
        let there_first = VolumeSpec { capacity_bytes: 450 * GB, ..theirs(tenant) };
        spec.volumes.push(there_first);
        run(&simulation(spec, vec![sequential("scan", MIB, 4)], 1, 5)).classes[0].bytes_per_second
    };
    let (inner, outer) = (rate(Tenant::NeighbourBefore), rate(Tenant::NeighbourBehind));
    check_near(outer, 105e6, 0.05);
    assert!(inner < 0.8 * outer, "{inner} against {outer}");
}

/// A neighbour behind ports of its own takes nothing from the host's links, one behind the same
/// ports does; a sequential one gets large stretches from the drives.
#[test]
fn links_are_shared_only_where_they_are_said_to_be() {
    let of = |shares_links| {
        let mut backup = neighbour(200.0, 256 * KIB, 1.0);
        (backup.pattern, backup.shares_links) = (NeighbourPattern::Sequential, shares_links);
        let mut spec = shared(vec![backup]);
        (spec.path.link_count, spec.path.link_bytes_per_second) = (1, 117e6);
        run(&simulation(spec, vec![open(50.0, 32 * KIB, 32 * GB, 0.0)], 2, 20))
    };
    let (same, own) = (of(true), of(false));
    let theirs = |outcome| stage(outcome, "links to the host").neighbour_utilisation;
    check_near(theirs(&same), 200.0 * 256.0 * KIB as f64 / 117e6, 0.05);
    assert_eq!(theirs(&own), 0.0);
    assert!(class(&own, "open").1 < class(&same, "open").1);
    assert!(own.array.neighbours[0].host.read_count > 3_800);
}

/// Elements go round all drives of a box: a pool of unlike drives ends where the smallest does, and
/// work beyond it would be on no drive.
#[test]
fn a_pool_of_unlike_drives_ends_with_the_smallest() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    let mut large = hdd(7_200.0);
    (large.name, large.capacity_bytes) = ("large".into(), 6_000 * GB);
    spec.drives.push(large);
    let mut second = group(0, RaidLevel::Raid6, &[6]);
    second.drive = "large".into();
    spec.groups.push(second);
    spec.pools = vec![PoolSpec {
        name: "pool".into(),
        groups: vec![0, 1],
        page_bytes: 15 * MIB,
        page_order: PageOrder::VolumeByVolume,
    }];
    // Four columns of data on the small drives and four on the large ones.
    spec.volumes = vec![volume("data", 4_790 * GB)];
    assert!(check(&spec).is_ok());
    let outcome = run(&simulation(spec.clone(), vec![random_reads(4_790 * GB, 16, 0.3)], 1, 10));
    assert!(outcome.array.drives.iter().all(|drive| drive.utilisation > 0.1));
    spec.volumes = vec![volume("data", 4_810 * GB)];
    let SpecErrors(errors) = check(&spec).expect_err("it does not fit");
    assert!(errors[0].message.contains("holds 4800.0 GB"), "{}", errors[0].message);
}

/// Idle drives of another pool must not make those that everybody waits for look half idle.
#[test]
fn the_drives_of_each_pool_are_a_stage_of_their_own() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[5]);
    spec.groups.push(group(0, RaidLevel::Raid10, &[12]));
    spec.pools.push(PoolSpec { name: "archive".into(), groups: vec![1], ..spec.pools[0].clone() });
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 64, 0.0)], 1, 10));
    assert!(stage(&outcome, "drives").utilisation > 0.95);
    assert_eq!(stage(&outcome, "drives of the pool archive").utilisation, 0.0);
}

/// Every impossible neighbour at once: one left out would let the array do less work than was asked
/// about.
#[test]
fn impossible_neighbours_are_refused_together() {
    let mut on_the_hosts = neighbour(10.0, 8 * KIB, 0.5);
    on_the_hosts.volume = 0;
    let mut nowhere = neighbour(0.0, 0, 1.5);
    nowhere.volume = 9;
    let SpecErrors(errors) =
        check(&shared(vec![on_the_hosts, nowhere])).expect_err("none of this can be");
    let places: Vec<&str> = errors.iter().map(|error| error.place.as_str()).collect();
    assert_eq!(
        places,
        [
            "neighbours[0].volume",
            "neighbours[1].volume",
            "neighbours[1].per_second",
            "neighbours[1].read_share",
            "neighbours[1].request_bytes"
        ]
    );
}
