//! The sessions of worlds with a table: rows with an index and bodies that are long values more often than not.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::{Place, system};
use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::deep::{DeepOptions, DeepReport, Finding, KnownTree, verify_deep, verify_trees};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Files, Handle, Random};

use crate::sizes::Rows;
use crate::support::*;

/// Rows of a large table, and bytes of its longest bodies.
pub const ROWS: u64 = 90;
pub const BODY_BYTES_MAX: u64 = 15_000;

/// Makes the table; the field has no trees but that of the serial numbers. Also the root of the long values.
pub async fn create(instance: &Rc<Instance>, rows: Rows) -> Result<(Field, u32)> {
    let serials = instance.create_tree(1, 1, 50, 0, 3).await?;
    let table = instance.create_table(1, message_table("Messages")).await?;
    let root = table.placed().long_values.map_or(0, |place| place.root);
    let field = Field {
        serials,
        data: Vec::new(),
        keys: rows.keys,
        row_bytes_max: rows.bytes_max,
        prefix_bytes: 0,
    };
    Ok((field, root))
}

pub async fn open(instance: &Instance) -> Result<OpenTable> {
    instance.open_table(1, "Messages").await
}

/// What a row holds, as the ledger notes it.
fn content(folder: &[u8], body: &[u8]) -> Vec<u8> {
    [folder, body].concat()
}

fn body(random: &mut Random, bytes_max: u64) -> Vec<u8> {
    let bytes = if random.chance(0.4) {
        random.below(bytes_max)
    } else {
        random.below(600)
    };
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
    let (folder, body_column) = (table.column("folder")?, table.column("body")?);
    let id_column = table.column("id")?;
    let mut effects = Effects::new();
    for _ in 0..1 + random.below(4) {
        let id = (random.below(field.keys) as i32).to_le_bytes();
        let key = table.key(&[Some(&id)])?;
        let in_folder = (random.below(9) as i32).to_le_bytes();
        let body = body(random, field.row_bytes_max);
        let values = [(folder, Some(&in_folder[..])), (body_column, Some(&body[..]))];
        let result = match random.below(5) {
            0 | 1 => {
                let values = [(id_column, Some(&id[..])), values[0], values[1]];
                let inserted = table.insert(&transaction, &values).await;
                inserted.map(|_| Some(content(&in_folder, &body)))
            }
            2 | 3 => {
                let updated = table.update(&transaction, &key, &values).await;
                updated.map(|()| Some(content(&in_folder, &body)))
            }
            _ => table.delete(&transaction, &key).await.map(|()| None),
        };
        match result {
            Ok(after) => effects.push((table.row_tree(), key, after)),
            Err(EngineError::KeyDuplicate { .. } | EngineError::RowNotFound) => {}
            Err(EngineError::WriteConflict) => return transaction.rollback().await,
            Err(error) => return Err(error),
        }
    }
    if random.chance(0.15) {
        return transaction.rollback().await;
    }
    let how = if random.chance(0.5) {
        Commit::Lazy
    } else {
        Commit::Durable
    };
    commit_noted(transaction, field, serial, effects, how, ledger).await
}

/// Everything in the table, long values included, as the ledger notes it.
pub async fn read(instance: &Instance) -> (Tree, BTreeMap<Vec<u8>, Vec<u8>>) {
    let table = open(instance).await.expect("the table was made durable");
    let transaction = instance.begin();
    let mut cursor = table.scan(&transaction, 0, KeyRange::all(), Direction::Forward);
    let mut found = BTreeMap::new();
    while let Some(row) = cursor.next().await.expect("a sound table") {
        let value = async |name| {
            let column = table.column(name).expect("a column of the table");
            let value = table.value(&transaction, &row, column).await;
            value.expect("a sound value").unwrap_or_default()
        };
        let row_content = content(&value("folder").await, &value("body").await);
        found.insert(row.key.clone(), row_content);
    }
    (table.row_tree(), found)
}

/// Compares the table with the ledger after `survived` commits.
pub async fn audit(instance: &Instance, ledger: &Ledger, survived: usize) {
    let (tree, found) = read(instance).await;
    let expected = state_after(ledger, survived).remove(&tree).unwrap_or_default();
    assert!(
        agree(&found, expected.into_iter()),
        "the rows of the table are not those of {survived} commits"
    );
}

/// After a clean stop nothing is leaked, and rows, index and long values agree. The tree of the serial numbers is in no catalog, so its pages look
/// lost: exactly these must. Without `serials` the table or that tree may have been begun more than once, and nobody knows what is left of
/// them; then nothing is said about pages of the database itself.
pub async fn check_files(files: &Files, handle: &Handle, seed: u64, serials: Option<Tree>) {
    let report = verify_deep(files, handle, database_path(1), DeepOptions::default()).await;
    let lost = lost_pages(report.expect("the file can be read"), seed);
    let Some(serials) = serials else { return };
    let without = lost_beside(files, handle, &[KnownTree::DATABASE], seed).await;
    let serials = KnownTree {
        place: Place {
            object: serials.object,
            root: serials.root,
        },
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
async fn lost_beside(files: &Files, handle: &Handle, trees: &[KnownTree], seed: u64) -> BTreeSet<u32> {
    let report = verify_trees(files, handle, database_path(1), trees, DeepOptions::default()).await;
    lost_pages(report.expect("the file can be read"), seed)
}

/// Pages of the database that nobody has; anything else that was found is wrong.
fn lost_pages(report: DeepReport, seed: u64) -> BTreeSet<u32> {
    let mut lost = BTreeSet::new();
    let mut others = Vec::new();
    for finding in report.findings {
        match finding {
            Finding::Leaked {
                first,
                last,
                object: system::DATABASE_OBJECT,
            } => lost.extend(first..=last),
            other => others.push(other),
        }
    }
    assert!(
        others.is_empty() && report.findings_unlisted == 0,
        "seed {seed}: {others:#?}"
    );
    lost
}
