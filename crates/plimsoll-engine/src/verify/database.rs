//! Databases: two headers, then pages.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{DiskError, File, Handle, is_zero};

use super::misplaced::settle_doubts;
use super::report::{FileReport, Finding, FindingClass, HeaderCheck, Unreadable};
use super::scan::{Checker, ScanPlan, scan};
use super::used::{Reach, reach};
// Circle: what is asked of files of every kind is declared above them.
use super::{Depth, Progress, ProgressSink, VerifyOptions};
use crate::checksum::header_checksum;
use crate::deep::PageRange;
use crate::flushmap::FlushMap;
use crate::page::PageView;
use crate::reader::ReadError;
use crate::{DatabaseHeader, DatabaseState, PageClass, PageNumber, PageSize, classify, mend};

/// Bytes between two progress reports.
const PROGRESS_BYTES: u64 = 16 << 20;
/// More stretches of pages never written than any database has that was used and not made up.
const BLANK_RANGES_MAX: usize = 1 << 20;

/// The page size of a database without a sound header: that at which the first page is sound.
pub(super) fn guess_page_size(start: &[u8]) -> Option<PageSize> {
    PageSize::ALL.into_iter().find(|size| {
        let offset = size.offset_of(1) as usize;
        let page = start.get(offset..offset + size.bytes());
        page.is_some_and(|page| classify(page, 1) == PageClass::Ok)
    })
}

struct PageChecker {
    report: FileReport,
    size: PageSize,
    /// Pages from this one on are past the end of the whole pages.
    page_end: u64,
    /// The last page that the database owns, where that is known.
    owned_max: Option<PageNumber>,
    findings_max: usize,
    bytes_done: u64,
    bytes_reported: u64,
    progress: Option<ProgressSink>,
    /// Pages never written, in no particular order, if they are asked for; too many of them are
    /// given up.
    blank: Option<Vec<PageRange>>,
    /// What the last write of each page carried, where that is known.
    map: Option<FlushMap>,
}

impl Checker for PageChecker {
    fn check(&mut self, offset: u64, bytes: &[u8]) {
        let page_bytes = self.size.bytes();
        let first = offset / page_bytes as u64;
        for (number, page) in bytes.chunks_exact(page_bytes).enumerate() {
            // Physical pages 0 and 1 are the headers.
            if let Some(page_number) =
                (first + number as u64).checked_sub(1).filter(|number| *number > 0)
            {
                self.check_page(page_number as PageNumber, page);
            }
        }
        self.advance(bytes.len() as u64);
    }

    fn unreadable(&mut self, offset: u64, bytes: u64, error: DiskError) {
        let page_bytes = self.size.bytes() as u64;
        let headers = 2u64.saturating_sub(offset / page_bytes);
        let pages = (bytes / page_bytes).saturating_sub(headers);
        self.report.unreadable += pages;
        self.report.pages_seen += pages;
        if self.report.unreadable_ranges.len() < self.findings_max {
            self.report.unreadable_ranges.push(Unreadable {
                offset,
                bytes,
                error: error.to_string(),
            });
        }
        self.advance(bytes);
    }
}

impl PageChecker {
    fn check_page(&mut self, page_number: PageNumber, page: &[u8]) {
        let class = self.classify_page(page_number, page);
        let is_last = u64::from(page_number) + 2 == self.page_end;
        let is_behind = self.owned_max.is_none_or(|last| page_number > last);
        if is_last && is_behind && class != PageClass::Ok && is_trailer(page) {
            // Backups end in a page with the checksum of a header: our patch files in a third copy
            // of it, those of Windows in what recovery needs.
            let is_whole =
                u32::from_le_bytes([page[0], page[1], page[2], page[3]]) == header_checksum(page);
            self.report.headers.push(match is_whole {
                true => HeaderCheck::Ok,
                false => HeaderCheck::Bad,
            });
            return;
        }
        self.report.pages_seen += 1;
        let finding_class = match class {
            PageClass::Ok => {
                self.note_dbtime(page_number, page);
                self.note_flush_type(page_number, page);
                return;
            }
            PageClass::Uninitialized => {
                self.report.uninitialized += 1;
                // Where free pages are known, those that are needed are named by that.
                if self.blank.is_none() {
                    self.note_flush_type(page_number, page);
                }
                self.note_blank(page_number);
                return;
            }
            PageClass::Correctable { .. } => {
                self.report.correctable += 1;
                FindingClass::Correctable
            }
            PageClass::WrongPageNumber { found, .. }
                if self.size.is_large() || self.is_in_file(found) =>
            {
                self.report.wrong_page_number += 1;
                FindingClass::WrongPageNumber { found }
            }
            PageClass::Bad { damage } | PageClass::WrongPageNumber { damage, .. } => {
                self.report.bad += 1;
                let found = damage.page_if_misplaced(page_number);
                FindingClass::Bad {
                    page_if_misplaced: found.filter(|found| self.is_in_file(*found)),
                }
            }
        };
        self.note_finding(page_number, page, class, finding_class);
    }

