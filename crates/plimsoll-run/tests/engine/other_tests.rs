//! Backup and soft recovery as phases of a run: what they read, what they leave, and what they
//! refuse.

use std::path::Path;
use std::rc::Rc;

use plimsoll_io::{Context, MemoryDisk};
use plimsoll_run::Ending;
use serde_json::{Value, json};

use super::{MIB, count, memory, run_and_hear, run_on, spec};

fn phase(kind: &str, more: Value) -> Value {
    let mut action = json!({"kind": kind});
    let object = action.as_object_mut().expect("an object");
    object.extend(more.as_object().expect("an object").clone());
    json!({"name": kind, "action": action, "workloads": []})
}

fn under_load(mut phase: Value) -> Value {
    phase["workloads"] = json!(["mix"]);
    phase
}

fn with_phases(phases: &[Value]) -> Value {
    let mut spec = spec();
    spec["instances"][0]["maintenance"] = Value::Null;
    spec["phases"] = json!(phases);
    spec
}

fn backup(reads_in_flight: u32) -> Value {
    phase("backup", json!({"read_bytes": 262144, "reads_in_flight": reads_in_flight}))
}

/// JST-05: every page is read once, in reads of 256 KiB, and more reads in flight make it faster.
#[test]
fn a_backup_reads_every_page_once() {
    let mut seconds = Vec::new();
    for reads_in_flight in [1, 4] {
        let phases =
            [phase("prepare", json!({})), backup(reads_in_flight), phase("stop", json!({}))];
        let (outcome, rows) = run_on(&memory(), &with_phases(&phases));
        assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
        let found = &outcome.phases[1].result.backups[0];
        let bytes = outcome.phases[1].result.databases[0][0].size_bytes - 2 * 32768;
        assert_eq!(found.bytes, bytes, "all but the two headers");
        assert_eq!(found.pages_count * 32768, bytes);
        assert_eq!(count(&rows, 1, "backup"), bytes.div_ceil(262_144));
        assert!((found.mib_per_s * found.seconds - bytes as f64 / MIB as f64).abs() < 0.01);
        seconds.push(found.seconds);
    }
    let faster = seconds[0] / seconds[1];
    assert!((3.5..4.1).contains(&faster), "four reads at once are {faster:.2} times as fast");
}

/// BKP-02: a backup may be taken while transactions go on, and they do go on.
#[test]
fn a_backup_under_load_leaves_the_load_alone() {
    let phases = [
        phase("prepare", json!({})),
        under_load(backup(1)),
        phase("stop", json!({})),
        phase("checksum", json!({"read_bytes": 65536, "reads_in_flight": 8})),
    ];
    let (outcome, rows) = run_on(&memory(), &with_phases(&phases));
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    assert!(outcome.phases[1].result.backups[0].pages_count > 700);
    assert!(count(&rows, 1, "insert") > 5);
    assert_eq!(outcome.phases[3].result.checksums[0].report.bad, 0);
}

fn kept(disk: &Rc<MemoryDisk>) -> Value {
    for place in ["databases", "logs"] {
        disk.create_directory(format!("/kept/one/{place}"));
    }
    let more = json!({"read_bytes": 262144, "reads_in_flight": 2, "to": "/kept"});
    phase("backup", more)
}

fn restore() -> Value {
    phase("restore", json!({"from": "/kept", "read_bytes": 65536, "reads_in_flight": 8}))
}

const COPY: &str = "/kept/one/databases/database001.edb";

