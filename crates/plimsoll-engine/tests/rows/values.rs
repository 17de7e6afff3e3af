//! Values and keys as a client sees them: which index refuses, rows without a key, parts of long
//! values.

use std::ops::Bound;
use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{Column, ColumnType, NewIndex, PageSize, Table, column_flags};
use plimsoll_io::{Clock, MemoryOptions, Random};

use crate::people::*;
use crate::support::*;

/// Of several indexes the one that is violated is named, by an insert and by an update.
#[test]
fn the_violated_index_is_named() {
    let person = |name: &str| -> Person { (name.to_owned(), None, None) };
    let before = People::from([(1, person("ADA")), (2, person("GRACE"))]);
    with_people(
        1,
        Setup::default(),
        MemoryOptions::default(),
        &before,
        move |instance, table, _, _| async move {
            let transaction = instance.begin();
            let named = |error: EngineError| match error {
                EngineError::KeyDuplicate { index } => index.expect("an operation on a table"),
                other => panic!("{other}"),
            };
            let (edsger, ada) = (person("EDSGER"), person("ADA"));
            let by_key = insert(&table, &transaction, 1, &edsger).await.unwrap_err();
            assert!(by_key.to_string().contains("primary"), "{by_key}");
            assert_eq!(named(by_key), "primary");
            let by_name = insert(&table, &transaction, 3, &ada).await.unwrap_err();
            assert_eq!(named(by_name), "by name");
            let renamed = update(&table, &transaction, 2, &ada).await.unwrap_err();
            assert_eq!(named(renamed), "by name");
            transaction.commit(Commit::Lazy).await.unwrap();
        },
    );
}

fn accounts() -> Table {
    Table::builder("Accounts")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("address", ColumnType::Text))
        .column(Column::new("city", ColumnType::Text))
        .primary("primary", &["id"])
        .unique_unless_null("by address", &["address", "city"])
        .build()
        .expect("a valid table")
}

