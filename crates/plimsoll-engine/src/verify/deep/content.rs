//! Rows, index entries and the catalog against each other.

use std::collections::BTreeMap;

use super::Findings;
use super::long_values::check_long_values;
use super::space::SpaceMap;
use super::sum::Sum;
use super::walk::{Walk, walk};
use crate::catalog::{Place, PlacedTable, object_rows, system};
use crate::reader::{DatabaseReader, ReadError};
use crate::schema::column_flags;
use crate::{
    ColumnId, ColumnStorage, Index, KeyShape, PageNumber, PageSize, Record, RecordLayout, StoredValue,
    index_flags,
};

/// Walks every tree of every table and compares what they hold.
pub(super) async fn check_tables(reader: &DatabaseReader, map: &mut SpaceMap, findings: &mut Findings) {
    let database = Place {
        object: system::DATABASE_OBJECT,
        root: system::DATABASE_ROOT,
    };
    let nothing = &mut |_: PageNumber, _: &[u8], _: &[u8]| {};
    walk_tree(reader, database, map, findings, nothing).await;
    let mut catalogs: BTreeMap<u32, Sum> = BTreeMap::new();
    for placed in reader.tables() {
        let sum = check_table(reader, placed, map, findings).await;
        catalogs.insert(placed.place.object, sum);
    }
    let is_shadowed = reader.header().flags & 1 == 0;
    let pair = (
        catalogs.get(&system::CATALOG_OBJECT),
        catalogs.get(&system::SHADOW_OBJECT),
    );
    if is_shadowed && pair.0 != pair.1 {
        findings.add(
            system::SHADOW_OBJECT,
            0,
            "the shadow catalog differs from the catalog",
        );
    }
}

/// Walks the tree at a place; errors become findings.
pub(super) async fn walk_tree(
    reader: &DatabaseReader,
    place: Place,
    map: &mut SpaceMap,
    findings: &mut Findings,
    visit: &mut impl FnMut(PageNumber, &[u8], &[u8]),
) {
    findings.report.trees += 1;
    let Some(space) = map.space_of(place.root) else {
        return;
    };
    let plan = Walk {
        place,
        kind: space.kind,
    };
    if let Err(error) = walk(reader, &plan, map, findings, visit).await {
        findings.add_error(place.object, &error);
    }
}

/// What the rows of a table lead one to expect of its other trees.
struct Expected<'t> {
    placed: &'t PlacedTable,
    layout: RecordLayout,
    page_size: PageSize,
    primary: Option<KeyShape>,
    /// Per index, `None` where keys cannot be made.
    indexes: Vec<Option<(KeyShape, Sum)>>,
    references: Sum,
    rows: Sum,
    /// Page and problem of rows that make no sense.
    problems: Vec<(PageNumber, String)>,
}

pub(super) const PROBLEMS_MAX: usize = 100;

/// Whether we can make the keys of an index.
fn comparable(placed: &PlacedTable, index: &Index) -> Result<KeyShape, String> {
    let shape = KeyShape::of(&placed.table, index).map_err(|error| error.to_string())?;
    let column = |id: ColumnId| placed.table.column(id);
    for id in shape.columns() {
        let Some(definition) = column(id) else { continue };
        // A tagged column may hold several values; a long one may be elsewhere.
        if definition.flags & column_flags::MULTI_VALUED != 0 || definition.column_type.is_long() {
            return Err(format!(
                "its column {} may hold several or long values",
                definition.name
            ));
        }
        let is_other_text =
            definition.column_type.is_text() && definition.code_page != crate::CODE_PAGE_WESTERN;
        if is_other_text {
            return Err(format!(
                "its column {} is text of code page {}",
                definition.name, definition.code_page
            ));
        }
    }
    Ok(shape)
}

impl<'t> Expected<'t> {
    fn new(placed: &'t PlacedTable, page_size: PageSize, findings: &mut Findings) -> Self {
        let mut indexes = Vec::new();
        for index in &placed.table.indexes {
            indexes.push(match comparable(placed, index) {
                Ok(shape) => Some((shape, Sum::default())),
                Err(why) => {
                    let name = format!("{}.{}: {why}", placed.table.name, index.name);
                    findings.report.not_compared.push(name);
                    None
                }
            });
        }
        let primary = match (placed.table.primary(), indexes.first()) {
            (Some(_), Some(Some((shape, _)))) => Some(shape.clone()),
            _ => None,
        };
        Self {
            layout: RecordLayout::of(&placed.table),
            page_size,
            primary,
            indexes,
            references: Sum::default(),
            rows: Sum::default(),
            problems: Vec::new(),
            placed,
        }
    }

