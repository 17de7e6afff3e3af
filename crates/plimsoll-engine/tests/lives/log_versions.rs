//! Log that another version of the program wrote. What an older one left is recovered; of a newer
//! one nothing is guessed.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::header_checksum;
use plimsoll_engine::log::HEADER_BYTES;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Context, Durability, Files, MemoryDisk, MemoryOptions, OpenMode};

use crate::life::*;
use crate::support::*;

const MINOR_AT: usize = 36;

fn setup() -> Setup {
    Setup { checkpoint_generations: 20, ..Setup::default() }
}

/// Fills some generations and dies.
fn busy_life(disk: &Rc<MemoryDisk>) {
    live(disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let table = message_table("Messages");
        let table = instance.create_table(1, table).await.unwrap();
        let (id, body) = (table.column("id").unwrap(), table.column("body").unwrap());
        for number in 0..900i32 {
            let transaction = instance.begin();
            let (number, text) = (number.to_le_bytes(), vec![b'B'; 3_000]);
            let values = [(id, Some(&number[..])), (body, Some(&text[..]))];
            table.insert(&transaction, &values).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
        }
        assert!(instance.store().log.durable().generation > 2);
    });
}

/// Gives log files another minor version; answers what they had.
async fn set_minor(files: &Files, paths: &[PathBuf], minor: u8) -> Vec<u8> {
    let context = Context::default();
    let mut before = Vec::new();
    for path in paths {
        let file = files.open(path, OpenMode::Write, context).await.unwrap();
        let mut header = file.read(0, file.allocate(HEADER_BYTES), context).await.unwrap();
        before.push(header[MINOR_AT]);
        header[MINOR_AT] = minor;
        let checksum = header_checksum(&header);
        header[..4].copy_from_slice(&checksum.to_le_bytes());
        file.write(0, header, Durability::Durable, context).await.unwrap();
        file.close(context).await.unwrap();
    }
    before
}

async fn logs(files: &Files) -> Vec<PathBuf> {
    let names = LogNames::new(LOG, "E00");
    let listed = files.list(Path::new(LOG), Context::default()).await.unwrap();
    let paths = listed.into_iter().map(|entry| Path::new(LOG).join(entry.name));
    paths
        .filter(|path| {
            path.extension().is_some_and(|end| end == "log") && *path != names.prepared()
        })
        .collect()
}

/// Why it matters: a program that takes the log of a newer one for its own leaves out what it does
/// not know, and one that refuses what an older one left after a crash leaves its user with
/// databases that cannot be opened.
#[test]
fn log_of_an_older_version_is_recovered_and_of_a_newer_one_refused() {
    let disk = disk_with_databases(8, &setup(), MemoryOptions::default());
    busy_life(&disk);
    live(&disk, |files, handle| async move {
        let logs = logs(&files).await;
        assert!(logs.len() > 2, "{logs:?}");
        // Only the last one is newer, as after a crash of a program that had just been exchanged.
        let last = [LogNames::new(LOG, "E00").current()];
        assert_eq!(set_minor(&files, &last, 4).await, [3]);
        let refused = open(&files, &handle, &setup(), 2).await.map(drop);
        let Err(EngineError::ForeignLog { path, why }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(path, last[0]);
        for said in [".4 was written by a newer version", "use the newer one"] {
            assert!(why.contains(said), "{why}");
        }
        set_minor(&files, &logs, 2).await;
        let (instance, _) = open(&files, &handle, &setup(), 3).await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let rows = dump(&instance, table.row_tree()).await.unwrap();
        assert_eq!(rows.len(), 900);
        drop(table);
        instance.close().await.unwrap();
        // What was written since says so.
        assert_eq!(set_minor(&files, &last, 3).await, [3]);
    });
}
