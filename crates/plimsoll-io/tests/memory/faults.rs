//! Every fault that can be injected, each shown to do what the fault model says.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_io::{
    Buffer, DiskErrorKind, Durability, Effect, FaultRule, File, Loss, MemoryOptions, OpenMode,
    OperationKind, Purpose, Random, Stage,
};

use crate::rig::{Rig, label};

/// A disk of two files of 8 KiB, zero, and a rule.
fn rig_with(rule: FaultRule) -> (Rig, File) {
    let rig = Rig::new(MemoryOptions { trace_operations: 100, ..MemoryOptions::default() });
    rig.disk.load("b", &[0; 8192]);
    let file = rig.settled_file("a", 8192);
    rig.disk.inject(rule);
    (rig, file)
}

fn try_write(rig: &Rig, file: &File, offset: u64, bytes: &[u8]) -> Result<(), DiskErrorKind> {
    let pending = file.write(offset, Buffer::copy_of(bytes), Durability::Durable, label());
    rig.run(pending).map(|_| ()).map_err(|error| error.kind)
}

fn try_read(rig: &Rig, file: &File, offset: u64) -> Result<Vec<u8>, DiskErrorKind> {
    let pending = file.read(offset, Buffer::zeroed(512), label());
    rig.run(pending).map(|buffer| buffer.to_vec()).map_err(|error| error.kind)
}

fn injected(rig: &Rig, name: &str) -> u64 {
    rig.disk.injected().get(name).copied().unwrap_or(0)
}

/// The n-th matching operation fails with the kind asked for, alone, and leaves the file as it was.
#[test]
fn the_nth_operation_fails() {
    let (rig, file) = rig_with(
        FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_kind(OperationKind::Write).nth(2),
    );
    assert_eq!(try_write(&rig, &file, 0, &[1; 512]), Ok(()));
    assert_eq!(try_write(&rig, &file, 512, &[2; 512]), Err(DiskErrorKind::Medium));
    assert_eq!(try_write(&rig, &file, 1024, &[3; 512]), Ok(()));
    assert_eq!(rig.read(&file, 0, 1536), [[1; 512], [0; 512], [3; 512]].concat());
    assert_eq!(injected(&rig, "fail"), 1);
}

/// Rules look at purpose, path and time; what does not match is left alone.
#[test]
fn filters_choose() {
    let fail = || FaultRule::new(Effect::Fail(DiskErrorKind::Medium));
    let cases = [
        (fail().with_purpose(Purpose::LogWrite), Ok(())),
        (fail().with_purpose(Purpose::DatabaseWrite), Err(DiskErrorKind::Medium)),
        (fail().with_path_part("b"), Ok(())),
        (fail().with_path_part("a"), Err(DiskErrorKind::Medium)),
        (fail().with_kind(OperationKind::Read), Ok(())),
        (fail().between(0, 10), Ok(())),
        (fail().between(10, u64::MAX), Err(DiskErrorKind::Medium)),
        (fail().with_probability(0.0), Ok(())),
    ];
    for (rule, expected) in cases {
        let shown = format!("{rule:?}");
        let (rig, file) = rig_with(rule);
        assert_eq!(try_write(&rig, &file, 0, &[1; 512]), expected, "{shown}");
    }
}

/// A rate is a rate: a tenth of the operations fail.
#[test]
fn probabilities_hold() {
    let rule = FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_probability(0.1);
    let (rig, file) = rig_with(rule);
    let failed = (0..2000).filter(|_| try_read(&rig, &file, 0).is_err()).count();
    assert!((150..250).contains(&failed), "{failed}");
    assert_eq!(injected(&rig, "fail"), failed as u64);
}

/// The first rule that acts decides, and the others do not count it as theirs.
#[test]
fn the_first_rule_decides() {
    let (rig, file) = rig_with(FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).nth(1));
    rig.disk.inject(FaultRule::new(Effect::Fail(DiskErrorKind::Gone)));
    rig.disk.inject(FaultRule::new(Effect::LoseWrite));
    assert_eq!(try_write(&rig, &file, 0, &[1; 512]), Err(DiskErrorKind::Medium));
    assert_eq!(try_write(&rig, &file, 0, &[1; 512]), Err(DiskErrorKind::Gone));
    assert_eq!((injected(&rig, "fail"), injected(&rig, "lose_write")), (2, 0));
}

