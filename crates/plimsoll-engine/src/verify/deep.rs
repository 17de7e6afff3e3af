//! The deep check: does the whole database fit together?
//!
//! The page check says that every page is as it was written. This one says that what was written makes one database:
//!
//! - **trees**: levels, separators, order of keys, links between leaves, every page of the tree's own object;
//! - **space**: the extents of a tree do not overlap, free ones are owned, children's extents come out of their parent's and are not
//!   free there, and every page that is not free is reached exactly once;
//! - **rows**: every record can be decoded and its key is the one it is stored under;
//! - **indexes**: exactly one entry per row that should have one;
//! - **long values**: whole, referred to as often as they count, none forgotten;
//! - **catalog**: its shadow is equal and the list of objects complete.
//!
//! Rows and index entries are compared by sums of strong hashes, so the check reads every page once and needs one bit of memory per page,
//! whatever the order of the index. Indexes whose keys we cannot make (Unicode, several values) are walked but not compared, and listed.

mod content;
mod extents;
mod long_values;
mod space;
mod sum;
mod walk;

use plimsoll_io::{Files, Handle};
use serde::Serialize;

use crate::PageNumber;
use crate::catalog::PlacedTable;
use crate::reader::{DatabaseReader, ReadError, WhenDirty};

use content::{check_tables, walk_tree};
use space::{SpaceMap, catalog_trees};

pub use space::KnownTree;

/// What the deep check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeepReport {
    /// Trees walked, space trees not counted.
    pub trees: u64,
    /// Pages reached.
    pub pages: u64,
    /// Rows decoded.
    pub rows: u64,
    /// Index entries compared with rows.
    pub index_entries: u64,
    /// Long values checked.
    pub long_values: u64,
    /// Free pages.
    pub pages_free: u64,
    /// Pages at the end of the file that the database does not own yet.
    pub pages_beyond: u64,
    /// Indexes that were not compared with their rows, and why.
    pub not_compared: Vec<String>,
    /// What does not fit.
    pub findings: Vec<DeepFinding>,
    /// Findings beyond those listed.
    pub findings_not_listed: u64,
}

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeepFinding {
    /// Object it concerns.
    pub object: u32,
    /// Page it concerns, 0 if none in particular.
    pub page: PageNumber,
    /// What is wrong.
    pub problem: String,
}

/// Collects findings up to a limit.
struct Findings {
    report: DeepReport,
    findings_max: usize,
}

impl Findings {
    fn add(&mut self, object: u32, page: PageNumber, problem: impl Into<String>) {
        if self.report.findings.len() >= self.findings_max {
            self.report.findings_not_listed += 1;
            return;
        }
        self.report.findings.push(DeepFinding {
            object,
            page,
            problem: problem.into(),
        });
    }

    fn add_error(&mut self, object: u32, error: &ReadError) {
        self.add(object, 0, error.to_string());
    }
}

impl DeepReport {
    /// Whether everything fits.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks how a database fits together. Its pages should have been checked before: a damaged page ends the walk of its tree.
///
/// # Errors
/// When the database cannot be opened, was not shut down cleanly, or its catalog cannot be read.
pub async fn verify_deep(
    files: &Files,
    handle: &Handle,
    path: &std::path::Path,
    findings_max: usize,
) -> Result<DeepReport, ReadError> {
    let reader = DatabaseReader::open(files, handle, path, WhenDirty::Refuse).await?;
    let mut findings = Findings {
        report: DeepReport::default(),
        findings_max,
    };
    check_header(&reader, &mut findings);
    let trees = catalog_trees(&reader);
    let mut map = SpaceMap::read(&reader, &trees, &mut findings).await;
    check_tables(&reader, &mut map, &mut findings).await;
    map.check_unreached(&mut findings);
    reader.close().await?;
    Ok(findings.report)
}

/// Checks the trees and the space of a clean database that has no catalog, or trees that its catalog does not name: every tree must be listed,
/// parents first, beginning with [`KnownTree::DATABASE`].
///
/// # Errors
/// When the database cannot be opened or was not shut down cleanly.
pub async fn verify_trees(
    files: &Files,
    handle: &Handle,
    path: &std::path::Path,
    trees: &[KnownTree],
    findings_max: usize,
) -> Result<DeepReport, ReadError> {
    let reader = DatabaseReader::open_without_catalog(files, handle, path, WhenDirty::Refuse).await?;
    let mut findings = Findings {
        report: DeepReport::default(),
        findings_max,
    };
    let mut map = SpaceMap::read(&reader, trees, &mut findings).await;
    for tree in trees {
        let count = &mut |_: PageNumber, _: &[u8], _: &[u8]| {};
        walk_tree(&reader, tree.place, &mut map, &mut findings, count).await;
    }
    map.check_unreached(&mut findings);
    reader.close().await?;
    Ok(findings.report)
}

fn check_header(reader: &DatabaseReader, findings: &mut Findings) {
    let header = reader.header();
    let object_max = reader
        .tables()
        .iter()
        .map(PlacedTable::object_max)
        .max()
        .unwrap_or(0);
    if object_max > header.object_max {
        let problem = format!(
            "the header says that object numbers go up to {}",
            header.object_max
        );
        findings.add(object_max, 0, problem);
    }
    if (header.generation_min_required, header.generation_max_required) != (0, 0) {
        findings.add(0, 0, "the header of a clean database asks for log generations");
    }
}