/// A backup is one when it has been restored: opened with the log beside it, closed, every page
/// read. The load that went on meanwhile is in the copy as far as it had come.
#[test]
fn a_backup_that_is_kept_is_restored() {
    let disk = memory();
    let phases = [
        phase("prepare", json!({})),
        under_load(kept(&disk)),
        under_load(phase("measure", json!({"duration_s": 2.0}))),
        phase("stop", json!({})),
        restore(),
    ];
    let (outcome, rows) = run_on(&disk, &with_phases(&phases));
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let backup = &outcome.phases[1].result.backups[0];
    assert_eq!(backup.kept_at.as_deref(), Some(Path::new(COPY)));
    let log = &outcome.phases[1].result.kept_logs[0];
    assert_eq!(log.generation_first, backup.generation_first);
    assert!(log.bytes >= u64::from(log.generation_last - log.generation_first + 1) * MIB);
    let restored = &outcome.phases[4].result.restores[0];
    assert_eq!(restored.bad(), 0, "{restored:?}");
    assert!(restored.logs_count > 0, "{restored:?}");
    assert!(restored.databases[0].report.pages_seen >= backup.pages_count, "{restored:?}");
    let ever = |phase: usize| outcome.phases[phase].result.databases[0][0].records_ever;
    let records = restored.databases[0].records_ever;
    assert!((ever(0)..=ever(1)).contains(&records), "{records} of {} to {}", ever(0), ever(1));
    assert!(records > ever(0), "something was inserted meanwhile");
    // Pages, headers and log are counted as what they are.
    let pages = backup.bytes.div_ceil(262_144);
    assert!(count(&rows, 1, "backup_write") >= pages + log.bytes / 262_144 + 2);
    assert_eq!(count(&rows, 1, "backup"), pages);
    assert!(count(&rows, 4, "redo") > 0);
}

/// Why: a restore that made missing databases again would call nothing a backup. A copy without its
/// header is refused, and one that went bad has its pages counted.
#[test]
fn a_copy_that_is_none_or_went_bad_is_found_out() {
    let take = |disk: &Rc<MemoryDisk>| {
        let phases = [phase("prepare", json!({})), kept(disk), phase("stop", json!({}))];
        let (outcome, _) = run_on(disk, &with_phases(&phases));
        assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
        disk.bytes(COPY).expect("it is there")
    };
    let try_it = |disk: &Rc<MemoryDisk>| run_on(disk, &with_phases(&[restore()])).0;

    let disk = memory();
    let sound = take(&disk);
    let mut unfinished = sound.clone();
    unfinished[..2 * 32768].fill(0);
    disk.load(COPY, &unfinished);
    let error = try_it(&disk).error.expect("a reason");
    assert!(error.text.contains(COPY), "{}", error.text);
    assert_eq!(disk.bytes(COPY).as_deref(), Some(&unfinished[..]), "nothing was made anew");

    let disk = memory();
    let mut bad = take(&disk);
    bad[400 * 32768 + 5000..][..64].fill(0xA5);
    disk.load(COPY, &bad);
    let outcome = try_it(&disk);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    assert_eq!(outcome.phases[0].result.restores[0].bad(), 1);

    let disk = memory();
    take(&disk);
    let logs = disk.snapshot().into_keys().filter(|path| path.starts_with("kept/one/logs"));
    let logs: Vec<_> = logs.collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    let files = plimsoll_io::Files::new(disk.clone());
    let executor = plimsoll_io::Executor::new(disk.clock().clone(), disk.clone());
    let gone = Path::new("/").join(&logs[0]);
    let deleted = executor.run(async move { files.delete(&gone, Context::default()).await });
    deleted.expect("nothing hangs").expect("it is there");
    let error = try_it(&disk).error.expect("a reason");
    assert!(error.text.contains("log"), "{}", error.text);
}

/// A copy of damage is no copy: the backup says which page, and the run has failed.
#[test]
fn a_damaged_page_ends_the_backup() {
    let disk = memory();
    let prepare = [phase("prepare", json!({})), phase("stop", json!({}))];
    let (prepared, _) = run_on(&disk, &with_phases(&prepare));
    let mut bytes = disk.bytes("/data/one/database001.edb").expect("it is there");
    bytes[400 * 32768 + 5000..][..64].fill(0xA5);
    disk.load("/data/one/database001.edb", &bytes);
    let phases = [phase("prepare", json!({})), backup(2), phase("stop", json!({}))];
    let mut spec = with_phases(&phases);
    let records = prepared.phases[1].result.databases[0][0].records_ever;
    spec["instances"][0]["databases"][0]["existing_records"] = json!(records);
    let (outcome, _) = run_on(&disk, &spec);
    let error = outcome.error.expect("a reason");
    assert_eq!(error.family, "corruption", "{}", error.text);
    // Page 399: two pages of headers come first.
    assert!(error.text.contains("399"), "{}", error.text);
    assert!(outcome.phases.last().expect("a phase").complete, "what was open is closed");
}

