//! Which generations of the log are kept, and which are deleted: for holds, for backups and copies,
//! for a held checkpoint.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::jobs::read_back::{ReadBackProgress, read_back};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, Files, Handle, Latency, LatencyPlan, Loss, MemoryOptions, NANOS_PER_SECOND, Purpose,
    Random,
};

use crate::support::*;

/// An instance with one tree, and what moves it on.
struct World {
    instance: Rc<Instance>,
    files: Files,
    handle: Handle,
    tree: Tree,
}

impl World {
    /// Work in so many more generations, slowly enough that pages are written and checkpoints
    /// taken.
    async fn move_on(&self, generations: u32) {
        let log = &self.instance.store().log;
        for _ in 0..generations {
            let transaction = self.instance.begin();
            let key = u64::from(log.durable().generation).to_be_bytes();
            transaction.insert(self.tree, &key, &[7; 100]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            log.make_durable(log.begin_generation().end).await.unwrap();
            self.handle.sleep(2 * NANOS_PER_SECOND).await;
        }
    }

    /// The generations on disk.
    async fn kept(&self) -> BTreeSet<u32> {
        let reader =
            LogReader::new(self.files.clone(), LogNames::new(LOG, "E00"), Default::default());
        let files = reader.generations().await.unwrap();
        files.iter().map(|file| file.generation).collect()
    }

    async fn oldest_kept(&self) -> u32 {
        *self.kept().await.first().expect("there is always a log")
    }

    fn checkpoint(&self) -> u32 {
        self.instance.store().checkpoint.get().generation
    }

    fn tip(&self) -> u32 {
        self.instance.store().log.tip().generation
    }
}

fn with_world<F: Future<Output = ()> + 'static>(
    change: impl FnOnce(&mut InstanceOptions) + 'static,
    latency: LatencyPlan,
    story: impl FnOnce(Rc<World>) -> F + 'static,
) {
    let setup = Setup { checkpoint_generations: 1, ..Setup::default() };
    let mut wanted = options(&setup);
    change(&mut wanted);
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryOptions { latency, ..MemoryOptions::default() };
    let disk = new_disk(&clock, 6, memory);
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let mut random = Random::from_seed(6);
        let opened = Instance::open(files.clone(), handle.clone(), wanted, &mut random).await;
        let (instance, _) = opened.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let world = Rc::new(World { instance: instance.clone(), files, handle, tree });
        story(world).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

fn usual() -> LatencyPlan {
    LatencyPlan::of(Latency::Constant(100_000))
}

/// A copy that has read up to a generation needs that one and no older one: one too few and it can
/// never go on, one too many for every holder, and a full log disk comes sooner than anybody
/// reckoned with.
#[test]
fn a_hold_keeps_its_generation_and_no_older_one() {
    with_world(
        |_| {},
        usual(),
        |world| async move {
            world.instance.hold_log("slow", 3);
            world.instance.hold_log("slower", 2);
            world.move_on(9).await;
            assert!(world.checkpoint() > 4, "the checkpoint went on");
            assert_eq!(world.oldest_kept().await, 2, "the smallest hold counts");
            world.instance.release_log("slower");
            world.move_on(1).await;
            assert_eq!(world.oldest_kept().await, 3, "one hold is left");
            world.instance.hold_log("slow", 5);
            world.move_on(1).await;
            assert_eq!(world.oldest_kept().await, 5, "a hold moves on");
            world.instance.release_log("slow");
            world.move_on(1).await;
            assert_eq!(world.oldest_kept().await, world.checkpoint(), "nobody holds anything");
        },
    );
}

/// A hold only adds to what is kept: what redo needs for a transaction that is still open stays,
/// whoever holds what.
#[test]
fn a_hold_ahead_of_the_checkpoint_keeps_what_redo_needs() {
    with_world(
        |_| {},
        usual(),
        |world| async move {
            world.instance.hold_log("far ahead", 1_000);
            world.move_on(4).await;
            let open = world.instance.begin();
            open.insert(world.tree, b"open", b"").await.unwrap();
            let needed = world.tip();
            world.move_on(4).await;
            assert_eq!(world.checkpoint(), needed, "the checkpoint waits for the open transaction");
            assert_eq!(world.oldest_kept().await, needed);
            open.rollback().await.unwrap();
        },
    );
}

/// Whoever rolls a backup forward needs every generation since.
#[test]
fn without_circular_logging_every_generation_is_kept() {
    with_world(
        |options| options.circular = false,
        usual(),
        |world| async move {
            world.move_on(6).await;
            assert!(world.checkpoint() > 2, "the checkpoint went on");
            assert_eq!(world.kept().await, (1..=world.tip()).collect());
        },
    );
}

/// A recovery that is to be measured finds all it was promised.
#[test]
fn a_held_checkpoint_leaves_everything_to_be_redone() {
    with_world(
        |options| options.hold_checkpoint = true,
        usual(),
        |world| async move {
            world.move_on(6).await;
            assert_eq!(world.checkpoint(), 1);
            assert_eq!(world.kept().await, (1..=world.tip()).collect());
        },
    );
}

/// The generations that a backup names are there until it is dropped, however far the checkpoint
/// goes meanwhile, and its log ends behind everything that was committed before it was finished,
/// durably or not.
#[test]
fn a_backup_keeps_the_log_it_names_until_it_is_dropped() {
    with_world(
        |_| {},
        usual(),
        |world| async move {
            world.move_on(3).await;
            let started_at = world.checkpoint();
            let mut backup = Backup::start(&world.instance, 1, 64 * 4096).unwrap();
            let mut pages = 0;
            while let Some(chunk) = backup.next_chunk().await.unwrap() {
                pages += chunk.bytes.len() / 4096;
            }
            assert!(pages >= 64, "{pages} pages were copied");
            world.move_on(6).await;
            let transaction = world.instance.begin();
            transaction.insert(world.tree, b"lazily", b"").await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
            let tip = world.instance.store().log.tip();
            let report = backup.finish().await.unwrap();
            assert!(world.instance.store().log.durable() >= tip, "its log ends too early");
            assert_eq!(report.generation_first, started_at);
            assert_eq!(report.generation_last, world.tip());
            assert!(world.checkpoint() > started_at, "the checkpoint went on");
            assert_eq!(world.oldest_kept().await, started_at);
            assert_eq!(report.pages as usize, pages);
            assert_eq!(report.pages, world.instance.database(1).unwrap().pages_in_use());
            drop(backup);
            world.move_on(1).await;
            assert_eq!(world.oldest_kept().await, world.checkpoint());
        },
    );
}

/// Reading a generation back takes longer than writing one: the copy falls behind, and what it has
/// not read yet waits for it.
#[test]
fn a_copy_that_lags_finds_every_generation_it_has_not_read() {
    let slow =
        usual().with_purpose(Purpose::LogReplication, Latency::Constant(5 * NANOS_PER_SECOND));
    with_world(
        |_| {},
        slow,
        |world| async move {
            let progress: Rc<ReadBackProgress> = Rc::default();
            let job = world.handle.spawn(read_back(world.instance.clone(), 2, progress.clone()));
            world.move_on(8).await;
            let lag = u64::from(world.tip()) - 1 - progress.generations.get();
            assert!(lag > 3, "the copy never lagged");
            assert!(world.checkpoint() > 4, "the checkpoint went on");
            let catch_up = async || {
                let closed = u64::from(world.tip()) - 1;
                while progress.generations.get() < closed {
                    assert!(world.instance.store().log.check().is_ok());
                    world.handle.sleep(NANOS_PER_SECOND).await;
                }
            };
            catch_up().await;
            // Now it waits for each generation to be closed, and a checkpoint is quicker than it
            // is.
            for _ in 0..3 {
                let log = &world.instance.store().log;
                log.make_durable(log.begin_generation().end).await.unwrap();
                world.instance.checkpoint().await.unwrap();
                catch_up().await;
            }
            world.move_on(1).await;
            catch_up().await;
            world.move_on(1).await;
            assert!(world.oldest_kept().await + 3 > world.tip(), "what was read may go");
            progress.stop.set(true);
            job.await.unwrap();
            world.move_on(2).await;
            assert_eq!(
                world.oldest_kept().await,
                world.checkpoint(),
                "a copy that ended holds nothing"
            );
        },
    );
}

/// "Clean" means that nothing has to be redone, also when the power fails right after it was said.
#[test]
fn a_clean_stop_survives_a_power_cut_right_after_it() {
    let setup = Setup { cache_frames: 400, page_images: false, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 3, MemoryOptions::default());
    let (of_first, off) = (setup.clone(), disk.clone());
    let (tree, rows) = run_on(&clock, &disk, move |files, handle| async move {
        let setup = of_first;
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        for number in 0..300u64 {
            let transaction = instance.begin();
            let key = number.to_be_bytes();
            transaction.insert(tree, &key, &[7; 500]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        let rows = dump(&instance, tree).await.unwrap();
        instance.close().await.unwrap();
        off.power_cut();
        (tree, rows)
    })
    .unwrap();
    let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(4));
    run_on(&image.clock().clone(), &image, move |files, handle| async move {
        let (instance, report) = open(&files, &handle, &setup, 5).await.unwrap();
        assert!(!report.recovered, "it was shut down cleanly");
        assert_eq!(dump(&instance, tree).await.unwrap(), rows);
        instance.close().await.unwrap();
    })
    .unwrap();
}
