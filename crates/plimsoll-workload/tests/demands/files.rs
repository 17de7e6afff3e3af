//! The rules of Iometer's workers, on their tasks alone: no storage is needed to tell whether a
//! load is the one that was asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_MILLISECOND, Nanos, Random};
use plimsoll_workload::files::{
    Access, AccessError, AccessLine, Direction, FileDemand, FilePlace, FileTask, FileWorker,
};
use plimsoll_workload::{Demand, Timed};

const MIB: u64 = 1 << 20;

const LINE: AccessLine = AccessLine {
    share_percent: 100,
    size_bytes: 4096,
    read_percent: 100,
    random_percent: 0,
    delay_ms: 0,
    burst: 1,
    align_bytes: 0,
    reply_bytes: 0,
};

/// 0.5 to 64 KiB by the published shares, 80 % reads, all random.
fn file_server() -> Vec<AccessLine> {
    let parts = [
        (10, 512),
        (5, 1024),
        (5, 2048),
        (60, 4096),
        (2, 8192),
        (4, 16384),
        (4, 32768),
        (10, 65536),
    ];
    parts
        .map(|(share_percent, size_bytes)| AccessLine {
            share_percent,
            size_bytes,
            read_percent: 80,
            random_percent: 100,
            ..LINE
        })
        .to_vec()
}

fn worker(lines: Vec<AccessLine>, sizes: &[u64]) -> Rc<RefCell<FileWorker>> {
    let places: Vec<FilePlace> =
        sizes.iter().map(|size_bytes| FilePlace { weight: 1.0, size_bytes: *size_bytes }).collect();
    let access = Access::new(lines).expect("the lines are right");
    Rc::new(RefCell::new(FileWorker::new(access, Random::from_seed(7), places.into())))
}

fn slot(worker: &Rc<RefCell<FileWorker>>, position: usize) -> FileDemand {
    FileDemand::new(worker.clone(), Random::from_seed(1), &[position])
}

fn ask(slot: &mut FileDemand, now: Nanos) -> Timed<FileTask> {
    slot.next(now, None).expect("there is always more to do")
}

/// Without this the mix that a report names would not be the one that was loaded: mean size
/// 11,345.92 bytes, 80 % reads.
#[test]
fn the_published_pattern_comes_out_in_its_shares() {
    let worker = worker(file_server(), &[64 * MIB]);
    let mut slot = slot(&worker, 0);
    let (mut sizes, mut reads, mut bytes) = (BTreeMap::new(), 0, 0);
    let count = 200_000;
    for _ in 0..count {
        let request = ask(&mut slot, 0).task.request;
        *sizes.entry(request.size_bytes).or_insert(0_u32) += 1;
        reads += u32::from(request.direction == Direction::Read);
        bytes += request.size_bytes;
        assert_eq!(request.offset % 512, 0);
        assert!(request.offset + request.size_bytes <= 64 * MIB);
    }
    for line in file_server() {
        let share = f64::from(sizes[&line.size_bytes]) * 100.0 / f64::from(count);
        assert!((share - f64::from(line.share_percent)).abs() < 0.5, "{share} of {line:?}");
    }
    let mean = bytes as f64 / f64::from(count);
    assert!((mean - 11_345.92).abs() < 150.0, "{mean}");
    let reads = f64::from(reads) * 100.0 / f64::from(count);
    assert!((reads - 80.0).abs() < 0.5, "{reads}");
}

/// Sequential means: where this worker has ended on that target, back to the beginning at the end.
/// Targets do not share the place.
#[test]
fn sequential_transfers_follow_on_each_target_and_wrap() {
    let worker = worker(vec![AccessLine { size_bytes: 96 * 1024, ..LINE }], &[MIB, MIB]);
    let (mut first, mut second) = (slot(&worker, 0), slot(&worker, 1));
    let offsets: Vec<u64> = (0..12).map(|_| ask(&mut first, 0).task.request.offset).collect();
    let step = 96 * 1024;
    let expected: Vec<u64> = (0..10).map(|n| n * step).chain([0, step]).collect();
    assert_eq!(offsets, expected);
    assert_eq!(ask(&mut second, 0).task.request.offset, 0);
}

/// Boundaries that are no multiple of the size leave holes, as in the original.
#[test]
fn transfers_begin_at_multiples_of_the_alignment() {
    let line = AccessLine { size_bytes: 3000, align_bytes: 4096, ..LINE };
    let mut sequential = slot(&worker(vec![line], &[MIB]), 0);
    let offsets: Vec<u64> = (0..3).map(|_| ask(&mut sequential, 0).task.request.offset).collect();
    assert_eq!(offsets, [0, 4096, 8192]);
    let mut random = slot(&worker(vec![AccessLine { random_percent: 100, ..line }], &[MIB]), 0);
    for _ in 0..1000 {
        assert_eq!(ask(&mut random, 0).task.request.offset % 4096, 0);
    }
}

/// A line holds for a burst, and the worker as a whole waits before each: also a slot that becomes
/// free meanwhile.
#[test]
fn bursts_keep_a_line_and_delays_hold_the_whole_worker() {
    let lines = vec![
        AccessLine { share_percent: 50, burst: 4, delay_ms: 10, ..LINE },
        AccessLine { share_percent: 50, burst: 4, delay_ms: 10, size_bytes: 8192, ..LINE },
    ];
    let worker = worker(lines, &[64 * MIB]);
    let mut slots = [slot(&worker, 0), slot(&worker, 0)];
    for burst in 1..=50 {
        let tasks: Vec<_> = (0..4).map(|n| ask(&mut slots[n % 2], 0)).collect();
        let size = tasks[0].task.request.size_bytes;
        for timed in &tasks {
            assert_eq!(timed.task.request.size_bytes, size);
            assert_eq!(timed.intended, burst * 10 * NANOS_PER_MILLISECOND);
        }
    }
}

/// Each request of such a line is answered in the opposite direction.
#[test]
fn replies_go_the_other_way() {
    let line = AccessLine { read_percent: 50, reply_bytes: 512, random_percent: 100, ..LINE };
    let mut slot = slot(&worker(vec![line], &[MIB]), 0);
    for _ in 0..1000 {
        let task = ask(&mut slot, 0).task;
        let reply = task.reply.expect("every request is answered");
        assert_ne!(reply.direction, task.request.direction);
        assert_eq!((task.request.size_bytes, reply.size_bytes), (4096, 512));
    }
}

/// The sequential share is drawn for every transfer.
#[test]
fn sequential_and_random_transfers_mix() {
    let mut slot = slot(&worker(vec![AccessLine { random_percent: 40, ..LINE }], &[1024 * MIB]), 0);
    let (mut end, mut following) = (0, 0_u32);
    for _ in 0..20_000 {
        let request = ask(&mut slot, 0).task.request;
        following += u32::from(request.offset == end);
        end = request.offset + request.size_bytes;
    }
    let share = f64::from(following) / 200.0;
    assert!((share - 60.0).abs() < 1.5, "{share}");
}

/// What cannot mean anything is refused with its line.
#[test]
fn impossible_lines_are_refused() {
    let refused = |lines: Vec<AccessLine>| Access::new(lines).expect_err("it is wrong");
    assert_eq!(refused(Vec::new()), AccessError::Lines(0));
    assert_eq!(
        refused(vec![AccessLine { share_percent: 99, ..LINE }]),
        AccessError::SharesSumTo(99)
    );
    let wrong = refused(vec![LINE, AccessLine { burst: 0, share_percent: 0, ..LINE }]);
    assert!(wrong.to_string().starts_with("access line 2 has bursts of 0"), "{wrong}");
}
