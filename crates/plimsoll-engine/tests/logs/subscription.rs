//! Subscriptions to what has become durable.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::log::tail::LogTail;
use plimsoll_engine::log::tap::{LogRun, Subscription, Told};
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Context, DiskErrorKind, Effect, FaultRule, Files, Handle, Latency, LatencyPlan, Loss,
    MemoryDisk, MemoryOptions, OperationKind, Purpose, Random,
};

use crate::life::*;
use crate::support::*;

/// More than any story here logs.
const UNBOUNDED: usize = 1 << 30;

fn memory(seed: u64) -> MemoryOptions {
    let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 300_000 };
    MemoryOptions {
        latency: LatencyPlan::of(latency),
        alignment_bytes: if seed % 4 < 2 { 512 } else { 4096 },
        ..MemoryOptions::default()
    }
}

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

/// Every record in the files.
async fn records_in_files(files: &Files) -> Vec<(Lsn, LogRecord)> {
    let mut records = Vec::new();
    for file in reader(files).generations().await.unwrap() {
        let generation = reader(files).read_generation(&file.path).await.unwrap();
        records.extend(generation.records(0).map(Result::unwrap));
    }
    records
}

/// What a subscriber has been told.
#[derive(Default)]
struct Heard {
    records: Vec<(Lsn, LogRecord)>,
    /// Files made of the framed units, by generation.
    files: BTreeMap<u32, Vec<u8>>,
    upto: Lsn,
}

