//! The catalog: which tables, columns, indexes and long-value trees a database has, and where their
//! roots are.
//!
//! It is itself a table, MSysObjects, with a row per object; MSysObjectsShadow is a second tree
//! with the same rows. MSysObjids lists every object number, MSysLocales the versions of the sort
//! orders. All four lie at fixed places in a fresh database:
//!
//! ```text
//! page 1-3    database root, owned and available extents     7-9    index Name (object 4)
//! 4-6         MSysObjects (object 2) with its extents        10-12  index RootObjects (object 5)
//! 13-23       more of MSysObjects                            24-28  MSysObjectsShadow (object 3)
//! 29          MSysObjids (object 6)                          30     MSysLocales (object 7)
//! ```
//!
//! Facts from the public ESE source and format description; row images agree with a database that
//! five independent readers read.

mod decode;
mod encode;
mod numbers;

pub use decode::{CatalogDecoder, CatalogFault};
pub use encode::{
    CatalogRow, catalog_rows, locale_rows, object_rows, root_key, rows_of_same_table,
};

pub(crate) use numbers::{column_key, numbers_taken, with_numbers_taken};

use crate::collation::UnicodeOrder;
use crate::schema::{KEY_BYTES_MAX_DEFAULT, column_flags};
use crate::{
    Column, ColumnId, ColumnType, Index, KeyColumn, KeyOrder, PageNumber, Table, index_flags,
};

/// Numbers and root pages that are the same in every database.
pub mod system {
    use crate::PageNumber;

    /// Object number of the database root.
    pub const DATABASE_OBJECT: u32 = 1;
    /// Page of the database root.
    pub const DATABASE_ROOT: PageNumber = 1;
    /// Object number of MSysObjects.
    pub const CATALOG_OBJECT: u32 = 2;
    /// Root page of MSysObjects.
    pub const CATALOG_ROOT: PageNumber = 4;
    /// Object number of MSysObjectsShadow.
    pub const SHADOW_OBJECT: u32 = 3;
    /// Root page of MSysObjectsShadow.
    pub const SHADOW_ROOT: PageNumber = 24;
    /// Object number of the catalog's index Name.
    pub const NAME_INDEX_OBJECT: u32 = 4;
    /// Root page of the catalog's index Name.
    pub const NAME_INDEX_ROOT: PageNumber = 7;
    /// Object number of the catalog's index RootObjects.
    pub const ROOT_INDEX_OBJECT: u32 = 5;
    /// Root page of the catalog's index RootObjects.
    pub const ROOT_INDEX_ROOT: PageNumber = 10;
    /// Object number of MSysObjids.
    pub const OBJECT_IDS_OBJECT: u32 = 6;
    /// Root page of MSysObjids.
    pub const OBJECT_IDS_ROOT: PageNumber = 29;
    /// Object number of MSysLocales.
    pub const LOCALES_OBJECT: u32 = 7;
    /// Root page of MSysLocales.
    pub const LOCALES_ROOT: PageNumber = 30;
    /// First object number of user tables.
    pub const USER_OBJECT_MIN: u32 = 8;
    /// First page not taken by the system.
    pub const USER_PAGE_MIN: PageNumber = 31;
}

/// A tree: its object number and root page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Object number, written in every page of the tree.
    pub object: u32,
    /// Root page.
    pub root: PageNumber,
}

/// A table as it lies in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedTable {
    /// What it looks like.
    pub table: Table,
    /// The table's own tree, which is its primary index.
    pub place: Place,
    /// Each index of `table.indexes`, in the same order, as it lies in the database: add and remove
    /// with [`PlacedTable::insert_index`] and [`PlacedTable::remove_index`].
    pub indexes: Vec<PlacedIndex>,
    /// The tree of its long values.
    pub long_values: Option<Place>,
    /// Flags of the table row; zero for user tables.
    pub flags: u32,
    /// How full pages are made, in percent.
    pub density_percent: u32,
    /// Pages the table was created with.
    pub pages_initial: u32,
    /// Table whose columns and indexes this one inherits.
    pub template: Option<String>,
    /// The columns that it inherits, marked as such, if the template is in the catalog, too.
    /// `table.columns` are its own.
    pub inherited: Vec<Column>,
}

/// An index as it lies in a database. What it looks like stands in [`Table::indexes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedIndex {
    /// Its tree; the primary's is the table's.
    pub place: Place,
    /// What the catalog says of it that the schema does not.
    pub traits: IndexTraits,
}

