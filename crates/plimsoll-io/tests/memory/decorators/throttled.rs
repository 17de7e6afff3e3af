//! A throttle that is not exact would make every "array worth N operations per second" a different
//! array.

use std::rc::Rc;

use plimsoll_io::{
    Buffer, Clock, Disk, Durability, Executor, Files, MemoryDisk, MemoryOptions,
    NANOS_PER_MILLISECOND, NANOS_PER_SECOND, OpenMode, Purpose, Random, ThrottleLimits, Throttled,
};

use crate::decorators::{check_decorator, label, millisecond_disk};

fn limits(operations_per_second: Option<f64>, bytes_per_second: Option<f64>) -> ThrottleLimits {
    ThrottleLimits { operations_per_second, bytes_per_second, burst_ns: 0 }
}

/// How long `count` reads of `bytes` take when all are submitted at once, in milliseconds of
/// virtual time.
fn milliseconds_for(limits: ThrottleLimits, count: u64, bytes: usize) -> f64 {
    let (clock, disk) = millisecond_disk();
    disk.load("a", &vec![0; bytes]);
    let throttled = Rc::new(Throttled::new(disk, clock.clone(), limits));
    let files = Files::new(throttled.clone());
    let opened = NANOS_PER_MILLISECOND;
    Executor::new(clock.clone(), throttled)
        .run(async move {
            let file = files.open("a", OpenMode::Read, label(Purpose::Metadata)).await.unwrap();
            let reads: Vec<_> = (0..count)
                .map(|_| file.read(0, Buffer::zeroed(bytes), label(Purpose::DatabaseRead)))
                .collect();
            for read in reads {
                read.await.unwrap();
            }
        })
        .unwrap();
    (clock.now() - opened) as f64 / NANOS_PER_MILLISECOND as f64
}

/// Holding operations back breaks no promise: closes stay behind, nothing completes inside submit.
#[test]
fn a_throttled_disk_keeps_the_contract() {
    check_decorator(|disk, clock| {
        Rc::new(Throttled::new(disk, clock, limits(Some(50_000.0), None)))
    });
}

/// The last of n operations starts when the n-1 before it have used up their shares: by number, by
/// bytes, by the harder.
#[test]
fn rates_are_exact() {
    let cases = [
        (limits(Some(500.0), None), 101, 512, 201.0),
        (limits(None, Some(1_024_000.0)), 101, 1024, 101.0),
        (limits(Some(500.0), Some(1_024_000.0)), 101, 4096, 401.0),
        (limits(Some(300.0), None), 3001, 512, 10_001.0),
        (limits(None, None), 100, 512, 1.0),
    ];
    for (limits, count, bytes, expected_ms) in cases {
        let taken_ms = milliseconds_for(limits, count, bytes);
        assert!((taken_ms - expected_ms).abs() < 0.001, "{limits:?}: {taken_ms} ms");
    }
}

/// Unused time is made up for as far as the burst allows, no further.
#[test]
fn bursts_are_limited() {
    let at_once = |burst_ns| {
        let (clock, disk) = millisecond_disk();
        disk.load("a", &[0; 512]);
        clock.advance_to(NANOS_PER_SECOND);
        let limits = ThrottleLimits { burst_ns, ..limits(Some(1000.0), None) };
        let throttled = Rc::new(Throttled::new(disk, clock.clone(), limits));
        let files = Files::new(throttled.clone());
        Executor::new(clock.clone(), throttled.clone())
            .run(async move {
                let file = files.open("a", OpenMode::Read, label(Purpose::Metadata)).await.unwrap();
                for _ in 0..100 {
                    drop(file.read(0, Buffer::zeroed(512), label(Purpose::DatabaseRead)));
                }
                throttled.inner().in_flight()
            })
            .unwrap()
    };
    assert_eq!(at_once(0), 1);
    assert_eq!(at_once(10 * NANOS_PER_MILLISECOND), 11);
}

/// Latency counts the wait in the throttle: it is this disk that is slow.
#[test]
fn waiting_is_part_of_latency() {
    use plimsoll_io::{Action, Answer, Operation};
    use std::cell::RefCell;
    let (clock, disk) = millisecond_disk();
    disk.load("a", &[0; 512]);
    let throttled = Rc::new(Throttled::new(disk, clock.clone(), limits(Some(100.0), None)));
    let outcomes = Rc::new(RefCell::new(Vec::new()));
    let submit = |action| {
        let kept = outcomes.clone();
        throttled.submit(Operation {
            action,
            context: label(Purpose::DatabaseRead),
            completion: Box::new(move |outcome| kept.borrow_mut().push(outcome)),
        });
    };
    let drain = || {
        while let Some(due) = throttled.next_event() {
            clock.advance_to(due.max(clock.now()));
            throttled.reap();
        }
    };
    submit(Action::Open { path: "a".into(), mode: OpenMode::Read });
    drain();
    let opened = outcomes.borrow_mut().pop().unwrap();
    let Ok(Answer::Opened(opened)) = opened.result else { panic!("{opened:?}") };
    for _ in 0..3 {
        submit(Action::Read { file: opened.file, offset: 0, buffer: Buffer::zeroed(512) });
    }
    drain();
    let latencies: Vec<_> = outcomes
        .borrow()
        .iter()
        .map(|outcome| (outcome.completed - outcome.submitted) / NANOS_PER_MILLISECOND)
        .collect();
    assert_eq!(latencies, [1, 11, 21]);
}

