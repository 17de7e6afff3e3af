//! How long the executor's tasks hold it at a time: the real clock on a disk in memory, so that
//! nothing is waited for and everything is work. Prints for each kind of work the number of polls,
//! the share above the bar and the longest poll. The machine takes the processor away now and then,
//! which no yield can prevent: the least of several rounds is what the work itself takes.
//!
//!     cargo run --release -p plimsoll-engine --example longest_poll [rounds]

#[path = "../tests/support/mod.rs"]
mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::verify::{Depth, VerifyOptions, verify};
use plimsoll_io::{Clock, Executor, Files, Handle, MemoryDisk, MemoryOptions, Random};
use plimsoll_prepare::{Extent, Plan, PreparedDatabase, WriteOptions, write_database};
use support::*;

/// No poll may be longer.
const BAR_NS: u64 = 50_000;

/// Polls of one kind of work in one round.
#[derive(Clone, Copy)]
struct Polls {
    count: u64,
    above_bar: u64,
    longest_ns: u64,
}

/// Polls by kind of work, one entry per round.
type Table = Rc<RefCell<BTreeMap<&'static str, Vec<Polls>>>>;

fn note(table: &Table, handle: &Handle, kind: &'static str) {
    let statistics = handle.take_statistics();
    let above = statistics.reap_gap.buckets().filter(|(upto_ns, _)| *upto_ns > BAR_NS);
    let polls = Polls {
        count: statistics.polls,
        above_bar: above.map(|(_, count)| count).sum(),
        longest_ns: statistics.poll_ns_max,
    };
    table.borrow_mut().entry(kind).or_default().push(polls);
}

fn setup() -> Setup {
    Setup {
        size: PageSize::KIB_32,
        cache_frames: 2_000,
        checkpoint_generations: 2,
        ..Setup::default()
    }
}

/// Sessions that insert into two trees until the log has rolled over several times.
async fn load(instance: &Rc<Instance>, handle: &Handle, field: &Field) {
    let mut joins = Vec::new();
    for session in 0..8u64 {
        let (instance, field) = (instance.clone(), field.clone());
        let mut random = Random::from_seed(7).child(&format!("session {session}"));
        joins.push(handle.spawn(async move {
            for number in 0..700u64 {
                let transaction = instance.begin();
                for row in 0..6 {
                    let key = row_key(session * 1_000_000 + number * 10 + row);
                    let data = vec![row as u8; 1 + random.below(1_500) as usize];
                    let tree = field.data[(row % 2) as usize];
                    transaction.insert(tree, &key, &data).await.unwrap();
                }
                let how = if number % 3 == 0 { Commit::Durable } else { Commit::Lazy };
                transaction.commit(how).await.unwrap();
            }
        }));
    }
    for join in joins {
        join.await;
    }
}

async fn large_rollback(instance: &Rc<Instance>, field: &Field) {
    let transaction = instance.begin();
    for number in 0..3_000 {
        let key = row_key(90_000_000 + number);
        transaction.insert(field.data[0], &key, &[5; 200]).await.unwrap();
    }
    transaction.rollback().await.unwrap();
}

async fn round(files: Files, handle: Handle, table: Table) {
    create_databases(&files, &setup()).await.unwrap();
    note(&table, &handle, "create");
    let (instance, _) = open(&files, &handle, &setup(), 1).await.unwrap();
    note(&table, &handle, "open");
    let field = create_field(&instance, &setup(), 0, 0).await.unwrap();
    load(&instance, &handle, &field).await;
    assert!(instance.store().log.statistics().generations > 10);
    note(&table, &handle, "load with splits and rollovers");
    large_rollback(&instance, &field).await;
    note(&table, &handle, "rollback of 3,000 rows");
    let mut backup = Backup::start(&instance, 1, 256 * 1024).unwrap();
    while backup.next_chunk().await.unwrap().is_some() {}
    drop(backup);
    note(&table, &handle, "backup");
    instance.checkpoint().await.unwrap();
    note(&table, &handle, "checkpoint");
    instance.close().await.unwrap();
    note(&table, &handle, "close");
    let paths = [database_path(1)];
    for (depth, kind) in [(Depth::Pages, "verify"), (Depth::Deep, "verify --deep")] {
        let options = VerifyOptions { depth, ..VerifyOptions::default() };
        assert!(verify(&files, &handle, &paths, &options).await.is_sound());
        note(&table, &handle, kind);
    }
    let database =
        PreparedDatabase::new(Plan::new(PageSize::KIB_32, Extent::Records(30_000), 2)).unwrap();
    let path = Path::new(DATA).join("prepared.edb");
    write_database(&files, &handle, &path, &database, &WriteOptions::default()).await.unwrap();
    note(&table, &handle, "prepare");
}

fn main() {
    let rounds: u32 =
        std::env::args().nth(1).map_or(5, |text| text.parse().expect("the number of rounds"));
    let table = Table::default();
    for _ in 0..rounds {
        let clock = Rc::new(Clock::real());
        let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
        disk.create_directory(DATA);
        disk.create_directory(LOG);
        let executor = Executor::new(clock, disk.clone());
        let handle = executor.handle();
        executor
            .run(round(Files::new(disk), handle, table.clone()))
            .expect("the disk answers everything");
    }
    if cfg!(debug_assertions) {
        println!("a debug build: these figures say nothing");
    }
    println!(
        "| work | polls | above 50 us in the best round | longest poll in the best round | in the \
         median round |"
    );
    println!("|---|---|---|---|---|");
    for (kind, mut polls) in table.take() {
        polls.sort_by_key(|polls| polls.longest_ns);
        let (best, median) = (polls[0], polls[polls.len() / 2]);
        println!(
            "| {kind} | {} | {} | {:.0} us | {:.0} us |",
            best.count,
            best.above_bar,
            best.longest_ns as f64 / 1e3,
            median.longest_ns as f64 / 1e3
        );
    }
}
