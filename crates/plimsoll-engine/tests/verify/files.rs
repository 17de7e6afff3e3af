//! Verification: counts equal the manifests, every kind of damage is counted as what it is and
//! described, nothing is written, and others get their turn.
//!
//! Why it matters: this is the check a storage qualification ends with. What it misses, nobody
//! sees; what it misnames sends people after the wrong fault.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::golden::{DATABASE, golden, real, synthetic};
use plimsoll_engine::PageSize;
use plimsoll_engine::verify::{
    FileReport, FileVerdict, FindingClass, HeaderCheck, Progress, VerifyOptions, VerifyReport,
    verify,
};
use plimsoll_io::{
    Clock, Executor, Files, Latency, LatencyPlan, MemoryDisk, MemoryOptions, Random,
};

/// A disk with one database on it, and the executor to run on.
struct Bench {
    disk: Rc<MemoryDisk>,
    executor: Executor,
}

impl Bench {
    fn with_options(bytes: &[u8], options: MemoryOptions) -> Self {
        let clock = Rc::new(Clock::simulated());
        let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), options);
        disk.create_directory("/db");
        disk.load(DATABASE, bytes);
        let executor = Executor::new(clock, disk.clone());
        Self { disk, executor }
    }

    fn new(bytes: &[u8]) -> Self {
        Self::with_options(bytes, MemoryOptions::ram())
    }

    fn verify(&self, options: VerifyOptions, paths: &[&str]) -> VerifyReport {
        let (files, handle) = (Files::new(self.disk.clone()), self.executor.handle());
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let work = async move { verify(&files, &handle, &paths, &options).await };
        self.executor.run(work).expect("the disk answers everything")
    }

    fn verify_one(&self) -> FileReport {
        let mut report = self.verify(VerifyOptions::default(), &[DATABASE]);
        report.files.pop().expect("one file")
    }
}

fn page_size_of(bytes: &[u8]) -> PageSize {
    PageSize::from_bytes(u32::from_le_bytes(bytes[236..240].try_into().unwrap()))
        .expect("a page size")
}

fn page_range(bytes: &[u8], page: u32) -> std::ops::Range<usize> {
    let size = page_size_of(bytes);
    let start = size.offset_of(page) as usize;
    start..start + size.bytes()
}

fn swap_pages(bytes: &mut [u8], left: u32, right: u32) {
    let (left, right) = (page_range(bytes, left), page_range(bytes, right));
    let copy = bytes[left.clone()].to_vec();
    bytes.copy_within(right.clone(), left.start);
    bytes[right].copy_from_slice(&copy);
}

fn copy_page(bytes: &mut [u8], from: u32, to: u32) {
    let (from, to) = (page_range(bytes, from), page_range(bytes, to));
    bytes.copy_within(from, to.start);
}

const NAMES: [&str; 4] = ["syn4k.edb", "syn8k.edb", "syn16k.edb", "syn32k.edb"];

/// Sound databases, synthetic and made by Windows, have exactly the page classes of their
/// manifests.
#[test]
fn counts_equal_the_manifests() {
    for (name, entry, bytes) in synthetic().into_iter().chain(real()) {
        let pages = entry.get("page_status").unwrap_or(&entry["pages"]);
        let report = Bench::new(&bytes).verify_one();
        assert_eq!(report.verdict, FileVerdict::Sound, "{name}: {report:?}");
        assert_eq!(report.uninitialized, pages["uninitialized"], "{name}");
        assert_eq!(
            report.pages_seen,
            pages["ok"].as_u64().unwrap() + report.uninitialized,
            "{name}"
        );
        assert_eq!(report.damaged(), 0, "{name}");
        assert_eq!(report.headers, [HeaderCheck::Ok; 2], "{name}");
        assert_eq!(report.bytes_read, bytes.len() as u64, "{name}: every byte is read once");
        let header_dbtime = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        assert!((1..=header_dbtime).contains(&report.dbtime_max), "{name}");
    }
}

