//! Recovery in steps: a database that was not shut down cleanly is brought forward one log
//! generation at a time.
//!
//! A replica feeds generations as they arrive, pauses and goes on (in another process, if need be),
//! and activates when it is to take over; only then are unfinished transactions undone. Crash
//! recovery is the same: feed all there is, activate.
//!
//! It may activate at any point from which on no page in the files is newer than what was redone.
//! Log after that point is another history from then on: it is set aside under another name, and a
//! copy that has redone it is refused the new one (creation times do not chain).

use std::collections::VecDeque;
use std::rc::Rc;

use plimsoll_io::{Context, Files, Handle, JoinHandle, Purpose, Random};

use super::older::check_clean_not_older;
// Circle: opening recovers where it must, and recovery in steps ends with opening: one way in two
// files.
use super::open::{
    Ground, Opening, activate, check_stream, close_all, needs_recovery, open_databases, redo_start,
};
use super::{Instance, InstanceOptions, RecoveryReport};
use crate::checkpoint::write_checkpoint;
use crate::database::Database;
use crate::error::{EngineError, Result};
use crate::log::Lsn;
use crate::log::header::GenerationHeader;
use crate::log::reader::{Generation, GenerationFile, LogFolder, LogReader};
use crate::logtime::Signature;
use crate::replay::{ReplayStatistics, Replayer, replay_context};

/// Generations whose reading has begun before they are waited for.
const GENERATIONS_READ_AHEAD: usize = 2;

/// Generations to be fed.
struct Ahead {
    unread: VecDeque<GenerationFile>,
    reading: VecDeque<JoinHandle<Result<Generation>>>,
}

/// See the module text.
pub struct Recovery {
    files: Files,
    handle: Handle,
    options: InstanceOptions,
    databases: Vec<Rc<Database>>,
    reader: LogReader,
    replayer: Replayer,
    start: Lsn,
    next: u32,
    known: Vec<GenerationFile>,
    signature: Signature,
    commits_given_up: bool,
}

impl Recovery {
    /// Opens the databases and finds where redo has to start.
    ///
    /// # Errors
    /// When a file cannot be opened or log that is needed is missing.
    pub async fn begin(files: Files, handle: Handle, options: InstanceOptions) -> Result<Recovery> {
        options.check()?;
        let databases = open_databases(&files, &handle, &options).await?;
        let opening = Opening { files, handle, options };
        let begun = Self::with_databases(opening, databases.clone()).await;
        if begun.is_err() {
            close_all(&databases).await;
        }
        begun
    }

    pub(super) async fn with_databases(
        opening: Opening,
        databases: Vec<Rc<Database>>,
    ) -> Result<Recovery> {
        let Opening { files, handle, options } = opening;
        let reader =
            LogReader::new(files.clone(), options.log.clone(), replay_context(options.context));
        let generations = reader.generations().await?;
        let start = redo_start(&options, &databases, &generations)?;
        make_found_durable(&files, &options, &databases).await?;
        let dirty = databases.iter().find(|database| needs_recovery(database));
        let signature =
            dirty.map_or_else(Signature::default, |database| database.header().log_signature);
        if dirty.is_some() {
            check_clean_not_older(&reader, &generations, signature, &databases).await?;
        }
        let limits = options.cache_limits(databases[0].size().bytes());
        let depth = options.checkpoint_depth_generations();
        let replayer = Replayer::new(handle.clone(), databases.clone(), limits, depth);
        Ok(Recovery {
            next: start.generation,
            known: generations,
            files,
            handle,
            options,
            databases,
            reader,
            replayer,
            start,
            signature,
            commits_given_up: false,
        })
    }

    /// The generation to be fed next.
    pub fn next_generation(&self) -> u32 {
        self.next
    }

    /// How far redo has come.
    pub fn position(&self) -> Lsn {
        self.replayer.position()
    }

    /// What redo has done.
    pub fn statistics(&self) -> ReplayStatistics {
        self.replayer.statistics()
    }

    /// Redoes the next generation; false if it is not there (yet).
    ///
    /// # Errors
    /// When the generation is damaged or belongs to another stream. Where it was broken off in the
    /// middle, by an error or because its future was dropped, everything but
    /// [`Recovery::abandon`] is refused from then on: [`EngineError::BrokenOff`].
    pub async fn feed_next(&mut self) -> Result<bool> {
        let Some(file) = self.file_of_next().await? else {
            return Ok(false);
        };
        let generation: Generation = self.reader.read_durably(&file.path).await?;
        let following = self.known.iter().find(|file| file.generation == self.next + 1);
        let following = match following {
            Some(file) => Some(self.reader.read_header(&file.path).await?),
            None => None,
        };
        self.feed(generation, following.as_ref()).await?;
        Ok(true)
    }

