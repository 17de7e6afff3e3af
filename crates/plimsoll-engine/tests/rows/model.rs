//! The engine against an in-memory model: whatever a swarm of concurrent sessions does, the
//! committed state is the model's, before and after a clean restart, at every page size and with
//! both log framings.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::PageSize;
use plimsoll_engine::log::framing::Framing;
use plimsoll_io::{Clock, MemoryOptions, Random};

/// What a swarm works on.
#[derive(Clone, Copy)]
struct Keys {
    keys: u64,
    bytes_max: u64,
    prefix_bytes: usize,
    keys_per_prefix: u64,
}

impl Keys {
    fn plain(setup: &Setup) -> Keys {
        let bytes_max = setup.size.bytes() as u64 / 6;
        Keys { keys: 2_000, bytes_max, prefix_bytes: 0, keys_per_prefix: 0 }
    }
}

fn check(setup: Setup, keys: Keys, seed: u64, sessions: u64, transactions: u64) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, report) = open(&files, &handle, &setup, seed).await.unwrap();
        assert!(!report.recovered);
        let Keys { keys, bytes_max, prefix_bytes, keys_per_prefix } = keys;
        let field = create_field(&instance, &setup, keys, bytes_max).await.unwrap();
        let field = Field { prefix_bytes, keys_per_prefix, ..field };
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
        let setup = Setup::default();
        let keys = Keys::plain(&setup);
        check(setup, keys, seed, 5, 120);
    }
}

#[test]
fn every_page_size_and_both_framings_agree_with_the_model() {
    for (index, size) in PageSize::ALL.into_iter().enumerate() {
        for framing in [Framing::Sectors512, Framing::Segments4096] {
            let setup =
                Setup { size, framing, databases: 2, cache_frames: 128, ..Setup::default() };
            let keys = Keys::plain(&setup);
            check(setup, keys, first_seed(100) + index as u64, 4, 80);
        }
    }
}

/// Short rows whose keys are mostly what they have in common with others, now and then with nothing
/// in common between them.
#[test]
fn keys_of_many_long_beginnings_agree_with_the_model() {
    for seed in first_seed(200)..first_seed(208) {
        let mut random = Random::from_seed(seed).child("keys");
        let sizes = [PageSize::KIB_4, PageSize::KIB_4, PageSize::KIB_8];
        let setup = Setup { size: sizes[random.below(3) as usize], ..Setup::default() };
        let keys = Keys {
            keys: 600,
            bytes_max: 1 + random.below(60),
            prefix_bytes: 100 + random.below(1_200) as usize,
            keys_per_prefix: 8 + random.below(60),
        };
        check(setup, keys, seed, 4, 80);
    }
}

/// Short rows whose keys are long and begin alike: the whole keys of a page are longer than a
/// generation of the log.
#[test]
fn long_keys_that_begin_alike_on_the_largest_pages_agree_with_the_model() {
    for seed in first_seed(300)..first_seed(302) {
        let mut random = Random::from_seed(seed).child("keys");
        let setup = Setup { size: PageSize::KIB_32, cache_frames: 128, ..Setup::default() };
        let keys = Keys {
            keys: 2_000,
            bytes_max: 1 + random.below(20),
            prefix_bytes: 4_000 + random.below(4_000) as usize,
            keys_per_prefix: 0,
        };
        check(setup, keys, seed, 4, 120);
    }
}
