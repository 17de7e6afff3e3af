//! Reading a database from front to back while others write to it.
//!
//! A page read while it is being written may be half old, half new. A page that looks damaged is
//! therefore checked only if no write of it was under way between the read's start and end;
//! otherwise it is read again by itself, as often as writers get in the way.

use std::rc::Rc;

use plimsoll_io::{Buffer, Handle, Purpose};

use crate::PageNumber;
use crate::database::Database;
use crate::error::{PageDamage, Result};

/// Bytes checked before others may run.
const CHECK_BYTES: usize = 64 * 1024;

/// Consecutive pages as read, checked.
pub(super) struct Chunk {
    pub first: PageNumber,
    pub bytes: Buffer,
    pub damaged: Vec<(PageNumber, PageDamage)>,
    /// Pages in which a flipped bit was put right in memory.
    pub corrected: u64,
}

/// Reads `count` pages from `first` on and checks them.
pub(super) async fn read_chunk(
    handle: &Handle,
    database: &Rc<Database>,
    first: PageNumber,
    count: u32,
    purpose: Purpose,
) -> Result<Chunk> {
    let page_bytes = database.size().bytes();
    let before = database.write_mark();
    let mut bytes = database.read_run(first, count, purpose).await?;
    let (mut damaged, mut corrected) = (Vec::new(), 0);
    let pages_per_check = (CHECK_BYTES / page_bytes).max(1);
    for index in 0..count {
        if (index as usize).is_multiple_of(pages_per_check) && index > 0 {
            handle.yield_now().await;
        }
        let page = first + index;
        let at = index as usize * page_bytes;
        // Nothing else runs between the two counts.
        let corrected_before = database.statistics().corrected;
        let checked = check(database, page, &mut bytes, at);
        corrected += database.statistics().corrected - corrected_before;
        if let Err(damage) = checked {
            let target = &mut bytes[at..at + page_bytes];
            let checked = check_alone(database, page, target, before, damage, purpose).await?;
            damaged.extend(checked.map(|damage| (page, damage)));
        }
    }
    Ok(Chunk { first, bytes, damaged, corrected })
}

/// Pages never written are no damage here.
fn check(
    database: &Database,
    page: PageNumber,
    bytes: &mut Buffer,
    position: usize,
) -> std::result::Result<(), PageDamage> {
    match database.check_buffer(page, bytes, position, true) {
        Err(PageDamage::Uninitialized) => Ok(()),
        checked => checked,
    }
}

async fn check_alone(
    database: &Rc<Database>,
    page: PageNumber,
    target: &mut [u8],
    mut before: u64,
    mut damage: PageDamage,
    purpose: Purpose,
) -> Result<Option<PageDamage>> {
    while database.was_written_since(page, before) {
        before = database.write_mark();
        let mut again = database.read_run(page, 1, purpose).await?;
        match check(database, page, &mut again, 0) {
            Ok(()) => {
                target.copy_from_slice(&again);
                return Ok(None);
            }
            Err(found) => damage = found,
        }
    }
    Ok(Some(damage))
}
