//! Operations dropped at any point where they wait. An operation that was abandoned has either
//! happened or not, never half; a dropped transaction is taken back; nobody else waits for ever.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, MemoryOptions, Random};

use crate::support::*;

/// Polls a future at most `polls` times; `None` if it was dropped before it was done.
async fn give_up_after<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => {
                if left == 0 {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    })
    .await
}

/// One session that gives up on two operations in three; what it sees of its own rows tells which
/// of them happened.
async fn session(
    instance: &plimsoll_engine::instance::Instance,
    field: &Field,
    random: &mut Random,
    committed: &RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    session: u64,
) {
    let tree = field.data[0];
    for number in 0..80u64 {
        let transaction = instance.begin();
        let mut mine = committed.borrow().clone();
        for _ in 0..6 {
            // Sessions keep to their own rows, so that the model needs no conflicts.
            let key = row_key(session + 4 * random.below(150));
            let data = vec![number as u8; 1 + random.below(600) as usize];
            let patience = if random.chance(0.3) { u64::MAX } else { 1 + random.below(3) };
            let done = match (mine.contains_key(&key), random.below(3)) {
                (false, _) => give_up_after(patience, transaction.insert(tree, &key, &data)).await,
                (true, 0) => give_up_after(patience, transaction.delete(tree, &key)).await,
                (true, _) => give_up_after(patience, transaction.replace(tree, &key, &data)).await,
            };
            let was_done = match done {
                None => false,
                Some(Ok(())) => true,
                // A transaction of this session that was dropped may still be on its way back.
                Some(Err(EngineError::WriteConflict)) => false,
                Some(Err(error)) => panic!("{error}"),
            };
            let before = mine.get(&key).cloned();
            let after = transaction.get(tree, &key).await.unwrap();
            let happened = after.as_ref() != before.as_ref();
            assert!(
                !happened || after.is_none() || after.as_deref() == Some(&data[..]),
                "an abandoned operation left something that nobody wrote"
            );
            assert!(!was_done || happened || before.as_deref() == Some(&data[..]));
            match after {
                Some(data) => mine.insert(key, data),
                None => mine.remove(&key),
            };
        }
        match random.below(4) {
            0 => drop(transaction),
            1 => {
                give_up_after(1 + random.below(3), transaction.rollback()).await;
            }
            2 => {
                let place = transaction.savepoint();
                let key = row_key(session);
                let exists = mine.contains_key(&key);
                let changed = if exists {
                    transaction.delete(tree, &key).await
                } else {
                    transaction.insert(tree, &key, b"for a moment").await
                };
                if matches!(changed, Err(EngineError::WriteConflict)) {
                    continue;
                }
                changed.unwrap();
                let back = give_up_after(1 + random.below(2), transaction.rollback_to(place)).await;
                let kept = transaction.commit(Commit::Lazy).await;
                if back.is_some() {
                    kept.unwrap();
                    keep(committed, mine, session);
                } else if kept.is_ok() {
                    panic!("a transaction half-way back to a savepoint was committed");
                }
            }
            _ => {
                // A commit that was begun counts, whether or not anybody waited for it.
                give_up_after(1 + random.below(3), transaction.commit(Commit::Durable)).await;
                keep(committed, mine, session);
            }
        }
    }
}

/// Takes over a session's own rows.
fn keep(
    committed: &RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    mine: BTreeMap<Vec<u8>, Vec<u8>>,
    session: u64,
) {
    let own: Vec<Vec<u8>> = (0..150).map(|number| row_key(session + 4 * number)).collect();
    let mut committed = committed.borrow_mut();
    for key in own {
        match mine.get(&key) {
            Some(data) => committed.insert(key, data.clone()),
            None => committed.remove(&key),
        };
    }
}

#[test]
fn an_abandoned_operation_has_happened_or_not_and_nobody_hangs() {
    for seed in first_seed(0)..first_seed(3) {
        let setup = Setup { cache_frames: 64, ..Setup::default() };
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, seed, MemoryOptions::default());
        run_on(&clock, &disk, move |files, handle| async move {
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
            let field = create_field(&instance, &setup, 0, 0).await.unwrap();
            let committed: Rc<RefCell<BTreeMap<Vec<u8>, Vec<u8>>>> = Rc::default();
            let mut joins = Vec::new();
            for number in 0..4u64 {
                let (instance, field, committed) =
                    (instance.clone(), field.clone(), committed.clone());
                let mut random = Random::from_seed(seed).child(&format!("session {number}"));
                joins.push(handle.spawn(async move {
                    session(&instance, &field, &mut random, &committed, number).await;
                }));
            }
            for join in joins {
                join.await;
            }
            // Closing waits for what is taken back in the background, and would hang if an
            // abandoned step held anything.
            let tree = field.data[0];
            instance.close().await.unwrap();
            let (instance, report) = open(&files, &handle, &setup, seed + 1).await.unwrap();
            assert!(!report.recovered);
            let found = dump(&instance, tree).await.unwrap();
            assert!(found == *committed.borrow(), "seed {seed}: committed rows, and only those");
            instance.close().await.unwrap();
        })
        .unwrap_or_else(|_| panic!("seed {seed}: somebody waits for ever"));
    }
}
