//! Preallocated files, or block devices, that a load reads and writes: prepared to their last byte,
//! opened with direct I/O.
//!
//! Transfers that are no whole number of logical blocks are made so: lengthened, or a write reads
//! its blocks, changes its part and writes them back. Those that would meet in one block wait for
//! each other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{
    Buffer, Context, Durability, File, InstanceId, NANOS_PER_MILLISECOND, Notify, OpenMode, Purpose,
};
use plimsoll_workload::files::{Direction, Transfer};

use super::content::{PREPARED, Pattern, Recipe, SECTOR_BYTES};
use super::spec::{BelowBlock, FilesInstance};
use super::witness::{Ticket, Witness};
use crate::RunError;
use crate::backend::{Backend, Work};
use crate::context::RunContext;
use crate::events::Level;
use crate::family::ChecksumReads;
use crate::outcome::{ChecksumReport, DatabaseState};
use crate::sequential::write_through;
use crate::spec::InstanceSpec;
use crate::stalls::TransactionWatch;

/// One file of a set.
pub struct OpenFile {
    file: File,
    path: PathBuf,
    size_bytes: u64,
    recipe: Recipe,
    witness: Option<Rc<Witness>>,
    next_version: Cell<u64>,
    /// Blocks that are read to be changed, or written, where that can meet.
    held: RefCell<Vec<(u64, u64)>>,
    one_let_go: Notify,
}

/// See the module text.
pub struct FileSet {
    number: u16,
    files: Vec<OpenFile>,
    /// Whether versions count: a modelled storage without verification keeps what it was prepared
    /// with.
    counts_versions: bool,
    watch: TransactionWatch,
}

impl FileSet {
    /// Prepares the files that are missing and opens all of them.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn open(
        run: &RunContext,
        number: u16,
        spec: &InstanceSpec,
    ) -> Result<FileSet, RunError> {
        let settings: FilesInstance = spec.options_as().map_err(RunError::Spec)?;
        let mut files = Vec::new();
        for position in 0..spec.databases.len() {
            files.push(OpenFile::open(run, number, position, spec, settings).await?);
        }
        Ok(FileSet {
            number,
            files,
            counts_versions: settings.verify || !run.clock().is_virtual(),
            watch: TransactionWatch::new(&run.handle, &run.recorder, &run.stalls, number),
        })
    }

    /// The files, in the order of the plan.
    pub fn files(&self) -> &[OpenFile] {
        &self.files
    }

    /// Who looks at what takes longest.
    pub fn watch(&self) -> &TransactionWatch {
        &self.watch
    }

    /// Carries out one I/O.
    ///
    /// # Errors
    /// What the disk reports, or content that is not what was written.
    pub async fn transfer(
        &self,
        position: usize,
        transfer: &Transfer,
        below: BelowBlock,
    ) -> Result<(), RunError> {
        let file = &self.files[position];
        let block = file.block_bytes();
        let first = transfer.offset / block * block;
        let end = (transfer.offset + transfer.size_bytes).next_multiple_of(block);
        let whole = Transfer { offset: first, size_bytes: end - first, ..*transfer };
        let writes = transfer.direction == Direction::Write;
        if below != BelowBlock::ReadModifyWrite || !writes {
            return match writes {
                true => self.write(position, &whole).await,
                false => self.read(position, &whole).await.map(drop),
            };
        }
        file.hold(first, end).await;
        let result = match whole == *transfer {
            true => self.write(position, &whole).await,
            false => self.modify(position, transfer, &whole).await,
        };
        file.let_go(first);
        result
    }

    async fn read(&self, position: usize, transfer: &Transfer) -> Result<Buffer, RunError> {
        let file = &self.files[position];
        let length = transfer.size_bytes as usize;
        let context = self.context(position, Purpose::DatabaseRead);
        let ticket =
            file.witness.as_ref().map(|witness| witness.begin_read(transfer.offset, length));
        let read = file.file.read(transfer.offset, file.file.allocate(length), context).await;
        if let (Some(witness), Some(ticket)) = (&file.witness, ticket) {
            let bytes = read.as_ref().ok().map(|buffer| &buffer[..]);
            let judged = witness.end_read(ticket, bytes);
            judged
                .map_err(|what| RunError::Corruption(format!("{}: {what}", file.path.display())))?;
        }
        Ok(read?)
    }

    async fn write(&self, position: usize, transfer: &Transfer) -> Result<(), RunError> {
        let file = &self.files[position];
        let mut buffer = file.file.allocate(transfer.size_bytes as usize);
        let (ticket, version) = file.begin_write(transfer, self.counts_versions);
        file.recipe.fill(transfer.offset, version, &mut buffer);
        self.put(position, transfer.offset, buffer, ticket, version).await
    }

    /// Reads the blocks around a transfer, changes its part of them and writes them. Verified files
    /// change whole sectors.
    async fn modify(
        &self,
        position: usize,
        transfer: &Transfer,
        whole: &Transfer,
    ) -> Result<(), RunError> {
        let file = &self.files[position];
        let reading = Transfer { direction: Direction::Read, ..*whole };
        let mut buffer = self.read(position, &reading).await?;
        let sector = SECTOR_BYTES as u64;
        let first = transfer.offset / sector * sector;
        let end = (transfer.offset + transfer.size_bytes).next_multiple_of(sector);
        let part = Transfer { offset: first, size_bytes: end - first, ..*transfer };
        let (ticket, version) = file.begin_write(&part, self.counts_versions);
        let within = (first - whole.offset) as usize..(end - whole.offset) as usize;
        file.recipe.fill(first, version, &mut buffer[within]);
        self.put(position, whole.offset, buffer, ticket, version).await
    }

    async fn put(
        &self,
        position: usize,
        offset: u64,
        buffer: Buffer,
        ticket: Option<Ticket>,
        version: u64,
    ) -> Result<(), RunError> {
        let file = &self.files[position];
        let context = self.context(position, Purpose::DatabaseWrite);
        let written = file.file.write(offset, buffer, Durability::Volatile, context).await;
        if let (Some(witness), Some(ticket)) = (&file.witness, ticket) {
            witness.end_write(ticket, version, written.is_ok());
        }
        written?;
        Ok(())
    }

    fn context(&self, position: usize, purpose: Purpose) -> Context {
        context(self.number, position, purpose)
    }
}

