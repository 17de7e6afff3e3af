//! Durable holds: named by clients, listed, kept through restarts, kills and power cuts, with the
//! log that they name, until they are released.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::holds::LOST_HOLDS;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Context, DiskErrorKind, Effect, FaultRule, Files, Handle, Latency, LatencyPlan, Loss,
    MemoryDisk, MemoryOptions, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, OperationKind, Random,
    either,
};

use crate::life::*;
use crate::support::*;

fn setup() -> Setup {
    Setup { checkpoint_generations: 1, ..Setup::default() }
}

/// Long enough that the blocks of the file tear.
fn client(number: u64) -> String {
    format!("client {number} {}", "of some database ".repeat(18))
}

/// A process that has opened the databases.
struct Open {
    instance: Rc<Instance>,
    files: Files,
    handle: Handle,
    tree: Tree,
}

impl Open {
    async fn new(files: Files, handle: Handle, tree: Option<Tree>) -> Rc<Open> {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = match tree {
            Some(tree) => tree,
            None => instance.create_tree(1, 1, 50, 0, 3).await.unwrap(),
        };
        make_durable(&instance).await;
        Rc::new(Open { instance, files, handle, tree })
    }

    /// Works through so many generations, with a checkpoint in each.
    async fn move_on(&self, generations: u32) -> Result<(), EngineError> {
        let log = &self.instance.store().log;
        for _ in 0..generations {
            let transaction = self.instance.begin();
            let key = (u64::from(log.tip().generation) << 32) + u64::from(log.tip().offset);
            transaction.insert(self.tree, &key.to_be_bytes(), &[7; 100]).await?;
            transaction.commit(Commit::Durable).await?;
            log.make_durable(log.begin_generation().end).await?;
            self.handle.sleep(2 * NANOS_PER_SECOND).await;
        }
        Ok(())
    }

    fn tip(&self) -> u32 {
        self.instance.store().log.tip().generation
    }

    async fn kept(&self) -> BTreeSet<u32> {
        let reader =
            LogReader::new(self.files.clone(), LogNames::new(LOG, "E00"), Context::default());
        let files = reader.generations().await.unwrap();
        files.iter().map(|file| file.generation).collect()
    }

    /// Durable holds.
    fn listed(&self) -> BTreeMap<String, u32> {
        let holds = self.instance.holds().into_iter();
        holds.filter(|hold| hold.is_durable).map(|hold| (hold.name, hold.generation)).collect()
    }

    /// Every hold that is listed has its log.
    async fn check_kept(&self, label: &str) {
        let kept = self.kept().await;
        for (name, generation) in self.listed() {
            for needed in generation..=self.tip() {
                assert!(
                    kept.contains(&needed),
                    "{label}: {name} holds {generation}, and {needed} is gone: {kept:?}"
                );
            }
        }
    }
}

/// The tree that the first life of a disk makes.
fn first_life(disk: &Rc<MemoryDisk>) -> Tree {
    live(disk, move |files, handle| async move {
        let open = Open::new(files, handle, None).await;
        open.move_on(3).await.unwrap();
        open.tree
    })
}

/// What the file may say of each hold, in the order in which it was asked for: what was promised
/// last, and everything that was asked for since.
#[derive(Default)]
struct Model {
    asked: u64,
    may_be: BTreeMap<String, Vec<(u64, Option<u32>)>>,
}

impl Model {
    fn begin(&mut self, name: &str, state: Option<u32>) -> u64 {
        self.asked += 1;
        let may_be = self.may_be.entry(name.to_owned());
        may_be.or_insert_with(|| vec![(0, None)]).push((self.asked, state));
        self.asked
    }

    /// Changes are made in the order in which they were asked for.
    fn settle(&mut self, name: &str, number: u64) {
        if let Some(may_be) = self.may_be.get_mut(name) {
            may_be.retain(|(asked, _)| *asked >= number);
        }
    }

    /// What is listed has been promised from now on.
    fn look(&mut self, listed: &BTreeMap<String, u32>, label: &str) {
        for (name, may_be) in &mut self.may_be {
            let found = listed.get(name).copied();
            assert!(
                may_be.iter().any(|(_, state)| *state == found),
                "{label}: {name} is {found:?}, and may be {may_be:?}"
            );
            *may_be = vec![(0, found)];
        }
        for name in listed.keys() {
            assert!(self.may_be.contains_key(name), "{label}: nobody asked for {name}");
        }
    }
}

