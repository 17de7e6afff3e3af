//! The deep check: sound databases pass it, and each kind of inconsistency is found by what it breaks although every checksum is right.
//!
//! Why it matters: checksums say that the disk kept what was written; only this says that what was written is a database.

#[expect(dead_code, reason = "each test file uses its part of the golden module")]
mod golden;

use std::path::Path;

use golden::{DATABASE, golden, on_memory_disk, real, synthetic};
use plimsoll_engine::page::{PageMut, PageView};
use plimsoll_engine::prepare::{Extent, LongValues, Plan, PreparedDatabase};
use plimsoll_engine::reader::ReadError;
use plimsoll_engine::verify::{DeepReport, Depth, FileVerdict, VerifyOptions, verify, verify_deep};
use plimsoll_engine::{DatabaseHeader, PageSize, set_checksum};

fn deep_result(bytes: &[u8]) -> Result<DeepReport, ReadError> {
    on_memory_disk(bytes, |files, handle| async move {
        verify_deep(&files, &handle, Path::new(DATABASE), 100).await
    })
}

fn deep(bytes: &[u8]) -> DeepReport {
    deep_result(bytes).expect("the catalog can be read")
}

/// Every synthetic database fits together, and everything in it was looked at.
#[test]
fn synthetic_databases_fit_together() {
    for (name, entry, bytes) in synthetic() {
        let report = deep(&bytes);
        assert!(report.is_sound(), "{name}: {:#?}", report.findings);
        assert_eq!(
            report.pages, entry["page_status"]["ok"],
            "{name}: every page with content is part of a tree"
        );
        let rows = entry["record_counts"].as_object().expect("counts").values();
        assert_eq!(
            report.rows,
            rows.map(|count| count.as_u64().unwrap()).sum::<u64>(),
            "{name}"
        );
        assert!(
            report.not_compared.is_empty(),
            "{name}: {:?}",
            report.not_compared
        );
        assert_eq!(report.long_values, entry["layout"]["nlv"], "{name}");
        let catalog_rows = entry["record_counts"]["MSysObjects"].as_u64().unwrap();
        let mail_rows = entry["record_counts"]["PlimsollMail"].as_u64().unwrap();
        // Name has every row of the catalog, RootObjects one per table, owner_ix one per mail.
        assert_eq!(report.index_entries, catalog_rows + 5 + mail_rows, "{name}");
    }
}

/// Databases that Windows closed cleanly fit together as well, as far as we can make their keys; a dirty one is refused.
#[test]
fn databases_made_by_windows_fit_together() {
    for (name, entry, bytes) in real() {
        if entry["dbstate"] != "CleanShutdown" {
            let error = deep_result(&bytes).expect_err("a dirty database may not fit together");
            assert!(error.to_string().contains("-550"), "{name}: {error}");
            continue;
        }
        let report = deep(&bytes);
        assert!(report.is_sound(), "{name}: {:#?}", report.findings);
        assert!(
            report.index_entries > 100,
            "{name}: most indexes are compared with their rows"
        );
    }
}

/// Prepared databases, which no tree ever grew, fit together at every page size.
#[test]
fn prepared_databases_fit_together() {
    for size in PageSize::ALL {
        let plan = Plan {
            long_values: Some(LongValues {
                every: 7,
                bytes: 20_000,
            }),
            ..Plan::new(size, Extent::Records(3000), 5)
        };
        let prepared = PreparedDatabase::new(plan).expect("a possible plan");
        let mut bytes = [prepared.header_page(), prepared.header_page()].concat();
        let mut page = vec![0; size.bytes()];
        for number in 1..=prepared.pages() {
            prepared.page(number, &mut page);
            bytes.extend_from_slice(&page);
        }
        let report = deep(&bytes);
        assert!(report.is_sound(), "{size}: {:#?}", report.findings);
        assert!(
            report.rows >= 3000 && report.long_values > 400,
            "{size}: {report:?}"
        );
        assert!(
            report.not_compared.is_empty(),
            "{size}: {:?}",
            report.not_compared
        );
    }
}

