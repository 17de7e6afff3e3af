//! The engine against an in-memory model: whatever a swarm of concurrent sessions does, the
//! committed state is the model's, before and after a clean restart, at every page size and with
//! both log framings.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::PageSize;
use plimsoll_engine::log::framing::Framing;
use plimsoll_io::{Clock, MemoryOptions, Random};

fn check(setup: Setup, seed: u64, sessions: u64, transactions: u64) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, report) = open(&files, &handle, &setup, seed).await.unwrap();
        assert!(!report.recovered);
        let bytes_max = setup.size.bytes() as u64 / 6;
        let field = create_field(&instance, &setup, 2_000, bytes_max).await.unwrap();
        let ledger: Rc<RefCell<Ledger>> = Rc::default();
        let mut joins = Vec::new();
        for session in 0..sessions {
            let (instance, field, ledger) = (instance.clone(), field.clone(), ledger.clone());
            let mut random = Random::from_seed(seed).child(&format!("session {session}"));
            joins.push(handle.spawn(async move {
                let weights = Weights::swarm(&mut random);
                for number in 0..transactions {
                    let serial = session * 1_000_000 + number;
                    one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                        .await
                        .unwrap();
                }
            }));
        }
        for join in joins {
            join.await;
        }
        let books = ledger.borrow().clone();
        let survived = audit(&instance, &field, &books).await.unwrap();
        assert_eq!(survived, ledger.borrow().committed.len());
        instance.close().await.unwrap();

        let (instance, report) = open(&files, &handle, &setup, seed + 1).await.unwrap();
        assert!(!report.recovered, "a clean shutdown needs no recovery");
        audit(&instance, &field, &books).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}

#[test]
fn a_swarm_of_sessions_leaves_what_the_model_says_on_small_pages() {
    for seed in first_seed(0)..first_seed(6) {
        check(Setup::default(), seed, 5, 120);
    }
}

#[test]
fn every_page_size_and_both_framings_agree_with_the_model() {
    for (index, size) in PageSize::ALL.into_iter().enumerate() {
        for framing in [Framing::Sectors512, Framing::Segments4096] {
            let setup =
                Setup { size, framing, databases: 2, cache_frames: 128, ..Setup::default() };
            check(setup, first_seed(100) + index as u64, 4, 80);
        }
    }
}
