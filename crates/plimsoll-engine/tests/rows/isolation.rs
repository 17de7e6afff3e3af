//! What concurrent transactions see of each other, and what they must not do to one row at a time:
//! counters, savepoints, full version store.

use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, MemoryOptions, Random};

/// What the version store of these tests may hold: some 3,800 rows.
const VERSION_BYTES_MAX: usize = 400_000;

fn with_row<F: Future<Output = ()> + 'static>(
    row: &'static [u8],
    story: impl FnOnce(Rc<Instance>, Tree) -> F + 'static,
) {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let mut options = options(&setup);
        options.version_store_bytes_max = VERSION_BYTES_MAX;
        let mut random = Random::from_seed(2);
        let opened = Instance::open(files.clone(), handle.clone(), options, &mut random);
        let (instance, _) = opened.await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let first = instance.begin();
        first.insert(tree, b"row", row).await.unwrap();
        first.commit(Commit::Durable).await.unwrap();
        story(instance.clone(), tree).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

async fn read(instance: &Instance, tree: Tree) -> Vec<u8> {
    let transaction = instance.begin();
    let row = transaction.get(tree, b"row").await.unwrap();
    row.expect("the row is there")
}

/// A savepoint taken back leaves the change before it, and others go on seeing the row as it was
/// before the transaction.
#[test]
fn others_see_the_row_as_it_was_after_half_of_its_changes_are_taken_back() {
    with_row(b"first", |instance, tree| async move {
        let writer = instance.begin();
        writer.replace(tree, b"row", b"second").await.unwrap();
        let savepoint = writer.savepoint();
        writer.replace(tree, b"row", b"third").await.unwrap();
        writer.rollback_to(savepoint).await.unwrap();
        assert_eq!(writer.get(tree, b"row").await.unwrap().unwrap(), b"second");
        assert_eq!(read(&instance, tree).await, b"first");
        writer.commit(Commit::Lazy).await.unwrap();
        assert_eq!(read(&instance, tree).await, b"second");
    });
}

/// What somebody adds to a counter is seen when it is committed and not before; an addition taken
/// back takes nobody else's along.
#[test]
fn an_addition_is_seen_when_it_is_committed() {
    with_row(&[0; 8], |instance, tree| async move {
        let counter = async |instance: &Instance| {
            let row = read(instance, tree).await;
            u64::from_le_bytes(row.try_into().unwrap())
        };
        let (one, two) = (instance.begin(), instance.begin());
        one.add(tree, b"row", 0, 8, 5).await.unwrap();
        two.add(tree, b"row", 0, 8, 100).await.unwrap();
        assert_eq!(counter(&instance).await, 0);
        one.commit(Commit::Lazy).await.unwrap();
        assert_eq!(counter(&instance).await, 5);
        two.rollback().await.unwrap();
        assert_eq!(counter(&instance).await, 5);
    });
}

/// Additions go together; an addition to a row that somebody else is replacing would be lost or
/// taken back with it.
#[test]
fn nobody_adds_to_a_row_that_another_replaces() {
    with_row(&[0; 8], |instance, tree| async move {
        let (replacing, adding) = (instance.begin(), instance.begin());
        replacing.replace(tree, b"row", &[7; 8]).await.unwrap();
        let refused = adding.add(tree, b"row", 0, 8, 5).await;
        assert!(matches!(refused, Err(EngineError::WriteConflict)), "{refused:?}");
        adding.rollback().await.unwrap();
        replacing.rollback().await.unwrap();
        assert_eq!(read(&instance, tree).await, [0; 8]);
    });
}

/// A reader that stays open makes the versions of many rows pile up: before memory is gone, writers
/// are told. One row that is changed again and again takes no more than one.
#[test]
fn a_full_version_store_is_told_and_ends_with_the_reader() {
    with_row(b"first", |instance, tree| async move {
        let reader = instance.begin();
        reader.get(tree, b"row").await.unwrap();
        let mut refused = None;
        for number in 0..2_000u32 {
            let writer = instance.begin();
            writer.replace(tree, b"row", &[number as u8; 2_000]).await.unwrap();
            writer.commit(Commit::Lazy).await.unwrap();
        }
        let bytes = instance.store().versions.borrow().bytes();
        assert!(bytes < VERSION_BYTES_MAX / 4, "{bytes} bytes of versions of one row");
        // Twice as much as the store may hold.
        for number in 0..8_000u32 {
            let writer = instance.begin();
            match writer.insert(tree, &number.to_be_bytes(), b"another").await {
                Ok(()) => writer.commit(Commit::Lazy).await.unwrap(),
                Err(error) => {
                    refused = Some(error);
                    writer.rollback().await.unwrap();
                    break;
                }
            }
        }
        assert!(matches!(refused, Some(EngineError::VersionStoreFull { .. })), "{refused:?}");
        assert_eq!(reader.get(tree, b"row").await.unwrap().unwrap(), b"first");
        reader.rollback().await.unwrap();
        let writer = instance.begin();
        writer.replace(tree, b"row", b"last").await.unwrap();
        writer.commit(Commit::Lazy).await.unwrap();
    });
}

/// Looking for the first vacant key in one go must find what asking for each key by itself finds:
/// across leaves, beside rows others have deleted or inserted and not committed, and where nothing
/// is vacant.
#[test]
fn the_first_absent_key_is_the_one_that_single_reads_find() {
    with_row(b"row", |instance, tree| async move {
        let key = |number: u32| number.to_be_bytes().to_vec();
        let writer = instance.begin();
        for number in (0..400).filter(|number| number % 50 != 49) {
            writer.insert(tree, &key(number), &[7; 200]).await.unwrap();
        }
        writer.commit(Commit::Durable).await.unwrap();
        let other = instance.begin();
        other.delete(tree, &key(120)).await.unwrap();
        other.insert(tree, &key(149), &[8; 200]).await.unwrap();
        for (first, count) in
            [(0, 49), (0, 60), (40, 60), (100, 60), (130, 80), (200, 12), (390, 30), (500, 3)]
        {
            let keys: Vec<Vec<u8>> = (first..first + count).map(key).collect();
            for reader in [&instance.begin(), &other] {
                let mut expected = None;
                for (index, key) in keys.iter().enumerate() {
                    if expected.is_none() && reader.get(tree, key).await.unwrap().is_none() {
                        expected = Some(index);
                    }
                }
                let found = reader.first_absent(tree, &keys).await.unwrap();
                assert_eq!(found, expected, "from {first} on");
            }
        }
        other.rollback().await.unwrap();
    });
}