/// The command's way in: the deep check is part of the report of a file and of its verdict.
#[test]
fn the_verdict_depends_on_the_deep_check() {
    let mut forged = Forged::new("syn8k.edb");
    forged.page(29, |page| page.remove(2));
    for (depth, verdict) in [
        (Depth::Pages, FileVerdict::Sound),
        (Depth::Deep, FileVerdict::Damaged),
    ] {
        let bytes = forged.bytes.clone();
        let report = on_memory_disk(&bytes, move |files, handle| async move {
            let options = VerifyOptions {
                depth,
                ..VerifyOptions::default()
            };
            verify(&files, &handle, &[Path::new(DATABASE).to_owned()], &options).await
        });
        assert_eq!(report.files[0].verdict, verdict, "{depth:?}");
    }
}

struct Forged {
    bytes: Vec<u8>,
    size: PageSize,
}

impl Forged {
    fn new(name: &str) -> Self {
        let bytes = golden(name);
        let size = DatabaseHeader::decode(&bytes)
            .expect("a header")
            .page_size()
            .expect("a size");
        Self { bytes, size }
    }

    fn page(&mut self, page: u32, change: impl FnOnce(&mut PageMut<'_>)) {
        let start = self.size.offset_of(page) as usize;
        let bytes = &mut self.bytes[start..start + self.size.bytes()];
        change(&mut PageMut::new(bytes, self.size));
        set_checksum(bytes, page);
    }

    fn view(&self, page: u32) -> PageView<'_> {
        let start = self.size.offset_of(page) as usize;
        PageView::new(&self.bytes[start..start + self.size.bytes()], self.size)
    }

    /// The first leaf of the tree at `root`.
    fn first_leaf(&self, root: u32) -> u32 {
        let mut page = root;
        while !self.view(page).is_leaf() {
            page = self.view(page).child(0).expect("a child");
        }
        page
    }

    /// The findings contain one whose text contains `words`.
    fn check(&self, words: &str) {
        let report = deep(&self.bytes);
        let found = report
            .findings
            .iter()
            .any(|finding| finding.problem.contains(words));
        assert!(found, "no finding says {words:?}: {:#?}", report.findings);
    }
}

/// Roots of the trees of `syn4k.edb` and `syn32k.edb`, from their manifest: mail table, its index, its long values.
fn roots(name: &str) -> (u32, u32, u32) {
    let all = synthetic();
    let (_, entry, _) = all
        .iter()
        .find(|(file, ..)| file.starts_with(name))
        .expect("in the manifest");
    let page = |field: &str| entry["layout"][field].as_u64().expect("a page") as u32;
    (page("tfdp"), page("ifdp"), page("lfdp"))
}

const NAMES: [&str; 2] = ["syn4k.edb", "syn32k.edb"];

/// A row that disappears leaves its index entry and its long value behind.
#[test]
fn a_lost_row_is_found() {
    for name in NAMES {
        let (table, ..) = roots(name);
        let mut forged = Forged::new(name);
        let leaf = forged.first_leaf(table);
        // Row 5 is the first with a long value.
        forged.page(leaf, |page| page.remove(4));
        forged.check("index owner_ix of PlimsollMail has 300 entries, its rows ask for 299");
        forged.check("rows refer to long values 24 times, the values count 25 references");
    }
}

/// An index entry that points to another row is found although the numbers agree.
#[test]
fn a_wrong_index_entry_is_found() {
    for name in NAMES {
        let (_, index, _) = roots(name);
        let mut forged = Forged::new(name);
        let leaf = forged.first_leaf(index);
        forged.page(leaf, |page| {
            let last = page.view().node(3).expect("a node").data.len() - 1;
            let value = page.view().node(3).expect("a node").data[last] ^ 1;
            page.splice(3, last, 1, &[value]);
        });
        forged.check("has the right number of entries, but not those of its rows");
    }
}