/// What only a damaged file shows, and a count of pages does not: each is damage at the end of a
/// checksum, and of a backup.
#[test]
fn lost_headers_pages_and_bits_fail_a_checksum_and_a_backup() {
    const FILE: &str = "/data/one/database001.edb";
    const PAGE: usize = 32768;
    type Change = fn(&mut Vec<u8>);
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / PAGE / 2 * PAGE);
    // With the damaged pages a checksum counts, and the words of a backup that ends by it.
    let cases: [(&str, Change, u64, Option<&str>); 6] = [
        ("both headers", |bytes| bytes[..2 * PAGE].fill(0xA5), 2, Some("header")),
        ("one header", |bytes| bytes[..PAGE].fill(0xA5), 1, None),
        ("cut", cut, 384, Some("the file ends before it")),
        (
            "cut and a piece",
            |bytes| bytes.truncate(bytes.len() / PAGE / 2 * PAGE + 512),
            385,
            Some(""),
        ),
        ("zeros", |bytes| bytes[400 * PAGE..432 * PAGE].fill(0), 32, Some("")),
        ("one bit", |bytes| bytes[400 * PAGE + 5000] ^= 4, 0, None),
    ];
    let checksum = phase("checksum", json!({"read_bytes": 65536, "reads_in_flight": 8}));
    for (title, change, bad, backup_says) in cases {
        let disk = memory();
        let prepare = [phase("prepare", json!({})), phase("stop", json!({})), checksum.clone()];
        let (prepared, _) = run_on(&disk, &with_phases(&prepare));
        let sound = &prepared.phases[2].result.checksums[0].report;
        assert_eq!((sound.bad, sound.reasons.len()), (0, 0), "{:?}", sound.reasons);
        let records = prepared.phases[1].result.databases[0][0].records_ever;
        let mut bytes = disk.bytes(FILE).expect("it is there");
        change(&mut bytes);
        disk.load(FILE, &bytes);
        let (outcome, _) = run_on(&disk, &with_phases(std::slice::from_ref(&checksum)));
        assert_eq!(outcome.ending, Ending::Complete, "{title}: {:?}", outcome.error);
        let report = &outcome.phases[0].result.checksums[0].report;
        let correctable = u64::from(title == "one bit");
        assert_eq!((report.bad, report.correctable), (bad, correctable), "{title}: {report:?}");
        assert_eq!(report.reasons.is_empty(), bad == 0, "{title}: {report:?}");
        if backup_says == Some("") {
            continue;
        }
        let mut spec =
            with_phases(&[phase("prepare", json!({})), backup(2), phase("stop", json!({}))]);
        spec["instances"][0]["databases"][0]["existing_records"] = json!(records);
        let (outcome, _) = run_on(&disk, &spec);
        match (backup_says, outcome.error) {
            (Some(words), Some(error)) => {
                assert_eq!(error.family, "corruption", "{title}: {}", error.text);
                assert!(error.text.contains(words), "{title}: {}", error.text);
            }
            (None, None) => {
                let found = &outcome.phases[1].result.backups[0];
                assert_eq!(found.correctable + found.headers_bad, 1, "{title}: {found:?}");
            }
            (_, error) => panic!("{title}: {error:?}"),
        }
    }
}

