//! Declaring a table by names: columns get their numbers, key columns are looked up, everything is
//! checked at the end.

use std::collections::BTreeSet;

use crate::collation::UnicodeOrder;

use super::{
    CODE_PAGE_UNICODE, Column, ColumnId, ColumnStorage, ColumnType, Index, KEY_BYTES_MAX_DEFAULT,
    KEY_BYTES_MAX_LARGEST, KEY_COLUMNS_MAX, KeyColumn, KeyOrder, Table, column_flags, index_flags,
};

/// What is wrong with a declared table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The same name twice, or no name, or one longer than 64 characters or not ASCII. Names that
    /// differ in case only are the same.
    #[error("table {table:?}: the name {name:?} {why}: choose another")]
    Name {
        /// Table.
        table: String,
        /// Table, column or index.
        name: String,
        /// Which of these it is.
        why: String,
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
    #[error(
        "index {index} of table {table} names the column {column:?}, which the table does not have"
    )]
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
        "index {index} of table {table} names the column {column:?}, which cannot be indexed \
         (several values, or an unknown type)"
    )]
    KeyColumnUnsortable {
        /// Table.
        table: String,
        /// Index.
        index: String,
        /// Column.
        column: String,
    },
    /// A key names a column again.
    #[error("index {index} of table {table} names the column {column:?} two times: name it once")]
    KeyColumnTwice {
        /// Table.
        table: String,
        /// Index.
        index: String,
        /// Column.
        column: String,
    },
    /// More key columns than can be listed.
    #[error(
        "the key of index {index} of table {table} has {columns} columns, those of the primary key \
         that are appended to it among them: at most {KEY_COLUMNS_MAX} can be listed"
    )]
    TooManyKeyColumns {
        /// Table.
        table: String,
        /// Index.
        index: String,
        /// How many it would have.
        columns: usize,
    },
    /// A column of a type that is known by its number only.
    #[error(
        "column {column} of table {table} has a type of which only the number is known: name one \
         of the others"
    )]
    UnknownType {
        /// Table.
        table: String,
        /// Column.
        column: String,
    },
    /// An index cannot have keys of this length.
    #[error(
        "index {index} of table {table} cannot have keys of {bytes} bytes: at least \
         {KEY_BYTES_MAX_DEFAULT}, at most {KEY_BYTES_MAX_LARGEST}, and half of that with pages of \
         4 KiB"
    )]
    KeyLength {
        /// Table.
        table: String,
        /// Index.
        index: String,
        /// Asked-for length.
        bytes: u16,
    },
    /// A column that cannot be filled from a counter.
    #[error(
        "column {column} of table {table} cannot be filled from a counter: a table has at most one \
         such column, a long, unsigned long, long long or currency"
    )]
    AutoIncrement {
        /// Table.
        table: String,
        /// Column.
        column: String,
    },
    /// A flag that rows written here would not keep to.
    #[error(
        "column {column} of table {table} has the flag {flag}, and what is written here does not \
         keep to it: {remedy}"
    )]
    Flag {
        /// Table.
        table: String,
        /// Column.
        column: String,
        /// Name of the flag in [`column_flags`], or its bits.
        flag: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A value that rows cannot be given.
    #[error(
        "the default value of column {column} of table {table} has {bytes} bytes, which the column \
         cannot hold: at most 255, and none for a counter"
    )]
    Default {
        /// Table.
        table: String,
        /// Column.
        column: String,
        /// Length of the value.
        bytes: usize,
    },
    /// A table needs exactly one primary index, with a key.
    #[error("table {table} needs one primary index and at least one column in every key")]
    NoPrimary {
        /// Table.
        table: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    Primary,
    Unique,
    UniqueUnlessNull,
    Duplicates,
}

/// An index to be made. Key columns are named as in `"id"`, `"+id"` or, for descending order,
/// `"-id"`.
///
/// Text is ordered without regard to upper and lower case, and a unique index takes text that
/// differs only so for the same. Single-byte text in a key must be ASCII: a row with other text is
/// refused with [`EngineError::BadRow`](crate::EngineError::BadRow). Index a [`Column::unicode`]
/// column where there may be other text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIndex {
    name: String,
    declared: Declared,
    key: Vec<String>,
    key_bytes_max: u16,
    flags: u32,
}

