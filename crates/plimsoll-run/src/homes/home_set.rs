//! The homes of an instance on a storage: made, worked in move by move, and audited.
//!
//! Every answer is compared with what the home should hold: names and lengths of every listing, the
//! length of every file that is asked about, every byte that is read. A home has one user, who does
//! one thing at a time, so nothing is in dispute.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{
    Context, DiskErrorKind, Durability, Entry, File, InstanceId, OpenMode, Permits, Purpose, Random,
};
use plimsoll_workload::homes::{FileState, FolderState, Home, HomeShape, Move};

use super::spec::HomesInstance;
use crate::RunError;
use crate::backend::{Audits, Backend, Work};
use crate::context::RunContext;
use crate::files::content::{Pattern, Recipe};
use crate::outcome::{AuditReport, DatabaseState};
use crate::spec::InstanceSpec;
use crate::stalls::TransactionWatch;

/// Homes that are made, or audited, at once.
const AT_ONCE: u32 = 16;
/// Differences of an audit that are told; all are counted.
const TOLD_MAX: usize = 20;

/// A home and who is in it.
struct Place {
    path: PathBuf,
    seed: u64,
    home: RefCell<Home>,
    user: Permits,
}

/// See the module text.
pub struct HomeSet {
    run: RunContext,
    number: u16,
    root: PathBuf,
    shape: HomeShape,
    piece_bytes: u64,
    places: Vec<Place>,
    watch: TransactionWatch,
}

/// The files that a scenario has open.
#[derive(Default)]
pub struct OpenFiles {
    file: Option<File>,
    new: Option<File>,
}

impl HomeSet {
    /// Makes the homes.
    ///
    /// # Errors
    /// What the disk reports, homes that are there, or a wish to stop.
    pub async fn open(
        run: &RunContext,
        number: u16,
        instance: &InstanceSpec,
    ) -> Result<HomeSet, RunError> {
        let (spec, shape) = HomesInstance::of(instance).map_err(RunError::Spec)?;
        let root = instance.database_path(0);
        if instance.databases[0].existing_records.is_some() {
            return Err(RunError::Spec(format!(
                "{}: home folders are made anew by every run and opened once",
                root.display()
            )));
        }
        let random = Random::from_seed(instance.databases[0].seed);
        let place = |number: u32| {
            let mut random = random.child(&format!("home {number}"));
            Place {
                path: root.join(format!("u{:06}", number + 1)),
                seed: random.next_u64(),
                home: RefCell::new(Home::new(&shape, &mut random)),
                user: Permits::new(1),
            }
        };
        let set = Rc::new(HomeSet {
            run: run.clone(),
            number,
            places: (0..spec.homes).map(place).collect(),
            root,
            shape,
            piece_bytes: spec.piece_bytes,
            watch: TransactionWatch::new(&run.handle, &run.recorder, &run.stalls, number),
        });
        run.files.make_directory(&set.root, set.context(Purpose::Prepare)).await?;
        set.for_each_home(|set, home| Box::pin(async move { set.make(home).await })).await?;
        Ok(crate::backend::only(set))
    }

    /// How many homes there are.
    pub fn homes(&self) -> u32 {
        self.places.len() as u32
    }

    /// What a home is made with.
    pub fn shape(&self) -> &HomeShape {
        &self.shape
    }

    /// The longest read or write.
    pub fn piece_bytes(&self) -> u64 {
        self.piece_bytes
    }

    /// Who looks at what takes longest.
    pub fn watch(&self) -> &TransactionWatch {
        &self.watch
    }

    /// What a home should hold.
    pub fn home(&self, number: u32) -> &RefCell<Home> {
        &self.places[number as usize].home
    }

    /// The user of a home, who does one thing at a time.
    pub fn user(&self, number: u32) -> &Permits {
        &self.places[number as usize].user
    }

    fn context(&self, purpose: Purpose) -> Context {
        Context { purpose, instance: InstanceId(self.number), database: 1, intended: None }
    }

