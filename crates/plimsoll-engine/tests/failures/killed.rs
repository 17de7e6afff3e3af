//! A real process on real files, killed with SIGKILL under load, over and over on the same
//! databases. The child is this very test program: it works, and prints what each transaction does
//! before its commit, and the serial number of every commit that was acknowledged as durable. The
//! parent reads, kills, sees that the kill and nothing else ended the child, recovers, and
//! compares: every acknowledged commit is there, what is there is an unbroken run of commits, and
//! every row of every tree is what that run left, so nothing uncommitted is there.
//!
//! Where whoever started it can cut the power (`tests/powercut/kills.py`), every fifth kill is
//! followed by a power cut before anything is recovered: what the dead process had written and not
//! flushed is lost or not, as the disk likes.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a real process on real files"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Bound;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::create::create_database;
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::deep::Finding;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::verify::{Depth, FileVerdict, VerifyOptions, verify};
use plimsoll_engine::{LogTime, PageSize, Signature};
use plimsoll_io::{
    Caching, Clock, Context, Disk, Executor, Files, Handle, Random, RealDisk, RealDiskOptions,
};

use crate::support::*;

const DIRECTORY: &str = "PLIMSOLL_KILL_DIRECTORY";
const LIFE: &str = "PLIMSOLL_KILL_LIFE";
/// The directory to work in, for other disks than that of the build.
const PLACE: &str = "PLIMSOLL_CRASH_PLACE";
/// Set where a line on the standard output cuts the power of that disk. The answer is a line once
/// it is back.
const POWER: &str = "PLIMSOLL_CRASH_POWER";
const KILLS_BETWEEN_POWER_CUTS: u64 = 5;
const SESSIONS: u64 = 3;
const SIGKILL: i32 = 9;
/// All serial numbers are looked for after every so many lives, those of the last life after each.
const LIVES_BETWEEN_FULL_LOOKS: u64 = 50;

fn run_really<T: 'static, F: Future<Output = T> + 'static>(
    work: impl FnOnce(Files, Handle) -> F,
) -> T {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
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
    let opened =
        Instance::open(files.clone(), handle.clone(), really(directory), &mut random).await;
    opened.unwrap_or_else(|error| panic!("recovery: {error}")).0
}

/// The trees are made first thing after creation, so they are always where they were the first
/// time.
async fn make(files: Files, handle: Handle, directory: PathBuf) -> Field {
    let path = directory.join("database.edb");
    let signature = Signature::new(77, LogTime::from_utc_ns(1_600_000_000_000_000_000));
    create_database(&files, &path, PageSize::KIB_4, signature, Context::default()).await.unwrap();
    let instance = open_really(&files, &handle, &directory, 1).await;
    let field = create_field(&instance, &Setup::default(), 400, 500).await.unwrap();
    instance.close().await.unwrap();
    field
}

fn field_to_text(field: &Field) -> String {
    let trees = std::iter::once(&field.serials).chain(&field.data);
    let words: Vec<String> =
        trees.map(|tree| format!("{}:{}:{}", tree.root, tree.object, tree.kind)).collect();
    words.join(" ")
}