impl NewIndex {
    fn new(name: &str, declared: Declared, key: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            declared,
            key: key.iter().map(|column| (*column).to_owned()).collect(),
            key_bytes_max: KEY_BYTES_MAX_DEFAULT,
            flags: 0,
        }
    }

    /// Keys may have up to so many bytes: from 255, which is also what they have otherwise, to
    /// 2,000; with pages of 4 KiB to 1,000.
    pub fn key_bytes_max(mut self, bytes: u16) -> Self {
        self.key_bytes_max = bytes;
        self
    }

    /// Refuses rows whose key is longer than that. Otherwise it is cut, as ESE does, and rows whose
    /// keys differ only behind the cut share a key. An index with the whole primary key in it
    /// refuses them anyway: its keys tell rows apart by that.
    pub fn refuse_truncation(mut self) -> Self {
        self.flags |= index_flags::REFUSE_TRUNCATION;
        self
    }

    /// The primary index: the table is its tree.
    pub fn primary(name: &str, key: &[&str]) -> Self {
        Self::new(name, Declared::Primary, key)
    }

    /// An index in which no two rows share a key.
    pub fn unique(name: &str, key: &[&str]) -> Self {
        Self::new(name, Declared::Unique, key)
    }

    /// An index in which no two rows share a key, and which leaves out rows where a key column is
    /// null: any number of rows may have none.
    pub fn unique_unless_null(name: &str, key: &[&str]) -> Self {
        Self::new(name, Declared::UniqueUnlessNull, key)
    }

    /// An index in which rows may share a key; the primary key is appended to it.
    ///
    /// A row whose key with the primary key is longer than [`NewIndex::key_bytes_max`], 255 bytes
    /// unless told otherwise, is refused with [`EngineError::BadRow`](crate::EngineError::BadRow).
    /// Such a key is not cut as ESE does, since the primary key at its end tells rows apart. Over
    /// long text allow longer keys: Unicode text takes about four bytes a character.
    pub fn duplicates(name: &str, key: &[&str]) -> Self {
        Self::new(name, Declared::Duplicates, key)
    }
}

/// Declares a table; see [`Table::builder`]. Columns are numbered in the order they are added.
pub struct TableBuilder {
    name: String,
    columns: Vec<Column>,
    indexes: Vec<NewIndex>,
}

