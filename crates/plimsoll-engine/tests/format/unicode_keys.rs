//! Indexes over Unicode text: their order is the library's, what they hold is checked, and keys of
//! other versions are not touched.
//!
//! Why it matters: sort keys live as long as the database, and the tables they are made from do
//! not. Keys of two versions in one index lose rows.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::support::*;
use crc_fast::{CrcAlgorithm, Digest};
use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use plimsoll_engine::catalog::{PlacedTable, system};
use plimsoll_engine::deep::{DeepOptions, DeepReport, verify_deep};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::page::page_flags;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{
    Column, ColumnType, Direction, KeyError, KeyRange, KeyShape, NewIndex, PageSize, Table,
    TableBuilder, UNICODE_LOCALE, UNICODE_UNITS_MAX, UnicodeOrder,
};
use plimsoll_io::{Clock, Files, Handle, MemoryOptions};
use proptest::prelude::*;

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn names() -> TableBuilder {
    Table::builder("Names")
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("name", ColumnType::LongText).unicode())
        .column(Column::new("place", ColumnType::Text).unicode())
        .primary("primary", &["id"])
}

/// The keys of an index over name and place, as long as the format has them.
fn shape(key: &[&str]) -> KeyShape {
    let index = NewIndex::unique("ix", key).key_bytes_max(2_000);
    let table = names().index(index).build().unwrap();
    KeyShape::of(&table, &table.indexes[1]).unwrap()
}

/// The library itself, asked to compare, not for sort keys.
fn library() -> CollatorBorrowed<'static> {
    let mut options = CollatorOptions::default();
    options.strength = Some(Strength::Secondary);
    CollatorBorrowed::try_new(CollatorPreferences::default(), options).unwrap()
}

/// Text of few characters, so that many are alike: case, width, accents apart and together,
/// contractions, ignorable and astral characters.
fn text() -> impl Strategy<Value = String> {
    let near = prop::sample::select(
        "aAàa\u{300}ÀbBßsSæÆ-. \u{200D}\u{AD}かカｶがㄱ가각各𝔸𐐀ﬁfi\u{327}\u{301}łl0١９"
            .chars()
            .collect::<Vec<_>>(),
    );
    let letters = prop::collection::vec(prop_oneof![8 => near, 1 => any::<char>()], 0..12);
    letters.prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Keys compare as the library compares the texts, also in descending order and as the first of
    /// two columns.
    #[test]
    fn keys_are_in_the_order_of_the_library(
        left in (text(), text()),
        right in (text(), text()),
    ) {
        let library = library();
        let by_name = library.compare(&left.0, &right.0);
        let by_place = library.compare(&left.1, &right.1);
        let cases: [(&[&str], Ordering); 3] = [
            (&["name"], by_name),
            (&["-name"], by_name.reverse()),
            (&["name", "-place"], by_name.then(by_place.reverse())),
        ];
        for (columns, expected) in cases {
            let shape = shape(columns);
            let key = |texts: &(String, String)| {
                let values = [utf16(&texts.0), utf16(&texts.1)];
                let values: Vec<_> = values.iter().take(columns.len()).map(|value|
                    Some(&value[..])).collect();
                shape.prefix(&values).unwrap()
            };
            let (left_key, right_key) = (key(&left), key(&right));
            prop_assert!(!left_key.is_truncated);
            prop_assert_eq!(left_key.cmp(&right_key), expected, "{:?} {:?} by {:?}", left, right,
                columns);
        }
    }
}

