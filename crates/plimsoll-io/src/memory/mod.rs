//! A disk in memory, on a virtual clock or a real one, that can lose power. The fault model in full is in
//! `docs/reference/fault-model.md`.
//!
//! What is stable: a write submitted as durable, when complete; any other write and any length, when a later sync of the
//! file is complete; a name, when a later sync of its directory is complete. Everything else is at risk: after
//! [`MemoryDisk::power_cut`] nothing completes any more, and [`MemoryDisk::crash_image`] makes the disk found afterwards,
//! in which each change at risk has survived, is gone, or is torn. Images can be made at any moment, also while the disk
//! goes on, and as many as wanted from one moment.
//!
//! Operations take effect when they complete, in the order of completion; a sync covers what had completed when it was
//! submitted, and no more. The caller's randomness decides everything that is left to chance.

mod chunks;
mod crash;
mod filesystem;
mod inode;
mod latency;
mod names;
mod options;
mod queue;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

pub use crash::Loss;
pub use latency::{Latency, LatencyPlan, LatencyRule};
pub use options::{MemoryOptions, Tracking};

use crate::sparse::Sparse;
use crate::{Action, Clock, Disk, DiskFacts, Nanos, Notify, Operation, Outcome, Random};
use chunks::{Chunks, Layout};
use crash::{Cut, InFlight};
use filesystem::FileSystem;
use inode::{ChangeKind, Inode, InodeRef};
use latency::Service;
use names::normal;
use queue::{Queue, Queued};

/// How long a real-time wait lasts at most when nothing is due: hung operations never wake anybody.
const WAIT_NS_MAX: Nanos = 50_000_000;

/// See the module text.
pub struct MemoryDisk {
    clock: Rc<Clock>,
    options: MemoryOptions,
    state: RefCell<State>,
    power: Power,
}

struct State {
    files: FileSystem,
    queue: Queue,
    service: Service,
    random: Random,
}

#[derive(Default)]
struct Power {
    is_off: Cell<bool>,
    cut_at: Cell<Option<Nanos>>,
    notify: Notify,
}

impl MemoryDisk {
    /// An empty disk holding only the root directory.
    pub fn new(clock: Rc<Clock>, random: Random, options: MemoryOptions) -> Rc<Self> {
        let state = State {
            files: FileSystem::new(options.clone()),
            queue: Queue::default(),
            service: Service::new(options.latency.clone()),
            random,
        };
        Rc::new(Self {
            clock,
            options,
            state: RefCell::new(state),
            power: Power::default(),
        })
    }

    /// The clock the disk runs on; a crash image has a new one.
    pub fn clock(&self) -> &Rc<Clock> {
        &self.clock
    }

    /// Adds a directory and those above it, stable at once.
    pub fn create_directory(&self, path: impl AsRef<Path>) {
        let name = normal(path.as_ref());
        self.state.borrow_mut().files.names.create_directory(&name);
    }

    /// Puts a file in place, stable at once, replacing what was there; its directories are made.
    pub fn load(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let mut chunks = Chunks::new(Layout::plain(self.options.chunk_bytes));
        chunks.write(0, bytes);
        self.place(path.as_ref(), Inode::settled(chunks, bytes.len() as u64));
    }

    /// Puts a file of generated content in place, stable at once.
    pub fn load_sparse(&self, path: impl AsRef<Path>, length_bytes: u64, sparse: Sparse) {
        let chunks = Chunks::new(Layout::sparse(sparse));
        self.place(path.as_ref(), Inode::settled(chunks, length_bytes));
    }

    fn place(&self, path: &Path, inode: Inode) {
        let name = normal(path);
        let names = &mut self.state.borrow_mut().files.names;
        if let Some(parent) = name.parent() {
            names.create_directory(parent);
        }
        names.settle_file(name, Rc::new(RefCell::new(inode)));
    }

    fn inode(&self, path: &Path) -> Option<InodeRef> {
        self.state
            .borrow()
            .files
            .names
            .present
            .get(&normal(path))
            .cloned()
    }

    /// The present bytes of one file.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let inode = self.inode(path.as_ref())?;
        let inode = inode.borrow();
        let mut bytes = vec![0; inode.length_bytes as usize];
        inode.chunks.read(0, &mut bytes);
        Some(bytes)
    }

    /// The present names, sorted, with lengths. Paths have no leading slash.
    pub fn list_files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state.borrow();
        let names = state.files.names.present.iter();
        names
            .map(|(name, inode)| (name.clone(), inode.borrow().length_bytes))
            .collect()
    }

    /// The present bytes of every file.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = self.list_files().into_iter();
        files
            .filter_map(|(path, _)| self.bytes(&path).map(|bytes| (path, bytes)))
            .collect()
    }

    /// Bytes of memory that hold file content: what was written, not what is generated or zero.
    pub fn stored_bytes(&self) -> u64 {
        let state = self.state.borrow();
        let inodes = state.files.names.present.values();
        inodes.map(|inode| inode.borrow().chunks.stored_bytes()).sum()
    }

    /// Cuts the power: nothing completes any more, and what is submitted is forgotten.
    pub fn power_cut(&self) {
        if !self.power.is_off.replace(true) {
            self.power.notify.notify_all();
        }
    }

    /// Cuts the power when the clock shows `then`, before anything due at that moment completes.
    pub fn power_cut_at(&self, then: Nanos) {
        self.power.cut_at.set(Some(then));
    }

    /// Whether the power was cut.
    pub fn is_off(&self) -> bool {
        self.power.is_off.get()
    }

    /// Completes when the power is cut. Run a workload beside this one to stop at the cut whatever else is waiting.
    pub async fn power_lost(&self) {
        while !self.is_off() {
            self.power.notify.notified().await;
        }
    }

    /// A disk as it could be found if the power were cut now, on a new virtual clock, with the same options.
    ///
    /// # Panics
    /// When the options track nothing.
    pub fn crash_image(&self, loss: Loss, random: &mut Random) -> Rc<MemoryDisk> {
        assert!(
            self.options.tracking != Tracking::Nothing,
            "a disk that tracks nothing does not know what a power cut would leave"
        );
        let next_seed = random.next_u64();
        let image = MemoryDisk::new(
            Rc::new(Clock::simulated()),
            Random::from_seed(next_seed),
            self.options.clone(),
        );
        let state = self.state.borrow();
        let in_flight: Vec<InFlight> = state
            .queue
            .in_order()
            .into_iter()
            .filter_map(|queued| state.at_risk(&queued.action))
            .collect();
        let cut = Cut::new(random, loss, self.options.atomic_write_bytes);
        cut.fill(&state.files, &in_flight, &mut image.state.borrow_mut().files);
        drop(state);
        image
    }

    /// Cuts the power if its time has come.
    fn watch_power(&self, now: Nanos) {
        if self.power.cut_at.get().is_some_and(|then| then <= now) {
            self.power_cut();
        }
    }
}