impl PlacedIndex {
    /// An index as we make them.
    pub fn ours(place: Place) -> Self {
        let traits = IndexTraits::ours();
        Self { place, traits }
    }
}

/// Traits of indexes that Windows made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexTraits {
    /// A row has an entry only if each of these columns is null (`true`) or is not.
    pub conditions: Vec<(ColumnId, bool)>,
    /// By which rules its Unicode text is sorted: a locale and flags of the mapping.
    pub collation: Option<String>,
}

impl IndexTraits {
    /// Those of every index that we make: no condition, and the collation that all rows of indexes
    /// name, whatever their columns.
    pub fn ours() -> Self {
        Self { conditions: Vec::new(), collation: Some(Self::collation_of(LOCALE_NAME, MAP_FLAGS)) }
    }

    fn collation_of(locale: &str, mapping: u32) -> String {
        format!("locale {locale} with flags {mapping:#x}")
    }
}

/// What index rows say about mapping Unicode text: neither case, width nor kind of kana counts.
const MAP_FLAGS: u32 = 0x0003_0401;
/// The locale that rows of indexes name, but those over Unicode text.
const LOCALE_NAME: &str = "en-US";

/// How full pages are made unless said otherwise.
pub const DENSITY_PERCENT_DEFAULT: u32 = 80;

impl PlacedTable {
    /// A user table whose objects are numbered from `place.object` on: the table, its secondary
    /// indexes in order, its long values. `secondary_roots` and `long_value_root` say where those
    /// are.
    ///
    /// # Panics
    /// When there is not one root per secondary index.
    pub fn new(
        table: Table,
        place: Place,
        secondary_roots: &[PageNumber],
        long_value_root: Option<PageNumber>,
        pages_initial: u32,
    ) -> Self {
        assert_eq!(secondary_roots.len() + 1, table.indexes.len(), "one root per secondary index");
        let mut objects = place.object + 1..;
        let mut next = |root: &PageNumber| Place {
            object: objects.next().expect("object numbers do not run out"),
            root: *root,
        };
        let mut index_places = vec![place];
        index_places.extend(secondary_roots.iter().map(&mut next));
        let indexes = index_places.into_iter().map(PlacedIndex::ours).collect();
        Self {
            place,
            indexes,
            long_values: long_value_root.as_ref().map(next),
            flags: 0,
            density_percent: DENSITY_PERCENT_DEFAULT,
            pages_initial,
            template: None,
            inherited: Vec::new(),
            table,
        }
    }

    /// Every tree of the table: its own, its secondary indexes, its long values.
    pub fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.indexes.iter().map(|index| index.place).collect();
        // A table without a primary index lists only its secondary ones.
        if !places.contains(&self.place) {
            places.insert(0, self.place);
        }
        places.extend(self.long_values);
        places
    }

    /// The trees of its secondary indexes, in their order.
    pub fn secondary_places(&self) -> impl Iterator<Item = Place> {
        let places = self.indexes.iter().map(|index| index.place);
        places.filter(|place| place.object != self.place.object)
    }

    /// Takes an index into both lists, at this position of each.
    pub(crate) fn insert_index(&mut self, at: usize, index: Index, placed: PlacedIndex) {
        self.table.indexes.insert(at, index);
        self.indexes.insert(at, placed);
    }

    /// Takes an index out of both lists.
    pub(crate) fn remove_index(&mut self, at: usize) -> PlacedIndex {
        self.table.indexes.remove(at);
        self.indexes.remove(at)
    }

    /// Every column of its rows: those it inherits, then its own.
    pub fn row_columns(&self) -> impl Iterator<Item = &Column> {
        self.inherited.iter().chain(&self.table.columns)
    }

    /// Whether its columns are declared by a template that is not there, so that nobody knows where
    /// its own values lie.
    pub fn lacks_template(&self) -> bool {
        self.template.is_some() && self.inherited.is_empty()
    }

    /// Highest object number in use by the table.
    pub fn object_max(&self) -> u32 {
        self.places().iter().map(|place| place.object).max().unwrap_or(0)
    }
}

/// Numbers of the catalog's columns.
mod column {
    use crate::ColumnId;