type SharedModel = Rc<RefCell<Model>>;

/// Asks for a change, and stops waiting after so many polls.
async fn ask(open: Rc<Open>, model: SharedModel, name: String, state: Option<u32>, polls: u64) {
    let number = model.borrow_mut().begin(&name, state);
    let asking = async {
        match state {
            Some(generation) => open.instance.hold_log_durably(&name, generation).await,
            None => open.instance.release_durably(&name).await,
        }
    };
    match give_up_after(polls, asking).await {
        Some(Ok(())) => model.borrow_mut().settle(&name, number),
        // A generation that a power cut has brought back without those behind it cannot be held.
        None | Some(Err(EngineError::Disk(_) | EngineError::LogDeleted { .. })) => {}
        Some(Err(error)) => panic!("{name}: {error}"),
    }
}

/// What clients and sessions do in one life.
async fn clients(open: Rc<Open>, mut random: Random, model: SharedModel) {
    for _ in 0..4 + random.below(10) {
        let (name, at_once) = (client(random.below(5)), random.chance(0.3));
        let oldest = open.instance.store().log.oldest_generation();
        let generation = oldest + random.below(u64::from(open.tip() - oldest + 1)) as u32;
        let state = [Some(generation), Some(generation), None][random.below(3) as usize];
        let polls = if random.chance(0.3) { 1 + random.below(8) } else { u64::MAX };
        let asking = ask(open.clone(), model.clone(), name, state, polls);
        // Some while others ask, and while log is purged.
        if at_once {
            drop(open.handle.spawn(asking));
        } else {
            asking.await;
        }
        if random.chance(0.4) && open.move_on(1 + random.below(2) as u32).await.is_err() {
            return;
        }
    }
}

/// How a life ends.
fn end_of(random: &mut Random, disk: &MemoryDisk) -> bool {
    disk.clear_faults();
    let is_cut = random.chance(0.6);
    if is_cut {
        let effects = [Effect::CutPowerWhenSubmitted, Effect::CutPowerWhenDone];
        let rule = FaultRule::new(effects[random.below(2) as usize]);
        disk.inject(match random.below(4) {
            0 => rule.with_kind(OperationKind::Delete).nth(1 + random.below(4)),
            _ => rule.with_path_part(".holds").nth(1 + random.below(30)),
        });
    }
    is_cut
}

/// Why it matters: log that a copy still needs is deleted, and the copy has to be made anew; or is
/// kept for ever, and the disk fills.
#[test]
fn holds_of_clients_outlive_kills_and_power_cuts_with_the_log_that_they_name() {
    let (mut cuts, mut kills, mut held) = (0, 0, 0);
    for seed in 0..40 {
        let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 2_000_000 };
        let memory =
            MemoryOptions { latency: LatencyPlan::of(latency), ..MemoryOptions::default() };
        let mut random = Random::from_seed(seed).child("holds");
        let mut disk = disk_with_databases(seed, &setup(), memory);
        let (tree, model) = (first_life(&disk), SharedModel::default());
        for number in 0..6 {
            let label = format!("seed {seed} life {number}");
            let is_cut = end_of(&mut random, &disk);
            let ends_after_ns = 1 + random.below(20_000) * NANOS_PER_MILLISECOND;
            let (deeds, asked) = (random.child(&label), model.clone());
            let (dying, power) = (disk.clone(), disk.clone());
            let _ = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
                let life = async {
                    let open = Open::new(files, handle.clone(), Some(tree)).await;
                    asked.borrow_mut().look(&open.listed(), &label);
                    open.check_kept(&label).await;
                    let working = handle.spawn(clients(open, deeds, asked));
                    either(working, handle.sleep(ends_after_ns)).await;
                };
                either(life, async move { power.power_lost().await }).await;
                dying.process_died();
            });
            held += model.borrow().may_be.len();
            if is_cut && disk.is_off() {
                cuts += 1;
                disk = disk.crash_image(Loss::Drawn, &mut random);
            } else {
                kills += 1;
                let settled = run_on(&disk.clock().clone(), &disk, |_, handle| async move {
                    handle.sleep(NANOS_PER_SECOND).await;
                });
                settled.unwrap();
            }
        }
        disk.clear_faults();
        live(&disk, move |files, handle| async move {
            let label = format!("seed {seed} at the end");
            let open = Open::new(files, handle, Some(tree)).await;
            model.borrow_mut().look(&open.listed(), &label);
            open.check_kept(&label).await;
            for name in open.listed().keys() {
                open.instance.release_durably(name).await.unwrap();
            }
            open.move_on(4).await.unwrap();
            let checkpoint = open.instance.store().checkpoint.get().generation;
            let oldest = *open.kept().await.first().unwrap();
            assert_eq!(oldest, checkpoint, "{label}: what nobody holds is purged");
            open.instance.clone().close().await.unwrap();
        });
    }
    println!("{cuts} cuts, {kills} kills, {held} holds");
    assert!(cuts > 60 && kills > 60, "{cuts} cuts, {kills} kills");
}