impl Backend for FileSet {
    fn databases(&self) -> Vec<DatabaseState> {
        let state = |file: &OpenFile| DatabaseState {
            path: file.path.clone(),
            size_bytes: file.size_bytes,
            records_ever: file.size_bytes / SECTOR_BYTES as u64,
            ..DatabaseState::default()
        };
        self.files.iter().map(state).collect()
    }

    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(async move {
            for (position, file) in self.files.iter().enumerate() {
                let context = self.context(position, Purpose::Header);
                file.file.sync(context).await?;
                file.file.close(context).await?;
            }
            Ok(())
        })
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl OpenFile {
    async fn open(
        run: &RunContext,
        number: u16,
        position: usize,
        instance: &InstanceSpec,
        settings: FilesInstance,
    ) -> Result<OpenFile, RunError> {
        let (spec, path) = (&instance.databases[position], instance.database_path(position));
        let context = context(number, position, Purpose::Prepare);
        let recipe = recipe_of(instance, position, settings)?;
        let is_new = spec.existing_records.is_none();
        if is_new {
            prepare(run, &path, spec.size_bytes, &recipe, instance.unfinished, context).await?;
        }
        let file = run.files.open(&path, OpenMode::Write, context).await?;
        if file.opened().length_bytes < spec.size_bytes {
            return Err(RunError::Corruption(format!(
                "{} is shorter than it was prepared",
                path.display()
            )));
        }
        let first = first_version(run, is_new);
        let witness =
            settings.verify.then(|| Rc::new(Witness::new(recipe, spec.size_bytes, is_new, first)));
        Ok(OpenFile {
            file,
            path,
            size_bytes: spec.size_bytes,
            recipe,
            witness,
            next_version: Cell::new(first),
            held: RefCell::default(),
            one_let_go: Notify::new(),
        })
    }

    /// Who knows what it should hold, where it is verified.
    pub fn witness(&self) -> Option<&Rc<Witness>> {
        self.witness.as_ref()
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of it that are used.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Transfers are multiples of this.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.file.opened().alignment_bytes.max(SECTOR_BYTES as u32))
    }

    fn begin_write(&self, part: &Transfer, counts: bool) -> (Option<Ticket>, u64) {
        match &self.witness {
            Some(witness) => {
                let (ticket, version) = witness.begin_write(part.offset, part.size_bytes as usize);
                (Some(ticket), version)
            }
            None if counts => (None, self.next_version.replace(self.next_version.get() + 1)),
            None => (None, PREPARED),
        }
    }

    async fn hold(&self, first: u64, end: u64) {
        let meets = |held: &(u64, u64)| held.0 < end && first < held.1;
        while self.held.borrow().iter().any(meets) {
            self.one_let_go.notified().await;
        }
        self.held.borrow_mut().push((first, end));
    }

    fn let_go(&self, first: u64) {
        self.held.borrow_mut().retain(|held| held.0 != first);
        self.one_let_go.notify_all();
    }
}

/// The version that a run writes first. On files that are there it follows from the time: were it
/// that of an earlier run, the same places would get the same bytes, and no one could tell a write
/// that was lost.
fn first_version(run: &RunContext, is_new: bool) -> u64 {
    match is_new {
        true => PREPARED + 1,
        false => run.clock().anchor().utc_ns / NANOS_PER_MILLISECOND,
    }
}