fn field_from_text(text: &str) -> Field {
    let mut trees = text.split_whitespace().map(|word| {
        let numbers: Vec<u32> = word.split(':').map(|number| number.parse().unwrap()).collect();
        Tree { database: 1, root: numbers[0], object: numbers[1], kind: numbers[2] }
    });
    Field {
        serials: trees.next().unwrap(),
        data: trees.collect(),
        keys: 400,
        row_bytes_max: 500,
        prefix_bytes: 0,
        keys_per_prefix: 0,
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
            joins.push(
                handle.spawn(
                    async move { work(&instance, &field, &mut random, life, session).await },
                ),
            );
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
    let told = field.clone();
    let witness: Witness = Rc::new(move |serial, effects| say(&committing(&told, serial, effects)));
    for number in 0..1_000_000 {
        let serial = life << 32 | session << 24 | number;
        let ledger = RefCell::new(Ledger { witness: Some(witness.clone()), ..Ledger::default() });
        one_transaction(instance, field, &weights, serial, random, &ledger).await.unwrap();
        if !ledger.borrow().acknowledged.is_empty() {
            say(&format!("acknowledged {serial}"));
        }
    }
}

/// One write of one line: what the pipe has taken outlives the process. Half a line is of a
/// transaction that has not committed.
fn say(line: &str) {
    let line = format!("{line}\n");
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn trees(field: &Field) -> Vec<Tree> {
    std::iter::once(field.serials).chain(field.data.clone()).collect()
}

/// A line with everything that a transaction does: tree, key, and the row that is there afterwards.
fn committing(field: &Field, serial: u64, effects: &Effects) -> String {
    let trees = trees(field);
    let mut line = format!("committing {serial}");
    for (tree, key, after) in effects {
        let number = trees.iter().position(|known| known == tree).unwrap();
        let after = after.as_deref().map_or("-".to_owned(), hex);
        line += &format!(" {number}:{}:{after}", hex(key));
    }
    line + " ."
}

/// Notes in the ledger what a line says; a line that was cut off says nothing.
fn note(field: &Field, ledger: &mut Ledger, line: &str) {
    // The test program prints the name of its test before the first line.
    if let Some((_, serial)) = line.split_once("acknowledged ") {
        ledger.acknowledged.push(serial.parse().unwrap());
    } else if let Some((_, told)) = line.split_once("committing ")
        && let Some(told) = told.strip_suffix(" .")
    {
        let trees = trees(field);
        let mut words = told.split(' ');
        let serial = words.next().unwrap().parse().unwrap();
        let effect = |word: &str| {
            let parts: Vec<&str> = word.split(':').collect();
            let tree = trees[parts[0].parse::<usize>().unwrap()];
            (tree, from_hex(parts[1]), (parts[2] != "-").then(|| from_hex(parts[2])))
        };
        ledger.committed.push((serial, Rc::new(words.map(effect).collect())));
    }
}

/// Starts a child and kills it after a while; returns what it was about to commit, in that order,
/// and what it was told is durable. Cuts the power as soon as it is killed, if told.
fn one_life(
    directory: &Path,
    field: &Field,
    life: u64,
    milliseconds: u64,
    with_power_cut: bool,
) -> Ledger {
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
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let lines = std::thread::spawn(move || {
        let (mut lines, mut line) = (Vec::new(), String::new());
        // A line without its end was cut off.
        while out.read_line(&mut line).is_ok() && line.ends_with('\n') {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        lines
    });
    let mut errors = child.stderr.take().unwrap();
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).unwrap();
        text
    });
    std::thread::sleep(Duration::from_millis(milliseconds));
    child.kill().unwrap();
    if with_power_cut {
        cut_power();
    }
    let status = child.wait().unwrap();
    let (lines, complaints) = (lines.join().unwrap(), complaints.join().unwrap());
    assert_eq!(
        status.signal(),
        Some(SIGKILL),
        "life {life} ended by itself: {status}\n{complaints}"
    );
    // One that has panicked takes its time to die of it.
    assert!(complaints.is_empty(), "life {life} complained before it was killed:\n{complaints}");
    let mut ledger = Ledger::default();
    lines.iter().for_each(|line| note(field, &mut ledger, line));
    ledger
}

/// What the databases must hold, from all lives before.
type State = BTreeMap<Tree, BTreeMap<Vec<u8>, Vec<u8>>>;

fn apply(state: &mut State, effects: &Effects) {
    for (tree, key, after) in effects {
        let rows = state.entry(*tree).or_default();
        match after {
            Some(data) => rows.insert(key.clone(), data.clone()),
            None => rows.remove(key),
        };
    }
}

async fn rows_from(instance: &Instance, tree: Tree, first: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let transaction = instance.begin();
    let range = KeyRange { low: Bound::Included(first.to_vec()), high: Bound::Unbounded };
    let mut cursor = Cursor::new(&transaction, tree, range, Direction::Forward);
    let mut rows = BTreeMap::new();
    while let Some((key, data)) = cursor.next().await.unwrap() {
        rows.insert(key, data);
    }
    rows
}