/// Why it matters: whoever raises a hold may lose power before that is written, and then needs what
/// he held before.
#[test]
fn a_hold_that_is_raised_keeps_the_old_log_until_the_file_says_so() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = first_life(&disk);
    let (slowing, power) = (disk.clone(), disk.clone());
    let _ = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        let generation = open.tip();
        open.instance.hold_log_durably("copy", generation).await.unwrap();
        open.move_on(4).await.unwrap();
        let slow = FaultRule::new(Effect::Delay(60 * NANOS_PER_SECOND)).with_path_part(".holds");
        slowing.inject(slow.with_kind(OperationKind::Write));
        let (raising, tip) = (open.instance.clone(), open.tip());
        drop(open.handle.spawn(async move { raising.hold_log_durably("copy", tip).await }));
        open.move_on(4).await.unwrap();
        open.check_kept("while the hold is raised").await;
        power.power_cut();
    });
    let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
    live(&image, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        assert_eq!(open.listed().len(), 1);
        open.check_kept("after the cut").await;
    });
}

/// Why it matters: the log is purged between the question whether it is there and the hold.
#[test]
fn a_hold_counts_from_the_moment_it_is_asked_for() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = first_life(&disk);
    let slowing = disk.clone();
    live(&disk, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        open.instance.hold_log("other", open.tip());
        open.move_on(5).await.unwrap();
        let slow = FaultRule::new(Effect::Delay(20 * NANOS_PER_SECOND)).with_path_part(".holds");
        slowing.inject(slow.with_kind(OperationKind::Create));
        let slow = FaultRule::new(Effect::Delay(20 * NANOS_PER_SECOND)).with_path_part(".holds");
        slowing.inject(slow.with_kind(OperationKind::Write));
        let generation = open.instance.store().log.oldest_generation();
        let (holding, name) = (open.instance.clone(), "copy");
        let held =
            open.handle.spawn(async move { holding.hold_log_durably(name, generation).await });
        open.handle.sleep(NANOS_PER_MILLISECOND).await;
        open.instance.release_log("other");
        open.move_on(2).await.unwrap();
        held.await.unwrap();
        open.check_kept("after the purge").await;
        let gone = open.instance.hold_log_durably("late", generation - 1).await;
        assert!(
            matches!(gone, Err(EngineError::LogDeleted { .. })),
            "what is gone cannot be held: {gone:?}"
        );
        assert_eq!(open.listed().keys().collect::<Vec<_>>(), [name]);
        open.instance.clone().close().await.unwrap();
    });
}