/// "A" and "A, zero, B" begin alike in a key, so that one is found under the other. New rows must
/// not have such text; of rows that have it, by an earlier version, everything else can be done.
#[test]
fn text_of_a_key_that_holds_a_zero_byte_is_refused_and_what_has_it_can_be_changed() {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    let setup = Setup::default();
    run_on(&clock, &disk, |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let table = instance.create_table(1, accounts()).await.unwrap();
        let columns = ["id", "address", "city"].map(|name| table.column(name).unwrap());
        let row = async |id: i32, address: &[u8]| {
            let transaction = instance.begin();
            let id = id.to_le_bytes();
            let values = [(columns[0], Some(&id[..])), (columns[1], Some(address))];
            let inserted = table.insert(&transaction, &values).await;
            transaction.commit(Commit::Lazy).await.unwrap();
            inserted
        };
        row(1, b"aXb").await.unwrap();
        let refused = row(3, b"a\0b").await.unwrap_err().to_string();
        assert!(refused.contains("must not hold a zero byte"), "{refused}");
        // As an earlier version wrote them.
        let transaction = instance.begin();
        for tree in [table.row_tree(), table.index_tree(1).unwrap()] {
            for (key, data) in dump(&instance, tree).await.unwrap() {
                let swap = |bytes: &[u8]| -> Vec<u8> {
                    bytes.iter().map(|byte| if *byte == b'X' { 0 } else { *byte }).collect()
                };
                transaction.delete(tree, &key).await.unwrap();
                transaction.insert(tree, &swap(&key), &swap(&data)).await.unwrap();
            }
        }
        transaction.commit(Commit::Lazy).await.unwrap();
        let key = |id: i32| table.key(&[Some(&id.to_le_bytes()[..])]).unwrap();
        let transaction = instance.begin();
        let city = [(columns[2], Some(&b"York"[..]))];
        table.update(&transaction, &key(1), &city).await.unwrap();
        let again = [(columns[1], Some(&b"c\0d"[..]))];
        let refused = table.update(&transaction, &key(1), &again).await.unwrap_err().to_string();
        assert!(refused.contains("must not hold a zero byte"), "{refused}");
        let address = [(columns[1], Some(&b"clean"[..]))];
        table.update(&transaction, &key(1), &address).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        let transaction = instance.begin();
        table.delete(&transaction, &key(1)).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Any number of rows may have no address; two may not have the same. Rows come into the index and
/// leave it.
#[test]
fn rows_without_a_key_have_no_entry() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let table = instance.create_table(1, accounts()).await.unwrap();
        let column = |name: &str| table.column(name).unwrap();
        let (address, city) = (column("address"), column("city"));
        let transaction = instance.begin();
        for id in 0..6i32 {
            let text = (id > 3).then(|| format!("STREET {id}"));
            let values = [
                (column("id"), Some(&id.to_le_bytes()[..])),
                (address, text.as_ref().map(|text| text.as_bytes())),
                (city, (id > 1).then_some(&b"PARIS"[..])),
            ];
            table.insert(&transaction, &values).await.unwrap();
        }
        let found = async || {
            let mut cursor = table.scan(&transaction, 1, KeyRange::all(), Direction::Forward);
            let mut keys = Vec::new();
            while let Some(row) = cursor.next().await.unwrap() {
                keys.push(row.key);
            }
            keys
        };
        assert_eq!(found().await, [key_of(&table, 4), key_of(&table, 5)]);
        let moved = [(address, Some(&b"STREET 5"[..]))];
        let refused = table.update(&transaction, &key_of(&table, 3), &moved).await;
        assert!(matches!(refused, Err(EngineError::KeyDuplicate { .. })), "{refused:?}");
        table.update(&transaction, &key_of(&table, 5), &[(city, None)]).await.unwrap();
        table.update(&transaction, &key_of(&table, 3), &moved).await.unwrap();
        assert_eq!(found().await, [key_of(&table, 4), key_of(&table, 3)]);
        for id in [0, 3, 5] {
            table.delete(&transaction, &key_of(&table, id)).await.unwrap();
        }
        assert_eq!(found().await, [key_of(&table, 4)]);
        let nobody = table.insert(&transaction, &[(city, Some(&b"ROME"[..]))]).await;
        assert!(
            matches!(nobody, Err(EngineError::BadRow(_))),
            "a row has its primary key: {nobody:?}"
        );
        transaction.commit(Commit::Lazy).await.unwrap();
        drop(table);
        instance.close().await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
        let table = instance.open_table(1, "Accounts").await.unwrap();
        let again = [(address, Some(&b"STREET 4"[..])), (city, Some(&b"PARIS"[..]))];
        let transaction = instance.begin();
        let refused = table.update(&transaction, &key_of(&table, 1), &again).await;
        assert!(matches!(refused, Err(EngineError::KeyDuplicate { .. })), "{refused:?}");
        drop(transaction);
        instance.close().await.unwrap();
        let report = verify_deep(&files, &handle, database_path(1), DeepOptions::default());
        let report = report.await.unwrap();
        assert!(report.is_sound(), "{:#?}", report.findings);
    })
    .unwrap();
}

/// A part of a long value is what it is of the whole, on every page size, whether the value lies in
/// its record or apart.
#[test]
fn a_part_of_a_value_is_read_alone() {
    for size in PageSize::ALL {
        let setup = Setup { size, cache_frames: 100, ..Setup::default() };
        let mut random = Random::from_seed(size.bytes() as u64);
        let mut picture = vec![0; 100_000];
        random.fill(&mut picture);
        let short = picture[..40].to_vec();
        let before = People::from([
            (1, ("ADA".to_owned(), None, Some(picture.clone()))),
            (2, ("GRACE".to_owned(), None, Some(short.clone()))),
            (3, ("EDSGER".to_owned(), None, None)),
        ]);
        with_people(
            1,
            setup,
            MemoryOptions::default(),
            &before,
            move |instance, table, _, _| async move {
                let transaction = instance.begin();
                let column = table.column("picture").unwrap();
                for (id, whole) in [(1, Some(picture)), (2, Some(short)), (3, None)] {
                    let row = table.get(&transaction, &key_of(&table, id)).await.unwrap().unwrap();
                    let length = whole.as_ref().map_or(10, Vec::len) as u64;
                    for round in 0..60 {
                        let start = random.below(length + 10) as u32;
                        let end = match round % 4 {
                            0 => start,
                            1 => start + 1,
                            2 => u32::MAX,
                            _ => start + random.below(20_000) as u32,
                        };
                        let read = table.value_range(&transaction, &row, column, start..end).await;
                        let expected = whole.as_ref().map(|whole| {
                            let end = whole.len().min(end as usize);
                            whole[end.min(start as usize)..end].to_vec()
                        });
                        assert!(read.unwrap() == expected, "{size}, row {id}: {start}..{end}");
                    }
                }
            },
        );
    }
}

