//! Reads a log stream back with no database attached.
//!
//! [`LogReader::read_generation`] loads one generation and has every unit checked ([`Generation`]).
//! That a *closed* generation was read whole is checked against the next generation's header.

use std::path::{Path, PathBuf};

use plimsoll_io::{Buffer, Context, DiskErrorKind, File, Files, OpenMode, Purpose};

pub use super::generation::{Generation, Records};

use super::generation::{READ_BYTES, check_units};
use super::header::GenerationHeader;
use super::names::LogNames;
use super::{GENERATION_BYTES, HEADER_BYTES, Lsn};
use crate::error::{EngineError, Result};

/// A generation file found in the log directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationFile {
    /// Its number, from the header of the current file or the name of a closed one.
    pub generation: u32,
    /// Its path.
    pub path: PathBuf,
}

/// What lies in the directory of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFolder {
    /// All generations in order, the current one last: unless it is an older one that was put back.
    pub generations: Vec<GenerationFile>,
    /// Those of histories that were given up, by generation.
    pub set_aside: Vec<GenerationFile>,
    /// Whether there is a file of holds.
    pub has_holds: bool,
}

/// Reads log streams. See the module text.
#[derive(Clone)]
pub struct LogReader {
    files: Files,
    names: LogNames,
    context: Context,
}

impl LogReader {
    /// A reader of the stream `names`, labelling its I/O with `purpose`.
    pub fn new(files: Files, names: LogNames, context: Context) -> Self {
        Self { files, names, context }
    }

    /// The names of this stream.
    pub fn names(&self) -> &LogNames {
        &self.names
    }

    /// All generations in order, the current one last. The numbers need not be contiguous: the
    /// caller says what it needs.
    pub async fn generations(&self) -> Result<Vec<GenerationFile>> {
        Ok(self.folder().await?.generations)
    }