/// A library with other tables would write keys that do not fit those in a database. Whoever sees
/// this fail raises the version in `UNICODE_LOCALE` and the sum here: databases made before are
/// then refused in words.
#[test]
fn the_keys_of_every_character_are_those_of_this_version() {
    let shape = shape(&["name"]);
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
        let key = shape.prefix(&[Some(&utf16(&character.to_string()))]).unwrap();
        digest.update(&key.bytes);
    }
    for text in [
        "",
        "straße",
        "Ångström",
        "naïve café",
        "ch",
        "coöperation",
        "ไทย",
        "한국어",
        "l·l",
        "\u{FDFA}",
    ] {
        digest.update(&shape.prefix(&[Some(&utf16(text))]).unwrap().bytes);
    }
    assert_eq!(
        (UNICODE_LOCALE, digest.finalize()),
        ("und-u-ks-level2-x-plimsoll-1", 3_061_350_299)
    );
}

/// Half a character has no place in any order.
#[test]
fn text_that_is_not_utf_16_has_no_key() {
    let shape = shape(&["name"]);
    for text in [&b"a"[..], &[0x00, 0xD8], &[0x00, 0xDC, 0x61, 0x00]] {
        assert_eq!(shape.prefix(&[Some(text)]), Err(KeyError::NotUnicode), "{text:?}");
    }
}

/// What lies behind the part of a long text that counts is cut off, and known to be, also where
/// nothing before it has a weight.
#[test]
fn of_a_very_long_text_the_beginning_counts() {
    let shape = shape(&["name"]);
    let joiners = "\u{200D}".repeat(UNICODE_UNITS_MAX);
    let key = |text: &str| shape.prefix(&[Some(&utf16(text))]).unwrap();
    assert_eq!((key(&joiners), key("").bytes), (key(""), key(&format!("{joiners}a")).bytes));
    assert!(!key(&joiners).is_truncated && key(&format!("{joiners}a")).is_truncated);
    // The cut goes through a character of two units, which then does not count.
    let astral = format!("{}𐐀", &joiners[3..]);
    assert_eq!((key(&astral).bytes, key(&astral).is_truncated), (key("").bytes, true));
}

async fn insert(instance: &Rc<Instance>, table: &OpenTable, id: i32, name: &[u8]) -> Result<()> {
    let columns = [table.column("id")?, table.column("name")?];
    let id = id.to_le_bytes();
    let transaction = instance.begin();
    let values = [(columns[0], Some(&id[..])), (columns[1], Some(name))];
    table.insert(&transaction, &values).await?;
    transaction.commit(Commit::Durable).await
}

async fn ids(instance: &Rc<Instance>, table: &OpenTable, index: usize) -> Vec<i32> {
    let transaction = instance.begin();
    let id = table.column("id").unwrap();
    let mut scan = table.scan(&transaction, index, KeyRange::all(), Direction::Forward);
    let mut found = Vec::new();
    while let Some(row) = scan.next().await.unwrap() {
        let value = table.value(&transaction, &row, id).await.unwrap().unwrap();
        found.push(i32::from_le_bytes(value.try_into().unwrap()));
    }
    found
}

async fn deep(files: &Files, handle: &Handle) -> DeepReport {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default());
    report.await.unwrap()
}

/// Runs a story in a database with a table of names; `index` is over the names.
fn story<F>(
    size: PageSize,
    index: NewIndex,
    rows: &'static [&'static str],
    tell: impl FnOnce(Files, Handle, Setup) -> F + 'static,
) where
    F: Future<Output = ()> + 'static,
{
    let setup = Setup { size, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let table = names().index(index).build().unwrap();
        let table = instance.create_table(1, table).await.unwrap();
        for (id, name) in (0..).zip(rows) {
            insert(&instance, &table, id, &utf16(name)).await.unwrap();
        }
        drop(table);
        instance.close().await.unwrap();
        tell(files, handle, setup).await;
    })
    .unwrap();
}

const ROWS: &[&str] =
    &["Zoë", "zebra", "éclair", "Eclipse", "eclair", "", "Ångström", "apple", "öl", "Österreich"];
/// In the order of the library.
const SORTED: [i32; 10] = [5, 6, 7, 4, 2, 3, 8, 9, 1, 0];

