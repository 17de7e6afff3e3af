//! Reading the log while it is being written.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::follower::LogFollower;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Context, Latency, LatencyPlan, MemoryOptions};

use crate::life::*;
use crate::support::*;

/// Why it matters: a copy that follows a live log is told of loss that is none, and stops.
#[test]
fn a_follower_beside_a_live_writer_is_told_every_record_once_and_of_no_loss() {
    for seed in 0..12 {
        let setup = Setup {
            framing: [Framing::Sectors512, Framing::Segments4096][seed as usize % 2],
            circular: false,
            ..Setup::default()
        };
        let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 400_000 };
        let memory =
            MemoryOptions { latency: LatencyPlan::of(latency), ..MemoryOptions::default() };
        let disk = disk_with_databases(seed, &setup, memory);
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            let (is_over, committed) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
            let mut sessions = Vec::new();
            for session in 0..6u64 {
                let (instance, is_over, committed) =
                    (instance.clone(), is_over.clone(), committed.clone());
                sessions.push(handle.spawn(async move {
                    for number in session * 1_000_000.. {
                        if is_over.get() {
                            return;
                        }
                        let transaction = instance.begin();
                        transaction.insert(tree, &row_key(number), &[1; 900]).await.unwrap();
                        committed.set(committed.get() + 1);
                        transaction.commit(Commit::Durable).await.unwrap();
                    }
                }));
            }
            let reader =
                LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Context::default());
            let mut follower = LogFollower::new(reader, Lsn::new(1, 0));
            let (mut told, mut last) = (0, Lsn::ZERO);
            let mut note = |records: Vec<(Lsn, LogRecord)>| {
                for (at, record) in records {
                    assert!(at >= last, "seed {seed}: {at} after {last}");
                    last = at;
                    told += u64::from(matches!(record, LogRecord::Commit { .. }));
                }
                told
            };
            while instance.store().log.durable().generation < 4 {
                let records = follower.poll().await;
                note(records.unwrap_or_else(|error| panic!("seed {seed}: {error}")));
                handle.sleep(300_000).await;
            }
            is_over.set(true);
            for session in sessions {
                session.await;
            }
            let told = note(follower.poll().await.unwrap());
            assert_eq!(told, committed.get(), "seed {seed}: commits");
            instance.close().await.unwrap();
        });
    }
}

/// Why it matters: a follower that waits for a loss to go away waits for ever.
#[test]
fn a_follower_is_told_of_a_loss_that_stays() {
    let setup = Setup { circular: false, ..Setup::default() };
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let damaging = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        for number in 0..30 {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[1; 900]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
        }
        let names = LogNames::new(LOG, "E00");
        damaging.corrupt(names.current(), 4096 + 10 * 512, |bytes| bytes[..512].fill(0));
        let mut follower =
            LogFollower::new(LogReader::new(files, names, Context::default()), Lsn::new(1, 0));
        let found = follower.poll().await;
        assert!(found.is_err(), "{found:?}");
    });
}
