//! Files that are generated where nobody wrote, and kept as differences where somebody did.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_io::{
    Buffer, Content, Delta, Durability, Loss, MemoryOptions, OpenMode, Random, Runs, Sparse,
    Tracking, Vouch,
};

use crate::rig::{Rig, label};

const PAGE: usize = 4096;

/// Pages of bytes that depend on their offset alone.
struct Pages;

impl Content for Pages {
    fn unit_bytes(&self) -> usize {
        PAGE
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) {
        assert_eq!((offset % PAGE as u64, bytes.len()), (0, PAGE), "always one whole unit");
        Random::from_seed(offset).fill(bytes);
    }
}

fn page_at(offset: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    Random::from_seed(offset).fill(&mut bytes);
    bytes
}

fn sparse_rig(length_bytes: u64, options: MemoryOptions) -> (Rig, plimsoll_io::File) {
    let rig = Rig::new(options);
    rig.disk.load_sparse("big", length_bytes, Sparse::new(Arc::new(Pages)));
    let files = rig.files.clone();
    let file = rig.run(async move { files.open("big", OpenMode::Write, label()).await.unwrap() });
    (rig, file)
}

/// Unwritten pages are generated, at the very end of 1 TB too, and nothing is kept for them.
#[test]
fn a_terabyte_is_read_without_being_stored() {
    let length = 1 << 40;
    let (rig, file) = sparse_rig(length, MemoryOptions::default());
    for offset in [0, 4096, 123_456_789 / 4096 * 4096, length - 4096] {
        assert_eq!(rig.read(&file, offset, PAGE), page_at(offset));
    }
    assert_eq!(rig.read(&file, 4096 + 512, 1024), page_at(4096)[512..1536], "a part of a page");
    assert_eq!(rig.disk.stored_bytes(), 0);
}

/// What is written comes back exactly, whole pages and parts, again and again, and costs what
/// differs.
#[test]
fn written_pages_come_back_exactly() {
    let (rig, file) = sparse_rig(1 << 30, MemoryOptions::default());
    let mut random = Random::from_seed(17);
    let mut model: Vec<Vec<u8>> = (0..8).map(|page| page_at(page * PAGE as u64)).collect();
    for _ in 0..500 {
        let page = random.below(8) as usize;
        let sector = random.below(8) as usize * 512;
        let place = sector + random.below(500) as usize;
        model[page][place..place + 12].fill(random.below(256) as u8);
        let offset = (page * PAGE) as u64;
        if random.below(2) == 0 {
            rig.write(&file, offset, &model[page].clone(), Durability::Volatile);
        } else {
            let part = model[page][sector..sector + 512].to_vec();
            rig.write(&file, offset + sector as u64, &part, Durability::Volatile);
        }
        assert_eq!(rig.read(&file, offset, PAGE), model[page]);
    }
    for (page, expected) in model.iter().enumerate() {
        assert_eq!(rig.read(&file, (page * PAGE) as u64, PAGE), *expected);
    }
}

/// A page that is written back as it was generated costs nothing; one with a small change costs a
/// little.
#[test]
fn small_changes_cost_little() {
    let (rig, file) = sparse_rig(1 << 30, MemoryOptions::default());
    let mut page = page_at(PAGE as u64);
    rig.write(&file, PAGE as u64, &page, Durability::Volatile);
    assert_eq!(rig.disk.stored_bytes(), 0);
    for byte in &mut page[100..140] {
        *byte ^= 0x55;
    }
    rig.write(&file, PAGE as u64, &page, Durability::Volatile);
    let stored = rig.disk.stored_bytes();
    assert!((41..=48).contains(&stored), "{stored} bytes for 40 that differ");
    page = page_at(PAGE as u64);
    page[100] ^= 1;
    page[150] ^= 1;
    rig.write(&file, PAGE as u64, &page, Durability::Volatile);
    assert_eq!(rig.disk.stored_bytes(), 7, "two bytes far apart, each with a gap and a length");
}