    /// Does something to every home, several at once.
    async fn for_each_home(
        self: &Rc<Self>,
        work: impl Fn(Rc<Self>, u32) -> Work<'static, Result<(), RunError>> + Clone + 'static,
    ) -> Result<(), RunError> {
        let next = Rc::new(Cell::new(0));
        let tasks: Vec<_> = (0..AT_ONCE.min(self.homes()))
            .map(|_| {
                let (set, work, next) = (self.clone(), work.clone(), next.clone());
                self.run.handle.spawn(async move {
                    while next.get() < set.homes() {
                        set.run.check_stop()?;
                        work(set.clone(), next.replace(next.get() + 1)).await?;
                    }
                    Ok(())
                })
            })
            .collect();
        let mut first = Ok(());
        for task in tasks {
            let ended = task.await;
            first = first.and(ended);
        }
        first
    }

    async fn make(&self, home: u32) -> Result<(), RunError> {
        let (place, files) = (&self.places[home as usize], &self.run.files);
        let context = self.context(Purpose::Prepare);
        files.make_directory(&place.path, context).await?;
        let folders = place.home.borrow().folders().to_vec();
        for folder in &folders {
            let path = place.path.join(folder.name());
            files.make_directory(&path, context).await?;
            for state in &folder.files {
                let file = files.open(path.join(state.name()), OpenMode::Create, context).await?;
                let mut offset = 0;
                while offset < state.size_bytes {
                    let length = self.piece_bytes.min(state.size_bytes - offset);
                    self.write(place, &file, state, (offset, length), context).await?;
                    offset += length;
                }
                file.close(context).await?;
            }
        }
        Ok(())
    }

    async fn write(
        &self,
        place: &Place,
        file: &File,
        state: &FileState,
        (offset, length): (u64, u64),
        context: Context,
    ) -> Result<(), RunError> {
        let mut buffer = file.allocate(length as usize);
        recipe(place.seed, state).fill(offset, 0, &mut buffer);
        file.write(offset, buffer, Durability::Volatile, context).await?;
        Ok(())
    }

    async fn read(
        &self,
        place: &Place,
        file: &File,
        state: &FileState,
        (offset, length): (u64, u64),
        context: Context,
    ) -> Result<Option<u64>, RunError> {
        let buffer = file.read(offset, file.allocate(length as usize), context).await?;
        Ok(first_difference(place.seed, state, offset, &buffer))
    }

    /// Makes one move of a scenario, and compares what it tells.
    ///
    /// # Errors
    /// What the disk reports, or something that should not be so.
    pub async fn make_move(
        &self,
        home: u32,
        what: &Move,
        open: &mut OpenFiles,
    ) -> Result<(), RunError> {
        let (place, files) = (&self.places[home as usize], &self.run.files);
        let metadata = self.context(Purpose::Metadata);
        let folder_path = |folder: usize| {
            let home = place.home.borrow();
            place.path.join(home.folders()[folder].name())
        };
        match what {
            Move::ListHome => {
                let found = files.list(&place.path, metadata).await?;
                compare(&place.path, &found, &home_entries(&place.home.borrow()))?;
            }
            Move::List { folder } => {
                let path = folder_path(*folder);
                let found = files.list(&path, metadata).await?;
                let expected = folder_entries(&place.home.borrow().folders()[*folder]);
                compare(&path, &found, &expected)?;
            }
            Move::StatFolder { folder } => {
                let path = folder_path(*folder);
                if !files.stat(&path, metadata).await?.is_directory {
                    return Err(wrong(&path, "is no folder any more"));
                }
            }
            Move::StatFile { folder, file } => {
                let path = folder_path(*folder).join(file.name());
                let found = files.stat(&path, metadata).await?;
                if found != file_entry(file) {
                    let what = format!(
                        "has {} bytes, but {} were written",
                        found.length_bytes, file.size_bytes
                    );
                    return Err(wrong(&path, &what));
                }
            }
            Move::Probe { folder, name } => {
                let path = folder_path(*folder).join(name);
                match files.open(&path, OpenMode::Read, metadata).await {
                    Err(error) if error.kind == DiskErrorKind::NotFound => {}
                    Err(error) => return Err(error.into()),
                    Ok(_) => return Err(wrong(&path, "is there, but nobody has made it")),
                }
            }
            Move::OpenFile { folder, file } => {
                let path = folder_path(*folder).join(file.name());
                open.file = Some(files.open(&path, OpenMode::Read, metadata).await?);
            }
            Move::Read { file: state, offset, size_bytes } => {
                let file = open.file.as_ref().expect("a scenario reads what it has opened");
                let context = self.context(Purpose::DatabaseRead);
                let range = (*offset, *size_bytes);
                if let Some(at) = self.read(place, file, state, range, context).await? {
                    let what = format!("is not what was written at byte {at}");
                    return Err(wrong(file.path(), &what));
                }
            }
            Move::CloseFile => {
                let file = open.file.take().expect("a scenario closes what it has opened");
                file.close(metadata).await?;
            }
            Move::CreateNew { folder, file } => {
                let path = folder_path(*folder).join(file.name());
                open.new = Some(files.open(&path, OpenMode::Create, metadata).await?);
            }
            Move::Write { file: state, offset, size_bytes } => {
                let file = open.new.as_ref().expect("a scenario writes what it has created");
                let context = self.context(Purpose::DatabaseWrite);
                self.write(place, file, state, (*offset, *size_bytes), context).await?;
            }
            Move::SyncNew => {
                let file = open.new.as_ref().expect("a scenario flushes what it has created");
                file.sync(metadata).await?;
            }
            Move::CloseNew => {
                let file = open.new.take().expect("a scenario closes what it has created");
                file.close(metadata).await?;
            }
            Move::Replace { folder, new, file } => {
                let path = folder_path(*folder);
                let (from, to) = (path.join(new.name()), path.join(file.name()));
                files.rename(&from, &to, metadata).await?;
            }
            Move::Delete { folder, file } => {
                files.delete(&folder_path(*folder).join(file.name()), metadata).await?;
            }
            Move::MakeFolder { number } => {
                let folder = FolderState { number: *number, files: Vec::new() };
                files.make_directory(&place.path.join(folder.name()), metadata).await?;
            }
            Move::RemoveFolder { folder } => {
                files.remove_directory(&folder_path(*folder), metadata).await?;
            }
        }
        place.home.borrow_mut().made(what);
        Ok(())
    }