/// What somebody else uses was named by mistake; the storage under it has done nothing.
#[test]
fn databases_in_use_are_a_mistake_and_no_fault() {
    let disk = memory();
    let prepare = [phase("prepare", json!({})), phase("stop", json!({}))];
    let (prepared, _) = run_on(&disk, &with_phases(&prepare));
    let records = prepared.phases[1].result.databases[0][0].records_ever;
    let executor = plimsoll_io::Executor::new(disk.clock().clone(), disk.clone());
    let files = plimsoll_io::Files::new(disk.clone());
    let holder = executor.run(async move {
        let (mode, context) = (plimsoll_io::OpenMode::Write, plimsoll_io::Context::default());
        files.open("/data/one/database001.edb", mode, context).await
    });
    let holder = holder.expect("nothing hangs").expect("it is there");
    let mut spec = with_phases(&prepare);
    spec["instances"][0]["databases"][0]["existing_records"] = json!(records);
    let (outcome, rows) = run_on(&disk, &spec);
    let error = outcome.error.expect("a reason");
    assert_eq!(error.family, "config", "{}", error.text);
    assert!(error.text.contains("this process or another holds it"), "{}", error.text);
    assert_eq!(rows.iter().map(|row| row.errors).sum::<u64>(), 0);
    drop(holder);
}

fn recovery(logs_count: u32, timeout_s: f64) -> Value {
    let mut spec = with_phases(&[
        phase("prepare", json!({})),
        under_load(phase(
            "generate_logs",
            json!({"logs_count": logs_count, "timeout_s": timeout_s}),
        )),
        phase("recover", json!({})),
        under_load(phase("measure", json!({"duration_s": 5.0}))),
        phase("stop", json!({})),
        phase("checksum", json!({"read_bytes": 65536, "reads_in_flight": 8})),
    ]);
    spec["instances"][0]["hold_checkpoint"] = json!(true);
    spec
}

/// JST-06: so many logs are written, all are replayed although pages were flushed meanwhile, and
/// the load goes on with every record as it was written: each one read is compared.
#[test]
fn logs_are_generated_dropped_and_replayed() {
    let (outcome, rows) = run_on(&memory(), &recovery(6, 600.0));
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let found = &outcome.phases[2].result.recoveries[0];
    assert!((6..=8).contains(&found.logs_count), "{found:?}");
    assert!(found.log_bytes > 5 * MIB, "{found:?}");
    assert!(found.seconds > 0.0);
    assert!(
        found.changes_found * 2 > found.changes_made,
        "pages were written before the crash although the checkpoint stayed: {found:?}"
    );
    assert!(count(&rows, 2, "redo") > 100);
    assert!(count(&rows, 3, "read") > 20, "the load goes on");
    assert_eq!(outcome.phases[5].result.checksums[0].report.bad, 0);
}

/// With the checkpoint moving there is little to replay: what the held one adds is what the test is
/// about.
#[test]
fn a_checkpoint_that_moves_leaves_little_to_replay() {
    let mut moving = recovery(6, 600.0);
    moving["instances"][0]["hold_checkpoint"] = json!(false);
    moving["instances"][0]["checkpoint_depth_bytes"] = json!(MIB);
    let (outcome, _) = run_on(&memory(), &moving);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let found = &outcome.phases[2].result.recoveries[0];
    assert!(found.logs_count < 6, "{found:?}");
}

/// A load that writes too little log must not run for ever.
#[test]
fn too_few_logs_end_the_run_with_advice() {
    let (outcome, _) = run_on(&memory(), &recovery(600, 3.0));
    let error = outcome.error.expect("a reason");
    assert!(error.text.contains("of 600 logs"), "{}", error.text);
    assert!(error.text.contains("more sessions"), "{}", error.text);
}

/// Raw files have no log: a plan that asks for its replay is wrong, whatever the disk does.
#[test]
fn raw_files_can_be_neither_backed_up_nor_recovered() {
    for wanted in [backup(1), phase("recover", json!({}))] {
        let mut raw = with_phases(&[phase("prepare", json!({})), wanted, phase("stop", json!({}))]);
        raw["instances"][0]["backend"] = json!("raw_files");
        let (outcome, _) = run_on(&memory(), &raw);
        let error = outcome.error.expect("a reason");
        assert_eq!(error.family, "config", "{}", error.text);
        assert!(error.text.contains("raw files"), "{}", error.text);
    }
}

