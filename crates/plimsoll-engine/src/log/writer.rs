//! Appending to the log and making it durable.
//!
//! Records go into memory at once; one writer task turns them into framed units. A flush covers
//! everything appended when it starts, so that all waiting commits are released together (group
//! commit). Every log write is durable by itself (write with data sync), onto blocks that were
//! written when the generation was formatted, so that no file-system metadata changes.
//!
//! Rollover: the next generation, formatted ahead as `E00tmp.log`, gets its header; the full one is
//! renamed to its number; the directory is synced; the new one becomes `E00.log`; the directory is
//! synced. A cut anywhere leaves either the full generation under one of its two names, or both.
//! Then the databases note that there is a new generation, and only after that anything in it
//! counts as durable: a header that knows less would let lost generations go unnoticed, one that
//! knows more would miss generations that never were.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_io::{
    Context, DiskErrorKind, Durability, File, Files, Handle, NANOS_PER_MILLISECOND, Notify, Purpose,
};

use super::Lsn;
use super::attached::Attached;
use super::framing::Framing;
use super::generation_file::{format_generation, write_header};
use super::header::GenerationHeader;
use super::kept::KeptGenerations;
use super::names::LogNames;
use super::reader::LogReader;
use super::record::LogRecord;
use super::run::LogRun;
use super::subscribers::Subscribers;
use super::units::UnitWrite;
use crate::error::{EngineError, Result};
use crate::logtime::LogTime;

/// Units framed before others may run.
const UNITS_BETWEEN_BREATHS: u32 = 8;

/// Where one record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its first byte.
    pub start: Lsn,
    /// The byte after it: durable up to here means the record is durable.
    pub end: Lsn,
}

/// Counters of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatistics {
    /// Payload bytes appended.
    pub appended_bytes: u64,
    /// Bytes written by flushes, framing and shadows included, formatting not.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Generations finished.
    pub generations: u64,
    /// Times a change had to wait because the log buffer was full ("log record stalls").
    pub record_stalls: u64,
    /// Times a rollover had to wait for the next generation to be formatted.
    pub format_stalls: u64,
}

/// Where the numbers of generations end.
const GENERATION_MAX: u32 = 0xFFFF_0000;
/// Generations that an instance may begin behind that, to recover, to undo and to close.
const GENERATIONS_TO_CLOSE: u32 = 1024;

/// Notes durably that there is a generation.
pub type NoteGeneration = Box<dyn Fn(u32) -> Pin<Box<dyn Future<Output = Result<()>>>>>;

struct GenerationBuffer {
    generation: u32,
    payload: Vec<u8>,
    /// What was attached when it began.
    attached: Attached,
}

struct State {
    header: GenerationHeader,
    file: File,
    /// The generation being written, then those appended to meanwhile.
    buffers: VecDeque<GenerationBuffer>,
    /// Memory of a generation that is written, for the next.
    spare: Vec<u8>,
    durable: Lsn,
    flush: u32,
    prepared: Option<File>,
    formatting: bool,
    kept: KeptGenerations,
    /// What is attached behind everything appended.
    attached: Attached,
}

impl State {
    fn last(&self) -> &GenerationBuffer {
        self.buffers.back().expect("there is always a generation to append to")
    }

    fn last_mut(&mut self) -> &mut GenerationBuffer {
        self.buffers.back_mut().expect("there is always a generation to append to")
    }

    /// Whether the numbers of generations end here, for this life.
    fn is_used_up(&self) -> bool {
        let generation = self.header.generation;
        generation >= GENERATION_MAX && generation - self.kept.first() >= GENERATIONS_TO_CLOSE
    }

    fn add_generation(&mut self) {
        let generation = self.last().generation + 1;
        let payload = std::mem::take(&mut self.spare);
        let attached = self.attached.clone();
        self.buffers.push_back(GenerationBuffer { generation, payload, attached });
    }

    fn drop_first_generation(&mut self) {
        if let Some(written) = self.buffers.pop_front() {
            self.spare = written.payload;
            self.spare.clear();
        }
    }
}

/// The log being written. See the module text.
pub struct Log {
    files: Files,
    handle: Handle,
    names: LogNames,
    context: Context,
    buffer_bytes: u64,
    state: RefCell<State>,
    note_generation: RefCell<Option<NoteGeneration>>,
    requested: Cell<Lsn>,
    failed: RefCell<Option<EngineError>>,
    closing: Cell<bool>,
    stopped: Cell<bool>,
    work: Notify,
    progress: Notify,
    subscribers: Subscribers,
    statistics: Cell<LogStatistics>,
}

