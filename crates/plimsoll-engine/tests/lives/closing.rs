//! Closing beside sessions: what is begun after the close is refused, what was begun before it is
//! waited for, and what was acknowledged is there.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_engine::deep::{DeepOptions, Finding, verify_deep};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::InstanceOptions;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Effect, FaultRule, Handle, MemoryOptions, NANOS_PER_MILLISECOND, NANOS_PER_SECOND,
    OperationKind, Random, either,
};

use crate::life::*;
use crate::support::*;

fn assert_refused<T>(found: Result<T, EngineError>) {
    match found {
        Err(EngineError::Closing) => {}
        Err(other) => panic!("it is not closing that is to blame: {other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

/// Whether `work` ends within a minute.
async fn ends<T>(handle: &Handle, work: impl Future<Output = T>) -> Option<T> {
    let (ended, late) = (RefCell::new(None), handle.sleep(60 * NANOS_PER_SECOND));
    either(async { *ended.borrow_mut() = Some(work.await) }, late).await;
    ended.into_inner()
}

/// Why it matters: a close that reports success marks the databases clean, so what is logged after
/// that is never redone.
#[test]
fn no_commit_acknowledged_beside_a_close_is_lost() {
    for seed in 0..100 {
        let setup = Setup::default();
        let disk = disk_with_databases(seed, &setup, MemoryOptions::default());
        let s = setup.clone();
        let (tree, acknowledged) = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            let acknowledged: Rc<RefCell<Vec<u64>>> = Rc::default();
            let mut sessions = Vec::new();
            for session in 0..3u64 {
                let (instance, noted, own) =
                    (instance.clone(), acknowledged.clone(), handle.clone());
                let mut random = Random::from_seed(seed).child(&format!("session {session}"));
                sessions.push(handle.spawn(async move {
                    for number in session * 1_000.. {
                        let transaction = instance.begin();
                        let inserted = transaction.insert(tree, &row_key(number), &[1; 300]).await;
                        let done = match inserted {
                            Ok(()) => transaction.commit(Commit::Durable).await,
                            Err(error) => Err(error),
                        };
                        if let Err(error) = done {
                            assert_refused::<()>(Err(error));
                            return;
                        }
                        noted.borrow_mut().push(number);
                        own.sleep(random.below(5 * NANOS_PER_MILLISECOND)).await;
                    }
                }));
            }
            handle.sleep(Random::from_seed(seed).below(100 * NANOS_PER_MILLISECOND)).await;
            let closed = ends(&handle, instance.close()).await;
            closed.expect("sessions that go on must not hold up a close").unwrap();
            for session in sessions {
                session.await;
            }
            (tree, acknowledged.take())
        });
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let found = dump(&instance, tree).await.unwrap();
            let missing =
                acknowledged.iter().filter(|number| !found.contains_key(&row_key(**number)));
            assert_eq!(missing.count(), 0, "seed {seed}: of {}", acknowledged.len());
        });
    }
}

#[test]
fn a_close_waits_for_the_transactions_that_were_begun_before_it() {
    let disk = disk_with_databases(1, &Setup::default(), MemoryOptions::default());
    let tree = live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&Setup::default())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let transaction = instance.begin();
        transaction.insert(tree, b"before", b"the close").await.unwrap();
        let closing = handle.spawn(instance.clone().close());
        handle.sleep(NANOS_PER_SECOND).await;
        assert!(!closing.is_finished(), "it does not wait");
        let refused = instance.begin();
        let found = refused.insert(tree, b"after", b"the close").await;
        assert_refused(found);
        assert_refused(refused.commit(Commit::Durable).await);
        instance.begin().rollback().await.unwrap();
        handle.sleep(NANOS_PER_SECOND).await;
        assert!(!closing.is_finished(), "a transaction that was refused counts as one that ended");
        transaction.insert(tree, b"during", b"the close").await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        ends(&handle, closing).await.expect("a close ends").unwrap();
        tree
    });
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&Setup::default())).await;
        assert_eq!(dump(&instance, tree).await.unwrap().len(), 2);
    });
}

/// Why it matters: a tree is made without a transaction, so nobody who counts transactions knows of
/// it.
#[test]
fn a_table_made_beside_a_close_is_whole_or_refused() {
    let mut refused = 0;
    for quarter_ms in 0..40 {
        let setup = Setup::default();
        let disk = disk_with_databases(quarter_ms, &setup, MemoryOptions::default());
        let s = setup.clone();
        let made = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            let (making, own) = (instance.clone(), handle.clone());
            let making = handle.spawn(async move {
                own.sleep(quarter_ms * NANOS_PER_MILLISECOND / 4).await;
                making.create_table(1, message_table("Messages")).await.map(drop)
            });
            handle.sleep(3 * NANOS_PER_MILLISECOND).await;
            ends(&handle, instance.close()).await.expect("a close ends").unwrap();
            making.await
        });
        let is_made = made.is_ok();
        if !is_made {
            assert_refused(made);
            refused += 1;
        }
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let found = instance.open_table(1, "Messages").await;
            assert_eq!(found.is_ok(), is_made, "after {quarter_ms} quarters of a millisecond");
            instance.close().await.unwrap();
        });
    }
    assert!((5..38).contains(&refused), "{refused} of 40 refused");
}

