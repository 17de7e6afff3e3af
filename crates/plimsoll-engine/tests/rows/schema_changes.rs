//! Tables made beside each other.

use std::rc::Rc;

use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_io::{Clock, MemoryOptions};

use crate::at_once::slow_disk;
use crate::support::*;

/// Two sessions that made a table at once took the same object numbers: the second failed and left
/// its trees in the database for ever.
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
                handle.spawn(async move {
                    instance.create_table(1, message_table(name)).await.map(drop)
                })
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

/// A table is opened by its name, in any case, without reading the rows of all others.
#[test]
fn one_table_of_many_is_opened_without_a_scan() {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 8, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
        for number in 0..60 {
            let table = message_table(&format!("Messages {number:02}"));
            instance.create_table(1, table).await.unwrap();
        }
        let twice = instance.create_table(1, message_table("Messages 17")).await;
        assert!(twice.is_err(), "there is one already");
        instance.close().await.unwrap();

        let (instance, _) = open(&files, &handle, &setup, 4).await.unwrap();
        let before = instance.store().cache.statistics().misses;
        let table = instance.open_table(1, "MESSAGES 31").await.unwrap();
        let misses = instance.store().cache.statistics().misses - before;
        assert!(misses <= 8, "{misses} pages were read for one table");
        assert_eq!(table.placed().table.name, "Messages 31");
        assert_eq!(table.placed().table.indexes.len(), 2);
        for unknown in ["Messages 3", "Messages 60", "", "M\u{e9}ssages"] {
            let opened = instance.open_table(1, unknown).await.map(drop);
            assert!(opened.is_err(), "{unknown:?}");
        }
        instance.open_table(1, "MSysObjects").await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}
