//! Recovery from a log whose units are whole and whose records are anything: it ends with an error
//! or an instance, without a panic.
//!
//! An input says how much of a true log is kept, and what follows it there, record by record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::LogTime;
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::edit::{Edit, RowChange};
use plimsoll_engine::error::Result;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::{Generation, LogReader};
use plimsoll_engine::log::record::{ImageRecord, LogRecord, RowRecord};
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
            let field = create_field(&instance, &setup, 40, 700).await.expect("an empty database");
            let (mut random, ledger) = (Random::from_seed(8), std::cell::RefCell::default());
            let weights = Weights { rollback: 0.2, ..Weights::swarm(&mut random) };
            for serial in 0..60 {
                one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                    .await
                    .expect("a sound disk");
            }
            let unfinished = instance.begin();
            let (key, data) = (field.key(99_999), vec![7; 300]);
            unfinished.insert(field.data[0], &key, &data).await.expect("a new key");
            let finished = instance.begin();
            finished.insert(field.data[0], &field.key(88_888), &data).await.expect("a new key");
            finished.commit(Commit::Durable).await.expect("a sound disk");
            let names = LogNames::new(LOG, "E00");
            let reader = LogReader::new(files.clone(), names.clone(), Context::default());
            let generation = reader.read_generation(&names.current()).await.expect("a sound log");
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
        Self { files: disk.snapshot(), log, generation, starts, field }
    }

    /// Recovers from the log that the input describes, and looks at what came of it.
    pub fn take(&self, input: &[u8]) {
        let _ = self.recover(input);
    }

    /// The same, with what recovery said.
    pub fn recover(&self, input: &[u8]) -> Result<()> {
        let &[low, high, ref records @ ..] = input else {
            return Ok(());
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
            let opened = open(&files, &handle, &Setup::default(), 2).await;
            let said = opened.as_ref().map(|_| ()).map_err(Clone::clone);
            if let Ok((instance, _)) = opened {
                let transaction = instance.begin();
                for tree in trees {
                    let _ = transaction.get(tree, b"any key").await;
                }
                drop(transaction);
                let _ = instance.close().await;
            }
            let _ = verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
            said
        });
        ended.expect("recovery hangs")
    }

    /// The file of a generation that holds this payload, or as much as fits.
    fn log_file(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = self.log.clone();
        let (header, unit_bytes) =
            (&self.generation.header, self.generation.header.framing.unit_bytes());
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
                header.flush.wrapping_add(1),
                piece,
                LogTime::default(),
            );
        }
        bytes
    }

    /// Logs whose last record, or what takes it back, does not fit the page it is for; what
    /// recovery has to say of each.
    pub fn misfits(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut inputs = Vec::new();
        for kept in 0..self.starts.len() - 1 {
            let record = LogRecord::decode(&self.generation.payload[self.starts[kept]..]);
            let (record, _) = record.expect("a true log").expect("a record");
            inputs.extend(misfits(&record).map(|(said, wrong)| (said, following(kept, &[wrong]))));
            if let LogRecord::Row(row) = &record
                && let RowChange::Insert { data } = &row.change
            {
                inputs.push(("other data", following(kept, &taken_back_wrongly(row, data))));
            }
        }
        inputs
    }

    /// The true log cut at each of several places, with what really followed there.
    pub fn sound(&self) -> Vec<Vec<u8>> {
        let misfits = self.misfits().into_iter().step_by(9).map(|(_, input)| input);
        let cuts = (0..self.starts.len()).step_by(self.starts.len() / 40);
        cuts.map(|kept| {
            let following = &self.generation.payload[self.starts[kept]..];
            let some = following.len().min(1500);
            [&(kept as u16).to_le_bytes(), &following[..some]].concat()
        })
        .chain(misfits)
        .collect()
    }
}

/// The input that keeps so many true records and has these behind them.
fn following(kept: usize, records: &[LogRecord]) -> Vec<u8> {
    let mut input = (kept as u16).to_le_bytes().to_vec();
    records.iter().for_each(|record| input.extend(record.encode()));
    input
}

/// What a true record may have been changed into so that it no longer fits its page.
fn misfits(record: &LogRecord) -> impl Iterator<Item = (&'static str, LogRecord)> {
    let mut wrong = Vec::new();
    match record {
        LogRecord::Row(row) => {
            let changed = |line, change| LogRecord::Row(RowRecord { line, change, ..row.clone() });
            wrong.push(("line", changed(row.line + 500, row.change.clone())));
            if let RowChange::Insert { .. } = row.change {
                wrong.push(("room", changed(row.line, RowChange::Insert { data: vec![1; 4070] })));
            }
            if let RowChange::Splice { at, old, new } = &row.change {
                let old = old.iter().map(|byte| !byte).chain([0; 800]).collect();
                let (at, new) = (*at, new.clone());
                wrong.push(("other data", changed(row.line, RowChange::Splice { at, old, new })));
            }
        }
        LogRecord::Structure(structure) => {
            let with_edit = |edit| {
                let mut changed = structure.clone();
                changed.pages[0].edits.push(edit);
                LogRecord::Structure(changed)
            };
            wrong.push(("line", with_edit(Edit::Remove { line: 900 })));
            let external = vec![1; 4090];
            wrong.push(("room", with_edit(Edit::SetExternal { external })));
        }
        LogRecord::Image(image) => {
            let front = vec![0xFF; image.front.len()];
            wrong.push(("no page", LogRecord::Image(ImageRecord { front, ..image.clone() })));
        }
        _ => {}
    }
    wrong.into_iter()
}

/// A row that somebody changes who has not finished when somebody else, who has, changes it once
/// more.
fn taken_back_wrongly(inserted: &RowRecord, data: &[u8]) -> [LogRecord; 4] {
    let (mine, other) = (vec![data[0]], vec![!data[0]]);
    let splice = |transaction, later, old: &Vec<u8>, new: &Vec<u8>| {
        LogRecord::Row(RowRecord {
            transaction,
            dbtime: inserted.dbtime + later,
            dbtime_before: inserted.dbtime + later - 1,
            change: RowChange::Splice { at: 0, old: old.clone(), new: new.clone() },
            ..inserted.clone()
        })
    };
    [
        LogRecord::Row(inserted.clone()),
        splice(900_000, 1, &mine, &other),
        splice(900_001, 2, &other, &mine),
        LogRecord::Commit { transaction: 900_001 },
    ]
}
