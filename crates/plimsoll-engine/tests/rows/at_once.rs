//! Two operations of one transaction at once: each of them is whole or nothing, also when the other
//! fails, or nobody waits for it any more.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Latency, LatencyPlan, MemoryOptions};

use crate::people::*;
use crate::support::*;

/// Drives futures side by side, the first first, until all are done.
pub async fn side_by_side_in_order<T>(
    futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>,
) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if let Some(work) = future
                && let Poll::Ready(value) = work.as_mut().poll(context)
            {
                *result = Some(value);
                *future = None;
            }
        }
        if futures.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

pub fn slow_disk() -> MemoryOptions {
    let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 400_000 };
    MemoryOptions { latency: LatencyPlan::of(latency), ..MemoryOptions::default() }
}

fn person(name: &str) -> Person {
    (name.to_owned(), Some(b"a note".to_vec()), None)
}

/// An insert that a unique index refuses was taken back together with steps of another insert of
/// the same transaction: half a row was committed.
#[test]
fn an_operation_that_fails_takes_nothing_of_another_back() {
    let name = |id: i32| format!("{} {id:05}", "name".repeat(20));
    let before: People = (0..150).map(|id| (id, person(&name(id)))).collect();
    for seed in 0..40 {
        let setup = Setup { cache_frames: 64, ..Setup::default() };
        let mut expected = before.clone();
        with_people(seed, setup, slow_disk(), &before, move |instance, table, _, _| async move {
            let transaction = instance.begin();
            let (fresh, taken) = (person("zzz"), expected[&5].clone());
            let both = side_by_side_in_order(vec![
                Box::pin(insert(&table, &transaction, 1001, &fresh))
                    as Pin<Box<dyn Future<Output = _>>>,
                Box::pin(insert(&table, &transaction, 1000, &taken)),
            ])
            .await;
            assert!(both[1].is_err(), "two people have one name");
            if both[0].is_ok() {
                expected.insert(1001, fresh.clone());
            }
            transaction.commit(Commit::Durable).await.unwrap();
            check_people(&table, &instance.begin(), &expected, &format!("seed {seed}")).await;
        });
    }
}

/// A read beside a change would see it half done. Reads go beside each other.
#[test]
fn a_read_beside_a_change_is_refused_and_reads_go_together() {
    let before = People::from([(1, person("Ada")), (2, person("Grace"))]);
    with_people(
        5,
        Setup::default(),
        slow_disk(),
        &before.clone(),
        move |instance, table, _, _| async move {
            let transaction = instance.begin();
            let (key, fresh) = (key_of(&table, 1), person("Edsger"));
            let mut inserting = Box::pin(insert(&table, &transaction, 3, &fresh));
            let begun =
                poll_fn(|context| Poll::Ready(inserting.as_mut().poll(context).is_pending())).await;
            assert!(begun, "the pages have to be read first");
            let read = table.get(&transaction, &key).await;
            assert!(matches!(read, Err(EngineError::TransactionBusy)), "{read:?}");
            let scanned = through(&table, &transaction, "by name").await;
            assert!(matches!(scanned, Err(EngineError::TransactionBusy)), "{scanned:?}");
            inserting.await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();

            let transaction = instance.begin();
            let rows = side_by_side_in_order(vec![
                Box::pin(through(&table, &transaction, "by note"))
                    as Pin<Box<dyn Future<Output = _>>>,
                Box::pin(through(&table, &transaction, "by name")),
            ])
            .await;
            assert!(
                rows.iter().all(|rows| rows.as_ref().is_ok_and(|rows| rows.len() == 3)),
                "{rows:?}"
            );
        },
    );
}

