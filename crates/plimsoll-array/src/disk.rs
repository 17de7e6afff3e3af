//! The modelled array as a [`Disk`]: another disk keeps the bytes, the array says how long
//! everything takes.
//!
//! A transfer is held here until the array has answered it and is then carried out below, where it
//! is to take no time (a memory disk with the options of a RAM disk, with prepared databases kept
//! sparsely). Names, lengths and syncs pass at once: the array's cache is protected, so what was
//! written is safe, and a file system's own work is not modelled. A close stays behind the
//! transfers of its file.

mod placement;

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{
    Action, Answer, Buffer, Clock, Disk, DiskError, DiskErrorKind, DiskFacts, Durability, FileId,
    Nanos, Operation, Outcome,
};

use crate::array::{Array, ArrayReport, Happening, Request};
use crate::spec::Fault;
use placement::Placement;

/// What a transfer meets whose data is gone.
const LOST: &str = "data loss: the modelled array has lost more than its redundancy bears";

/// A transfer at the array.
struct Held {
    operation: Operation,
    file: FileId,
    submitted: Nanos,
    parts_left: u32,
    is_lost: bool,
}

/// A file that is open.
struct Open {
    path: PathBuf,
    map: u64,
    length_bytes: u64,
    transfer_count: u32,
    close: Option<Operation>,
}

struct State {
    array: Array,
    placement: Placement,
    open: BTreeMap<FileId, Open>,
    held: Vec<Option<Held>>,
    held_free: Vec<u32>,
    /// Answered by the array, to be carried out below.
    answered: VecDeque<Held>,
    /// Closes that wait for the transfers of their files.
    closes_waiting: usize,
}

/// See the module text.
pub struct ModelledDisk<D> {
    disk: D,
    clock: Rc<Clock>,
    state: Rc<RefCell<State>>,
}

impl<D: Disk> ModelledDisk<D> {
    /// Lets `disk` take the time that `array` takes. `folders` say on which volume the files of a
    /// folder lie; other files lie on the first.
    ///
    /// # Panics
    /// When the clock is not virtual: a modelled array has no time of its own to give.
    pub fn new(disk: D, clock: Rc<Clock>, array: Array, folders: Vec<(PathBuf, u32)>) -> Self {
        assert!(clock.is_virtual(), "a modelled array runs in virtual time");
        let capacities =
            (0..array.volume_count() as u32).map(|volume| array.capacity_bytes(volume));
        let placement = Placement::new(folders, capacities.collect::<Vec<_>>().into_iter());
        let state = State {
            array,
            placement,
            open: BTreeMap::new(),
            held: Vec::new(),
            held_free: Vec::new(),
            answered: VecDeque::new(),
            closes_waiting: 0,
        };
        Self { disk, clock, state: Rc::new(RefCell::new(state)) }
    }

    /// What the array has counted.
    pub fn report(&self) -> ArrayReport {
        self.up_to_now().array.report()
    }

    /// Lets the array count anew.
    pub fn reset_counters(&self) {
        self.up_to_now().array.reset_counters();
    }

