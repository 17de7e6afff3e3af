//! Reads a log stream back with no database attached.
//!
//! [`LogReader::read_generation`] loads one generation and judges every unit. The readable part of a generation ends at the first unit
//! that is blank, bad or not full. What lies behind it decides what that end means: units of the very next flush are an
//! unfinished write after the last acknowledged one; units of a later flush prove that acknowledged log is gone, which is an error.
//! That a *closed* generation was read whole is checked against the next generation's header.

use std::path::{Path, PathBuf};

use plimsoll_io::{Buffer, Context, DiskErrorKind, File, Files, OpenMode, Purpose};

use super::framing::{Framing, UnitState};
use super::header::GenerationHeader;
use super::names::LogNames;
use super::record::LogRecord;
use super::{GENERATION_BYTES, HEADER_BYTES, Lsn};
use crate::error::{EngineError, Result};

/// Bytes of one read; with the header read apart a generation takes a handful, all under way at once.
const READ_BYTES: usize = 256 * 1024;

/// One generation, read and checked.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Its file.
    pub path: PathBuf,
    /// Its header.
    pub header: GenerationHeader,
    /// Its record stream.
    pub payload: Vec<u8>,
    /// The last flush seen in the readable part.
    pub flush: u32,
    /// Units that were bad or unreadable behind the readable end: an unfinished flush.
    pub torn_units: u32,
    /// Units that were bad and read from their shadow.
    pub shadows_used: u32,
}

impl Generation {
    /// Where its readable part ends.
    pub fn end(&self) -> Lsn {
        Lsn::new(self.header.generation, self.payload.len() as u32)
    }

    /// Whether it reads further than the generation that follows it says that it went: that log was given up.
    pub fn goes_beyond(&self, next: &GenerationHeader) -> bool {
        next.previous_created == self.header.created
            && next.generation == self.header.generation + 1
            && next.previous_end < self.end()
    }

    /// Leaves out what lies behind `end`.
    pub(crate) fn cut_at(&mut self, end: Lsn) {
        self.payload.truncate(end.offset as usize);
    }

    /// The records from payload offset `from` on. `end` is where the last complete record ends.
    pub fn records(&self, from: u32) -> Records<'_> {
        Records {
            generation: self,
            offset: from as usize,
        }
    }
}

/// Iterator over the records of a generation: place of the record, the record.
pub struct Records<'a> {
    generation: &'a Generation,
    offset: usize,
}