    /// Counts a home once more, and notes what is not as it should be.
    async fn audit_home(&self, home: u32, audit: &RefCell<Audit>) -> Result<(), RunError> {
        let (place, files) = (&self.places[home as usize], &self.run.files);
        let context = self.context(Purpose::Checksum);
        let expected = place.home.borrow().clone();
        let found = files.list(&place.path, context).await?;
        audit.borrow_mut().compare(&place.path, &found, &home_entries(&expected));
        for folder in expected.folders() {
            let path = place.path.join(folder.name());
            if !found.iter().any(|entry| entry.is_directory && entry.name == folder.name()) {
                continue;
            }
            let inside = files.list(&path, context).await?;
            audit.borrow_mut().compare(&path, &inside, &folder_entries(folder));
            audit.borrow_mut().folders += 1;
            for state in &folder.files {
                if inside.contains(&file_entry(state)) {
                    self.audit_file(place, &path, state, audit, context).await?;
                }
            }
        }
        Ok(())
    }

    async fn audit_file(
        &self,
        place: &Place,
        folder: &Path,
        state: &FileState,
        audit: &RefCell<Audit>,
        context: Context,
    ) -> Result<(), RunError> {
        let path = folder.join(state.name());
        let file = self.run.files.open(&path, OpenMode::Read, context).await?;
        let mut offset = 0;
        let mut first_wrong = None;
        while offset < state.size_bytes && first_wrong.is_none() {
            let length = self.piece_bytes.min(state.size_bytes - offset);
            first_wrong = self.read(place, &file, state, (offset, length), context).await?;
            offset += length;
        }
        file.close(context).await?;
        let mut audit = audit.borrow_mut();
        audit.files += 1;
        audit.bytes += state.size_bytes;
        if let Some(at) = first_wrong {
            let what = format!("{} is not what was written at byte {at}", path.display());
            audit.note(what);
        }
        Ok(())
    }
}

impl Backend for HomeSet {
    fn databases(&self) -> Vec<DatabaseState> {
        let mut state = DatabaseState { path: self.root.clone(), ..DatabaseState::default() };
        for place in &self.places {
            for folder in place.home.borrow().folders() {
                state.records_ever += folder.files.len() as u64;
                state.size_bytes += folder.files.iter().map(|file| file.size_bytes).sum::<u64>();
            }
        }
        vec![state]
    }

    fn audits(&self) -> Option<&dyn Audits> {
        Some(self)
    }

