//! The smallest nodes: a page has room for more of them than it can count.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, MemoryOptions, Random};

use crate::support::*;

fn with_tree<F: Future<Output = ()> + 'static>(
    seed: u64,
    story: impl FnOnce(Rc<Instance>, Tree) -> F + 'static,
) {
    let setup = Setup { size: PageSize::KIB_32, cache_frames: 64, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        story(instance.clone(), tree).await;
        let rows = dump(&instance, tree).await.unwrap();
        instance.close().await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed + 1).await.unwrap();
        assert!(dump(&instance, tree).await.unwrap() == rows, "the same after a restart");
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// All keys of at most one byte, and so many of two.
fn keys(of_two: u16) -> Vec<Vec<u8>> {
    let one = (0..=255u8).map(|byte| vec![byte]);
    let two = (0..of_two).map(|word| word.to_be_bytes().to_vec());
    [Vec::new()].into_iter().chain(one).chain(two).collect()
}

/// The number of nodes went round to nothing, and all rows of the page were lost.
#[test]
fn a_page_takes_no_more_nodes_than_it_can_count() {
    with_tree(1, |instance, tree| async move {
        let keys = keys(3_860);
        for some in keys.chunks(100) {
            let transaction = instance.begin();
            for key in some {
                transaction.insert(tree, key, &[]).await.unwrap();
            }
            transaction.commit(Commit::Durable).await.unwrap();
        }
        let rows = dump(&instance, tree).await.unwrap();
        let mut expected = keys;
        expected.sort();
        assert!(rows.into_keys().eq(expected), "every acknowledged row is there");
    });
}

#[test]
fn the_shortest_rows_agree_with_a_sorted_map() {
    for seed in first_seed(0)..first_seed(3) {
        with_tree(seed, move |instance, tree| async move {
            let (mut random, mut rows) = (Random::from_seed(seed), BTreeMap::new());
            let mut keys = keys(4_200);
            for _ in 0..200 {
                let transaction = instance.begin();
                for _ in 0..1 + random.below(150) {
                    let key = &keys[random.below(keys.len() as u64) as usize];
                    // Hardly any has data.
                    let data = vec![7; random.below(400).saturating_sub(398) as usize];
                    if random.chance(0.05) && rows.remove(key).is_some() {
                        transaction.delete(tree, key).await.unwrap();
                    } else if !rows.contains_key(key) {
                        transaction.insert(tree, key, &data).await.unwrap();
                        rows.insert(key.clone(), data);
                    }
                }
                transaction.commit(Commit::Lazy).await.unwrap();
            }
            keys.retain(|key| !rows.contains_key(key));
            for key in keys {
                let transaction = instance.begin();
                transaction.insert(tree, &key, &[]).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
                rows.insert(key, Vec::new());
            }
            assert!(dump(&instance, tree).await.unwrap() == rows, "seed {seed}");
        });
    }
}
