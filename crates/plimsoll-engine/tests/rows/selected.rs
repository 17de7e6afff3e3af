//! Reading some columns of some rows: the same as a scan gives, with fewer pages.

use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::{OpenTable, SelectedRow, Selection};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{Clock, MemoryOptions, Random};

use crate::support::*;

const ROWS: i32 = 300;

async fn put(table: &OpenTable, transaction: &Transaction, id: i32, random: &mut Random) {
    let [id_column, folder, body] =
        ["id", "folder", "body"].map(|name| table.column(name).unwrap());
    let (number, in_folder) = (id.to_le_bytes(), (random.below(12) as i32).to_le_bytes());
    let bytes = if random.chance(0.1) { 5_000 } else { 10 + random.below(300) };
    let content = vec![b'A' + random.below(26) as u8; bytes as usize];
    let mut values = vec![(id_column, Some(&number[..])), (body, Some(&content[..]))];
    if random.chance(0.8) {
        values.push((folder, Some(&in_folder[..])));
    }
    let key = table.key(&[Some(&number)]).unwrap();
    if table.get(transaction, &key).await.unwrap().is_some() {
        table.update(transaction, &key, &values[1..]).await.unwrap();
    } else {
        table.insert(transaction, &values).await.unwrap();
    }
}

/// What a scan and a look at each column give.
async fn by_scan(
    table: &OpenTable,
    transaction: &Transaction,
    (index, range, direction): (usize, &KeyRange, Direction),
) -> Vec<SelectedRow> {
    let columns = ["body", "id", "folder"].map(|name| table.column(name).unwrap());
    let mut scan = table.scan(transaction, index, range.clone(), direction);
    let mut rows = Vec::new();
    while let Some(row) = scan.next().await.unwrap() {
        let mut values = Vec::new();
        for column in columns {
            values.push(table.value(transaction, &row, column).await.unwrap());
        }
        rows.push(SelectedRow { key: row.key, values });
    }
    rows
}

fn selection(table: &OpenTable, index: usize, range: &KeyRange, direction: Direction) -> Selection {
    let columns = ["body", "id", "folder"].map(|name| table.column(name).unwrap());
    let selection = Selection::of(&columns).through(index).within(range.clone());
    match direction {
        Direction::Forward => selection,
        Direction::Backward => selection.backward(),
    }
}

async fn by_selection(
    table: &OpenTable,
    transaction: &Transaction,
    selection: Selection,
) -> Vec<SelectedRow> {
    let mut selected = table.select(transaction, selection);
    let mut rows = Vec::new();
    while let Some(row) = selected.next().await.unwrap() {
        rows.push(row);
    }
    rows
}

fn random_range(table: &OpenTable, index: usize, random: &mut Random) -> KeyRange {
    let mut bound = || {
        let value = (random.below(if index == 0 { ROWS as u64 } else { 12 }) as i32).to_le_bytes();
        let key = table.index_prefix(index, &[Some(&value)]).unwrap();
        match random.below(3) {
            0 => std::ops::Bound::Unbounded,
            1 => std::ops::Bound::Included(key),
            _ => std::ops::Bound::Excluded(key),
        }
    };
    let (low, high) = (bound(), bound());
    KeyRange { low, high }
}

/// Compares in one transaction, with whatever it and others have changed.
async fn compare(table: &OpenTable, transaction: &Transaction, random: &mut Random, label: &str) {
    for _ in 0..6 {
        let index = random.below(2) as usize;
        let range = random_range(table, index, random);
        for direction in [Direction::Forward, Direction::Backward] {
            let expected = by_scan(table, transaction, (index, &range, direction)).await;
            let wanted = selection(table, index, &range, direction);
            let found = by_selection(table, transaction, wanted.clone()).await;
            assert!(found == expected, "{label}: index {index}, {range:?}, {direction:?}");
            let few = random.below(40) as usize;
            let found = by_selection(table, transaction, wanted.clone().limit(few as u64)).await;
            assert!(found == expected[..few.min(expected.len())], "{label}: {few} rows");
            check_seek(table, transaction, wanted, &expected, random).await;
        }
    }
}