    /// Nothing is open between two scenarios.
    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Audits for HomeSet {
    fn audit(&self) -> Work<'_, Result<AuditReport, RunError>> {
        Box::pin(async move {
            let audit = RefCell::new(Audit::default());
            let context = self.context(Purpose::Checksum);
            let found = self.run.files.list(&self.root, context).await?;
            let name = |place: &Place| {
                let name = place.path.file_name().unwrap_or_default();
                folder_entry(name.to_string_lossy().into_owned())
            };
            let expected: Vec<Entry> = self.places.iter().map(name).collect();
            audit.borrow_mut().compare(&self.root, &found, &expected);
            for home in 0..self.homes() {
                self.run.check_stop()?;
                if found.contains(&expected[home as usize]) {
                    self.audit_home(home, &audit).await?;
                }
            }
            Ok(audit.into_inner().report(self.homes()))
        })
    }
}

/// What an audit has seen so far.
#[derive(Default)]
struct Audit {
    folders: u64,
    files: u64,
    bytes: u64,
    differences: u64,
    told: Vec<String>,
}

impl Audit {
    fn note(&mut self, what: String) {
        self.differences += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(what);
        }
    }

    fn compare(&mut self, path: &Path, found: &[Entry], expected: &[Entry]) {
        differences(path, found, expected).into_iter().for_each(|what| self.note(what));
    }

    fn report(mut self, homes: u32) -> AuditReport {
        let untold = self.differences - self.told.len() as u64;
        if untold > 0 {
            self.told.push(format!("{untold} more differences"));
        }
        let counts = BTreeMap::from([
            ("homes", u64::from(homes)),
            ("folders", self.folders),
            ("files", self.files),
            ("bytes", self.bytes),
            ("differences", self.differences),
        ]);
        AuditReport { counts, findings: self.told }
    }
}

/// What the bytes of a file are. Sectors say who they are, so that what belongs elsewhere is told.
fn recipe(home_seed: u64, state: &FileState) -> Recipe {
    let seed = home_seed ^ state.content.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Recipe { seed, pattern: Pattern::PseudoRandom, is_stamped: true }
}

/// The first byte that is not what was written, by its offset in the file.
fn first_difference(home_seed: u64, state: &FileState, offset: u64, bytes: &[u8]) -> Option<u64> {
    let mut expected = vec![0; bytes.len()];
    recipe(home_seed, state).fill(offset, 0, &mut expected);
    if expected == bytes {
        return None;
    }
    let at = expected.iter().zip(bytes).position(|(wanted, found)| wanted != found);
    at.map(|at| offset + at as u64)
}

fn folder_entry(name: String) -> Entry {
    Entry { name, length_bytes: 0, is_directory: true }
}

fn file_entry(file: &FileState) -> Entry {
    Entry { name: file.name(), length_bytes: file.size_bytes, is_directory: false }
}

fn home_entries(home: &Home) -> Vec<Entry> {
    home.folders().iter().map(|folder| folder_entry(folder.name())).collect()
}

fn folder_entries(folder: &FolderState) -> Vec<Entry> {
    folder.files.iter().map(file_entry).collect()
}

/// What a listing holds that it should not, and the other way round.
fn differences(path: &Path, found: &[Entry], expected: &[Entry]) -> Vec<String> {
    let (found, expected): (BTreeSet<_>, BTreeSet<_>) =
        (found.iter().collect(), expected.iter().collect());
    let shown = |entry: &Entry| match entry.is_directory {
        true => format!("folder {}", entry.name),
        false => format!("file {} of {} bytes", entry.name, entry.length_bytes),
    };
    let missing = expected.difference(&found).map(|entry| ("lacks", shown(entry)));
    let foreign = found.difference(&expected).map(|entry| ("should not hold", shown(entry)));
    missing.chain(foreign).map(|(how, what)| format!("{} {how} {what}", path.display())).collect()
}

fn compare(path: &Path, found: &[Entry], expected: &[Entry]) -> Result<(), RunError> {
    match differences(path, found, expected).into_iter().next() {
        None => Ok(()),
        Some(first) => Err(RunError::Corruption(first)),
    }
}

fn wrong(path: &Path, what: &str) -> RunError {
    RunError::Corruption(format!("{} {what}", path.display()))
}
