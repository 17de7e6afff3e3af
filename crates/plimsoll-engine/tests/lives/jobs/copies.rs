//! Backups that are kept: databases of one instance, copied next to their sessions and sealed
//! together, are one moment of all of them, or no databases at all.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::jobs::copy::{Copied, CopiedLog, Copy, seal};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Context, DiskErrorKind, Effect, FaultRule, Files, Handle, Loss, MemoryDisk, MemoryOptions,
    NANOS_PER_SECOND, OperationKind, Purpose, Random, Stage,
};

use super::{slow_disk, work};
use crate::life::*;
use crate::support::*;

const KEPT: &str = "/kept";
/// More than a copy takes.
const COPYING_OPERATIONS_MAX: u64 = 120;
const KEPT_LOG: &str = "/keptlog";

fn two_databases() -> Setup {
    Setup { databases: 2, cache_frames: 64, checkpoint_generations: 1, ..Setup::default() }
}

fn copy_path(number: u8) -> PathBuf {
    PathBuf::from(format!("{KEPT}/database {number}.edb"))
}

fn copied_log() -> LogNames {
    LogNames::new(KEPT_LOG, "E00")
}

fn disk_for_copies(seed: u64, setup: &Setup, memory: MemoryOptions) -> Rc<MemoryDisk> {
    let disk = disk_with_databases(seed, setup, memory);
    disk.create_directory(KEPT);
    disk.create_directory(KEPT_LOG);
    disk
}

async fn copy_one(instance: &Rc<Instance>, number: u8, read_bytes: usize) -> Result<Copied> {
    let backup = Backup::start(instance, number, read_bytes)?.with_reads_outstanding(3);
    let mut copy = Copy::start(backup, copy_path(number)).await?;
    while copy.copy_on().await? {}
    copy.finish().await
}

/// Copies all databases at once and seals them.
async fn keep(instance: &Rc<Instance>, setup: &Setup, read_bytes: usize) -> Result<CopiedLog> {
    let handle = instance.store().handle.clone();
    let start = |number| {
        let instance = instance.clone();
        handle.spawn(async move { copy_one(&instance, number, read_bytes).await })
    };
    let under_way: Vec<_> = (1..=setup.databases).map(start).collect();
    let mut copies = Vec::new();
    for copy in under_way {
        copies.push(copy.await);
    }
    let copies = copies.into_iter().collect::<Result<Vec<_>>>()?;
    seal(copies, &copied_log()).await
}

async fn open_copies(files: &Files, handle: &Handle, setup: &Setup) -> Result<Rc<Instance>> {
    let mut options = options(setup);
    options.databases = (1..=setup.databases).map(copy_path).collect();
    options.log = copied_log();
    let mut random = Random::from_seed(9);
    let opened = Instance::open(files.clone(), handle.clone(), options, &mut random).await;
    opened.map(|(instance, _)| instance)
}

/// What a world had done when its power failed or its work ended.
#[derive(Clone, Default)]
struct Done {
    ledger: Rc<RefCell<Ledger>>,
    field: Rc<RefCell<Option<Field>>>,
    /// Commits before the backup began.
    before: Rc<Cell<usize>>,
    is_sealed: Rc<Cell<bool>>,
}

async fn busy_world(
    files: Files,
    handle: Handle,
    (setup, seed): (Setup, u64),
    done: Done,
    mut random: Random,
) {
    let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
    let field = create_field(&instance, &setup, 500, 500).await.unwrap();
    *done.field.borrow_mut() = Some(field.clone());
    work(&instance, &handle, &field, &done.ledger, 1, 30).await;
    let busy = {
        let (instance, ledger, handle) = (instance.clone(), done.ledger.clone(), handle.clone());
        handle.clone().spawn(async move {
            work(&instance, &handle, &field, &ledger, 2, 300).await;
        })
    };
    handle.sleep(random.below(NANOS_PER_SECOND)).await;
    done.before.set(done.ledger.borrow().committed.len());
    keep(&instance, &setup, 4096 << random.below(7)).await.unwrap();
    done.is_sealed.set(true);
    busy.await;
    instance.close().await.unwrap();
}