impl Log {
    /// Starts a generation after everything described by `header` (whose generation number, chain
    /// fields and signature the caller has filled in) and the task that writes the log. The
    /// generations `found`, in their order, are kept.
    ///
    /// # Errors
    /// [`EngineError::LogUsedUp`] at the end of the numbers of generations, and whatever the disk
    /// reports.
    pub async fn start(
        files: Files,
        handle: Handle,
        names: LogNames,
        context: Context,
        mut header: GenerationHeader,
        found: VecDeque<u32>,
        buffer_bytes: u64,
    ) -> Result<Rc<Log>> {
        if header.generation > u32::MAX - 2 * GENERATIONS_TO_CLOSE {
            return Err(EngineError::LogUsedUp { generation: header.generation });
        }
        // Creation times tell two histories apart: an earlier life may have begun a generation of
        // this number within this millisecond, and given it up.
        handle.sleep(NANOS_PER_MILLISECOND).await;
        header.created = LogTime::from_utc_ns(handle.clock().anchor().utc_ns);
        let file = format_generation(&files, &names, context).await?;
        let metadata = Context { purpose: Purpose::Metadata, ..context };
        write_header(&file, &header, context).await?;
        make_room(&files, &names, context, header.generation).await?;
        files.rename(&names.prepared(), &names.current(), metadata).await?;
        files.sync_directory(names.directory(), metadata).await?;
        let (generation, attached) = (header.generation, header.attached.clone());
        let first = GenerationBuffer { generation, payload: vec![], attached: attached.clone() };
        let state = State {
            flush: header.flush,
            header,
            file,
            buffers: VecDeque::from([first]),
            attached,
            spare: Vec::new(),
            durable: Lsn::new(generation, 0),
            prepared: None,
            formatting: false,
            kept: KeptGenerations::new(found, generation),
        };
        let log = Rc::new(Log {
            files,
            handle: handle.clone(),
            names,
            context,
            buffer_bytes,
            state: RefCell::new(state),
            note_generation: RefCell::new(None),
            requested: Cell::new(Lsn::ZERO),
            failed: RefCell::new(None),
            closing: Cell::new(false),
            stopped: Cell::new(false),
            work: Notify::new(),
            progress: Notify::new(),
            subscribers: Subscribers::default(),
            statistics: Cell::default(),
        });
        let writer = log.clone();
        drop(handle.spawn(async move { writer.write_until_closed().await }));
        Ok(log)
    }

    /// From now on no record of a further generation counts as durable before `note` has noted it.
    pub fn note_generations(&self, note: NoteGeneration) {
        *self.note_generation.borrow_mut() = Some(note);
    }

    /// File names of the stream.
    pub fn names(&self) -> &LogNames {
        &self.names
    }

    /// The stream's signature.
    pub fn signature(&self) -> crate::logtime::Signature {
        self.state.borrow().header.signature
    }

    /// How the stream is framed.
    pub fn framing(&self) -> Framing {
        self.state.borrow().header.framing
    }

    /// Counters since the start.
    pub fn statistics(&self) -> LogStatistics {
        self.statistics.get()
    }

