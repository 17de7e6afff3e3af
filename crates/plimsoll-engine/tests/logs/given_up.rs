//! Histories that were given up: each can be read whole, from the generations that it shares with
//! the stream through those that were set aside.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::instance::{Instance, Recovery};
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::history::HistoryReader;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::log::tap::{Subscription, Told};
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Context, Files, Handle, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions,
    NANOS_PER_SECOND, Random, either,
};

use crate::life::*;
use crate::support::*;

type Records = Vec<(Lsn, LogRecord)>;

fn setup(seed: u64) -> Setup {
    Setup {
        framing: [Framing::Sectors512, Framing::Segments4096][seed as usize % 2],
        circular: false,
        ..Setup::default()
    }
}

fn reader(files: &Files) -> LogReader {
    LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Context::default())
}

/// Some of the reads are dropped half-way.
async fn read_all(mut history: HistoryReader) -> Records {
    let (mut records, mut polls) = (Records::new(), 0);
    loop {
        polls = (polls + 3) % 17;
        match give_up_after(1 + polls, history.next()).await {
            None => {}
            Some(generation) => match generation.unwrap() {
                Some(generation) => records.extend(generation.records(0).map(Result::unwrap)),
                None => return records,
            },
        }
    }
}

/// The same, as far as there is no gap.
async fn read_before_a_gap(mut history: HistoryReader) -> Records {
    let mut records = Records::new();
    while let Ok(Some(generation)) = history.next().await {
        records.extend(generation.records(0).map(Result::unwrap));
    }
    records
}

/// The databases as they were early: with the whole log they can be opened at any generation.
struct Early(Vec<(PathBuf, Vec<u8>)>);

impl Early {
    fn of(disk: &MemoryDisk) -> Early {
        let mut files: Vec<_> = disk.snapshot().into_iter().collect();
        files.retain(|(path, _)| path.starts_with("data"));
        Early(files)
    }

    fn put_back(&self, disk: &MemoryDisk) {
        for (path, bytes) in &self.0 {
            disk.load(path, bytes);
        }
    }
}

/// Keeps what becomes durable from now on.
fn keep(instance: &Rc<Instance>, handle: &Handle) -> Rc<RefCell<Records>> {
    let told: Rc<RefCell<Records>> = Rc::default();
    let keeping = told.clone();
    let mut subscription = Subscription::begin(&instance.store().log, 1 << 30);
    drop(handle.spawn(async move {
        while let Ok(Some(Told::Run(run))) = subscription.next().await {
            keeping.borrow_mut().extend(run.records().unwrap());
        }
    }));
    told
}

async fn work(
    instance: &Rc<Instance>,
    handle: &Handle,
    tree: Tree,
    random: &mut Random,
    life: u64,
) {
    let log = &instance.store().log;
    for generation in 0..1 + random.below(4) {
        for number in 0..random.below(20) {
            let transaction = instance.begin();
            let key = format!("{life}/{generation}/{number}").into_bytes();
            transaction.insert(tree, &key, &[7; 300]).await.expect("a key of its own");
            transaction.commit(Commit::Durable).await.unwrap();
        }
        log.make_durable(log.begin_generation().end).await.unwrap();
        handle.sleep(NANOS_PER_SECOND / 10).await;
    }
}

/// One life: opened at a generation drawn from those there are, then some work. What it has seen:
/// how much of the log it went on from, and what became durable.
struct Life {
    /// The history it went on from, and what it added.
    records: Records,
    parted_at: Lsn,
}

