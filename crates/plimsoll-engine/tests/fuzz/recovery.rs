//! Recovery from a log whose units are whole and whose records are anything: it ends with an error or an instance, without a panic.
//!
//! An input says how much of a true log is kept, and what follows it there, record by record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::LogTime;
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::{Generation, LogReader};
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, Context, MemoryDisk, MemoryOptions, Random};

use crate::support::*;

/// A disk after a crash, and the true log on it.
pub struct Recoveries {
    files: BTreeMap<PathBuf, Vec<u8>>,
    log: Vec<u8>,
    generation: Generation,
    /// Where each of its records starts, and the end.
    starts: Vec<usize>,
    field: Field,
}

fn disk() -> Rc<MemoryDisk> {
    new_disk(&Rc::new(Clock::simulated()), 5, MemoryOptions::ram())
}

impl Recoveries {
    /// Works for a while, with splits and removals, and leaves everything as it is.
    pub fn new() -> Self {
        let (disk, setup) = (disk(), Setup::default());
        let clock = disk.clock().clone();
        let (field, generation) = run_on(&clock, &disk, move |files, handle| async move {
            create_databases(&files, &setup).await.expect("an empty disk");
            let (instance, _) = open(&files, &handle, &setup, 1).await.expect("a new database");
            let field = create_field(&instance, &setup, 40, 700)
                .await
                .expect("an empty database");
            let (mut random, ledger) = (Random::from_seed(8), std::cell::RefCell::default());
            let weights = Weights {
                rollback: 0.2,
                ..Weights::swarm(&mut random)
            };
            for serial in 0..60 {
                one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                    .await
                    .expect("a sound disk");
            }
            let unfinished = instance.begin();
            let (key, data) = (field.key(99_999), vec![7; 300]);
            unfinished
                .insert(field.data[0], &key, &data)
                .await
                .expect("a new key");
            let finished = instance.begin();
            finished
                .insert(field.data[0], &field.key(88_888), &data)
                .await
                .expect("a new key");
            finished.commit(Commit::Durable).await.expect("a sound disk");
            let names = LogNames::new(LOG, "E00");
            let reader = LogReader::new(files.clone(), names.clone(), Context::default());
            let generation = reader
                .read_generation(&names.current())
                .await
                .expect("a sound log");
            std::mem::forget((unfinished, instance));
            (field, generation)
        })
        .expect("the disk answers everything");
        let mut starts: Vec<usize> = generation
            .records(0)
            .map(|record| record.expect("a sound log").0.offset as usize)
            .collect();
        starts.push(generation.payload.len());
        let log = disk.bytes(&generation.path).expect("it was just read");
        Self {
            files: disk.snapshot(),
            log,
            generation,
            starts,
            field,
        }
    }

    /// Recovers from the log that the input describes, and looks at what came of it.
    pub fn take(&self, input: &[u8]) {
        let &[low, high, ref records @ ..] = input else {
            return;
        };
        let kept = usize::from(u16::from_le_bytes([low, high])) % self.starts.len();
        let payload = [&self.generation.payload[..self.starts[kept]], records].concat();
        let disk = disk();
        for (path, bytes) in &self.files {
            disk.load(path, bytes);
        }
        disk.load(&self.generation.path, &self.log_file(&payload));
        let (clock, trees) = (disk.clock().clone(), self.field.data.clone());
        let ended = run_on(&clock, &disk, move |files, handle| async move {
            if let Ok((instance, _)) = open(&files, &handle, &Setup::default(), 2).await {
                let transaction = instance.begin();
                for tree in trees {
                    let _ = transaction.get(tree, b"any key").await;
                }
                drop(transaction);
                let _ = instance.close().await;
            }
            let _ = verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
        });
        assert!(ended.is_ok(), "recovery hangs");
    }

    /// The file of a generation that holds this payload, or as much as fits.
    fn log_file(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = self.log.clone();
        let (header, unit_bytes) = (
            &self.generation.header,
            self.generation.header.framing.unit_bytes(),
        );
        let first = header.framing.first_unit() as usize;
        bytes[first * unit_bytes..].fill(0);
        let payload = &payload[..payload.len().min(header.framing.capacity_bytes() as usize)];
        for (number, piece) in payload.chunks(header.framing.payload_bytes()).enumerate() {
            let unit = &mut bytes[(first + number) * unit_bytes..][..unit_bytes];
            let index = (first + number) as u32;
            header.framing.encode(
                unit,
                header.generation,
                index,
                header.flush + 1,
                piece,
                LogTime::default(),
            );
        }
        bytes
    }

    /// The true log cut at each of several places, with what really followed there.
    pub fn sound(&self) -> Vec<Vec<u8>> {
        let cuts = (0..self.starts.len()).step_by(self.starts.len() / 40);
        cuts.map(|kept| {
            let following = &self.generation.payload[self.starts[kept]..];
            let some = following.len().min(1500);
            [&(kept as u16).to_le_bytes(), &following[..some]].concat()
        })
        .collect()
    }
}
