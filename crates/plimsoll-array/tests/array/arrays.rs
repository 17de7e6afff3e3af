//! Whole arrays: members, volumes, links, limits, counters, and one seed for everything.

use crate::support::*;
use plimsoll_array::spec::{
    CapSpec, Fault, PageOrder, PathPolicy, PoolSpec, RaidLevel, TimedFault,
};
use plimsoll_array::{ArraySpec, check};

/// Two databases on a pool over `member_count` boxes.
fn pool(member_count: u32) -> ArraySpec {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid50, &[7, 7]);
    spec.members = vec![member(); member_count as usize];
    spec.groups =
        (0..member_count).map(|number| group(number, RaidLevel::Raid50, &[7, 7])).collect();
    spec.pools[0].groups = (0..member_count).collect();
    spec
}

/// One seed decides everything: without this no result could be compared with another.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run_with = |seed: u64| {
        let mut spec =
            simulation(pool(2), vec![sessions(12), sequential("scan", 256 * KIB, 2)], 5, 20);
        spec.seed = seed;
        serde_json::to_string(&run(&spec)).expect("outcomes are plain data")
    };
    assert_eq!(run_with(1), run_with(1));
    assert_ne!(run_with(1), run_with(2));
}

/// MON-02: what the array counts by volume and by member adds up to what the host counts.
#[test]
fn array_counters_add_up_to_the_hosts() {
    let mut spec = pool(3);
    spec.volumes = vec![volume("data", 100 * GB), volume("other", 50 * GB)];
    let mut streams = vec![sessions(12), random_reads(40 * GB, 4, 0.5)];
    if let plimsoll_array::source::StreamSpec::Closed(closed) = &mut streams[1] {
        closed.volume = 1;
    }
    let outcome = run(&simulation(spec, streams, 5, 30));
    let host_count: u64 = outcome.classes.iter().map(|class| class.count).sum();
    let host_bytes: f64 = outcome.classes.iter().map(|class| class.bytes_per_second * 30.0).sum();
    let sum = |hosts: Vec<(u64, u64)>| {
        hosts.iter().fold((0, 0), |(n, b), (count, bytes)| (n + count, b + bytes))
    };
    let volumes = outcome.array.volumes.iter().map(|volume| volume.host);
    let members = outcome.array.members.iter().map(|member| member.host);
    for hosts in [volumes.collect::<Vec<_>>(), members.collect::<Vec<_>>()] {
        let both = hosts
            .iter()
            .map(|host| (host.read_count + host.write_count, host.read_bytes + host.write_bytes));
        let (count, bytes) = sum(both.collect());
        assert_eq!(count, host_count);
        check_near(bytes as f64, host_bytes, 1e-9);
        assert!(hosts.iter().all(|host| host.read_count > 0 && host.write_count > 0));
    }
}

/// SIM-06: three members carry nearly three times the load of one.
#[test]
fn members_of_a_pool_share_the_load() {
    let rate = |members: u32| {
        let members_u64 = u64::from(members);
        let mut spec = pool(members);
        spec.volumes[0].capacity_bytes *= members_u64;
        let streams = vec![random_reads(90 * GB * members_u64, 24 * members, 0.4)];
        class(&run(&simulation(spec, streams, 30, 60)), "random").0
    };
    let (one, three) = (rate(1), rate(3));
    assert!((2.7..3.15).contains(&(three / one)), "{three} against {one}");
}

/// SIM-08: no more comes through than the links let through.
#[test]
fn links_limit_throughput() {
    let rate = |links: u32| {
        let mut spec = array(ssd(1.5), RaidLevel::Raid0, &[4]);
        spec.path.link_count = links;
        spec.path.link_bytes_per_second = 117e6;
        run(&simulation(spec, vec![random_reads(90 * GB, 32, 0.0)], 1, 4)).classes[0]
            .bytes_per_second
    };
    check_near(rate(1), 117e6, 0.01);
    check_near(rate(4), 4.0 * 117e6, 0.02);
}

/// SIM-08: a controller with one slow processor is the bottleneck, and the report names it.
#[test]
fn the_first_bottleneck_is_named() {
    let mut spec = array(ssd(1.5), RaidLevel::Raid0, &[4]);
    spec.members[0].processor_ns = 500_000;
    spec.members[0].controller_count = 1;
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 32, 0.0)], 1, 4));
    check_near(outcome.classes[0].per_second, 2_000.0, 0.01);
    assert_eq!(outcome.array.stages[0].stage, "controllers");
    check_near(outcome.array.stages[0].utilisation, 1.0, 0.01);
}

/// SIM-09: a second workload on the same spindles slows the first.
#[test]
fn workloads_on_shared_spindles_interfere() {
    let latency = |other: bool| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
        spec.volumes.push(volume("other", 50 * GB));
        let mut streams = vec![open(100.0, 32 * KIB, 90 * GB / (32 * KIB) * (32 * KIB), 0.0)];
        if other {
            let mut scan = sequential("backup", 256 * KIB, 4);
            if let plimsoll_array::source::StreamSpec::Closed(closed) = &mut scan {
                closed.volume = 1;
            }
            streams.push(scan);
        }
        class(&run(&simulation(spec, streams, 5, 60)), "open").1
    };
    let (alone, shared) = (latency(false), latency(true));
    assert!(shared > 1.2 * alone, "{shared} against {alone}");
}

