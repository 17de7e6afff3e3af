//! A device that hangs, simulated by a queue from which nothing ever comes back, and one whose
//! transfers signals interrupt.

use std::cell::Cell;
use std::path::Path;
use std::ptr::NonNull;
use std::rc::Rc;

use super::*;
use crate::posix::{DeviceRemark, OpenFile, OpenRules, Remark};
use crate::real::Method;
use crate::real::choose::Chosen;
use crate::transfer::{Transfer, TransferQueue, Transferred};
use crate::{
    Action, Buffer, BufferHome, Context, Durability, Executor, File, Files, OpenMode, Purpose,
};

const CAPACITY: usize = 3;

/// Takes transfers and keeps them; counts those it was given.
struct Hanging {
    taken: Rc<Cell<usize>>,
}

impl TransferQueue for Hanging {
    fn capacity(&self) -> usize {
        CAPACITY
    }
    unsafe fn push(&mut self, _: Transfer) {
        self.taken.set(self.taken.get() + 1);
    }
    fn flush(&mut self) {}
    fn ready(&mut self) -> bool {
        false
    }
    fn collect(&mut self, _: &mut Vec<Transferred>) {}
    fn wait(&mut self, _: Option<Nanos>) {
        std::thread::yield_now();
    }
    fn finish(&mut self, _: Nanos) -> bool {
        false
    }
}

/// Counts the buffers that came back; their memory lives as long as the test.
struct Counted {
    returned: Cell<usize>,
}

impl BufferHome for Counted {
    fn give_back(&self, _: NonNull<u8>, _: usize) {
        self.returned.set(self.returned.get() + 1);
    }
}

/// Interrupts each transfer as often as told before it does it, that is answers its whole length.
struct Interrupting {
    left: usize,
    under_way: Vec<Transfer>,
}

impl TransferQueue for Interrupting {
    fn capacity(&self) -> usize {
        CAPACITY
    }
    unsafe fn push(&mut self, transfer: Transfer) {
        self.under_way.push(transfer);
    }
    fn flush(&mut self) {}
    fn ready(&mut self) -> bool {
        !self.under_way.is_empty()
    }
    fn collect(&mut self, done: &mut Vec<Transferred>) {
        for transfer in self.under_way.drain(..) {
            let is_interrupted = self.left > 0;
            self.left -= usize::from(is_interrupted);
            let result =
                if is_interrupted { -libc::EINTR } else { transfer.memory.length_bytes as i32 };
            done.push(Transferred { tag: transfer.tag, result });
        }
    }
    fn wait(&mut self, _: Option<Nanos>) {}
    fn finish(&mut self, _: Nanos) -> bool {
        true
    }
}

fn hanging_disk(taken: Rc<Cell<usize>>) -> Rc<RealDisk> {
    disk_on(Box::new(Hanging { taken }))
}

fn disk_on(queue: Box<dyn TransferQueue>) -> Rc<RealDisk> {
    let wakeup = Arc::new(Wakeup::new().expect("descriptors are left"));
    let chosen = Chosen { method: Method::Threads, queue, remarks: Vec::new() };
    // The temporary folder may be on a file system without direct I/O; no transfer happens anyway.
    let options =
        RealDiskOptions { caching: crate::Caching::AllowBuffered, ..RealDiskOptions::default() };
    let state = State::new(&options, chosen, &wakeup);
    Rc::new(RealDisk {
        clock: Rc::new(Clock::real()),
        wakeup,
        undelivered: Cell::new(0),
        state: RefCell::new(state),
    })
}

fn open_file(disk: &Rc<RealDisk>, path: &Path) -> File {
    let (files, path) = (Files::new(disk.clone()), path.to_owned());
    let executor = Executor::new(disk.clock.clone(), disk.clone());
    executor
        .run(async move {
            let context = Context::of(Purpose::Header);
            files.open(path, OpenMode::Create, context).await
        })
        .expect("opening needs no transfer")
        .expect("a new file")
}