/// A count is the number of rows that a scan gives, beside changes of others and of the transaction
/// itself, in every range, up to its limit.
#[test]
fn a_count_is_what_a_scan_gives() {
    let person = |id: i32| -> Person {
        (format!("NAME {id:04}"), (id % 3 > 0).then(|| vec![b'N'; 40]), None)
    };
    let before: People = (0..500).map(|id| (id, person(id))).collect();
    with_people(
        1,
        Setup::default(),
        MemoryOptions::default(),
        &before,
        move |instance, table, _, _| async move {
            let (other, mine) = (instance.begin(), instance.begin());
            for id in (100..300).filter(|id| id % 7 > 0) {
                let from = if id % 2 == 0 { &other } else { &mine };
                table.delete(from, &key_of(&table, id)).await.unwrap();
            }
            for id in 600..640 {
                let from = if id % 2 == 0 { &other } else { &mine };
                insert(&table, from, id, &person(id)).await.unwrap();
            }
            let mut random = Random::from_seed(4);
            for round in 0..90u64 {
                let (low, high) = (random.below(650) as i32, random.below(650) as i32);
                let range = match round % 3 {
                    0 => KeyRange::all(),
                    1 => KeyRange {
                        low: Bound::Included(key_of(&table, low)),
                        high: Bound::Excluded(key_of(&table, high)),
                    },
                    _ => KeyRange {
                        low: Bound::Excluded(key_of(&table, low)),
                        high: Bound::Included(key_of(&table, low.saturating_add(50))),
                    },
                };
                let index = if round % 3 == 0 { (round / 3 % 3) as usize } else { 0 };
                let limit = if random.chance(0.3) { random.below(300) } else { u64::MAX };
                let mut cursor = table.scan(&mine, index, range.clone(), Direction::Forward);
                let mut scanned = 0;
                while scanned < limit && cursor.next().await.unwrap().is_some() {
                    scanned += 1;
                }
                let counted = table.count(&mine, index, range.clone(), limit).await.unwrap();
                assert_eq!(
                    counted, scanned,
                    "round {round}: {range:?}, index {index}, limit {limit}"
                );
            }
            other.rollback().await.unwrap();
            mine.rollback().await.unwrap();
        },
    );
}

/// Columns whose values have 4 or 8 bytes, by their names.
const COUNTERS: [(&str, ColumnType); 5] = [
    ("long", ColumnType::Long),
    ("unsigned", ColumnType::UnsignedLong),
    ("large", ColumnType::LongLong),
    ("large unsigned", ColumnType::UnsignedLongLong),
    ("money", ColumnType::Currency),
];
const NO_COUNTERS: [(&str, ColumnType); 5] = [
    ("double", ColumnType::Double),
    ("single", ColumnType::Single),
    ("time", ColumnType::DateTime),
    ("short", ColumnType::Short),
    ("text", ColumnType::Text),
];

