//! Blanking the start of a block device that holds a database, so that it counts as empty again.
//!
//! The disk refuses the device as it does for a run: without its serial, while somebody uses it, or
//! while it carries anything that is no database. The rest of the device keeps its bytes; nothing
//! finds them without a header.

use std::path::Path;
use std::rc::Rc;

use plimsoll_io::{
    Clock, Context, DiskError, DiskErrorKind, Durability, Executor, Files, OpenMode, Purpose,
    RealDisk, RealDiskOptions,
};

use crate::error::ToolError;

/// Both headers of the largest page size and the first pages after them.
const BLANKED_BYTES: usize = 1 << 20;

/// See the module text.
///
/// # Errors
/// What the disk reports, also when the device may not be written.
pub fn erase_device_live(device: &Path, destroy_serials: Vec<String>) -> Result<(), ToolError> {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { destroy_serials, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone())?;
    let executor = Executor::new(clock, disk.clone());
    let (files, device) = (Files::new(disk), device.to_owned());
    let erased: Result<(), DiskError> = executor.run(async move {
        let context = Context::of(Purpose::Header);
        let file = files.open(&device, OpenMode::Write, context).await?;
        let erased = match file.opened().is_device {
            true => {
                let mut blank = file.allocate(BLANKED_BYTES);
                blank.fill(0);
                let written = file.write(0, blank, Durability::Durable, context).await;
                written.map(|_| ())
            }
            false => Err(DiskError::new(DiskErrorKind::Unsupported, "erase", &device)
                .because("it is not a block device")),
        };
        file.close(context).await?;
        erased
    })?;
    Ok(erased?)
}
