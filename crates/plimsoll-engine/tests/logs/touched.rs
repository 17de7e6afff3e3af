//! Pages touched since a place: compared with the pages themselves, before and after lives with
//! kills, power cuts and closes.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::PageNumber;
use plimsoll_engine::error::Result;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::touched::touched_since;
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::page::PageView;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Context, Files, Handle, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions,
    NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Random, either,
};

use crate::life::*;
use crate::support::*;

const ROWS: u64 = 400;

fn setup(seed: u64) -> Setup {
    Setup {
        circular: false,
        extension_pages: 16,
        page_images: !seed.is_multiple_of(3),
        cache_frames: 64 + 40 * (seed % 3),
        ..Setup::default()
    }
}

fn memory(seed: u64) -> MemoryOptions {
    let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 200_000 };
    MemoryOptions {
        latency: LatencyPlan::of(latency),
        // Without page images nothing may tear.
        atomic_write_bytes: if seed.is_multiple_of(3) { 4096 } else { 512 },
        ..MemoryOptions::default()
    }
}

fn reader(files: &Files) -> LogReader {
    LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Context::default())
}

async fn change(instance: &Instance, table: &OpenTable, random: &mut Random) -> Result<()> {
    let id = (random.below(ROWS) as i32).to_le_bytes();
    let folder = (random.below(9) as i32).to_le_bytes();
    let body = vec![random.below(255) as u8; 1 + random.below(9_000) as usize];
    let key = table.key(&[Some(&id)])?;
    let transaction = instance.begin();
    let is_there = table.get(&transaction, &key).await?.is_some();
    let values =
        [(table.column("folder")?, Some(&folder[..])), (table.column("body")?, Some(&body[..]))];
    match (is_there, random.below(3)) {
        (true, 0) => table.delete(&transaction, &key).await?,
        (true, _) => table.update(&transaction, &key, &values).await?,
        (false, _) => {
            let all = [&[(table.column("id")?, Some(&id[..]))], &values[..]].concat();
            table.insert(&transaction, &all).await?;
        }
    }
    match random.below(8) {
        0 => transaction.rollback().await,
        1 | 2 => transaction.commit(Commit::Lazy).await,
        _ => transaction.commit(Commit::Durable).await,
    }
}

async fn work(instance: &Rc<Instance>, handle: &Handle, mut random: Random, changes: u64) {
    let Ok(table) = instance.open_table(1, "Messages").await else {
        return;
    };
    for number in 0..changes {
        if change(instance, &table, &mut random).await.is_err() {
            return;
        }
        if random.chance(0.02) {
            let other = message_table(&format!("Other {}", random.next_u64()));
            drop(give_up_after(1 + random.below(60), instance.create_table(1, other)).await);
        }
        if number % 16 == 15 {
            handle.sleep(random.below(20 * NANOS_PER_MILLISECOND)).await;
        }
    }
}

/// The pages of the database file, headers left out.
fn pages_of(disk: &MemoryDisk) -> Vec<Vec<u8>> {
    let bytes = disk.bytes(database_path(1)).unwrap();
    bytes[2 * 4096..].chunks(4096).map(<[u8]>::to_vec).collect()
}

/// Pages that are not what they were; new ones count where there is anything on them.
fn differing(before: &[Vec<u8>], after: &[Vec<u8>]) -> BTreeSet<PageNumber> {
    let blank = vec![0; 4096];
    let pages = (1..).zip(after).enumerate();
    let differ = pages.filter(|(index, (_, page))| before.get(*index).unwrap_or(&blank) != *page);
    differ.map(|(_, (page, _))| page).collect()
}

/// Works, and lists meanwhile what was touched: everything that the log had named by then must be
/// among it.
async fn work_and_list(
    files: Files,
    handle: Handle,
    setup: Setup,
    mut random: Random,
    (from, dbtime): (Lsn, u64),
    closes: bool,
) {
    let instance = open_with(&files, &handle, options(&setup)).await;
    let (working, spawner, deeds) = (instance.clone(), handle.clone(), random.child("deeds"));
    let changes = 20 + random.below(150);
    let session = handle.spawn(async move { work(&working, &spawner, deeds, changes).await });
    for _ in 0..random.below(3) {
        handle.sleep(random.below(100 * NANOS_PER_MILLISECOND)).await;
        let named = reader(&files).touched_since(from).await.unwrap().pages(1);
        let listing = touched_since(&instance, 1, dbtime);
        let polls = if random.chance(0.3) { 1 + random.below(20) } else { u64::MAX };
        if let Some(listed) = give_up_after(polls, listing).await {
            let listed = listed.unwrap();
            let missed: Vec<_> = named.difference(&listed).collect();
            assert!(missed.is_empty(), "named by the log before, and not listed: {missed:?}");
        }
    }
    assert!(instance.holds().is_empty(), "who lists no more holds no more");
    if closes {
        session.await;
        instance.close().await.unwrap();
    }
}