    fn problem(&mut self, page: PageNumber, problem: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push((page, problem.into()));
        }
    }

    fn row(&mut self, page: PageNumber, key: &[u8], data: &[u8]) {
        self.rows.add(key, data);
        if let Err(problem) = self.check_row(key, data) {
            self.problem(page, problem);
        }
    }

    fn check_row(&mut self, key: &[u8], data: &[u8]) -> Result<(), String> {
        let record = Record::parse(data, &self.layout, self.page_size).map_err(|fault| fault.to_string())?;
        let mut values: BTreeMap<ColumnId, &[u8]> = BTreeMap::new();
        for column in &self.placed.table.columns {
            let value = record.value(column.id).map_err(|fault| fault.to_string())?;
            note_references(&mut self.references, value);
            let bytes = match value {
                StoredValue::Bytes(bytes) => Some(bytes),
                StoredValue::Absent => column.default.as_deref(),
                _ => None,
            };
            match bytes {
                Some(bytes) => drop(values.insert(column.id, bytes)),
                None if is_null_forbidden(column, value) => {
                    return Err(format!("column {} is null and must not be", column.name));
                }
                None => {}
            }
        }
        if let Some(primary) = &self.primary {
            let made = primary
                .key(|id| values.get(&id).copied())
                .map_err(|error| error.to_string())?;
            if made.bytes != key {
                return Err("a row is stored under another key than its own".to_owned());
            }
        }
        for (index, expected) in self.placed.table.indexes.iter().zip(&mut self.indexes) {
            if let Some((shape, sum)) = expected
                && has_entry(index, shape, &values)
            {
                let made = shape
                    .key(|id| values.get(&id).copied())
                    .map_err(|error| error.to_string())?;
                sum.add(&made.bytes, key);
            }
        }
        Ok(())
    }
}

/// Adds the numbers of the long values that a value refers to.
fn note_references(references: &mut Sum, value: StoredValue<'_>) {
    match value {
        StoredValue::Separated { long_value, .. } => references.add(&long_value.to_le_bytes(), &[]),
        StoredValue::Multi(values) => {
            for number in 0..values.count().unwrap_or(0) {
                if let Ok(single) = values.value(number) {
                    note_references(references, single);
                }
            }
        }
        _ => {}
    }
}

fn is_null_forbidden(column: &crate::Column, value: StoredValue<'_>) -> bool {
    // Columns that the engine itself fills in may still be empty in rows written before they were added.
    let is_null = matches!(value, StoredValue::Null);
    is_null && column.flags & column_flags::NOT_NULL != 0 && column.storage() == ColumnStorage::Fixed
}

/// Whether a row has an entry in an index, by the rules for null key columns.
fn has_entry(index: &Index, shape: &KeyShape, values: &BTreeMap<ColumnId, &[u8]>) -> bool {
    let nulls: Vec<bool> = shape.columns().map(|id| !values.contains_key(&id)).collect();
    let allowed = |flag: u32| index.flags & flag != 0;
    if nulls.iter().all(|null| *null) {
        return allowed(index_flags::ALLOW_ALL_NULLS);
    }
    if nulls.first() == Some(&true) {
        return allowed(index_flags::ALLOW_FIRST_NULL);
    }
    !nulls.contains(&true) || allowed(index_flags::ALLOW_SOME_NULLS)
}

async fn check_table(
    reader: &DatabaseReader,
    placed: &PlacedTable,
    map: &mut SpaceMap,
    findings: &mut Findings,
) -> Sum {
    let mut expected = Expected::new(placed, reader.page_size(), findings);
    let object = placed.place.object;
    {
        let visit = &mut |page: PageNumber, key: &[u8], data: &[u8]| expected.row(page, key, data);
        walk_tree(reader, placed.place, map, findings, visit).await;
    }
    findings.report.rows += expected.rows.count;
    for (page, problem) in std::mem::take(&mut expected.problems) {
        findings.add(object, page, problem);
    }
    for (at, place) in placed.index_places.iter().enumerate() {
        if *place == placed.place {
            continue;
        }
        let mut found = Sum::default();
        let visit = &mut |_: PageNumber, key: &[u8], data: &[u8]| found.add(key, data);
        walk_tree(reader, *place, map, findings, visit).await;
        if let Some((_, sum)) = &expected.indexes[at] {
            findings.report.index_entries += found.count;
            compare_index(placed, at, *sum, found, findings);
        }
    }
    check_long_values(reader, placed, expected.references, map, findings).await;
    if object == system::OBJECT_IDS_OBJECT
        && let Err(error) = check_object_list(reader, placed, findings).await
    {
        findings.add_error(object, &error);
    }
    expected.rows
}

fn compare_index(placed: &PlacedTable, at: usize, expected: Sum, found: Sum, findings: &mut Findings) {
    if expected == found {
        return;
    }
    let (index, place) = (&placed.table.indexes[at], placed.index_places[at]);
    let problem = if expected.count == found.count {
        format!(
            "index {} of {} has the right number of entries, but not those of its rows",
            index.name, placed.table.name
        )
    } else {
        format!(
            "index {} of {} has {} entries, its rows ask for {}",
            index.name, placed.table.name, found.count, expected.count
        )
    };
    findings.add(place.object, 0, problem);
}

/// MSysObjids must list exactly the objects of the catalog.
async fn check_object_list(
    reader: &DatabaseReader,
    placed: &PlacedTable,
    findings: &mut Findings,
) -> Result<(), ReadError> {
    let expected: Vec<Vec<u8>> = object_rows(reader.tables(), reader.page_size())
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    let mut found = Vec::new();
    let mut scan = reader.scan(placed.place);
    while let Some(leaf) = scan.next_leaf().await? {
        for line in 0..leaf.view().lines() {
            if let Ok(node) = leaf.view().node(line)
                && !node.is_deleted()
            {
                found.push(node.key());
            }
        }
    }
    if found != expected {
        let problem = format!(
            "MSysObjids lists {} objects, the catalog has {}, or others",
            found.len(),
            expected.len()
        );
        findings.add(placed.place.object, 0, problem);
    }
    Ok(())
}