/// Compares the databases with the state before this life and what this life did; answers the state
/// after it.
async fn compare(
    instance: &Instance,
    field: &Field,
    mut state: State,
    ledger: &Ledger,
    life: u64,
) -> State {
    let is_full = life.is_multiple_of(LIVES_BETWEEN_FULL_LOOKS);
    let first = if is_full { 0 } else { life << 32 };
    let serials = rows_from(instance, field.serials, &first.to_be_bytes()).await;
    let is_there = |serial: u64| serials.contains_key(&serial.to_be_bytes()[..]);
    for serial in &ledger.acknowledged {
        assert!(is_there(*serial), "life {life}: acknowledged commit {serial} is gone");
    }
    let mut survived = 0;
    for (index, (serial, effects)) in ledger.committed.iter().enumerate() {
        if is_there(*serial) {
            assert_eq!(
                survived, index,
                "life {life}: commit {serial} is there, one before it is not"
            );
            survived += 1;
            apply(&mut state, effects);
        }
    }
    for tree in trees(field) {
        let expected = state.entry(tree).or_default();
        let first = if tree == field.serials { first.to_be_bytes().to_vec() } else { Vec::new() };
        let found = rows_from(instance, tree, &first).await;
        let rows = expected.range(first..).map(|(key, data)| (&key[..], &data[..]));
        assert!(
            agree(&found, rows),
            "life {life}: the rows of {tree:?} are not those of {survived} commits"
        );
    }
    state
}

/// Everything in every file is sound, and the pages of the database make one.
async fn check_files(files: Files, handle: Handle, directory: PathBuf) {
    let names = ["database.edb", "database.jfm", "E00.log", "E00.chk"];
    let paths: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
    let options = VerifyOptions { depth: Depth::Deep, ..VerifyOptions::default() };
    let report = verify(&files, &handle, &paths, &options).await;
    for file in &report.files {
        let deep = file.deep.as_ref();
        // The trees are in no catalog, so their pages look lost.
        let is_known = |finding: &&Finding| !matches!(finding, Finding::Leaked { .. });
        let findings: Vec<_> =
            deep.map_or(Vec::new(), |deep| deep.findings.iter().filter(is_known).collect());
        assert!(
            findings.is_empty() && file.damaged() == 0 && file.deep_error.is_none(),
            "{}: {findings:#?} {file:#?}",
            file.path.display()
        );
        assert!(deep.is_some() || file.verdict == FileVerdict::Sound, "{file:#?}");
    }
}

/// Has the power of the disk cut, and waits until it is back.
fn cut_power() {
    println!("power: cut");
    std::io::stdout().flush().unwrap();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).unwrap();
    assert_eq!(answer.trim(), "on", "the power does not come back");
}

/// Writes a file that no power cut takes away.
fn write_durably(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
    for synced in [path, path.parent().unwrap()] {
        std::fs::File::open(synced).unwrap().sync_all().unwrap();
    }
}

fn kill_over_and_over(name: &str, lives: u64) {
    let place = std::env::var_os(PLACE).map(PathBuf::from);
    let has_power_switch = std::env::var_os(POWER).is_some();
    let directory = place.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let directory = directory.join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let making = directory.clone();
    let field = run_really(move |files, handle| make(files, handle, making));
    write_durably(&directory.join("field.txt"), &field_to_text(&field));
    if has_power_switch {
        // The directory itself.
        let parent = directory.parent().expect("it lies somewhere");
        std::fs::File::open(parent).unwrap().sync_all().unwrap();
    }
    let mut random = Random::from_seed(lives).child("kill");
    let mut state = State::new();
    let (mut killed_at_work, mut acknowledged, mut unacknowledged, mut power_cuts) = (0, 0, 0, 0);
    for life in 1..=lives {
        let with_power_cut = has_power_switch && life.is_multiple_of(KILLS_BETWEEN_POWER_CUTS);
        power_cuts += u64::from(with_power_cut);
        let ledger = one_life(&directory, &field, life, 150 + random.below(700), with_power_cut);
        killed_at_work += u64::from(!ledger.acknowledged.is_empty());
        acknowledged += ledger.acknowledged.len();
        unacknowledged += ledger.committed.len() - ledger.acknowledged.len();
        let (looking, field, before) =
            (directory.clone(), field.clone(), std::mem::take(&mut state));
        state = run_really(move |files, handle| async move {
            let instance = open_really(&files, &handle, &looking, life + 1_000_000).await;
            let after = compare(&instance, &field, before, &ledger, life).await;
            instance.close().await.unwrap();
            after
        });
    }
    let looking = directory.clone();
    run_really(move |files, handle| check_files(files, handle, looking));
    println!(
        "{lives} kills, {killed_at_work} of them under load, {power_cuts} followed by a power cut; \
         {acknowledged} acknowledged commits kept; {unacknowledged} under way at a kill, \
         each there whole or not at all; every row compared"
    );
    assert!(killed_at_work * 2 >= lives, "most kills must hit a process at work");
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