/// Of a sealed copy everything that was committed when its backup began is there, in all databases;
/// one that was not sealed is refused, or is whole. Answers whether it was opened.
fn judge(disk: &Rc<MemoryDisk>, setup: Setup, done: Done, what: String) -> bool {
    live(disk, move |files, handle| async move {
        let opened = open_copies(&files, &handle, &setup).await;
        let copies = match opened {
            Ok(copies) => copies,
            Err(error) if done.is_sealed.get() => panic!("{what}: {error}"),
            Err(
                EngineError::BadHeader { .. }
                | EngineError::LogMissing { .. }
                | EngineError::Disk(_),
            ) => return false,
            Err(error) => panic!("{what}: {error}"),
        };
        let field = done.field.borrow().clone().expect("copies are made after their trees");
        let books = Ledger { acknowledged: Vec::new(), ..done.ledger.borrow().clone() };
        let survived = audit(&copies, &field, &books).await.unwrap();
        assert!(survived >= done.before.get(), "{what}: {survived} of {}", done.before.get());
        copies.close().await.unwrap();
        true
    })
}

/// Cuts the power at an operation on the copies or their log.
fn in_the_copies(random: &mut Random) -> FaultRule {
    let effects = [Effect::CutPowerWhenSubmitted, Effect::CutPowerWhenDone];
    let rule = FaultRule::new(effects[random.below(2) as usize]).with_path_part(KEPT);
    if random.chance(0.4) {
        // Pages and headers of both copies are made stable one after the other.
        let rule = rule.with_path_part("/kept/").with_kind(OperationKind::SyncFile);
        return rule.nth(1 + random.below(4));
    }
    rule.nth(1 + random.below(COPYING_OPERATIONS_MAX))
}

/// What is left of a power cut somewhere while copies are made and sealed.
fn copies_after_a_power_cut(seed: u64) -> (bool, bool) {
    let setup = Setup { page_images: !seed.is_multiple_of(3), ..two_databases() };
    let memory = MemoryOptions {
        atomic_write_bytes: if setup.page_images { 512 } else { 4096 },
        ..slow_disk()
    };
    let disk = disk_for_copies(seed, &setup, memory);
    let mut random = Random::from_seed(seed).child("kept");
    let done = Done::default();
    match random.chance(0.5) {
        true => disk.power_cut_at_event(disk.events() + 500 + random.below(1_500)),
        false => disk.inject(in_the_copies(&mut random)),
    }
    let (world, own) = ((setup.clone(), seed), done.clone());
    let chances = random.child("world");
    run_until_power_lost(&disk, move |files, handle| {
        busy_world(files, handle, world, own, chances)
    });
    disk.power_cut();
    let loss = [Loss::Everything, Loss::Drawn][random.below(2) as usize];
    let found = disk.crash_image(loss, &mut random);
    let is_sealed = done.is_sealed.get();
    (is_sealed, judge(&found, setup, done, format!("seed {seed}")))
}

/// Why it matters: a copy that looks like a database and is none is found out when it is needed.
#[test]
fn a_copy_is_whole_when_it_was_sealed_and_refused_when_not() {
    cut_copies(24);
}

/// The same for as many worlds as told.
#[test]
#[ignore = "slow: make simulate runs it"]
fn many_copies_are_whole_when_they_were_sealed_and_refused_when_not() {
    cut_copies(wanted("PLIMSOLL_WORLDS").map_or(400, |count| count as u64));
}

fn cut_copies(count: u64) {
    let first = first_seed(44_000);
    let (mut sealed, mut opened) = (0, 0);
    for seed in first..first + count {
        println!("seed {seed}");
        let (is_sealed, is_opened) = copies_after_a_power_cut(seed);
        sealed += u64::from(is_sealed);
        opened += u64::from(is_opened);
    }
    println!("{sealed} sealed and {opened} opened of {count}");
    assert!(sealed * 8 > count && opened * 8 < count * 7, "{sealed} sealed, {opened} opened");
}