/// Why it matters: the process that found a release had only been written to a volatile cache
/// purges log that the next one is told is held.
#[test]
fn what_a_killed_process_had_written_of_its_holds_is_made_durable_before_it_counts() {
    let mut released = 0;
    for after_us in (0..400).step_by(20) {
        let memory = MemoryOptions {
            latency: LatencyPlan::of(Latency::Exponential { fixed_ns: 100_000, mean_ns: 1 }),
            ..MemoryOptions::default()
        };
        let disk = disk_with_databases(1, &setup(), memory);
        let tree = first_life(&disk);
        live(&disk, move |files, handle| async move {
            let open = Open::new(files, handle.clone(), Some(tree)).await;
            open.instance.hold_log_durably("copy", open.tip()).await.unwrap();
            open.move_on(2).await.unwrap();
            let instance = open.instance.clone();
            drop(handle.spawn(async move { instance.release_durably("copy").await }));
            handle.sleep(after_us * 1_000).await;
        });
        // Killed; the next process finds the hold, or finds it released, and purges.
        let power = disk.clone();
        let was_released = Rc::new(RefCell::new(false));
        let found = was_released.clone();
        let _ = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
            let open = Open::new(files, handle, Some(tree)).await;
            *found.borrow_mut() = open.listed().is_empty();
            open.move_on(3).await.unwrap();
            power.power_cut();
        });
        released += u32::from(*was_released.borrow());
        let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
        live(&image, move |files, handle| async move {
            let open = Open::new(files, handle, Some(tree)).await;
            let label = format!("killed after {after_us} us");
            assert_eq!(open.listed().is_empty(), *was_released.borrow(), "{label}");
            open.check_kept(&label).await;
        });
    }
    assert!(released > 2, "some are killed when the release is half written");
}

/// Why it matters: one damaged block must not cost a hold, whichever it is and however the last
/// change ended.
#[test]
fn either_block_alone_tells_the_holds_that_were_listed() {
    for damaged in 0..2 {
        let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
        let tree = first_life(&disk);
        let failing = disk.clone();
        live(&disk, move |files, handle| async move {
            let open = Open::new(files, handle, Some(tree)).await;
            open.instance.hold_log_durably("first", open.tip()).await.unwrap();
            let second_block =
                FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_path_part(".holds");
            failing.inject(second_block.with_kind(OperationKind::Write).nth(2));
            let failed = open.instance.hold_log_durably("second", open.tip()).await;
            assert!(failed.is_err(), "the second block cannot be written");
        });
        disk.clear_faults();
        live(&disk, move |files, handle| async move {
            let open = Open::new(files, handle, Some(tree)).await;
            assert_eq!(open.listed().len(), 2, "the first block says so");
        });
        let path = LogNames::new(LOG, "E00").holds();
        disk.corrupt(path, damaged * 4096 + 50, |bytes| bytes[..8].fill(0xAA));
        for life in 0..2 {
            live(&disk, move |files, handle| async move {
                let open = Open::new(files, handle, Some(tree)).await;
                assert_eq!(
                    open.listed().len(),
                    2,
                    "block {damaged} damaged, life {life}: what was listed stays"
                );
            });
        }
        let path = LogNames::new(LOG, "E00").holds();
        disk.corrupt(path, (1 - damaged) * 4096 + 50, |bytes| bytes[..8].fill(0xAA));
        live(&disk, move |files, handle| async move {
            let open = Open::new(files, handle, Some(tree)).await;
            assert_eq!(open.listed().len(), 2, "the block that was damaged is whole again");
        });
    }
}

/// Why it matters: where nobody knows any more what is held, deleting log is the one thing that
/// cannot be made good.
#[test]
fn holds_that_cannot_be_read_hold_everything_until_somebody_releases_them() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = first_life(&disk);
    live(&disk, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        open.instance.hold_log_durably("copy", open.tip()).await.unwrap();
    });
    for block in 0..2 {
        let path = LogNames::new(LOG, "E00").holds();
        disk.corrupt(path, block * 4096 + 50, |bytes| bytes[..8].fill(0xAA));
    }
    live(&disk, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        let before = open.kept().await;
        open.move_on(3).await.unwrap();
        assert!(before.is_subset(&open.kept().await), "nothing is purged");
        assert_eq!(open.listed().keys().collect::<Vec<_>>(), [LOST_HOLDS]);
        open.instance.release_durably(LOST_HOLDS).await.unwrap();
        open.move_on(3).await.unwrap();
        assert!(!before.is_subset(&open.kept().await), "released, it is purged");
        open.instance.clone().close().await.unwrap();
    });
}

/// Why it matters: a client that makes up names must not fill the file so that nobody else can hold
/// or release.
#[test]
fn holds_that_do_not_fit_are_refused_and_the_others_stay() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    live(&disk, move |files, handle| async move {
        let open = Open::new(files, handle, None).await;
        let mut fit = 0;
        let refused = loop {
            match open.instance.hold_log_durably(&client(fit), open.tip()).await {
                Ok(()) => fit += 1,
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, EngineError::BadOption { name: "hold", .. }), "{refused}");
        assert_eq!(open.listed().len() as u64, fit);
        open.instance.release_durably(&client(0)).await.unwrap();
        open.instance.hold_log_durably("short", open.tip()).await.unwrap();
        open.instance.clone().close().await.unwrap();
        let late = open.instance.hold_log_durably("late", open.tip()).await;
        assert!(matches!(late, Err(EngineError::Closing)), "{late:?}");
    });
}