async fn lead(
    files: Files,
    handle: Handle,
    (setup, tree): (Setup, Tree),
    mut random: Random,
    number: u64,
    seen: Rc<RefCell<Option<Life>>>,
) {
    let _ = files.delete(&LogNames::new(LOG, "E00").checkpoint(), Context::default()).await;
    let Ok(mut recovery) = Recovery::begin(files.clone(), handle.clone(), options(&setup)).await
    else {
        return;
    };
    let first = recovery.next_generation();
    let there = reader(&files).generations().await.unwrap();
    let last = there.last().unwrap().generation;
    let upto = if random.chance(0.2) {
        last
    } else {
        last - random.below(u64::from(last - first + 1)) as u32
    };
    // A power cut while log was set aside may leave a gap: what lies behind it was given up.
    while recovery.next_generation() <= upto && recovery.feed_next().await.unwrap() {}
    let parted_at = recovery.position();
    let mut records = read_before_a_gap(reader(&files).read_history(1).await.unwrap()).await;
    records.retain(|(at, _)| *at < parted_at);
    recovery.give_up_commits();
    let (instance, _) = recovery.activate(&mut random).await.unwrap();
    // What opening has logged.
    make_durable(&instance).await;
    let durable = instance.store().log.durable();
    let told = keep(&instance, &handle);
    let opened = reader(&files).read_history(parted_at.generation + 1).await.unwrap();
    records.extend(read_all(opened).await.into_iter().filter(|(at, _)| *at < durable));
    *seen.borrow_mut() = Some(Life { records, parted_at });
    work(&instance, &handle, tree, &mut random, number).await;
    make_durable(&instance).await;
    handle.sleep(NANOS_PER_SECOND / 10).await;
    let told = told.take();
    if let Some(life) = seen.borrow_mut().as_mut() {
        life.records.extend(told);
    }
    if random.chance(0.5) {
        instance.abandon().await.unwrap();
    }
}

/// Why it matters: log that was given up is the only witness of what was lost, and a copy that
/// followed it learns from it which pages to fetch.
#[test]
fn every_history_that_was_given_up_can_be_read_to_its_end() {
    let (mut given_up_in_all, mut cuts) = (0, 0);
    for seed in 0..16 {
        let setup = setup(seed);
        let mut random = Random::from_seed(seed).child("given up");
        let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 200_000 };
        let memory =
            MemoryOptions { latency: LatencyPlan::of(latency), ..MemoryOptions::default() };
        let mut disk = disk_with_databases(seed, &setup, memory);
        let s = setup.clone();
        let tree = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            make_durable(&instance).await;
            instance.checkpoint().await.unwrap();
            tree
        });
        let early = Early::of(&disk);
        let (mut lives, mut was_cut): (Vec<Life>, bool) = (Vec::new(), false);
        for number in 0..7 {
            early.put_back(&disk);
            let seen: Rc<RefCell<Option<Life>>> = Rc::default();
            let is_cut = random.chance(0.3);
            if is_cut {
                disk.power_cut_at_event(disk.events() + 100 + random.below(200));
            }
            let leading = (setup.clone(), random.child(&format!("life {number}")), seen.clone());
            let (dying, power) = (disk.clone(), disk.clone());
            let _ = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
                let (setup, random, seen) = leading;
                let life = lead(files, handle, (setup, tree), random, number, seen);
                either(life, async move { power.power_lost().await }).await;
                dying.process_died();
            });
            lives.extend(seen.take());
            if disk.is_off() {
                (cuts, was_cut) = (cuts + 1, true);
                disk = disk.crash_image(Loss::Drawn, &mut random);
            } else {
                disk.power_cut_at_event(u64::MAX);
                let settled = run_on(&disk.clock().clone(), &disk, |_, handle| async move {
                    handle.sleep(NANOS_PER_SECOND).await;
                });
                settled.unwrap();
            }
        }
        given_up_in_all += live(&disk, move |files, _| async move {
            let reader = reader(&files);
            let mut histories = vec![(None, read_all(reader.read_history(1).await.unwrap()).await)];
            let given_up = reader.given_up().await.unwrap();
            for history in &given_up {
                let records = read_all(reader.read_given_up(history)).await;
                histories.push((Some(history.parts_at), records));
            }
            for (number, life) in lives.iter().enumerate() {
                let label = format!("seed {seed} life {number}");
                let has_all = |records: &Records| records.starts_with(&life.records);
                let found: Vec<_> =
                    histories.iter().filter(|(_, records)| has_all(records)).collect();
                assert!(
                    !found.is_empty(),
                    "{label}: {} records up to {:?} are in none of {:?}",
                    life.records.len(),
                    life.records.last().map(|(at, _)| at),
                    histories.iter().map(|(at, records)| (at, records.len())).collect::<Vec<_>>()
                );
                let goes_on = found.iter().any(|(parts_at, _)| parts_at.is_none());
                let later = lives[number + 1..].iter().map(|later| later.parted_at).min();
                if !was_cut && !goes_on {
                    let parted = found.iter().map(|(parts_at, _)| *parts_at);
                    assert!(
                        parted.clone().any(|at| at == later),
                        "{label}: {later:?}, found {found_at:?}",
                        found_at = parted.collect::<Vec<_>>()
                    );
                }
            }
            given_up.len()
        });
    }
    println!("{given_up_in_all} histories given up, {cuts} cuts");
    assert!(given_up_in_all > 30 && cuts > 10, "{given_up_in_all}, {cuts} cuts");
}