/// From any row on, the rows are those that follow it.
async fn check_seek(
    table: &OpenTable,
    transaction: &Transaction,
    wanted: Selection,
    expected: &[SelectedRow],
    random: &mut Random,
) {
    let mut selected = table.select(transaction, wanted.clone());
    for _ in 0..4 {
        if expected.is_empty() {
            return;
        }
        let at = random.below(expected.len() as u64) as usize;
        let values = &expected[at].values;
        let place = if wanted.clone().through(0) == wanted {
            expected[at].key.clone()
        } else {
            table.index_prefix(1, &[values[2].as_deref(), values[1].as_deref()]).unwrap()
        };
        selected.seek(&place);
        for row in expected[at..].iter().take(3) {
            assert_eq!(selected.next().await.unwrap().as_ref(), Some(row));
        }
    }
}

fn with_rows<F: Future<Output = ()> + 'static>(
    seed: u64,
    work: impl FnOnce(Rc<Instance>, Rc<OpenTable>, Random) -> F + 'static,
) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        let setup = Setup { cache_frames: 200, ..Setup::default() };
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let made = instance.create_table(1, message_table("Messages")).await;
        let table = Rc::new(made.unwrap());
        let mut random = Random::from_seed(seed);
        for id in 0..ROWS {
            let transaction = instance.begin();
            put(&table, &transaction, id, &mut random).await;
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        work(instance.clone(), table, random).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Why it matters: whoever asks for two columns of ten rows must get what a full scan would have
/// given, also from an old snapshot.
#[test]
fn a_selection_gives_what_a_scan_gives() {
    for seed in 0..4 {
        with_rows(seed, move |instance, table, mut random| async move {
            let old = instance.begin();
            compare(&table, &old, &mut random, "at first").await;
            let own = instance.begin();
            for _ in 0..120 {
                let id = random.below(ROWS as u64 + 40) as i32;
                let transaction = instance.begin();
                let key = table.key(&[Some(&id.to_le_bytes())]).unwrap();
                if random.chance(0.5) {
                    let _ = table.delete(&transaction, &key).await;
                } else {
                    put(&table, &transaction, id, &mut random).await;
                }
                transaction.commit(Commit::Lazy).await.unwrap();
            }
            compare(&table, &old, &mut random, "from an old snapshot").await;
            compare(&table, &instance.begin(), &mut random, "afterwards").await;
            old.rollback().await.unwrap();
            own.rollback().await.unwrap();
            let own = instance.begin();
            let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
            put(&table, &own, 1_000, &mut random).await;
            let _ = table.delete(&own, &key(5)).await;
            compare(&table, &own, &mut random, "with changes of its own").await;
            own.rollback().await.unwrap();
        });
    }
}

/// A row that the transaction itself puts or deletes ahead of where it reads is met, or is not.
#[test]
fn a_selection_meets_the_changes_of_its_own_transaction() {
    with_rows(9, |instance, table, mut random| async move {
        let transaction = instance.begin();
        let all = KeyRange::all();
        let mut selected =
            table.select(&transaction, selection(&table, 0, &all, Direction::Forward));
        let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
        assert_eq!(selected.next().await.unwrap().unwrap().key, key(0));
        table.delete(&transaction, &key(1)).await.unwrap();
        put(&table, &transaction, -7, &mut random).await;
        assert_eq!(selected.next().await.unwrap().unwrap().key, key(2));
        put(&table, &transaction, 1, &mut random).await;
        assert_eq!(selected.next().await.unwrap().unwrap().key, key(3));
        selected.seek(&key(-100));
        for id in [-7, 0, 1, 2] {
            assert_eq!(selected.next().await.unwrap().unwrap().key, key(id));
        }
        drop(selected);
        let columns = [table.column("folder").unwrap(), table.column("id").unwrap()];
        let read = table.get_columns(&transaction, &key(-7), &columns).await.unwrap();
        assert_eq!(read.unwrap()[1].as_deref(), Some(&(-7i32).to_le_bytes()[..]));
        let absent = table.get_columns(&transaction, &key(-8), &columns).await.unwrap();
        assert_eq!(absent, None);
        transaction.rollback().await.unwrap();
    });
}

/// Reading began at the first row of all, not of the range, where the transaction had changed
/// anything before.
#[test]
fn a_selection_stays_within_its_range_whatever_its_transaction_changes_before() {
    with_rows(10, |instance, table, mut random| async move {
        let transaction = instance.begin();
        let folder = table.index_prefix(1, &[Some(&3i32.to_le_bytes())]).unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            let range = KeyRange::prefix(&folder);
            let expected = by_scan(&table, &transaction, (1, &range, direction)).await;
            assert!(!expected.is_empty());
            let mut selected = table.select(&transaction, selection(&table, 1, &range, direction));
            let key = table.key(&[Some(&2_000i32.to_le_bytes())]).unwrap();
            put(&table, &transaction, 2_000, &mut random).await;
            table.delete(&transaction, &key).await.unwrap();
            let mut found = Vec::new();
            while let Some(row) = selected.next().await.unwrap() {
                found.push(row);
            }
            assert!(found == expected, "{direction:?}");
        }
        transaction.rollback().await.unwrap();
    });
}