impl Records<'_> {
    /// Where the next record starts, or where reading stopped.
    pub fn place(&self) -> Lsn {
        Lsn::new(self.generation.header.generation, self.offset as u32)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<(Lsn, LogRecord)>;

    fn next(&mut self) -> Option<Self::Item> {
        let payload = &self.generation.payload;
        while self.offset < payload.len() && payload[self.offset] == 0 {
            self.offset += 1;
        }
        let at = self.place();
        match LogRecord::decode(payload.get(self.offset..)?) {
            Ok(Some((record, used_bytes))) => {
                self.offset += used_bytes;
                Some(Ok((at, record)))
            }
            Ok(None) => None,
            // The tail of an unfinished flush may end inside a record: that record was never acknowledged.
            Err("a record is longer than the log") => None,
            Err(why) => {
                let header = &self.generation.header;
                let unit = header.framing.unit_of(at.offset);
                let offset = u64::from(unit) * header.framing.unit_bytes() as u64;
                self.offset = payload.len();
                Some(Err(EngineError::LogCorrupt {
                    path: self.generation.path.clone(),
                    offset,
                    why: why.into(),
                }))
            }
        }
    }
}

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
    /// All generations in order, the current one last.
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
        Self {
            files,
            names,
            context,
        }
    }

    /// The names of this stream.
    pub fn names(&self) -> &LogNames {
        &self.names
    }

    /// All generations in order, the current one last. The numbers need not be contiguous: the caller says what it needs.
    pub async fn generations(&self) -> Result<Vec<GenerationFile>> {
        Ok(self.folder().await?.generations)
    }

    /// What lies in the directory of the log.
    pub async fn folder(&self) -> Result<LogFolder> {
        let metadata = Context {
            purpose: Purpose::Metadata,
            ..self.context
        };
        // The current one first: one that is closed meanwhile is then found under its number.
        let current = match self.read_header(&self.names.current()).await {
            Ok(header) => Some(header.generation),
            // There is none between the two renames of a rollover.
            Err(EngineError::Disk(error)) if error.kind == DiskErrorKind::NotFound => None,
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
        folder.generations.sort_by_key(|file| file.generation);
        folder.set_aside.sort_by_key(|file| file.generation);
        let last_closed = folder.generations.last().map(|file| file.generation);
        if let Some(generation) = current.filter(|current| last_closed.is_none_or(|last| last < *current)) {
            folder.generations.push(GenerationFile {
                generation,
                path: self.names.current(),
            });
        }
        Ok(folder)
    }

    /// Reads only the header of a log file.
    pub async fn read_header(&self, path: &Path) -> Result<GenerationHeader> {
        let metadata = Context {
            purpose: Purpose::Metadata,
            ..self.context
        };
        let file = self.files.open(path, OpenMode::Read, metadata).await?;
        let header = self.header_of(&file).await;
        file.close(metadata).await?;
        header
    }

    async fn header_of(&self, file: &File) -> Result<GenerationHeader> {
        let corrupt = |why: String| EngineError::LogCorrupt {
            path: file.path().to_owned(),
            offset: 0,
            why,
        };
        let length_bytes = file.opened().length_bytes;
        let length = format!("it has {length_bytes} bytes, a generation has {GENERATION_BYTES}");
        if length_bytes < HEADER_BYTES as u64 {
            return Err(corrupt(length));
        }
        let buffer = file.read(0, file.allocate(HEADER_BYTES), self.context).await?;
        let decoded = GenerationHeader::decode(&buffer);
        // Logs of other versions have other lengths: whose it is comes first.
        if length_bytes != GENERATION_BYTES && !decoded.as_ref().is_err_and(|why| why.contains("-514")) {
            return Err(corrupt(length));
        }
        decoded.map_err(|why| {
            if why.contains("-514") {
                EngineError::ForeignLog {
                    path: file.path().to_owned(),
                    why,
                }
            } else {
                corrupt(why)
            }
        })
    }

    /// Reads and checks one generation.
    pub async fn read_generation(&self, path: &Path) -> Result<Generation> {
        let metadata = Context {
            purpose: Purpose::Metadata,
            ..self.context
        };
        let file = self.files.open(path, OpenMode::Read, metadata).await?;
        let result = self.read_open_generation(&file).await;
        file.close(metadata).await?;
        result
    }

    /// Reads and checks one generation, and makes durable what was read: its writer may have died before it was. Whoever changes files after
    /// what a log says reads it with this.
    pub async fn read_durably(&self, path: &Path) -> Result<Generation> {
        let metadata = Context {
            purpose: Purpose::Metadata,
            ..self.context
        };
        let file = self.files.open(path, OpenMode::Read, metadata).await?;
        let mut result = self.read_open_generation(&file).await;
        if let Err(error) = file.sync(self.context).await {
            result = result.and(Err(error.into()));
        }
        file.close(metadata).await?;
        result
    }

    /// Reads and checks a generation that may be written meanwhile. Its parts are then of different moments, and a later flush seen behind an earlier
    /// one looks like a loss. A loss stays as it is, so what looks like one is read again until it is not there or nothing has changed.
    pub async fn read_live(&self, path: &Path) -> Result<Generation> {
        let metadata = Context {
            purpose: Purpose::Metadata,
            ..self.context
        };
        let file = self.files.open(path, OpenMode::Read, metadata).await?;
        let result = self.read_until_settled(&file).await;
        file.close(metadata).await?;
        result
    }

    /// Reads and checks a generation that was found earlier. The current one may have been closed since then, and has another name now.
    ///
    /// # Errors
    /// [`EngineError::LogMissing`] when it was purged, and whatever reading finds.
    pub async fn read_found(&self, found: &GenerationFile) -> Result<Generation> {
        let gone = || EngineError::LogMissing {
            generation: found.generation,
            path: self.names.directory().to_owned(),
        };
        let is_missing = |error: &EngineError| matches!(error, EngineError::Disk(error) if error.kind == DiskErrorKind::NotFound);
        let may_be_renamed = found.path == self.names.current();
        match self.read_live(&found.path).await {
            Ok(generation) if generation.header.generation == found.generation => return Ok(generation),
            Err(error) if !is_missing(&error) => return Err(error),
            _ if !may_be_renamed => return Err(gone()),
            _ => {}
        }
        let closed = self.read_live(&self.names.closed(found.generation)).await;
        closed.map_err(|error| if is_missing(&error) { gone() } else { error })
    }

    async fn read_until_settled(&self, file: &File) -> Result<Generation> {
        let mut before: Option<Vec<Buffer>> = None;
        loop {
            let (header, parts) = self.parts_of(file).await?;
            match judge(file.path(), header, &parts) {
                Err(EngineError::LogCorrupt { .. })
                    if before.as_ref().is_none_or(|before| !same(before, &parts)) =>
                {
                    before = Some(parts);
                }
                judged => return judged,
            }
        }
    }

    async fn read_open_generation(&self, file: &File) -> Result<Generation> {
        let (header, parts) = self.parts_of(file).await?;
        judge(file.path(), header, &parts)
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
    pub fn check_chain(previous: &Generation, next: &GenerationHeader, next_path: &Path) -> Result<()> {
        let foreign = |why: String| EngineError::ForeignLog {
            path: next_path.to_owned(),
            why,
        };
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
                "it goes on from {}, and the generation before it, as it is here, ends at {}: two histories part there",
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

/// Follows the growing end of a stream: gives every record once, in order, as far as the files go at the time.
///
/// It reads files. The last records may be of a flush that is under way, which a power cut can take back: only the writer knows what is durable.
pub struct LogFollower {
    reader: LogReader,
    next: Lsn,
    /// The generation before the one being followed, for the chain.
    previous: Option<Generation>,
}

impl LogFollower {
    /// Follows from a record position on.
    pub fn new(reader: LogReader, from: Lsn) -> Self {
        Self {
            reader,
            next: from,
            previous: None,
        }
    }

    /// Where the next record will start.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// The records written since the last call. An unfinished flush at the end is left for the next call.
    ///
    /// # Errors
    /// [`EngineError::LogMissing`] if the generation to be read next was deleted, and whatever reading finds.
    pub async fn poll(&mut self) -> Result<Vec<(Lsn, LogRecord)>> {
        let mut records = Vec::new();
        loop {
            let files = self.reader.generations().await?;
            let Some(file) = files.iter().find(|file| file.generation == self.next.generation) else {
                return match files.last() {
                    // The generation to come has not been started yet.
                    Some(last) if last.generation < self.next.generation => Ok(records),
                    _ => Err(EngineError::LogMissing {
                        generation: self.next.generation,
                        path: self.reader.names.directory().to_owned(),
                    }),
                };
            };
            let generation = match self.reader.read_live(&file.path).await {
                Ok(generation) => generation,
                // It was renamed between looking and reading: look again.
                Err(EngineError::Disk(error)) if error.kind == DiskErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if generation.header.generation != self.next.generation {
                continue;
            }
            if let Some(previous) = &self.previous
                && self.next.offset == 0
            {
                LogReader::check_chain(previous, &generation.header, &generation.path)?;
            }
            let mut unread = generation.records(self.next.offset);
            for record in unread.by_ref() {
                records.push(record?);
            }
            self.next.offset = unread.place().offset;
            let is_closed = files
                .iter()
                .any(|file| file.generation > generation.header.generation);
            if !is_closed {
                return Ok(records);
            }
            self.next = Lsn::new(generation.header.generation + 1, 0);
            self.previous = Some(generation);
        }
    }
}

fn same(one: &[Buffer], other: &[Buffer]) -> bool {
    one.iter()
        .map(|part| &part[..])
        .eq(other.iter().map(|part| &part[..]))
}

/// Judges what lies behind the header, in the parts in which it was read.
fn judge(path: &Path, header: GenerationHeader, parts: &[Buffer]) -> Result<Generation> {
    let framing = header.framing;
    let unit_bytes = framing.unit_bytes();
    let last_payload_unit = framing.first_unit() + framing.capacity_bytes() / framing.payload_bytes() as u32;
    // No unit lies in two parts.
    let unit_at = |index: u32| {
        let offset = index as usize * unit_bytes - HEADER_BYTES;
        &parts[offset / READ_BYTES][offset % READ_BYTES..][..unit_bytes]
    };
    let mut generation = Generation {
        path: path.to_owned(),
        flush: header.flush,
        header,
        payload: Vec::new(),
        torn_units: 0,
        shadows_used: 0,
    };
    let mut index = framing.first_unit();
    while index < last_payload_unit {
        let Some((flush, used_bytes, from)) = readable(framing, &generation.header, index, &unit_at) else {
            break;
        };
        // On devices with larger blocks a flush rewrites older sectors, so the numbers need not rise from unit to unit.
        generation.flush = generation.flush.max(flush);
        generation.shadows_used += u32::from(from != index);
        generation
            .payload
            .extend_from_slice(&framing.payload(unit_at(from))[..used_bytes]);
        index += 1;
        if used_bytes < framing.payload_bytes() {
            break;
        }
    }
    check_beyond(&mut generation, index, framing, &unit_at)?;
    Ok(generation)
}

/// The flush, used bytes and place of the unit that holds the payload of `index`: itself, or its shadow if it is torn.
fn readable<'a>(
    framing: Framing,
    header: &GenerationHeader,
    index: u32,
    unit_at: &impl Fn(u32) -> &'a [u8],
) -> Option<(u32, usize, u32)> {
    match framing.decode(unit_at(index), header.generation, index) {
        UnitState::Good {
            flush,
            used_bytes,
            stands_for,
        } if stands_for == index => Some((flush, used_bytes, index)),
        // A shadow where a payload unit is expected: the flush that would have replaced it never started.
        UnitState::Good { .. } | UnitState::Blank => None,
        UnitState::Bad if framing.has_shadow() => {
            match framing.decode(unit_at(index + 1), header.generation, index + 1) {
                UnitState::Good {
                    flush,
                    used_bytes,
                    stands_for,
                } if stands_for == index => Some((flush, used_bytes, index + 1)),
                _ => None,
            }
        }
        UnitState::Bad => None,
    }
}

/// Units behind the readable end may only come from the flush that was under way when the log stopped.
fn check_beyond<'a>(
    generation: &mut Generation,
    end: u32,
    framing: Framing,
    unit_at: &impl Fn(u32) -> &'a [u8],
) -> Result<()> {
    for index in end..framing.units_per_file() {
        match framing.decode(unit_at(index), generation.header.generation, index) {
            UnitState::Blank => {}
            UnitState::Bad => generation.torn_units += 1,
            UnitState::Good {
                flush, stands_for, ..
            } => {
                let is_shadow_of_end = stands_for + 1 == index && stands_for < end;
                if flush > generation.flush + 1 && !is_shadow_of_end {
                    return Err(EngineError::LogCorrupt {
                        path: generation.path.clone(),
                        offset: u64::from(end) * framing.unit_bytes() as u64,
                        why: format!(
                            "flush {} can be read, flush {flush} behind it was written later: acknowledged log is lost",
                            generation.flush
                        ),
                    });
                }
                if !is_shadow_of_end {
                    generation.torn_units += 1;
                }
            }
        }
    }
    Ok(())
}