/// A copy is a database like others once it was opened: closed, opened again, sound.
#[test]
fn copies_of_two_databases_hold_what_was_committed_before_their_backup_began() {
    let setup = two_databases();
    let disk = disk_for_copies(3, &setup, slow_disk());
    let (done, own, world) = (Done::default(), setup.clone(), (setup.clone(), 3));
    let noted = done.clone();
    live(&disk, move |files, handle| busy_world(files, handle, world, noted, Random::from_seed(3)));
    assert!(done.is_sealed.get() && done.before.get() > 100, "{}", done.before.get());
    for _ in 0..2 {
        assert!(judge(&disk, own.clone(), done.clone(), "the copy".into()));
    }
    let log_of_copy = disk.snapshot().into_keys().filter(|path| path.starts_with("keptlog"));
    assert!(log_of_copy.count() > 1, "its log lies beside it");
}

/// A header may reach the medium with what was written before it, or without: pages are stable
/// first.
#[test]
fn a_copy_gets_its_header_when_its_pages_are_stable() {
    let setup = two_databases();
    let memory = MemoryOptions { trace_operations: 1_000_000, ..slow_disk() };
    let disk = disk_for_copies(4, &setup, memory);
    let done = Done::default();
    let world = (setup, 4);
    live(&disk, move |files, handle| busy_world(files, handle, world, done, Random::from_seed(4)));
    let (mut volatile, mut headers) = (0, 0);
    for entry in disk.trace().into_iter().filter(|entry| *entry.path == *copy_path(1)) {
        let is_asked = entry.stage == Stage::Submitted;
        match (entry.kind, entry.range) {
            (OperationKind::Write, Some((offset, _))) if offset < 2 * 4096 => {
                assert!(!is_asked || volatile == 0, "{volatile} pages are not stable yet");
                headers += u32::from(is_asked);
            }
            (OperationKind::Write, _) => volatile += u32::from(is_asked),
            (OperationKind::SyncFile, _) if !is_asked => volatile = 0,
            _ => {}
        }
    }
    assert_eq!(headers, 2, "two copies of the header are written");
}

/// Nothing is written over, whatever stands in the way of a copy stays, and sessions do not notice.
#[test]
fn a_copy_that_cannot_be_made_leaves_the_instance_alone() {
    let setup = two_databases();
    let full = FaultRule::new(Effect::Fail(DiskErrorKind::Full)).with_kind(OperationKind::Extend);
    let full = full.with_purpose(Purpose::Backup);
    for (what, fault) in [("a file in its way", None), ("a full disk", Some(full))] {
        let disk = disk_for_copies(5, &setup, slow_disk());
        let is_in_the_way = fault.is_none();
        if is_in_the_way {
            disk.load(copy_path(2), b"somebody's");
        }
        let (own, below) = (setup.clone(), disk.clone());
        live(&disk, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &own, 5).await.unwrap();
            let field = create_field(&instance, &own, 500, 500).await.unwrap();
            let ledger = Rc::default();
            work(&instance, &handle, &field, &ledger, 1, 30).await;
            if let Some(fault) = fault {
                below.inject(fault);
            }
            let kept = keep(&instance, &own, 64 * 1024).await;
            assert!(matches!(kept, Err(EngineError::Disk(_))), "{what}: {kept:?}");
            work(&instance, &handle, &field, &ledger, 2, 30).await;
            instance.close().await.unwrap();
            assert!(open_copies(&files, &handle, &own).await.is_err(), "{what}");
        });
        if is_in_the_way {
            assert_eq!(disk.bytes(copy_path(2)).as_deref(), Some(&b"somebody's"[..]));
        }
    }
}

/// A copy that its caller gives up holds no log and locks no file; copies of two instances are not
/// sealed together.
#[test]
fn a_copy_that_is_given_up_lets_go_of_everything() {
    let setup = two_databases();
    let disk = disk_for_copies(6, &setup, slow_disk());
    live(&disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 6).await.unwrap();
        let field = create_field(&instance, &setup, 500, 500).await.unwrap();
        work(&instance, &handle, &field, &Rc::default(), 1, 30).await;
        for polls in 1..40 {
            let given_up = give_up_after(polls, keep_one(&instance)).await;
            assert!(given_up.is_none(), "it was done after {polls} polls");
            handle.sleep(NANOS_PER_SECOND / 10).await;
            assert_eq!(instance.holds(), Vec::new(), "after {polls} polls");
            if files.exists(copy_path(1), Context::default()).await.unwrap() {
                files.delete(&copy_path(1), Context::default()).await.unwrap();
            }
        }
        assert!(matches!(
            seal(Vec::new(), &copied_log()).await,
            Err(EngineError::BadOption { name: "copies", .. })
        ));
        instance.close().await.unwrap();
    });
}

