//! Declaring a table by names: columns get their numbers, key columns are looked up, everything is checked at the end.

use std::collections::BTreeSet;

use super::{
    CODE_PAGE_UNICODE, Column, ColumnStorage, ColumnType, Index, KEY_BYTES_MAX_DEFAULT, KeyColumn, KeyOrder,
    Table, column_flags, index_flags,
};

/// What is wrong with a declared table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The same name twice, or no name, or one longer than 64 characters.
    #[error("table {table}: the name {name:?} is used twice, empty, longer than 64 characters or not ASCII")]
    Name {
        /// Table.
        table: String,
        /// Column or index.
        name: String,
    },
    /// More columns of a kind than numbers for them.
    #[error("table {table} has more {storage:?} columns than the format can number")]
    TooManyColumns {
        /// Table.
        table: String,
        /// Which kind.
        storage: ColumnStorage,
    },
    /// A key names a column that is not there.
    #[error("index {index} of table {table} names the column {column:?}, which the table does not have")]
    KeyColumnMissing {
        /// Table.
        table: String,
        /// Index.
        index: String,
        /// Column.
        column: String,
    },
    /// A key names a column whose values cannot be ordered here.
    #[error(
        "index {index} of table {table} names the column {column:?}, which cannot be indexed (Unicode text, several values, or an unknown type)"
    )]
    KeyColumnUnsortable {
        /// Table.
        table: String,
        /// Index.
        index: String,
        /// Column.
        column: String,
    },
    /// A table needs exactly one primary index, with a key.
    #[error("table {table} needs one primary index and at least one column in every key")]
    NoPrimary {
        /// Table.
        table: String,
    },
}

enum Declared {
    Primary,
    Unique,
    UniqueUnlessNull,
    Duplicates,
}

/// Declares a table; see [`Table::builder`]. Columns are numbered in the order they are added.
pub struct TableBuilder {
    name: String,
    columns: Vec<Column>,
    indexes: Vec<(String, Declared, Vec<String>)>,
}

impl TableBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            columns: Vec::new(),
            indexes: Vec::new(),
        }
    }

    /// Adds a column.
    pub fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Declares the primary index. Key columns are named as in `"id"`, `"+id"` or, for descending order, `"-id"`.
    pub fn primary(self, name: &str, key: &[&str]) -> Self {
        self.index(name, Declared::Primary, key)
    }

    /// Declares an index in which no two rows share a key.
    pub fn unique(self, name: &str, key: &[&str]) -> Self {
        self.index(name, Declared::Unique, key)
    }

    /// Declares an index in which no two rows share a key, and which leaves out rows where a key column is null: any number of rows may have none.
    pub fn unique_unless_null(self, name: &str, key: &[&str]) -> Self {
        self.index(name, Declared::UniqueUnlessNull, key)
    }

    /// Declares an index in which rows may share a key; the primary key is appended to it.
    pub fn duplicates(self, name: &str, key: &[&str]) -> Self {
        self.index(name, Declared::Duplicates, key)
    }

    fn index(mut self, name: &str, declared: Declared, key: &[&str]) -> Self {
        let key = key.iter().map(|column| (*column).to_owned()).collect();
        self.indexes.push((name.to_owned(), declared, key));
        self
    }

    /// Checks the declaration and numbers the columns.
    ///
    /// # Errors
    /// The first [`SchemaError`] found.
    pub fn build(mut self) -> Result<Table, SchemaError> {
        self.check_names()?;
        self.number_columns()?;
        self.indexes
            .sort_by_key(|(_, declared, _)| !matches!(declared, Declared::Primary));
        let mut table = Table {
            name: self.name,
            columns: self.columns,
            indexes: Vec::new(),
        };
        for (name, declared, key) in self.indexes {
            let index = declare_index(&table, name, declared, &key)?;
            table.indexes.push(index);
        }
        let primaries = table.indexes.iter().filter(|index| index.is_primary()).count();
        if primaries != 1 || table.indexes.iter().any(|index| index.columns.is_empty()) {
            return Err(SchemaError::NoPrimary { table: table.name });
        }
        Ok(table)
    }

    fn check_names(&self) -> Result<(), SchemaError> {
        let columns: Vec<&String> = self.columns.iter().map(|column| &column.name).collect();
        let indexes: Vec<&String> = self.indexes.iter().map(|(name, ..)| name).collect();
        for names in [vec![&self.name], columns, indexes] {
            let mut seen = BTreeSet::new();
            for name in names {
                let is_plain = name.is_ascii() && (1..=64).contains(&name.len());
                if !is_plain || !seen.insert(name) {
                    return Err(SchemaError::Name {
                        table: self.name.clone(),
                        name: name.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    fn number_columns(&mut self) -> Result<(), SchemaError> {
        for storage in [
            ColumnStorage::Fixed,
            ColumnStorage::Variable,
            ColumnStorage::Tagged,
        ] {
            let mut ids = storage.ids();
            for column in &mut self.columns {
                if column.natural_storage() == storage {
                    column.id = ids.next().ok_or_else(|| SchemaError::TooManyColumns {
                        table: self.name.clone(),
                        storage,
                    })?;
                }
            }
        }
        self.columns.sort_by_key(|column| column.id);
        Ok(())
    }
}

fn declare_index(
    table: &Table,
    name: String,
    declared: Declared,
    key: &[String],
) -> Result<Index, SchemaError> {
    let mut columns = key
        .iter()
        .map(|column| key_column(table, &name, column))
        .collect::<Result<Vec<_>, _>>()?;
    if let (Declared::Duplicates, Some(primary)) = (&declared, table.primary()) {
        for appended in &primary.columns {
            if !columns.iter().any(|named| named.column == appended.column) {
                columns.push(*appended);
            }
        }
    }
    let kind = match declared {
        Declared::Primary => index_flags::PRIMARY | index_flags::NO_NULLS,
        Declared::UniqueUnlessNull => 0,
        Declared::Unique | Declared::Duplicates => {
            index_flags::ALLOW_ALL_NULLS | index_flags::ALLOW_FIRST_NULL | index_flags::ALLOW_SOME_NULLS
        }
    };
    Ok(Index {
        name,
        flags: index_flags::UNIQUE | index_flags::EXTENDED_COLUMN_IDS | kind,
        columns,
        key_bytes_max: KEY_BYTES_MAX_DEFAULT,
    })
}

fn key_column(table: &Table, index: &str, named: &str) -> Result<KeyColumn, SchemaError> {
    let (order, name) = match named.strip_prefix('-') {
        Some(name) => (KeyOrder::Descending, name),
        None => (KeyOrder::Ascending, named.strip_prefix('+').unwrap_or(named)),
    };
    let (table_name, index, column_name) = (table.name.clone(), index.to_owned(), name.to_owned());
    let Some(column) = table.column_named(name) else {
        return Err(SchemaError::KeyColumnMissing {
            table: table_name,
            index,
            column: column_name,
        });
    };
    let is_sortable = column.code_page != CODE_PAGE_UNICODE
        && column.flags & column_flags::MULTI_VALUED == 0
        && !matches!(column.column_type, ColumnType::Other(_));
    if !is_sortable {
        return Err(SchemaError::KeyColumnUnsortable {
            table: table_name,
            index,
            column: column_name,
        });
    }
    Ok(KeyColumn {
        column: column.id,
        order,
    })
}
