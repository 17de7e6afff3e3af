//! Faults of the disk while mail is on its way: every n-th transfer fails, the store goes away, and
//! the next opening finds everything that was accepted.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::{DiskErrorKind, Effect, FaultRule, NANOS_PER_SECOND, Purpose};

use crate::mail::lives::{audited, busy};
use crate::mail::world::*;

/// A write of the log or of a page fails at some point, of either engine. Nothing accepted is lost.
#[test]
fn a_failed_write_during_delivery_loses_no_mail() {
    let mut failed = 0;
    for (purpose, skips) in [(Purpose::LogWrite, [5, 40, 90]), (Purpose::DatabaseWrite, [0, 3, 9])]
    {
        for skip in skips {
            let disk = disk();
            run_on(&disk, |files, handle| async move {
                close(new_instances(&files, &handle, FILLING).await).await;
            })
            .expect("it is made");
            let fails = FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(purpose);
            disk.inject(FaultRule { skip, limit: 1, ..fails });
            let acknowledged = Rc::new(Cell::new(0));
            let noted = acknowledged.clone();
            run_on(&disk, move |files, handle| async move {
                let instances = open_instances(&files, &handle).await;
                let store = open_store(&instances, FILLING).await;
                let tasks: Vec<_> = (0..4)
                    .map(|session| handle.spawn(busy(store.clone(), session, 200, Rc::default())))
                    .collect();
                handle.sleep(2 * NANOS_PER_SECOND).await;
                noted.set(store.acknowledged());
                drop(tasks);
            });
            let rounds = 4 * 200;
            failed += u64::from(acknowledged.get() < rounds);
            let low = acknowledged.get();
            run_on(&disk, move |files, handle| async move {
                let instances = open_instances(&files, &handle).await;
                let store = open_store(&instances, FILLING).await;
                store.deliver_queued(&|_| {}).await.expect("the disk is sound again");
                let audit = audited(&store).await;
                assert!(audit.accepted >= low, "{purpose:?} {skip}: {audit:?}, {low}");
                assert_eq!((audit.delivered, audit.queued), (audit.accepted, 0));
                drop(store);
                close(instances).await;
            })
            .expect("it comes to an end");
        }
    }
    assert!(failed > 0, "no fault struck");
}