    async fn feed(
        &mut self,
        mut generation: Generation,
        following: Option<&GenerationHeader>,
    ) -> Result<()> {
        check_stream(&generation, &self.databases)?;
        if let Some(following) = following.filter(|following| generation.goes_beyond(following)) {
            self.check_history(&generation, following)?;
            generation.cut_at(following.previous_end);
        }
        self.replayer.feed(generation).await?;
        self.next += 1;
        Ok(())
    }

    /// Log behind the place where the next generation goes on was given up when that was begun.
    /// Databases that were opened with it, or after it, know nothing of that log. Others may have
    /// been changed by it: they are of another history.
    fn check_history(&self, generation: &Generation, following: &GenerationHeader) -> Result<()> {
        let has_parted = |database: &&Rc<Database>| {
            let opened_in = database.header().attach_position.generation;
            needs_recovery(database) && opened_in < following.generation
        };
        match self.databases.iter().find(has_parted) {
            None => Ok(()),
            Some(database) => Err(EngineError::Diverged {
                path: database.path().to_owned(),
                why: format!(
                    "its log ends at {}, and generation {} goes on from {}: what lies between is \
                     not of this history",
                    generation.end(),
                    following.generation,
                    following.previous_end
                ),
            }),
        }
    }

    /// The file of the next generation. Closed generations stay where they are, so the directory is
    /// looked at again only for others.
    async fn file_of_next(&mut self) -> Result<Option<GenerationFile>> {
        let closed = self.options.log.closed(self.next);
        if !self.known.iter().any(|file| file.path == closed) {
            self.known = self.reader.generations().await?;
        }
        let found = self.known.iter().find(|file| file.generation == self.next);
        Ok(found.cloned())
    }

    /// Feeds every generation there is. While one is redone the next is there, and the one after it
    /// is read.
    pub async fn feed_all(&mut self) -> Result<()> {
        let unread: VecDeque<GenerationFile> = (self.next..)
            .map_while(|number| self.known.iter().find(|file| file.generation == number).cloned())
            .collect();
        let mut ahead = Ahead { unread, reading: VecDeque::new() };
        let fed = self.feed_run(&mut ahead).await;
        for reading in ahead.reading {
            // Nothing may touch the files when this has returned.
            let _ = reading.await;
        }
        fed?;
        // What was begun meanwhile, and anything that was renamed.
        while self.feed_next().await? {}
        Ok(())
    }

    async fn feed_run(&mut self, ahead: &mut Ahead) -> Result<()> {
        let mut coming = self.read_ahead(ahead).await?;
        while let Some(generation) = coming {
            if generation.header.generation != self.next {
                // The writer has closed it and begun another under its name.
                return Ok(());
            }
            coming = self.read_ahead(ahead).await?;
            let following = coming.as_ref().map(|following| &following.header);
            self.feed(generation, following).await?;
        }
        Ok(())
    }

    /// The next generation; those behind it go on being read.
    async fn read_ahead(&self, ahead: &mut Ahead) -> Result<Option<Generation>> {
        while ahead.reading.len() < GENERATIONS_READ_AHEAD
            && let Some(file) = ahead.unread.pop_front()
        {
            ahead.reading.push_back(self.start_reading(&file));
        }
        match ahead.reading.pop_front() {
            Some(reading) => Ok(Some(reading.await?)),
            None => Ok(None),
        }
    }

    fn start_reading(&self, file: &GenerationFile) -> JoinHandle<Result<Generation>> {
        let (reader, path) = (self.reader.clone(), file.path.clone());
        self.handle.spawn(async move { reader.read_durably(&path).await })
    }

    /// Lets [`Recovery::activate`] leave out commits that were acknowledged: those in generations
    /// that are lost, or that were not fed.
    pub fn give_up_commits(&mut self) {
        self.commits_given_up = true;
    }

    /// Whether the databases can go on from what was redone.
    fn check_reach(&self) -> Result<()> {
        let last = self.position().generation;
        for database in self.databases.iter().filter(|database| needs_recovery(database)) {
            let (path, header) = (database.path().to_owned(), database.header());
            let (required, committed) =
                (header.generation_max_required, header.generation_max_committed);
            if last < required {
                return Err(EngineError::ActivatedTooEarly { path, required, last });
            }
            if last < committed && !self.commits_given_up {
                return Err(EngineError::CommittedLogMissing { path, committed, last });
            }
        }
        Ok(())
    }

