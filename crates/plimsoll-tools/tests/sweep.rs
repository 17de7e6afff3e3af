//! What a sweep leaves on a disk: content that no storage can save itself the work of.

use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{
    Clock, Context, Executor, Files, MemoryDisk, MemoryOptions, OpenMode, Purpose, Random,
    StopSignal,
};
use plimsoll_tools::{SweepAction, SweepPoint, sweep_on};

const BLOCK_BYTES: u64 = 64 << 10;
const SPAN_BYTES: u64 = 4 << 20;
const UNIT_BYTES: usize = 512;

fn point(action: SweepAction) -> SweepPoint {
    SweepPoint {
        path: PathBuf::from("/data/sweep"),
        action,
        block_bytes: BLOCK_BYTES,
        depth: 4,
        span_bytes: SPAN_BYTES,
        sequential: true,
        durable: false,
        seconds: 0.02,
        seed: 7,
        working_threads: 0,
    }
}

/// How many of the file's units differ from all others.
fn distinct(clock: &Rc<Clock>, disk: &Rc<MemoryDisk>) -> usize {
    let executor = Executor::new(clock.clone(), disk.clone());
    let files = Files::new(disk.clone());
    let content = executor.run(async move {
        let context = Context::of(Purpose::Prepare);
        let path = PathBuf::from("/data/sweep");
        let file = files.open(&path, OpenMode::Read, context).await.expect("it is there");
        let mut content = Vec::new();
        for offset in (0..SPAN_BYTES).step_by(BLOCK_BYTES as usize) {
            let buffer = file.allocate(BLOCK_BYTES as usize);
            let read = file.read(offset, buffer, context).await.expect("it can be read");
            content.extend_from_slice(&read);
        }
        file.close(context).await.expect("it can be closed");
        content
    });
    let content = content.expect("it ends");
    content.chunks(UNIT_BYTES).collect::<HashSet<_>>().len()
}

/// Why: 1,084 of 16,384 blocks were different, so that a storage that keeps equal blocks once was
/// fitted by what it had never written.
#[test]
fn no_unit_of_a_swept_file_is_like_another() {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::default());
    disk.create_directory("/data");
    for action in [SweepAction::Fill, SweepAction::Write] {
        let stop = StopSignal::default();
        let found = sweep_on(clock.clone(), disk.clone(), &point(action), &stop);
        assert!(found.expect("it ends").count > 0);
        assert_eq!(distinct(&clock, &disk), SPAN_BYTES as usize / UNIT_BYTES, "{action:?}");
    }
}