/// Rows are found in the order of the library after inserts, updates, deletes and a restart, and a
/// deep check counts the entries.
#[test]
fn an_index_over_unicode_text_is_kept_and_checked() {
    for size in PageSize::ALL {
        story(
            size,
            NewIndex::duplicates("by name", &["name"]),
            ROWS,
            |files, handle, setup| async move {
                let report = deep(&files, &handle).await;
                assert!(report.is_sound() && report.unchecked.is_empty(), "{report:#?}");
                let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
                let table = instance.open_table(1, "Names").await.unwrap();
                assert_eq!(ids(&instance, &table, 1).await, SORTED);
                // Neither case nor a letter's form counts, accents do.
                let transaction = instance.begin();
                let prefix = table.index_prefix(1, &[Some(&utf16("E\u{301}CLAIR"))]).unwrap();
                let mut scan =
                    table.scan(&transaction, 1, KeyRange::prefix(&prefix), Direction::Forward);
                let row = scan.next().await.unwrap().expect("one is called so");
                assert_eq!(row.key, table.key(&[Some(&2i32.to_le_bytes())]).unwrap());
                assert!(scan.next().await.unwrap().is_none());
                drop(scan);
                let key = |id: i32| table.key(&[Some(&id.to_le_bytes())]).unwrap();
                let name = table.column("name").unwrap();
                let changed = utf16("Æon");
                table.update(&transaction, &key(0), &[(name, Some(&changed))]).await.unwrap();
                table.delete(&transaction, &key(8)).await.unwrap();
                transaction.commit(Commit::Durable).await.unwrap();
                assert_eq!(ids(&instance, &table, 1).await, [5, 0, 6, 7, 4, 2, 3, 9, 1]);
                drop(table);
                instance.close().await.unwrap();
                let report = deep(&files, &handle).await;
                assert!(report.is_sound() && report.unchecked.is_empty(), "{report:#?}");
            },
        );
    }
}

/// A unique index takes no two names that compare equal, and says which index it was.
#[test]
fn names_that_compare_equal_are_duplicates() {
    story(
        PageSize::KIB_4,
        NewIndex::unique("by name", &["name"]),
        ROWS,
        |files, handle, setup| async move {
            let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
            let table = instance.open_table(1, "Names").await.unwrap();
            for name in ["ZEBRA", "ｚｅｂｒａ", "A\u{30A}ngstro\u{308}m", "\u{AD}zebra"] {
                let refused = insert(&instance, &table, 100, &utf16(name)).await;
                let named = matches!(&refused, Err(EngineError::KeyDuplicate {
                    index: Some(index) }) if index == "by name");
                assert!(named, "{name}: {refused:?}");
            }
            let refused = insert(&instance, &table, 100, b"odd").await;
            assert!(
                matches!(&refused, Err(EngineError::BadRow(why)) if why.contains("UTF-16")),
                "{refused:?}"
            );
            insert(&instance, &table, 100, &utf16("zébra")).await.unwrap();
            drop(table);
            instance.close().await.unwrap();
        },
    );
}

/// Keys of long names are cut at what the index allows, apart from the record or in it, or refused
/// where the index says so.
#[test]
fn keys_of_long_names_are_cut_or_refused() {
    story(
        PageSize::KIB_8,
        NewIndex::unique("by name", &["name"]),
        &[],
        |files, handle, setup| async move {
            let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
            let table = instance.open_table(1, "Names").await.unwrap();
            let name = |letters: usize, end: &str| utf16(&format!("{}{end}", "ö".repeat(letters)));
            insert(&instance, &table, 1, &name(100, "b")).await.unwrap();
            insert(&instance, &table, 2, &name(100, "a")).await.unwrap();
            insert(&instance, &table, 3, &name(20_000, "b")).await.unwrap();
            let same = insert(&instance, &table, 4, &name(20_000, "a")).await;
            assert!(matches!(same, Err(EngineError::KeyDuplicate { .. })), "{same:?}");
            assert_eq!(ids(&instance, &table, 1).await, [2, 1, 3]);
            drop(table);
            let strict = NewIndex::unique("strict", &["name"]).refuse_truncation();
            let refused = instance.add_index(1, "Names", strict).await;
            assert!(
                matches!(&refused, Err(EngineError::BadRow(why)) if why.contains("255 bytes")),
                "{refused:?}"
            );
            instance.close().await.unwrap();
        },
    );
}