/// A savepoint that is taken while a change is under way is the place before that change. Whether
/// the change ends well or is given up, going back leaves no part of its row.
#[test]
fn a_savepoint_beside_a_change_leaves_no_half_of_it() {
    let name = |id: i32| format!("{} {id:05}", "name".repeat(20));
    let before: People = (0..150).map(|id| (2 * id, person(&name(id)))).collect();
    let first: Person = (String::from("zzz"), None, None);
    let second: Person = (name(77) + "b", Some(vec![b'n'; 90]), Some(vec![7; 9_000]));
    let waits = Rc::new(Cell::new(0));
    for (polls, is_given_up) in (1..8).flat_map(|polls| [(polls, false), (polls, true)]) {
        let setup = Setup { cache_frames: 64, ..Setup::default() };
        let (first, second, waits) = (first.clone(), second.clone(), waits.clone());
        let mut expected = before.clone();
        with_people(9, setup, slow_disk(), &before, move |instance, table, _, _| async move {
            let transaction = instance.begin();
            insert(&table, &transaction, 1001, &first).await.unwrap();
            expected.insert(1001, first);
            let savepoint = {
                let mut inserting = Box::pin(insert(&table, &transaction, 41, &second));
                let mut left = polls;
                let ended = poll_fn(|context| match inserting.as_mut().poll(context) {
                    Poll::Pending if left == 1 => Poll::Ready(None),
                    Poll::Pending => {
                        left -= 1;
                        Poll::Pending
                    }
                    Poll::Ready(result) => Poll::Ready(Some(result)),
                });
                let savepoint = match ended.await {
                    Some(ended) => {
                        ended.unwrap();
                        None
                    }
                    None => Some(transaction.savepoint()),
                };
                if savepoint.is_some() && !is_given_up {
                    inserting.await.unwrap();
                }
                savepoint
            };
            if let Some(savepoint) = savepoint {
                waits.set(waits.get() + 1);
                transaction.rollback_to(savepoint).await.unwrap();
            } else {
                expected.insert(41, second);
            }
            transaction.commit(Commit::Durable).await.unwrap();
            let title = format!("{polls} polls, given up: {is_given_up}");
            check_people(&table, &instance.begin(), &expected, &title).await;
        });
    }
    assert!(waits.get() >= 4, "the insert waited {} times only", waits.get());
}

/// Two long values are written at once and one of them is given to its row: the other belongs to no
/// row and must not be committed.
#[test]
fn a_long_value_without_a_row_is_not_committed_because_another_found_one() {
    with_people(
        3,
        Setup::default(),
        MemoryOptions::default(),
        &People::new(),
        |instance, table, _, _| async move {
            let transaction = instance.begin();
            insert(&table, &transaction, 1, &person("Ada")).await.unwrap();
            let mut one = table.write_long_value(&transaction).await.unwrap();
            one.write(&[1; 9_000]).await.unwrap();
            let mut two = table.write_long_value(&transaction).await.unwrap();
            two.write(&[2; 9_000]).await.unwrap();
            let picture = table.column("picture").unwrap();
            let key = key_of(&table, 1);
            table.attach_long_value(&transaction, &key, picture, one).await.unwrap();
            drop(two);
            let committed = transaction.commit(Commit::Lazy).await;
            assert!(committed.is_err(), "a long value that no row has was committed");
        },
    );
}

/// What was written of a long value is gone after a rollback to before it: the rest of it would be
/// a value without a head.
#[test]
fn a_long_value_that_was_taken_back_cannot_be_written_on() {
    with_people(
        3,
        Setup::default(),
        MemoryOptions::default(),
        &People::new(),
        |instance, table, _, _| async move {
            let transaction = instance.begin();
            insert(&table, &transaction, 1, &person("Ada")).await.unwrap();
            let before = transaction.savepoint();
            let mut picture = table.write_long_value(&transaction).await.unwrap();
            picture.write(&[1; 9_000]).await.unwrap();
            transaction.rollback_to(before).await.unwrap();
            let on = picture.write(&[1; 9_000]).await;
            assert!(on.is_err(), "its beginning is gone");
            drop(picture);
            transaction.commit(Commit::Lazy).await.unwrap();
            let expected = People::from([(1, person("Ada"))]);
            check_people(&table, &instance.begin(), &expected, "taken back").await;
        },
    );
}

/// A savepoint from which a rollback has gone back is gone: what was done since is not what it
/// stood for.
#[test]
fn a_savepoint_that_was_passed_by_is_refused() {
    with_people(
        3,
        Setup::default(),
        MemoryOptions::default(),
        &People::new(),
        |instance, table, _, _| async move {
            let transaction = instance.begin();
            let start = transaction.savepoint();
            insert(&table, &transaction, 1, &person("Ada")).await.unwrap();
            transaction.rollback_to(start).await.unwrap();
            transaction.rollback_to(start).await.unwrap();
            insert(&table, &transaction, 2, &person("Grace")).await.unwrap();
            let later = transaction.savepoint();
            insert(&table, &transaction, 3, &person("Edsger")).await.unwrap();
            transaction.rollback_to(start).await.unwrap();
            insert(
                &table,
                &transaction,
                4,
                &(String::from("Barbara"), Some(vec![b'n'; 90]), Some(vec![7; 9_000])),
            )
            .await
            .unwrap();
            assert!(transaction.rollback_to(later).await.is_err(), "half a row would be left");
            let other = instance.begin();
            assert!(other.rollback_to(start).await.is_err(), "it is another transaction's");
            drop(other);
            transaction.rollback_to(start).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
            check_people(&table, &instance.begin(), &People::new(), "all taken back").await;
        },
    );
}