/// A device that hangs may still write to the memory of its reads, years after the program stopped
/// waiting: that memory and the file's descriptor are given up, never freed. And the kernel is
/// never handed more than it takes.
#[test]
fn memory_of_a_hanging_device_is_never_freed() {
    let path = std::env::temp_dir().join(format!("plimsoll-hanging-{}", std::process::id()));
    let taken = Rc::new(Cell::new(0));
    let disk = hanging_disk(taken.clone());
    let file = open_file(&disk, &path);
    let mut memory = Buffer::zeroed(4096);
    let home = Rc::new(Counted { returned: Cell::new(0) });
    for _ in 0..=CAPACITY {
        let start = NonNull::from(&mut memory[..]).cast();
        // SAFETY: the memory outlives the test's disk, and the hanging queue never touches it.
        let buffer = unsafe { Buffer::lent(start, 4096, 4096, home.clone(), 0) };
        disk.submit(Operation {
            action: Action::Write {
                file: file.opened().file,
                offset: 0,
                buffer,
                durability: Durability::Volatile,
            },
            context: Context::of(Purpose::Header),
            completion: Box::new(|_| unreachable!("nothing ever comes back")),
        });
    }
    disk.reap();
    assert_eq!(taken.get(), CAPACITY, "one more than the queue holds waits its turn");
    assert_eq!(disk.in_flight(), CAPACITY + 1);
    drop((file, disk));
    assert_eq!(home.returned.get(), 0, "no buffer was freed");
    std::fs::remove_file(path).expect("the file exists");
}

/// Why: a signal that comes while a transfer waits (a debugger, a suspended machine, a FUSE server)
/// is nothing the storage did. The transfer is made again, and no error is told.
#[test]
fn an_interrupted_transfer_is_made_again() {
    let path = std::env::temp_dir().join(format!("plimsoll-interrupted-{}", std::process::id()));
    let queue = Interrupting { left: 5, under_way: Vec::new() };
    let disk = disk_on(Box::new(queue));
    let file = open_file(&disk, &path);
    let executor = Executor::new(disk.clock.clone(), disk.clone());
    let results = executor.run(async move {
        let context = || Context::of(Purpose::Header);
        let written =
            file.write(0, Buffer::zeroed(4096), Durability::Durable, context()).await.map(|_| ());
        let read = file.read(0, Buffer::zeroed(4096), context()).await.map(|_| ());
        (written, read, file.sync(context()).await.map(|_| ()))
    });
    let (written, read, synced) = results.expect("every transfer comes back");
    written.expect("the write is made again");
    read.expect("the read is made again");
    synced.expect("the sync is made again");
    std::fs::remove_file(path).expect("the file exists");
}

/// Why: homes of a thousand users are thousands of folders on one device, and whoever reads the
/// results needs to know of the device once.
#[test]
fn what_holds_for_a_device_is_remarked_once() {
    let disk = hanging_disk(Rc::default());
    let path = std::env::temp_dir().join(format!("plimsoll-remarked-{}", std::process::id()));
    let rules = OpenRules { caching: crate::Caching::AllowBuffered, ..OpenRules::default() };
    for (device, folder) in [(1, "a"), (1, "b"), (2, "c")] {
        let mut file = OpenFile::open(&path, OpenMode::Create, &rules).expect("a new file");
        file.remarks = [DeviceRemark::EmulatesBlocks, DeviceRemark::RefusesDirect]
            .map(|what| Remark {
                text: format!("{what:?} {folder}"),
                of_device: Some((device, what)),
            })
            .into();
        disk.state.borrow_mut().add_file(file);
        std::fs::remove_file(&path).expect("the file exists");
    }
    assert_eq!(
        disk.facts().remarks,
        ["EmulatesBlocks a", "RefusesDirect a", "EmulatesBlocks c", "RefusesDirect c"]
    );
}