impl Heard {
    fn hear(&mut self, run: &LogRun, durable: Lsn) {
        assert!(run.upto <= durable, "told of {}, durable is {durable}", run.upto);
        let goes_on = run.from == self.upto || run.from == Lsn::new(self.upto.generation + 1, 0);
        assert!(goes_on, "told of {} after {}", run.from, self.upto);
        self.upto = run.upto;
        self.records.extend(run.records().unwrap());
        let file = self.files.entry(run.header.generation).or_insert_with(|| {
            let mut file = run.header.encode();
            file.resize(1 << 20, 0);
            file
        });
        for (offset, bytes) in run.framed() {
            file[offset as usize..offset as usize + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

/// Sessions that commit rows of many lengths until told to stop, some without waiting.
fn work(instance: &Rc<Instance>, handle: &Handle, tree: Tree, seed: u64) -> Rc<Cell<bool>> {
    let is_over = Rc::new(Cell::new(false));
    for session in 0..4u64 {
        let (instance, over, spawner) = (instance.clone(), is_over.clone(), handle.clone());
        let mut random = Random::from_seed(seed).child(&format!("session {session}"));
        drop(handle.spawn(async move {
            for number in session * 1_000_000.. {
                if over.get() {
                    return;
                }
                let transaction = instance.begin();
                let data = vec![number as u8; 1 + random.below(1_200) as usize];
                if transaction.insert(tree, &row_key(number), &data).await.is_err() {
                    return;
                }
                let how = [Commit::Durable, Commit::Lazy][random.below(2) as usize];
                if transaction.commit(how).await.is_err() {
                    return;
                }
                spawner.sleep(random.below(200_000)).await;
            }
        }));
    }
    is_over
}

/// Hears until the log is closed. Now and then it stops waiting and asks again; `pause_ns` makes it
/// slow.
async fn hear_all(
    mut subscription: Subscription,
    instance: Rc<Instance>,
    handle: Handle,
    mut random: Random,
) -> Heard {
    let mut heard = Heard { upto: subscription.start(), ..Heard::default() };
    loop {
        match give_up_after(1 + random.below(3), subscription.next()).await {
            None => handle.sleep(1 + random.below(100_000)).await,
            Some(told) => match told.unwrap() {
                Some(Told::Run(run)) => heard.hear(&run, instance.store().log.durable()),
                Some(lagged) => panic!("{lagged:?}, and there is room for everything"),
                None => return heard,
            },
        }
    }
}

async fn hear_slowly(
    mut tail: LogTail,
    instance: Rc<Instance>,
    handle: Handle,
    mut random: Random,
) -> (Heard, u64) {
    let mut heard = Heard { upto: tail.position(), ..Heard::default() };
    loop {
        if random.chance(0.2) {
            handle.sleep(random.below(6_000_000)).await;
        }
        match give_up_after(1 + random.below(12), tail.next()).await {
            None => handle.sleep(1 + random.below(100_000)).await,
            Some(told) => match told.unwrap() {
                Some(run) => heard.hear(&run, instance.store().log.durable()),
                None => return (heard, tail.lags()),
            },
        }
    }
}

/// Compares with the log from `start` on.
fn check(heard: &Heard, start: Lsn, logged: &[(Lsn, LogRecord)], what: &str) {
    let expected = logged.iter().filter(|(at, _)| *at >= start);
    let mut told = heard.records.iter();
    for record in expected {
        assert_eq!(told.next(), Some(record), "{what}");
    }
    assert_eq!(told.next(), None, "{what}: more than was logged");
}

fn check_files(heard: &Heard, start: Lsn, disk: &MemoryDisk, what: &str) {
    let (names, newest) = (LogNames::new(LOG, "E00"), heard.upto.generation);
    // The generation in which it began is told in part only.
    for (generation, file) in heard.files.iter().filter(|(number, _)| **number > start.generation) {
        let closed = disk.bytes(names.closed(*generation));
        let there =
            closed.or_else(|| disk.bytes(names.current()).filter(|_| *generation == newest));
        assert!(
            there.as_ref() == Some(file),
            "{what}: the file of generation {generation} differs"
        );
    }
}

/// Why it matters: a copy is made of what its source hands out, and a record left out, twice or
/// changed is a copy of another database.
#[test]
fn subscribers_are_told_every_durable_record_once_and_can_make_the_files_of_it() {
    let mut lags = 0;
    for seed in 0..16 {
        let setup = setup(seed);
        let disk = disk_with_databases(seed, &setup, memory(seed));
        let looked_at = disk.clone();
        lags += live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let log = instance.store().log.clone();
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            let mut random = Random::from_seed(seed).child("subscribers");
            let first = Subscription::begin(&log, UNBOUNDED);
            let first_start = first.start();
            let hearing = |subscription, random| {
                handle.spawn(hear_all(subscription, instance.clone(), handle.clone(), random))
            };
            let heard_by_first = hearing(first, Random::from_seed(seed));
            let is_over = work(&instance, &handle, tree, seed);
            handle.sleep(random.below(20_000_000)).await;
            // Most likely while a flush is under way.
            let second = Subscription::begin(&log, UNBOUNDED);
            let second_start = second.start();
            let heard_by_second = hearing(second, Random::from_seed(seed + 1));
            let tail =
                LogTail::begin(&log, reader(&files), Lsn::new(1, 0), 2_000 << random.below(5));
            let slow = Random::from_seed(seed + 2);
            let heard_by_tail =
                handle.spawn(hear_slowly(tail, instance.clone(), handle.clone(), slow));
            while log.durable().generation < 4 {
                handle.sleep(1_000_000).await;
            }
            is_over.set(true);
            handle.sleep(20_000_000).await;
            instance.close().await.unwrap();
            let (first, second) = (heard_by_first.await, heard_by_second.await);
            let (tail, lags) = heard_by_tail.await;
            let logged = records_in_files(&files).await;
            check(&first, first_start, &logged, &format!("seed {seed}, the first"));
            check(&second, second_start, &logged, &format!("seed {seed}, the second"));
            check(&tail, Lsn::new(1, 0), &logged, &format!("seed {seed}, the slow one"));
            check_files(&first, first_start, &looked_at, &format!("seed {seed}"));
            lags
        });
    }
    assert!(lags > 16, "the slow ones have lagged {lags} times only");
}

/// Why it matters: a copy that knows what its source has lost is ahead of it, and can never follow
/// it again.
#[test]
fn nothing_is_told_that_a_power_cut_takes_back() {
    let mut told_in_all = 0;
    for seed in 0..40 {
        let setup = setup(seed);
        let disk = disk_with_databases(seed, &setup, memory(seed));
        let mut random = Random::from_seed(seed).child("cut");
        let effects = [Effect::CutPowerWhenSubmitted, Effect::CutPowerWhenDone];
        let rule = FaultRule::new(effects[random.below(2) as usize]);
        disk.inject(if random.chance(0.7) {
            rule.with_purpose(Purpose::LogWrite).nth(8 + random.below(60))
        } else {
            rule.with_kind(OperationKind::Rename).nth(2 + random.below(4))
        });
        let heard = Rc::new(RefCell::new(Heard::default()));
        let (hearing, seen) = (heard.clone(), setup.clone());
        run_until_power_lost(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&seen)).await;
            let mut subscription = Subscription::begin(&instance.store().log, UNBOUNDED);
            hearing.borrow_mut().upto = subscription.start();
            let told = hearing.clone();
            drop(handle.spawn(async move {
                while let Ok(Some(Told::Run(run))) = subscription.next().await {
                    told.borrow_mut().hear(&run, run.upto);
                }
            }));
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            work(&instance, &handle, tree, seed);
            handle.sleep(2_000_000_000).await;
        });
        assert!(disk.is_off(), "seed {seed}: no cut");
        let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(seed));
        let told = heard.take().records;
        told_in_all += told.len();
        live(&image, move |files, _| async move {
            let logged = records_in_files(&files).await;
            for (at, record) in &told {
                let kept = logged.iter().find(|(place, _)| place == at);
                assert_eq!(kept.map(|(_, kept)| kept), Some(record), "seed {seed}: at {at}");
            }
        });
    }
    assert!(told_in_all > 1_000, "{told_in_all} records were told");
}

