//! The log from any place on, for ever: from the files what lies behind, from memory what becomes
//! durable, and from the files again after a lag.
//!
//! Nothing that it gives can be taken back by a power cut, which sets it apart from
//! [`LogFollower`](super::follower::LogFollower): that reads files and knows no writer. Generations
//! that it has still to read must not be purged meanwhile: hold them.

use std::rc::Rc;

use super::Lsn;
use super::reader::{Generation, LogReader};
use super::run::LogRun;
use super::subscribers::Told;
use super::tap::Subscription;
use super::writer::Log;
use crate::error::{EngineError, Result};

/// See the module text.
pub struct LogTail {
    reader: LogReader,
    subscription: Subscription,
    next: Lsn,
    /// Up to here the files are read.
    behind: Option<Lsn>,
    /// The generation read last, for the chain.
    previous: Option<Generation>,
    /// Where the log ended when it began, if it began behind that.
    beyond: Option<Lsn>,
    lags: u64,
}

impl LogTail {
    /// Begins at `from`, the place of a record. At most `bytes_max` bytes of log wait in memory.
    pub fn begin(log: &Rc<Log>, reader: LogReader, from: Lsn, bytes_max: usize) -> LogTail {
        let subscription = Subscription::begin(log, bytes_max);
        let tip = log.tip();
        let is_beyond = from > tip && from != Lsn::new(tip.generation + 1, 0);
        LogTail {
            beyond: is_beyond.then_some(tip),
            behind: Some(subscription.start()),
            subscription,
            reader,
            next: from,
            previous: None,
            lags: 0,
        }
    }

    /// Where the next run begins.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// How often it was too slow and went on from the files.
    pub fn lags(&self) -> u64 {
        self.lags
    }

    /// The next run, waiting for it; `None` when the log was closed and everything has been given.
    /// It may be dropped while it waits: nothing is lost.
    ///
    /// # Errors
    /// [`EngineError::LogMissing`] for a generation that was purged, [`EngineError::ForeignLog`]
    /// where the place that it began at lies behind the end of its generation or of the log,
    /// whatever reading finds, and what the log failed with.
    pub async fn next(&mut self) -> Result<Option<Rc<LogRun>>> {
        if let Some(end) = self.beyond {
            return Err(EngineError::ForeignLog {
                path: self.reader.names().current(),
                why: format!(
                    "the log ended at {end}, and reading was to go on from {}: what lies between \
                     is not of this history",
                    self.next
                ),
            });
        }
        loop {
            if let Some(behind) = self.behind {
                if self.next >= behind {
                    (self.behind, self.previous) = (None, None);
                } else if let Some(run) = self.read(behind).await? {
                    return Ok(Some(run));
                }
                continue;
            }
            match self.subscription.next().await? {
                None => return Ok(None),
                Some(Told::Run(run)) if run.upto <= self.next => {}
                Some(Told::Run(run)) => {
                    let from = std::mem::replace(&mut self.next, run.upto);
                    return Ok(Some(LogRun::beginning_at(run, from)));
                }
                Some(Told::Lagged { upto, .. }) => {
                    self.lags += 1;
                    self.behind = Some(upto);
                }
            }
        }
    }

    /// Reads one generation, up to `behind` at most; `None` if there is nothing in it for us.
    async fn read(&mut self, behind: Lsn) -> Result<Option<Rc<LogRun>>> {
        let generation = self.generation().await?;
        generation.check_reaches(self.next)?;
        if let Some(previous) = &self.previous {
            LogReader::check_chain(previous, &generation.header, &generation.path)?;
        }
        let is_last = generation.header.generation == behind.generation;
        let upto = if is_last { behind } else { generation.end_of_records(self.next.offset) };
        let run =
            LogRun::from_file(generation.header.clone(), self.next, upto, &generation.payload);
        if is_last {
            self.next = upto;
        } else {
            self.next = Lsn::new(upto.generation + 1, 0);
            self.previous = Some(generation);
        }
        Ok((run.from < run.upto).then(|| Rc::new(run)))
    }

    /// The generation that comes next, which may be renamed while it is looked for.
    async fn generation(&self) -> Result<Generation> {
        let wanted = self.next.generation;
        loop {
            let files = self.reader.generations().await?;
            let Some(file) = files.iter().find(|file| file.generation == wanted) else {
                return Err(EngineError::LogMissing {
                    generation: wanted,
                    path: self.reader.names().directory().to_owned(),
                });
            };
            if let Some(generation) = self.reader.read_in_stream(&files, file).await? {
                return Ok(generation);
            }
        }
    }
}
