//! Lists as plain rows of one tree, without an index: nothing but the conflict of two writers keeps
//! an update from being lost.

use std::collections::BTreeSet;
use std::ops::Bound;

use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::Result;
use plimsoll_engine::table::OpenTable;
use plimsoll_io::Random;

use super::record::Step;
use super::world::Work;

pub const NAME: &str = "Plain";
/// A list this long is left alone from now on, and another one begun.
const ELEMENTS_MAX: usize = 30;

fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

fn elements(data: &[u8]) -> Vec<u64> {
    let (elements, _) = data.as_chunks::<8>();
    elements.iter().map(|element| u64::from_le_bytes(*element)).collect()
}

async fn read(work: &Work<'_>, table: &OpenTable, id: u64) -> Result<Option<Vec<u8>>> {
    work.count(|counts| counts.points += 1);
    work.transaction.get(table.row_tree(), &key(id)).await
}

async fn append(work: &Work<'_>, table: &OpenTable, id: u64, is_read_noted: bool) -> Result<()> {
    let (transaction, tree) = (work.transaction, table.row_tree());
    let row = read(work, table, id).await?;
    let list = row.as_deref().map_or(Vec::new(), elements);
    if is_read_noted {
        work.note(Step::List(id, list.clone()));
    }
    let value = work.session.world.next_value();
    let mut data = row.clone().unwrap_or_default();
    data.extend(value.to_le_bytes());
    // Noted first: if this fails, the transaction does.
    work.note(Step::Append(id, value));
    match row {
        Some(_) => transaction.replace(tree, &key(id), &data).await?,
        None => transaction.insert(tree, &key(id), &data).await?,
    }
    if list.len() + 1 >= ELEMENTS_MAX {
        work.session.world.leave_alone(id);
    }
    Ok(())
}

/// Lists `first..=last` in one walk, those that are not there among them.
async fn scan(
    work: &Work<'_>,
    table: &OpenTable,
    first: u64,
    last: u64,
    direction: Direction,
) -> Result<()> {
    work.count(|counts| counts.scans += 1);
    let range = KeyRange {
        low: Bound::Included(key(first).to_vec()),
        high: Bound::Included(key(last).to_vec()),
    };
    let mut cursor = Cursor::new(work.transaction, table.row_tree(), range, direction);
    let mut absent: BTreeSet<u64> = (first..=last).collect();
    while let Some((found, data)) = cursor.next().await? {
        let id = u64::from_be_bytes(found[..].try_into().expect("eight bytes"));
        let is_new = absent.remove(&id);
        work.expect(is_new, || format!("row {id} comes twice or is not in the range"));
        work.note(Step::List(id, elements(&data)));
    }
    for id in absent {
        work.note(Step::List(id, Vec::new()));
    }
    Ok(())
}

pub async fn step(work: &Work<'_>, random: &mut Random) -> Result<()> {
    let table = &work.session.table;
    let id = work.session.world.hot_list(random);
    let direction = [Direction::Forward, Direction::Backward][random.below(2) as usize];
    match random.below(10) {
        0..5 => append(work, table, id, random.chance(0.5)).await,
        5..8 => {
            let row = read(work, table, id).await?;
            work.note(Step::List(id, row.as_deref().map_or(Vec::new(), elements)));
            Ok(())
        }
        _ => {
            let (first, last) = (id.saturating_sub(random.below(4)), id + random.below(4));
            scan(work, table, first, last, direction).await
        }
    }
}

pub async fn read_everything(work: &Work<'_>) -> Result<()> {
    let last = work.session.world.last_list();
    scan(work, &work.session.table, 0, last, Direction::Forward).await
}