/// Order of arrival is kept even when time has passed since the last reap and the next could start
/// at once.
#[test]
fn nobody_overtakes_what_is_held() {
    let (clock, disk) = millisecond_disk();
    disk.load("a", &[0; 512]);
    let throttled = Rc::new(Throttled::new(disk, clock.clone(), limits(Some(1000.0), None)));
    let executor = Executor::new(clock.clone(), throttled.clone());
    let files = Files::new(throttled.clone());
    let file = executor
        .run(
            async move { files.open("a", OpenMode::Read, label(Purpose::Metadata)).await.unwrap() },
        )
        .unwrap();
    let read = || drop(file.read(0, Buffer::zeroed(512), label(Purpose::DatabaseRead)));
    (0..3).for_each(|_| read());
    assert_eq!(throttled.inner().in_flight(), 1);
    clock.advance_to(clock.now() + NANOS_PER_SECOND);
    read();
    assert_eq!(throttled.inner().in_flight(), 1, "two are held before it");
    throttled.reap();
    assert_eq!((throttled.inner().in_flight(), throttled.in_flight()), (3, 3));
}

/// A disk with nothing to do that notes how long it is asked to sleep.
#[derive(Default)]
struct Sleeper(std::cell::Cell<Option<u64>>);

impl Disk for Sleeper {
    fn submit(&self, _: plimsoll_io::Operation) {}
    fn reap(&self) -> usize {
        0
    }
    fn wait(&self, deadline: Option<u64>) {
        self.0.set(deadline);
    }
    fn waker(&self) -> std::task::Waker {
        std::task::Waker::noop().clone()
    }
    fn next_event(&self) -> Option<u64> {
        None
    }
    fn in_flight(&self) -> usize {
        0
    }
    fn facts(&self) -> plimsoll_io::DiskFacts {
        plimsoll_io::DiskFacts::default()
    }
}

/// The disk below is not asked to sleep past the start of a held operation: it could not know of
/// it.
#[test]
fn sleeping_ends_when_a_held_operation_may_start() {
    let clock = Rc::new(Clock::simulated());
    let throttled = Throttled::new(Sleeper::default(), clock, limits(Some(100.0), None));
    let slept_until = |deadline| {
        throttled.wait(deadline);
        throttled.inner().0.get()
    };
    assert_eq!(slept_until(None), None);
    for _ in 0..2 {
        throttled.submit(plimsoll_io::Operation {
            action: plimsoll_io::Action::Read {
                file: plimsoll_io::FileId(0),
                offset: 0,
                buffer: Buffer::zeroed(512),
            },
            context: label(Purpose::DatabaseRead),
            completion: Box::new(|_| ()),
        });
    }
    assert_eq!(slept_until(None), Some(10 * NANOS_PER_MILLISECOND));
    assert_eq!(slept_until(Some(5)), Some(5));
    assert_eq!(slept_until(Some(NANOS_PER_SECOND)), Some(10 * NANOS_PER_MILLISECOND));
}

/// In real time the executor must wake for a held operation although the disk below is idle.
#[test]
fn real_time_wakes_for_held_operations() {
    let clock = Rc::new(Clock::real());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    disk.load("a", &[0; 512]);
    let throttled = Rc::new(Throttled::new(disk, clock.clone(), limits(Some(100.0), None)));
    let files = Files::new(throttled.clone());
    let start = clock.now();
    Executor::new(clock.clone(), throttled)
        .run(async move {
            let file = files.open("a", OpenMode::Write, label(Purpose::Metadata)).await.unwrap();
            for _ in 0..6 {
                let buffer = Buffer::zeroed(512);
                file.write(0, buffer, Durability::Volatile, label(Purpose::LogWrite))
                    .await
                    .unwrap();
            }
        })
        .unwrap();
    let taken_ns = clock.now() - start;
    assert!(taken_ns >= 50 * NANOS_PER_MILLISECOND, "five shares of 10 ms: {taken_ns} ns");
    assert!(taken_ns < 2 * NANOS_PER_SECOND, "woken far too late: {taken_ns} ns");
}
