//! A disk that forgets one class of syncs: it acknowledges them and does not pass them on.
//! Everything else goes to the memory disk below, whose crash images then show what the forgotten
//! sync was for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{
    Action, Answer, Disk, DiskFacts, Durability, FileId, MemoryDisk, Nanos, OpenMode, Operation,
    Purpose,
};

/// Every place where the engine makes something durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The durable write of log units.
    LogWrite,
    /// The durable write of a generation's header.
    GenerationHeader,
    /// The sync of a formatted generation.
    GenerationFormat,
    /// The directory sync after the full generation got its number.
    RolloverOfOld,
    /// The directory sync after the new generation became the current one.
    RolloverToNew,
    /// The durable write of the first copy of a database header.
    HeaderFirst,
    /// The durable write of the second copy.
    HeaderSecond,
    /// The sync of a database before the checkpoint passes its writes.
    DatabasePages,
    /// The sync of a database that was made longer.
    DatabaseLength,
    /// The sync of a new database.
    DatabaseCreated,
    /// The directory sync of a new database.
    DatabaseName,
    /// The sync of the flush map before the checkpoint.
    FlushMapSaved,
    /// The sync of a new flush map.
    FlushMapCreated,
    /// The directory sync of a new flush map.
    FlushMapName,
    /// The sync of a generation that recovery, or a new generation, builds on.
    LogRead,
    /// The durable writes of the checkpoint file.
    CheckpointBlocks,
    /// The sync of a new checkpoint file.
    CheckpointCreated,
    /// The directory sync of a new checkpoint file.
    CheckpointName,
}

impl Sync {
    pub const ALL: [Sync; 18] = [
        Sync::LogWrite,
        Sync::GenerationHeader,
        Sync::GenerationFormat,
        Sync::RolloverOfOld,
        Sync::RolloverToNew,
        Sync::HeaderFirst,
        Sync::HeaderSecond,
        Sync::DatabasePages,
        Sync::DatabaseLength,
        Sync::DatabaseCreated,
        Sync::DatabaseName,
        Sync::FlushMapSaved,
        Sync::FlushMapCreated,
        Sync::FlushMapName,
        Sync::LogRead,
        Sync::CheckpointBlocks,
        Sync::CheckpointCreated,
        Sync::CheckpointName,
    ];
}

/// See the module text.
pub struct Forgetful {
    below: Rc<MemoryDisk>,
    forget: Option<Sync>,
    paths: Rc<RefCell<BTreeMap<FileId, PathBuf>>>,
    /// The path that was last created or renamed to, by directory: what the next sync of that
    /// directory is for.
    last_named: RefCell<BTreeMap<PathBuf, PathBuf>>,
    /// Files created and not synced since, and files made longer and not synced since.
    created: Rc<RefCell<Vec<FileId>>>,
    extended: RefCell<Vec<FileId>>,
    seen: RefCell<BTreeMap<String, u64>>,
    forgotten: Cell<u64>,
}

impl Forgetful {
    pub fn new(below: Rc<MemoryDisk>, forget: Option<Sync>) -> Rc<Self> {
        Rc::new(Self {
            below,
            forget,
            paths: Rc::default(),
            last_named: RefCell::default(),
            created: Rc::default(),
            extended: RefCell::default(),
            seen: RefCell::default(),
            forgotten: Cell::new(0),
        })
    }

