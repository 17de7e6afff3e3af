//! The catalog against its shadow, against the list of object numbers, and against the header.

use std::collections::BTreeSet;

use super::finding::{Finding, Findings};
use super::sums::Sum;
use crate::DatabaseHeader;
use crate::catalog::{PlacedTable, system};

/// Types in MSysObjids.
const TABLE: u16 = 1;
const INDEX: u16 = 3;
const LONG_VALUES: u16 = 4;
/// Bit of the header's flags: there is no shadow.
const NO_SHADOW: u32 = 1;

/// What the walks through the system tables have gathered; nothing of a table that could not be
/// read in full.
#[derive(Default)]
pub(super) struct SystemTables {
    pub catalog: Option<Sum>,
    pub shadow: Option<Sum>,
    pub objects: Option<Vec<(u32, u32, u16)>>,
}

pub(super) fn check(
    findings: &mut Findings,
    header: &DatabaseHeader,
    tables: &[PlacedTable],
    seen: &SystemTables,
) {
    if let (Some(catalog), Some(shadow)) = (seen.catalog, seen.shadow)
        && header.flags & NO_SHADOW == 0
        && shadow != catalog
    {
        findings.push(Finding::ShadowDiffers {
            catalog_rows: catalog.count(),
            shadow_rows: shadow.count(),
        });
    }
    let objects = objects(tables);
    check_numbers(findings, header, &objects);
    if let Some(listed) = &seen.objects {
        let listed: BTreeSet<_> = listed.iter().copied().collect();
        let expected: BTreeSet<_> = objects.into_iter().collect();
        for (object, table_object, _) in expected.difference(&listed) {
            let (object, table_object) = (*object, *table_object);
            findings.push(Finding::ObjectUnlisted { object, table_object });
        }
        for (object, table_object, _) in listed.difference(&expected) {
            let (object, table_object) = (*object, *table_object);
            findings.push(Finding::ObjectUnknown { object, table_object });
        }
    }
}

/// Object, table object and type of every tree of the catalog.
fn objects(tables: &[PlacedTable]) -> Vec<(u32, u32, u16)> {
    let mut objects = Vec::new();
    for placed in tables {
        let table = placed.place.object;
        objects.push((table, table, TABLE));
        objects.extend(placed.secondary_places().map(|place| (place.object, table, INDEX)));
        objects.extend(placed.long_values.map(|place| (place.object, table, LONG_VALUES)));
    }
    objects
}

fn check_numbers(findings: &mut Findings, header: &DatabaseHeader, objects: &[(u32, u32, u16)]) {
    let mut seen = BTreeSet::from([system::DATABASE_OBJECT]);
    for (object, ..) in objects {
        let (object, object_max) = (*object, header.object_max);
        if !seen.insert(object) {
            findings.push(Finding::ObjectTwice { object });
        }
        if object > object_max {
            findings.push(Finding::ObjectAboveHeader { object, object_max });
        }
    }
}
