//! Reading what a world holds, and comparing it with what was committed: a row is right, or it is
//! refused, or the promise is broken.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::{EngineError, PageDamage, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Transaction;
use plimsoll_io::Random;

use crate::hard_times::books::{Books, Judged};
use crate::support::{Field, Ledger};

/// How often what was met.
pub type Met = Rc<RefCell<BTreeMap<&'static str, u64>>>;

/// What the storage has done so far, and what may therefore be found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed {
    /// Rows and databases may be refused.
    pub refusals: bool,
    /// The last acknowledged commits may be missing: a damaged end of the log cannot be told from
    /// one that was being written.
    pub early_end: bool,
    /// A row may be as it was before its last change: the flush map was damaged, or lost its last
    /// state in a crash.
    pub stale: bool,
}

pub fn note(met: &Met, name: &'static str, count: u64) {
    *met.borrow_mut().entry(name).or_default() += count;
}

/// Counts a refusal.
pub fn note_error(met: &Met, error: &EngineError) {
    let name = match error {
        EngineError::DamagedPage { damage: PageDamage::LostFlush { .. }, .. } => {
            "refused: the flush map knows of a lost write"
        }
        EngineError::DamagedPages { pages, .. }
            if pages.iter().any(|(_, damage)| matches!(damage, PageDamage::TooOld { .. })) =>
        {
            "refused: older than the log says"
        }
        EngineError::DamagedPage { .. } | EngineError::DamagedPages { .. } => {
            "refused: damaged page"
        }
        EngineError::Disk(_) => "refused: error of the disk",
        EngineError::Poisoned { .. } => "refused: stopped after an earlier error",
        EngineError::LogCorrupt { .. } => "refused: damaged log",
        _ => "refused: other reasons",
    };
    note(met, name, 1);
}

fn settle(allowed: Allowed, met: &Met, judged: Judged, what: impl Fn() -> String) {
    match judged {
        Judged::Right => note(met, "rows compared", 1),
        Judged::Stale if allowed.stale => note(met, "stale rows", 1),
        Judged::Stale | Judged::Invented => panic!("{judged:?}: {}", what()),
    }
}

/// What a session sees of some rows while others work must be what was committed when it began.
pub async fn look(
    instance: &Instance,
    field: &Field,
    ledger: &RefCell<Ledger>,
    random: &mut Random,
    (allowed, met): (Allowed, &Met),
) -> Result<()> {
    let transaction = instance.begin();
    // Nothing runs between the beginning and this.
    let count = ledger.borrow().committed.len();
    let books = Books::of(&ledger.borrow());
    let tree = field.data[random.below(field.data.len() as u64) as usize];
    for _ in 0..3 {
        let key = field.key(random.below(field.keys));
        let found = transaction.get(tree, &key).await?;
        let judged = books.judge(tree, &key, found.as_deref(), &(count..=count));
        settle(allowed, met, judged, || format!("row {key:?} as of {count}: {found:?}"));
    }
    let first = field.key(random.below(field.keys));
    scan(&transaction, &books, tree, Some((first, 40)), &(count..=count), (allowed, met)).await
}

/// Reads rows in their order, all of a tree or some; none may be missing between two that are
/// there.
async fn scan(
    transaction: &Transaction,
    books: &Books,
    tree: Tree,
    part: Option<(Vec<u8>, usize)>,
    counts: &RangeInclusive<usize>,
    (allowed, met): (Allowed, &Met),
) -> Result<()> {
    let mut range = KeyRange::all();
    let mut rows_max = usize::MAX;
    if let Some((first, rows)) = &part {
        range.low = std::ops::Bound::Included(first.clone());
        rows_max = *rows;
    }
    let mut cursor = Cursor::new(transaction, tree, range, Direction::Forward);
    let mut found = BTreeSet::new();
    while found.len() < rows_max
        && let Some((key, data)) = cursor.next().await?
    {
        let judged = books.judge(tree, &key, Some(&data), counts);
        settle(allowed, met, judged, || format!("row {key:?} in a scan as of {counts:?}"));
        found.insert(key);
    }
    let (first, last) = (found.first().cloned(), found.last().cloned());
    let is_passed = |key: &&Vec<u8>| {
        part.is_none() || (first.as_ref() <= Some(key) && Some(*key) <= last.as_ref())
    };
    for key in books.keys(tree).filter(is_passed).filter(|key| !found.contains(*key)) {
        let judged = books.judge(tree, key, None, counts);
        settle(allowed, met, judged, || {
            format!("row {key:?} is missing in a scan as of {counts:?}")
        });
    }
    Ok(())
}

/// Reads everything and compares; how many commits are there, unless that cannot be told.
pub async fn examine(
    instance: &Instance,
    field: &Field,
    ledger: &Ledger,
    allowed: Allowed,
    met: &Met,
) -> Option<usize> {
    let transaction = instance.begin();
    let books = Books::of(ledger);
    let counts = survived(&transaction, field, ledger, allowed, met).await;
    let mut refused = 0;
    let mut refuse = |error: &EngineError| {
        assert!(allowed.refusals, "nothing was damaged, and a row is refused: {error}");
        note_error(met, error);
        refused += 1;
    };
    for tree in &field.data {
        for key in books.keys(*tree) {
            match transaction.get(*tree, key).await {
                Ok(found) => {
                    let judged = books.judge(*tree, key, found.as_deref(), &counts);
                    settle(allowed, met, judged, || format!("row {key:?} as of {counts:?}"));
                }
                Err(error) => refuse(&error),
            }
        }
        if let Err(error) = scan(&transaction, &books, *tree, None, &counts, (allowed, met)).await {
            refuse(&error);
        }
    }
    note(met, "rows refused", refused);
    (counts.start() == counts.end()).then_some(*counts.start())
}

/// How many commits survived; more than one number where entries that would tell are refused, or
/// may be gone with a write that nobody misses.
async fn survived(
    transaction: &Transaction,
    field: &Field,
    ledger: &Ledger,
    allowed: Allowed,
    met: &Met,
) -> RangeInclusive<usize> {
    let (mut low, mut high, mut absent) = (0, 0, Vec::new());
    for (index, (serial, _)) in ledger.committed.iter().enumerate() {
        match transaction.get(field.serials, &serial.to_be_bytes()).await {
            Ok(Some(_)) => low = index + 1,
            Ok(None) => absent.push((index, *serial)),
            Err(error) => {
                assert!(allowed.refusals, "nothing was damaged, and a commit is refused: {error}");
                note_error(met, &error);
                high = index + 1;
            }
        }
    }
    high = high.max(low);
    if allowed.stale && absent.last().is_some_and(|(index, _)| *index >= high) {
        note(met, "ends of the log that nobody can tell", 1);
        return low..=ledger.committed.len();
    }
    for (index, serial) in absent {
        if index < high {
            assert!(allowed.stale, "commit {serial} is missing, later ones are there");
            note(met, "stale rows", 1);
        } else {
            let is_promised = ledger.acknowledged.contains(&serial);
            assert!(!is_promised || allowed.early_end, "acknowledged commit {serial} is lost");
            note(
                met,
                "acknowledged commits behind a damaged end of the log",
                u64::from(is_promised),
            );
        }
    }
    low..=high
}
