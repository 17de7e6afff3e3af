//! Every check a page has to pass, and what they found.

use std::cell::{Cell, RefCell};

use plimsoll_io::Buffer;

use crate::error::PageDamage;
use crate::flushmap::FlushMap;
use crate::known_page::KnownPage;
use crate::page::PageView;
use crate::page_class::{PageClass, classify, correct};
use crate::{PageNumber, PageSize};

/// What page checks found while the database was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageStatistics {
    /// Pages read and used.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Single flipped bits corrected.
    pub corrected: u64,
    /// Pages refused.
    pub refused: u64,
    /// Flush map pages that were damaged when the map was loaded.
    pub flush_map_pages_damaged: u32,
    /// Whether one copy of the header was damaged after a clean end; opening the database mends it.
    /// After a crash that is no damage.
    pub header_copy_damaged: bool,
}

/// See the module text.
pub(super) struct PageChecks {
    size: PageSize,
    pub(super) flush_map: RefCell<FlushMap>,
    statistics: Cell<PageStatistics>,
}

impl PageChecks {
    /// Checks pages of this size against a flush map.
    pub(super) fn new(
        size: PageSize,
        flush_map: FlushMap,
        statistics: PageStatistics,
    ) -> PageChecks {
        PageChecks { size, flush_map: RefCell::new(flush_map), statistics: Cell::new(statistics) }
    }

    /// What was found so far.
    pub(super) fn statistics(&self) -> PageStatistics {
        self.statistics.get()
    }

    /// Counts.
    pub(super) fn count(&self, change: impl FnOnce(&mut PageStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    /// Checks the page that begins at `position` of what was read. Where the disk vouches for it,
    /// that is what the check finds.
    pub(super) fn check_buffer(
        &self,
        page: PageNumber,
        buffer: &mut Buffer,
        position: usize,
        check_flush_type: bool,
    ) -> std::result::Result<(), PageDamage> {
        match buffer.vouch(position).and_then(|vouch| KnownPage::of(vouch, page)) {
            Some(KnownPage::Empty) => Err(PageDamage::Uninitialized),
            Some(KnownPage::Sound { flush_type }) => {
                self.check_flush_type(page, flush_type, check_flush_type)
            }
            None => {
                let bytes = &mut buffer[position..position + self.size.bytes()];
                self.check_page(page, bytes, check_flush_type)
            }
        }
    }

    /// Checks a page as read from its place; corrects single flipped bits in memory.
    fn check_page(
        &self,
        page: PageNumber,
        bytes: &mut [u8],
        check_flush_type: bool,
    ) -> std::result::Result<(), PageDamage> {
        match classify(bytes, page) {
            PageClass::Ok => {}
            PageClass::Uninitialized => return Err(PageDamage::Uninitialized),
            PageClass::Correctable { .. } => {
                correct(bytes, page);
                self.count(|statistics| statistics.corrected += 1);
            }
            PageClass::Bad { .. } => return Err(PageDamage::Checksum),
            PageClass::WrongPageNumber { found, .. } => {
                return Err(PageDamage::WrongPageNumber { found });
            }
        }
        let view = PageView::new(bytes, self.size);
        view.check_bounds()?;
        self.check_flush_type(page, view.flush_type(), check_flush_type)
    }

    fn check_flush_type(
        &self,
        page: PageNumber,
        found: u8,
        check_flush_type: bool,
    ) -> std::result::Result<(), PageDamage> {
        let expected = self.flush_map.borrow().get(page);
        if check_flush_type && expected != 0 && found != expected {
            return Err(PageDamage::LostFlush { found, expected });
        }
        if expected == 0 || !check_flush_type {
            self.flush_map.borrow_mut().set(page, found);
        }
        Ok(())
    }

    /// The flush type of a page's latest write: the map's, or else what the page says.
    pub(super) fn flush_type(&self, page: PageNumber, on_page: u8) -> u8 {
        match self.flush_map.borrow().get(page) {
            0 => on_page,
            known => known,
        }
    }
}
