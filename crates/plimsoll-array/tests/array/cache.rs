//! The cache: it hides what writes cost as long as it can, and says so when it cannot any more.

use crate::support::*;
use plimsoll_array::spec::{PrefetchSpec, RaidLevel};

/// SIM-03: at modest load a RAID 5 of hard drives answers writes in well under a millisecond.
#[test]
fn a_write_back_cache_hides_the_cost_of_writes() {
    let spec = array(hdd(15_000.0), RaidLevel::Raid5, &[4]);
    let stream = open(60.0, 32 * KIB, 90 * GB / (32 * KIB) * (32 * KIB), 1.0);
    let cached = class(&run(&simulation(spec.clone(), vec![stream.clone()], 20, 60)), "open").1;
    assert!(cached < 1.0, "{cached}");
    let mut through = spec;
    through.members[0].cache.write_back = false;
    let direct = class(&run(&simulation(through, vec![stream], 20, 60)), "open").1;
    assert!(
        direct > 8.0,
        "two operations one after the other take at least a revolution and two seeks: {direct}"
    );
}

/// When writes come faster than they can leave, the cache fills and hosts wait: the rate is that of
/// the drives.
#[test]
fn a_full_cache_pushes_back() {
    let mut spec = array(hdd(7_200.0), RaidLevel::Raid5, &[4]);
    spec.members[0].cache.dirty_bytes_max = 32 * MIB;
    let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 32, 1.0)], 30, 60));
    let report = &outcome.array.members[0];
    assert!(report.write_stall_count > 1_000, "{}", report.write_stall_count);
    assert!(report.dirty_bytes <= 32 * MIB);
    let busy: f64 = outcome.array.drives.iter().map(|drive| drive.utilisation).sum::<f64>() / 4.0;
    assert!(busy > 0.9, "{busy}");
    let operations: u64 =
        outcome.array.drives.iter().flat_map(|drive| &drive.operations).map(|(_, n)| n).sum();
    check_near(operations as f64 / outcome.classes[0].count as f64, 4.0, 0.05);
}

/// Dirty data settles where what comes equals what leaves, and more load means a fuller cache
/// (linear threshold).
#[test]
fn the_cache_fills_with_the_load() {
    let dirty = |per_second: f64| {
        let spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
        let stream = open(per_second, 32 * KIB, 90 * GB / (32 * KIB) * (32 * KIB), 1.0);
        run(&simulation(spec, vec![stream], 60, 30)).array.members[0].dirty_bytes
    };
    let (light, heavy) = (dirty(50.0), dirty(250.0));
    assert!(light >= 51 * MIB, "nothing leaves below the low mark: {light}");
    assert!(heavy > light + 10 * MIB, "{heavy} against {light}");
    assert!(heavy < 500 * MIB, "the drives can carry this load: {heavy}");
}

/// Reading ahead turns small sequential reads into long ones.
#[test]
fn reading_ahead_serves_sequential_readers() {
    let rate = |prefetch| {
        let mut spec = array(hdd(7_200.0), RaidLevel::Raid5, &[7]);
        spec.members[0].cache.prefetch = prefetch;
        run(&simulation(spec, vec![sequential("scan", 64 * KIB, 1)], 5, 30)).classes[0]
            .bytes_per_second
    };
    let ahead = rate(Some(PrefetchSpec {
        chunk_bytes: MIB,
        ahead_count: 2,
        run_count_min: 3,
        pause_ns_max: 10 * MS,
    }));
    let plain = rate(None);
    assert!(ahead > 2.0 * plain, "{ahead} against {plain}");
}

/// What is still dirty is read from memory.
#[test]
fn dirty_data_is_read_from_the_cache() {
    let mut array = build(&array(hdd(15_000.0), RaidLevel::Raid5, &[7]), 1);
    one(&mut array, request(GB, 32 * KIB, true));
    let read = one(&mut array, request(GB, 32 * KIB, false));
    assert!(read.completed - read.submitted < MS / 10, "{}", read.completed - read.submitted);
    let other = one(&mut array, request(2 * GB, 32 * KIB, false));
    assert!(other.completed - other.submitted > MS);
}

/// SIM-17: pages that straddle elements cost a second operation on another drive.
#[test]
fn misaligned_pages_cost_more() {
    let at = |shift_bytes: u64| {
        let mut spec = array(hdd(15_000.0), RaidLevel::Raid5, &[7]);
        spec.volumes[0].shift_bytes = shift_bytes;
        let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 8, 0.0)], 5, 60));
        let operations: u64 =
            outcome.array.drives.iter().flat_map(|drive| &drive.operations).map(|(_, n)| n).sum();
        (operations as f64 / outcome.classes[0].count as f64, outcome.classes[0].per_second)
    };
    let (aligned_operations, aligned_rate) = at(0);
    let (shifted_operations, shifted_rate) = at(8 * KIB);
    check_near(aligned_operations, 1.0, 0.001);
    assert!((1.2..1.6).contains(&shifted_operations), "{shifted_operations}");
    assert!(shifted_rate < 0.95 * aligned_rate, "{shifted_rate} against {aligned_rate}");
}
