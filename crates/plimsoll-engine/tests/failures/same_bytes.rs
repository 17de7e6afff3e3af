//! The same seed gives the same bytes: every file, every event, every reading of the clock.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{Clock, Latency, LatencyPlan, Loss, MemoryOptions, Random};

use crate::support::*;

/// Work, cut, recovery and more work; what the disk holds and how many events it took.
fn life(seed: u64) -> (BTreeMap<PathBuf, Vec<u8>>, u64, u64) {
    let setup = Setup { databases: 2, cache_frames: 70, ..Setup::default() };
    let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 300_000 };
    let memory = MemoryOptions { latency: LatencyPlan::of(latency), ..MemoryOptions::default() };
    let mut random = Random::from_seed(seed).child("life");
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, memory);
    disk.power_cut_at(400_000_000);
    let field: Rc<RefCell<Option<Field>>> = Rc::default();
    let (working, known) = (setup.clone(), field.clone());
    run_until_power_lost(&disk, move |files, handle| async move {
        create_databases(&files, &working).await.unwrap();
        let (instance, _) = open(&files, &handle, &working, seed).await.unwrap();
        let created = create_field(&instance, &working, 900, 500).await.unwrap();
        instance.store().log.make_durable(instance.store().log.tip()).await.unwrap();
        *known.borrow_mut() = Some(created.clone());
        let mut joins = Vec::new();
        for session in 0..4u64 {
            let (instance, field) = (instance.clone(), created.clone());
            let mut random = Random::from_seed(seed).child(&format!("session {session}"));
            joins.push(handle.spawn(async move {
                let weights = Weights::swarm(&mut random);
                let ledger = RefCell::default();
                for number in 0..400 {
                    let serial = session * 1_000 + number;
                    if one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            }));
        }
        for join in joins {
            join.await;
        }
    });
    disk.power_cut();
    let image = disk.crash_image(Loss::Drawn, &mut random);
    let found = field.borrow().clone().expect("the trees exist before the cut");
    run_on(&image.clock().clone(), &image, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, seed + 1).await.unwrap();
        for tree in &found.data {
            dump(&instance, *tree).await.unwrap();
        }
        instance.close().await.unwrap();
    })
    .unwrap();
    (image.snapshot(), disk.events() + image.events(), image.clock().now())
}

#[test]
fn the_same_seed_gives_the_same_bytes_events_and_times() {
    for seed in 1..4 {
        let (first, second) = (life(seed), life(seed));
        assert_eq!((first.1, first.2), (second.1, second.2), "events and time of seed {seed}");
        assert!(first.0 == second.0, "bytes of seed {seed}");
    }
    assert!(life(1).0 != life(2).0, "different seeds make different lives");
}
