//! A decorator that holds back what would change a disk, as long as somebody wants so: while a
//! snapshot of several volumes is taken, they stand still at one moment.
//!
//! [`WriteHold`] is the handle, for any thread; each disk of a run has a [`Held`] around it. What
//! was under way when the hold began is waited for, and only then are the writes held. Reads and
//! syncs pass: they change nothing that a snapshot would see. A hold ends when it is let go, when
//! its time is over or when the work was asked to stop, whatever comes first: nobody's writes wait
//! for one who has died.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::{
    Action, Buffer, Clock, Disk, DiskFacts, NANOS_PER_MILLISECOND, Nanos, OpenMode, Operation,
    Outcome, StopSignal,
};

/// How often a disk that holds something back looks whether it still has to.
const LOOK_EVERY_NS: Nanos = NANOS_PER_MILLISECOND;

/// Holds the writes of all disks that were put behind it. Clones are the same hold.
#[derive(Clone, Debug)]
pub struct WriteHold {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    /// Until when writes are held, from `began`; zero for not at all.
    until_ns: AtomicU64,
    /// Whether each disk holds its writes and has none under way.
    quiet: Mutex<Vec<Arc<AtomicBool>>>,
}

impl Default for WriteHold {
    fn default() -> Self {
        let (until_ns, quiet) = (AtomicU64::new(0), Mutex::default());
        Self { shared: Arc::new(Shared { began: Instant::now(), until_ns, quiet }) }
    }
}

impl WriteHold {
    /// Begins to hold, for `longest` at most. It holds once [`WriteHold::holds`] says so.
    pub fn hold(&self, longest: Duration) {
        self.disks().iter().for_each(|quiet| quiet.store(false, Ordering::Release));
        let until = self.shared.began.elapsed() + longest;
        self.shared.until_ns.store(nanos(until).max(1), Ordering::Release);
    }

    /// Whether every disk holds its writes now, and none of them is under way. `false` also after a
    /// hold has come to its end by itself.
    pub fn holds(&self) -> bool {
        let quiet = self.disks().iter().all(|quiet| quiet.load(Ordering::Acquire));
        quiet && self.is_wanted()
    }

    /// Lets the writes go on; whether every disk had held them up to now.
    pub fn release(&self) -> bool {
        let held = self.holds();
        self.shared.until_ns.store(0, Ordering::Release);
        held
    }

    fn is_wanted(&self) -> bool {
        let until_ns = self.shared.until_ns.load(Ordering::Acquire);
        until_ns != 0 && nanos(self.shared.began.elapsed()) < until_ns
    }

    fn disks(&self) -> MutexGuard<'_, Vec<Arc<AtomicBool>>> {
        self.shared.quiet.lock().expect("no panic happens under this lock")
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A disk behind a hold.
pub struct Held<D> {
    disk: D,
    clock: Rc<Clock>,
    hold: WriteHold,
    stop: StopSignal,
    quiet: Arc<AtomicBool>,
    changing: Rc<Cell<usize>>,
    waiting: RefCell<VecDeque<(Nanos, Operation)>>,
}

impl<D: Disk> Held<D> {
    /// Puts `disk`, which runs on `clock` in real time, behind a hold that a wish to stop ends.
    pub fn new(disk: D, clock: Rc<Clock>, hold: WriteHold, stop: StopSignal) -> Self {
        let quiet = Arc::new(AtomicBool::new(false));
        hold.disks().push(quiet.clone());
        let (changing, waiting) = (Rc::default(), RefCell::default());
        Self { disk, clock, hold, stop, quiet, changing, waiting }
    }

    fn must_hold(&self) -> bool {
        self.hold.is_wanted() && !self.stop.was_asked()
    }

    /// Hands an operation on, and counts it while it is under way.
    fn begin(&self, operation: Operation) {
        if !changes(&operation.action) {
            self.disk.submit(operation);
            return;
        }
        self.changing.set(self.changing.get() + 1);
        let (changing, completion) = (self.changing.clone(), operation.completion);
        let completion = Box::new(move |outcome: Outcome| {
            changing.set(changing.get() - 1);
            completion(outcome);
        });
        self.disk.submit(Operation { completion, ..operation });
    }

    /// Lets go what waits, or says that nothing is under way.
    fn look(&self) {
        if self.must_hold() {
            self.quiet.store(self.changing.get() == 0, Ordering::Release);
            return;
        }
        self.quiet.store(false, Ordering::Release);
        for (since, operation) in self.waiting.take() {
            let completion = operation.completion;
            let completion = Box::new(move |outcome: Outcome| {
                completion(Outcome { submitted: since, ..outcome });
            });
            self.begin(Operation { completion, ..operation });
        }
    }
}

impl<D> Drop for Held<D> {
    fn drop(&mut self) {
        let mut disks = self.hold.disks();
        disks.retain(|quiet| !Arc::ptr_eq(quiet, &self.quiet));
    }
}

/// Whether an operation changes what a snapshot would hold.
fn changes(action: &Action) -> bool {
    match action {
        Action::Open { mode, .. } => matches!(mode, OpenMode::Create),
        Action::Write { .. }
        | Action::Extend { .. }
        | Action::Rename { .. }
        | Action::Delete { .. }
        | Action::MakeDirectory { .. }
        | Action::RemoveDirectory { .. } => true,
        Action::Read { .. }
        | Action::SyncFile { .. }
        | Action::SyncDirectory { .. }
        | Action::Close { .. }
        | Action::List { .. }
        | Action::Stat { .. } => false,
    }
}

impl<D: Disk> Disk for Held<D> {
    fn submit(&self, operation: Operation) {
        let is_behind = !self.waiting.borrow().is_empty();
        // A close stays behind the writes that wait, which may be of its file.
        let waits = changes(&operation.action)
            || (is_behind && matches!(operation.action, Action::Close { .. }));
        if waits && (is_behind || self.must_hold()) {
            self.waiting.borrow_mut().push_back((self.clock.now(), operation));
        } else {
            self.begin(operation);
        }
    }

    fn reap(&self) -> usize {
        let count = self.disk.reap();
        self.look();
        count
    }

    fn wait(&self, deadline: Option<Nanos>) {
        // Who lets go does so from another thread and wakes nobody.
        let looks = self.hold.is_wanted() || !self.waiting.borrow().is_empty();
        let next = looks.then(|| self.clock.now() + LOOK_EVERY_NS);
        self.disk.wait([deadline, next].into_iter().flatten().min());
    }

    fn waker(&self) -> std::task::Waker {
        self.disk.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.disk.next_event()
    }

    fn in_flight(&self) -> usize {
        self.waiting.borrow().len() + self.disk.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.disk.facts()
    }

    fn inside_kernel_ns(&self) -> Nanos {
        self.disk.inside_kernel_ns()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }
}
