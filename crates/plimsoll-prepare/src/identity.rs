//! Who a prepared database is: header, signature and times from the plan, and the schema of its
//! table.

use super::filler::{derive, word};
use super::layout::Layout;
use super::plan::{Extent, Plan, Secondary};
use plimsoll_engine::catalog::{Place, PlacedTable, system_tables};
use plimsoll_engine::{
    Column, ColumnType, DatabaseHeader, LogTime, PageNumber, Signature, Table, column_flags,
};

/// Name of the prepared table.
pub const TABLE_NAME: &str = "PlimsollMail";
/// Name of its primary index.
pub const PRIMARY_NAME: &str = "ByNumber";
/// Name of its secondary index.
pub const INDEX_NAME: &str = "ByScatter";
const NANOS_PER_MILLISECOND: u64 = 1_000_000;
/// 2010-01-01: prepared databases are dated from here on, ...
const DATE_FIRST_MS: u64 = 1_262_304_000_000;
/// ... within ten years.
const DATE_RANGE_MS: u64 = 3653 * 86_400_000;

/// A number that differs whenever anything in the plan differs.
fn fingerprint(plan: &Plan) -> u64 {
    let extent = match plan.extent {
        Extent::Bytes(bytes) => [0, bytes],
        Extent::Records(records) => [1, records],
    };
    let long_values = plan
        .long_values
        .map_or([0, 0], |long_values| [long_values.every, long_values.bytes.into()]);
    let words = [
        plan.seed,
        plan.database.into(),
        plan.page_size.bytes() as u64,
        plan.shape.short_pad_bytes.into(),
        plan.shape.long_pad_bytes.into(),
        plan.compressible_percent.into(),
        plan.leaf_fill_percent.into(),
        plan.branch_fill_percent.into(),
        u64::from(plan.secondary == Secondary::Unique),
        plan.free_pages.into(),
    ];
    // Databases without vacancies, or without shared leaves, are who they were before there could
    // be any.
    let vacancy = (plan.vacancy_percent > 0).then_some(plan.vacancy_percent.into());
    let shared =
        plan.sharing.map(|sharing| [u64::MAX, sharing.seed, sharing.leaves_per_million.into()]);
    let words = words.into_iter().chain(extent).chain(long_values).chain(vacancy);
    let words = words.chain(shared.into_iter().flatten());
    words.fold(0, derive)
}

/// The identity of the database made from a plan; other plans give other identities.
pub(super) fn signature(plan: &Plan) -> Signature {
    let key = fingerprint(plan);
    let created_ms = DATE_FIRST_MS + word(key, 1) % DATE_RANGE_MS;
    let created = LogTime::from_utc_ns(created_ms * NANOS_PER_MILLISECOND);
    Signature::new(word(key, 0) as u32, created)
}

/// The header of the database as prepared: clean, and of no log stream yet.
pub(super) fn header(plan: &Plan, dbtime_max: u64, object_max: u32) -> DatabaseHeader {
    let signature = signature(plan);
    DatabaseHeader {
        dbtime_max,
        object_max,
        attach_time: signature.created,
        consistent_time: signature.created,
        detach_time: signature.created,
        ..DatabaseHeader::new(plan.page_size, signature, Signature::default())
    }
}

/// The prepared table.
pub(super) fn schema(plan: &Plan) -> Table {
    let required = column_flags::NOT_NULL;
    let table = Table::builder(TABLE_NAME)
        .column(Column::new("Number", ColumnType::Currency).flagged(required))
        .column(Column::new("Scatter", ColumnType::Currency).flagged(required))
        .column(Column::new("Version", ColumnType::Long))
        .column(Column::new("Size", ColumnType::Long))
        .column(Column::new("Check", ColumnType::Currency))
        .column(Column::new("ShortPad", ColumnType::Binary))
        .column(Column::new("LongPad", ColumnType::LongBinary))
        .column(Column::new("Body", ColumnType::LongBinary))
        .primary(PRIMARY_NAME, &["Number"]);
    let table = match plan.secondary {
        Secondary::Unique => table.unique(INDEX_NAME, &["Scatter"]),
        Secondary::Absent => table,
    };
    table.build().expect("the declaration is fixed and valid")
}

/// Tables as the catalog lists them.
pub(super) fn tables(plan: &Plan, layout: &Layout) -> Vec<PlacedTable> {
    let place = Place { object: layout.table.object, root: layout.table.root };
    let secondary_roots: Vec<PageNumber> = layout.index.iter().map(|index| index.root).collect();
    let mut tables = system_tables().to_vec();
    tables.push(PlacedTable::new(
        schema(plan),
        place,
        &secondary_roots,
        Some(layout.values.root),
        layout.table.owned_pages,
    ));
    tables
}