/// Why it matters: who is not told that it lagged has a hole that nobody sees.
#[test]
fn who_has_lagged_is_told_from_where_to_where_and_goes_on_from_there() {
    let setup = setup(0);
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let log = instance.store().log.clone();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        make_durable(&instance).await;
        let mut subscription = Subscription::begin(&log, 5_000);
        let insert = async |number: u64| {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[7; 900]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
        };
        for number in 0..20 {
            insert(number).await;
            assert!(subscription.waiting_bytes() <= 5_000, "memory is bounded");
        }
        let mut upto = subscription.start();
        let (from, behind) = loop {
            match subscription.next().await.unwrap().unwrap() {
                Told::Run(run) => {
                    assert_eq!(run.from, upto);
                    upto = run.upto;
                }
                Told::Lagged { from, upto } => break (from, upto),
            }
        };
        assert_eq!(from, upto, "the lag begins where it was told last");
        assert_eq!(behind, log.durable(), "and ends with what is durable");
        insert(20).await;
        let Some(Told::Run(run)) = subscription.next().await.unwrap() else {
            panic!("it goes on in memory");
        };
        assert_eq!(run.from, behind);
        instance.close().await.unwrap();
        while subscription.next().await.unwrap().is_some() {}
        assert!(subscription.next().await.unwrap().is_none(), "the end stays the end");
    });
}

/// Why it matters: a client that goes on after a kill reads what the dead process left, and its
/// last flush may end inside a record. That is no damage, and no record.
#[test]
fn a_tail_gives_whole_records_of_a_generation_that_ends_inside_one() {
    for seed in 0..2 {
        let setup = setup(seed);
        let disk = disk_with_databases(seed, &setup, MemoryOptions::default());
        let opened = setup.clone();
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&opened)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            make_durable(&instance).await;
            // In one flush, which takes several units of either framing.
            for number in 0..20 {
                let transaction = instance.begin();
                transaction.insert(tree, &row_key(number), &[7; 900]).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
            }
            make_durable(&instance).await;
        });
        // The last units of the flush were never written.
        let current = LogNames::new(LOG, "E00").current();
        let mut bytes = disk.bytes(&current).unwrap();
        let unit_bytes = setup.framing.unit_bytes();
        let blank = bytes[bytes.len() - unit_bytes..].to_vec();
        let end = bytes.chunks(unit_bytes).rposition(|unit| unit != blank).unwrap();
        for unit in bytes.chunks_mut(unit_bytes).skip(end - 2) {
            unit.copy_from_slice(&blank);
        }
        disk.load(&current, &bytes);
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let left = reader(&files).generations().await.unwrap();
            let left = reader(&files).read_generation(&left[0].path).await.unwrap();
            assert!(left.end_of_records(0) < left.end(), "it ends behind a whole record");
            let log = instance.store().log.clone();
            let mut tail = LogTail::begin(&log, reader(&files), Lsn::new(1, 0), UNBOUNDED);
            let mut heard = Vec::new();
            instance.close().await.unwrap();
            while let Some(run) = tail.next().await.unwrap() {
                heard.extend(run.records().unwrap());
            }
            assert!(heard.iter().eq(&records_in_files(&files).await), "framing {seed}");
        });
    }
}

/// Why it matters: a subscriber that waits for a log that has failed waits for ever.
#[test]
fn a_log_that_fails_says_so_to_its_subscribers_after_what_had_become_durable() {
    let setup = setup(0);
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let failing = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let log = instance.store().log.clone();
        let mut subscription = Subscription::begin(&log, UNBOUNDED);
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        make_durable(&instance).await;
        let durable = log.durable();
        failing.inject(
            FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(Purpose::LogWrite),
        );
        let transaction = instance.begin();
        transaction.insert(tree, b"lost", b"row").await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap_err();
        let mut upto = subscription.start();
        let failure = loop {
            match subscription.next().await {
                Ok(Some(Told::Run(run))) => upto = run.upto,
                Ok(told) => panic!("{told:?}"),
                Err(error) => break error,
            }
        };
        assert_eq!(upto, durable, "everything durable is told first");
        assert!(matches!(failure, EngineError::Poisoned { .. }), "{failure}");
    });
}