/// Power cuts treat a sparse file like any other: what is synced stays, what is not may go, all
/// else is as generated.
#[test]
fn power_cuts_work_on_sparse_files() {
    let (rig, file) = sparse_rig(1 << 30, MemoryOptions::default());
    rig.write(&file, 0, &[1; PAGE], Durability::Durable);
    rig.write(&file, PAGE as u64, &[2; PAGE], Durability::Volatile);
    let mut random = Random::from_seed(4);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let image = Rig::over(rig.disk.crash_image(Loss::Drawn, &mut random));
        let files = image.files.clone();
        let file =
            image.run(async move { files.open("big", OpenMode::Read, label()).await.unwrap() });
        assert_eq!(image.read(&file, 0, PAGE), [1; PAGE]);
        assert_eq!(image.read(&file, 2 * PAGE as u64, PAGE), page_at(2 * PAGE as u64));
        let second = image.read(&file, PAGE as u64, PAGE);
        seen.insert((second == page_at(PAGE as u64), second == [2; PAGE]));
    }
    let expected = [(true, false), (false, true), (false, false)];
    assert_eq!(seen, expected.into(), "lost, kept, torn");
}

/// The sparse disk under load: pages written at random over 1 TB stay within a budget per page, and
/// read back.
#[test]
fn memory_grows_with_what_differs() {
    let options = MemoryOptions { tracking: Tracking::Nothing, ..MemoryOptions::default() };
    let (rig, file) = sparse_rig(1 << 40, options);
    let mut random = Random::from_seed(21);
    let mut written = Vec::new();
    for _ in 0..2000 {
        let offset = random.below((1 << 40) / PAGE as u64) * PAGE as u64;
        let mut page = page_at(offset);
        let place = random.below(PAGE as u64 - 100) as usize;
        page[place..place + 100].fill(offset as u8);
        rig.write(&file, offset, &page, Durability::Volatile);
        written.push((offset, page));
    }
    for (offset, page) in &written {
        assert_eq!(rig.read(&file, *offset, PAGE), *page);
    }
    let per_page = rig.disk.stored_bytes() / 2000;
    assert!(per_page <= 110, "{per_page} bytes per page that differs in 100");
}

/// A coding that counts how it is used, to show that the disk goes through it and trusts it alone.
struct Counting(Mutex<(u64, u64)>);

impl Delta for Counting {
    fn encode(&self, _: &[u8], written: &[u8]) -> Vec<u8> {
        self.0.lock().unwrap().0 += 1;
        written.to_vec()
    }

    fn decode(&self, coded: &[u8], unit: &mut [u8]) {
        self.0.lock().unwrap().1 += 1;
        unit.copy_from_slice(coded);
    }
}

/// The engine brings its own coding; the disk uses it for every written page and for no other.
#[test]
fn the_coding_can_be_replaced() {
    let rig = Rig::new(MemoryOptions::default());
    let counting = Arc::new(Counting(Mutex::default()));
    let sparse = Sparse { content: Arc::new(Pages), delta: counting.clone() };
    rig.disk.load_sparse("big", 1 << 20, sparse);
    let files = rig.files.clone();
    let file = rig.run(async move { files.open("big", OpenMode::Write, label()).await.unwrap() });
    rig.write(&file, 0, &[9; PAGE], Durability::Volatile);
    assert_eq!(rig.read(&file, 0, PAGE), [9; PAGE]);
    assert_eq!(rig.read(&file, PAGE as u64, PAGE), page_at(PAGE as u64));
    assert_eq!(*counting.0.lock().unwrap(), (1, 1));
}

/// New bytes are zero on every disk: what the content would generate there belongs to no page of
/// the file.
#[test]
fn an_extension_reads_as_zero() {
    let (rig, file) = sparse_rig(PAGE as u64, MemoryOptions::default());
    let extended = file.clone();
    rig.run(async move { extended.extend(3 * PAGE as u64, label()).await.unwrap() });
    rig.write(&file, 2 * PAGE as u64, &[5; 512], Durability::Volatile);
    let expected = [page_at(0), vec![0; PAGE], vec![5; 512], vec![0; PAGE - 512]].concat();
    assert_eq!(rig.read(&file, 0, 3 * PAGE), expected);
}

/// Whatever the two units are, decoding gives back the written one; a code is never longer than the
/// unit and one byte.
#[test]
fn runs_are_lossless() {
    let mut random = Random::from_seed(77);
    for case in 0..3000 {
        let length = 1 + random.below(600) as usize;
        let mut generated = vec![0; length];
        random.fill(&mut generated);
        let mut written = generated.clone();
        for _ in 0..random.below(12) {
            let start = random.below(length as u64) as usize;
            let end = (start + 1 + random.below(40) as usize).min(length);
            random.fill(&mut written[start..end]);
        }
        if case % 50 == 0 {
            random.fill(&mut written);
        }
        let coded = Runs.encode(&generated, &written);
        assert!(coded.len() <= length + 1, "case {case}");
        assert_eq!(coded.is_empty(), generated == written, "case {case}");
        let mut decoded = generated.clone();
        Runs.decode(&coded, &mut decoded);
        assert_eq!(decoded, written, "case {case}");
    }
}

