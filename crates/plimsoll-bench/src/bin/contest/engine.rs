//! This engine as a contestant: direct I/O on the real disk, one thread, sessions as tasks.

use std::rc::Rc;

use plimsoll_bench::field::{CHECKPOINT_DEPTH_BYTES, Field, prepared_2010, record_tree};
use plimsoll_bench::load::{Load, Pace, finish};
use plimsoll_io::{Clock, Executor, Files, Handle, NANOS_PER_SECOND, RealDisk, RealDiskOptions};
use plimsoll_prepare::{WriteOptions, write_database};

use crate::{Contest, Tally};

fn on_disk<T: 'static, F: Future<Output = Result<T, String>> + 'static>(
    work: impl FnOnce(Files, Handle) -> F,
) -> Result<T, String> {
    let clock = Rc::new(Clock::real());
    let disk = RealDisk::open(RealDiskOptions::default(), clock.clone())
        .map_err(|error| error.to_string())?;
    let executor = Executor::new(clock, disk.clone());
    let handle = executor.handle();
    executor.run(work(Files::new(disk), handle)).map_err(|stalled| stalled.to_string())?
}

fn field(contest: &Contest) -> Field {
    Field {
        directory: contest.directory.clone(),
        cache_bytes: contest.cache_bytes,
        checkpoint_depth_bytes: CHECKPOINT_DEPTH_BYTES,
    }
}

/// Writes the prepared database; how many records it has.
pub fn prepare(contest: &Contest) -> Result<u64, String> {
    let prepared = prepared_2010(contest.database_bytes).map_err(|error| error.to_string())?;
    let path = field(contest).database_path();
    on_disk(move |files, handle| async move {
        let written =
            write_database(&files, &handle, &path, &prepared, &WriteOptions::default()).await;
        written.map_err(|error| error.to_string())?;
        Ok(prepared.records())
    })
}

/// Runs the mix.
pub fn run(contest: &Contest, records_ever: u64) -> Result<Tally, String> {
    let (contest, field) = (contest.clone(), field(contest));
    on_disk(
        move |files, handle| async move { race(contest, field, records_ever, files, handle).await },
    )
}

async fn race(
    contest: Contest,
    field: Field,
    records_ever: u64,
    files: Files,
    handle: Handle,
) -> Result<Tally, String> {
    let text = |error: plimsoll_engine::error::EngineError| error.to_string();
    let prepared = prepared_2010(contest.database_bytes).map_err(|error| error.to_string())?;
    let tree = record_tree(&files, &handle, &field.database_path()).await;
    let (instance, _) = field.open(&files, &handle).await.map_err(text)?;
    let load = Load::new(instance.clone(), handle.clone(), prepared, tree);
    load.continue_after(records_ever);
    load.stop_after(contest.transactions_max);
    let began = handle.now();
    let sessions = load.start(contest.sessions, contest.mix(), Pace::Sluggish(0.0), records_ever);
    let (clock, stopper) = (handle.clone(), load.clone());
    drop(handle.spawn(async move {
        clock.sleep((contest.seconds * NANOS_PER_SECOND as f64) as u64).await;
        stopper.stop();
    }));
    finish(sessions).await.map_err(text)?;
    instance.close().await.map_err(text)?;
    Ok(Tally {
        done: load.done(),
        seconds: (handle.now() - began) as f64 / NANOS_PER_SECOND as f64,
        records_ever: load.records_ever(),
    })
}
