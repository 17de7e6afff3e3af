//! Which pages were touched since a database time, from the pages themselves: every change of a
//! page gives it a new time, and times only rise. That needs no log from before, and reads the
//! whole file.
//!
//! Pages that were changed and not written yet are named by the log from the checkpoint on, which
//! is held meanwhile.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_io::{Context, Purpose};

use super::scan::read_chunk;
use crate::PageNumber;
use crate::database::Database;
use crate::error::Result;
use crate::instance::{Held, Instance};
use crate::log::reader::LogReader;
use crate::page::PageView;

/// Bytes of one read.
const READ_BYTES: usize = 256 * 1024;

/// Every page of a database that was changed since its database time was `dbtime`, and every page
/// that cannot be read: nobody knows what was on that. Changes made while this looks may be among
/// them or not.
///
/// # Errors
/// What reading pages and log meets.
pub async fn touched_since(
    instance: &Rc<Instance>,
    database: u8,
    dbtime: u64,
) -> Result<BTreeSet<PageNumber>> {
    let store = instance.store();
    let target = instance.database(database)?;
    let from = store.checkpoint.get();
    let what = format!("pages touched of database {database}");
    let _held = Held::begin(instance, &what, from.generation);
    let mut pages = changed_in_file(instance, &target, dbtime).await?;
    store.log.make_durable(store.log.tip()).await?;
    let context = Context { purpose: Purpose::Maintenance, ..store.context };
    let reader = LogReader::new(store.files.clone(), store.log.names().clone(), context);
    // Named since the checkpoint, which may lie before the time: a page of that kind may be looked
    // at in vain, never left out.
    let logged = reader.touched_since(from).await?;
    pages.extend(logged.pages(database));
    Ok(pages)
}

async fn changed_in_file(
    instance: &Rc<Instance>,
    database: &Rc<Database>,
    dbtime: u64,
) -> Result<BTreeSet<PageNumber>> {
    let (handle, size) = (&instance.store().handle, database.size());
    let pages_per_read = (READ_BYTES / size.bytes()).max(1) as u32;
    let last = database.pages_in_use();
    let (mut pages, mut next) = (BTreeSet::new(), 1);
    while next <= last {
        let count = pages_per_read.min(last + 1 - next);
        let chunk = read_chunk(handle, database, next, count, Purpose::Maintenance).await?;
        pages.extend(chunk.damaged.iter().map(|(page, _)| *page));
        for (page, bytes) in (chunk.first..).zip(chunk.bytes.chunks_exact(size.bytes())) {
            if PageView::new(bytes, size).dbtime() > dbtime {
                pages.insert(page);
            }
        }
        next += count;
    }
    Ok(pages)
}