/// Why it matters: an old active that is given the new history fetches the generation in which both
/// part anew, and still has its own of that number.
#[test]
fn what_a_twin_holds_behind_the_fork_is_of_its_own_history() {
    let setup = setup(0);
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let s = setup.clone();
    let (forked, tree) = {
        let watched = disk.clone();
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            fill(&instance, tree, 0).await;
            // A copy that takes over has the log up to here.
            watched.power_cut_at_event(u64::MAX);
            let forked = watched.crash_image(Loss::Everything, &mut Random::from_seed(1));
            fill(&instance, tree, 1).await;
            let log = &instance.store().log;
            log.make_durable(log.begin_generation().end).await.unwrap();
            fill(&instance, tree, 2).await;
            (forked, tree)
        })
    };
    let s = setup.clone();
    live(&forked, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&s)).await;
        fill(&instance, tree, 3).await;
        instance.close().await.unwrap();
    });
    let names = LogNames::new(LOG, "E00");
    // The old active sets its own log aside, from the generation in which both part, and takes that
    // of the other.
    let (own_first, own_second) =
        (disk.bytes(names.closed(1)).unwrap(), disk.bytes(names.current()).unwrap());
    disk.load(names.set_aside(1, 1), &own_first);
    disk.load(names.set_aside(2, 1), &own_second);
    disk.load(names.closed(1), &forked.bytes(names.closed(1)).unwrap());
    disk.load(names.current(), &forked.bytes(names.current()).unwrap());
    for twin_is_whole in [false, true] {
        if twin_is_whole {
            // Not fetched anew: the stream's own file goes further than its history.
            disk.load(names.closed(1), &own_first);
        }
        live(&disk, move |files, _| async move {
            let reader = reader(&files);
            let given_up = reader.given_up().await.unwrap();
            assert_eq!(given_up.len(), 1, "{given_up:?}");
            let of_stream = read_all(reader.read_history(1).await.unwrap()).await;
            let own = read_all(reader.read_given_up(&given_up[0])).await;
            let common = of_stream.iter().zip(&own).take_while(|(one, other)| one == other).count();
            let keys = |records: &[(Lsn, LogRecord)]| -> Vec<u8> {
                let mut rounds: Vec<u8> = records
                    .iter()
                    .filter_map(|(_, record)| match record {
                        LogRecord::Row(row) if row.object == 50 => row.key.first().copied(),
                        _ => None,
                    })
                    .collect();
                rounds.dedup();
                rounds
            };
            assert_eq!(keys(&of_stream), [b'0', b'3'], "whole {twin_is_whole}");
            assert_eq!(keys(&own), [b'0', b'1', b'2'], "whole {twin_is_whole}");
            let parts_at = given_up[0].parts_at;
            assert!(own[common - 1].0 < parts_at && parts_at <= own[common].0, "{parts_at}");
        });
    }
}

async fn fill(instance: &Rc<Instance>, tree: Tree, round: u32) {
    for number in 0..5 {
        let transaction = instance.begin();
        let key = format!("{round}/{number}").into_bytes();
        transaction.insert(tree, &key, &[7; 300]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
    }
}
