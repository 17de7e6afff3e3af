//! Transactions that meet: begun again until they succeed or their time is over, and told when it
//! is they who leave no room.

use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::retry::Retry;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{Clock, Handle, MemoryOptions, NANOS_PER_SECOND, Random};

use crate::support::*;

fn with_tree<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>, Tree, Handle) -> F + 'static,
) {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let transaction = instance.begin();
        transaction.insert(tree, b"count", &[0; 8]).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        story(instance.clone(), tree, handle.clone()).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

async fn count_up(transaction: &Transaction, tree: Tree) -> Result<u64> {
    let row = transaction.get(tree, b"count").await?.ok_or(EngineError::RowNotFound)?;
    let count = u64::from_le_bytes(row.try_into().expect("eight bytes")) + 1;
    transaction.replace(tree, b"count", &count.to_le_bytes()).await?;
    Ok(count)
}

/// Sessions that read, add and write the same row: every addition arrives, once.
#[test]
fn a_transaction_is_begun_again_until_it_succeeds() {
    with_tree(|instance, tree, handle| async move {
        let session = |number: u64| {
            let (instance, sleeper) = (instance.clone(), handle.clone());
            handle.spawn(async move {
                let mut random = Random::from_seed(number);
                let mut attempts = 0;
                for _ in 0..20 {
                    let tried = std::cell::Cell::new(0u32);
                    let retry = Retry::until(sleeper.now() + 60 * NANOS_PER_SECOND);
                    let work = async |transaction: &Transaction| {
                        tried.set(tried.get() + 1);
                        let count = count_up(transaction, tree).await?;
                        // Others come between.
                        sleeper.sleep(200_000).await;
                        Ok(count)
                    };
                    let done = instance.transact(Commit::Lazy, retry, &mut random, work).await;
                    done.unwrap();
                    attempts += tried.get();
                }
                attempts
            })
        };
        let sessions: Vec<_> = (0..5).map(session).collect();
        let mut attempts = 0;
        for session in sessions {
            attempts += session.await;
        }
        assert!(attempts > 100, "nobody met: {attempts} attempts");
        let row = instance.begin().get(tree, b"count").await.unwrap().unwrap();
        assert_eq!(row, 100u64.to_le_bytes());
    });
}

/// When the time is over the error is the one of the last attempt; what cannot succeed is not tried
/// again.
#[test]
fn an_attempt_ends_with_its_time_and_errors_of_its_own_end_it_at_once() {
    with_tree(|instance, tree, handle| async move {
        let other = instance.begin();
        count_up(&other, tree).await.unwrap();
        let (began, mut random) = (handle.now(), Random::from_seed(1));
        let retry = Retry::until(began + NANOS_PER_SECOND);
        let work = async |transaction: &Transaction| count_up(transaction, tree).await;
        let refused = instance.transact(Commit::Lazy, retry, &mut random, work).await;
        assert!(matches!(refused, Err(EngineError::WriteConflict)), "{refused:?}");
        let took = handle.now() - began;
        assert!((NANOS_PER_SECOND / 2..=NANOS_PER_SECOND).contains(&took), "{took} ns");
        other.rollback().await.unwrap();

        let tried = std::cell::Cell::new(0u32);
        let retry = Retry::until(handle.now() + NANOS_PER_SECOND);
        let work = async |transaction: &Transaction| {
            tried.set(tried.get() + 1);
            transaction.insert(tree, b"half", b"x").await?;
            transaction.delete(tree, b"not there").await
        };
        let refused = instance.transact(Commit::Lazy, retry, &mut random, work).await;
        assert!(matches!(refused, Err(EngineError::RowNotFound)), "{refused:?}");
        assert_eq!(tried.get(), 1);
        assert_eq!(dump(&instance, tree).await.unwrap().len(), 1, "what failed was taken back");
    });
}

/// A transaction that changes too much is told, and not those that come after it.
#[test]
fn who_fills_the_version_store_is_told() {
    with_tree(|instance, tree, _| async move {
        let large = instance.begin();
        let mut told = None;
        for number in 0..100_000u32 {
            match large.insert(tree, &number.to_be_bytes(), &[1; 20]).await {
                Ok(()) => {}
                Err(error) => {
                    told = Some(error);
                    break;
                }
            }
        }
        let is_told = matches!(&told, Some(EngineError::TransactionTooLarge { bytes,
            bytes_max }) if bytes >= bytes_max);
        assert!(is_told, "{told:?}");
        assert!(!told.unwrap().is_transient(), "the same again would fail again");
        let other = instance.begin();
        count_up(&other, tree).await.unwrap();
        other.commit(Commit::Lazy).await.unwrap();
        // What was taken back no longer counts.
        let start = large.savepoint();
        assert!(large.rollback_to(start).await.is_ok());
        large.rollback().await.unwrap();
        assert_eq!(instance.store().versions.borrow().bytes(), 0);
    });
}