/// Pages that count how often they are made and vouch for themselves by their place.
#[derive(Default)]
struct Watched(AtomicU64);

impl Watched {
    fn made(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Content for Watched {
    fn unit_bytes(&self) -> usize {
        PAGE
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) {
        self.0.fetch_add(1, Ordering::Relaxed);
        Pages.fill(offset, bytes);
    }

    fn vouch(&self, offset: u64) -> Option<Vouch> {
        Some(Vouch(offset))
    }
}

fn watched_rig() -> (Rig, plimsoll_io::File, Arc<Watched>) {
    let rig = Rig::new(MemoryOptions::default());
    let watched = Arc::new(Watched::default());
    rig.disk.load_sparse("big", 16 * PAGE as u64, Sparse::new(watched.clone()));
    let files = rig.files.clone();
    let file = rig.run(async move { files.open("big", OpenMode::Write, label()).await.unwrap() });
    (rig, file, watched)
}

fn read_unseen(rig: &Rig, file: &plimsoll_io::File, page: usize, pages: usize) -> Buffer {
    let pending = file.read((page * PAGE) as u64, Buffer::zeroed(pages * PAGE), label());
    rig.run(pending).unwrap()
}

/// Pages that are read and not looked at are not made, which is most of what maintenance reads;
/// looking makes them once.
#[test]
fn pages_are_made_when_somebody_looks() {
    let (rig, file, watched) = watched_rig();
    let mut buffer = read_unseen(&rig, &file, 3, 2);
    assert_eq!((buffer.len(), watched.made()), (2 * PAGE, 0));
    assert_eq!(buffer.vouch(PAGE), Some(Vouch(4 * PAGE as u64)));
    assert_eq!(buffer.vouch(17), None, "there no page begins");
    assert_eq!(buffer[PAGE..], page_at(4 * PAGE as u64)[..]);
    assert_eq!(buffer[..PAGE], page_at(3 * PAGE as u64)[..]);
    assert_eq!(watched.made(), 2, "each page once");
    assert_eq!(buffer.vouch(0), Some(Vouch(3 * PAGE as u64)), "still as made");
    buffer[5] = 0;
    assert_eq!(buffer.vouch(0), None, "nobody vouches for what was changed");
    assert_eq!(watched.made(), 2);
}

/// A read is of the moment it was done, however late somebody looks at it: what is written
/// afterwards belongs to later reads.
#[test]
fn a_late_look_sees_what_was_read() {
    let (rig, file, watched) = watched_rig();
    rig.write(&file, PAGE as u64, &[7; PAGE], Durability::Volatile);
    let made = watched.made();
    let early = [read_unseen(&rig, &file, 0, 1), read_unseen(&rig, &file, 1, 1)];
    rig.write(&file, 0, &[8; PAGE], Durability::Volatile);
    rig.write(&file, PAGE as u64, &[9; PAGE], Durability::Volatile);
    assert_eq!(early[0][..], page_at(0)[..]);
    assert_eq!(early[1][..], [7; PAGE]);
    assert_eq!(early[1].vouch(0), None, "the usual coding vouches for nothing");
    assert_eq!(rig.read(&file, 0, PAGE), [8; PAGE]);
    assert!(watched.made() > made);
}

/// Sharing, shortening and changing a promised buffer are ways of looking at it; the bytes are the
/// same on each of them.
#[test]
fn every_way_to_the_bytes_keeps_the_promise() {
    let (rig, file, _) = watched_rig();
    let expected = page_at(PAGE as u64);
    let mut shared = read_unseen(&rig, &file, 1, 1);
    let sharer = shared.share();
    assert_eq!((&shared[..], &sharer[..]), (&expected[..], &expected[..]));
    let mut shortened = read_unseen(&rig, &file, 1, 1);
    shortened.set_length(512);
    assert_eq!((&shortened[..], shortened.vouch(0)), (&expected[..512], None));
    let mut changed = read_unseen(&rig, &file, 1, 1);
    changed[0] = !expected[0];
    assert_eq!(changed[1..], expected[1..]);
    rig.write(&file, 0, &read_unseen(&rig, &file, 1, 1), Durability::Volatile);
    assert_eq!(rig.read(&file, 0, PAGE), expected, "written from one to another place");
}
