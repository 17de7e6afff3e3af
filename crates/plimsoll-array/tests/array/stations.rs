//! Little's law at every station of an array, and the bottleneck where drives of different pools do
//! different work.
//!
//! The array keeps two books of each station, how many are there over time and how long each one
//! stays. What is on the left of the law comes from one, what is on the right from the other.

use crate::support::*;
use plimsoll_array::spec::*;
use plimsoll_array::{Array, ArrayReport, Happening, Request, StageUse, StationUse};
use plimsoll_io::Random;

/// An array whose every station makes requests wait: a cap, a slow link, a slow controller, a small
/// cache, hard drives.
fn narrow_array(level: RaidLevel, drives: u32) -> ArraySpec {
    let mut spec = array(hdd(15_000.0), level, &[drives]);
    spec.path.link_count = 1;
    spec.path.link_bytes_per_second = 30e6;
    spec.path.cap = Some(CapSpec {
        operations_per_second: 900.0,
        burst_operations_per_second: 900.0,
        credit_count_max: 0.0,
        bytes_per_second: 1e12,
    });
    spec.members[0].controller_count = 1;
    spec.members[0].processor_ns = MS;
    spec.members[0].cache.dirty_bytes_max = 64 * MIB;
    // Everything dirty leaves in the end.
    spec.members[0].cache.destage_start_share = 0.0;
    spec
}

/// Poisson arrivals for a while, then nothing until the array has nothing to do any more.
fn drained(spec: &ArraySpec, per_second: f64, write_share: f64) -> (ArrayReport, f64, f64) {
    let mut array = build(spec, 1);
    let mut random = Random::from_seed(7);
    let (mut submitted, mut count, mut latency_ns, mut at) = (0.0, 0.0, 0.0, 0.0);
    let mut go_on = |array: &mut Array, until: u64| {
        while let Some(happening) = array.next(until) {
            if let Happening::Completed(done) = happening {
                count += 1.0;
                latency_ns += (done.completed - done.submitted) as f64;
            }
        }
    };
    while at < 20.0 * SECOND as f64 {
        at += -(1.0 - random.unit()).ln() * SECOND as f64 / per_second;
        go_on(&mut array, at as u64);
        let page = random.below(80 * GB / (64 * KIB));
        let one = request(page * 64 * KIB, 32 * KIB, random.chance(write_share));
        array.submit(at as u64, one);
        submitted += 1.0;
    }
    go_on(&mut array, 600 * SECOND);
    assert_eq!(submitted, count, "every request is answered");
    assert_eq!(array.dirty_bytes(0), 0, "everything has gone to the drives");
    (array.report(), count, latency_ns / count / 1e6)
}

#[track_caller]
fn check_law(name: &str, station: &StationUse, share: f64) {
    assert!(station.per_second > 0.0, "nobody came to {name}");
    let (left, right) = (station.present_mean, station.per_second * station.stay_ms_mean / 1e3);
    assert!(
        (left / right - 1.0).abs() <= share,
        "{name}: {left} are there, {right} by their rate and stay"
    );
}

fn check_all(report: &ArrayReport, share: f64) {
    for StageUse { stage, station, .. } in &report.stages {
        check_law(stage, &station.expect("every stage but the host is a station"), share);
    }
    for (number, member) in report.members.iter().enumerate() {
        check_law(&format!("cache {number}"), &member.dirty, share);
    }
}

fn station(report: &ArrayReport, name: &str) -> StationUse {
    let found = report.stages.iter().find(|stage| stage.stage == name);
    found.and_then(|stage| stage.station).unwrap_or_else(|| panic!("no {name}"))
}

fn count_of(station: &StationUse, report: &ArrayReport) -> f64 {
    (station.per_second * report.interval_ns as f64 / 1e9).round()
}

/// Over a time that begins and ends with an empty array the law holds to the last digit, so that
/// whoever is forgotten, is counted twice or comes from elsewhere is found: at the cap, on the
/// links, at the controllers, in the cache, at every drive.
#[test]
fn littles_law_is_exact_at_every_station_of_a_drained_array() {
    let (report, count, _) = drained(&narrow_array(RaidLevel::Raid5, 5), 300.0, 0.4);
    check_all(&report, 1e-9);
    let (reads, writes) = (report.members[0].host.read_count, report.members[0].host.write_count);
    assert_eq!(reads + writes, count as u64);
    for (name, expected) in [
        ("cap", count),
        ("links to the array", count),
        ("controllers", count),
        ("links to the host", reads as f64),
    ] {
        assert_eq!(count_of(&station(&report, name), &report), expected, "{name}");
    }
    // Bytes that are written again while dirty do not come a second time.
    let dirtied = count_of(&report.members[0].dirty, &report);
    assert!(dirtied <= writes as f64 * 32.0 * KIB as f64);
    assert!(dirtied >= writes as f64 * 31.9 * KIB as f64, "few pages are written twice");
    let at_drives: f64 = report.drives.iter().map(|drive| drive.present_mean).sum();
    check_near(at_drives, station(&report, "drives").present_mean, 1e-9);
    for drive in &report.drives {
        let operations: u64 = drive.operations.iter().map(|(_, count)| count).sum();
        let by_stays = operations as f64 * drive.response_ms * 1e6 / report.interval_ns as f64;
        check_near(drive.present_mean, by_stays, 1e-9);
    }
}

