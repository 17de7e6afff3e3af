//! What the recorder counts is what every report is made of.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::{
    Buffer, CompletedIo, Context, Disk, DiskErrorKind, Durability, Effect, Executor, FaultRule,
    Files, InstanceId, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Observer, OpenMode, OperationKind,
    Purpose, Recorded, SeriesKey,
};

use crate::decorators::{check_decorator, label, millisecond_disk};

fn key(purpose: Purpose, kind: OperationKind) -> SeriesKey {
    SeriesKey { instance: InstanceId(0), database: 0, purpose, kind }
}

/// A recorder changes nothing.
#[test]
fn a_recorded_disk_keeps_the_contract() {
    check_decorator(|disk, clock| Rc::new(Recorded::new(disk, clock)));
}

/// Operations, bytes and times are kept apart by instance, database, purpose and kind; an interval
/// starts from nothing.
#[test]
fn series_are_kept_apart() {
    let (clock, disk) = millisecond_disk();
    disk.load("a", &[0; 8192]);
    let recorded = Rc::new(Recorded::new(disk, clock.clone()));
    let executor = Executor::new(clock.clone(), recorded.clone());
    let files = Files::new(recorded.clone());
    executor
        .run(async move {
            let file = files.open("a", OpenMode::Write, label(Purpose::Metadata)).await.unwrap();
            let of_database = |database| Context { database, ..label(Purpose::DatabaseRead) };
            for database in [1, 1, 2] {
                file.read(0, Buffer::zeroed(4096), of_database(database)).await.unwrap();
            }
            let late = Context {
                instance: InstanceId(7),
                intended: Some(clock.now() - 3 * NANOS_PER_MILLISECOND),
                ..label(Purpose::LogWrite)
            };
            file.write(0, Buffer::zeroed(512), Durability::Durable, late).await.unwrap();
        })
        .unwrap();
    let interval = recorded.take_interval();
    let shown: Vec<_> = interval
        .series
        .iter()
        .map(|(key, series)| {
            let response_ms = series.response.max_ns() / NANOS_PER_MILLISECOND;
            let latency_ms = series.latency.max_ns() / NANOS_PER_MILLISECOND;
            (
                key.instance.0,
                key.database,
                key.kind,
                series.operations,
                series.bytes,
                latency_ms,
                response_ms,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (0, 0, OperationKind::Open, 1, 0, 1, 1),
            (0, 1, OperationKind::Read, 2, 8192, 1, 1),
            (0, 2, OperationKind::Read, 1, 4096, 1, 1),
            (7, 0, OperationKind::Write, 1, 512, 1, 4),
        ]
    );
    assert_eq!((interval.from_ns, interval.until_ns), (0, 5 * NANOS_PER_MILLISECOND));
    assert_eq!(interval.in_flight_max, 1);
    assert!(recorded.take_interval().series.is_empty(), "an interval counts once");
}

/// A failure is counted as a failure and does not improve or spoil the latencies.
#[test]
fn failures_are_counted_apart() {
    let (clock, disk) = millisecond_disk();
    disk.load("a", &[0; 8192]);
    disk.inject(
        FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_kind(OperationKind::Read).nth(2),
    );
    let recorded = Rc::new(Recorded::new(disk, clock.clone()));
    recorded.trace(10);
    let files = Files::new(recorded.clone());
    Executor::new(clock, recorded.clone())
        .run(async move {
            let file = files.open("a", OpenMode::Read, label(Purpose::Metadata)).await.unwrap();
            let read = || file.read(0, Buffer::zeroed(4096), label(Purpose::DatabaseRead));
            assert!(read().await.is_ok());
            assert!(read().await.is_err());
        })
        .unwrap();
    let interval = recorded.take_interval();
    let series = &interval.series[&key(Purpose::DatabaseRead, OperationKind::Read)];
    assert_eq!((series.operations, series.errors, series.bytes), (1, 1, 4096));
    assert_eq!(series.latency.count(), 1);
    let (trace, missed) = recorded.take_trace();
    let errors: Vec<_> = trace.iter().map(|io| io.error).collect();
    assert_eq!((errors, missed), (vec![None, None, Some(DiskErrorKind::Medium)], 0));
}

/// An operation that never completes is reported by name and place while it hangs, and no other is.
#[test]
fn hung_operations_are_seen_before_they_complete() {
    let (clock, disk) = millisecond_disk();
    disk.load("a", &[0; 8192]);
    disk.inject(FaultRule::new(Effect::Hang).with_kind(OperationKind::Read).nth(1));
    let recorded = Rc::new(Recorded::new(disk, clock.clone()));
    let executor = Executor::new(clock.clone(), recorded.clone());
    let files = Files::new(recorded.clone());
    let handle = executor.handle();
    executor
        .run(async move {
            let file = files.open("a", OpenMode::Write, label(Purpose::Metadata)).await.unwrap();
            drop(file.read(4096, Buffer::zeroed(512), label(Purpose::DatabaseRead)));
            handle.sleep(29 * NANOS_PER_SECOND).await;
            file.write(0, Buffer::zeroed(512), Durability::Volatile, label(Purpose::DatabaseWrite))
                .await
                .unwrap();
            drop(file.write(
                0,
                Buffer::zeroed(512),
                Durability::Volatile,
                label(Purpose::DatabaseWrite),
            ));
        })
        .unwrap();
    assert!(recorded.in_flight_longer_than(30 * NANOS_PER_SECOND).is_empty());
    clock.advance_to(30 * NANOS_PER_SECOND + NANOS_PER_MILLISECOND);
    let hung = recorded.in_flight_longer_than(30 * NANOS_PER_SECOND);
    assert_eq!(hung.len(), 1, "{hung:?}");
    assert_eq!(hung[0].key, key(Purpose::DatabaseRead, OperationKind::Read));
    assert_eq!(hung[0].path.as_deref(), Some("a".as_ref()));
    assert_eq!(
        (hung[0].offset, hung[0].length_bytes, hung[0].submitted),
        (4096, 512, NANOS_PER_MILLISECOND)
    );
}

/// Depth is the most at once, and what is still in flight when an interval begins belongs to it.
#[test]
fn depth_carries_over_into_the_next_interval() {
    let (clock, disk) = millisecond_disk();
    disk.load("a", &[0; 8192]);
    let recorded = Rc::new(Recorded::new(disk, clock.clone()));
    let executor = Executor::new(clock, recorded.clone());
    let files = Files::new(recorded.clone());
    let file = executor
        .run(
            async move { files.open("a", OpenMode::Read, label(Purpose::Metadata)).await.unwrap() },
        )
        .unwrap();
    let read = || file.read(0, Buffer::zeroed(512), label(Purpose::DatabaseRead));
    let reads = [read(), read(), read()];
    assert_eq!(recorded.take_interval().in_flight_max, 3);
    executor
        .run(async move {
            for read in reads {
                read.await.unwrap();
            }
        })
        .unwrap();
    assert_eq!(recorded.take_interval().in_flight_max, 3);
    assert_eq!(recorded.take_interval().in_flight_max, 0);
}

struct Seen(RefCell<Vec<String>>);

impl Observer for Seen {
    fn completed(&self, io: &CompletedIo<'_>) {
        let path = io.path.map(|path| path.display().to_string()).unwrap_or_default();
        let error = io.error.map(|error| error.kind);
        self.0.borrow_mut().push(format!("{} {path} {error:?}", io.io.key.kind.name()));
    }
}

/// The observer sees every completion with its path, errors included, in order.
#[test]
fn the_observer_sees_everything() {
    let (clock, disk) = millisecond_disk();
    let seen = Rc::new(Seen(RefCell::default()));
    let recorded = Rc::new(Recorded::observed(disk, clock.clone(), seen.clone()));
    let files = Files::new(recorded.clone());
    Executor::new(clock, recorded)
        .run(async move {
            let metadata = label(Purpose::Metadata);
            assert!(files.open("missing", OpenMode::Read, metadata).await.is_err());
            let file = files.open("a", OpenMode::Create, metadata).await.unwrap();
            file.sync(metadata).await.unwrap();
            file.close(metadata).await.unwrap();
            assert!(file.sync(metadata).await.is_err());
            files.rename("a".as_ref(), "b".as_ref(), metadata).await.unwrap();
        })
        .unwrap();
    let expected = [
        "open missing Some(NotFound)",
        "create a None",
        "sync a None",
        "close a None",
        "sync  Some(Other)",
        "rename a None",
    ];
    assert_eq!(*seen.0.borrow(), expected);
}

/// A full trace says how much it missed instead of growing or forgetting in silence.
#[test]
fn the_trace_is_bounded() {
    let (clock, disk) = millisecond_disk();
    disk.load("a", &[0; 8192]);
    let recorded = Rc::new(Recorded::new(disk, clock.clone()));
    recorded.trace(3);
    let files = Files::new(recorded.clone());
    Executor::new(clock, recorded.clone())
        .run(async move {
            let file = files.open("a", OpenMode::Read, label(Purpose::Metadata)).await.unwrap();
            for sector in 0..5 {
                file.read(sector * 512, Buffer::zeroed(512), label(Purpose::Checksum))
                    .await
                    .unwrap();
            }
        })
        .unwrap();
    let (trace, missed) = recorded.take_trace();
    let offsets: Vec<_> = trace.iter().map(|io| (io.key.kind, io.offset)).collect();
    assert_eq!(
        offsets,
        [(OperationKind::Open, 0), (OperationKind::Read, 0), (OperationKind::Read, 512)]
    );
    assert_eq!(missed, 3);
    assert_eq!(trace[2].completed - trace[2].submitted, NANOS_PER_MILLISECOND);
    assert_eq!(recorded.take_trace(), (Vec::new(), 0));
}

/// A file that is dropped after its executor submits a close that nobody reaps any more. That close
/// lies in the queue of the disk below for as long as that disk lives, and must not keep the
/// record, its observer and whatever those hold: in a soak it would never be freed.
#[test]
fn a_close_that_nobody_reaps_keeps_nothing() {
    let (clock, disk) = millisecond_disk();
    let seen = Rc::new(Seen(RefCell::default()));
    let observer = Rc::downgrade(&seen);
    let recorded = Rc::new(Recorded::observed(disk.clone(), clock.clone(), seen));
    let files = Files::new(recorded.clone());
    let executor = Executor::new(clock, recorded.clone());
    let file = executor
        .run(async move { files.open("a", OpenMode::Create, label(Purpose::Metadata)).await })
        .unwrap()
        .unwrap();
    drop((executor, recorded));
    drop(file);
    assert_eq!(disk.in_flight(), 1, "the close waits for somebody to reap it");
    assert!(observer.upgrade().is_none(), "and holds nothing of the record");
}
