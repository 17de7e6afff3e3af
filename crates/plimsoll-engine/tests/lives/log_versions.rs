//! Log that another version of the program wrote. What an older one left is recovered; of a newer
//! one nothing is guessed.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::edit::Edit;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::header_checksum;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::{LogRecord, decode_records};
use plimsoll_engine::log::wire::PutWire;
use plimsoll_engine::log::{HEADER_BYTES, Lsn};
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
        assert_eq!(set_minor(&files, &last, 5).await, [4]);
        let refused = open(&files, &handle, &setup(), 2).await.map(drop);
        let Err(EngineError::ForeignLog { path, why }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(path, last[0]);
        for said in [".5 was written by a newer version", "use the newer one"] {
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
        assert_eq!(set_minor(&files, &last, 4).await, [4]);
    });
}

/// A record as versions of the log before 4 have it: the nodes of a page that is made with their
/// whole keys.
fn older_form(record: &LogRecord) -> Vec<u8> {
    let LogRecord::Structure(structure) = record else {
        return record.encode();
    };
    let mut body = vec![structure.database];
    body.put_number(structure.dbtime);
    body.put_number(u64::from(structure.pages_owned));
    body.put_number(structure.pages.len() as u64);
    for page in &structure.pages {
        body.put_number(u64::from(page.page));
        body.put_number(page.dbtime_before);
        body.put_number(page.edits.len() as u64);
        for edit in &page.edits {
            let Edit::Format { object, flags, previous, next, external, nodes } = edit else {
                edit.encode(&mut body);
                continue;
            };
            body.push(1);
            for number in [*object, *flags, *previous, *next] {
                body.put_number(u64::from(number));
            }
            body.put_bytes(external);
            body.put_number(nodes.len() as u64);
            for node in nodes {
                body.push(node.flags());
                body.put_bytes(&node.key(external));
                body.put_bytes(node.data());
            }
        }
    }
    let mut wire = vec![0x85];
    wire.put_bytes(&body);
    wire
}

/// Writes the only generation again, its records in the older form.
async fn make_older(files: &Files, setup: &Setup) {
    let (names, context) = (LogNames::new(LOG, "E00"), Context::default());
    let reader = LogReader::new(files.clone(), names.clone(), context);
    assert_eq!(reader.generations().await.unwrap().len(), 1);
    let read = reader.read_generation(&names.current()).await.unwrap();
    let (number, framing) = (read.header.generation, setup.framing);
    let records = decode_records(&read.payload, Lsn::new(number, 0)).unwrap();
    let older: Vec<u8> = records.iter().flat_map(|(_, record)| older_form(record)).collect();
    assert!(older.len() > read.payload.len(), "no page was made of keys that begin alike");
    let file = files.open(&names.current(), OpenMode::Write, context).await.unwrap();
    let units_bytes = older.len().div_ceil(framing.payload_bytes()) * framing.unit_bytes();
    let mut buffer = file.allocate(units_bytes);
    let units = buffer.chunks_exact_mut(framing.unit_bytes());
    let payloads = older.chunks(framing.payload_bytes());
    for ((unit, payload), index) in units.zip(payloads).zip(framing.first_unit()..) {
        let flush = read.header.flush + 1;
        framing.encode(unit, number, index, flush, payload, read.header.created);
    }
    file.write(HEADER_BYTES as u64, buffer, Durability::Durable, context).await.unwrap();
    file.close(context).await.unwrap();
    set_minor(files, &[names.current()], 3).await;
}

/// Why it matters: who exchanges the program after a crash has nothing but the log of the older
/// one.
#[test]
fn pages_that_an_older_log_makes_of_whole_keys_are_recovered() {
    let setup = setup();
    let disk = disk_with_databases(9, &setup, MemoryOptions::default());
    let key = |number: u64| format!("{}/{number:04}", "folder".repeat(20)).into_bytes();
    let tree = live(&disk, {
        let setup = setup.clone();
        move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
            for number in 0..400 {
                let transaction = instance.begin();
                let scattered = number * 77 % 400;
                transaction.insert(tree, &key(scattered), &[7; 60]).await.unwrap();
                transaction.commit(Commit::Durable).await.unwrap();
            }
            tree
        }
    });
    live(&disk, move |files, handle| async move {
        make_older(&files, &setup).await;
        let (instance, report) = open(&files, &handle, &setup, 2).await.unwrap();
        assert!(report.recovered);
        let rows: Vec<_> = dump(&instance, tree).await.unwrap().into_keys().collect();
        assert_eq!(rows, (0..400).map(key).collect::<Vec<_>>());
        instance.close().await.unwrap();
    });
}