/// SIM-18, STO-11: a small volume of an aggregate uses all its drives, those of every group.
#[test]
fn a_small_volume_uses_every_drive_of_its_pool() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid6, &[8]);
    spec.groups.push(group(0, RaidLevel::Raid6, &[8]));
    spec.pools = vec![PoolSpec {
        name: "aggregate".into(),
        groups: vec![0, 1],
        page_bytes: 15 * MIB,
        page_order: PageOrder::VolumeByVolume,
    }];
    spec.volumes = vec![volume("small", 2 * GB)];
    let outcome = run(&simulation(spec, vec![random_reads(GB, 16, 0.0)], 1, 20));
    assert_eq!(outcome.array.drives.len(), 16);
    for drive in &outcome.array.drives {
        let count: u64 = drive.operations.iter().map(|(_, count)| count).sum();
        assert!(count > 200, "{drive:?}");
    }
}

/// STO-03: disk groups keep apart. A scan on one leaves the latency of the other alone, though they
/// share a box.
#[test]
fn disk_groups_do_not_disturb_each_other() {
    let latency = |other: bool| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid10, &[4]);
        spec.groups.push(group(0, RaidLevel::Raid10, &[4]));
        spec.pools.push(PoolSpec {
            name: "second".into(),
            groups: vec![1],
            page_bytes: 15 * MIB,
            page_order: PageOrder::VolumeByVolume,
        });
        spec.volumes.push(volume("other", 100 * GB));
        spec.volumes[1].pool = 1;
        let mut streams = vec![open(100.0, 32 * KIB, 90 * GB / (32 * KIB) * (32 * KIB), 0.0)];
        if other {
            let mut load = random_reads(90 * GB, 16, 0.0);
            if let plimsoll_array::source::StreamSpec::Closed(closed) = &mut load {
                closed.volume = 1;
            }
            streams.push(load);
        }
        class(&run(&simulation(spec, streams, 5, 60)), "open").1
    };
    check_near(latency(true), latency(false), 0.01);
}

/// SIM-16: what a hypervisor or a guest's own stack adds to each request is felt by each request.
#[test]
fn the_hosts_stack_adds_its_latency() {
    let latency = |host_latency_ns: u64| {
        let mut spec = array(ssd(1.5), RaidLevel::Raid0, &[2]);
        spec.path.host_latency_ns = host_latency_ns;
        class(&run(&simulation(spec, vec![random_reads(90 * GB, 1, 0.0)], 1, 4)), "random").1
    };
    check_near(latency(MS) - latency(0), 1.0, 0.02);
}

/// A cloud volume bursts while it has credits and then falls back to its base rate.
#[test]
fn a_capped_volume_spends_its_credits() {
    let mut spec = array(ssd(1.5), RaidLevel::Raid0, &[4]);
    spec.path.cap = Some(CapSpec {
        operations_per_second: 300.0,
        burst_operations_per_second: 3_000.0,
        credit_count_max: 27_000.0,
        bytes_per_second: 250e6,
    });
    let rate = |warm_up_s: u64, measure_s: u64| {
        let streams = vec![random_reads(90 * GB, 16, 0.0)];
        class(&run(&simulation(spec.clone(), streams, warm_up_s, measure_s)), "random").0
    };
    check_near(rate(0, 9), 3_000.0, 0.01);
    // Credits last 27,000 / (3,000 - 300) = 10 s.
    check_near(rate(12, 20), 300.0, 0.01);

    // A cap that holds everything back is the first bottleneck, by name, and tells what is left of
    // its credits: whoever sees busy links instead would buy links.
    let report = |warm_up_s: u64, measure_s: u64| {
        let streams = vec![random_reads(90 * GB, 16, 0.0)];
        run(&simulation(spec.clone(), streams, warm_up_s, measure_s)).array
    };
    for (warm_up_s, measure_s, credits_left) in [(0, 5, 27_000.0 - 5.0 * 2_700.0), (12, 20, 0.0)] {
        let report = report(warm_up_s, measure_s);
        assert_eq!(report.stages[0].stage, "cap");
        check_near(report.stages[0].utilisation, 1.0, 0.01);
        let cap = report.cap.expect("the volume is capped");
        assert!((cap.credit_count - credits_left).abs() < 300.0, "{cap:?}");
    }
}

/// A host that takes data in more slowly than its links bring it is a stage of its own.
#[test]
fn a_slow_host_is_the_first_bottleneck() {
    let mut spec = array(ssd(1.5), RaidLevel::Raid0, &[4]);
    spec.path.link_count = 4;
    spec.path.link_bytes_per_second = 500e6;
    spec.path.host_bytes_per_second = Some(200e6);
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 32, 0.0)], 1, 4));
    check_near(outcome.classes[0].bytes_per_second, 200e6, 0.01);
    assert_eq!(outcome.array.stages[0].stage, "host");
}