/// Why: 301 reads put right while measuring passed without a word. The engine counts them, and so
/// does the run.
#[test]
fn flipped_bits_put_right_under_load_are_counted() {
    let disk = memory();
    let path = std::path::Path::new("/data/one/database001.edb");
    let prepare = [phase("prepare", json!({})), phase("stop", json!({}))];
    let (prepared, _) = run_on(&disk, &with_phases(&prepare));
    let records = prepared.phases[1].result.databases[0][0].records_ever;
    let mut bytes = disk.bytes(path).expect("it is there");
    for page in 300..600 {
        bytes[page * 32768 + 5000] ^= 4;
    }
    disk.load(path, &bytes);
    let mut spec = with_phases(&[
        phase("prepare", json!({})),
        under_load(phase("measure", json!({"duration_s": 5.0}))),
        phase("stop", json!({})),
    ]);
    spec["instances"][0]["databases"][0]["existing_records"] = json!(records);
    let (outcome, rows, told) = run_and_hear(&disk, &spec);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    // A run that is killed leaves nothing but its events to tell it by; one for the database is
    // enough.
    assert_eq!(told.iter().filter(|kind| **kind == "bad_pages").count(), 1);
    let of_samples: u64 = (0..=1).map(|phase| count(&rows, phase, "corrected_page")).sum();
    assert!(of_samples > 10, "{of_samples} pages were put right");
    let distributions = outcome.figures.iter();
    let of_distributions = distributions.filter(|figures| figures.metric == "corrected_page");
    assert_eq!(of_distributions.map(|figures| figures.count).sum::<u64>(), of_samples);
}

/// Why: a disk that lost one of three writes while the databases were closed passed. What was there
/// before has a checksum that fits; only the flush map knows that it is old.
#[test]
fn a_write_that_nobody_read_again_is_missed_by_the_checksum_pass() {
    let disk = memory();
    let path = std::path::Path::new("/data/one/database001.edb");
    let prepare = [phase("prepare", json!({})), phase("stop", json!({}))];
    let (prepared, _) = run_on(&disk, &with_phases(&prepare));
    let before = disk.bytes(path).expect("it is there");
    let mut spec = with_phases(&[
        phase("prepare", json!({})),
        under_load(phase("measure", json!({"duration_s": 5.0}))),
        phase("stop", json!({})),
    ]);
    let records = prepared.phases[1].result.databases[0][0].records_ever;
    spec["instances"][0]["databases"][0]["existing_records"] = json!(records);
    let (outcome, _) = run_on(&disk, &spec);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let after = disk.bytes(path).expect("it is there");

    let checksum = phase("checksum", json!({"read_bytes": 65536, "reads_in_flight": 8}));
    let checked = |bytes: &[u8]| {
        disk.load(path, bytes);
        let (outcome, _) = run_on(&disk, &with_phases(std::slice::from_ref(&checksum)));
        let report = &outcome.phases[0].result.checksums[0].report;
        (report.bad, report.reasons.clone())
    };
    assert_eq!(checked(&after), (0, Vec::new()));
    let pages = |bytes: &[u8]| bytes.chunks_exact(32768).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (old, new) = (pages(&before), pages(&after));
    // Pages of before that the load has written since, and whose place was not blank.
    let written =
        (2..old.len()).filter(|at| old[*at] != new[*at] && old[*at].iter().any(|b| *b != 0));
    let written: Vec<usize> = written.collect();
    assert!(written.len() > 100, "{} pages", written.len());
    // Each is a checksum pass of its own: forty of them, from all over the file.
    let tried: Vec<usize> = written.iter().step_by(written.len() / 40).copied().collect();
    let found = tried.iter().filter(|&&at| {
        let mut lost = after.clone();
        lost[at * 32768..(at + 1) * 32768].copy_from_slice(&old[at]);
        let (bad, reasons) = checked(&lost);
        let is_said = reasons == [format!("the last write of page {} was lost (-1119)", at - 1)];
        assert_eq!((bad, is_said), (u64::from(is_said), bad > 0), "{reasons:?}");
        is_said
    });
    // After three writes, or six, the type of the flush comes round.
    let found = found.count();
    assert!(2 * found > tried.len(), "{found} of {}", tried.len());
}