    /// Takes generations after `last`, which were not redone, out of the stream, the newest first,
    /// so that a stop in between leaves no gap. Answers what is left.
    async fn set_aside(&self, mut folder: LogFolder, last: u32) -> Result<LogFolder> {
        let names = &self.options.log;
        let metadata = Context { purpose: Purpose::Metadata, ..self.options.context };
        let mut is_changed = false;
        while let Some(file) = folder.generations.pop_if(|file| file.generation > last) {
            let aside = self.reader.free_name_aside(file.generation).await?;
            self.files.rename(&file.path, &aside, metadata).await?;
            is_changed = true;
        }
        if is_changed {
            self.files.sync_directory(names.directory(), metadata).await?;
        }
        Ok(folder)
    }

    /// Makes what was redone durable and closes the files; a later [`Recovery::begin`] goes on from
    /// there.
    pub async fn pause(self) -> Result<()> {
        let resume_at = self.replayer.pause().await;
        let noted = match resume_at {
            Ok(resume_at) => {
                let resume_at = resume_at.max(self.start);
                note_resume(&self.files, &self.options, &self.databases, resume_at, self.signature)
                    .await
            }
            Err(error) => Err(error),
        };
        close_all(&self.databases).await;
        noted
    }

    /// Stops without keeping anything but what happens to be written, and closes the files: when
    /// this returns nobody holds them.
    pub async fn abandon(self) {
        let databases = self.databases.clone();
        self.stop().await;
        close_all(&databases).await;
    }

    /// Stops; the databases stay open.
    pub(super) async fn stop(self) {
        self.replayer.abandon().await;
    }

    /// Undoes what was not committed and opens the databases for work, with a new generation of
    /// the same stream.
    ///
    /// # Errors
    /// [`EngineError::ActivatedTooEarly`], [`EngineError::CommittedLogMissing`],
    /// [`EngineError::DamagedPages`] and whatever opening meets.
    pub async fn activate(self, random: &mut Random) -> Result<(Rc<Instance>, RecoveryReport)> {
        let databases = self.databases.clone();
        let activated = self.activate_open(random).await;
        if activated.is_err() {
            close_all(&databases).await;
        }
        activated
    }

    pub(super) async fn activate_open(
        mut self,
        random: &mut Random,
    ) -> Result<(Rc<Instance>, RecoveryReport)> {
        if let Err(error) = self.check_reach() {
            self.stop().await;
            return Err(error);
        }
        let last = self.position().generation;
        // First, because it may fail: then the log that was not redone is still to be redone.
        let replayed = self.replayer.finish().await?;
        let folder = self.set_aside(self.reader.folder().await?, last).await?;
        let ground = Ground { replayed, recovered_from: Some(self.start), folder };
        let opening = Opening { files: self.files, handle: self.handle, options: self.options };
        activate(opening, random, ground).await
    }
}

/// What was found may be in a volatile cache only: a process that died had written it and not
/// waited until it was stable. Redo leaves alone what it finds done, and the header allows pages to
/// be written, so a power cut must not take any of that back.
async fn make_found_durable(
    files: &Files,
    options: &InstanceOptions,
    databases: &[Rc<Database>],
) -> Result<()> {
    for database in databases.iter().filter(|database| needs_recovery(database)) {
        database.sync().await?;
    }
    let metadata = Context { purpose: Purpose::Metadata, ..options.context };
    files.sync_directory(options.log.directory(), metadata).await?;
    Ok(())
}

/// Headers and checkpoint file say where redo goes on.
async fn note_resume(
    files: &Files,
    options: &InstanceOptions,
    databases: &[Rc<Database>],
    resume_at: Lsn,
    signature: Signature,
) -> Result<()> {
    for database in databases.iter().filter(|database| needs_recovery(database)) {
        database
            .update_header(move |header| {
                header.generation_min_required =
                    header.generation_min_required.max(resume_at.generation);
                header.generation_recovering = resume_at.generation;
            })
            .await?;
    }
    let context = Context { purpose: Purpose::Header, ..options.context };
    write_checkpoint(
        files,
        &options.log.checkpoint(),
        resume_at,
        signature,
        options.framing,
        context,
    )
    .await
}
