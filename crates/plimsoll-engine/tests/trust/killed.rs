//! A real process on real files, killed with SIGKILL under load, over and over on the same databases. The child is this very test program: it works
//! and prints the serial number of every commit that was acknowledged as durable; the parent reads, kills, recovers and looks for each of them.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a real process on real files"
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use plimsoll_engine::create::create_database;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::{LogTime, PageSize, Signature};
use plimsoll_io::{
    Caching, Clock, Context, Disk, Executor, Files, Handle, Random, RealDisk, RealDiskOptions,
};

use crate::support::*;

const DIRECTORY: &str = "PLIMSOLL_KILL_DIRECTORY";
const LIFE: &str = "PLIMSOLL_KILL_LIFE";
const SESSIONS: u64 = 3;

fn run_really<T: 'static, F: Future<Output = T> + 'static>(work: impl FnOnce(Files, Handle) -> F) -> T {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions {
        caching: Caching::AllowBuffered,
        ..RealDiskOptions::default()
    };
    let disk: Rc<dyn Disk> = RealDisk::open(options, clock.clone()).unwrap();
    let executor = Executor::new(clock, disk.clone());
    let handle = executor.handle();
    let result = executor.run(work(Files::new(disk.clone()), handle)).unwrap();
    for remark in disk.facts().remarks {
        if remark.contains("was locked for") {
            println!("{remark}");
        }
    }
    result
}

fn really(directory: &Path) -> InstanceOptions {
    InstanceOptions {
        log: LogNames::new(directory, "E00"),
        databases: vec![directory.join("database.edb")],
        ..options(&Setup::default())
    }
}

async fn open_really(files: &Files, handle: &Handle, directory: &Path, seed: u64) -> Rc<Instance> {
    let mut random = Random::from_seed(seed).child("instance");
    let opened = Instance::open(files.clone(), handle.clone(), really(directory), &mut random).await;
    opened.unwrap_or_else(|error| panic!("recovery: {error}")).0
}

/// The trees are made first thing after creation, so they are always where they were the first time.
async fn make(files: Files, handle: Handle, directory: PathBuf) -> Field {
    let path = directory.join("database.edb");
    let signature = Signature::new(77, LogTime::from_utc_ns(1_600_000_000_000_000_000));
    create_database(&files, &path, PageSize::KIB_4, signature, Context::default())
        .await
        .unwrap();
    let instance = open_really(&files, &handle, &directory, 1).await;
    let field = create_field(&instance, &Setup::default(), 400, 500)
        .await
        .unwrap();
    instance.close().await.unwrap();
    field
}

fn field_to_text(field: &Field) -> String {
    let trees = std::iter::once(&field.serials).chain(&field.data);
    let words: Vec<String> = trees
        .map(|tree| format!("{}:{}:{}", tree.root, tree.object, tree.kind))
        .collect();
    words.join(" ")
}

fn field_from_text(text: &str) -> Field {
    let mut trees = text.split_whitespace().map(|word| {
        let numbers: Vec<u32> = word.split(':').map(|number| number.parse().unwrap()).collect();
        plimsoll_engine::btree::Tree {
            database: 1,
            root: numbers[0],
            object: numbers[1],
            kind: numbers[2],
        }
    });
    Field {
        serials: trees.next().unwrap(),
        data: trees.collect(),
        keys: 400,
        row_bytes_max: 500,
        prefix_bytes: 0,
    }
}

/// The child: works until it is killed.
#[test]
#[ignore = "the child of the tests below; it does nothing by itself"]
fn child_that_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let life: u64 = std::env::var(LIFE).unwrap().parse().unwrap();
    let directory = PathBuf::from(directory);
    let field = field_from_text(&std::fs::read_to_string(directory.join("field.txt")).unwrap());
    run_really(move |files, handle| async move {
        let instance = open_really(&files, &handle, &directory, life).await;
        let mut joins = Vec::new();
        for session in 0..SESSIONS {
            let (instance, field) = (instance.clone(), field.clone());
            let mut random = Random::from_seed(life).child(&format!("session {session}"));
            joins
                .push(handle.spawn(async move { work(&instance, &field, &mut random, life, session).await }));
        }
        for join in joins {
            join.await;
        }
    });
}

