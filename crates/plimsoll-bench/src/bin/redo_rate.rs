//! How fast recovery redoes what the mix logged, both at the same read latency in virtual time.
//!
//! The 2010 mix runs on a prepared database of which most reads miss the cache, with a checkpoint
//! depth so large that redo has to repeat nearly all of it. When `generations` are full the power
//! is cut, everything unsynced is lost, and the databases are recovered. The ratio is log redone
//! per second of virtual time over log written per second. Prints one line of JSON.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::field::{Field, MIX_2010, SESSIONS_2010, prepared_2010, record_tree};
use plimsoll_bench::load::{Load, Pace};
use plimsoll_bench::processor::warn_of_debug_build;
use plimsoll_io::{
    Clock, Executor, Files, Handle, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions,
    NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Purpose, Random,
};
use plimsoll_prepare::{PreparedContent, PreparedDatabase};

#[derive(Clone, Copy)]
struct Setting {
    database_bytes: u64,
    cache_bytes: u64,
    generations: u64,
    sessions: u64,
    sluggish: f64,
}

impl Setting {
    /// The checkpoint stays behind all of it.
    fn field(&self) -> Field {
        Field {
            directory: "/field".into(),
            cache_bytes: self.cache_bytes,
            checkpoint_depth_bytes: (self.generations + 100) << 20,
        }
    }
}

/// What was logged before the cut.
#[derive(Clone, Copy, Default)]
struct Logged {
    bytes: u64,
    elapsed_ns: u64,
    transactions: u64,
}

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [
        ("database_bytes", "34359738368"),
        ("cache_mib", "256"),
        ("generations", "20"),
        ("sessions", &*SESSIONS_2010.to_string()),
        ("sluggish", "1"),
        ("read_ms", "12"),
    ];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let setting = Setting {
        database_bytes: arguments.number("database_bytes")?,
        cache_bytes: arguments.number("cache_mib")? << 20,
        generations: arguments.number("generations")?,
        sessions: arguments.number("sessions")?,
        sluggish: arguments.decimal("sluggish")?,
    };
    let prepared = prepared_2010(setting.database_bytes).map_err(|error| error.to_string())?;
    let disk = disk_with(setting, &prepared, arguments.number("read_ms")? * NANOS_PER_MILLISECOND);
    let logged = Rc::new(Cell::new(Logged::default()));
    let (cut, told) = (disk.clone(), logged.clone());
    let work =
        run_on(&disk, move |files, handle| generate(setting, prepared, files, handle, cut, told));
    // With the power off everything waits for ever: just what is wanted.
    let _ = work;
    let logged = logged.get();
    if logged.bytes == 0 {
        return Err("the load ended before its last generation".into());
    }
    let found = disk.crash_image(Loss::Everything, &mut Random::from_seed(2));
    let recovered = run_on(&found, move |files, handle| recover(setting, files, handle));
    let (redone_bytes, redo_ns, applied, skipped) =
        recovered.map_err(|stalled| stalled.to_string())??;
    let (written, redone) =
        (logged.bytes as f64 / logged.elapsed_ns as f64, redone_bytes as f64 / redo_ns as f64);
    println!(
        "{{\"ratio\": {:.2}, \"logged_mib\": {:.2}, \"logged_s\": {:.2}, \"transactions\": {}, \
         \"redone_mib\": {:.2}, \
         \"recovery_s\": {:.2}, \"changes_applied\": {applied}, \"changes_skipped\": {skipped}, \
         \"sessions\": {}, \"sluggish\": {}}}",
        redone / written,
        logged.bytes as f64 / f64::from(1 << 20),
        logged.elapsed_ns as f64 / NANOS_PER_SECOND as f64,
        logged.transactions,
        redone_bytes as f64 / f64::from(1 << 20),
        redo_ns as f64 / NANOS_PER_SECOND as f64,
        setting.sessions,
        setting.sluggish,
    );
    Ok(())
}

/// Everything takes `page_ns` but log writes, which a battery-backed cache takes at once.
fn disk_with(setting: Setting, prepared: &Arc<PreparedDatabase>, page_ns: u64) -> Rc<MemoryDisk> {
    let log_latency = Latency::Constant(NANOS_PER_MILLISECOND);
    let options = MemoryOptions {
        chunk_bytes: 32 * 1024,
        latency: LatencyPlan::of(Latency::Constant(page_ns))
            .with_purpose(Purpose::LogWrite, log_latency)
            .with_purpose(Purpose::LogFormat, log_latency),
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    let path = setting.field().database_path();
    disk.load_sparse(path, prepared.file_bytes(), PreparedContent::sparse(prepared));
    disk
}

fn run_on<T: 'static, F: Future<Output = T> + 'static>(
    disk: &Rc<MemoryDisk>,
    work: impl FnOnce(Files, Handle) -> F,
) -> Result<T, plimsoll_io::Stalled> {
    let executor = Executor::new(disk.clock().clone(), disk.clone());
    let handle = executor.handle();
    executor.run(work(Files::new(disk.clone()), handle))
}

async fn generate(
    setting: Setting,
    prepared: Arc<PreparedDatabase>,
    files: Files,
    handle: Handle,
    disk: Rc<MemoryDisk>,
    logged: Rc<Cell<Logged>>,
) {
    let field = setting.field();
    let tree = record_tree(&files, &handle, &field.database_path()).await;
    let Ok((instance, _)) = field.open(&files, &handle).await else {
        return;
    };
    let load = Load::new(instance.clone(), handle.clone(), prepared, tree);
    let log = instance.store().log.clone();
    let (began, before) = (handle.now(), log.statistics().appended_bytes);
    let sessions = load.start(setting.sessions, MIX_2010, Pace::Sluggish(setting.sluggish), 1);
    while log.statistics().generations < setting.generations {
        handle.sleep(NANOS_PER_SECOND / 10).await;
    }
    logged.set(Logged {
        bytes: log.statistics().appended_bytes - before,
        elapsed_ns: handle.now() - began,
        transactions: load.done(),
    });
    disk.power_cut();
    drop(sessions);
    disk.power_lost().await;
}

/// Recovers and closes; bytes redone, the time until the instance was open, and the changes made
/// and found made.
async fn recover(
    setting: Setting,
    files: Files,
    handle: Handle,
) -> Result<(u64, u64, u64, u64), String> {
    let began = handle.now();
    let opened = setting.field().open(&files, &handle).await;
    let (instance, report) = opened.map_err(|error| error.to_string())?;
    let elapsed_ns = handle.now() - began;
    instance.close().await.map_err(|error| error.to_string())?;
    let replay = report.replay;
    Ok((replay.bytes, elapsed_ns, replay.applied, replay.skipped))
}
