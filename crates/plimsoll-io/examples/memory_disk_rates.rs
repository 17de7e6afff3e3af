//! What the memory disk can simulate: operations and syncs per second of wall time, crash images
//! per second, and the memory a sparse file costs per written page.
//!
//! `cargo run --release -p plimsoll-io --example memory_disk_rates`

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_io::{
    Buffer, Clock, Content, Context, Durability, Executor, File, Files, Loss, MemoryDisk,
    MemoryOptions, NANOS_PER_SECOND, OpenMode, Purpose, Random, Sparse,
};

const PAGE: usize = 32 * 1024;

fn label() -> Context {
    Context::of(Purpose::DatabaseWrite)
}

fn open(executor: &Executor, disk: &Rc<MemoryDisk>, path: &'static str) -> File {
    let files = Files::new(disk.clone());
    let opened = executor.run(async move { files.open(path, OpenMode::Write, label()).await });
    opened.expect("an open completes").expect("the file is there")
}

/// Writers of a page each, some syncing, all at risk in between.
fn simulate(executor: &Executor, file: &File, writes_per_task: u64) {
    let handle = executor.handle();
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let file = file.clone();
            handle.spawn(async move {
                let mut random = Random::from_seed(task);
                let mut buffer = Buffer::zeroed(4096);
                for write in 0..writes_per_task {
                    buffer[..8].copy_from_slice(&write.to_le_bytes());
                    let offset = random.below(4096) * 4096;
                    buffer = file
                        .write(offset, buffer, Durability::Volatile, label())
                        .await
                        .expect("no fault");
                    if random.below(1000) == 0 {
                        file.sync(label()).await.expect("no fault");
                    }
                }
            })
        })
        .collect();
    let all = async move {
        for task in tasks {
            task.await;
        }
    };
    executor.run(all).expect("every write completes");
}

fn operations_and_images() {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::default());
    disk.load("database", &vec![0; 16 << 20]);
    let executor = Executor::new(clock.clone(), disk.clone());
    let file = open(&executor, &disk, "database");
    let (start, events) = (Instant::now(), disk.events());
    simulate(&executor, &file, 40_000);
    let wall = start.elapsed().as_secs_f64();
    let operations = (disk.events() - events) / 2;
    println!(
        "{:.0} operations of 4 KiB per second of wall time; {:.1} simulated seconds per second",
        operations as f64 / wall,
        clock.now() as f64 / NANOS_PER_SECOND as f64 / wall
    );
    let mut random = Random::from_seed(2);
    let images = 2000;
    let start = Instant::now();
    for _ in 0..images {
        drop(disk.crash_image(Loss::Drawn, &mut random));
    }
    println!(
        "{:.0} crash images per second of a 16 MiB file with hundreds of writes at risk",
        f64::from(images) / start.elapsed().as_secs_f64()
    );
}

struct Pages;

impl Content for Pages {
    fn unit_bytes(&self) -> usize {
        PAGE
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) {
        Random::from_seed(offset).fill(bytes);
    }
}

fn resident_bytes() -> u64 {
    let status =
        std::fs::read_to_string("/proc/self/statm").expect("Linux tells the memory of a process");
    let pages: Option<u64> = status.split_whitespace().nth(1).and_then(|field| field.parse().ok());
    pages.expect("the second field is resident pages") * 4096
}

fn sparse_memory() {
    const WRITTEN: u64 = 200_000;
    const CHANGED: usize = 160;
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    disk.load_sparse("database", 1 << 40, Sparse::new(Arc::new(Pages)));
    let executor = Executor::new(clock, disk.clone());
    let file = open(&executor, &disk, "database");
    let before = resident_bytes();
    let start = Instant::now();
    let work = async move {
        let mut random = Random::from_seed(3);
        let mut buffer = Buffer::zeroed(PAGE);
        for _ in 0..WRITTEN {
            let offset = random.below((1 << 40) / PAGE as u64) * PAGE as u64;
            Pages.fill(offset, &mut buffer);
            let place = random.below((PAGE - CHANGED) as u64) as usize;
            random.fill(&mut buffer[place..place + CHANGED]);
            buffer =
                file.write(offset, buffer, Durability::Volatile, label()).await.expect("no fault");
        }
    };
    executor.run(work).expect("every write completes");
    let grown = resident_bytes() - before;
    println!(
        "{WRITTEN} pages of 1 TiB with {CHANGED} bytes changed: {} bytes stored each, {} MiB \
         resident in all, \
         {:.1} us per write",
        disk.stored_bytes() / WRITTEN,
        grown >> 20,
        start.elapsed().as_secs_f64() * 1e6 / WRITTEN as f64
    );
}

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures mean nothing");
    }
    operations_and_images();
    sparse_memory();
}