    fn classify_page(&self, page_number: PageNumber, page: &[u8]) -> PageClass {
        let class = classify(page, page_number);
        if let PageClass::Correctable { damage, .. } = class
            && mend(&mut page.to_vec(), page_number).is_none()
        {
            return PageClass::Bad { damage };
        }
        class
    }

    fn is_in_file(&self, page: PageNumber) -> bool {
        page > 0 && u64::from(page) + 1 < self.page_end
    }

    fn note_blank(&mut self, page: PageNumber) {
        let Some(blank) = &mut self.blank else { return };
        let is_room = blank.len() < BLANK_RANGES_MAX;
        match blank.last_mut() {
            Some(range) if range.1 + 1 == page => range.1 = page,
            _ if is_room => blank.push((page, page)),
            _ => self.blank = None,
        }
    }

    fn note_flush_type(&mut self, page_number: PageNumber, page: &[u8]) {
        let Some(map) = &self.map else { return };
        let expected = map.get(page_number);
        if expected != 0 && expected != PageView::new(page, self.size).flush_type() {
            self.report.note_lost(page_number);
        }
    }

    fn note_dbtime(&mut self, page_number: PageNumber, page: &[u8]) {
        let dbtime = PageView::new(page, self.size).dbtime();
        let is_higher = dbtime > self.report.dbtime_max;
        // Pages come in no particular order; of several with the highest time the first is named.
        let is_earlier =
            dbtime == self.report.dbtime_max && page_number < self.report.dbtime_max_page;
        if is_higher || is_earlier {
            (self.report.dbtime_max, self.report.dbtime_max_page) = (dbtime, page_number);
        }
    }

    fn note_finding(
        &mut self,
        page_number: PageNumber,
        page: &[u8],
        class: PageClass,
        finding_class: FindingClass,
    ) {
        if self.report.findings.len() >= self.findings_max {
            self.report.findings_not_listed += 1;
            return;
        }
        let view = PageView::new(page, self.size);
        let mut finding = Finding {
            page: page_number,
            offset: self.size.offset_of(page_number),
            class: finding_class,
            block: 0,
            stored: String::new(),
            computed: String::new(),
            flipped_bits: Vec::new(),
            object: view.object(),
            flags: view.flags(),
            dbtime: view.dbtime(),
        };
        match class {
            PageClass::Bad { damage } | PageClass::WrongPageNumber { damage, .. } => {
                finding.damage(damage)
            }
            PageClass::Correctable { bits, damage } => {
                finding.damage(damage);
                finding.flips(bits);
            }
            PageClass::Ok | PageClass::Uninitialized => {}
        }
        self.report.findings.push(finding);
    }

    fn advance(&mut self, bytes: u64) {
        self.bytes_done += bytes;
        let is_due = self.bytes_done - self.bytes_reported >= PROGRESS_BYTES
            || self.bytes_done == self.report.file_bytes;
        if let Some(progress) = self.progress.as_ref().filter(|_| is_due) {
            self.bytes_reported = self.bytes_done;
            let now = Progress {
                path: self.report.path.clone(),
                bytes_done: self.bytes_done,
                bytes_total: self.report.file_bytes,
                damaged: self.report.damaged(),
            };
            progress(&now);
        }
    }
}

