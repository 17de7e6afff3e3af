//! Reads a range of a file from front to back, several reads at a time, and hands every piece to a
//! checker.
//!
//! Each of a few tasks owns two buffers: while one is checked, the other is already being filled,
//! so the number of reads in flight does not sink while pages are checked. Pieces reach the checker
//! in no particular order.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use plimsoll_io::{Buffer, Context, DiskError, File, Handle, Purpose};

/// Bytes checked before other tasks may run: a few microseconds of work.
const PIECE_BYTES: usize = 64 * 1024;

/// What is done with the bytes.
pub(super) trait Checker: 'static {
    /// Looks at bytes read from `offset`.
    fn check(&mut self, offset: u64, bytes: &[u8]);
    /// Notes that these bytes could not be read.
    fn unreadable(&mut self, offset: u64, bytes: u64, error: DiskError);
}

/// Which bytes to read and how.
pub(super) struct ScanPlan {
    /// First byte, a multiple of `read_bytes`.
    pub start: u64,
    /// First byte not to be read.
    pub end: u64,
    /// Bytes per read.
    pub read_bytes: usize,
    /// Reads in flight.
    pub reads_outstanding: usize,
}

struct Shared {
    file: File,
    handle: Handle,
    next: Cell<u64>,
    end: u64,
    read_bytes: usize,
    reads: Cell<u64>,
    bytes_read: Cell<u64>,
}

/// What the reading took.
pub(super) struct ScanCounts {
    pub reads: u64,
    pub bytes_read: u64,
}

/// Stops the tasks when the verification is dropped half way.
struct StopOnDrop(Rc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.next.set(self.0.end);
    }
}

impl Shared {
    /// Starts the next read into `buffer`, if there is anything left.
    fn start(
        &self,
        mut buffer: Buffer,
    ) -> Option<(u64, impl Future<Output = Result<Buffer, DiskError>> + use<>)> {
        let offset = self.next.get();
        if offset >= self.end {
            return None;
        }
        let length_bytes = (self.end - offset).min(self.read_bytes as u64);
        self.next.set(offset + length_bytes);
        self.reads.set(self.reads.get() + 1);
        buffer.set_length(length_bytes as usize);
        let context = Context::of(Purpose::Checksum);
        Some((offset, self.file.read(offset, buffer, context)))
    }
}

/// Reads the planned range through `checker`.
pub(super) async fn scan<C: Checker>(
    file: &File,
    handle: &Handle,
    plan: ScanPlan,
    checker: Rc<RefCell<C>>,
) -> ScanCounts {
    let shared = Rc::new(Shared {
        file: file.clone(),
        handle: handle.clone(),
        next: Cell::new(plan.start),
        end: plan.end,
        read_bytes: plan.read_bytes,
        reads: Cell::new(0),
        bytes_read: Cell::new(0),
    });
    let stop = StopOnDrop(shared.clone());
    let tasks: Vec<_> = (0..plan.reads_outstanding)
        .map(|_| handle.spawn(read_and_check(shared.clone(), checker.clone())))
        .collect();
    for task in tasks {
        task.await;
    }
    drop(stop);
    ScanCounts { reads: shared.reads.get(), bytes_read: shared.bytes_read.get() }
}

async fn read_and_check<C: Checker>(shared: Rc<Shared>, checker: Rc<RefCell<C>>) {
    let mut spare = shared.file.allocate(shared.read_bytes);
    let mut reading = shared.start(shared.file.allocate(shared.read_bytes));
    while let Some((offset, answer)) = reading {
        let expected_bytes = (shared.end - offset).min(shared.read_bytes as u64);
        let answer = answer.await;
        reading = shared.start(spare);
        spare = match answer {
            Ok(buffer) => {
                shared.bytes_read.set(shared.bytes_read.get() + expected_bytes);
                for (number, piece) in buffer.chunks(PIECE_BYTES).enumerate() {
                    checker.borrow_mut().check(offset + (number * PIECE_BYTES) as u64, piece);
                    shared.handle.yield_now().await;
                }
                buffer
            }
            Err(error) => {
                checker.borrow_mut().unreadable(offset, expected_bytes, error);
                shared.file.allocate(shared.read_bytes)
            }
        };
    }
}
