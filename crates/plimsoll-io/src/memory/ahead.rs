//! A second thread that codes what is written over generated content, in batches, while the first
//! goes on.
//!
//! A code is a function of the unit's place and its written bytes alone, and whoever asks for a
//! unit that is still being coded waits for it: nobody can tell from a file whether there was a
//! second thread. A few batches may be at the thread, so that neither waits when the other is held
//! up.
//!
//! The thread reads the written bytes where they lie, in memory that is shared and therefore not
//! changed until the batch is back.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use super::codes::Codes;
use super::generated::Generated;
use crate::Buffer;
use crate::posix::block_signals;

/// Units of a batch: enough that waking the thread costs little beside coding.
const BATCH_UNITS: usize = 32;
/// Batches at the thread; with one more there, the first thread waits.
const BATCHES_MAX: usize = 4;

/// A written unit that waits for its code.
pub(super) struct Waiting {
    pub(super) unit: usize,
    /// Shared, so that nobody changes it.
    pub(super) written: Buffer,
    /// Where in it the unit begins.
    pub(super) start: usize,
}

impl Waiting {
    fn bytes(&self, content: &Generated) -> &[u8] {
        &self.written[self.start..self.start + content.unit_bytes()]
    }
}

/// The same as it travels to the thread and back.
struct Errand {
    unit: usize,
    written: *const [u8],
    code: Vec<u8>,
}

// SAFETY: the pointer is only read, by the one thread that has the batch, while `Ahead::at_coder`
// holds a shared buffer over the memory, which nobody can change; the buffer stays there until the
// batch has come back or the thread has ended.
unsafe impl Send for Errand {}

type Batch = Vec<Errand>;

struct Coder {
    /// Gone when the thread is to end.
    errands: Option<Sender<Batch>>,
    done: Receiver<Batch>,
    thread: Option<JoinHandle<()>>,
}

impl Coder {
    /// A thread that codes units of this content, if the system grants one.
    fn start(content: Generated) -> Option<Self> {
        let (errands, to_do) = channel::<Batch>();
        let (finished, done) = channel();
        let thread = std::thread::Builder::new().name("plimsoll-coder".to_owned());
        let thread = thread.spawn(move || {
            block_signals();
            let mut generated = vec![0; content.unit_bytes()];
            while let Ok(mut batch) = to_do.recv() {
                for errand in &mut batch {
                    // SAFETY: see `Errand`.
                    let written = unsafe { &*errand.written };
                    errand.code = content.code_whole(errand.unit, written, &mut generated);
                }
                // Nobody to hand it to means that the file is gone.
                let _ = finished.send(batch);
            }
        });
        Some(Self { errands: Some(errands), done, thread: Some(thread.ok()?) })
    }
}

impl Drop for Coder {
    fn drop(&mut self) {
        self.errands = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been told by whoever waited for its batch.
            let _ = thread.join();
        }
    }
}

/// Written units that have no code yet. The coder comes first: it is dropped, and its thread ended,
/// before what it reads.
#[derive(Default)]
pub(super) struct Ahead {
    coder: Option<Coder>,
    /// In the order in which they were handed over, which is the order in which they come back.
    at_coder: VecDeque<Vec<Waiting>>,
    gathered: Vec<Waiting>,
    /// How often each unit waits.
    waiting: BTreeMap<usize, u32>,
}

impl Ahead {
    /// Whether this unit has been written and not coded.
    pub(super) fn has(&self, unit: usize) -> bool {
        self.waiting.contains_key(&unit)
    }

    /// Takes a written unit. It gets its code some time later, or when it is asked for.
    pub(super) fn push(&mut self, content: &Generated, written: Waiting, codes: &mut Codes) {
        *self.waiting.entry(written.unit).or_default() += 1;
        self.gathered.push(written);
        if self.gathered.len() == BATCH_UNITS {
            self.hand_over(content, codes);
        }
    }

    /// Gives every unit its code.
    pub(super) fn settle(&mut self, content: &Generated, codes: &mut Codes) {
        while !self.at_coder.is_empty() {
            self.take_back(codes, Patience::Wait);
        }
        let mut generated = vec![0; content.unit_bytes()];
        for waiting in self.gathered.drain(..) {
            let code = content.code_whole(waiting.unit, waiting.bytes(content), &mut generated);
            codes.set(waiting.unit, &code);
        }
        self.waiting.clear();
    }

    fn hand_over(&mut self, content: &Generated, codes: &mut Codes) {
        while self.take_back(codes, Patience::None) {}
        if self.at_coder.len() == BATCHES_MAX {
            self.take_back(codes, Patience::Wait);
        }
        if self.coder.is_none() {
            self.coder = Coder::start(content.clone());
        }
        let Some(errands) = self.coder.as_ref().and_then(|coder| coder.errands.as_ref()) else {
            return self.settle(content, codes);
        };
        let gathered = std::mem::replace(&mut self.gathered, Vec::with_capacity(BATCH_UNITS));
        let batch = gathered.iter().map(|waiting| Errand {
            unit: waiting.unit,
            written: waiting.bytes(content),
            code: Vec::new(),
        });
        let batch = batch.collect();
        // The memory is held before the thread hears of it.
        self.at_coder.push_back(gathered);
        errands.send(batch).expect("the coder ends only when told");
    }

    /// Takes the oldest batch back, if it is done or there is time to wait for it. Answers whether
    /// there was one.
    fn take_back(&mut self, codes: &mut Codes, patience: Patience) -> bool {
        let Some(coder) = self.coder.as_ref().filter(|_| !self.at_coder.is_empty()) else {
            return false;
        };
        let batch = match patience {
            Patience::Wait => coder.done.recv().expect("coding a unit does not panic"),
            Patience::None => match coder.done.try_recv() {
                Ok(batch) => batch,
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => panic!("coding a unit does not panic"),
            },
        };
        for Errand { unit, code, .. } in batch {
            codes.set(unit, &code);
            if let Entry::Occupied(mut waiting) = self.waiting.entry(unit) {
                *waiting.get_mut() -= 1;
                if *waiting.get() == 0 {
                    waiting.remove();
                }
            }
        }
        self.at_coder.pop_front();
        true
    }
}

/// Whether to wait for the other thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    Wait,
}