/// Pages of a database that were never written; `None` where they were not asked for.
pub(super) type BlankPages = Option<Vec<PageRange>>;

/// Checks a database whose first bytes are `start`. Without a header the page size is found from
/// the first page.
pub(super) async fn verify_database(
    file: &File,
    handle: &Handle,
    options: &VerifyOptions,
    start: &[u8],
    header: Option<DatabaseHeader>,
    map: Option<(PathBuf, FlushMap)>,
) -> Result<(FileReport, BlankPages), ReadError> {
    let size = match &header {
        Some(header) => header.page_size(),
        None => guess_page_size(start),
    };
    let size = size.expect("callers know the page size");
    let (reach, unread) = match reach(file, size).await {
        Ok(reach) => (reach, None),
        Err(error) => (Reach::Unknown, Some(error)),
    };
    let page_bytes = size.bytes() as u64;
    let length_bytes = file.opened().length_bytes;
    let file_bytes = match reach.last_known() {
        Some(last) if file.opened().is_device => size.file_bytes(last).min(length_bytes),
        _ => length_bytes,
    };
    let mut report = FileReport::new(file.path(), "database", file_bytes, size.bytes() as u32);
    let is_clean = header.as_ref().is_some_and(|header| header.state == DatabaseState::Clean);
    (report.pages_missing, report.is_more_missing) = reach.pages_missing(size, file_bytes);
    if let (Reach::Blank(page), true) = (reach, is_clean) {
        report.note_blank(&[(page, page)]);
    }
    let (map_path, map) = map.unzip();
    report.flush_map = map_path;
    report.state = header.as_ref().map(|header| format!("{:?}", header.state));
    report.trailing_bytes = file_bytes % page_bytes;
    report.headers = (0..2).map(|copy| check_header(start, copy, size)).collect();
    let checker = Rc::new(RefCell::new(PageChecker {
        report,
        size,
        page_end: file_bytes / page_bytes,
        owned_max: reach.last_known(),
        findings_max: options.findings_max,
        bytes_done: 0,
        bytes_reported: 0,
        progress: options.progress.clone(),
        blank: (options.depth == Depth::Space && is_clean).then(Vec::new),
        map,
    }));
    let plan = ScanPlan {
        start: 0,
        end: file_bytes / page_bytes * page_bytes,
        read_bytes: options.read_bytes,
        reads_outstanding: options.reads_outstanding,
    };
    let counts = scan(file, handle, plan, checker.clone()).await;
    let (mut report, blank) = {
        let mut checker = checker.borrow_mut();
        let report =
            std::mem::replace(&mut checker.report, FileReport::new(file.path(), "database", 0, 0));
        (report, checker.blank.take())
    };
    report.reads = counts.reads;
    report.bytes_read = counts.bytes_read;
    settle_doubts(file, size, &mut report).await;
    // A page that still cannot be read was found unreadable by itself. One that can be read by now
    // was missed when it was needed.
    if let Some(error) = unread.filter(|_| report.unreadable == 0) {
        report.reasons.push(format!("how far it reaches could not be read: {error}"));
    }
    Ok((report, blank))
}

/// Whether the last page is the trailer of a backup and no page of a tree: it has neither database
/// time nor object, and what would be a page's number is 0 or the mark of a header.
fn is_trailer(page: &[u8]) -> bool {
    const DBTIME: std::ops::Range<usize> = 8..16;
    const OBJECT: std::ops::Range<usize> = 24..28;
    let is_copy = DatabaseHeader::decode(page).is_ok();
    is_copy
        || (!is_zero(page)
            && is_zero(&page[4..8])
            && is_zero(&page[DBTIME])
            && is_zero(&page[OBJECT]))
}

fn check_header(start: &[u8], copy: usize, size: PageSize) -> HeaderCheck {
    let bytes = start.get(copy * size.bytes()..(copy + 1) * size.bytes());
    match bytes.map(DatabaseHeader::decode) {
        Some(Ok(header)) if header.page_size() == Some(size) => HeaderCheck::Ok,
        _ => HeaderCheck::Bad,
    }
}
