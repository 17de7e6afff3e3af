//! What a run may leave behind in memory: nothing.
//!
//! Every buffer, the frames of a cache among them, is lent by the disk and must have come back.
//! Whatever else could be left holds the disk or its clock: files, instances, transactions and
//! executors the one, tasks, caches and logs the other. So a cycle of references shows in how many
//! hold these.

use std::rc::Rc;

use plimsoll_io::{Disk, MemoryDisk};

/// What was lent before a run.
pub struct Accounts {
    lent_bytes: usize,
}

impl Accounts {
    pub fn open(disk: &MemoryDisk) -> Accounts {
        Accounts { lent_bytes: disk.lent_bytes() }
    }

    /// Lets the disk finish what is under way, such as closing the files that went last, and
    /// compares. The run, its executor and whatever it was given must be gone, and nobody but the
    /// caller may hold the disk.
    pub fn settle(&self, disk: &Rc<MemoryDisk>, label: &str) {
        while disk.in_flight() > 0 {
            let due = disk.next_event();
            let due =
                due.unwrap_or_else(|| panic!("{label}: {} operations hang", disk.in_flight()));
            disk.clock().advance_to(due.max(disk.clock().now()));
            disk.reap();
        }
        assert_eq!(Rc::strong_count(disk), 1, "{label}: somebody still holds the disk");
        assert_eq!(Rc::strong_count(disk.clock()), 1, "{label}: somebody still holds the clock");
        assert_eq!(
            disk.lent_bytes(),
            self.lent_bytes,
            "{label}: bytes that were lent have not come back"
        );
    }
}
