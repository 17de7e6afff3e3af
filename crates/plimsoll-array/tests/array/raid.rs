//! RAID: where data lies, what is left of the capacity, and how many drive operations each write
//! costs.

use std::collections::BTreeSet;

use crate::support::*;
use plimsoll_array::raid::{
    Extent, Layout, MemberState, Slots, Strategy, plan_read, plan_write, usable_drives,
};
use plimsoll_array::spec::RaidLevel::{self, *};
use plimsoll_array::usable_bytes;

fn extent(column: u32, kib: u32) -> Extent {
    Extent { column, start: 0, bytes: kib * 1024 }
}

/// Reads and writes of a plan, by number, for a set with these slots lost.
fn cost(
    level: RaidLevel,
    drive_count: u32,
    lost: &[u32],
    extents: &[Extent],
) -> (Strategy, usize, usize) {
    let layout = Layout { level, drive_count };
    let mut slots = Slots::whole(drive_count);
    for slot in lost {
        slots.change(*slot, MemberState::Lost);
    }
    let plan = plan_write(&layout, &slots, 0, 64 * 1024, extents, false);
    (plan.strategy, plan.reads.len(), plan.writes.len())
}

/// SIM-02: the penalty of a small write, 4 for one parity, 6 for two, 2 for a mirror. Every
/// estimate of an array's writes rests on these counts.
#[test]
fn small_writes_cost_what_the_level_says() {
    let small = [extent(0, 32)];
    let check = |level, drives, expected| {
        assert_eq!(cost(level, drives, &[], &small), expected, "{level:?}")
    };
    check(Raid0, 4, (Strategy::Plain, 0, 1));
    check(Raid1, 2, (Strategy::Plain, 0, 2));
    check(Raid10, 8, (Strategy::Plain, 0, 2));
    check(Raid5, 7, (Strategy::ReadModifyWrite, 2, 2));
    check(Raid50, 7, (Strategy::ReadModifyWrite, 2, 2));
    check(Raid6, 8, (Strategy::ReadModifyWrite, 3, 3));
    // On three drives the rest of the row is one element: reading it beats reading old data and
    // parity.
    check(Raid5, 3, (Strategy::ReconstructWrite, 1, 2));
    // On four they are equal, and read-modify-write is the rule.
    check(Raid5, 4, (Strategy::ReadModifyWrite, 2, 2));
}

/// Larger writes pass from read-modify-write to reconstruct to full stripe, which reads nothing.
#[test]
fn larger_writes_read_less() {
    let whole = |columns: u32| (0..columns).map(|column| extent(column, 64)).collect::<Vec<_>>();
    assert_eq!(cost(Raid5, 7, &[], &whole(2)), (Strategy::ReadModifyWrite, 3, 3));
    assert_eq!(cost(Raid5, 7, &[], &whole(4)), (Strategy::ReconstructWrite, 2, 5));
    assert_eq!(cost(Raid5, 7, &[], &whole(6)), (Strategy::FullStripe, 0, 7));
    assert_eq!(cost(Raid6, 8, &[], &whole(6)), (Strategy::FullStripe, 0, 8));
}

/// A lost drive changes what a write costs: the lost element is written by reconstructing around
/// it, lost parity costs nothing, and a lost bystander forces read-modify-write.
#[test]
fn degraded_writes_go_the_way_that_is_left() {
    let layout = Layout { level: Raid5, drive_count: 5 };
    let (data, parity) = (layout.data_drive(0, 0), layout.parity_drive(0, 0));
    let bystander = layout.data_drive(0, 3);
    let small = [extent(0, 32)];
    assert_eq!(cost(Raid5, 5, &[data], &small), (Strategy::ReconstructWrite, 3, 1));
    assert_eq!(cost(Raid5, 5, &[parity], &small), (Strategy::Plain, 0, 1));
    let wide = [extent(0, 64), extent(1, 64), extent(2, 64)];
    assert_eq!(cost(Raid5, 5, &[], &wide).0, Strategy::ReconstructWrite);
    assert_eq!(cost(Raid5, 5, &[bystander], &wide), (Strategy::ReadModifyWrite, 4, 4));
}

