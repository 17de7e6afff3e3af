//! Long values that several rows refer to: there as long as one of them is, counted as they are.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{
    Clock, Files, Handle, Loss, MemoryDisk, MemoryOptions, NANOS_PER_MILLISECOND, Random,
};

use crate::support::*;

const ROWS: u64 = 12;

fn long(letter: u8) -> Vec<u8> {
    vec![b'A' + letter % 26; 6_000 + usize::from(letter)]
}

async fn insert(table: &OpenTable, transaction: &Transaction, id: i32, body: &[u8]) -> Result<()> {
    let (id_column, body_column) = (table.column("id")?, table.column("body")?);
    let id = id.to_le_bytes();
    let values = [(id_column, Some(&id[..])), (body_column, Some(body))];
    table.insert(transaction, &values).await.map(drop)
}

async fn share(table: &OpenTable, transaction: &Transaction, from: i32, to: i32) -> Result<()> {
    let body = table.column("body")?;
    let from = table.key(&[Some(&from.to_le_bytes())])?;
    let to = table.key(&[Some(&to.to_le_bytes())])?;
    let row = table.get(transaction, &from).await?.ok_or(EngineError::RowNotFound)?;
    table.share_value(transaction, (&row, body), &to, body).await
}

async fn read_all(instance: &Instance, table: &OpenTable) -> BTreeMap<i32, Vec<u8>> {
    let transaction = instance.begin();
    let columns = [table.column("id").unwrap(), table.column("body").unwrap()];
    let mut scan = table.scan(&transaction, 0, KeyRange::all(), Direction::Forward);
    let mut found = BTreeMap::new();
    while let Some(row) = scan.next().await.unwrap() {
        let id = table.value(&transaction, &row, columns[0]).await.unwrap().unwrap();
        let body = table.value(&transaction, &row, columns[1]).await.unwrap().unwrap();
        found.insert(i32::from_le_bytes(id.try_into().unwrap()), body);
    }
    found
}

async fn check_file(files: &Files, handle: &Handle, long_values: Option<u64>) {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default());
    let report = report.await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
    if let Some(expected) = long_values {
        assert_eq!(report.long_values, expected, "long values");
    }
}

fn with_table<F: Future<Output = ()> + 'static>(
    seed: u64,
    long_values: u64,
    work: impl FnOnce(Rc<Instance>, Rc<OpenTable>) -> F + 'static,
) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let table = instance.create_table(1, message_table("Messages")).await.unwrap();
        work(instance.clone(), Rc::new(table)).await;
        instance.close().await.unwrap();
        check_file(&files, &handle, Some(long_values)).await;
    })
    .unwrap();
}

/// Two rows, one value: written once, there until the second row lets go of it.
#[test]
fn a_shared_value_goes_with_the_last_row_that_refers_to_it() {
    with_table(1, 1, |instance, table| async move {
        let transaction = instance.begin();
        insert(&table, &transaction, 1, &long(1)).await.unwrap();
        insert(&table, &transaction, 2, b"short").await.unwrap();
        insert(&table, &transaction, 3, &long(3)).await.unwrap();
        share(&table, &transaction, 1, 2).await.unwrap();
        share(&table, &transaction, 1, 3).await.unwrap();
        share(&table, &transaction, 2, 2).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let one = (1..4).map(|id| (id, long(1))).collect::<BTreeMap<_, _>>();
        assert_eq!(read_all(&instance, &table).await, one);

        let transaction = instance.begin();
        let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
        table.delete(&transaction, &key(1)).await.unwrap();
        let body = table.column("body").unwrap();
        let values = [(body, Some(&b"its own"[..]))];
        table.update(&transaction, &key(3), &values).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let found = read_all(&instance, &table).await;
        assert_eq!(found, BTreeMap::from([(2, long(1)), (3, b"its own".to_vec())]));
    });
    with_table(2, 0, |instance, table| async move {
        let transaction = instance.begin();
        insert(&table, &transaction, 1, &long(1)).await.unwrap();
        insert(&table, &transaction, 2, b"short").await.unwrap();
        share(&table, &transaction, 1, 2).await.unwrap();
        let savepoint = transaction.savepoint();
        let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
        table.delete(&transaction, &key(2)).await.unwrap();
        table.delete(&transaction, &key(1)).await.unwrap();
        transaction.rollback_to(savepoint).await.unwrap();
        share(&table, &transaction, 2, 1).await.unwrap();
        table.delete(&transaction, &key(1)).await.unwrap();
        table.delete(&transaction, &key(2)).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
    });
}