    /// The state once the array has done what was due while nobody looked.
    fn up_to_now(&self) -> RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        state.advance(self.clock.now());
        state
    }

    /// Lets something break or return now.
    pub fn break_now(&self, fault: Fault) {
        self.break_after(0, fault);
    }

    /// Lets something break or return so long after now.
    pub fn break_after(&self, delay_ns: Nanos, fault: Fault) {
        let at_ns = self.clock.now() + delay_ns;
        self.state.borrow_mut().array.break_at(at_ns, fault);
    }

    /// The disk that keeps the bytes.
    pub fn inner(&self) -> &D {
        &self.disk
    }

    /// Passes an operation on at once, noting what it does to names and lengths when it succeeds.
    fn pass(&self, operation: Operation) {
        let Operation { action, context, completion } = operation;
        let state = self.state.clone();
        let note = Note::of(&action);
        let completion = Box::new(move |outcome: Outcome| {
            if let Ok(answer) = &outcome.result {
                state.borrow_mut().note(note, answer);
            }
            completion(outcome);
        });
        self.disk.submit(Operation { action, context, completion });
    }

    /// Carries out below what the array has answered.
    fn carry_out(&self) {
        loop {
            let Some(held) = self.state.borrow_mut().answered.pop_front() else {
                return;
            };
            let Held { operation, file, submitted, is_lost, .. } = held;
            let verb = operation.action.verb();
            let state = self.state.clone();
            let then = operation.completion;
            let completion = Box::new(move |outcome: Outcome| {
                let path = state.borrow_mut().transfer_done(file);
                let result = if is_lost {
                    Err(DiskError::new(DiskErrorKind::Medium, verb, path).because(LOST))
                } else {
                    outcome.result
                };
                then(Outcome { result, submitted, ..outcome });
            });
            self.disk.submit(Operation { completion, ..operation });
        }
    }

    /// Closes files whose last transfer is done.
    fn close_idle(&self) {
        loop {
            let mut state = self.state.borrow_mut();
            if state.closes_waiting == 0 {
                return;
            }
            let idle = state
                .open
                .iter_mut()
                .find(|(_, open)| open.transfer_count == 0 && open.close.is_some());
            let Some((_, open)) = idle else { return };
            let close = open.close.take();
            state.closes_waiting -= 1;
            drop(state);
            self.pass(close.expect("it was just seen"));
        }
    }
}

/// What an operation does to names and lengths.
enum Note {
    Nothing,
    Opened(PathBuf),
    Closed(FileId),
    Extended(FileId, u64),
    Renamed(PathBuf, PathBuf),
    Deleted(PathBuf),
}

impl Note {
    fn of(action: &Action) -> Self {
        match action {
            Action::Open { path, .. } => Note::Opened(path.clone()),
            Action::Close { file } => Note::Closed(*file),
            Action::Extend { file, length_bytes } => Note::Extended(*file, *length_bytes),
            Action::Rename { from, to } => Note::Renamed(from.clone(), to.clone()),
            Action::Delete { path } => Note::Deleted(path.clone()),
            _ => Note::Nothing,
        }
    }
}

impl State {
    fn note(&mut self, note: Note, answer: &Answer) {
        match note {
            Note::Nothing => {}
            Note::Opened(path) => {
                if let Answer::Opened(opened) = answer {
                    let map = self.placement.open(&path);
                    self.placement.reserve(map, opened.length_bytes);
                    let open = Open {
                        path,
                        map,
                        length_bytes: opened.length_bytes,
                        transfer_count: 0,
                        close: None,
                    };
                    self.open.insert(opened.file, open);
                }
            }
            Note::Closed(file) => {
                self.open.remove(&file);
            }
            Note::Extended(file, length_bytes) => self.grow(file, length_bytes),
            Note::Renamed(from, to) => self.placement.rename(&from, &to),
            Note::Deleted(path) => self.placement.delete(&path),
        }
    }

    /// A file is longer now, for everybody who has it open.
    fn grow(&mut self, file: FileId, length_bytes: u64) {
        let Some(map) = self.open.get(&file).map(|open| open.map) else {
            return;
        };
        for open in self.open.values_mut().filter(|open| open.map == map) {
            open.length_bytes = open.length_bytes.max(length_bytes);
        }
    }

    fn transfer_done(&mut self, file: FileId) -> PathBuf {
        self.open.get_mut(&file).map_or_else(PathBuf::new, |open| {
            open.transfer_count -= 1;
            open.path.clone()
        })
    }

