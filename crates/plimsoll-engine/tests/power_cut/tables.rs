//! The sessions of worlds with a table: rows with indexes, subjects in Unicode whose keys are cut,
//! numbers from a counter, and bodies that are long values more often than not, some of them shared
//! by rows.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::{Place, system};
use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{
    DeepOptions, DeepReport, Finding, KnownTree, verify_deep, verify_trees,
};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::{OpenTable, Selection, StoredRow};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_engine::{Column, ColumnId, ColumnType, Table, TableBuilder, column_flags};
use plimsoll_io::{Files, Handle, Random};

use crate::sizes::Rows;
use crate::support::*;

/// Rows of a large table, and bytes of its longest bodies.
pub const ROWS: u64 = 90;
pub const BODY_BYTES_MAX: u64 = 15_000;

/// Makes the table; the field has no trees but that of the serial numbers. Also the root of the
/// long values.
pub async fn create(instance: &Rc<Instance>, rows: Rows) -> Result<(Field, u32)> {
    let serials = instance.create_tree(1, 1, 50, 0, 3).await?;
    let table = instance.create_table(1, letter_table()).await?;
    let root = table.placed().long_values.map_or(0, |place| place.root);
    let field = Field {
        serials,
        data: Vec::new(),
        keys: rows.keys,
        row_bytes_max: rows.bytes_max,
        prefix_bytes: 0,
        keys_per_prefix: 0,
    };
    Ok((field, root))
}

pub async fn open(instance: &Instance) -> Result<OpenTable> {
    instance.open_table(1, "Messages").await
}

/// A table in which all that a table can do is done: messages with a number from a counter, and
/// subjects in Unicode whose keys are cut.
fn letter_table() -> Table {
    let messages = message_table("Messages");
    let columns = messages.columns.into_iter();
    let builder = columns.fold(Table::builder("Messages"), TableBuilder::column);
    builder
        .column(Column::new("number", ColumnType::LongLong).flagged(column_flags::AUTO_INCREMENT))
        .column(Column::new("subject", ColumnType::LongText).unicode())
        .primary("primary", &["id"])
        .duplicates("by folder", &["folder"])
        .unique_unless_null("by subject", &["subject"])
        .build()
        .expect("a valid table")
}

/// A row, as the ledger notes it.
struct Letter {
    folder: Vec<u8>,
    number: u64,
    subject: Option<Vec<u8>>,
    body: Vec<u8>,
}

impl Letter {
    const NAMES: [&str; 4] = ["folder", "number", "subject", "body"];
    const NUMBER_AT: usize = 4;

    fn columns(table: &OpenTable) -> [ColumnId; 4] {
        Self::NAMES.map(|name| table.column(name).expect("a column of the table"))
    }

    /// From the values of its columns.
    fn of(values: Vec<Option<Vec<u8>>>) -> Self {
        let [folder, number, subject, body] = values.try_into().expect("four columns");
        Self {
            folder: folder.unwrap_or_default(),
            number: u64::from_le_bytes(number.expect("a number").try_into().expect("eight bytes")),
            subject,
            body: body.unwrap_or_default(),
        }
    }

    fn content(&self) -> Vec<u8> {
        let subject = self.subject.as_deref().unwrap_or_default();
        let number = self.number.to_le_bytes();
        let size = (subject.len() as u32).to_le_bytes();
        [&self.folder, &number[..], &size, subject, &self.body].concat()
    }
}

/// A row that the transaction sees, column by column.
async fn letter(table: &OpenTable, transaction: &Transaction, row: &StoredRow) -> Result<Letter> {
    let mut values = Vec::new();
    for column in Letter::columns(table) {
        values.push(table.value(transaction, row, column).await?);
    }
    Ok(Letter::of(values))
}

/// None, or one that begins as few others do and goes on behind what a key holds.
fn subject(random: &mut Random, id: u64, keys: u64) -> Option<Vec<u8>> {
    if random.chance(0.5) {
        return None;
    }
    let id = if random.chance(0.2) { random.below(keys) } else { id };
    let long = "ö".repeat([0, 20, 300][random.below(3) as usize]);
    let text = format!("Brief {id:03} {long}{}", random.below(3));
    Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect())
}

fn body(random: &mut Random, bytes_max: u64) -> Vec<u8> {
    let bytes = if random.chance(0.4) { random.below(bytes_max) } else { random.below(600) };
    // Values that begin below 0x40 could be taken for compressed ones by other readers.
    vec![0x41 + random.below(26) as u8; 1 + bytes as usize]
}