/// Tells a story on a table of counters and its one row, which is full of zeros.
fn with_counters<F: Future<Output = ()> + 'static>(
    story: impl FnOnce(Rc<Instance>, Rc<OpenTable>, Vec<u8>) -> F + 'static,
) {
    let mut table = Table::builder("Counters")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("number", ColumnType::Long).flagged(column_flags::AUTO_INCREMENT))
        .column(Column::new("spare", ColumnType::Long))
        .primary("primary", &["id"]);
    for (name, column_type) in COUNTERS.into_iter().chain(NO_COUNTERS) {
        table = table.column(Column::new(name, column_type));
    }
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        let table = instance.create_table(1, table.build().unwrap()).await.unwrap();
        let transaction = instance.begin();
        let zeros = [0; 8];
        let columns = table.placed().table.columns.iter();
        let given = columns.filter(|column| column.name != "number");
        let value = |column: &Column| &zeros[..column.column_type.fixed_bytes().unwrap_or(4)];
        let values: Vec<_> = given.map(|column| (column.id, Some(value(column)))).collect();
        let key = table.insert(&transaction, &values).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
        drop(table);
        instance.drop_column(1, "Counters", "spare").await.unwrap();
        let table = Rc::new(instance.open_table(1, "Counters").await.unwrap());
        story(instance.clone(), table, key).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// After an addition to the column that is filled from a counter, two rows of a table had one
/// number. An addition to a real number made 1.5 a little more.
#[test]
fn only_counters_are_added_to() {
    with_counters(|instance, table, key| async move {
        let transaction = instance.begin();
        let all = table.placed().table.columns.clone();
        let is_counter = |column: &Column| COUNTERS.iter().any(|(name, _)| *name == column.name);
        for column in &all {
            let added = table.add(&transaction, &key, column.id, 1).await;
            match is_counter(column) {
                true => added.unwrap(),
                false => assert!(
                    matches!(added, Err(EngineError::BadRow(_))),
                    "{}: {added:?}",
                    column.name
                ),
            }
        }
        let added = table.add(&transaction, &key, 99, 1).await;
        assert!(matches!(added, Err(EngineError::BadRow(_))), "no such column: {added:?}");
        let row = table.get(&transaction, &key).await.unwrap().unwrap();
        for column in all.iter().filter(|column| !column.is_dropped() && column.name != "text") {
            let value = table.value(&transaction, &row, column.id).await.unwrap().unwrap();
            let expected = u8::from(is_counter(column) || column.name == "number");
            assert!(value[0] == expected && value[1..].iter().all(|byte| *byte == 0));
        }
        transaction.commit(Commit::Lazy).await.unwrap();
    });
}

/// A counter that wraps around says that a folder with one message too many has less than none.
#[test]
fn a_sum_that_a_counter_cannot_hold_is_refused() {
    with_counters(|instance, table, key| async move {
        let transaction = instance.begin();
        for (name, column_type) in COUNTERS {
            let column = table.column(name).unwrap();
            let (lowest, highest): (i128, i128) = match column_type {
                ColumnType::Long => (i32::MIN.into(), i32::MAX.into()),
                ColumnType::UnsignedLong => (0, u32::MAX.into()),
                ColumnType::UnsignedLongLong => (0, u64::MAX.into()),
                _ => (i64::MIN.into(), i64::MAX.into()),
            };
            for (bound, step) in [(lowest, -1), (highest, 1)] {
                // One short of the bound, which takes up to two steps from 0.
                let mut left = bound - i128::from(step);
                while left != 0 {
                    let amount = left.clamp(i64::MIN.into(), i64::MAX.into());
                    table.add(&transaction, &key, column, amount as i64).await.unwrap();
                    left -= amount;
                }
                table.add(&transaction, &key, column, step).await.unwrap();
                for amount in [step, step * 5, step * i64::MAX] {
                    let added = table.add(&transaction, &key, column, amount).await;
                    let is_refused = matches!(added, Err(EngineError::BadRow(_)));
                    assert!(is_refused, "{name}, {amount}: {added:?}");
                }
                let row = table.get(&transaction, &key).await.unwrap().unwrap();
                let value = table.value(&transaction, &row, column).await.unwrap().unwrap();
                assert_eq!(value, bound.to_le_bytes()[..value.len()], "{name}");
                let zeros = vec![0; value.len()];
                let values = [(column, Some(&zeros[..]))];
                table.update(&transaction, &key, &values).await.unwrap();
            }
        }
        transaction.commit(Commit::Lazy).await.unwrap();
    });
}