async fn work(instance: &Instance, field: &Field, random: &mut Random, life: u64, session: u64) {
    let weights = Weights {
        insert: 4,
        delete: 2,
        replace: 3,
        lazy: 0.0,
        rollback: 0.1,
        savepoint: 0.2,
        operations_max: 6,
        narrow: 0.3,
    };
    for number in 0..1_000_000 {
        let serial = life << 32 | session << 24 | number;
        let ledger = RefCell::new(Ledger::default());
        one_transaction(instance, field, &weights, serial, random, &ledger)
            .await
            .unwrap();
        if !ledger.borrow().acknowledged.is_empty() {
            // One write of one line: the pipe takes it whole, and it outlives the process.
            let line = format!("acknowledged {serial}\n");
            std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        }
    }
}

/// Starts a child and kills it after a while; returns what it was told is durable.
fn one_life(directory: &Path, life: u64, milliseconds: u64) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::child_that_is_killed",
            "--ignored",
            "--nocapture",
            "--test-threads",
            "1",
        ])
        .env(DIRECTORY, directory)
        .env(LIFE, life.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let reader = BufReader::new(child.stdout.take().unwrap());
    let lines = std::thread::spawn(move || {
        let serial_of = |line: String| {
            line.split("acknowledged ")
                .nth(1)
                .and_then(|serial| serial.parse().ok())
        };
        reader
            .lines()
            .map_while(Result::ok)
            .filter_map(serial_of)
            .collect::<Vec<u64>>()
    });
    std::thread::sleep(Duration::from_millis(milliseconds));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.join().unwrap()
}

fn kill_over_and_over(name: &str, lives: u64) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let making = directory.clone();
    let field = run_really(move |files, handle| make(files, handle, making));
    std::fs::write(directory.join("field.txt"), field_to_text(&field)).unwrap();
    let mut random = Random::from_seed(lives).child("kill");
    let mut promised: BTreeSet<u64> = BTreeSet::new();
    let killed_at_work = Rc::new(Cell::new(0));
    for life in 1..=lives {
        let told = one_life(&directory, life, 150 + random.below(700));
        killed_at_work.set(killed_at_work.get() + u64::from(!told.is_empty()));
        promised.extend(told);
        let (looking, field, expected) = (directory.clone(), field.clone(), promised.clone());
        run_really(move |files, handle| async move {
            let instance = open_really(&files, &handle, &looking, life + 1_000_000).await;
            let found: BTreeSet<u64> = dump(&instance, field.serials)
                .await
                .unwrap()
                .keys()
                .map(|key| u64::from_be_bytes(key[..].try_into().unwrap()))
                .collect();
            let lost: Vec<&u64> = expected.difference(&found).collect();
            assert!(
                lost.is_empty(),
                "life {life}: acknowledged commits {lost:?} are gone"
            );
            for tree in &field.data {
                dump(&instance, *tree).await.unwrap();
            }
            instance.close().await.unwrap();
        });
    }
    println!(
        "{lives} kills, {} of them under load; {} acknowledged commits kept",
        killed_at_work.get(),
        promised.len()
    );
    assert!(
        killed_at_work.get() * 2 >= lives,
        "most kills must hit a process at work"
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

/// ENG-01: a process on real files, killed under load, loses nothing it had acknowledged.
#[test]
fn three_kills_lose_nothing_acknowledged() {
    kill_over_and_over("three kills", 3);
}

#[test]
#[ignore = "slow: `make crash`; KILLS=n sets how many"]
fn many_kills_lose_nothing_acknowledged() {
    let kills = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok());
    kill_over_and_over("many kills", kills.unwrap_or(20));
}
