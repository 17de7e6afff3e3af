//! Making the files of a run, and how its instance is set up: the same for the work, for its survey
//! and for a rehearsal.

use std::rc::Rc;

use plimsoll_engine::create::create_database;
use plimsoll_engine::instance::{Instance, InstanceOptions, RecoveryReport};
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::{LogTime, PageSize, Signature};
use plimsoll_io::{
    Context, Durability, File, Files, Handle, InstanceId, OpenMode, Purpose, Random,
};

use crate::error::PowercutError;
use crate::mark::{Label, MARK_BYTES, encode};
use crate::rows::Tables;
use crate::spec::{LOG_BASE, PowercutSpec};

/// Label of the engine's I/O.
fn context() -> Context {
    Context { instance: InstanceId(1), ..Context::default() }
}

/// Label of the marks' I/O.
pub fn mark_context() -> Context {
    Context { purpose: Purpose::DatabaseWrite, ..context() }
}

fn page_size(spec: &PowercutSpec) -> Result<PageSize, PowercutError> {
    PageSize::from_bytes(spec.page_bytes)
        .ok_or_else(|| PowercutError::Spec("page_bytes must be 4096, 8192, 16384 or 32768".into()))
}

/// Page images are on: whatever tears, nothing acknowledged may be lost. The log goes round, its
/// segments are whole sectors of any device.
fn options(spec: &PowercutSpec) -> InstanceOptions {
    InstanceOptions {
        context: context(),
        log: LogNames::new(spec.directory(), LOG_BASE),
        databases: vec![spec.database()],
        framing: Framing::Segments4096,
        circular: true,
        log_buffer_bytes: 1 << 20,
        cache_bytes_min: 0,
        cache_bytes_max: spec.cache_bytes,
        checkpoint_depth_bytes: 4 << 20,
        hold_checkpoint: false,
        version_store_bytes_max: 64 << 20,
        page_images: true,
        extension_pages: 256,
        waypoint_generations: 0,
        writes_outstanding_max: 64,
    }
}

/// Makes database, tables and marks, and opens them.
pub async fn create(
    files: &Files,
    handle: &Handle,
    spec: &PowercutSpec,
) -> Result<(Rc<Instance>, Tables, File), PowercutError> {
    let size = page_size(spec)?;
    let marks = create_marks(files, spec).await?;
    let signature =
        Signature::new(spec.run as u32, LogTime::from_utc_ns(handle.clock().anchor().utc_ns));
    create_database(files, &spec.database(), size, signature, context()).await?;
    let (instance, _) = open(files, handle, spec).await?;
    let tables = Tables::create(&instance).await?;
    Ok((instance, tables, marks))
}

/// Opens the instance, recovering it if it was not closed.
pub async fn open(
    files: &Files,
    handle: &Handle,
    spec: &PowercutSpec,
) -> Result<(Rc<Instance>, RecoveryReport), PowercutError> {
    let mut random = Random::from_seed(spec.run).child("instance");
    Instance::open(files.clone(), handle.clone(), options(spec), &mut random)
        .await
        .map_err(PowercutError::from)
}

/// Every block is written once before the work begins, so that no later write has to allocate.
async fn create_marks(files: &Files, spec: &PowercutSpec) -> Result<File, PowercutError> {
    let prepare = Context { purpose: Purpose::Prepare, ..context() };
    let file = files.open(&spec.marks(), OpenMode::Create, prepare).await?;
    let lane_bytes = spec.slots as usize * MARK_BYTES;
    for lane in 0..spec.lanes {
        let mut buffer = file.allocate(lane_bytes);
        let label = Label { run: spec.run, lane, sequence: 0, started: 0 };
        for block in buffer.chunks_exact_mut(MARK_BYTES) {
            encode(label, block);
        }
        let offset = u64::from(lane) * lane_bytes as u64;
        file.write(offset, buffer, Durability::Volatile, prepare).await?;
    }
    file.sync(prepare).await?;
    files.sync_directory(spec.directory(), prepare).await?;
    Ok(file)
}