/// A write that fails may have stored a part: callers must not assume that the old content is still
/// there.
#[test]
fn a_failing_write_may_store_a_part() {
    let (rig, file) = rig_with(FaultRule::new(Effect::FailPartly(DiskErrorKind::Medium)));
    let mut left = BTreeSet::new();
    for _ in 0..50 {
        rig.disk.load("b", &[0; 8192]);
        assert_eq!(try_write(&rig, &file, 0, &[1; 1024]), Err(DiskErrorKind::Medium));
        let bytes = rig.disk.bytes("a").unwrap();
        left.insert((bytes[0], bytes[512]));
        rig.disk.corrupt("a", 0, |bytes| bytes[..1024].fill(0));
    }
    assert_eq!(left, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
}

/// Slow and delayed operations take exactly that much longer.
#[test]
fn slow_and_delayed_operations_take_longer() {
    for (effect, expected_ns) in [(Effect::Slow(5), 500_000), (Effect::Delay(7), 100_007)] {
        let (rig, file) = rig_with(FaultRule::new(effect));
        let start = rig.disk.clock().now();
        try_write(&rig, &file, 0, &[1; 512]).unwrap();
        assert_eq!(rig.disk.clock().now() - start, expected_ns);
    }
}

/// A hung operation never completes while others do, and it stays visible as in flight.
#[test]
fn a_hung_operation_never_completes() {
    let (rig, file) = rig_with(FaultRule::new(Effect::Hang).with_kind(OperationKind::Write).nth(1));
    let is_done = Rc::new(Cell::new(false));
    let (done, hung) =
        (is_done.clone(), file.write(0, Buffer::zeroed(512), Durability::Durable, label()));
    rig.executor.handle().spawn(async move {
        hung.await.unwrap();
        done.set(true);
    });
    let handle = rig.executor.handle();
    rig.run(async move { handle.sleep(3_600_000_000_000).await });
    try_write(&rig, &file, 512, &[1; 512]).unwrap();
    assert!(!is_done.get());
    assert_eq!(plimsoll_io::Disk::in_flight(&*rig.disk), 1);
}

/// A lost write is acknowledged, and nothing is there, now or after a power cut.
#[test]
fn a_lost_write_is_acknowledged() {
    let (rig, file) = rig_with(FaultRule::new(Effect::LoseWrite).nth(1));
    assert_eq!(try_write(&rig, &file, 0, &[1; 512]), Ok(()));
    assert_eq!(rig.read(&file, 0, 512), [0; 512]);
    let image = rig.disk.crash_image(Loss::Nothing, &mut Random::from_seed(1));
    assert_eq!(image.bytes("a").unwrap(), [0; 8192]);
}

/// A torn write is acknowledged with some of its sectors old.
#[test]
fn a_torn_write_is_acknowledged() {
    let (rig, file) = rig_with(FaultRule::new(Effect::TearWrite));
    let mut torn = 0;
    for value in 1..=20 {
        try_write(&rig, &file, 0, &[value; 4096]).unwrap();
        let bytes = rig.disk.bytes("a").unwrap();
        let new = (0..8).filter(|sector| bytes[sector * 512] == value).count();
        torn += usize::from((1..8).contains(&new));
    }
    assert!(torn > 10, "{torn}");
}

/// A misdirected write is whole, somewhere else, and its own place is unchanged.
#[test]
fn misdirected_writes_land_elsewhere() {
    for (effect, file_hit) in
        [(Effect::MisdirectWithinFile, "a"), (Effect::MisdirectToOtherFile, "b")]
    {
        let (rig, file) = rig_with(FaultRule::new(effect));
        let mut places = BTreeSet::new();
        for value in 1..=100 {
            try_write(&rig, &file, 512, &[value; 512]).unwrap();
            for path in ["a", "b"] {
                let bytes = rig.disk.bytes(path).unwrap();
                let hit: Vec<usize> =
                    (0..16).filter(|sector| bytes[sector * 512] == value).collect();
                assert_eq!(hit.len(), usize::from(path == file_hit), "{effect:?} in {path}");
                assert!(path != "a" || !hit.contains(&1), "{effect:?} hit its own place");
                places.extend(hit);
            }
        }
        assert!(places.len() >= 15, "anywhere else, not one place: {places:?}");
    }
}

/// A flip on the way affects one read; a flip on the medium stays until the place is written again.
#[test]
fn flips_are_transient_or_stay() {
    let ones = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
    let read = |effect| FaultRule::new(effect).with_kind(OperationKind::Read).nth(1);
    let (rig, file) = rig_with(read(Effect::FlipOnRead));
    assert_eq!(ones(&try_read(&rig, &file, 0).unwrap()), 1);
    assert_eq!(ones(&try_read(&rig, &file, 0).unwrap()), 0);

    let (rig, file) = rig_with(read(Effect::FlipStored));
    assert_eq!(ones(&try_read(&rig, &file, 0).unwrap()), 1);
    assert_eq!(ones(&try_read(&rig, &file, 0).unwrap()), 1);
    let image = rig.disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
    assert_eq!(ones(&image.bytes("a").unwrap()), 1, "damage at rest survives a power cut");
    try_write(&rig, &file, 0, &[0; 512]).unwrap();
    assert_eq!(ones(&try_read(&rig, &file, 0).unwrap()), 0);
}

/// A latent sector error is met by every read of the sector, by no other, and a write heals it.
#[test]
fn a_lost_sector_cannot_be_read_until_written() {
    let (rig, file) =
        rig_with(FaultRule::new(Effect::LoseSector).with_kind(OperationKind::Write).nth(1));
    try_write(&rig, &file, 512, &[1; 512]).unwrap();
    assert_eq!(try_read(&rig, &file, 512), Err(DiskErrorKind::Medium));
    assert_eq!(try_read(&rig, &file, 512), Err(DiskErrorKind::Medium));
    assert_eq!(try_read(&rig, &file, 1024), Ok(vec![0; 512]));
    try_write(&rig, &file, 512, &[2; 512]).unwrap();
    assert_eq!(try_read(&rig, &file, 512), Ok(vec![2; 512]));
    assert!(rig.disk.lose_sectors("a", 1024, 1));
    assert_eq!(try_read(&rig, &file, 1024), Err(DiskErrorKind::Medium));
}

/// What a skipped sync leaves at risk: the three ways in which storage lies.
#[test]
fn skipped_syncs_make_nothing_stable() {
    let survives = |kind: Option<OperationKind>| {
        let rig = Rig::new(MemoryOptions::default());
        if let Some(kind) = kind {
            rig.disk.inject(FaultRule::new(Effect::SkipSync).with_kind(kind));
        }
        let files = rig.files.clone();
        rig.run(async move {
            let file = files.open("a", OpenMode::Create, label()).await.unwrap();
            file.write(0, Buffer::copy_of(&[1; 512]), Durability::Volatile, label()).await.unwrap();
            file.sync(label()).await.unwrap();
            file.write(512, Buffer::copy_of(&[2; 512]), Durability::Durable, label())
                .await
                .unwrap();
            files.sync_directory("".as_ref(), label()).await.unwrap();
        });
        let image = rig.disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
        image.bytes("a").map(|bytes| bytes.chunks(512).map(|sector| sector[0]).collect::<Vec<u8>>())
    };
    assert_eq!(survives(None), Some(vec![1, 2]));
    assert_eq!(survives(Some(OperationKind::SyncFile)), Some(vec![0, 2]));
    assert_eq!(survives(Some(OperationKind::Write)), Some(vec![1]));
    assert_eq!(survives(Some(OperationKind::SyncDirectory)), None);
}

/// A device that is gone fails everything from then on, also what was in flight, and stores
/// nothing.
#[test]
fn a_removed_device_fails_everything() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 512);
    rig.disk.remove_at(rig.disk.clock().now() + 1);
    assert_eq!(try_write(&rig, &file, 0, &[1; 512]), Err(DiskErrorKind::Gone));
    assert_eq!(try_read(&rig, &file, 0), Err(DiskErrorKind::Gone));
    assert_eq!(rig.disk.bytes("a").unwrap(), [0; 512]);
    let files = rig.files.clone();
    let opened = rig.run(async move { files.open("a", OpenMode::Read, label()).await.err() });
    assert_eq!(opened.map(|error| error.kind), Some(DiskErrorKind::Gone));
}