/// Each of two transactions lets one of the two rows go. If both counted one other row, nobody
/// would delete the value.
#[test]
fn two_that_let_go_at_once_do_not_both_leave_it_to_the_other() {
    with_table(3, 0, |instance, table| async move {
        let transaction = instance.begin();
        insert(&table, &transaction, 1, &long(1)).await.unwrap();
        insert(&table, &transaction, 2, b"short").await.unwrap();
        share(&table, &transaction, 1, 2).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
        let (first, second) = (instance.begin(), instance.begin());
        table.delete(&first, &key(1)).await.unwrap();
        let conflict = table.delete(&second, &key(2)).await;
        assert!(matches!(conflict, Err(EngineError::WriteConflict)), "{conflict:?}");
        first.commit(Commit::Durable).await.unwrap();
        second.rollback().await.unwrap();
        let again = instance.begin();
        table.delete(&again, &key(2)).await.unwrap();
        again.commit(Commit::Durable).await.unwrap();
    });
}

/// What committed transactions have left, one after the other, and how many of them a caller knows
/// to be durable.
#[derive(Default)]
struct Books {
    states: Vec<BTreeMap<i32, Vec<u8>>>,
    durable: usize,
}

impl Books {
    /// The rows must be those of a commit, and of none before the last durable one.
    fn go_on_from(&mut self, found: &BTreeMap<i32, Vec<u8>>, label: &str) {
        let last = self.states.iter().rposition(|state| state == found);
        let survived = last.map_or(0, |last| last + 1);
        let is_known = last.is_some() || found.is_empty();
        assert!(survived >= self.durable && is_known, "{label}: the rows of no commit");
        self.states.truncate(survived);
        self.durable = survived;
    }
}

/// Random rows that come, go, and share; the state after each commit is noted before it can be
/// durable.
async fn live(instance: Rc<Instance>, mut random: Random, books: Rc<RefCell<Books>>) -> Result<()> {
    let table = instance.open_table(1, "Messages").await?;
    loop {
        let mut state = books.borrow().states.last().cloned().unwrap_or_default();
        let transaction = instance.begin();
        for _ in 0..1 + random.below(4) {
            let (id, other) = (random.below(ROWS) as i32, random.below(ROWS) as i32);
            let key = table.key(&[Some(&id.to_le_bytes())])?;
            let content = long(random.below(26) as u8);
            match (random.below(4), state.contains_key(&id)) {
                (0, true) => {
                    table.delete(&transaction, &key).await?;
                    state.remove(&id);
                }
                (1, true) => {
                    let values = [(table.column("body")?, Some(&content[..]))];
                    table.update(&transaction, &key, &values).await?;
                    state.insert(id, content);
                }
                (_, true) => {
                    if let Some(shared) = state.get(&other).cloned() {
                        share(&table, &transaction, other, id).await?;
                        state.insert(id, shared);
                    }
                }
                (_, false) => {
                    insert(&table, &transaction, id, &content).await?;
                    state.insert(id, content);
                }
            }
        }
        if random.chance(0.2) {
            transaction.rollback().await?;
            continue;
        }
        books.borrow_mut().states.push(state);
        let is_durable = random.chance(0.5);
        let how = if is_durable { Commit::Durable } else { Commit::Lazy };
        transaction.commit(how).await?;
        if is_durable {
            let mut books = books.borrow_mut();
            books.durable = books.states.len();
        }
    }
}

/// Power cuts, one life after the other: rows are those of a commit, and every count is right.
#[test]
fn counts_are_right_after_every_power_cut() {
    for seed in 0..12 {
        let clock = Rc::new(Clock::simulated());
        let mut disk: Rc<MemoryDisk> = new_disk(&clock, seed, MemoryOptions::default());
        run_on(&clock, &disk.clone(), |files, handle| async move {
            let setup = Setup::default();
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
            let made = instance.create_table(1, message_table("Messages")).await;
            drop(made.unwrap());
            instance.close().await.unwrap();
        })
        .unwrap();
        let books = Rc::new(RefCell::new(Books::default()));
        for round in 0..3 {
            let number = seed * 10 + round;
            disk.power_cut_at_event(disk.events() + 60 + number * 37 % 500);
            let noting = books.clone();
            run_until_power_lost(&disk, move |files, handle| async move {
                let opened = open(&files, &handle, &Setup::default(), number).await;
                let Ok((instance, _)) = opened else { return };
                let random = Random::from_seed(number);
                drop(handle.spawn(async move {
                    let ended = live(instance, random, noting).await;
                    ended.expect_err("it goes on for as long as there is power");
                }));
                handle.sleep(400 * NANOS_PER_MILLISECOND).await;
            });
            disk.power_cut();
            let loss = [Loss::Everything, Loss::Drawn][(round % 2) as usize];
            disk = disk.crash_image(loss, &mut Random::from_seed(number));
            let checking = books.clone();
            run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
                let setup = Setup::default();
                let (instance, _) = open(&files, &handle, &setup, number + 7).await.unwrap();
                let table = instance.open_table(1, "Messages").await.unwrap();
                let found = read_all(&instance, &table).await;
                checking.borrow_mut().go_on_from(&found, &format!("seed {seed}, round {round}"));
                drop(table);
                instance.close().await.unwrap();
                check_file(&files, &handle, None).await;
            })
            .unwrap();
        }
        assert!(books.borrow().states.len() > 2, "seed {seed}: hardly a commit");
    }
}

