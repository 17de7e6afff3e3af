//! Registers: who holds a name. The name is a unique secondary key; setting a register moves its
//! row to another primary key, or deletes it and inserts another row with the same name.

use std::collections::BTreeMap;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::Result;
use plimsoll_engine::table::{OpenTable, StoredRow};
use plimsoll_engine::{Column, ColumnType, StoredValue, Table};
use plimsoll_io::Random;

use super::record::Step;
use super::world::Work;

pub const NAME: &str = "Registers";
const HOLDER: u16 = 1;
const REGISTER: u16 = 2;
const REGISTERS: u64 = 10;

pub fn table() -> Table {
    Table::builder(NAME)
        .column(Column::new("holder", ColumnType::Long))
        .column(Column::new("register", ColumnType::Long))
        .column(Column::new("pad", ColumnType::Binary))
        .primary("primary", &["holder"])
        .unique("by register", &["register"])
        .build()
        .expect("a valid table")
}

fn number_bytes(number: u64) -> [u8; 4] {
    (number as i32).to_le_bytes()
}

fn number_in(table: &OpenTable, row: &StoredRow, column: u16) -> Result<u64> {
    match table.stored(row, column)? {
        StoredValue::Bytes(bytes) => {
            Ok(i32::from_le_bytes(bytes.try_into().expect("four bytes")) as u64)
        }
        other => panic!("a row without a number: {other:?}"),
    }
}

async fn by_name(work: &Work<'_>, register: u64) -> Result<Option<StoredRow>> {
    work.count(|counts| counts.by_index += 1);
    let table = &work.session.table;
    let prefix = table.index_prefix(1, &[Some(&number_bytes(register))])?;
    let mut cursor = table.scan(work.transaction, 1, KeyRange::prefix(&prefix), Direction::Forward);
    let row = cursor.next().await?;
    let more = cursor.next().await?;
    work.expect(more.is_none(), || format!("two rows hold register {register}"));
    Ok(row)
}

async fn read(work: &Work<'_>, register: u64) -> Result<Option<StoredRow>> {
    let table = &work.session.table;
    let row = by_name(work, register).await?;
    let holder = row.as_ref().map(|row| number_in(table, row, HOLDER)).transpose()?;
    work.note(Step::Held(register, holder));
    // The row itself must be found where the index says.
    if let Some(row) = &row {
        work.count(|counts| counts.points += 1);
        let again = table.get(work.transaction, &row.key).await?;
        work.expect(again.as_ref() == Some(row), || format!("register {register} has two rows"));
    }
    Ok(row)
}

async fn set(work: &Work<'_>, register: u64, random: &mut Random) -> Result<()> {
    let table = &work.session.table;
    let row = read(work, register).await?;
    let value = work.session.world.next_value();
    let (holder, name) = (number_bytes(value), number_bytes(register));
    let pad = vec![0x50; random.below(200) as usize];
    let values =
        [(HOLDER, Some(&holder[..])), (REGISTER, Some(&name[..])), (HOLDER + 127, Some(&pad[..]))];
    work.note(Step::Set(register, value));
    match row {
        Some(row) if random.chance(0.5) => {
            table.update(work.transaction, &row.key, &values[..1]).await
        }
        Some(row) => {
            table.delete(work.transaction, &row.key).await?;
            table.insert(work.transaction, &values).await.map(drop)
        }
        None => table.insert(work.transaction, &values).await.map(drop),
    }
}

/// All registers in one walk, in the order of the rows or of the names.
async fn read_all(work: &Work<'_>, index: usize, direction: Direction) -> Result<()> {
    work.count(|counts| counts.scans += 1);
    let table = &work.session.table;
    let mut cursor = table.scan(work.transaction, index, KeyRange::all(), direction);
    let mut held = BTreeMap::new();
    while let Some(row) = cursor.next().await? {
        let register = number_in(table, &row, REGISTER)?;
        let before = held.insert(register, number_in(table, &row, HOLDER)?);
        work.expect(before.is_none(), || format!("two rows hold register {register}"));
    }
    for register in 0..REGISTERS {
        work.note(Step::Held(register, held.get(&register).copied()));
    }
    Ok(())
}

pub async fn step(work: &Work<'_>, random: &mut Random) -> Result<()> {
    let register = random.below(REGISTERS);
    match random.below(10) {
        0..5 => set(work, register, random).await,
        5..9 => read(work, register).await.map(drop),
        _ => {
            let direction = [Direction::Forward, Direction::Backward][random.below(2) as usize];
            read_all(work, random.below(2) as usize, direction).await
        }
    }
}

pub async fn read_everything(work: &Work<'_>) -> Result<()> {
    read_all(work, 0, Direction::Forward).await
}