/// At every row, and before the first one: what is next is the first row of what a scan gives of
/// the rest of the range.
#[test]
fn selections_and_scans_agree_while_their_transaction_changes_rows() {
    for seed in first_seed(20)..first_seed(22) {
        with_rows(seed, move |instance, table, mut random| async move {
            for direction in [Direction::Forward, Direction::Backward].into_iter().cycle().take(16)
            {
                let transaction = instance.begin();
                let index = random.below(2) as usize;
                let mut ahead = random_range(&table, index, &mut random);
                let wanted = selection(&table, index, &ahead, direction);
                let mut selected = table.select(&transaction, wanted);
                for _ in 0..25 {
                    for _ in 0..random.below(3) {
                        let id = random.below(ROWS as u64 + 40) as i32;
                        let key = table.key(&[Some(&id.to_le_bytes())]).unwrap();
                        if random.chance(0.5) {
                            let _ = table.delete(&transaction, &key).await;
                        } else {
                            put(&table, &transaction, id, &mut random).await;
                        }
                    }
                    let mut rest = by_scan(&table, &transaction, (index, &ahead, direction)).await;
                    rest.truncate(1);
                    let found = selected.next().await.unwrap();
                    assert!(found == rest.pop(), "seed {seed}: {index}, {ahead:?}, {direction:?}");
                    let Some(row) = found else { continue };
                    let place = match index {
                        0 => row.key,
                        _ => {
                            let values = [row.values[2].as_deref(), row.values[1].as_deref()];
                            table.index_prefix(1, &values).unwrap()
                        }
                    };
                    match direction {
                        Direction::Forward => ahead.low = std::ops::Bound::Excluded(place),
                        Direction::Backward => ahead.high = std::ops::Bound::Excluded(place),
                    }
                }
                drop(selected);
                transaction.rollback().await.unwrap();
            }
        });
    }
}

/// Long values are read only for who asks for them, and a limit ends the reading.
#[test]
fn what_is_not_asked_for_is_not_read() {
    with_rows(4, |instance, table, _| async move {
        let columns = [table.column("id").unwrap()];
        let transaction = instance.begin();
        let hits = || {
            let statistics = instance.store().cache.statistics();
            statistics.hits + statistics.misses
        };
        let before = hits();
        by_selection(&table, &transaction, Selection::of(&columns).limit(5)).await;
        let few = hits() - before;
        assert!(few <= 6, "{few} pages were looked at for five rows");
        let before = hits();
        by_selection(&table, &transaction, Selection::of(&columns)).await;
        let narrow = hits() - before;
        let all = [columns[0], table.column("body").unwrap()];
        let before = hits();
        by_selection(&table, &transaction, Selection::of(&all)).await;
        let wide = hits() - before;
        assert!(narrow * 2 < wide, "{narrow} pages for one column, {wide} for all");
        transaction.rollback().await.unwrap();
    });
}
