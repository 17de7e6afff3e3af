//! A closed database with everything that an engine keeps in one: trees of rows and of keys, long
//! values, a catalog that has grown, free pages, and the trees that keep account of the space. And
//! the look at it after a damage.

use std::ops::Range;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::system;
use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::maintenance::{MaintenanceOptions, MaintenanceProgress, maintain};
use plimsoll_engine::page::{PageView, page_flags};
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::verify::{VerifyOptions, verify};
use plimsoll_io::{Clock, Files, Handle, Loss, MemoryDisk, MemoryOptions, Random};

use crate::damage::Fate;
use crate::support::*;

/// Rows of the table, each fourth with a long value.
const MESSAGES: u64 = 32;

/// Times everything is written, each time with a clean stop: as often as it takes for a flush type
/// to come back.
const VERSIONS: u64 = 4;

/// A closed database, and what its file held before the last changes and the changes before those.
pub struct Patient {
    pub disk: Rc<MemoryDisk>,
    pub size: PageSize,
    pub tree: Tree,
    pub rows: u64,
    pub old: Vec<Vec<u8>>,
    pub new: Vec<u8>,
    /// Every page that was ever written.
    pub pages: Vec<u32>,
    /// What is seen of it undamaged.
    sound: Seen,
    sound_deep: String,
}

/// What looking at the file page by page has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub correctable: u64,
    /// Bad, in the wrong place, unreadable or never written.
    pub damaged: u64,
}

fn setup(size: PageSize) -> Setup {
    Setup {
        size,
        extension_pages: if size == PageSize::KIB_4 { 64 } else { 16 },
        ..Setup::default()
    }
}

fn row(number: u64, version: u64) -> Vec<u8> {
    let mut data = vec![0; 300];
    Random::from_seed(number * 10 + version).fill(&mut data);
    data
}

fn body(number: u64, version: u64) -> Vec<u8> {
    let bytes = if number.is_multiple_of(4) { 9_000 + number * 100 } else { 200 };
    let mut body = vec![0; bytes as usize];
    Random::from_seed(number * 10 + version).fill(&mut body);
    // Values that begin below 0x40 could be taken for compressed ones.
    body[0] = 0x41;
    body
}

fn folder(number: u64, version: u64) -> [u8; 4] {
    ((number * 7 + version) as i32 % 5).to_le_bytes()
}

async fn write_message(
    instance: &Instance,
    table: &OpenTable,
    number: u64,
    version: u64,
) -> Result<()> {
    let transaction = instance.begin();
    let id = (number as i32).to_le_bytes();
    let (folder, body) = (folder(number, version), body(number, version));
    let values = [
        (table.column("id")?, Some(&id[..])),
        (table.column("folder")?, Some(&folder[..])),
        (table.column("body")?, Some(&body[..])),
    ];
    if version == 1 {
        table.insert(&transaction, &values).await?;
    } else {
        let key = table.key(&[Some(&id)])?;
        table.update(&transaction, &key, &values[1..]).await?;
    }
    transaction.commit(Commit::Lazy).await
}

/// Long, so that a branch has few children and small pages make trees of three levels.
fn long_key(number: u64) -> Vec<u8> {
    [&[b'k'; 500][..], &row_key(number)].concat()
}

async fn write_row(instance: &Instance, tree: Tree, number: u64, version: u64) -> Result<()> {
    let transaction = instance.begin();
    let (key, data) = (long_key(number), row(number, version));
    if version == 1 {
        transaction.insert(tree, &key, &data).await?;
    } else {
        transaction.replace(tree, &key, &data).await?;
    }
    transaction.commit(Commit::Lazy).await
}