/// The policies of a path: in turn over all, one at a time, or the least busy.
#[test]
fn path_policies_choose_links() {
    let shares = |policy: PathPolicy| {
        let mut spec = array(ssd(1.5), RaidLevel::Raid0, &[2]);
        spec.path.link_count = 4;
        spec.path.link_bytes_per_second = 117e6;
        spec.path.policy = policy;
        let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 8, 0.0)], 1, 4));
        outcome.array.links.iter().map(|link| link.request_count).collect::<Vec<u64>>()
    };
    let robin = shares(PathPolicy::RoundRobin);
    assert!(robin.iter().max().unwrap_or(&0) - robin.iter().min().unwrap_or(&0) <= 1, "{robin:?}");
    let fixed = shares(PathPolicy::Failover);
    assert!(fixed[0] > 0 && fixed[1..] == [0, 0, 0], "{fixed:?}");
    assert!(shares(PathPolicy::LeastBusy).iter().all(|count| *count > 0));
}

/// Every mistake of a description is reported at once, each with its place and a hint.
#[test]
fn impossible_arrays_are_refused_with_every_mistake() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[2]);
    spec.members[0].slot_count = 1;
    spec.path.link_bytes_per_second = 0.0;
    spec.groups[0].drive = "driv".into();
    let errors = check(&spec).expect_err("four things are impossible here");
    let places: Vec<&str> = errors.0.iter().map(|error| error.place.as_str()).collect();
    assert_eq!(
        places,
        [
            "groups[0].drive",
            "groups[0].sets",
            "members[0].slot_count",
            "path.link_bytes_per_second"
        ]
    );
    assert!(errors.0.iter().all(|error| !error.hint.is_empty()));

    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
    spec.faults = [
        Fault::LinkFails { link: 99 },
        Fault::DriveFails { group: 0, drive: 7 },
        Fault::ControllerFails { member: 1, controller: 0 },
    ]
    .map(|fault| TimedFault { at_ns: 0, fault })
    .to_vec();
    let errors = check(&spec).expect_err("none of these is there");
    assert_eq!(errors.0.len(), 3, "{errors}");

    let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
    spec.volumes[0].capacity_bytes = 4_000 * GB;
    let text = check(&spec).expect_err("the drives hold 3,600 GB").to_string();
    assert!(text.contains("pools[0] holds 3600.0 GB, but its volumes ask for 4000.0 GB"), "{text}");
}

/// STU-05: where volumes are spread over a pool page by page, cutting the same space into one
/// volume or into four makes no difference to speak of, while volumes that lie one behind the other
/// keep their databases far apart.
#[test]
fn spread_volumes_make_the_layout_matter_less() {
    let iops = |order: PageOrder, count: u64| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid10, &[4]);
        spec.pools[0].page_order = order;
        // Nine tenths of what four mirrored drives hold.
        let capacity = spec.drives[0].capacity_bytes * 2 / 10 * 9;
        let share = capacity / count / (15 * MIB) * (15 * MIB);
        spec.volumes =
            (0..count).map(|number| volume(&format!("volume {number}"), share)).collect();
        let streams = (0..count).map(|number| {
            let mut load =
                random_reads(share / 2 / (32 * KIB) * (32 * KIB), 16 / count as u32, 0.0);
            if let plimsoll_array::source::StreamSpec::Closed(closed) = &mut load {
                closed.volume = number as u32;
            }
            load
        });
        let outcome = run(&simulation(spec, streams.collect(), 1, 20));
        outcome.classes.iter().map(|class| class.per_second).sum::<f64>()
    };
    let spread = iops(PageOrder::Spread, 4) / iops(PageOrder::Spread, 1);
    let in_turn = iops(PageOrder::VolumeByVolume, 4) / iops(PageOrder::VolumeByVolume, 1);
    assert!((0.97..1.03).contains(&spread), "{spread}");
    assert!(in_turn < 0.96, "{in_turn}");
}

/// A page given to two volumes, or a volume that keeps to one box, would make every figure of a
/// pool wrong.
#[test]
fn spread_volumes_use_every_box_alike() {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid10, &[4]);
    spec.members.push(member());
    spec.groups.push(group(1, RaidLevel::Raid10, &[4]));
    spec.pools[0].groups = vec![0, 1];
    spec.pools[0].page_order = PageOrder::Spread;
    spec.volumes = vec![volume("one", 45 * GB), volume("two", 45 * GB)];
    let outcome = run(&simulation(spec, vec![random_reads(40 * GB, 16, 0.0)], 1, 20));
    let counts: Vec<u64> =
        outcome.array.members.iter().map(|member| member.host.read_count).collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least * 10 > *most * 9, "{counts:?}");
}
