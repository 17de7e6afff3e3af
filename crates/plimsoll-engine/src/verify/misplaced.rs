//! Decides the cases that a small page's checksum alone cannot: misplaced, or a flip in the stored
//! checksum?
//!
//! A small page carries no page number of its own. When the damage is one bit of the XOR half,
//! either the page belongs to the place that differs in that bit, or that bit of the stored
//! checksum flipped. The neighbours know: the leaf to the left of a page names it as its right
//! neighbour. Failing that, the page that lies at the other place tells whether both belong to one
//! tree.

use plimsoll_io::{Context, File, Purpose};

use super::report::{FileReport, FindingClass};
use crate::page::{PageView, page_flags};
use crate::{PageClass, PageNumber, PageSize, classify};

/// Looks again at every damaged page that may be a misplaced one, and says so where the evidence
/// does.
pub(super) async fn settle_doubts(file: &File, size: PageSize, report: &mut FileReport) {
    for at in 0..report.findings.len() {
        let finding = &report.findings[at];
        let FindingClass::Bad { page_if_misplaced: Some(found) } = finding.class else {
            continue;
        };
        if is_misplaced(file, size, finding.page, found).await {
            report.findings[at].class = FindingClass::WrongPageNumber { found };
            report.bad -= 1;
            report.wrong_page_number += 1;
        }
    }
}

async fn read(file: &File, size: PageSize, page: PageNumber) -> Option<Vec<u8>> {
    let is_in_file =
        page > 0 && size.offset_of(page) + size.bytes() as u64 <= file.opened().length_bytes;
    if !is_in_file {
        return None;
    }
    let buffer = file.allocate(size.bytes());
    let answer = file.read(size.offset_of(page), buffer, Context::of(Purpose::Checksum)).await;
    answer.ok().map(|buffer| buffer.to_vec())
}

/// What the page at `page` says of itself, if it is sound.
async fn sound(file: &File, size: PageSize, page: PageNumber) -> Option<Vec<u8>> {
    let bytes = read(file, size, page).await?;
    (classify(&bytes, page) == PageClass::Ok).then_some(bytes)
}

async fn is_misplaced(file: &File, size: PageSize, here: PageNumber, found: PageNumber) -> bool {
    let Some(bytes) = read(file, size, here).await else {
        return false;
    };
    let page = PageView::new(&bytes, size);
    if let Some(left) = sound(file, size, page.previous()).await {
        let next = PageView::new(&left, size).next();
        if next == here || next == found {
            return next == found;
        }
    }
    if let Some(right) = sound(file, size, page.next()).await {
        let previous = PageView::new(&right, size).previous();
        if previous == here || previous == found {
            return previous == found;
        }
    }
    // Without neighbours: a misplaced page leaves an older version of itself, or nothing, where it
    // belongs.
    let Some(other) = sound(file, size, found).await else {
        return true;
    };
    let other = PageView::new(&other, size);
    const LEVEL: u32 =
        page_flags::ROOT | page_flags::LEAF | page_flags::PARENT_OF_LEAF | page_flags::TREE_KIND;
    other.object() == page.object()
        && other.flags() & LEVEL == page.flags() & LEVEL
        && other.dbtime() <= page.dbtime()
}
