//! Changes of a schema beside a backup, and redone step by step on a copy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::instance::{Instance, Recovery};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_io::{Clock, Loss, MemoryDisk, MemoryOptions, Random};

use crate::life::*;
use crate::support::*;
use crate::world::*;

fn is_log(path: &Path) -> bool {
    path.starts_with("log") && path.extension().is_some_and(|end| end == "log")
}

fn disk_of(files: &BTreeMap<PathBuf, Vec<u8>>) -> Rc<MemoryDisk> {
    let disk = new_disk(&Rc::new(Clock::simulated()), 5, MemoryOptions::default());
    for (path, bytes) in files {
        disk.load(path, bytes);
    }
    disk
}

/// Everything but the log as it was when the copy began, and all of the log.
fn with_log_of(
    mut copy: BTreeMap<PathBuf, Vec<u8>>,
    disk: &MemoryDisk,
) -> BTreeMap<PathBuf, Vec<u8>> {
    copy.retain(|path, _| !is_log(path));
    copy.extend(disk.snapshot().into_iter().filter(|(path, _)| is_log(path)));
    copy
}

/// Takes a backup of which `before` pieces are read before the change is begun, and the rest next
/// to it.
async fn back_up_beside(
    instance: &Rc<Instance>,
    change: Change,
    before: usize,
    handle: &plimsoll_io::Handle,
) -> Vec<u8> {
    let mut backup = Backup::start(instance, 1, 8 * 4096).unwrap();
    let mut pages = BTreeMap::new();
    let mut changing = None;
    for piece in 0.. {
        if piece == before {
            let instance = instance.clone();
            changing = Some(handle.spawn(async move { carry_out(&instance, change).await }));
        }
        let Some(chunk) = backup.next_chunk().await.unwrap() else { break };
        pages.insert(chunk.first, chunk.bytes.to_vec());
    }
    if let Some(changing) = changing {
        changing.await.unwrap();
    }
    let report = backup.finish().await.unwrap();
    let header = backup.header_of_copy(&report).encode();
    let mut bytes = [&header[..], &header[..]].concat();
    for (first, run) in pages {
        let offset = PageSize::KIB_4.offset_of(first) as usize;
        bytes.resize(bytes.len().max(offset + run.len()), 0);
        bytes[offset..offset + run.len()].copy_from_slice(&run);
    }
    bytes
}

/// A copy whose pages are of before, during and after the change is what the change made of it, and
/// no page of it is lost.
#[test]
fn a_backup_beside_a_change_has_it_whole() {
    let base = base(51);
    for change in ALL {
        for before in [0, 1, 3, 6, 12] {
            let disk = copy(&base);
            let of_disk = disk.clone();
            let copied = live(&disk, move |files, handle| async move {
                let instance = open_with(&files, &handle, options(&setup())).await;
                let bytes = back_up_beside(&instance, change, before, &handle).await;
                let mut copied = of_disk.snapshot();
                copied.retain(|path, _| is_log(path));
                copied.insert(database_path(1), bytes);
                copied
            });
            let label = format!("{change:?} after {before} pieces");
            assert!(look_after(&disk_of(&copied), change, label));
        }
    }
}

/// A copy that follows the log generation by generation, and is paused after each, also in the
/// middle of a change: what the change has begun is not forgotten.
#[test]
fn a_change_is_redone_step_by_step_over_pauses_and_power_cuts() {
    let base = base(52);
    for change in ALL {
        let disk = copy(&base);
        let mut setup = setup();
        setup.circular = false;
        let (of_disk, of_life) = (disk.clone(), setup.clone());
        let early = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&of_life)).await;
            instance.checkpoint().await.unwrap();
            let early = of_disk.snapshot();
            // Generations end all the time, so that some end in the middle of the change.
            let (rolling, beside) = (instance.clone(), handle.clone());
            drop(handle.spawn(async move {
                loop {
                    let log = &rolling.store().log;
                    if log.make_durable(log.begin_generation().end).await.is_err() {
                        return;
                    }
                    beside.sleep(200_000).await;
                }
            }));
            carry_out(&instance, change).await.unwrap();
            make_durable(&instance).await;
            early
        });
        let mut replica = disk_of(&with_log_of(early, &disk));
        let mut random = Random::from_seed(52);
        let mut steps = 0;
        loop {
            let setup = setup.clone();
            let more = live(&replica, move |files, handle| async move {
                let recovery = Recovery::begin(files, handle, options(&setup)).await;
                let mut recovery = recovery.unwrap();
                let mut fed = 0;
                while fed < 2 + steps / 8 && recovery.feed_next().await.unwrap() {
                    fed += 1;
                }
                recovery.pause().await.unwrap();
                fed == 2 + steps / 8
            });
            replica.power_cut();
            replica = replica.crash_image(Loss::Drawn, &mut random);
            steps += 1;
            if !more || steps > 60 {
                break;
            }
        }
        assert!(steps > 2, "{change:?}: {steps} steps");
        assert!(look_after(&replica, change, format!("{change:?}, redone step by step")));
    }
}