/// A read that no cache answers is at one station after the other: its latency is the sum of its
/// stays, to the last digit.
#[test]
fn the_stays_at_the_stations_add_up_to_the_latency_of_a_read() {
    let (report, _, latency_ms) = drained(&narrow_array(RaidLevel::Raid0, 4), 400.0, 0.0);
    let stays = report.stages.iter().filter_map(|stage| stage.station);
    let together: f64 = stays.map(|station| station.stay_ms_mean).sum();
    check_near(together, latency_ms, 1e-9);
    for name in ["cap", "controllers", "drives", "links to the host"] {
        let stay_ms = station(&report, name).stay_ms_mean;
        assert!(stay_ms > 0.05, "{name} makes nobody wait: {stay_ms} ms");
    }
}

/// The law needs no empty array, only a time much longer than a stay; and while the cache is full,
/// it holds as well.
#[test]
fn littles_law_holds_under_lasting_load() {
    let mut spec = narrow_array(RaidLevel::Raid10, 4);
    spec.members[0].cache.dirty_bytes_max = 8 * MIB;
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 24, 0.5)], 20, 200));
    assert!(outcome.array.members[0].write_stall_count > 100, "the cache is full");
    check_all(&outcome.array, 0.01);
}

/// Requests that wait for a lost path, and for its return, are not forgotten. Those whose answers
/// found no path are asked again.
#[test]
fn littles_law_survives_lost_paths() {
    let mut spec = narrow_array(RaidLevel::Raid0, 4);
    spec.path.link_count = 2;
    let fault = |at_s: u64, fault| TimedFault { at_ns: at_s * SECOND, fault };
    spec.faults = vec![
        fault(4, Fault::LinkFails { link: 0 }),
        fault(8, Fault::LinkFails { link: 1 }),
        fault(9, Fault::LinkReturns { link: 0 }),
        fault(12, Fault::LinkReturns { link: 1 }),
    ];
    let (report, count, _) = drained(&spec, 200.0, 0.3);
    check_all(&report, 1e-9);
    let asked = count_of(&station(&report, "controllers"), &report);
    assert!(asked > count && asked < 1.1 * count, "{asked} for {count}");
}

fn pools_apart() -> ArraySpec {
    let mut spec = array(hdd(15_000.0), RaidLevel::Raid0, &[8]);
    spec.groups.push(group(0, RaidLevel::Raid0, &[1]));
    spec.pools[0].name = "data".into();
    spec.pools.push(PoolSpec { name: "logs".into(), groups: vec![1], ..spec.pools[0].clone() });
    spec.volumes.push(VolumeSpec { pool: 1, ..volume("log", 100 * GB) });
    spec
}

/// SIM-08: one drive that holds the logs is full while eight with the data rest. A mean over the
/// nine would call the array idle.
#[test]
fn the_drives_of_each_pool_are_a_stage() {
    let mut array = build(&pools_apart(), 1);
    let mut random = Random::from_seed(3);
    for _ in 0..2_000 {
        let read =
            Request { volume: 1, ..request(random.below(GB / KIB) * 64 * KIB, 32 * KIB, false) };
        array.submit(array.now(), read);
    }
    while array.next(2 * SECOND).is_some() {}
    let report = array.report();
    assert_eq!(report.stages[0].stage, "drives of the pool logs");
    check_near(report.stages[0].utilisation, 1.0, 0.001);
    let data = report.stages.iter().find(|stage| stage.stage == "drives");
    assert_eq!(data.expect("the data has drives").utilisation, 0.0);
}

/// What has failed works no more: seven drives that never rest are full, not at seven eighths, and
/// so is the one path that is left.
#[test]
fn what_has_failed_is_left_out_of_a_stage() {
    let failed = |fault| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[4]);
        spec.path.link_bytes_per_second = 5e6;
        spec.faults = vec![TimedFault { at_ns: 0, fault }];
        run(&simulation(spec, vec![random_reads(90 * GB, 64, 0.0)], 5, 30)).array
    };
    let found = failed(Fault::LinkFails { link: 1 });
    assert_eq!(found.stages[0].stage, "links to the host");
    check_near(found.stages[0].utilisation, 1.0, 0.01);
    let found = failed(Fault::DriveFails { group: 0, drive: 2 });
    let working = found.drives.iter().filter(|drive| drive.utilisation > 0.0);
    let mean = working.map(|drive| drive.utilisation / 3.0).sum::<f64>();
    let drives = found.stages.iter().find(|stage| stage.stage == "drives");
    check_near(drives.expect("there are drives").utilisation, mean, 1e-9);
}