/// Writes everything several times, with clean stops in between; answers the tree and the file as
/// it was at each of them.
async fn grow(
    files: Files,
    handle: Handle,
    disk: Rc<MemoryDisk>,
    size: PageSize,
    rows: u64,
) -> (Tree, Vec<Vec<u8>>) {
    let setup = setup(size);
    create_databases(&files, &setup).await.unwrap();
    let (instance, _) = open(&files, &handle, &setup, 0).await.unwrap();
    let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
    instance.create_table(1, message_table("Messages")).await.unwrap();
    instance.close().await.unwrap();
    let mut written = Vec::new();
    for version in 1..=VERSIONS {
        let (instance, _) = open(&files, &handle, &setup, version).await.unwrap();
        // So that the catalog changes as well.
        let name = format!("Later {version}");
        instance.create_table(1, message_table(&name)).await.unwrap();
        for number in 0..rows {
            write_row(&instance, tree, number, version).await.unwrap();
        }
        let table = instance.open_table(1, "Messages").await.unwrap();
        for number in 0..MESSAGES {
            write_message(&instance, &table, number, version).await.unwrap();
        }
        drop(table);
        instance.close().await.unwrap();
        written.push(disk.bytes(database_path(1)).unwrap());
    }
    (tree, written)
}

impl Patient {
    pub fn new(size: PageSize) -> Self {
        let disk = new_disk(&Rc::new(Clock::simulated()), 3, MemoryOptions::default());
        // Enough for some branches and leaves, whatever the size.
        let rows = 60 * (size.bytes() / 1024) as u64;
        let world = disk.clone();
        let (tree, mut old) = run_on(&disk.clock().clone(), &disk, move |files, handle| {
            grow(files, handle, world, size, rows)
        })
        .unwrap();
        let new = old.pop().unwrap();
        let mut patient = Patient {
            disk,
            size,
            tree,
            rows,
            old,
            new,
            pages: Vec::new(),
            sound: Seen::default(),
            sound_deep: String::new(),
        };
        patient.pages = (1..(patient.new.len() / size.bytes()) as u32 - 1)
            .filter(|page| patient.new[patient.place(*page)].iter().any(|byte| *byte != 0))
            .collect();
        let copy = patient.copy(&patient.new);
        patient.sound = patient.look(&copy).1;
        patient.sound_deep = patient.deep(&copy);
        patient
    }

    /// Where a page lies in the file.
    pub fn place(&self, page: u32) -> Range<usize> {
        let start = self.size.offset_of(page) as usize;
        start..start + self.size.bytes()
    }

    /// What a page held before its last changes, unless it was the same then or had not been
    /// written.
    pub fn before(&self, page: u32, random: &mut Random) -> Option<&[u8]> {
        let range = self.place(page);
        let old = &self.old[random.below(self.old.len() as u64) as usize];
        let old = old.get(range.clone())?;
        (old != &self.new[range] && old.iter().any(|byte| *byte != 0)).then_some(old)
    }

    /// What a page is there for.
    pub fn role(&self, page: u32) -> &'static str {
        let view = PageView::new(&self.new[self.place(page)], self.size);
        let (object, flags) = (view.object(), view.flags());
        if flags & page_flags::EMPTY != 0 {
            "free"
        } else if flags & page_flags::SPACE != 0 {
            "space"
        } else if object == system::DATABASE_OBJECT {
            "database root"
        } else if object <= system::ROOT_INDEX_OBJECT {
            "catalog"
        } else if flags & page_flags::LONG_VALUE != 0 {
            "long values"
        } else if flags & page_flags::INDEX != 0 {
            "index"
        } else if view.is_root() {
            "root"
        } else if view.is_leaf() {
            "leaf"
        } else {
            "branch"
        }
    }

    /// Another disk with this file instead.
    pub fn copy(&self, bytes: &[u8]) -> Rc<MemoryDisk> {
        let copy = self.disk.crash_image(Loss::Nothing, &mut Random::from_seed(1));
        copy.load(database_path(1), bytes);
        copy
    }

    /// Looks at the file, opens the database, reads every row and every value, and has every page
    /// checked. Where nothing shows by then, sees whether the pages make a database.
    pub fn examine(&self, damaged: &Rc<MemoryDisk>) -> (Fate, Seen) {
        let (mut fate, mut seen) = self.look(damaged);
        if fate == Fate::Harmless && seen.correctable > self.sound.correctable {
            fate = Fate::Mended;
        } else if fate == Fate::Harmless
            && (seen != self.sound || self.deep(damaged) != self.sound_deep)
        {
            fate = Fate::Noticed;
        }
        seen.correctable -= self.sound.correctable;
        seen.damaged -= self.sound.damaged.min(seen.damaged);
        (fate, seen)
    }

    /// What the deep look says of a database.
    fn deep(&self, disk: &Rc<MemoryDisk>) -> String {
        run_on(&disk.clock().clone(), disk, |files, handle| async move {
            match verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await {
                Ok(deep) => format!("{:?} {:?}", deep.findings, deep.unchecked),
                Err(error) => error.to_string(),
            }
        })
        .unwrap()
    }

    fn look(&self, damaged: &Rc<MemoryDisk>) -> (Fate, Seen) {
        let (tree, rows, setup) = (self.tree, self.rows, setup(self.size));
        run_on(&damaged.clock().clone(), damaged, move |files, handle| async move {
            let seen = look_at_file(&files, &handle).await;
            let (instance, _) = match open(&files, &handle, &setup, 9).await {
                Ok(opened) => opened,
                Err(error) => return (refusal(&error), seen),
            };
            let mut fate = read_rows(&instance, tree, rows).await;
            fate = fate.max(read_messages(&instance).await.unwrap_or_else(|error| refusal(&error)));
            let progress = Rc::new(MaintenanceProgress::default());
            let options = MaintenanceOptions { read_bytes: 256 * 1024, pause_ns: 1_000 };
            let walk = handle.spawn(maintain(instance.clone(), 1, options, progress.clone()));
            while progress.passes.get() == 0 {
                handle.sleep(1_000_000).await;
            }
            progress.stop.set(true);
            walk.await.unwrap();
            if !progress.damaged.borrow().is_empty() {
                fate = fate.max(Fate::Noticed);
            }
            let _ = instance.close().await;
            (fate, seen)
        })
        .unwrap()
    }
}