/// Power can be cut at a chosen operation: before it takes effect, or after it and before anybody
/// hears of it.
#[test]
fn power_can_be_cut_at_a_chosen_operation() {
    for (effect, stored) in [(Effect::CutPowerWhenSubmitted, 0), (Effect::CutPowerWhenDone, 1)] {
        let (rig, file) = rig_with(FaultRule::new(effect).with_kind(OperationKind::Write).nth(2));
        try_write(&rig, &file, 512, &[3; 512]).unwrap();
        let is_acknowledged = Rc::new(Cell::new(false));
        let (acknowledged, write) = (
            is_acknowledged.clone(),
            file.write(0, Buffer::copy_of(&[1; 512]), Durability::Durable, label()),
        );
        rig.executor.handle().spawn(async move { acknowledged.set(write.await.is_ok()) });
        let disk = rig.disk.clone();
        rig.run(async move { disk.power_lost().await });
        assert!(!is_acknowledged.get());
        let image = rig.disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
        let bytes = image.bytes("a").unwrap();
        assert_eq!((bytes[0], bytes[512]), (stored, 3), "{effect:?}");
    }
}

/// The trace tells a reader what happened to whom, faults included.
#[test]
fn the_trace_names_operation_and_fault() {
    let (rig, file) = rig_with(FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).nth(1));
    try_write(&rig, &file, 512, &[1; 512]).unwrap_err();
    let trace = rig.disk.trace();
    let last = trace.last().unwrap();
    assert_eq!(last.stage, Stage::Failed(DiskErrorKind::Medium));
    assert_eq!(
        last.to_string(),
        "event 4 at 200000 ns: operation 1 failed: write a (database_write) 512 bytes at 512 \
         Medium [fail]"
    );
}

/// Faults can be switched off again, as a repaired path would be.
#[test]
fn cleared_rules_do_nothing() {
    let (rig, file) = rig_with(FaultRule::new(Effect::Fail(DiskErrorKind::Medium)));
    try_write(&rig, &file, 0, &[1; 512]).unwrap_err();
    rig.disk.clear_faults();
    try_write(&rig, &file, 0, &[1; 512]).unwrap();
    let files = rig.files.clone();
    rig.run(async move { files.open("b", OpenMode::Read, label()).await.unwrap() });
}