    /// Puts a transfer on the array; gives it back when the array has nothing to do with it.
    fn start(&mut self, now: Nanos, operation: Operation) -> Result<(), Operation> {
        let (file, offset, bytes, durability) = match &operation.action {
            Action::Read { file, offset, buffer } => (*file, *offset, buffer.len() as u64, None),
            Action::Write { file, offset, buffer, durability } => {
                (*file, *offset, buffer.len() as u64, Some(*durability))
            }
            _ => return Err(operation),
        };
        let is_write = durability.is_some();
        let Some(open) = self.open.get(&file) else {
            return Err(operation);
        };
        let (map, end) = (open.map, offset + bytes);
        // Beyond the end of the file or of the volume the disk below finds the right words.
        if bytes == 0 || (!is_write && end > open.length_bytes) || !self.placement.reserve(map, end)
        {
            return Err(operation);
        }
        if is_write {
            self.grow(file, end);
        }
        let (volume, stretches) = self.placement.stretches(map, offset, bytes);
        let held = Held {
            operation,
            file,
            submitted: now,
            parts_left: stretches.len() as u32,
            is_lost: false,
        };
        if let Some(open) = self.open.get_mut(&file) {
            open.transfer_count += 1;
        }
        let slot = match self.held_free.pop() {
            Some(slot) => {
                self.held[slot as usize] = Some(held);
                slot
            }
            None => {
                self.held.push(Some(held));
                (self.held.len() - 1) as u32
            }
        };
        for (offset, bytes) in stretches {
            let request = Request {
                volume,
                offset,
                bytes: bytes as u32,
                is_write,
                is_durable: durability == Some(Durability::Durable),
                token: u64::from(slot),
            };
            self.array.submit(now, request);
        }
        Ok(())
    }

    /// Lets the array go on to a moment.
    fn advance(&mut self, now: Nanos) {
        while let Some(happening) = self.array.next(now) {
            let Happening::Completed(completed) = happening else {
                continue;
            };
            let slot = completed.request.token as u32;
            let held = self.held[slot as usize].as_mut().expect("a part of it was at the array");
            held.parts_left -= 1;
            held.is_lost |= completed.is_lost;
            if held.parts_left == 0 {
                self.answered.extend(self.held[slot as usize].take());
                self.held_free.push(slot);
            }
        }
    }

    fn held_count(&self) -> usize {
        self.held.len() - self.held_free.len() + self.answered.len()
    }
}

fn earlier(left: Option<Nanos>, right: Option<Nanos>) -> Option<Nanos> {
    [left, right].into_iter().flatten().min()
}

impl<D: Disk> Disk for ModelledDisk<D> {
    fn submit(&self, operation: Operation) {
        let now = self.clock.now();
        let mut state = self.state.borrow_mut();
        if let Action::Close { file } = &operation.action
            && let Some(open) = state.open.get_mut(file)
            && open.transfer_count > 0
        {
            state.closes_waiting += usize::from(open.close.replace(operation).is_none());
            return;
        }
        // What was due before comes first, so that the array never sees time go back.
        state.advance(now);
        let rest = state.start(now, operation);
        drop(state);
        if let Err(operation) = rest {
            self.pass(operation);
        }
    }

    fn reap(&self) -> usize {
        self.state.borrow_mut().advance(self.clock.now());
        self.carry_out();
        let delivered = self.disk.reap();
        self.close_idle();
        delivered
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.disk.wait(earlier(deadline, self.state.borrow().array.next_time()));
    }

    fn waker(&self) -> std::task::Waker {
        self.disk.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        let state = self.state.borrow();
        if !state.answered.is_empty() {
            return Some(self.clock.now());
        }
        // While nobody waits, the array's own work (destaging, rebuilding) need not move the clock.
        let inside = if state.held_count() > 0 { state.array.next_time() } else { None };
        earlier(self.disk.next_event(), inside)
    }

    fn in_flight(&self) -> usize {
        let state = self.state.borrow();
        state.held_count() + state.closes_waiting + self.disk.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        let mut facts = self.disk.facts();
        facts.method = "modelled array".to_owned();
        facts.remarks =
            vec!["MODELLED: times are those of a simulated array, not of hardware".to_owned()];
        facts
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }
}