/// Why it matters: a power cut brings back some of the files that were deleted; who holds the first
/// of them has a log with a hole.
#[test]
fn a_generation_that_came_back_without_the_next_cannot_be_held() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = first_life(&disk);
    let returning = disk.clone();
    live(&disk, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        let oldest = *open.kept().await.first().unwrap();
        open.move_on(1).await.unwrap();
        let names = LogNames::new(LOG, "E00");
        let bytes = returning.bytes(names.closed(oldest)).unwrap();
        open.move_on(4).await.unwrap();
        assert!(*open.kept().await.first().unwrap() > oldest + 1);
        open.instance.clone().close().await.unwrap();
        returning.load(names.closed(oldest), &bytes);
        // One that keeps all log does not purge it when it opens.
        let keeping = InstanceOptions { circular: false, ..options(&setup()) };
        let instance = open_with(&open.files, &open.handle, keeping).await;
        assert!(open.kept().await.contains(&oldest), "it is there");
        let held = instance.hold_log_durably("copy", oldest).await;
        assert!(matches!(held, Err(EngineError::LogDeleted { .. })), "{held:?}");
        instance.close().await.unwrap();
        let open = Open::new(open.files.clone(), open.handle.clone(), Some(tree)).await;
        open.move_on(3).await.unwrap();
        assert!(!open.kept().await.contains(&oldest), "it is purged again");
        open.instance.clone().close().await.unwrap();
    });
}

fn is_told(result: Result<(), EngineError>, words: &[&str]) {
    let error = result.expect_err("it is refused");
    let told = error.to_string();
    for word in words {
        assert!(told.contains(word), "{told:?} does not say {word:?}");
    }
    assert!(!error.is_corruption(), "{told}");
}

/// Why: a client that asks for log too late was told that the databases are damaged; and an
/// instance that was closed spoke of log, too.
#[test]
fn log_that_was_deleted_is_told_with_the_oldest_that_there_is() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = first_life(&disk);
    live(&disk, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        open.move_on(5).await.unwrap();
        let oldest = open.instance.store().log.oldest_generation();
        assert!(oldest > 1, "log was to be deleted");
        for generation in [0, 1, oldest - 1] {
            let words = [&format!("generation {generation} "), &format!("oldest is {oldest}")[..]];
            is_told(open.instance.hold_log_durably("late", generation).await, &words);
        }
        open.instance.hold_log_durably("in time", oldest).await.unwrap();
        assert_eq!(open.listed(), BTreeMap::from([("in time".to_owned(), oldest)]));
        open.instance.clone().close().await.unwrap();
        for generation in [0, oldest, u32::MAX] {
            let late = open.instance.hold_log_durably("late", generation).await;
            assert!(matches!(late, Err(EngineError::Closing)), "{late:?}");
        }
    });
}

/// Why: a hold without a name, or of log that was never written, keeps log for ever, and no client
/// knows it for its own.
#[test]
fn names_and_numbers_that_make_no_hold_are_refused() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = first_life(&disk);
    live(&disk, move |files, handle| async move {
        let open = Open::new(files, handle, Some(tree)).await;
        let tip = open.tip();
        let long = "x".repeat(5_000);
        for name in ["", "two\nlines", "\u{7}", LOST_HOLDS, &long] {
            is_told(open.instance.hold_log_durably(name, tip).await, &["hold"]);
        }
        for generation in [tip + 2, 4_000_000, u32::MAX] {
            let words = [&generation.to_string()[..], &(tip + 1).to_string()];
            is_told(open.instance.hold_log_durably("far", generation).await, &words);
        }
        assert_eq!(open.listed(), BTreeMap::new());
        open.instance.hold_log_durably("next \u{f6}", tip + 1).await.unwrap();
        open.move_on(2).await.unwrap();
        open.check_kept("the next to come").await;
        open.instance.clone().close().await.unwrap();
    });
}