/// What a file of an instance holds.
///
/// # Errors
/// When its data pattern is none.
pub fn recipe_of(
    instance: &InstanceSpec,
    position: usize,
    settings: FilesInstance,
) -> Result<Recipe, RunError> {
    Ok(Recipe {
        seed: instance.databases[position].seed,
        pattern: Pattern::of_number(settings.data_pattern).map_err(RunError::Spec)?,
        is_stamped: settings.verify,
    })
}

fn context(number: u16, position: usize, purpose: Purpose) -> Context {
    Context { purpose, instance: InstanceId(number), database: position as u8 + 1, intended: None }
}

/// Writes every byte once, so that no later write meets an unwritten extent and no read a hole.
async fn prepare(
    run: &RunContext,
    path: &Path,
    size_bytes: u64,
    recipe: &Recipe,
    is_begun: bool,
    context: Context,
) -> Result<(), RunError> {
    let begun = is_begun && run.files.exists(path, context).await?;
    let file = match begun {
        true => {
            let text = format!(
                "{}: an earlier run did not finish it; it is written again",
                path.display()
            );
            run.report(Level::Warning, "prepared_anew", text);
            run.files.open(path, OpenMode::Write, context).await?
        }
        false => run.files.open(path, OpenMode::Create, context).await?,
    };
    let is_device = file.opened().is_device;
    if is_device && file.opened().length_bytes < size_bytes {
        return Err(RunError::Spec(format!(
            "{} holds {} MiB, but {} MiB are to be used; take fewer",
            path.display(),
            file.opened().length_bytes >> 20,
            size_bytes >> 20
        )));
    }
    if !is_device {
        file.extend(size_bytes, context).await?;
    }
    write_through(run, &file, (size_bytes, SECTOR_BYTES as u64), context, |offset, bytes| {
        plimsoll_io::Content::fill(recipe, offset, bytes)
    })
    .await?;
    file.close(context).await?;
    if is_device {
        return Ok(());
    }
    let parent = path.parent().expect("files lie in a directory");
    Ok(run.files.sync_directory(parent, context).await?)
}

/// Reads a whole file and judges every sector: whether it is whole and at its place, and where this
/// run wrote it, whether it holds what was written last. A load does not read again all that it
/// wrote, and a write that was lost leaves a sector that is sound.
///
/// # Errors
/// When its sectors do not say who they are, what the disk reports, or a wish to stop.
pub async fn checksum(
    run: &RunContext,
    (number, position): (u16, usize),
    instance: &InstanceSpec,
    reads: ChecksumReads,
    witness: Option<Rc<Witness>>,
) -> Result<ChecksumReport, RunError> {
    let settings: FilesInstance = instance.options_as().map_err(RunError::Spec)?;
    let (recipe, path) =
        (recipe_of(instance, position, settings)?, instance.database_path(position));
    let context = context(number, position, Purpose::Checksum);
    let file = run.files.open(&path, OpenMode::Read, context).await?;
    let step = u64::from(reads.read_bytes).next_multiple_of(4096);
    let (wanted, there) = (instance.databases[position].size_bytes, file.opened().length_bytes);
    let block = u64::from(file.opened().alignment_bytes).max(SECTOR_BYTES as u64);
    let length = wanted.min(there / block * block);
    let mut report = ChecksumReport { path, ..ChecksumReport::default() };
    if length < wanted {
        report.bad = (wanted - length) / SECTOR_BYTES as u64;
        report.reasons.push(format!("it ends after {there} of {wanted} bytes"));
    }
    let mut pending = VecDeque::new();
    let mut offset = 0;
    while offset < length || !pending.is_empty() {
        run.check_stop()?;
        while offset < length && pending.len() < reads.in_flight.max(1) as usize {
            let count = step.min(length - offset);
            pending.push_back((offset, file.read(offset, file.allocate(count as usize), context)));
            offset += count;
        }
        let Some((start, read)) = pending.pop_front() else {
            break;
        };
        let buffer: Buffer = read.await?;
        for (index, sector) in buffer.chunks_exact(SECTOR_BYTES).enumerate() {
            report.pages_seen += 1;
            let offset = start + (index * SECTOR_BYTES) as u64;
            let number = offset / SECTOR_BYTES as u64;
            let found = recipe.version_of(offset, sector).and_then(|version| {
                witness.as_ref().map_or(Ok(()), |witness| witness.judge(number, version))
            });
            if let Err(what) = found {
                report.bad += 1;
                if report.reasons.is_empty() {
                    report.reasons.push(format!("sector {number}: {what}"));
                }
            }
        }
        run.handle.yield_now().await;
    }
    file.close(context).await?;
    if report.bad > 0 {
        let text = format!("{}: damaged sectors found", report.path.display());
        run.report(Level::Error, "bad_pages", text);
    }
    Ok(report)
}