    /// What lies in the directory of the log.
    pub async fn folder(&self) -> Result<LogFolder> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        // The current one first: one that is closed meanwhile is then found under its number.
        let current = match self.read_header(&self.names.current()).await {
            Ok(header) => Some(header.generation),
            // There is none between the two renames of a rollover.
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(error),
        };
        let entries = match self.files.list(self.names.directory(), metadata).await {
            Ok(entries) => entries,
            Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(LogFolder::default()),
            Err(error) => return Err(error.into()),
        };
        let mut folder = LogFolder::default();
        for name in entries.iter().map(|entry| &entry.name) {
            folder.has_holds |= self.names.is_holds(name);
            if let Some(generation) = self.names.generation_of(name) {
                let path = self.names.closed(generation);
                folder.generations.push(GenerationFile { generation, path });
            }
            if let Some((generation, number)) = self.names.set_aside_of(name) {
                let path = self.names.set_aside(generation, number);
                folder.set_aside.push(GenerationFile { generation, path });
            }
        }
        if let Some(generation) = current {
            let file = GenerationFile { generation, path: self.names.current() };
            let closed = folder.generations.iter_mut().find(|file| file.generation == generation);
            match closed {
                None => folder.generations.push(file),
                Some(closed) if self.current_has_all_of(generation).await? => *closed = file,
                Some(_) => {}
            }
        }
        folder.generations.sort_by_key(|file| file.generation);
        folder.set_aside.sort_by_key(|file| file.generation);
        Ok(folder)
    }

    /// Of a generation that lies there twice, whether the current file has all that the closed one
    /// has; otherwise that one has all. It lies there twice where a power cut came between its two
    /// names, or where somebody put an earlier copy of it back.
    ///
    /// # Errors
    /// [`EngineError::ForeignLog`] where neither is the beginning of the other.
    async fn current_has_all_of(&self, generation: u32) -> Result<bool> {
        let current = match self.read_live(&self.names.current()).await {
            Ok(current) if current.header.generation == generation => current,
            Err(error) if !is_missing(&error) => return Err(error),
            // It was closed a moment ago.
            _ => return Ok(false),
        };
        let closed = self.read_live(&self.names.closed(generation)).await?;
        if closed.is_beginning_of(&current) {
            return Ok(true);
        }
        if current.is_beginning_of(&closed) {
            return Ok(false);
        }
        Err(EngineError::ForeignLog {
            path: closed.path,
            why: format!(
                "it is generation {generation}, as {} is, and neither is the beginning of the \
                 other: take the one away that is not of this history",
                current.path.display()
            ),
        })
    }

    /// Reads only the header of a log file.
    pub async fn read_header(&self, path: &Path) -> Result<GenerationHeader> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        let file = self.files.open(path, OpenMode::Read, metadata).await?;
        let header = self.header_of(&file).await;
        file.close(metadata).await?;
        header
    }

    async fn header_of(&self, file: &File) -> Result<GenerationHeader> {
        let corrupt =
            |why: String| EngineError::LogCorrupt { path: file.path().to_owned(), offset: 0, why };
        let length_bytes = file.opened().length_bytes;
        let length = format!("it has {length_bytes} bytes, a generation has {GENERATION_BYTES}");
        if length_bytes < HEADER_BYTES as u64 {
            return Err(corrupt(length));
        }
        let buffer = file.read(0, file.allocate(HEADER_BYTES), self.context).await?;
        let decoded = GenerationHeader::decode(&buffer);
        // Logs of other versions have other lengths: whose it is comes first.
        if length_bytes != GENERATION_BYTES
            && !decoded.as_ref().is_err_and(|why| why.contains("-514"))
        {
            return Err(corrupt(length));
        }
        let foreign = |why| EngineError::ForeignLog { path: file.path().to_owned(), why };
        let header = decoded
            .map_err(|why| if why.contains("-514") { foreign(why) } else { corrupt(why) })?;
        // Only the current one may come to be another while somebody reads.
        let name = file.path().file_name().unwrap_or_default().to_string_lossy();
        match self.names.generation_of(&name) {
            Some(named) if named != header.generation => Err(foreign(format!(
                "its name says that it is generation {named}, and its header that it is \
                 generation {}: put generation {named} back",
                header.generation
            ))),
            _ => Ok(header),
        }
    }

    /// Reads and checks one generation.
    pub async fn read_generation(&self, path: &Path) -> Result<Generation> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        let file = self.files.open(path, OpenMode::Read, metadata).await?;
        let result = self.read_open_generation(&file).await;
        file.close(metadata).await?;
        result
    }

    /// Reads and checks one generation, and makes durable what was read: its writer may have died
    /// before it was. Whoever changes files after what a log says reads it with this.
    ///
    /// # Errors
    /// Of the current generation also where somebody writes it: nobody goes on with a log that is
    /// another's.
    pub async fn read_durably(&self, path: &Path) -> Result<Generation> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        let mode = match path == self.names.current() {
            true => OpenMode::Write,
            false => OpenMode::Read,
        };
        let file = self.files.open(path, mode, metadata).await?;
        let mut result = self.read_open_generation(&file).await;
        if let Err(error) = file.sync(self.context).await {
            result = result.and(Err(error.into()));
        }
        file.close(metadata).await?;
        result
    }

    /// Reads and checks a generation that may be written meanwhile. Its parts are then of different
    /// moments, and a later flush seen behind an earlier one looks like a loss. A loss stays as it
    /// is, so what looks like one is read again until it is not there or nothing has changed.
    pub async fn read_live(&self, path: &Path) -> Result<Generation> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        let file = self.files.open(path, OpenMode::Read, metadata).await?;
        let result = self.read_until_settled(&file).await;
        file.close(metadata).await?;
        result
    }

    /// Reads and checks a generation that was found earlier. The current one may have been closed
    /// since then, and has another name now.
    ///
    /// # Errors
    /// [`EngineError::LogMissing`] when it was purged, and whatever reading finds.
    pub async fn read_found(&self, found: &GenerationFile) -> Result<Generation> {
        let gone = || EngineError::LogMissing {
            generation: found.generation,
            path: self.names.directory().to_owned(),
        };
        let may_be_renamed = found.path == self.names.current();
        match self.read_live(&found.path).await {
            Ok(generation) if generation.header.generation == found.generation => {
                return Ok(generation);
            }
            Err(error) if !is_missing(&error) => return Err(error),
            _ if !may_be_renamed => return Err(gone()),
            _ => {}
        }
        let closed = self.read_live(&self.names.closed(found.generation)).await;
        closed.map_err(|error| if is_missing(&error) { gone() } else { error })
    }

    /// Reads a generation as far as it belongs to the stream: what lies behind the place where the
    /// next one goes on was given up. `None` where files were renamed meanwhile: list them again.
    pub(super) async fn read_in_stream(
        &self,
        files: &[GenerationFile],
        wanted: &GenerationFile,
    ) -> Result<Option<Generation>> {
        let following = files.iter().find(|file| file.generation == wanted.generation + 1);
        let read = async {
            let generation = self.read_live(&wanted.path).await?;
            let next = match following {
                Some(file) => Some(self.read_header(&file.path).await?),
                None => None,
            };
            Ok::<_, EngineError>((generation, next))
        };
        let (mut generation, next) = match read.await {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_other = |header: &GenerationHeader, number| header.generation != number;
        if is_other(&generation.header, wanted.generation)
            || next.as_ref().is_some_and(|next| is_other(next, wanted.generation + 1))
        {
            return Ok(None);
        }
        if let Some(next) = next.filter(|next| generation.goes_beyond(next)) {
            generation.cut_at(next.previous_end);
        }
        Ok(Some(generation))
    }

    /// The first name that is free for a generation to be set aside under.
    pub(crate) async fn free_name_aside(&self, generation: u32) -> Result<PathBuf> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        let mut number = 1;
        loop {
            let aside = self.names.set_aside(generation, number);
            if !self.files.exists(&aside, metadata).await? {
                return Ok(aside);
            }
            number += 1;
        }
    }

    /// Fails where reading was to go on further than the log, of which there are these files, has
    /// come: whoever knows more has it from a history that was given up.
    pub(super) fn check_has_come_to(&self, files: &[GenerationFile], place: Lsn) -> Result<()> {
        let last = files.last().map_or(0, |file| file.generation);
        // The generation to come may be waited for.
        if place.generation <= last || place == Lsn::new(last + 1, 0) {
            return Ok(());
        }
        Err(EngineError::ForeignLog {
            path: self.names.current(),
            why: format!(
                "the log has come to generation {last}, and reading was to go on from {place}: \
                 what lies between is not of this history"
            ),
        })
    }

    async fn read_until_settled(&self, file: &File) -> Result<Generation> {
        let mut before: Option<Vec<Buffer>> = None;
        loop {
            let (header, parts) = self.parts_of(file).await?;
            match check_units(file.path(), header, &parts) {
                Err(EngineError::LogCorrupt { .. })
                    if before.as_ref().is_none_or(|before| !same(before, &parts)) =>
                {
                    before = Some(parts);
                }
                checked => return checked,
            }
        }
    }

    async fn read_open_generation(&self, file: &File) -> Result<Generation> {
        let (header, parts) = self.parts_of(file).await?;
        check_units(file.path(), header, &parts)
    }

    async fn parts_of(&self, file: &File) -> Result<(GenerationHeader, Vec<Buffer>)> {
        let header = self.header_of(file).await?;
        let reads: Vec<_> = (HEADER_BYTES..GENERATION_BYTES as usize)
            .step_by(READ_BYTES)
            .map(|offset| {
                let count = READ_BYTES.min(GENERATION_BYTES as usize - offset);
                file.read(offset as u64, file.allocate(count), self.context)
            })
            .collect();
        let mut parts = Vec::with_capacity(reads.len());
        let mut first_error = None;
        // All are waited for even after an error: the file is closed next.
        for read in reads {
            match read.await {
                Ok(buffer) => parts.push(buffer),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if let Some(error) = first_error {
            return Err(error.into());
        }
        Ok((header, parts))
    }

    /// Checks that `next` continues `previous` without a gap.
    pub fn check_chain(
        previous: &Generation,
        next: &GenerationHeader,
        next_path: &Path,
    ) -> Result<()> {
        let foreign = |why: String| EngineError::ForeignLog { path: next_path.to_owned(), why };
        if next.signature != previous.header.signature {
            return Err(foreign("its signature is another stream's".into()));
        }
        if next.generation != previous.header.generation + 1 {
            return Err(EngineError::LogMissing {
                generation: previous.header.generation + 1,
                path: next_path.parent().unwrap_or(Path::new(".")).to_owned(),
            });
        }
        if next.previous_created != previous.header.created {
            return Err(foreign(
                "it continues another history of this stream (creation times do not chain)".into(),
            ));
        }
        if next.previous_end < previous.end() {
            return Err(foreign(format!(
                "it goes on from {}, and the generation before it, as it is here, ends at {}: two \
                 histories part there",
                next.previous_end,
                previous.end()
            )));
        }
        if next.previous_end > previous.end() {
            let unit = previous.header.framing.unit_of(previous.payload.len() as u32);
            return Err(EngineError::LogCorrupt {
                path: previous.path.clone(),
                offset: u64::from(unit) * previous.header.framing.unit_bytes() as u64,
                why: format!(
                    "it can be read up to {}, but it ended at {}",
                    previous.end(),
                    next.previous_end
                ),
            });
        }
        Ok(())
    }
}

fn is_missing(error: &EngineError) -> bool {
    matches!(error, EngineError::Disk(error) if error.kind == DiskErrorKind::NotFound)
}

fn same(one: &[Buffer], other: &[Buffer]) -> bool {
    one.iter().map(|part| &part[..]).eq(other.iter().map(|part| &part[..]))
}