async fn placed(files: &Files, handle: &Handle) -> PlacedTable {
    use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
    let reader = DatabaseReader::open(files, handle, database_path(1), WhenDirty::Refuse);
    let reader = reader.await.unwrap();
    let placed = reader.table("Names").unwrap().clone();
    reader.close().await.unwrap();
    placed
}

/// An entry that is gone from the index, or too many, is a finding: the index is compared, not
/// believed.
#[test]
fn an_entry_that_is_missing_is_found() {
    story(
        PageSize::KIB_4,
        NewIndex::duplicates("by name", &["name"]),
        ROWS,
        |files, handle, setup| async move {
            let place = placed(&files, &handle).await.indexes[1].place;
            let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
            let tree = plimsoll_engine::btree::Tree {
                kind: page_flags::INDEX,
                ..tree_of(1, place.root, place.object)
            };
            let entries = dump(&instance, tree).await.unwrap();
            let transaction = instance.begin();
            transaction.delete(tree, entries.keys().nth(3).unwrap()).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            instance.close().await.unwrap();
            assert!(!deep(&files, &handle).await.is_sound());
        },
    );
}

/// An index of another version of the keys is neither judged nor changed, and the way out is to
/// make it again.
#[test]
fn an_index_of_another_version_is_refused_until_it_is_made_again() {
    story(
        PageSize::KIB_32,
        NewIndex::unique("by name", &["name"]),
        ROWS,
        |files, handle, setup| async move {
            let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
            let (ours, theirs) = (utf16(UNICODE_LOCALE), utf16("und-u-ks-level2-x-plimsoll-9"));
            let transaction = instance.begin();
            for (root, object) in [
                (system::CATALOG_ROOT, system::CATALOG_OBJECT),
                (system::SHADOW_ROOT, system::SHADOW_OBJECT),
            ] {
                let tree = tree_of(1, root, object);
                for (key, mut record) in dump(&instance, tree).await.unwrap() {
                    if let Some(at) = record.windows(ours.len()).position(|bytes| bytes == ours) {
                        record[at..at + theirs.len()].copy_from_slice(&theirs);
                        transaction.replace(tree, &key, &record).await.unwrap();
                    }
                }
            }
            transaction.commit(Commit::Durable).await.unwrap();
            instance.close().await.unwrap();

            let report = deep(&files, &handle).await;
            assert!(report.is_sound(), "{report:#?}");
            assert!(
                report.unchecked[0].to_string().contains("plimsoll-9"),
                "{:?}",
                report.unchecked
            );
            assert_eq!(
                placed(&files, &handle).await.table.indexes[1].unicode_order,
                UnicodeOrder::Unknown
            );
            let (instance, _) = open(&files, &handle, &setup, 3).await.unwrap();
            let refused = instance.open_table(1, "Names").await.map(drop);
            let why = refused.unwrap_err().to_string();
            for said in [
                "by name",
                "Names",
                "plimsoll-9",
                UNICODE_LOCALE,
                "drop the index and add it again",
            ] {
                assert!(why.contains(said), "{said}: {why}");
            }
            instance.drop_index(1, "Names", "by name").await.unwrap();
            let again = NewIndex::unique("by name", &["name"]);
            instance.add_index(1, "Names", again).await.unwrap();
            let table = instance.open_table(1, "Names").await.unwrap();
            assert_eq!(ids(&instance, &table, 1).await, SORTED);
            drop(table);
            instance.close().await.unwrap();
            let report = deep(&files, &handle).await;
            assert!(report.is_sound() && report.unchecked.is_empty(), "{report:#?}");
        },
    );
}