    /// How many operations were forgotten.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.get()
    }

    /// How often each class came by, and what durable operation belongs to none: that is one the
    /// list above misses.
    pub fn seen(&self) -> BTreeMap<String, u64> {
        self.seen.borrow().clone()
    }

    fn path_of(&self, file: FileId) -> PathBuf {
        self.paths.borrow().get(&file).cloned().unwrap_or_default()
    }

    fn note_name(&self, path: &Path) {
        if let Some(directory) = path.parent() {
            self.last_named.borrow_mut().insert(directory.to_owned(), path.to_owned());
        }
    }

    fn class(&self, operation: &Operation) -> Option<Sync> {
        let purpose = operation.context.purpose;
        match &operation.action {
            Action::Write { file, offset, durability: Durability::Durable, .. } => {
                let path = self.path_of(*file);
                match (purpose, ending(&path)) {
                    (Purpose::LogWrite, _) => Some(Sync::LogWrite),
                    (_, "log") => Some(Sync::GenerationHeader),
                    (_, "chk") => Some(Sync::CheckpointBlocks),
                    (Purpose::Header, "edb") if *offset == 0 => Some(Sync::HeaderFirst),
                    (Purpose::Header, "edb") => Some(Sync::HeaderSecond),
                    _ => None,
                }
            }
            Action::SyncFile { file } => self.class_of_file_sync(*file, purpose),
            Action::SyncDirectory { path } => {
                let named = self.last_named.borrow().get(path).cloned().unwrap_or_default();
                match ending(&named) {
                    "log" if named.ends_with("E00.log") => Some(Sync::RolloverToNew),
                    "log" => Some(Sync::RolloverOfOld),
                    "edb" => Some(Sync::DatabaseName),
                    "jfm" => Some(Sync::FlushMapName),
                    "chk" => Some(Sync::CheckpointName),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn class_of_file_sync(&self, file: FileId, purpose: Purpose) -> Option<Sync> {
        let take = |list: &RefCell<Vec<FileId>>| {
            let mut list = list.borrow_mut();
            let found = list.contains(&file);
            list.retain(|other| *other != file);
            found
        };
        let (created, extended) = (take(&self.created), take(&self.extended));
        match ending(&self.path_of(file)) {
            "log" if purpose == Purpose::LogFormat => Some(Sync::GenerationFormat),
            "log" if purpose == Purpose::LogRead => Some(Sync::LogRead),
            "edb" if created || purpose == Purpose::Prepare => Some(Sync::DatabaseCreated),
            "edb" if extended => Some(Sync::DatabaseLength),
            "edb" => Some(Sync::DatabasePages),
            "jfm" if created => Some(Sync::FlushMapCreated),
            "jfm" => Some(Sync::FlushMapSaved),
            "chk" => Some(Sync::CheckpointCreated),
            _ => None,
        }
    }

    fn watch(&self, mut operation: Operation) -> Operation {
        match &operation.action {
            Action::Open { path, mode } => {
                if *mode == OpenMode::Create {
                    self.note_name(path);
                }
                let (path, paths, completion) =
                    (path.clone(), self.paths.clone(), operation.completion);
                let created = (*mode == OpenMode::Create).then(|| self.created.clone());
                operation.completion = Box::new(move |outcome| {
                    if let Ok(Answer::Opened(opened)) = &outcome.result {
                        if let Some(created) = created {
                            created.borrow_mut().push(opened.file);
                        }
                        paths.borrow_mut().insert(opened.file, path);
                    }
                    completion(outcome);
                });
            }
            Action::Rename { to, .. } => self.note_name(to),
            Action::Extend { file, .. } => self.extended.borrow_mut().push(*file),
            _ => {}
        }
        operation
    }
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default()
}

impl Disk for Forgetful {
    fn submit(&self, operation: Operation) {
        let mut operation = self.watch(operation);
        let class = self.class(&operation);
        let is_durable = matches!(
            operation.action,
            Action::SyncFile { .. }
                | Action::SyncDirectory { .. }
                | Action::Write { durability: Durability::Durable, .. }
        );
        if is_durable {
            let name = match class {
                Some(class) => format!("{class:?}"),
                None => format!(
                    "unknown: {:?} {}",
                    operation.action.kind(),
                    operation.context.purpose.name()
                ),
            };
            *self.seen.borrow_mut().entry(name).or_default() += 1;
        }
        if class.is_some() && class == self.forget {
            self.forgotten.set(self.forgotten.get() + 1);
            operation.action = match operation.action {
                Action::Write { file, offset, buffer, .. } => {
                    Action::Write { file, offset, buffer, durability: Durability::Volatile }
                }
                // Takes as long as an operation takes, and changes nothing.
                Action::SyncFile { file } => Action::Extend { file, length_bytes: 0 },
                Action::SyncDirectory { path } => {
                    let completion = operation.completion;
                    operation.completion = Box::new(move |mut outcome| {
                        outcome.result = outcome.result.map(|_| Answer::Done);
                        completion(outcome);
                    });
                    Action::List { path }
                }
                other => other,
            };
        }
        self.below.submit(operation);
    }

    fn reap(&self) -> usize {
        self.below.reap()
    }
    fn wait(&self, deadline: Option<Nanos>) {
        self.below.wait(deadline);
    }
    fn waker(&self) -> std::task::Waker {
        self.below.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.below.next_event()
    }
    fn in_flight(&self) -> usize {
        self.below.in_flight()
    }
    fn facts(&self) -> DiskFacts {
        self.below.facts()
    }
}