async fn keep_one(instance: &Rc<Instance>) -> Result<()> {
    let copied = copy_one(instance, 1, 16 * 1024).await?;
    seal(vec![copied], &copied_log()).await.map(drop)
}

/// Why it matters: log that is kept until the next backup fills its volume where that backup lets
/// none of it go; and log that somebody still reads must stay.
#[test]
fn log_that_a_kept_backup_makes_superfluous_goes_and_no_other() {
    let setup = Setup { circular: false, ..two_databases() };
    let disk = disk_for_copies(4, &setup, MemoryOptions::default());
    let of_life = setup.clone();
    let tree = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&of_life)).await;
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let log = &instance.store().log;
        let fill = async |number: u64| {
            let transaction = instance.begin();
            let key = number.to_be_bytes();
            transaction.insert(tree, &key, &[number as u8; 100]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            log.make_durable(log.begin_generation().end).await.unwrap();
        };
        for number in 0..6 {
            fill(number).await;
        }
        instance.hold_log("reader", 3);
        handle.sleep(2 * NANOS_PER_SECOND).await;
        instance.checkpoint().await.unwrap();
        let oldest = log.oldest_generation();
        let needed = keep(&instance, &of_life, 64 * 1024).await.unwrap().generation_first;
        assert!(oldest < 3 && needed > 3, "{oldest}, {needed}");
        for number in 6..9 {
            fill(number).await;
        }
        assert_eq!(instance.truncate_log(needed).await.unwrap(), 3, "a reader needs the rest");
        instance.release_log("reader");
        assert_eq!(instance.truncate_log(2).await.unwrap(), 3, "nobody asked for more");
        // What recovery needs stays, whatever is asked for.
        let left = instance.truncate_log(u32::MAX).await.unwrap();
        assert!(left >= needed && left <= log.durable().generation, "{left}");
        tree
    });
    // It dies, and what is left of the log brings it back; the copies need none of what is gone.
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let copies = open_copies(&files, &handle, &setup).await.unwrap();
        for (found, rows) in [(&instance, 9), (&copies, 6)] {
            assert_eq!(dump(found, tree).await.unwrap().len(), rows);
        }
        copies.close().await.unwrap();
        instance.clone().close().await.unwrap();
        let after = instance.truncate_log(u32::MAX).await;
        assert!(matches!(after, Err(EngineError::Closing)), "{after:?}");
    });
}

/// Why it matters: a file that could not be deleted, and that no later truncation tries again,
/// fills the volume until the process ends.
#[test]
fn log_that_could_not_be_deleted_is_deleted_by_the_next_truncation() {
    let setup = Setup { circular: false, ..two_databases() };
    let disk = disk_for_copies(4, &setup, MemoryOptions::default());
    let failing = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let log = &instance.store().log;
        for _ in 0..6 {
            log.make_durable(log.begin_generation().end).await.unwrap();
        }
        handle.sleep(2 * NANOS_PER_SECOND).await;
        instance.checkpoint().await.unwrap();
        let oldest = log.oldest_generation();
        let closed = LogNames::new(LOG, "E00").closed(oldest);
        // The deletion fails, or it is done and could not be made durable.
        for kind in [OperationKind::Delete, OperationKind::SyncDirectory] {
            let fail = Effect::Fail(DiskErrorKind::Medium);
            failing.inject(FaultRule::new(fail).with_kind(kind).nth(1));
            let failed = instance.truncate_log(oldest + 1).await;
            assert!(matches!(failed, Err(EngineError::Disk(_))), "{kind:?}: {failed:?}");
            let held = instance.hold_log_durably("late", oldest).await;
            assert!(matches!(held, Err(EngineError::LogDeleted { .. })), "{kind:?}: {held:?}");
        }
        assert_eq!(instance.truncate_log(oldest + 1).await.unwrap(), oldest + 1);
        assert!(failing.bytes(&closed).is_none(), "generation {oldest} is deleted");
        instance.close().await.unwrap();
    });
}