/// A read of a lost element is computed from the rest of its row; a mirror just uses the other
/// side.
#[test]
fn degraded_reads_use_the_survivors() {
    let count = |level, drive_count: u32, lost: &[u32]| {
        let layout = Layout { level, drive_count };
        let mut slots = Slots::whole(drive_count);
        lost.iter().for_each(|slot| slots.change(*slot, MemberState::Lost));
        let mut reads = 0;
        plan_read(&layout, &slots, 0, extent(0, 32), false, |slot, _, _| {
            assert!(!lost.contains(&slot));
            reads += 1;
        });
        reads
    };
    let data = |level, drive_count| Layout { level, drive_count }.data_drive(0, 0);
    assert_eq!(count(Raid5, 7, &[]), 1);
    assert_eq!(count(Raid5, 7, &[data(Raid5, 7)]), 6);
    assert_eq!(count(Raid6, 8, &[data(Raid6, 8)]), 6);
    assert_eq!(count(Raid10, 8, &[data(Raid10, 8)]), 1);
}

/// Every element of every row has a drive of its own, and parity visits every drive.
#[test]
fn layouts_are_one_to_one() {
    for (level, drive_count) in [(Raid0, 5), (Raid5, 7), (Raid6, 8), (Raid10, 8), (Raid1, 2)] {
        let layout = Layout { level, drive_count };
        let mut parity_drives = BTreeSet::new();
        for row in 0..u64::from(drive_count) {
            let mut used = BTreeSet::new();
            for column in 0..layout.column_count() {
                assert!(used.insert(layout.data_drive(row, column)), "{level:?} row {row}");
            }
            for parity in 0..layout.parity_count() {
                assert!(used.insert(layout.parity_drive(row, parity)), "{level:?} row {row}");
            }
            if layout.parity_count() > 0 {
                assert_eq!(used.len() as u32, drive_count);
                parity_drives.insert(layout.parity_drive(row, 0));
            }
        }
        if layout.parity_count() > 0 {
            assert_eq!(parity_drives.len() as u32, drive_count, "{level:?}");
        }
    }
}

/// Usable capacity, and sets that cannot be.
#[test]
fn usable_capacity_follows_the_level() {
    assert_eq!(usable_drives(Raid5, 7), Some(6));
    assert_eq!(usable_drives(Raid6, 12), Some(10));
    assert_eq!(usable_drives(Raid10, 14), Some(7));
    for (level, drive_count) in
        [(Raid5, 2), (Raid6, 3), (Raid10, 5), (Raid10, 2), (Raid1, 3), (Raid0, 0)]
    {
        assert_eq!(usable_drives(level, drive_count), None, "{level:?} of {drive_count}");
    }
    let spec = array(hdd(15_000.0), Raid50, &[7, 7]);
    let drive_bytes = 600 * GB / (64 * KIB) * (64 * KIB);
    assert_eq!(usable_bytes(&spec, &spec.groups[0]), 12 * drive_bytes);
}

/// The same counts at the drives of a whole array, written through: plans are not only made but
/// carried out.
#[test]
fn arrays_carry_the_plans_out() {
    for (level, sets, expected) in [
        (Raid0, vec![4], 1),
        (Raid1, vec![2], 2),
        (Raid10, vec![8], 2),
        (Raid5, vec![7], 4),
        (Raid50, vec![7, 7], 4),
        (Raid6, vec![8], 6),
    ] {
        let mut spec = array(hdd(15_000.0), level, &sets);
        spec.members[0].cache.write_back = false;
        let mut array = build(&spec, 1);
        for number in 0..50 {
            one(&mut array, request(number * 640 * KIB, 32 * KIB, true));
        }
        let total: u64 = (0..array.drive_count())
            .map(|drive| array.drive_counters(drive).operation_count())
            .sum();
        assert_eq!(total, 50 * expected, "{level:?}");
    }
}

/// A write of a whole row reads nothing, also when its pieces came one by one: the cache gathers
/// them (SIM-03).
#[test]
fn sequential_writes_become_full_stripes() {
    let mut array = build(&array(hdd(15_000.0), Raid5, &[7]), 1);
    for number in 0..6_000 {
        one(&mut array, request(number * 32 * KIB, 32 * KIB, true));
    }
    while array.dirty_bytes(0) > 60 * MIB && array.next(u64::MAX).is_some() {}
    while array.next_time().is_some() {
        let time = array.next_time().unwrap_or(0);
        array.next(time);
    }
    let report = array.report();
    let destaged = report.members[0].destaged_row_count;
    assert!(destaged > 300, "{destaged}");
    assert!(report.members[0].full_stripe_count * 100 >= destaged * 95, "{report:?}");
}