/// One transaction of one to four operations.
pub async fn one_transaction(
    instance: &Instance,
    table: &OpenTable,
    field: &Field,
    serial: u64,
    random: &mut Random,
    ledger: &RefCell<Ledger>,
) -> Result<()> {
    let transaction = instance.begin();
    let mut effects = Effects::new();
    for _ in 0..1 + random.below(4) {
        let result = one_operation(table, &transaction, field, random).await;
        match result {
            Ok((key, after)) => effects.push((table.row_tree(), key, after)),
            Err(EngineError::KeyDuplicate { .. } | EngineError::RowNotFound) => {}
            Err(EngineError::WriteConflict) => return transaction.rollback().await,
            Err(error) => return Err(error),
        }
    }
    if random.chance(0.1) {
        check_first(table, &transaction, random.below(3) as usize, 4).await?;
    }
    if random.chance(0.15) {
        return transaction.rollback().await;
    }
    let how = if random.chance(0.5) { Commit::Lazy } else { Commit::Durable };
    commit_noted(transaction, field, serial, effects, how, ledger).await
}

/// An operation on a row: its key, and what is there afterwards.
async fn one_operation(
    table: &OpenTable,
    transaction: &Transaction,
    field: &Field,
    random: &mut Random,
) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
    let [folder_column, _, subject_column, body_column] = Letter::columns(table);
    let number = random.below(field.keys);
    let id = (number as i32).to_le_bytes();
    let key = table.key(&[Some(&id)])?;
    let folder = (random.below(9) as i32).to_le_bytes();
    let body = body(random, field.row_bytes_max);
    let subject = subject(random, number, field.keys);
    let values = [
        (folder_column, Some(&folder[..])),
        (subject_column, subject.as_deref()),
        (body_column, Some(&body[..])),
    ];
    let operation = random.below(12);
    if operation < 4 {
        let values = [&[(table.column("id")?, Some(&id[..]))], &values[..]].concat();
        let inserted = table.insert_numbered(transaction, &values).await?;
        let letter = Letter {
            folder: folder.to_vec(),
            number: inserted.number.expect("the table counts"),
            subject,
            body,
        };
        return Ok((key, Some(letter.content())));
    }
    if operation < 6 {
        table.delete(transaction, &key).await?;
        return Ok((key, None));
    }
    let there = table.get(transaction, &key).await?;
    let before = letter(table, transaction, &there.ok_or(EngineError::RowNotFound)?).await?;
    if operation < 10 {
        table.update(transaction, &key, &values).await?;
        let letter = Letter { folder: folder.to_vec(), subject, body, ..before };
        return Ok((key, Some(letter.content())));
    }
    let of = table.key(&[Some(&(random.below(field.keys) as i32).to_le_bytes())])?;
    let of = table.get(transaction, &of).await?.ok_or(EngineError::RowNotFound)?;
    let body = letter(table, transaction, &of).await?.body;
    table.share_value(transaction, (&of, body_column), &key, body_column).await?;
    Ok((key, Some(Letter { body, ..before }.content())))
}

/// The first rows of an index, by a selection and by a scan, are the same ones.
async fn check_first(
    table: &OpenTable,
    transaction: &Transaction,
    index: usize,
    rows: u64,
) -> Result<()> {
    let selection = Selection::of(&Letter::columns(table)).through(index).limit(rows);
    let mut selected = table.select(transaction, selection);
    let mut scan = table.scan(transaction, index, KeyRange::all(), Direction::Forward);
    for _ in 0..rows {
        let (found, row) = (selected.next().await?, scan.next().await?);
        let found = found.map(|found| (found.key, Letter::of(found.values).content()));
        let row = match row {
            Some(row) => Some((row.key.clone(), letter(table, transaction, &row).await?.content())),
            None => None,
        };
        assert!(found == row, "a selection through index {index} gives other rows than a scan");
    }
    Ok(())
}