impl State {
    fn enqueue(&mut self, operation: Operation, now: Nanos) {
        let Operation {
            action,
            context,
            completion,
        } = operation;
        let mut due = self
            .service
            .due(now, action.kind(), &context, 1, &mut self.random);
        let sync_mark = self.files.sync_mark(&action);
        if let Some(handle) = file_of(&action).and_then(|file| self.files.handle_mut(file)) {
            if matches!(action, Action::Close { .. }) {
                due = due.max(handle.busy_until);
            }
            handle.busy_until = handle.busy_until.max(due);
        }
        self.queue.push(Queued {
            due,
            sequence: 0,
            sync_mark,
            submitted: now,
            action,
            completion,
        });
    }

    /// What an action in flight could leave behind if the power were cut now.
    fn at_risk(&self, action: &Action) -> Option<InFlight<'_>> {
        match action {
            Action::Write {
                file, offset, buffer, ..
            } => {
                let handle = self.files.handle(*file).filter(|handle| handle.writable)?;
                let kind = ChangeKind::Write {
                    offset: *offset,
                    bytes: Rc::from(&buffer[..]),
                    certain: false,
                };
                Some(InFlight::Change(&handle.inode, kind))
            }
            Action::Extend { file, length_bytes } => {
                let handle = self.files.handle(*file).filter(|handle| handle.writable)?;
                Some(InFlight::Change(&handle.inode, ChangeKind::Length(*length_bytes)))
            }
            Action::Open {
                path,
                mode: crate::OpenMode::Create,
            } => {
                let name = normal(path);
                let is_new = !self.files.names.present.contains_key(&name);
                let inode = self.files.new_inode(Layout::plain(self.files.chunk_bytes()));
                is_new.then(|| InFlight::Names(vec![(name, Some(inode))]))
            }
            Action::Rename { from, to } => {
                let inode = self.files.names.present.get(&normal(from))?;
                Some(InFlight::Names(vec![
                    (normal(from), None),
                    (normal(to), Some(inode.clone())),
                ]))
            }
            Action::Delete { path } => Some(InFlight::Names(vec![(normal(path), None)])),
            _ => None,
        }
    }
}

fn file_of(action: &Action) -> Option<crate::FileId> {
    match action {
        Action::Extend { file, .. }
        | Action::Read { file, .. }
        | Action::Write { file, .. }
        | Action::SyncFile { file }
        | Action::Close { file } => Some(*file),
        _ => None,
    }
}

impl Disk for MemoryDisk {
    fn submit(&self, operation: Operation) {
        let now = self.clock.now();
        self.watch_power(now);
        if !self.is_off() {
            self.state.borrow_mut().enqueue(operation, now);
        }
    }

    fn reap(&self) -> usize {
        let now = self.clock.now();
        self.watch_power(now);
        // What is submitted by a completion is left for the next reap, or a chain of them could go on for ever.
        let until = self.state.borrow().queue.next_sequence();
        let mut delivered = 0;
        while !self.is_off() {
            let mut state = self.state.borrow_mut();
            let Some(queued) = state.queue.pop_due(now, until) else {
                break;
            };
            let result = state.files.perform(queued.action, queued.sync_mark);
            drop(state);
            (queued.completion)(Outcome {
                result,
                submitted: queued.submitted,
                completed: self.clock.now(),
            });
            delivered += 1;
        }
        delivered
    }

    fn wait(&self, deadline: Option<Nanos>) {
        let now = self.clock.now();
        let wake = [deadline, self.next_event()].into_iter().flatten().min();
        let until = wake.unwrap_or(now + WAIT_NS_MAX);
        std::thread::sleep(Duration::from_nanos(until.saturating_sub(now)));
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.is_off() {
            return None;
        }
        let due = self.state.borrow().queue.next_due();
        [due, self.power.cut_at.get()].into_iter().flatten().min()
    }

    fn in_flight(&self) -> usize {
        if self.is_off() {
            return 0;
        }
        self.state.borrow().queue.len()
    }

    fn facts(&self) -> DiskFacts {
        DiskFacts {
            method: "memory".to_owned(),
            remarks: vec![
                "the disk is simulated in memory: its figures say nothing about hardware".to_owned(),
            ],
        }
    }
}
