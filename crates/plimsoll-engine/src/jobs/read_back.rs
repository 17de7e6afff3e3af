//! What log shipping costs the disk: every generation is read back once per extra copy when it is
//! closed. Generations not yet read are kept, whatever the checkpoint says, until the job ends in
//! any way.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::{Context, NANOS_PER_MILLISECOND, Purpose};

use crate::error::Result;
use crate::instance::{Held, Instance};
use crate::log::reader::LogReader;

/// How often the log's tip is looked at.
const LOOK_EVERY_NS: u64 = 100 * NANOS_PER_MILLISECOND;

/// What was read back.
#[derive(Default)]
pub struct ReadBackProgress {
    /// Generations read and verified.
    pub generations: Cell<u64>,
    /// Payload bytes in them.
    pub bytes: Cell<u64>,
    /// Set to end.
    pub stop: Cell<bool>,
}

/// Reads generations back for one copy, from the one being written now on, until `progress.stop` is
/// set or the instance closes.
pub async fn read_back(
    instance: Rc<Instance>,
    copy: u32,
    progress: Rc<ReadBackProgress>,
) -> Result<()> {
    let store = instance.store().clone();
    let context = Context { purpose: Purpose::LogReplication, ..store.context };
    let reader = LogReader::new(store.files.clone(), store.log.names().clone(), context);
    let mut next = store.log.durable().generation;
    let held = Held::begin(&instance, &format!("log read back for copy {copy}"), next);
    let mut previous = None;
    while !(progress.stop.get() || store.is_stopping()) {
        if store.log.durable().generation <= next {
            store.log.check()?;
            store.handle.sleep(LOOK_EVERY_NS).await;
            continue;
        }
        let generation = reader.read_generation(&reader.names().closed(next)).await?;
        if let Some(previous) = &previous {
            LogReader::check_chain(previous, &generation.header, &generation.path)?;
        }
        progress.generations.set(progress.generations.get() + 1);
        progress.bytes.set(progress.bytes.get() + generation.payload.len() as u64);
        previous = Some(generation);
        next += 1;
        held.raise(next);
    }
    Ok(())
}
