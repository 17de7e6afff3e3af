//! Reads a file as fast as the real disk goes, to compare this crate with fio on the same file:
//!
//!     rawread FILE random|sequential BLOCK_BYTES DEPTH SECONDS auto|io_uring|libaio|threads
//!
//! One task per transfer under way, each a loop of reads through the executor, as the engine does
//! it. Prints one line: I/Os per second, MiB per second, processor microseconds per I/O (user and
//! system, whole process), and latencies.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{
    Clock, Context, Disk, DiskError, Executor, File, Files, Method, MethodChoice, NANOS_PER_SECOND,
    Nanos, OpenMode, Purpose, Random, RealDisk, RealDiskOptions,
};
use plimsoll_measure::Histogram;

struct Plan {
    path: PathBuf,
    sequential: bool,
    block_bytes: u64,
    depth: u64,
    duration_ns: Nanos,
    method: MethodChoice,
}

#[derive(Default)]
struct Figures {
    reads: Cell<u64>,
    next_block: Cell<u64>,
    latency: RefCell<Histogram>,
}

fn main() {
    let Some(plan) = plan_from_arguments() else {
        eprintln!("usage: rawread FILE random|sequential BLOCK_BYTES DEPTH SECONDS METHOD");
        std::process::exit(2);
    };
    if let Err(error) = measure(plan) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn plan_from_arguments() -> Option<Plan> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next()?.into();
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let [pattern, block, depth, seconds, method] = &words[..] else {
        return None;
    };
    Some(Plan {
        path,
        sequential: pattern == "sequential",
        block_bytes: block.parse().ok()?,
        depth: depth.parse().ok()?,
        duration_ns: seconds.parse::<u64>().ok()? * NANOS_PER_SECOND,
        method: match method.as_str() {
            "auto" => MethodChoice::Auto,
            "io_uring" => MethodChoice::Only(Method::IoUring),
            "libaio" => MethodChoice::Only(Method::Libaio),
            "threads" => MethodChoice::Only(Method::Threads),
            _ => return None,
        },
    })
}

fn measure(plan: Plan) -> Result<(), DiskError> {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { method: plan.method, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone())?;
    let executor = Executor::new(clock.clone(), disk.clone());
    let figures = Rc::new(Figures::default());
    let files = Files::new(disk.clone());
    let (processor_before, start) = (processor_us(), clock.now());
    let deadline = start + plan.duration_ns;
    let task = read_all(files, plan, executor.handle(), deadline, figures.clone());
    executor.run(task).expect("the tasks end by themselves")?;
    let seconds = (clock.now() - start) as f64 / NANOS_PER_SECOND as f64;
    let reads = figures.reads.get() as f64;
    let latency = figures.latency.borrow();
    println!(
        "iops {:.0} mib_per_s {:.1} cpu_us_per_io {:.2} latency_us_mean {:.0} p50 {} p99 {} method \
         {}",
        reads / seconds,
        figures.next_block.get() as f64 / seconds / (1 << 20) as f64,
        (processor_us() - processor_before) as f64 / reads,
        latency.mean_ns() / 1e3,
        latency.quantile_ns(0.50) / 1000,
        latency.quantile_ns(0.99) / 1000,
        disk.facts().method,
    );
    for remark in disk.facts().remarks {
        println!("remark: {remark}");
    }
    Ok(())
}

async fn read_all(
    files: Files,
    plan: Plan,
    executor: plimsoll_io::Handle,
    deadline: Nanos,
    figures: Rc<Figures>,
) -> Result<(), DiskError> {
    let context = Context::of(Purpose::DatabaseRead);
    let file = files.open(&plan.path, OpenMode::Read, context).await?;
    let plan = Rc::new(plan);
    let readers: Vec<_> = (0..plan.depth)
        .map(|number| {
            let reader = read_until(
                file.clone(),
                plan.clone(),
                executor.clone(),
                deadline,
                number,
                figures.clone(),
            );
            executor.spawn(reader)
        })
        .collect();
    for reader in readers {
        reader.await?;
    }
    figures.next_block.set(figures.reads.get() * plan.block_bytes);
    Ok(())
}

async fn read_until(
    file: File,
    plan: Rc<Plan>,
    executor: plimsoll_io::Handle,
    deadline: Nanos,
    number: u64,
    figures: Rc<Figures>,
) -> Result<(), DiskError> {
    let mut random = Random::from_seed(number);
    let blocks = file.opened().length_bytes / plan.block_bytes;
    let mut buffer = file.allocate(plan.block_bytes as usize);
    let mut now = executor.now();
    while now < deadline {
        let block = if plan.sequential {
            figures.next_block.replace(figures.next_block.get() + 1) % blocks
        } else {
            random.below(blocks)
        };
        let context = Context::of(Purpose::DatabaseRead);
        buffer = file.read(block * plan.block_bytes, buffer, context).await?;
        let then = std::mem::replace(&mut now, executor.now());
        figures.latency.borrow_mut().record(now - then);
        figures.reads.set(figures.reads.get() + 1);
    }
    Ok(())
}

fn processor_us() -> i64 {
    // SAFETY: an all-zero rusage is a valid value of that plain C structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is writable.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    [usage.ru_utime, usage.ru_stime].iter().map(|time| time.tv_sec * 1_000_000 + time.tv_usec).sum()
}