impl TableBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), columns: Vec::new(), indexes: Vec::new() }
    }

    /// Adds a column.
    pub fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Declares the primary index. Key columns are named as in `"id"`, `"+id"` or, for descending
    /// order, `"-id"`.
    pub fn primary(self, name: &str, key: &[&str]) -> Self {
        self.index(NewIndex::primary(name, key))
    }

    /// Declares an index in which no two rows share a key.
    pub fn unique(self, name: &str, key: &[&str]) -> Self {
        self.index(NewIndex::unique(name, key))
    }

    /// Declares an index in which no two rows share a key, and which leaves out rows where a key
    /// column is null: any number of rows may have none.
    pub fn unique_unless_null(self, name: &str, key: &[&str]) -> Self {
        self.index(NewIndex::unique_unless_null(name, key))
    }

    /// Declares an index in which rows may share a key; the primary key is appended to it. Long
    /// keys are refused, see [`NewIndex::duplicates`].
    pub fn duplicates(self, name: &str, key: &[&str]) -> Self {
        self.index(NewIndex::duplicates(name, key))
    }

    /// Adds an index.
    pub fn index(mut self, index: NewIndex) -> Self {
        self.indexes.push(index);
        self
    }

    /// Checks the declaration and numbers the columns.
    ///
    /// # Errors
    /// The first [`SchemaError`] found.
    pub fn build(mut self) -> Result<Table, SchemaError> {
        self.check_names()?;
        check_auto_increment(&self.name, &self.columns)?;
        for column in &mut self.columns {
            check_flags(&self.name, column)?;
            settle_length(&self.name, column)?;
            check_default(&self.name, column)?;
        }
        self.number_columns()?;
        self.indexes.sort_by_key(|index| index.declared != Declared::Primary);
        let mut table = Table { name: self.name, columns: self.columns, indexes: Vec::new() };
        for index in self.indexes {
            let index = declare_index(&table, index)?;
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
        let indexes: Vec<&String> = self.indexes.iter().map(|index| &index.name).collect();
        for names in [vec![&self.name], columns, indexes] {
            check_names(&self.name, &names)?;
        }
        Ok(())
    }

    fn number_columns(&mut self) -> Result<(), SchemaError> {
        for storage in [ColumnStorage::Fixed, ColumnStorage::Variable, ColumnStorage::Tagged] {
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

impl Table {
    /// Refuses columns with flags that rows written here would not keep to.
    pub(crate) fn check_flags(&self) -> Result<(), SchemaError> {
        self.columns.iter().try_for_each(|column| check_flags(&self.name, column))
    }

    /// The table with one more secondary index.
    ///
    /// # Errors
    /// See [`SchemaError`].
    pub fn with_index(&self, index: NewIndex) -> Result<Table, SchemaError> {
        let known = self.indexes.iter().map(|index| &index.name);
        check_names(&self.name, &known.chain([&index.name]).collect::<Vec<_>>())?;
        if index.declared == Declared::Primary || index.key.is_empty() {
            let table = self.name.clone();
            return Err(SchemaError::NoPrimary { table });
        }
        let mut table = self.clone();
        table.indexes.push(declare_index(self, index)?);
        Ok(table)
    }

    /// The table with one more column, numbered after all that it has or had.
    ///
    /// # Errors
    /// See [`SchemaError`].
    pub fn with_column(&self, mut column: Column) -> Result<Table, SchemaError> {
        let known = self.columns.iter().map(|column| &column.name);
        check_names(&self.name, &known.chain([&column.name]).collect::<Vec<_>>())?;
        check_flags(&self.name, &column)?;
        settle_length(&self.name, &mut column)?;
        check_default(&self.name, &mut column)?;
        let storage = column.natural_storage();
        let mut ids = storage.ids();
        let of_storage = self.columns.iter().filter(|column| column.storage() == storage);
        let id = match of_storage.map(|column| column.id).max() {
            Some(last) => Some(last + 1).filter(|id| ids.contains(id)),
            None => ids.next(),
        };
        column.id =
            id.ok_or_else(|| SchemaError::TooManyColumns { table: self.name.clone(), storage })?;
        let mut table = self.clone();
        table.columns.push(column);
        table.columns.sort_by_key(|column| column.id);
        Ok(table)
    }
}

fn check_auto_increment(table: &str, columns: &[Column]) -> Result<(), SchemaError> {
    let is_numbered = |column: &&Column| column.flags & column_flags::AUTO_INCREMENT != 0;
    for (before, column) in columns.iter().filter(is_numbered).enumerate() {
        let can_count = matches!(
            column.column_type,
            ColumnType::Long
                | ColumnType::UnsignedLong
                | ColumnType::LongLong
                | ColumnType::Currency
        );
        if before > 0 || !can_count {
            return Err(SchemaError::AutoIncrement {
                table: table.to_owned(),
                column: column.name.clone(),
            });
        }
    }
    Ok(())
}

/// Characters of a name of a table, a column or an index.
const NAME_CHARACTERS_MAX: usize = 64;

/// Flags of columns that the writer keeps to.
const FLAGS_KEPT: u32 = column_flags::NOT_NULL
    | column_flags::AUTO_INCREMENT
    | column_flags::DEFAULT
    | column_flags::ESCROW;

fn check_flags(table: &str, column: &Column) -> Result<(), SchemaError> {
    const LEAVE_OUT: &str = "leave it out";
    let mut refused = column.flags & !FLAGS_KEPT;
    if column.default.is_none() {
        refused |= column.flags & column_flags::DEFAULT;
    }
    if refused == 0 {
        return Ok(());
    }
    let (flag, remedy) = match refused & refused.wrapping_neg() {
        column_flags::VERSION => ("VERSION", "leave it out, and count changes in a column"),
        column_flags::MULTI_VALUED => {
            ("MULTI_VALUED", "leave it out, and keep further values in rows of their own")
        }
        column_flags::DEFAULT => ("DEFAULT", "give the value with `Column::with_default`"),
        column_flags::COMPRESSED => ("COMPRESSED", "leave it out, or compress values yourself"),
        column_flags::ENCRYPTED => ("ENCRYPTED", "leave it out, or encrypt values yourself"),
        column_flags::INHERITED => ("INHERITED", LEAVE_OUT),
        _ => ("", LEAVE_OUT),
    };
    let flag = if flag.is_empty() { format!("{refused:#x}") } else { flag.to_owned() };
    let (table, column) = (table.to_owned(), column.name.clone());
    Err(SchemaError::Flag { table, column, flag, remedy })
}

/// Has the length of the values of a type that has one written down: who reads the record once the
/// column is dropped, and its type with it, goes by that.
fn settle_length(table: &str, column: &mut Column) -> Result<(), SchemaError> {
    if matches!(column.column_type, ColumnType::Other(_)) {
        let (table, column) = (table.to_owned(), column.name.clone());
        return Err(SchemaError::UnknownType { table, column });
    }
    if let Some(bytes) = column.column_type.fixed_bytes() {
        column.bytes_max = bytes as u32;
    }
    Ok(())
}

/// Refuses a default value that is none of the column's, and has the flags tell of one.
fn check_default(table: &str, column: &mut Column) -> Result<(), SchemaError> {
    const BYTES_MAX: usize = 255;
    let Some(default) = &column.default else { return Ok(()) };
    let bytes_max = match column.bytes_max as usize {
        0 => BYTES_MAX,
        limit => limit.min(BYTES_MAX),
    };
    let fits = match column.column_type.fixed_bytes() {
        Some(bytes) => default.len() == bytes,
        None => default.len() <= bytes_max,
    };
    if !fits || column.flags & column_flags::AUTO_INCREMENT != 0 {
        return Err(SchemaError::Default {
            table: table.to_owned(),
            column: column.name.clone(),
            bytes: default.len(),
        });
    }
    column.flags |= column_flags::DEFAULT;
    Ok(())
}

/// Refuses names that are no names, and the same one twice: the catalog's index of names takes
/// upper and lower case for the same.
fn check_names(table: &str, names: &[&String]) -> Result<(), SchemaError> {
    let mut seen = BTreeSet::new();
    for name in names {
        let why = if name.is_empty() {
            "is empty".to_owned()
        } else if !name.is_ascii() {
            "is not ASCII".to_owned()
        } else if name.len() > NAME_CHARACTERS_MAX {
            format!("has {} characters, and may have {NAME_CHARACTERS_MAX}", name.len())
        } else if !seen.insert(name.to_ascii_uppercase()) {
            "is used twice (upper and lower case are the same)".to_owned()
        } else {
            continue;
        };
        return Err(SchemaError::Name { table: table.to_owned(), name: (*name).clone(), why });
    }
    Ok(())
}

fn declare_index(table: &Table, index: NewIndex) -> Result<Index, SchemaError> {
    let NewIndex { name, declared, key, key_bytes_max, flags } = index;
    if !(KEY_BYTES_MAX_DEFAULT..=KEY_BYTES_MAX_LARGEST).contains(&key_bytes_max) {
        return Err(SchemaError::KeyLength {
            table: table.name.clone(),
            index: name,
            bytes: key_bytes_max,
        });
    }
    let mut columns =
        key.iter().map(|column| key_column(table, &name, column)).collect::<Result<Vec<_>, _>>()?;
    if let Some(column) = named_twice(&columns) {
        let column = table.column(column).map_or(String::new(), |column| column.name.clone());
        return Err(SchemaError::KeyColumnTwice { table: table.name.clone(), index: name, column });
    }
    if let (Declared::Duplicates, Some(primary)) = (&declared, table.primary()) {
        for appended in &primary.columns {
            if !columns.iter().any(|named| named.column == appended.column) {
                columns.push(*appended);
            }
        }
    }
    if columns.len() > KEY_COLUMNS_MAX {
        return Err(SchemaError::TooManyKeyColumns {
            table: table.name.clone(),
            index: name,
            columns: columns.len(),
        });
    }
    let kind = match declared {
        Declared::Primary => index_flags::PRIMARY | index_flags::NO_NULLS,
        Declared::UniqueUnlessNull => 0,
        Declared::Unique | Declared::Duplicates => {
            index_flags::ALLOW_ALL_NULLS
                | index_flags::ALLOW_FIRST_NULL
                | index_flags::ALLOW_SOME_NULLS
        }
    };
    let is_unicode = |key_column: &KeyColumn| {
        let column = table.column(key_column.column);
        column.is_some_and(|column| column.code_page == CODE_PAGE_UNICODE)
    };
    let unicode_order =
        if columns.iter().any(is_unicode) { UnicodeOrder::Root } else { UnicodeOrder::Unknown };
    Ok(Index {
        unicode_order,
        name,
        flags: index_flags::UNIQUE | index_flags::EXTENDED_COLUMN_IDS | kind | flags,
        columns,
        key_bytes_max,
    })
}

fn named_twice(columns: &[KeyColumn]) -> Option<ColumnId> {
    let mut seen = BTreeSet::new();
    columns.iter().map(|named| named.column).find(|column| !seen.insert(*column))
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
    let is_sortable = column.flags & column_flags::MULTI_VALUED == 0
        && !matches!(column.column_type, ColumnType::Other(_));
    if !is_sortable {
        return Err(SchemaError::KeyColumnUnsortable {
            table: table_name,
            index,
            column: column_name,
        });
    }
    Ok(KeyColumn { column: column.id, order })
}