    pub const TABLE_OBJECT: ColumnId = 1;
    pub const ROW_TYPE: ColumnId = 2;
    pub const ID: ColumnId = 3;
    pub const TYPE_OR_ROOT: ColumnId = 4;
    pub const SPACE_USAGE: ColumnId = 5;
    pub const FLAGS: ColumnId = 6;
    pub const PAGES_OR_LOCALE: ColumnId = 7;
    pub const ROOT_FLAG: ColumnId = 8;
    pub const RECORD_OFFSET: ColumnId = 9;
    pub const MAP_FLAGS: ColumnId = 10;
    pub const KEY_MOST: ColumnId = 11;
    pub const NAME: ColumnId = 128;
    pub const STATISTICS: ColumnId = 129;
    pub const TEMPLATE: ColumnId = 130;
    pub const DEFAULT: ColumnId = 131;
    pub const KEY_COLUMNS: ColumnId = 132;
    pub const CONDITIONS: ColumnId = 134;
    pub const LOCALE_NAME: ColumnId = 261;
}

/// Values of the catalog's column Type.
mod row_type {
    pub const TABLE: u16 = 1;
    pub const COLUMN: u16 = 2;
    pub const INDEX: u16 = 3;
    pub const LONG_VALUES: u16 = 4;
}

const KEY_COLUMN_DESCENDING: u8 = 0x40;
const CONDITION_MUST_BE_NULL: u8 = 0x20;

const REQUIRED: u32 = column_flags::NOT_NULL;

/// Number, name, type and flags of every column of MSysObjects and its shadow.
const CATALOG_COLUMNS: [(ColumnId, &str, ColumnType, u32); 28] = [
    (1, "ObjidTable", ColumnType::Long, REQUIRED),
    (2, "Type", ColumnType::Short, REQUIRED),
    (3, "Id", ColumnType::Long, REQUIRED),
    (4, "ColtypOrPgnoFDP", ColumnType::Long, REQUIRED),
    (5, "SpaceUsage", ColumnType::Long, REQUIRED),
    (6, "Flags", ColumnType::Long, REQUIRED),
    (7, "PagesOrLocale", ColumnType::Long, REQUIRED),
    (8, "RootFlag", ColumnType::Bit, 0),
    (9, "RecordOffset", ColumnType::Short, 0),
    (10, "LCMapFlags", ColumnType::Long, 0),
    (11, "KeyMost", ColumnType::UnsignedShort, 0),
    (12, "LVChunkMax", ColumnType::Long, 0),
    (128, "Name", ColumnType::Text, REQUIRED),
    (129, "Stats", ColumnType::Binary, 0),
    (130, "TemplateTable", ColumnType::Text, 0),
    (131, "DefaultValue", ColumnType::Binary, 0),
    (132, "KeyFldIDs", ColumnType::Binary, 0),
    (133, "VarSegMac", ColumnType::Binary, 0),
    (134, "ConditionalColumns", ColumnType::Binary, 0),
    (135, "TupleLimits", ColumnType::Binary, 0),
    (136, "Version", ColumnType::Binary, 0),
    (137, "SortID", ColumnType::Binary, 0),
    (256, "CallbackData", ColumnType::LongBinary, 0),
    (257, "CallbackDependencies", ColumnType::LongBinary, 0),
    (258, "SeparateLV", ColumnType::LongBinary, 0),
    (259, "SpaceHints", ColumnType::LongBinary, 0),
    (260, "SpaceDeferredLVHints", ColumnType::LongBinary, 0),
    (261, "LocaleName", ColumnType::LongBinary, 0),
];

fn system_column(
    id: ColumnId,
    name: &str,
    column_type: ColumnType,
    flags: u32,
    code_page: u16,
) -> Column {
    Column { id, code_page, flags, ..Column::new(name, column_type) }
}

fn system_index(name: &str, flags: u32, columns: &[ColumnId]) -> Index {
    let ascending = |column: &ColumnId| KeyColumn { column: *column, order: KeyOrder::Ascending };
    Index {
        name: name.to_owned(),
        flags: flags | index_flags::EXTENDED_COLUMN_IDS,
        columns: columns.iter().map(ascending).collect(),
        key_bytes_max: KEY_BYTES_MAX_DEFAULT,
        unicode_order: UnicodeOrder::Unknown,
    }
}

fn catalog_table(name: &str, indexes: Vec<Index>) -> Table {
    // Every column says code page 1252 here, text or not.
    let columns = CATALOG_COLUMNS
        .iter()
        .map(|(id, name, column_type, flags)| system_column(*id, name, *column_type, *flags, 1252))
        .collect();
    Table { name: name.to_owned(), columns, indexes }
}