    fn count(&self, change: impl FnOnce(&mut LogStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// The end of everything appended.
    pub fn tip(&self) -> Lsn {
        let state = self.state.borrow();
        let last = state.last();
        Lsn::new(last.generation, last.payload.len() as u32)
    }

    /// Everything before this survives a crash.
    pub fn durable(&self) -> Lsn {
        self.state.borrow().durable
    }

    /// The oldest generation on disk that is not being deleted.
    pub fn oldest_generation(&self) -> u32 {
        self.state.borrow().kept.oldest()
    }

    /// Appended and not yet durable.
    pub fn unflushed_bytes(&self) -> u64 {
        let state = self.state.borrow();
        let total: usize = state.buffers.iter().map(|buffer| buffer.payload.len()).sum();
        let front_generation = state.buffers.front().map_or(0, |buffer| buffer.generation);
        let written =
            if state.durable.generation == front_generation { state.durable.offset } else { 0 };
        total as u64 - u64::from(written)
    }

    /// Fails if the log has failed.
    pub fn check(&self) -> Result<()> {
        match &*self.failed.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Fails when nobody writes the log any more.
    fn check_writer(&self) -> Result<()> {
        if self.stopped.get() {
            return Err(EngineError::Closing);
        }
        Ok(())
    }

    /// Whether nobody writes it any more.
    pub fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Who is told of what becomes durable.
    pub(super) fn subscribers(&self) -> &Subscribers {
        &self.subscribers
    }

    /// Stops everything after an error that makes further work unsafe.
    pub fn fail(&self, error: &EngineError) {
        self.failed.borrow_mut().get_or_insert_with(|| error.poisoning());
        self.work.notify_all();
        self.progress.notify_all();
        self.subscribers.wake();
    }

    /// Waits while the log buffer is full.
    pub async fn room(&self) -> Result<()> {
        self.check()?;
        if self.unflushed_bytes() < self.buffer_bytes {
            return Ok(());
        }
        self.count(|statistics| statistics.record_stalls += 1);
        while self.unflushed_bytes() >= self.buffer_bytes {
            self.check_writer()?;
            let progress = self.progress.notified();
            self.request(self.tip());
            progress.await;
            self.check()?;
        }
        Ok(())
    }

    /// Appends a record in memory. Never waits; a record never spans two generations.
    pub fn append(&self, record: &LogRecord) -> Appended {
        let bytes = record.encode();
        let appended = {
            let mut state = self.state.borrow_mut();
            let capacity_bytes = state.header.framing.capacity_bytes() as usize;
            assert!(bytes.len() <= capacity_bytes, "a record fits a generation");
            let last = state.last();
            if last.payload.len() + bytes.len() > capacity_bytes {
                state.add_generation();
            }
            let last = state.last_mut();
            let start = Lsn::new(last.generation, last.payload.len() as u32);
            last.payload.extend_from_slice(&bytes);
            let end = Lsn::new(last.generation, last.payload.len() as u32);
            state.attached.note(record);
            Appended { start, end }
        };
        self.count(|statistics| statistics.appended_bytes += bytes.len() as u64);
        if self.unflushed_bytes() * 2 >= self.buffer_bytes {
            self.request(appended.end);
        }
        appended
    }

    /// Ends the generation that is appended to, full or not, and begins the next with a record that
    /// says nothing new.
    pub fn begin_generation(&self) -> Appended {
        self.state.borrow_mut().add_generation();
        self.append(&LogRecord::Checkpoint { at: Lsn::ZERO })
    }

    fn request(&self, upto: Lsn) {
        if upto > self.requested.get() {
            self.requested.set(upto);
        }
        self.work.notify_all();
    }

    /// Waits until everything before `upto` is durable.
    pub async fn make_durable(&self, upto: Lsn) -> Result<()> {
        loop {
            self.check()?;
            if self.durable() >= upto {
                return Ok(());
            }
            self.check_writer()?;
            let progress = self.progress.notified();
            self.request(upto);
            progress.await;
        }
    }

    /// Makes everything appended durable and stops the writer.
    pub async fn close(&self) -> Result<()> {
        let result = self.make_durable(self.tip()).await;
        self.closing.set(true);
        while !self.stopped.get() {
            let progress = self.progress.notified();
            self.work.notify_all();
            progress.await;
        }
        result
    }

    /// Deletes closed generations before `keep_from`, which is asked for each: a holder may come to
    /// need one meanwhile. `one_by_one` makes each deletion durable before the next: then a power
    /// cut brings none back behind one that stays gone. The next call begins with a deletion that
    /// failed or was dropped.
    pub async fn delete_before(&self, keep_from: impl Fn() -> u32, one_by_one: bool) -> Result<()> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        while let Some(generation) = self.next_to_delete(&keep_from) {
            match self.files.delete(&self.names.closed(generation), metadata).await {
                Ok(()) => {}
                Err(error) if error.kind == DiskErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            if one_by_one {
                self.files.sync_directory(self.names.directory(), metadata).await?;
            }
            self.state.borrow_mut().kept.end_deletion(generation);
        }
        Ok(())
    }

    /// The next generation to delete, which no one can hold any more from now on.
    fn next_to_delete(&self, keep_from: impl Fn() -> u32) -> Option<u32> {
        let half_deleted = self.state.borrow().kept.half_deleted();
        if half_deleted.is_some() {
            return half_deleted;
        }
        let generation = self.oldest_generation();
        if generation >= keep_from() || generation >= self.durable().generation {
            return None;
        }
        self.state.borrow_mut().kept.begin_deletion();
        Some(generation)
    }

    async fn write_until_closed(self: Rc<Self>) {
        loop {
            let work = self.work.notified();
            if self.check().is_err() {
                break;
            }
            if self.requested.get() <= self.durable() {
                if self.closing.get() {
                    break;
                }
                work.await;
                continue;
            }
            if let Err(error) = self.flush().await {
                self.fail(&error);
                break;
            }
            self.progress.notify_all();
            self.format_ahead();
        }
        self.finish().await;
    }

    async fn finish(&self) {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        while self.state.borrow().formatting {
            self.progress.notified().await;
        }
        let (file, prepared) = {
            let mut state = self.state.borrow_mut();
            (state.file.clone(), state.prepared.take())
        };
        // The handles are closed whatever that says: everything durable is durable already.
        let _ = file.close(metadata).await;
        if let Some(prepared) = prepared {
            let _ = prepared.close(metadata).await;
        }
        self.stopped.set(true);
        self.progress.notify_all();
        self.subscribers.wake();
    }

    /// Writes everything appended to the generation being written; rolls over if a later one has
    /// been started.
    async fn flush(self: &Rc<Self>) -> Result<()> {
        let (target, closed) = {
            let state = &mut *self.state.borrow_mut();
            let front = state.buffers.front_mut().expect("there is always a generation");
            if front.payload.len() > state.durable.offset as usize {
                seal_last_unit(&mut front.payload, state.header.framing);
            }
            (Lsn::new(front.generation, front.payload.len() as u32), state.buffers.len() > 1)
        };
        if target > self.durable() {
            let writes = self.write_units(target).await?;
            self.note_durable(target, writes);
            self.count(|statistics| statistics.flushes += 1);
        }
        if closed {
            self.roll_over().await?;
        }
        Ok(())
    }

    /// From now on everything before `target` is durable, and whoever wants to know is told.
    fn note_durable(&self, target: Lsn, writes: Vec<UnitWrite>) {
        let state = &mut *self.state.borrow_mut();
        let from = std::mem::replace(&mut state.durable, target);
        if self.subscribers.is_empty() {
            return;
        }
        let written = state.buffers.front().expect("a generation is written");
        let written = (&written.payload[..], state.flush);
        self.subscribers.publish(LogRun::of_flush(&state.header, (from, target), written, writes));
    }

    async fn write_units(&self, target: Lsn) -> Result<Vec<UnitWrite>> {
        let (framing, from_offset, file) = {
            let mut state = self.state.borrow_mut();
            state.flush = state.flush.wrapping_add(1);
            (state.header.framing, state.durable.offset, state.file.clone())
        };
        let payload_bytes = framing.payload_bytes() as u32;
        let first = framing.unit_of(from_offset);
        let last = framing.unit_of(target.offset - 1);
        if !framing.has_shadow() {
            let write = self.write_run(&file, (first, last, None), target.offset);
            return Ok(vec![write.await?]);
        }
        let shadow = (!target.offset.is_multiple_of(payload_bytes)).then_some(last);
        if from_offset.is_multiple_of(payload_bytes) {
            let write = self.write_run(&file, (first, last, shadow), target.offset);
            return Ok(vec![write.await?]);
        }
        // The first segment has a shadow from before: make the new version durable before the
        // shadow is overwritten.
        let mut writes = vec![self.write_run(&file, (first, first, None), target.offset).await?];
        if last > first || shadow.is_some() {
            let write = self.write_run(&file, (first + 1, last, shadow), target.offset);
            writes.push(write.await?);
        }
        Ok(writes)
    }

    /// Writes units `first..=last` (possibly none) and after them a shadow of unit `shadow`.
    async fn write_run(
        &self,
        file: &File,
        units: (u32, u32, Option<u32>),
        end_offset: u32,
    ) -> Result<UnitWrite> {
        let time = LogTime::from_utc_ns(self.handle.clock().anchor().utc_ns);
        let alignment_bytes = file.opened().alignment_bytes;
        let write = UnitWrite::new(self.framing(), units, end_offset, alignment_bytes, time);
        let buffer = self.frame(file, &write).await;
        let bytes = buffer.len() as u64;
        let context = Context { purpose: Purpose::LogWrite, ..self.context };
        file.write(write.offset(self.framing()), buffer, Durability::Durable, context).await?;
        self.count(|statistics| statistics.written_bytes += bytes);
        Ok(write)
    }

    /// The bytes of a write. Only the writer changes what this looks at, so others may run in
    /// between.
    async fn frame(&self, file: &File, write: &UnitWrite) -> plimsoll_io::Buffer {
        let framing = self.framing();
        let unit_bytes = framing.unit_bytes();
        let mut buffer = file.allocate(write.units().len() * unit_bytes);
        for (unit, index) in buffer.chunks_exact_mut(unit_bytes).zip(write.units()) {
            {
                let state = self.state.borrow();
                let payload = &state.buffers.front().expect("a generation is written").payload;
                let flush = (state.header.generation, state.flush);
                write.frame(framing, unit, index, flush, (payload, 0));
            }
            if index % UNITS_BETWEEN_BREATHS == 0 {
                self.handle.breathe().await;
            }
        }
        buffer
    }

    async fn roll_over(self: &Rc<Self>) -> Result<()> {
        let metadata = Context { purpose: Purpose::Metadata, ..self.context };
        if self.state.borrow().is_used_up() {
            let generation = self.state.borrow().header.generation;
            return Err(EngineError::LogUsedUp { generation });
        }
        let prepared = self.prepared().await?;
        let (old_file, header) = {
            let state = self.state.borrow();
            let mut header = state.header.clone();
            header.previous_created = header.created;
            header.previous_end = state.durable;
            header.generation += 1;
            header.flush = state.flush;
            header.attached = state.buffers[1].attached.clone();
            header.created = LogTime::from_utc_ns(self.handle.clock().anchor().utc_ns);
            (state.file.clone(), header)
        };
        write_header(&prepared, &header, self.context).await?;
        let current = self.names.current();
        self.files.rename(&current, &self.names.closed(header.generation - 1), metadata).await?;
        self.files.sync_directory(self.names.directory(), metadata).await?;
        self.files.rename(&self.names.prepared(), &current, metadata).await?;
        self.files.sync_directory(self.names.directory(), metadata).await?;
        old_file.close(metadata).await?;
        let noted = self.note_generation.borrow().as_ref().map(|note| note(header.generation));
        if let Some(noted) = noted {
            noted.await?;
        }
        {
            let mut state = self.state.borrow_mut();
            state.durable = Lsn::new(header.generation, 0);
            state.header = header;
            state.file = prepared;
            state.drop_first_generation();
        }
        self.count(|statistics| statistics.generations += 1);
        Ok(())
    }

    /// The formatted next generation: usually there, else formatted now.
    async fn prepared(&self) -> Result<File> {
        if self.state.borrow().prepared.is_none() {
            self.count(|statistics| statistics.format_stalls += 1);
        }
        while self.state.borrow().formatting {
            self.progress.notified().await;
            self.check()?;
        }
        let prepared = self.state.borrow_mut().prepared.take();
        match prepared {
            Some(file) => Ok(file),
            None => format_generation(&self.files, &self.names, self.context).await,
        }
    }

    /// Formats the next generation in the background once this one is in real use.
    fn format_ahead(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            let in_use = state.durable.offset >= state.header.framing.capacity_bytes() / 8;
            if state.prepared.is_some() || state.formatting || !in_use || self.closing.get() {
                return;
            }
            state.formatting = true;
        }
        let log = self.clone();
        drop(self.handle.spawn(async move {
            let formatted = format_generation(&log.files, &log.names, log.context).await;
            match formatted {
                Ok(file) => log.state.borrow_mut().prepared = Some(file),
                Err(error) => log.fail(&error),
            }
            log.state.borrow_mut().formatting = false;
            log.progress.notify_all();
        }));
    }
}

/// Makes room for generation `first`, which begins: the current one, as it was found, gets the name
/// that it is kept under, and what has no place in the stream is set aside.
async fn make_room(files: &Files, names: &LogNames, context: Context, first: u32) -> Result<()> {
    let metadata = Context { purpose: Purpose::Metadata, ..context };
    let reader = LogReader::new(files.clone(), names.clone(), context);
    let (current, mut is_changed) = (names.current(), false);
    let stream = loop {
        let mut stream = reader.generations().await?;
        // Of a generation that lay there twice, recovery has set aside one.
        let Some(file) = stream.pop_if(|file| file.generation >= first) else { break stream };
        let aside = reader.free_name_aside(file.generation).await?;
        files.rename(&file.path, &aside, metadata).await?;
        is_changed = true;
    };
    if files.exists(&current, metadata).await? {
        let kept_as = match stream.iter().find(|file| file.path == current) {
            Some(file) => names.closed(file.generation),
            // There is more of it under its number: it is an older one that was put back.
            None => {
                let generation = reader.read_header(&current).await?.generation;
                reader.free_name_aside(generation).await?
            }
        };
        files.rename(&current, &kept_as, metadata).await?;
        is_changed = true;
    }
    if is_changed {
        files.sync_directory(names.directory(), metadata).await?;
    }
    Ok(())
}

/// Pads the last unit when it is more than half full, so that the next flush need not write it
/// again: less is wasted than written twice. With shadows the last unit is safe and is always
/// written again.
fn seal_last_unit(payload: &mut Vec<u8>, framing: Framing) {
    let used_bytes = payload.len() % framing.payload_bytes();
    if !framing.has_shadow() && used_bytes * 2 > framing.payload_bytes() {
        payload.resize(payload.len() + framing.payload_bytes() - used_bytes, 0);
    }
}
