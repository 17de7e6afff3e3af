//! What the seam itself costs: nanoseconds per I/O on a RAM disk, alone, through the executor, and
//! under the decorators.
//!
//! `cargo run --release -p plimsoll-io --example disk_overhead`. Reads of one sector show the cost
//! of the path, reads of a page add the copy. Rounds are interleaved and the median is printed,
//! because the machine may be shared.

use std::rc::Rc;

use plimsoll_io::{
    Action, Answer, Buffer, Clock, Context, Disk, Durability, Executor, Files, MemoryDisk,
    MemoryOptions, OpenMode, Operation, Purpose, Random, Recorded, ThrottleLimits, Throttled,
};

const FILE_BYTES: u64 = 256 << 20;
const DEPTH: usize = 32;
const OPERATIONS: u64 = 100_000;
const ROUNDS: usize = 11;

type Decorate = fn(Rc<MemoryDisk>, Rc<Clock>) -> Rc<dyn Disk>;

/// A RAM disk holding one written file.
fn ram_disk(clock: &Rc<Clock>) -> Rc<MemoryDisk> {
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    let mut bytes = vec![0; FILE_BYTES as usize];
    Random::from_seed(2).fill(&mut bytes);
    disk.load("file", &bytes);
    disk
}

/// Submit and reap by hand: no futures, no tasks.
fn bare_ns(disk: Rc<dyn Disk>, bytes: usize) -> f64 {
    let taken: Rc<std::cell::RefCell<Vec<Answer>>> = Rc::default();
    let submit = |action| {
        let taken = taken.clone();
        disk.submit(Operation {
            action,
            context: Context::of(Purpose::DatabaseRead),
            completion: Box::new(move |outcome| {
                taken.borrow_mut().push(outcome.result.expect("no fault"))
            }),
        });
    };
    submit(Action::Open { path: "file".into(), mode: OpenMode::Read });
    disk.reap();
    let Some(Answer::Opened(opened)) = taken.borrow_mut().pop() else {
        unreachable!("open answers with a file")
    };
    let mut random = Random::from_seed(3);
    let mut buffers: Vec<Buffer> = (0..DEPTH).map(|_| Buffer::zeroed(bytes)).collect();
    let start = cpu_ns();
    for _ in 0..OPERATIONS / DEPTH as u64 {
        for buffer in buffers.drain(..) {
            let offset = random.below(FILE_BYTES / bytes as u64) * bytes as u64;
            submit(Action::Read { file: opened.file, offset, buffer });
        }
        disk.reap();
        buffers.extend(taken.borrow_mut().drain(..).map(|answer| match answer {
            Answer::Buffer(buffer) => buffer,
            other => unreachable!("a read was answered by {other:?}"),
        }));
    }
    (cpu_ns() - start) as f64 / OPERATIONS as f64
}

/// The same reads by tasks on the executor.
fn tasks_ns(disk: Rc<dyn Disk>, clock: Rc<Clock>, bytes: usize) -> f64 {
    let executor = Executor::new(clock, disk.clone());
    let files = Files::new(disk);
    let handle = executor.handle();
    let work = async move {
        let label = Context::of(Purpose::DatabaseRead);
        let file = files.open("file", OpenMode::Write, label).await.expect("the file is there");
        let start = cpu_ns();
        let tasks: Vec<_> = (0..DEPTH as u64)
            .map(|task| {
                let file = file.clone();
                handle.spawn(async move {
                    let mut random = Random::from_seed(task);
                    let mut buffer = Buffer::zeroed(bytes);
                    for _ in 0..OPERATIONS / DEPTH as u64 {
                        let offset = random.below(FILE_BYTES / bytes as u64) * bytes as u64;
                        buffer = if random.below(4) == 0 {
                            file.write(offset, buffer, Durability::Volatile, label)
                                .await
                                .expect("no fault")
                        } else {
                            file.read(offset, buffer, label).await.expect("no fault")
                        };
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        let spent = (cpu_ns() - start) as f64 / OPERATIONS as f64;
        file.close(label).await.expect("a close");
        spent
    };
    executor.run(work).expect("every read completes")
}

/// Process CPU time, user and system.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat")
        .expect("Linux tells the CPU time of a thread");
    let spent = stat.split_whitespace().next().and_then(|field| field.parse().ok());
    spent.expect("the first field is nanoseconds on the CPU")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures mean nothing");
    }
    let decorators: [(&str, Decorate); 4] = [
        ("ram disk", |disk, _| disk),
        ("recorded", |disk, clock| Rc::new(Recorded::new(disk, clock))),
        ("throttled", |disk, clock| {
            Rc::new(Throttled::new(disk, clock, ThrottleLimits::default()))
        }),
        ("recorded twice", |disk, clock| {
            Rc::new(Recorded::new(Recorded::new(disk, clock.clone()), clock))
        }),
    ];
    let clock = Rc::new(Clock::real());
    let disk = ram_disk(&clock);
    println!("{:>16} {:>8} {:>12} {:>14}", "disk", "bytes", "bare ns/io", "executor ns/io");
    for bytes in [512, 32 * 1024] {
        let mut bare = vec![Vec::new(); decorators.len()];
        let mut tasks = bare.clone();
        for _ in 0..ROUNDS {
            for (index, (_, decorate)) in decorators.iter().enumerate() {
                bare[index].push(bare_ns(decorate(disk.clone(), clock.clone()), bytes));
                tasks[index].push(tasks_ns(
                    decorate(disk.clone(), clock.clone()),
                    clock.clone(),
                    bytes,
                ));
            }
        }
        for (index, (name, _)) in decorators.iter().enumerate() {
            let (bare, tasks) = (median(bare[index].clone()), median(tasks[index].clone()));
            println!("{name:>16} {bytes:>8} {bare:>12.0} {tasks:>14.0}");
        }
    }
}