/// Why it matters: a copy that fetches too few pages is another database, and one that fetches all
/// of them is no better off than before.
#[test]
fn every_page_that_differs_was_touched_and_few_others_were() {
    let (mut touched_in_all, mut differ_in_all, mut pages_in_all, mut cuts) = (0, 0, 0, 0);
    for seed in 0..24 {
        let setup = setup(seed);
        let mut random = Random::from_seed(seed).child("touched");
        let mut disk = disk_with_databases(seed, &setup, memory(seed));
        let (s, filling) = (setup.clone(), random.child("fill"));
        let place = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            instance.create_table(1, message_table("Messages")).await.unwrap();
            work(&instance, &handle, filling, 300).await;
            let database = instance.database(1).unwrap();
            instance.close().await.unwrap();
            let generations = reader(&files).generations().await.unwrap();
            let last =
                reader(&files).read_generation(&generations.last().unwrap().path).await.unwrap();
            (last.end(), database.dbtime())
        });
        let before = pages_of(&disk);
        for number in 0..1 + random.below(4) {
            let (s, deeds) = (setup.clone(), random.child(&format!("life {number}")));
            let (closes, is_cut) = (random.chance(0.3), random.chance(0.5));
            if is_cut {
                let now = disk.clock().now();
                disk.power_cut_at(now + 1 + random.below(400 * NANOS_PER_MILLISECOND));
            }
            let (dying, power) = (disk.clone(), disk.clone());
            let ends = random.below(400 * NANOS_PER_MILLISECOND);
            let _ = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
                let life = work_and_list(files, handle.clone(), s, deeds, place, closes);
                let ended = async move {
                    match closes {
                        true => life.await,
                        false => either(life, handle.sleep(ends)).await,
                    }
                    if is_cut {
                        handle.sleep(NANOS_PER_SECOND).await;
                    }
                };
                either(ended, async move { power.power_lost().await }).await;
                dying.process_died();
            });
            if disk.is_off() {
                cuts += 1;
                disk = disk.crash_image(Loss::Drawn, &mut random);
            } else {
                disk.power_cut_at(u64::MAX);
                let settled = run_on(&disk.clock().clone(), &disk, |_, handle| async move {
                    handle.sleep(NANOS_PER_SECOND).await;
                });
                settled.unwrap();
            }
        }
        let s = setup.clone();
        let (by_log, by_time, since) = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            make_durable(&instance).await;
            let listed_at = instance.store().log.durable();
            let by_time = touched_since(&instance, 1, place.1).await.unwrap();
            instance.close().await.unwrap();
            let by_log = reader(&files).touched_since(place.0).await.unwrap().pages(1);
            // Closing changes pages, too.
            let since = reader(&files).touched_since(listed_at).await.unwrap().pages(1);
            (by_log, by_time, since)
        });
        let after = pages_of(&disk);
        let differ = differing(&before, &after);
        let missed: Vec<_> = differ.difference(&by_log).collect();
        assert!(missed.is_empty(), "seed {seed}: differ, and not in the log: {missed:?}");
        let missed: Vec<_> =
            differ.difference(&by_time).filter(|page| !since.contains(page)).collect();
        assert!(missed.is_empty(), "seed {seed}: differ, and of an older time: {missed:?}");
        let mut changed = by_time;
        changed.extend(&by_log);
        touched_in_all += changed.len();
        differ_in_all += differ.len();
        pages_in_all += after.len();
    }
    println!(
        "{differ_in_all} of {pages_in_all} pages differ, {touched_in_all} were touched, {cuts} cuts"
    );
    assert!(cuts > 15, "{cuts} cuts");
    assert!(touched_in_all * 10 < pages_in_all * 9, "most is not all");
    assert!(touched_in_all * 8 < differ_in_all * 10, "{touched_in_all} for {differ_in_all}");
}

/// Why it matters: rows that nobody sees any more are removed long after they were deleted, and the
/// page differs then.
#[test]
fn a_page_that_is_only_cleaned_up_is_touched_too() {
    let setup = setup(1);
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let s = setup.clone();
    let (named, dbtime) = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&s)).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let transaction = instance.begin();
        for number in 0..200 {
            transaction.insert(tree, &row_key(number), &[1; 100]).await.unwrap();
        }
        transaction.commit(Commit::Durable).await.unwrap();
        let reading = instance.begin();
        reading.get(tree, &row_key(0)).await.unwrap();
        let transaction = instance.begin();
        for number in (0..200).step_by(3) {
            transaction.delete(tree, &row_key(number)).await.unwrap();
        }
        transaction.commit(Commit::Durable).await.unwrap();
        make_durable(&instance).await;
        let from = instance.store().log.durable();
        let dbtime = instance.database(1).unwrap().dbtime();
        drop(reading);
        handle.sleep(5 * NANOS_PER_SECOND).await;
        instance.close().await.unwrap();
        (reader(&files).touched_since(from).await.unwrap().pages(1), dbtime)
    });
    let pages = pages_of(&disk);
    let later =
        (1..).zip(&pages).filter(|(_, page)| PageView::new(page, setup.size).dbtime() > dbtime);
    let later: BTreeSet<PageNumber> = later.map(|(page, _)| page).collect();
    assert!(later.len() > 3, "{} pages were cleaned up", later.len());
    assert_eq!(named, later);
}