/// A row whose content disagrees with its key is found.
#[test]
fn a_row_under_a_wrong_key_is_found() {
    let (table, ..) = roots("syn4k.edb");
    let mut forged = Forged::new("syn4k.edb");
    let leaf = forged.first_leaf(table);
    // The id is the first fixed column, four bytes into the record.
    forged.page(leaf, |page| page.splice(2, 4, 1, &[99]));
    forged.check("a row is stored under another key than its own");
}

/// A long value without one of its chunks is found.
#[test]
fn a_lost_chunk_is_found() {
    let (.., long_values) = roots("syn4k.edb");
    let mut forged = Forged::new("syn4k.edb");
    let leaf = forged.first_leaf(long_values);
    let last = forged.view(leaf).lines() - 1;
    forged.page(leaf, |page| page.remove(last));
    let report = deep(&forged.bytes);
    let problems: Vec<_> = report.findings.iter().map(|finding| &finding.problem).collect();
    let found = problems
        .iter()
        .any(|problem| problem.contains("of its") || problem.contains("is missing"));
    assert!(found, "{problems:?}");
}

/// Free space that is in use, and pages that nobody uses, are found.
#[test]
fn wrong_space_is_found() {
    for name in NAMES {
        let (table, ..) = roots(name);
        let mut forged = Forged::new(name);
        let leaf = forged.first_leaf(table);
        // Declare the first leaf free as well.
        let available = table + 2;
        let keys = forged.view(available).lines();
        let key = leaf.to_be_bytes();
        forged.page(available, |page| {
            let place = page.view().find(&key).expect("sound").unwrap_or_else(|line| line);
            page.insert(place, 0, &key, &1u32.to_le_bytes());
        });
        assert_eq!(forged.view(available).lines(), keys + 1);
        forged.check("uses a page that is free or not its own");
        let mut forged = Forged::new(name);
        // Forget the free space of the whole database.
        forged.page(3, |page| page.remove(0));
        forged.check("are neither free nor part of any tree");
    }
}

/// Broken links between leaves, wrong separators and foreign pages are found.
#[test]
fn broken_trees_are_found() {
    for name in NAMES {
        let (table, index, _) = roots(name);
        let sound = Forged::new(name);
        let leaf = sound.first_leaf(table);
        let next = sound.view(leaf).next();
        let mut forged = Forged::new(name);
        forged.page(leaf, |page| page.set_siblings(0, next + 1));
        forged.check("as its right neighbour");
        let mut forged = Forged::new(name);
        forged.page(table, |page| {
            let (key, data) = page
                .view()
                .node(0)
                .map(|node| (node.key(), node.data.to_vec()))
                .expect("a node");
            page.remove(0);
            // A separator that is too low: the keys of the child are not below it.
            let low = [&key[..key.len() - 1], &[0]].concat();
            page.insert(0, 0, &low[..key.len().min(2)], &data);
        });
        forged.check("its last key is not below its separator");
        let mut forged = Forged::new(name);
        forged.page(table, |page| {
            let last = page.view().lines() - 1;
            page.splice(last, 0, 4, &index.to_le_bytes());
        });
        forged.check("belongs to object 9");
    }
}

/// A catalog that differs from its shadow, and an object that MSysObjids does not list, are found.
#[test]
fn a_catalog_that_disagrees_with_its_copies_is_found() {
    for name in NAMES {
        let mut forged = Forged::new(name);
        let leaf = forged.first_leaf(24);
        let last = forged.view(leaf).lines() - 1;
        forged.page(leaf, |page| page.remove(last));
        forged.check("the shadow catalog differs from the catalog");
        let mut forged = Forged::new(name);
        forged.page(29, |page| page.remove(2));
        forged.check("MSysObjids lists");
    }
}

/// A page newer than the header's highest database time is found: recovery would take it for one from the future.
#[test]
fn a_page_from_the_future_is_found() {
    let mut forged = Forged::new("syn8k.edb");
    forged.page(30, |page| page.set_dbtime(1 << 40));
    forged.check("is higher than the header's");
}
