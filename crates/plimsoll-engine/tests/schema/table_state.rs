//! What a table holds whose schema changes: as the model has it, and as a database is found.

use std::collections::BTreeMap;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Transaction;
use plimsoll_engine::{ColumnType, column_flags};

pub const TABLE: &str = "Rows";

pub type Value = Option<Vec<u8>>;
pub type Row = BTreeMap<String, Value>;

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    pub column_type: ColumnType,
    pub default: Value,
    pub is_required: bool,
}

/// What the database holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Tables made so far.
    pub made: u32,
    pub is_there: bool,
    pub columns: BTreeMap<String, ColumnSpec>,
    /// By name, the column each is of.
    pub indexes: BTreeMap<String, String>,
    pub rows: BTreeMap<i32, Row>,
}

impl State {
    /// As a reader finds it that saw the rows of `before`, and looks at the table as it is now.
    pub fn seen_from(&self, before: &State) -> BTreeMap<i32, Row> {
        if before.made != self.made {
            return BTreeMap::new();
        }
        let rows = before.rows.iter().map(|(id, row)| {
            let of_now = self.columns.iter().map(|(name, column)| {
                let value = row.get(name).cloned().unwrap_or(column.default.clone());
                (name.clone(), value)
            });
            (*id, of_now.collect())
        });
        rows.collect()
    }
}

/// Reads what a transaction finds of the table, and holds every index against the rows.
pub async fn read_rows(
    table: &OpenTable,
    transaction: &Transaction,
    columns: &BTreeMap<String, ColumnSpec>,
) -> Result<BTreeMap<i32, Row>> {
    let mut rows = BTreeMap::new();
    let id_column = table.column("id")?;
    for index in 0..table.placed().table.indexes.len() {
        let mut scan = table.scan(transaction, index, KeyRange::all(), Direction::Forward);
        let mut found = BTreeMap::new();
        while let Some(stored) = scan.next().await? {
            let id = table.value(transaction, &stored, id_column).await?.expect("an id");
            let id = i32::from_le_bytes(id.try_into().expect("four bytes"));
            let mut row = Row::new();
            for name in columns.keys() {
                let value = table.value(transaction, &stored, table.column(name)?).await?;
                row.insert(name.clone(), value);
            }
            assert!(found.insert(id, row).is_none(), "row {id} twice in index {index}");
        }
        if index == 0 {
            rows = found;
        } else {
            assert_eq!(found, rows, "index {}", table.placed().table.indexes[index].name);
        }
    }
    Ok(rows)
}

/// Everything that is committed.
pub async fn read_state(instance: &Instance, made: u32) -> Result<State> {
    let table = match instance.open_table(1, TABLE).await {
        Ok(table) => table,
        Err(EngineError::NoSuchObject { .. }) => {
            return Ok(State { made, ..State::default() });
        }
        Err(error) => return Err(error),
    };
    let declared = &table.placed().table;
    let of_rows = declared.columns.iter().filter(|column| !column.is_dropped());
    let columns: BTreeMap<String, ColumnSpec> = of_rows
        .filter(|column| column.name != "id")
        .map(|column| {
            let spec = ColumnSpec {
                column_type: column.column_type,
                default: column.default.clone(),
                is_required: column.flags & column_flags::NOT_NULL != 0,
            };
            (column.name.clone(), spec)
        })
        .collect();
    let indexes = declared.indexes.iter().filter(|index| !index.is_primary());
    let indexes = indexes.map(|index| {
        let column = declared.column(index.columns[0].column).expect("its column");
        (index.name.clone(), column.name.clone())
    });
    let indexes = indexes.collect();
    let transaction = instance.begin();
    let rows = read_rows(&table, &transaction, &columns).await?;
    for (name, column) in &indexes {
        check_keys(&table, &transaction, (name, column), &rows).await?;
    }
    Ok(State { made, is_there: true, columns, indexes, rows })
}

/// Counts the rows of each value through an index.
async fn check_keys(
    table: &OpenTable,
    transaction: &Transaction,
    (name, column): (&String, &String),
    rows: &BTreeMap<i32, Row>,
) -> Result<()> {
    let mut expected: BTreeMap<&Value, u64> = BTreeMap::new();
    for row in rows.values() {
        *expected.entry(&row[column]).or_default() += 1;
    }
    let index = table.index(name)?;
    for (value, count) in expected {
        let prefix = table.index_prefix(index, &[value.as_deref()])?;
        let found = table.count(transaction, index, KeyRange::prefix(&prefix), u64::MAX).await?;
        assert_eq!(found, count, "rows with {value:?} in {name}");
    }
    Ok(())
}