/// What each index leads to is what the rows are, in the order of its keys.
async fn check_indexes(
    table: &OpenTable,
    transaction: &Transaction,
    rows: &BTreeMap<Vec<u8>, Vec<u8>>,
) {
    let columns = Letter::columns(table);
    for (name, column) in [("by folder", 0), ("by subject", 2)] {
        let index = table.index(name).expect("an index of the table");
        let mut selected = table.select(transaction, Selection::of(&columns).through(index));
        let (mut found, mut last) = (BTreeMap::new(), Vec::new());
        while let Some(row) = selected.next().await.expect("a sound index") {
            let prefix = table.index_prefix(index, &[row.values[column].as_deref()]);
            let prefix = prefix.expect("a value that was stored");
            assert!(last <= prefix, "{name} is out of order");
            last = prefix;
            found.insert(row.key, Letter::of(row.values).content());
        }
        // Those without a subject are in no list of subjects.
        let has_entry = |content: &&Vec<u8>| column == 0 || content[12..16] != [0; 4];
        let expected = rows.iter().filter(|(_, content)| has_entry(content));
        assert!(found.iter().eq(expected), "{name} leads to other rows");
    }
}

/// No number was given to two rows, of all that a commit which survived has put into the table.
fn check_numbers(ledger: &Ledger, tree: Tree, survived: usize) {
    let mut keys: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    let effects = ledger.committed[..survived].iter().flat_map(|(_, effects)| effects.iter());
    for (_, key, after) in effects.filter(|(of, ..)| *of == tree) {
        let Some(content) = after else { continue };
        let number = &content[Letter::NUMBER_AT..Letter::NUMBER_AT + 8];
        let first = keys.entry(number).or_insert(key);
        assert!(*first == &key[..], "number {number:?} was given to two rows");
    }
}

/// Everything in the table, long values included, as the ledger notes it.
pub async fn read(instance: &Instance) -> (Tree, BTreeMap<Vec<u8>, Vec<u8>>) {
    let table = open(instance).await.expect("the table was made durable");
    let transaction = instance.begin();
    let mut cursor = table.scan(&transaction, 0, KeyRange::all(), Direction::Forward);
    let mut found = BTreeMap::new();
    while let Some(row) = cursor.next().await.expect("a sound table") {
        let row_content = letter(&table, &transaction, &row).await.expect("a sound row").content();
        found.insert(row.key.clone(), row_content);
    }
    check_indexes(&table, &transaction, &found).await;
    (table.row_tree(), found)
}

/// Compares the table with the ledger after `survived` commits.
pub async fn audit(instance: &Instance, ledger: &Ledger, survived: usize) {
    let (tree, found) = read(instance).await;
    check_numbers(ledger, tree, survived);
    let expected = state_after(ledger, survived).remove(&tree).unwrap_or_default();
    assert!(
        agree(&found, expected.into_iter()),
        "the rows of the table are not those of {survived} commits"
    );
}

/// After a clean stop nothing is leaked, and rows, index and long values agree. The tree of the
/// serial numbers is in no catalog, so its pages look lost: exactly these must. Without `serials`
/// the table or that tree may have been begun more than once, and nobody knows what is left of
/// them; then nothing is said about pages of the database itself.
pub async fn check_files(files: &Files, handle: &Handle, seed: u64, serials: Option<Tree>) {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default()).await;
    let lost = lost_pages(report.expect("the file can be read"), seed);
    let Some(serials) = serials else { return };
    let without = lost_beside(files, handle, &[KnownTree::DATABASE], seed).await;
    let serials = KnownTree {
        place: Place { object: serials.object, root: serials.root },
        parent: system::DATABASE_ROOT,
        kind: 0,
    };
    let with = lost_beside(files, handle, &[KnownTree::DATABASE, serials], seed).await;
    assert_eq!(
        lost,
        &without - &with,
        "seed {seed}: lost are other pages than those of the serial numbers"
    );
}

/// Pages of the database that are in none of these trees.
async fn lost_beside(
    files: &Files,
    handle: &Handle,
    trees: &[KnownTree],
    seed: u64,
) -> BTreeSet<u32> {
    let report = verify_trees(files, handle, database_path(1), trees, DeepOptions::default()).await;
    lost_pages(report.expect("the file can be read"), seed)
}

/// Pages of the database that nobody has; anything else that was found is wrong.
fn lost_pages(report: DeepReport, seed: u64) -> BTreeSet<u32> {
    let mut lost = BTreeSet::new();
    let mut others = Vec::new();
    for finding in report.findings {
        match finding {
            Finding::Leaked { first, last, object: system::DATABASE_OBJECT } => {
                lost.extend(first..=last)
            }
            other => others.push(other),
        }
    }
    assert!(others.is_empty() && report.findings_unlisted == 0, "seed {seed}: {others:#?}");
    lost
}
