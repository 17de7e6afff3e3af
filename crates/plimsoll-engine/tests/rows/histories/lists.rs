//! Lists of numbers, one to a row. The row has a unique secondary key that every change moves on,
//! and a list that grows becomes a long value.

use std::ops::Bound;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::Result;
use plimsoll_engine::table::{OpenTable, StoredRow};
use plimsoll_engine::{Column, ColumnType, StoredValue, Table};
use plimsoll_io::Random;

use super::record::Step;
use super::world::Work;

pub const NAME: &str = "Lists";
/// Column identifiers, in the order of the declaration.
const ID: u16 = 1;
const TAG: u16 = 2;
const LIST: u16 = 256;
/// Room for this many versions of a row in the secondary key.
const TAGS_PER_LIST: u64 = 1_000;
/// A list this long is left alone from now on, and another one begun.
const ELEMENTS_MAX: usize = 24;
/// Lists of more elements than this lie outside their rows.
const ELEMENTS_INSIDE: usize = 12;

pub fn table() -> Table {
    Table::builder(NAME)
        .column(Column::new("id", ColumnType::Long))
        .column(Column::new("tag", ColumnType::Currency))
        .column(Column::new("list", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .unique("by tag", &["tag"])
        .build()
        .expect("a valid table")
}

fn id_bytes(id: u64) -> [u8; 4] {
    (id as i32).to_le_bytes()
}

fn tag_bytes(id: u64, elements: usize) -> [u8; 8] {
    ((id * TAGS_PER_LIST) as i64 + elements as i64).to_le_bytes()
}

fn id_of(table: &OpenTable, row: &StoredRow) -> Result<u64> {
    match table.stored(row, ID)? {
        StoredValue::Bytes(bytes) => {
            Ok(i32::from_le_bytes(bytes.try_into().expect("four bytes")) as u64)
        }
        other => panic!("a row without a number: {other:?}"),
    }
}

async fn list_of(work: &Work<'_>, row: &StoredRow) -> Result<Vec<u64>> {
    let table = &work.session.table;
    if matches!(table.stored(row, LIST)?, StoredValue::Separated { .. }) {
        work.count(|counts| counts.separated += 1);
    }
    let bytes = table.value(work.transaction, row, LIST).await?;
    let bytes = bytes.expect("every row has a list");
    let (elements, _) = bytes.as_chunks::<8>();
    Ok(elements.iter().map(|element| u64::from_le_bytes(*element)).collect())
}

async fn by_key(work: &Work<'_>, id: u64) -> Result<Vec<u64>> {
    work.count(|counts| counts.points += 1);
    let table = &work.session.table;
    let key = table.key(&[Some(&id_bytes(id))])?;
    match table.get(work.transaction, &key).await? {
        Some(row) => list_of(work, &row).await,
        None => Ok(Vec::new()),
    }
}

/// The list found through the secondary key, whose value says only how long it is.
async fn by_tag(work: &Work<'_>, id: u64, direction: Direction) -> Result<Vec<u64>> {
    work.count(|counts| counts.by_index += 1);
    let table = &work.session.table;
    let range = KeyRange {
        low: Bound::Included(table.index_prefix(1, &[Some(&tag_bytes(id, 0))])?),
        high: Bound::Excluded(table.index_prefix(1, &[Some(&tag_bytes(id + 1, 0))])?),
    };
    let mut cursor = table.scan(work.transaction, 1, range, direction);
    let Some(row) = cursor.next().await? else {
        return Ok(Vec::new());
    };
    let more = cursor.next().await?;
    work.expect(more.is_none(), || format!("two states of list {id} are seen at once"));
    list_of(work, &row).await
}

/// Lists `first..=last` in one walk, those that are not there among them.
async fn by_scan(work: &Work<'_>, first: u64, last: u64, direction: Direction) -> Result<()> {
    work.count(|counts| counts.scans += 1);
    let table = &work.session.table;
    let range = KeyRange {
        low: Bound::Included(table.key(&[Some(&id_bytes(first))])?),
        high: Bound::Included(table.key(&[Some(&id_bytes(last))])?),
    };
    let mut cursor = table.scan(work.transaction, 0, range, direction);
    let mut absent: std::collections::BTreeSet<u64> = (first..=last).collect();
    while let Some(row) = cursor.next().await? {
        let id = id_of(table, &row)?;
        let is_new = absent.remove(&id);
        work.expect(is_new, || format!("row {id} comes twice or is not in the range"));
        let list = list_of(work, &row).await?;
        work.note(Step::List(id, list));
    }
    for id in absent {
        work.note(Step::List(id, Vec::new()));
    }
    Ok(())
}

async fn append(work: &Work<'_>, id: u64, is_read_noted: bool) -> Result<()> {
    let table = &work.session.table;
    let mut list = by_key(work, id).await?;
    if is_read_noted {
        work.note(Step::List(id, list.clone()));
    }
    let value = work.session.world.next_value();
    let is_new = list.is_empty();
    list.push(value);
    let bytes: Vec<u8> = list.iter().flat_map(|element| element.to_le_bytes()).collect();
    let (id_bytes, tag) = (id_bytes(id), tag_bytes(id, list.len()));
    // Noted first: if this fails, the transaction does.
    work.note(Step::Append(id, value));
    if is_new {
        let values = [(ID, Some(&id_bytes[..])), (TAG, Some(&tag[..])), (LIST, Some(&bytes[..]))];
        table.insert(work.transaction, &values).await?;
    } else {
        let key = table.key(&[Some(&id_bytes)])?;
        let values = [(TAG, Some(&tag[..])), (LIST, Some(&bytes[..]))];
        table.update(work.transaction, &key, &values).await?;
    }
    if list.len() >= ELEMENTS_MAX {
        work.session.world.leave_alone(id);
    }
    Ok(())
}

pub async fn step(work: &Work<'_>, random: &mut Random) -> Result<()> {
    work.session.table.set_intrinsic_bytes_max(8 * ELEMENTS_INSIDE);
    let id = work.session.world.hot_list(random);
    let direction = if random.chance(0.5) { Direction::Forward } else { Direction::Backward };
    match random.below(10) {
        0..4 => append(work, id, random.chance(0.5)).await?,
        4..6 => {
            let list = by_key(work, id).await?;
            work.note(Step::List(id, list));
        }
        6..8 => {
            let list = by_tag(work, id, direction).await?;
            work.note(Step::List(id, list));
        }
        _ => {
            by_scan(work, id.saturating_sub(random.below(4)), id + random.below(4), direction)
                .await?
        }
    }
    Ok(())
}

pub async fn read_everything(work: &Work<'_>) -> Result<()> {
    by_scan(work, 0, work.session.world.last_list(), Direction::Forward).await
}
