//! Follows the growing end of a log stream in its files.

use super::Lsn;
use super::generation::Generation;
use super::reader::LogReader;
use super::record::LogRecord;
use crate::error::{EngineError, Result};

/// Follows the growing end of a stream: gives every record once, in order, as far as the files go
/// at the time.
///
/// It reads files. The last records may be of a flush that is under way, which a power cut can take
/// back: only the writer knows what is durable.
pub struct LogFollower {
    reader: LogReader,
    next: Lsn,
    /// The generation before the one being followed, for the chain.
    previous: Option<Generation>,
}

impl LogFollower {
    /// Follows from a record position on.
    pub fn new(reader: LogReader, from: Lsn) -> Self {
        Self { reader, next: from, previous: None }
    }

    /// Where the next record will start.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// The records written since the last call. An unfinished flush at the end is left for the next
    /// call. After an error, or when it was dropped while it reads, the next call gives them all.
    ///
    /// # Errors
    /// [`EngineError::LogMissing`] if the generation to be read next was deleted,
    /// [`EngineError::ForeignLog`] where it has read further than the generation went, and whatever
    /// reading finds.
    pub async fn poll(&mut self) -> Result<Vec<(Lsn, LogRecord)>> {
        let (mut records, mut next, mut passed) = (Vec::new(), self.next, None);
        loop {
            let files = self.reader.generations().await?;
            self.reader.check_has_come_to(&files, next)?;
            let Some(file) = files.iter().find(|file| file.generation == next.generation) else {
                match files.last() {
                    // The generation to come has not been started yet.
                    Some(last) if last.generation < next.generation => break,
                    _ => {
                        return Err(EngineError::LogMissing {
                            generation: next.generation,
                            path: self.reader.names().directory().to_owned(),
                        });
                    }
                }
            };
            let Some(generation) = self.reader.read_in_stream(&files, file).await? else {
                continue;
            };
            let is_closed = files.iter().any(|file| file.generation > generation.header.generation);
            if is_closed {
                generation.check_reaches(next)?;
            }
            if let Some(previous) = passed.as_ref().or(self.previous.as_ref())
                && next.offset == 0
            {
                LogReader::check_chain(previous, &generation.header, &generation.path)?;
            }
            let mut unread = generation.records(next.offset);
            for record in unread.by_ref() {
                records.push(record?);
            }
            next.offset = unread.place().offset;
            if !is_closed {
                break;
            }
            next = Lsn::new(generation.header.generation + 1, 0);
            passed = Some(generation);
        }
        // Only now that they are given.
        self.next = next;
        if passed.is_some() {
            self.previous = passed;
        }
        Ok(records)
    }
}