/// ENG-09: a flipped bit is correctable, and the report names page, offset, block and bit.
#[test]
fn a_flipped_bit_is_correctable_and_named() {
    for name in NAMES {
        let mut bytes = golden(name);
        let range = page_range(&bytes, 40);
        let block_bytes = page_size_of(&bytes).block_bytes();
        // The last bit of the page, which is in the last block.
        bytes[range.end - 1] ^= 0x80;
        let report = Bench::new(&bytes).verify_one();
        assert_eq!((report.correctable, report.damaged()), (1, 1), "{name}");
        assert_eq!(report.verdict, FileVerdict::Correctable, "{name}");
        let finding = &report.findings[0];
        assert_eq!((finding.page, finding.offset), (40, range.start as u64), "{name}");
        assert_eq!(finding.class, FindingClass::Correctable);
        assert_eq!(finding.flipped_bits, [range.len() as u32 * 8 - 1], "{name}");
        assert_eq!(usize::from(finding.block), range.len() / block_bytes - 1, "{name}");
        assert_ne!(finding.stored, finding.computed, "{name}");
    }
}

/// Garbage over half a page is bad, with the object the page claims.
#[test]
fn a_torn_page_is_bad() {
    for name in NAMES {
        let mut bytes = golden(name);
        let range = page_range(&bytes, 33);
        bytes[range.start + range.len() / 2..range.end].fill(0xA5);
        let report = Bench::new(&bytes).verify_one();
        assert_eq!((report.bad, report.damaged()), (1, 1), "{name}: {:?}", report.findings);
        assert_eq!(report.verdict, FileVerdict::Damaged, "{name}");
        assert_eq!(report.findings[0].object, 8, "{name}: the mail table");
        assert_eq!(
            report.findings[0].class,
            FindingClass::Bad { page_if_misplaced: None },
            "{name}"
        );
    }
}

/// ENG-09: two pages that changed places are both recognised, whatever the distance, also where a
/// small page's checksum differs in one bit only.
#[test]
fn swapped_pages_are_recognised() {
    for name in NAMES {
        let sound = golden(name);
        for (left, right) in [(34, 35), (33, 35), (32, 36), (31, 24), (4, 29), (37, 42)] {
            let mut bytes = sound.clone();
            swap_pages(&mut bytes, left, right);
            let report = Bench::new(&bytes).verify_one();
            assert_eq!(
                (report.wrong_page_number, report.damaged()),
                (2, 2),
                "{name}: {left} and {right}: {report:?}"
            );
            let mut found: Vec<_> =
                report.findings.iter().map(|finding| (finding.page, finding.class)).collect();
            found.sort_by_key(|(page, _)| *page);
            let mut expected = [
                (left, FindingClass::WrongPageNumber { found: right }),
                (right, FindingClass::WrongPageNumber { found: left }),
            ];
            expected.sort_by_key(|(page, _)| *page);
            assert_eq!(found, expected, "{name}");
        }
    }
}

/// A write that went to the wrong place destroys one page and leaves another old: one wrong page
/// number.
#[test]
fn a_misdirected_write_is_recognised() {
    for name in NAMES {
        for (from, to) in [(33, 37), (34, 35), (35, 33), (24, 100)] {
            let mut bytes = golden(name);
            copy_page(&mut bytes, from, to);
            let report = Bench::new(&bytes).verify_one();
            let counts = (report.wrong_page_number, report.damaged());
            assert_eq!(counts, (1, 1), "{name}: {from} over {to}: {:?}", report.findings);
            assert_eq!(
                report.findings[0].class,
                FindingClass::WrongPageNumber { found: from },
                "{name}"
            );
        }
    }
}

/// A flip in the stored checksum of a small page looks like a misplacement by that bit; the
/// neighbours show that it is not.
#[test]
fn a_flip_in_the_stored_checksum_is_not_a_misplacement() {
    for name in NAMES {
        for bit in [0, 1, 2, 3] {
            let mut bytes = golden(name);
            let range = page_range(&bytes, 34);
            bytes[range.start] ^= 1 << bit;
            let report = Bench::new(&bytes).verify_one();
            assert_eq!(
                (report.bad, report.damaged()),
                (1, 1),
                "{name}, bit {bit}: {:?}",
                report.findings
            );
        }
    }
}

