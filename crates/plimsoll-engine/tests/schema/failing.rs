//! The n-th I/O fails while a schema changes.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::{DiskErrorKind, Effect, FaultRule, Loss, MemoryDisk, Random};

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// What came of a change beside a failing disk.
struct Tried {
    /// Whether it was acknowledged; `None` where it failed.
    is_made: bool,
    /// Operations of the disk.
    operations: u64,
    is_closed: bool,
}

/// Carries out the change with the n-th operation of the disk failing, counted from the moment the
/// instance is open.
fn try_with(disk: &Rc<MemoryDisk>, change: Change, rule: Option<FaultRule>) -> Tried {
    let (is_made, is_closed) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
    let (made, closed) = (is_made.clone(), is_closed.clone());
    let failing = disk.clone();
    let operations = live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let before = failing.events();
        if let Some(rule) = rule {
            failing.inject(rule);
        }
        made.set(carry_out(&instance, change).await.is_ok());
        let operations = (failing.events() - before) / 2;
        failing.clear_faults();
        closed.set(instance.close().await.is_ok());
        operations
    });
    Tried { is_made: is_made.get(), operations, is_closed: is_closed.get() }
}

/// Why it matters: a table that could not be made left its trees in the database for ever.
#[test]
fn a_change_whose_io_fails_leaves_no_lost_page() {
    let base = base(1);
    for change in ALL {
        let operations = try_with(&copy(&base), change, None).operations;
        assert!(operations > 2, "{change:?}: {operations} operations");
        let (mut failed, mut closed_after_failure) = (0, 0);
        for nth in 1..=operations {
            for (kind, limit) in [(DiskErrorKind::Medium, 1), (DiskErrorKind::Full, 3)] {
                let mut rule = FaultRule::new(Effect::Fail(kind)).nth(nth);
                rule.limit = limit;
                let disk = copy(&base);
                let tried = try_with(&disk, change, Some(rule));
                failed += u64::from(!tried.is_made);
                closed_after_failure += u64::from(!tried.is_made && tried.is_closed);
                let label = format!("{change:?}, operation {nth} of {operations}: {kind:?}");
                let found = disk.crash_image(Loss::Nothing, &mut Random::from_seed(nth));
                let made = look_after(&found, change, label.clone());
                assert!(made || !tried.is_made, "{label}: acknowledged and lost");
                assert!(
                    !made || tried.is_made || !tried.is_closed,
                    "{label}: refused, and made all the same"
                );
            }
        }
        println!(
            "{change:?}: {operations} operations, {failed} failures, {closed_after_failure} closed \
             cleanly"
        );
        assert!(failed > 0);
    }
}