/// Damage may be refused with these errors and with no others.
fn refusal(error: &EngineError) -> Fate {
    match error {
        EngineError::DamagedPage { .. } | EngineError::BadHeader { .. } => Fate::Refused,
        // Pages that are sound each by itself do not fit together.
        EngineError::BadRow(_) | EngineError::RowNotFound => Fate::Misfit,
        error => panic!("this is no way to refuse damage: {error}"),
    }
}

async fn look_at_file(files: &Files, handle: &Handle) -> Seen {
    let report = verify(files, handle, &[database_path(1)], &VerifyOptions::default()).await;
    let file = &report.files[0];
    Seen {
        correctable: file.correctable,
        damaged: file.damaged() - file.correctable + file.uninitialized,
    }
}

async fn read_rows(instance: &Instance, tree: Tree, rows: u64) -> Fate {
    let transaction = instance.begin();
    let mut fate = Fate::Harmless;
    for number in 0..rows {
        fate = fate.max(match transaction.get(tree, &long_key(number)).await {
            Ok(found) if found.as_ref() == Some(&row(number, VERSIONS)) => Fate::Harmless,
            Ok(_) => Fate::Missed,
            Err(error) => refusal(&error),
        });
    }
    fate
}

/// Every message by its key with its body, and then all of them by their folders.
async fn read_messages(instance: &Instance) -> Result<Fate> {
    let table = match instance.open_table(1, "Messages").await {
        Err(EngineError::NoSuchObject { .. }) => return Ok(Fate::Missed),
        opened => opened?,
    };
    let transaction = instance.begin();
    let mut fate = Fate::Harmless;
    for number in 0..MESSAGES {
        let key = table.key(&[Some(&(number as i32).to_le_bytes())])?;
        let read = async {
            let Some(found) = table.get(&transaction, &key).await? else {
                return Ok(Fate::Missed);
            };
            let body_found = table.value(&transaction, &found, table.column("body")?).await?;
            let is_right = body_found.as_ref() == Some(&body(number, VERSIONS));
            Ok(if is_right { Fate::Harmless } else { Fate::Missed })
        };
        fate = fate.max(read.await.unwrap_or_else(|error| refusal(&error)));
    }
    let index = table.index("by folder")?;
    let mut cursor = table.scan(&transaction, index, KeyRange::all(), Direction::Forward);
    let mut count = 0;
    loop {
        match cursor.next().await {
            Ok(Some(_)) if count < MESSAGES => count += 1,
            Ok(None) if count == MESSAGES => return Ok(fate),
            Ok(_) => return Ok(Fate::Missed),
            Err(error) => return Ok(fate.max(refusal(&error))),
        }
    }
}
