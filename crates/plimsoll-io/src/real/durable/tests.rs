//! The choice between the two ways of a durable write: made from what was timed, once, for each
//! device by itself.

use super::{DurableWays, TIMED, Way};
use crate::Nanos;
use crate::real::DurableBy;

/// Makes writes that take so long until a way is chosen; answers it and how many writes it took.
fn choose(ways: &mut DurableWays, device: u64, flag_ns: Nanos, sync_ns: Nanos) -> (Way, usize) {
    for count in 1..1_000 {
        let way = ways.next(Some(device));
        let taken_ns = if way == Way::Flag { flag_ns } else { sync_ns };
        if let Some(chosen) = ways.note(Some(device), way, taken_ns) {
            return (chosen, count);
        }
    }
    panic!("no way was chosen");
}

/// Each device has its own choice, made after as many writes of either way; it stays whatever later
/// writes take.
#[test]
fn the_faster_way_is_chosen_for_each_device() {
    let mut ways = DurableWays::new(DurableBy::Faster);
    let slow_flag = choose(&mut ways, 1, 3_960_000, 101_000);
    assert_eq!(slow_flag, (Way::WriteThenSync, 2 * TIMED));
    assert_eq!(choose(&mut ways, 2, 20_000, 25_000).0, Way::Flag);
    // A little faster is not enough: the flag is one command on some devices.
    assert_eq!(choose(&mut ways, 3, 100_000, 90_000).0, Way::Flag);
    for _ in 0..100 {
        assert_eq!(ways.next(Some(1)), Way::WriteThenSync);
        assert_eq!(ways.note(Some(1), Way::WriteThenSync, 9_000_000), None);
        assert_eq!(ways.next(Some(2)), Way::Flag);
    }
}

/// One write in a hundred that a busy device held for long must not decide.
#[test]
fn a_single_slow_write_decides_nothing() {
    let mut ways = DurableWays::new(DurableBy::Faster);
    for count in 0..2 * TIMED {
        let way = ways.next(Some(1));
        let taken_ns = if count == 0 { 1_000_000_000 } else { 50_000 };
        if let Some(chosen) = ways.note(Some(1), way, taken_ns) {
            assert_eq!(chosen, Way::Flag);
        }
    }
    assert_eq!(ways.next(Some(1)), Way::Flag);
}

/// What was asked for is done, and where there is nothing to compare, or nothing left to choose,
/// nothing is tried.
#[test]
fn a_way_that_was_asked_for_is_taken() {
    for (wanted, device, way) in [
        (DurableBy::Flag, Some(1), Way::Flag),
        (DurableBy::WriteThenSync, Some(1), Way::WriteThenSync),
        (DurableBy::Faster, None, Way::Flag),
    ] {
        let mut ways = DurableWays::new(wanted);
        for _ in 0..4 * TIMED {
            assert_eq!(ways.next(device), way);
            assert_eq!(ways.note(device, way, 1), None);
        }
    }
    let mut ways = DurableWays::new(DurableBy::Faster);
    ways.refuse_flag();
    assert_eq!(ways.next(Some(1)), Way::WriteThenSync);
}