/// One damaged header is reported; with both damaged the page size is found from the first page and
/// all pages are still checked.
#[test]
fn damaged_headers_do_not_hide_the_pages() {
    for name in NAMES {
        let mut bytes = golden(name);
        let page_bytes = page_size_of(&bytes).bytes();
        let pages = (bytes.len() / page_bytes - 2) as u64;
        bytes[100] ^= 1;
        let report = Bench::new(&bytes).verify_one();
        assert_eq!(report.headers, [HeaderCheck::Bad, HeaderCheck::Ok], "{name}");
        assert_eq!((report.verdict, report.pages_seen), (FileVerdict::Damaged, pages), "{name}");
        bytes[..2 * page_bytes].fill(0);
        let report = Bench::new(&bytes).verify_one();
        assert_eq!(report.headers, [HeaderCheck::Bad; 2], "{name}");
        assert_eq!((report.verdict, report.pages_seen), (FileVerdict::Damaged, pages), "{name}");
    }
}

/// A place the medium cannot read is reported with the disk's own words, and everything else is
/// still checked.
#[test]
fn an_unreadable_place_is_passed_over() {
    let bytes = golden("syn32k.edb");
    let bench = Bench::new(&bytes);
    let offset = PageSize::KIB_32.offset_of(100);
    assert!(bench.disk.lose_sectors(DATABASE, offset, 512));
    let report = bench.verify_one();
    assert_eq!(report.verdict, FileVerdict::Damaged);
    assert_eq!(report.unreadable, 8, "one read of eight pages failed");
    assert_eq!(report.pages_seen, 254);
    let range = &report.unreadable_ranges[0];
    assert!(range.offset <= offset && offset < range.offset + range.bytes, "{range:?}");
    assert!(range.error.contains(DATABASE), "{}", range.error);
}

/// What is no database says why, and does not keep the other files from being checked.
#[test]
fn unusable_files_say_why() {
    let bench = Bench::new(&golden("syn4k.edb"));
    bench.disk.load("/db/empty", &[]);
    bench.disk.load("/db/text", &b"hello ".repeat(20_000));
    bench.disk.load("/db/zeros", &[0; 65536]);
    let paths = ["/db/missing", "/db/empty", "/db/text", "/db/zeros", DATABASE];
    let report = bench.verify(VerifyOptions::default(), &paths);
    let verdicts: Vec<_> = report.files.iter().map(|file| file.verdict).collect();
    assert_eq!(verdicts[..4], [FileVerdict::Unusable; 4]);
    assert_eq!(verdicts[4], FileVerdict::Sound);
    assert!(!report.is_sound());
    for (file, words) in report.files.iter().zip([
        "no such file",
        "ends inside its header",
        "ESE database",
        "ESE database",
    ]) {
        let error = file.error.as_deref().expect("a reason");
        assert!(error.contains(words), "{error}");
        assert_eq!(
            file.path,
            Path::new(&paths[report.files.iter().position(|other| other == file).unwrap()])
        );
    }
}

/// What is left of a file that was cut off within its first block cannot be read with direct I/O,
/// and is named all the same.
#[test]
fn what_is_shorter_than_a_block_is_no_empty_file() {
    let bench = Bench::new(&golden("syn4k.edb"));
    let paths = ["/db/short.edb", "/db/E0000000007.log"];
    for path in paths {
        bench.disk.load(path, &[7; 100]);
    }
    let report = bench.verify(VerifyOptions::default(), &paths);
    for file in &report.files {
        assert_eq!(file.verdict, FileVerdict::Unusable);
        let error = file.error.as_deref().expect("a reason");
        assert!(error.contains("ends inside its header (100 bytes)"), "{error}");
    }
}

/// A file cut off in the middle of a page is damaged even if every whole page is sound.
#[test]
fn a_partial_page_at_the_end_is_damage() {
    let mut bytes = golden("syn32k.edb");
    bytes.truncate(bytes.len() - 4096);
    let report = Bench::new(&bytes).verify_one();
    assert_eq!(report.trailing_bytes, 28 * 1024);
    assert_eq!((report.pages_seen, report.verdict), (253, FileVerdict::Damaged));
}