fn placed_system(
    table: Table,
    places: &[(u32, PageNumber)],
    flags: u32,
    density: u32,
    pages: u32,
) -> PlacedTable {
    let place = |(object, root): &(u32, PageNumber)| Place { object: *object, root: *root };
    PlacedTable {
        table,
        place: place(&places[0]),
        indexes: places.iter().map(place).map(PlacedIndex::ours).collect(),
        long_values: None,
        flags,
        density_percent: density,
        pages_initial: pages,
        template: None,
        inherited: Vec::new(),
    }
}

/// Flags of indexes that have an entry for every row.
const NULLS_ALLOWED: u32 =
    index_flags::ALLOW_ALL_NULLS | index_flags::ALLOW_FIRST_NULL | index_flags::ALLOW_SOME_NULLS;

/// MSysObjects, MSysObjectsShadow, MSysObjids and MSysLocales as they lie in a fresh database.
pub fn system_tables() -> [PlacedTable; 4] {
    let catalog_places = [
        (system::CATALOG_OBJECT, system::CATALOG_ROOT),
        (system::NAME_INDEX_OBJECT, system::NAME_INDEX_ROOT),
        (system::ROOT_INDEX_OBJECT, system::ROOT_INDEX_ROOT),
    ];
    let shadow_places = [(system::SHADOW_OBJECT, system::SHADOW_ROOT)];
    let object_ids_places = [(system::OBJECT_IDS_OBJECT, system::OBJECT_IDS_ROOT)];
    let locales_places = [(system::LOCALES_OBJECT, system::LOCALES_ROOT)];
    let [id, name, root] = catalog_indexes();
    let catalog = catalog_table("MSysObjects", vec![id.clone(), name, root]);
    let shadow = catalog_table("MSysObjectsShadow", vec![id]);
    [
        placed_system(catalog, &catalog_places, 0xC000_0000, 80, 20),
        placed_system(shadow, &shadow_places, 0xC000_0000, 80, 5),
        placed_system(object_ids(), &object_ids_places, 0xC800_0000, 100, 0),
        placed_system(locales(), &locales_places, 0x8800_0000, 92, 0),
    ]
}

/// Id, Name and RootObjects. The shadow has only the first.
fn catalog_indexes() -> [Index; 3] {
    use index_flags::{ALLOW_SOME_NULLS, NO_NULLS, PRIMARY, UNIQUE};
    let id_key = [column::TABLE_OBJECT, column::ROW_TYPE, column::ID];
    let name_key = [column::TABLE_OBJECT, column::ROW_TYPE, column::NAME];
    let root_key = [column::ROOT_FLAG, column::NAME];
    [
        system_index("Id", UNIQUE | NO_NULLS | PRIMARY, &id_key),
        system_index("Name", UNIQUE | NO_NULLS, &name_key),
        system_index("RootObjects", UNIQUE | ALLOW_SOME_NULLS, &root_key),
    ]
}

fn object_ids() -> Table {
    let flags = index_flags::UNIQUE | NULLS_ALLOWED | index_flags::PRIMARY;
    Table {
        name: "MSysObjids".to_owned(),
        columns: vec![
            system_column(column_id::OBJECT_ID, "objid", ColumnType::Long, 0, 0),
            system_column(257, "objidTable", ColumnType::Long, 0, 0),
            system_column(258, "type", ColumnType::Short, 0, 0),
        ],
        indexes: vec![system_index("primary", flags, &[column_id::OBJECT_ID])],
    }
}

fn locales() -> Table {
    let flags =
        index_flags::UNIQUE | NULLS_ALLOWED | index_flags::PRIMARY | index_flags::REFUSE_TRUNCATION;
    Table {
        name: "MSysLocales".to_owned(),
        columns: vec![
            system_column(1, "Type", ColumnType::UnsignedByte, REQUIRED, 0),
            system_column(2, "iValue", ColumnType::Long, 0, 0),
            system_column(column_id::LOCALE_KEY, "Key", ColumnType::Binary, 0, 0),
        ],
        indexes: vec![system_index("KeyPrimary", flags, &[column_id::LOCALE_KEY])],
    }
}

/// Key columns of the two small system tables.
mod column_id {
    use crate::ColumnId;

    pub const OBJECT_ID: ColumnId = 256;
    pub const LOCALE_KEY: ColumnId = 128;
}