/// What one transaction adds, another may not build on before it is committed: a rollback would
/// leave less than none.
#[test]
fn whatever_others_take_back_a_counter_holds_its_sum() {
    with_counters(|instance, table, key| async move {
        let column = table.column("unsigned").unwrap();
        let (one, other) = (instance.begin(), instance.begin());
        table.add(&one, &key, column, 10).await.unwrap();
        table.add(&other, &key, column, 3).await.unwrap();
        for (who, amount) in [(&one, -12), (&other, -5)] {
            let added = table.add(who, &key, column, amount).await;
            assert!(matches!(added, Err(EngineError::WriteConflict)), "{amount}: {added:?}");
        }
        table.add(&one, &key, column, -10).await.unwrap();
        table.add(&one, &key, column, 10).await.unwrap();
        one.commit(Commit::Lazy).await.unwrap();
        table.add(&other, &key, column, -5).await.unwrap();
        let above = instance.begin();
        let full = i64::from(u32::MAX) - 9;
        let added = table.add(&above, &key, column, full).await;
        assert!(matches!(added, Err(EngineError::WriteConflict)), "{added:?}");
        other.rollback().await.unwrap();
        let added = table.add(&above, &key, column, full).await;
        assert!(matches!(added, Err(EngineError::BadRow(_))), "{added:?}");
        table.add(&above, &key, column, full - 1).await.unwrap();
        above.commit(Commit::Lazy).await.unwrap();
    });
}

/// Why it matters: the room for a key was a fixed one of 600 bytes. Rows with longer keys were
/// refused as too large, although their long columns could lie apart.
#[test]
fn long_columns_lie_apart_where_a_long_key_leaves_them_no_room() {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        let setup = Setup { cache_frames: 256, ..Setup::default() };
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let keys = ["a", "b", "c"];
        let longs = ["u", "v", "w", "x", "y", "z"];
        let mut table = Table::builder("Files");
        for name in keys {
            table = table.column(Column::new(name, ColumnType::Binary));
        }
        for name in longs {
            table = table.column(Column::new(name, ColumnType::LongBinary));
        }
        let primary = NewIndex::primary("primary", &keys).key_bytes_max(1_000);
        let table = instance.create_table(1, table.index(primary).build().unwrap()).await.unwrap();
        let id = |name: &str| table.column(name).unwrap();
        let mut random = Random::from_seed(20_261_127);
        for number in 0..400u16 {
            let mut bytes_of = |bytes_max: u64| vec![7u8; random.below(bytes_max) as usize];
            let (mut key, values, fresh) = if number % 2 == 0 {
                (keys.map(|_| bytes_of(256)), longs.map(|_| bytes_of(1_024)), 1_024)
            } else {
                // The longest key, and a record that just needs no column of its own place.
                let last = 400 + usize::from(number);
                let lengths = [1_020, 1_020, last, 0, 0, 0];
                (keys.map(|_| vec![7; 255]), lengths.map(|length| vec![7; length]), 600)
            };
            key[0].splice(..2.min(key[0].len()), number.to_be_bytes());
            let fresh = longs.map(|_| bytes_of(fresh));
            let named = keys.into_iter().chain(longs).map(id);
            let all = key.iter().chain(&values).map(|bytes| Some(&bytes[..]));
            let row: Vec<_> = named.zip(all).collect();
            let transaction = instance.begin();
            table.insert(&transaction, &row).await.unwrap();
            let changes: Vec<_> =
                longs.into_iter().map(id).zip(fresh.iter().map(|bytes| Some(&bytes[..]))).collect();
            let key = table.key(&key.each_ref().map(|bytes| Some(&bytes[..]))).unwrap();
            table.update(&transaction, &key, &changes).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        drop(table);
        instance.close().await.unwrap();
    })
    .unwrap();
}
