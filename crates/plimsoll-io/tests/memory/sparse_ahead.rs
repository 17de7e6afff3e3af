//! A second thread may code what is written to a sparse file. Nobody may be able to tell from the
//! file: a simulated run is a function of its seed, however fast which thread is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, available_parallelism, current};

use plimsoll_io::{
    Buffer, Coding, Content, Delta, Durability, File, MemoryOptions, OpenMode, Random, Runs,
    Sparse, Tracking,
};

use crate::rig::{Rig, label};

const PAGE: usize = 4096;
const PAGES: u64 = 600;

struct Pages;

impl Content for Pages {
    fn unit_bytes(&self) -> usize {
        PAGE
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) {
        Random::from_seed(offset).fill(bytes);
    }
}

fn page_at(offset: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    Pages.fill(offset, &mut bytes);
    bytes
}

/// The usual coding; it notes who codes and, now and then, is slow, so that batches are waited for.
#[derive(Default)]
struct Watched(Mutex<BTreeSet<String>>);

fn name_of(thread: ThreadId) -> String {
    format!("{thread:?}")
}

impl Delta for Watched {
    fn encode(&self, generated: &[u8], written: &[u8]) -> Vec<u8> {
        self.0.lock().unwrap().insert(name_of(current().id()));
        for _ in 0..u32::from(written[0]) {
            std::hint::spin_loop();
        }
        Runs.encode(generated, written)
    }

    fn decode(&self, coded: &[u8], unit: &mut [u8]) {
        Runs.decode(coded, unit);
    }
}

fn rig_with(coding: Coding, delta: Arc<dyn Delta>) -> (Rig, File) {
    let rig =
        Rig::new(MemoryOptions { tracking: Tracking::Nothing, coding, ..MemoryOptions::default() });
    let content = Arc::new(Pages);
    rig.disk.load_sparse("big", PAGES * PAGE as u64, Sparse { content, delta });
    let files = rig.files.clone();
    let file = rig.run(async move { files.open("big", OpenMode::Write, label()).await.unwrap() });
    (rig, file)
}

/// Writes bytes from memory that its writer also keeps, as a cache does with its pages; returns
/// what the writer keeps.
fn write_shared(rig: &Rig, file: &File, offset: u64, bytes: &[u8]) -> Buffer {
    let mut kept = Buffer::copy_of(bytes);
    let pending = file.write(offset, kept.share(), Durability::Volatile, label());
    drop(rig.run(pending).unwrap());
    kept
}

/// Changes one page, or several in one write.
fn changed(random: &mut Random, page: u64) -> Vec<u8> {
    let pages = (1 + random.below(3)).min(PAGES - page);
    let mut bytes: Vec<u8> =
        (page..page + pages).flat_map(|page| page_at(page * PAGE as u64)).collect();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.below(256) as u8;
    }
    bytes
}

/// Random writes of whole and partial pages from shared and from own memory, and reads in between;
/// returns what is stored and how much.
fn work(coding: Coding, delta: Arc<dyn Delta>) -> (Vec<u8>, u64) {
    let (rig, file) = rig_with(coding, delta);
    let mut random = Random::from_seed(5);
    let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for step in 0..2500 {
        let page = random.below(PAGES);
        let offset = page * PAGE as u64;
        match random.below(10) {
            0 => {
                let expected = model.get(&page).cloned().unwrap_or_else(|| page_at(offset));
                assert_eq!(rig.read(&file, offset, PAGE), expected, "step {step}, page {page}");
            }
            1 => {
                let part = [step as u8; 512];
                rig.write(&file, offset + 1024, &part, Durability::Volatile);
                let written = model.entry(page).or_insert_with(|| page_at(offset));
                written[1024..1536].copy_from_slice(&part);
            }
            kind => {
                let bytes = changed(&mut random, page);
                if kind == 2 {
                    rig.write(&file, offset, &bytes, Durability::Volatile);
                } else {
                    write_shared(&rig, &file, offset, &bytes);
                }
                for (index, written) in bytes.chunks_exact(PAGE).enumerate() {
                    model.insert(page + index as u64, written.to_vec());
                }
            }
        }
    }
    let stored = rig.disk.stored_bytes();
    let bytes = rig.disk.bytes("big").unwrap();
    for (page, written) in &model {
        let start = *page as usize * PAGE;
        assert_eq!(bytes[start..start + PAGE], written[..], "page {page}");
    }
    (bytes, stored)
}

/// Every read sees what was written last, coded or not, and in the end the same is stored with and
/// without a second thread.
#[test]
fn a_second_thread_cannot_be_told_from_the_file() {
    let watched = Arc::new(Watched::default());
    let ahead = work(Coding::Ahead, watched.clone());
    assert!(ahead == work(Coding::AtOnce, Arc::new(Runs)));
    let coders = watched.0.lock().unwrap();
    let has_another = coders.iter().any(|name| *name != name_of(current().id()));
    assert_eq!(has_another, available_parallelism().unwrap().get() > 1, "{coders:?}");
}

/// What waits to be coded is the writer's memory: until it is coded nobody can change it, and then
/// the writer has it for himself again.
#[test]
fn memory_is_shared_until_it_is_coded() {
    let (rig, file) = rig_with(Coding::Ahead, Arc::new(Runs));
    let mut kept: Vec<Buffer> = (0..100)
        .map(|page| write_shared(&rig, &file, page * PAGE as u64, &[page as u8; PAGE]))
        .collect();
    let shared = kept.iter().filter(|buffer| buffer.is_shared()).count();
    assert_eq!(shared > 0, available_parallelism().unwrap().get() > 1);
    assert!(rig.disk.stored_bytes() > 0, "asking for it is waiting for it");
    for buffer in &mut kept {
        buffer.fill(0xEE);
    }
    for page in 0..100 {
        assert_eq!(rig.read(&file, page * PAGE as u64, PAGE), [page as u8; PAGE]);
    }
}

/// A disk may go while pages wait or are being coded: a run that fails drops everything where it
/// stands.
#[test]
fn a_disk_may_go_while_pages_wait() {
    for pages in [1, 31, 32, 33, 64, 90] {
        let (rig, file) = rig_with(Coding::Ahead, Arc::new(Watched::default()));
        for page in 0..pages {
            drop(write_shared(&rig, &file, page * PAGE as u64, &[0xFF; PAGE]));
        }
        drop((file, rig));
    }
}
