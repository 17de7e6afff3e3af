//! Tables made beside each other.

use std::rc::Rc;

use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_io::{Clock, MemoryOptions};

use crate::at_once::slow_disk;
use crate::support::*;

/// Two sessions that made a table at once took the same object numbers: the second failed and left its trees in the database for ever.
#[test]
fn tables_made_at_once_are_all_there() {
    for memory in [MemoryOptions::default(), slow_disk()] {
        let setup = Setup::default();
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, 7, memory);
        run_on(&clock, &disk, move |files, handle| async move {
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
            let names = ["one", "two", "three", "four"];
            let make = |name: &'static str| {
                let instance = instance.clone();
                handle.spawn(async move { instance.create_table(1, message_table(name)).await.map(drop) })
            };
            let tasks: Vec<_> = names.into_iter().map(make).collect();
            for (task, name) in tasks.into_iter().zip(names) {
                let made = task.await;
                assert!(made.is_ok(), "{name}: {made:?}");
            }
            for name in names {
                instance.open_table(1, name).await.unwrap();
            }
            instance.close().await.unwrap();
            let report = verify_deep(&files, &handle, database_path(1), DeepOptions::default());
            let report = report.await.unwrap();
            assert!(report.is_sound(), "{:#?}", report.findings);
        })
        .unwrap();
    }
}
