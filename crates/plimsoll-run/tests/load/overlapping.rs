//! Reads of raw files that overlap a write of the same page, on a disk that tears them as tmpfs and
//! some file systems do.
//!
//! Why it matters: such a page is half old and half new, and sound storage was accused of damage
//! after a second.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::{
    Action, Answer, Buffer, Disk, DiskFacts, FileId, MemoryDisk, Nanos, Operation, Outcome,
};
use plimsoll_run::Ending;
use serde_json::json;

use super::support::*;

/// Transfers under way: its number, whether it writes, file and offset, and whether one of the
/// other kind was there with it.
type UnderWay = Rc<RefCell<Vec<(u64, bool, (FileId, u64), bool)>>>;

/// Tears every read that overlaps a write.
struct Tearing {
    disk: Rc<MemoryDisk>,
    under_way: UnderWay,
    numbers: RefCell<u64>,
}

impl Disk for Tearing {
    fn submit(&self, operation: Operation) {
        let (is_write, place) = match &operation.action {
            Action::Read { file, offset, .. } => (false, (*file, *offset)),
            Action::Write { file, offset, .. } => (true, (*file, *offset)),
            _ => return self.disk.submit(operation),
        };
        *self.numbers.borrow_mut() += 1;
        let number = *self.numbers.borrow();
        let mut is_torn = false;
        for other in self.under_way.borrow_mut().iter_mut() {
            if other.2 == place && other.1 != is_write {
                (other.3, is_torn) = (true, true);
            }
        }
        self.under_way.borrow_mut().push((number, is_write, place, is_torn));
        let (under_way, then) = (self.under_way.clone(), operation.completion);
        let completion = Box::new(move |mut outcome: Outcome| {
            let position = under_way.borrow().iter().position(|other| other.0 == number);
            let (_, is_write, _, is_torn) =
                under_way.borrow_mut().remove(position.expect("it is there"));
            if let (false, true, Ok(Answer::Buffer(buffer))) =
                (is_write, is_torn, &mut outcome.result)
            {
                let half = buffer.len() / 2;
                buffer[half..].fill(0xEE);
            }
            then(outcome);
        });
        self.disk.submit(Operation { completion, ..operation });
    }

    fn reap(&self) -> usize {
        self.disk.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.disk.wait(deadline);
    }

    fn waker(&self) -> std::task::Waker {
        self.disk.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.disk.next_event()
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.disk.facts()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }
}

#[test]
fn a_page_read_while_it_is_written_is_not_called_damaged() {
    let disk = constant(1_000_000);
    let tearing = Rc::new(Tearing {
        disk: disk.clone(),
        under_way: UnderWay::default(),
        numbers: RefCell::default(),
    });
    let mut plan = spec("raw_files", json!({"sessions": 64, "shared": false}), 3.0);
    // Few pages, so that many reads meet a write.
    plan["instances"][0]["databases"][0]["size_bytes"] = json!(256 * 4096);
    plan["workloads"][0]["mix"] = json!({
        "insert_percent": 0, "delete_percent": 0, "replace_percent": 50, "read_percent": 50,
            "lazy_commit_percent": 70
    });
    let ran = run(disk.clock(), tearing, &plan);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    assert!(ran.count("read") > 1000, "reads go on");
}