/// A caller that stops waiting leaves a count that is right.
#[test]
fn sharing_may_be_dropped_at_each_of_its_waits() {
    for polls in 0..30 {
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, polls, MemoryOptions::default());
        run_on(&clock, &disk, move |files, handle| async move {
            let setup = Setup { cache_frames: 64, ..Setup::default() };
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
            let table = instance.create_table(1, message_table("Messages")).await.unwrap();
            for id in 0..40 {
                let transaction = instance.begin();
                insert(&table, &transaction, id, &long(id as u8)).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
            }
            let transaction = instance.begin();
            let shared = give_up_after(polls, share(&table, &transaction, 3, 38)).await;
            let ended = transaction.commit(Commit::Durable).await;
            let expected = if shared.is_some() && ended.is_ok() { long(3) } else { long(38) };
            let found = read_all(&instance, &table).await.remove(&38).unwrap();
            assert!(found == expected || shared.is_none() && found == long(38), "poll {polls}");
            drop(table);
            instance.close().await.unwrap();
            check_file(&files, &handle, None).await;
        })
        .unwrap();
    }
}

/// Of a column that is named twice the old value was let go of twice, and with it that of another
/// row.
#[test]
fn a_column_given_twice_lets_nothing_go_twice() {
    with_table(41, 1, |instance, table| async move {
        let transaction = instance.begin();
        insert(&table, &transaction, 1, &long(1)).await.unwrap();
        insert(&table, &transaction, 2, b"short").await.unwrap();
        share(&table, &transaction, 1, 2).await.unwrap();
        let (key, body) =
            (table.key(&[Some(&1i32.to_le_bytes())]).unwrap(), table.column("body").unwrap());
        let twice = [(body, Some(&b"one"[..])), (body, Some(&b"two"[..]))];
        let refused = table.update(&transaction, &key, &twice).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        let refused = table.insert(&transaction, &twice).await;
        assert!(matches!(refused, Err(EngineError::BadRow(_))), "{refused:?}");
        table.update(&transaction, &key, &twice[1..]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let found = read_all(&instance, &table).await;
        assert_eq!(found, BTreeMap::from([(1, b"two".to_vec()), (2, long(1))]));
    });
}

/// The number of a long value says something in its own table and transaction only. In another
/// table it leads to another value, and a value that another transaction takes back is none.
#[test]
fn long_values_of_strangers_are_refused() {
    with_table(42, 1, |instance, table| async move {
        let other = instance.create_table(1, message_table("Others")).await.unwrap();
        let transaction = instance.begin();
        insert(&table, &transaction, 1, &long(1)).await.unwrap();
        insert(&table, &transaction, 2, b"short").await.unwrap();
        insert(&other, &transaction, 1, b"short").await.unwrap();
        insert(&other, &transaction, 2, &long(2)).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
        let body = table.column("body").unwrap();
        let is_refused = |result: Result<()>| {
            assert!(matches!(result, Err(EngineError::BadRow(_))), "{result:?}");
        };

        let transaction = instance.begin();
        // Row 2 of the other table: the first long value there.
        let row = other.get(&transaction, &key(2)).await.unwrap().unwrap();
        is_refused(table.share_value(&transaction, (&row, body), &key(2), body).await);
        transaction.commit(Commit::Durable).await.unwrap();

        let (first, second) = (instance.begin(), instance.begin());
        let mut value = table.write_long_value(&first).await.unwrap();
        value.write(&long(3)).await.unwrap();
        is_refused(table.attach_long_value(&second, &key(2), body, value).await);
        first.rollback().await.unwrap();
        second.commit(Commit::Durable).await.unwrap();

        let transaction = instance.begin();
        let mut value = other.write_long_value(&transaction).await.unwrap();
        value.write(&long(3)).await.unwrap();
        is_refused(table.attach_long_value(&transaction, &key(2), body, value).await);
        transaction.rollback().await.unwrap();
        let found = read_all(&instance, &table).await;
        assert_eq!(found, BTreeMap::from([(1, long(1)), (2, b"short".to_vec())]));
        drop(other);
        instance.drop_table(1, "Others").await.unwrap();
    });
}