/// However many pages are damaged, the counts are exact and the list stays short.
#[test]
fn the_list_of_findings_is_bounded() {
    let mut bytes = golden("syn4k.edb");
    bytes[3 * 4096..].fill(0xEE);
    let options = VerifyOptions { findings_max: 10, ..VerifyOptions::default() };
    let report = Bench::new(&bytes).verify(options, &[DATABASE]).files.remove(0);
    assert_eq!((report.bad, report.findings.len(), report.findings_not_listed), (253, 10, 243));
}

/// The file has the same bytes afterwards. It is opened for reading, so a write would be refused as
/// well.
#[test]
fn nothing_is_written() {
    let mut bytes = golden("syn8k.edb");
    let range = page_range(&bytes, 40);
    bytes[range.start + 500] ^= 4;
    bytes[9] ^= 1;
    let bench = Bench::new(&bytes);
    let before = bench.disk.snapshot();
    assert_eq!(bench.verify_one().damaged(), 1);
    assert!(bench.disk.snapshot() == before);
}

/// As many reads as asked for are in flight: on a disk that takes a millisecond for any read, the
/// time is that of the reads divided by them.
#[test]
fn reads_are_outstanding_as_asked() {
    let bytes = golden("syn32k.edb");
    let reads = bytes.len() as u64 / (256 * 1024);
    for outstanding in [1, 2, 8] {
        let options = MemoryOptions {
            latency: LatencyPlan::of(Latency::Constant(1_000_000)),
            ..MemoryOptions::ram()
        };
        let bench = Bench::with_options(&bytes, options);
        let options = VerifyOptions { reads_outstanding: outstanding, ..VerifyOptions::default() };
        let report = bench.verify(options, &[DATABASE]).files.remove(0);
        assert_eq!(report.reads, reads);
        // Besides the reads of the pages: open, first bytes, two pages that say how far the
        // database reaches, close.
        let expected_ms = reads as f64 / outstanding as f64 + 5.0;
        let found_ms = report.seconds * 1000.0;
        assert!(
            (found_ms - expected_ms).abs() <= 1.0,
            "{outstanding} outstanding: {found_ms} ms, expected {expected_ms}"
        );
    }
}

/// Other tasks run between pieces of at most 64 KiB, and progress is told up to the end.
#[test]
fn others_get_their_turn() {
    let bytes = golden("syn32k.edb");
    let pieces = bytes.len() / (64 * 1024);
    let bench = Bench::new(&bytes);
    let (turns, told) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (handle, counted) = (bench.executor.handle(), turns.clone());
    let other = bench.executor.handle();
    drop(handle.spawn(async move {
        loop {
            counted.set(counted.get() + 1);
            other.yield_now().await;
        }
    }));
    let sink = told.clone();
    let options = VerifyOptions {
        progress: Some(Rc::new(move |progress: &Progress| sink.set(progress.bytes_done))),
        // One reader: with several, each may check a piece between two turns of another task.
        reads_outstanding: 1,
        ..VerifyOptions::default()
    };
    bench.verify(options, &[DATABASE]);
    assert!(turns.get() >= pieces, "{} turns for {pieces} pieces", turns.get());
    assert_eq!(told.get(), bytes.len() as u64);
}

/// The report is plain data: what a program reads from it has the documented names.
#[test]
fn the_report_is_plain_data() {
    let mut bytes = golden("syn4k.edb");
    swap_pages(&mut bytes, 40, 45);
    let report = Bench::new(&bytes).verify(VerifyOptions::default(), &[DATABASE]);
    let json = serde_json::to_value(&report).expect("plain data");
    let file = &json["files"][0];
    for field in [
        "pages_seen",
        "bad",
        "correctable",
        "wrong_page_number",
        "uninitialized",
        "seconds",
        "mib_per_s",
    ] {
        assert!(file[field].is_number(), "{field}");
    }
    assert_eq!(file["findings"][0]["class"], "wrong_page_number");
    assert_eq!(file["findings"][0]["found"], 45);
    assert_eq!(file["verdict"], "damaged");
}