/// Why it matters: a tree is made in one step, which a close that knows nothing of it overtakes.
#[test]
fn a_tree_made_beside_a_close_is_there_or_refused() {
    for tenth_ms in 0..40 {
        let setup = Setup::default();
        let disk = disk_with_databases(tenth_ms, &setup, MemoryOptions::default());
        let s = setup.clone();
        let made = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            let (making, own) = (instance.clone(), handle.clone());
            let making = handle.spawn(async move {
                own.sleep(tenth_ms * NANOS_PER_MILLISECOND / 10).await;
                making.create_tree(1, 1, 50, 0, 300).await
            });
            handle.sleep(NANOS_PER_MILLISECOND).await;
            ends(&handle, instance.close()).await.expect("a close ends").unwrap();
            making.await
        });
        let Ok(tree) = made else {
            assert_refused(made);
            continue;
        };
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let transaction = instance.begin();
            transaction.insert(tree, b"a row", b"of data").await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            instance.close().await.unwrap();
            let deep = verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
            let is_lost = |finding: &Finding| matches!(finding, Finding::Leaked { .. });
            let others: Vec<_> =
                deep.unwrap().findings.into_iter().filter(|found| !is_lost(found)).collect();
            assert!(others.is_empty(), "after {tenth_ms} tenths of a millisecond: {others:?}");
        });
    }
}

/// Why it matters: who stops waiting for a close must not keep the files locked, nor leave
/// databases half marked.
#[test]
fn a_close_that_nobody_waits_for_any_longer_is_finished_all_the_same() {
    for polls in 1..30 {
        let setup = Setup::default();
        let disk = disk_with_databases(polls, &setup, MemoryOptions::default());
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            let transaction = instance.begin();
            transaction.insert(tree, b"a row", b"of data").await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
            drop(give_up_after(polls, instance.close()).await);
            handle.sleep(NANOS_PER_SECOND).await;
            let instance = open_with(&files, &handle, options(&setup)).await;
            assert_eq!(dump(&instance, tree).await.unwrap().len(), 1);
            instance.close().await.unwrap();
        });
    }
}

/// Why it matters: whoever works on when the instance is gone must be told so, and not wait for
/// ever.
#[test]
fn after_an_instance_was_abandoned_its_transactions_are_refused() {
    let disk = disk_with_databases(1, &Setup::default(), MemoryOptions::default());
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&Setup::default())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let transaction = instance.begin();
        transaction.insert(tree, b"a row", b"of data").await.unwrap();
        instance.clone().abandon().await.unwrap();
        let found = ends(&handle, transaction.insert(tree, b"another", b"of data")).await;
        assert_refused(found.expect("somebody waits for ever"));
        let found = ends(&handle, transaction.commit(Commit::Durable)).await;
        assert_refused(found.expect("somebody waits for ever"));
        let found = ends(&handle, instance.begin().get(tree, b"a row")).await;
        assert_refused(found.expect("somebody waits for ever"));
    });
}

/// Why it matters: a session that hangs must not keep a process from stopping by a deadline, nor
/// keep its files locked.
#[test]
fn a_close_that_waits_for_too_long_can_be_given_up() {
    let disk = disk_with_databases(1, &Setup::default(), MemoryOptions::default());
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&Setup::default())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let transaction = instance.begin();
        transaction.insert(tree, b"a row", b"of data").await.unwrap();
        make_durable(&instance).await;
        let closing = handle.spawn(instance.clone().close());
        handle.sleep(NANOS_PER_SECOND).await;
        assert_eq!(instance.active_count(), 1);
        instance.clone().abandon().await.unwrap();
        let closed = ends(&handle, closing).await.expect("the close that was given up ends");
        assert_refused(closed);
        let next = open_with(&files, &handle, options(&Setup::default())).await;
        assert_refused(transaction.commit(Commit::Durable).await);
        assert_eq!(instance.active_count(), 0);
        assert!(dump(&next, tree).await.unwrap().is_empty());
        next.close().await.unwrap();
    });
}

/// Why it matters: whoever asks for a checkpoint counts on what was written before being behind it.
#[test]
fn a_checkpoint_that_is_asked_for_during_another_begins_after_that() {
    let disk = disk_with_databases(1, &Setup::default(), MemoryOptions::default());
    let slow = disk.clone();
    live(&disk, move |files, handle| async move {
        let held = InstanceOptions { hold_checkpoint: true, ..options(&Setup::default()) };
        let instance = open_with(&files, &handle, held).await;
        let log = instance.store().log.clone();
        log.make_durable(log.begin_generation().end).await.unwrap();
        let sync = FaultRule::new(Effect::Delay(NANOS_PER_SECOND));
        slow.inject(sync.with_kind(OperationKind::SyncFile).with_path_part("edb").nth(1));
        let asked = instance.clone();
        let first = handle.spawn(async move { asked.checkpoint().await });
        handle.sleep(NANOS_PER_MILLISECOND).await;
        log.make_durable(log.begin_generation().end).await.unwrap();
        assert!(!first.is_finished(), "it is under way");
        let written = log.durable().generation;
        instance.checkpoint().await.unwrap();
        assert!(instance.store().checkpoint.get().generation >= written);
        first.await.unwrap();
        // Nor does one that waits hold a close up.
        let asked = instance.clone();
        let waiting = handle.spawn(async move { asked.checkpoint().await });
        ends(&handle, instance.close()).await.expect("a close ends").unwrap();
        let waited = ends(&handle, waiting).await.expect("a checkpoint ends");
        assert!(matches!(waited, Ok(()) | Err(EngineError::Closing)), "{waited:?}");
    });
}

#[test]
fn log_that_nobody_writes_any_more_is_waited_for_by_nobody() {
    let disk = disk_with_databases(1, &Setup::default(), MemoryOptions::default());
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&Setup::default())).await;
        let log = instance.store().log.clone();
        instance.close().await.unwrap();
        let appended = log.append(&LogRecord::Term);
        let found = ends(&handle, log.make_durable(appended.end)).await;
        assert_refused(found.expect("somebody waits for ever"));
    });
}
