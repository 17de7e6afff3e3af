//! Walks the leaves of a tree from left to right, guided by its branch pages, reading ahead among
//! the children of one branch.
//!
//! A tree in a damaged file may lead anywhere. Every page is reached at most once per step down,
//! the number of levels and the number of pages are bounded by the file, and every page must belong
//! to the tree's object.

use std::collections::VecDeque;

use plimsoll_io::Buffer;

use super::{DatabaseReader, PendingPage, ReadError};
use crate::catalog::Place;
use crate::page::{PageView, page_flags};
use crate::{FormatError, PageNumber, PageSize};

/// More levels than the largest possible tree has.
const LEVELS_MAX: usize = 24;
/// Reads in flight ahead of a scan.
const READ_AHEAD_PAGES: usize = 16;

/// A page that was read and whose checksum is right.
#[derive(Debug)]
pub struct LoadedPage {
    number: PageNumber,
    buffer: Buffer,
    size: PageSize,
}

impl LoadedPage {
    pub(super) fn new(number: PageNumber, buffer: Buffer, size: PageSize) -> Self {
        Self { number, buffer, size }
    }

    /// Its number.
    pub fn number(&self) -> PageNumber {
        self.number
    }

    /// Its content.
    pub fn view(&self) -> PageView<'_> {
        PageView::new(&self.buffer, self.size)
    }
}

/// A branch page on the way to the current leaf.
struct Branch {
    page: LoadedPage,
    /// First line whose child was not asked for yet.
    next_line: usize,
    /// Children asked for, in order.
    ahead: VecDeque<PendingPage>,
}

/// See [`DatabaseReader::scan`].
pub struct TreeScan {
    reader: DatabaseReader,
    place: Place,
    /// Where the scan begins, until its first leaf is found.
    from_key: Option<Vec<u8>>,
    branches: Vec<Branch>,
    read_ahead: usize,
    pages_seen: u64,
    is_started: bool,
    leaf: Option<LoadedPage>,
}

impl TreeScan {
    pub(super) fn new(reader: DatabaseReader, place: Place, from_key: Vec<u8>) -> Self {
        Self {
            reader,
            place,
            from_key: Some(from_key).filter(|key| !key.is_empty()),
            branches: Vec::new(),
            read_ahead: READ_AHEAD_PAGES,
            pages_seen: 0,
            is_started: false,
            leaf: None,
        }
    }

    /// Limits how many leaves are read ahead; 1 for a look at a single place.
    pub fn with_read_ahead(mut self, pages: usize) -> Self {
        self.read_ahead = pages.clamp(1, READ_AHEAD_PAGES);
        self
    }

    /// The database.
    pub fn reader(&self) -> &DatabaseReader {
        &self.reader
    }

    /// The next leaf, or `None` at the end. The first leaf of a scan from a key may begin with
    /// smaller keys.
    ///
    /// # Errors
    /// When a page on the way is damaged or the tree is malformed.
    pub async fn next_leaf(&mut self) -> Result<Option<&LoadedPage>, ReadError> {
        self.reader.pause().await;
        self.leaf = None;
        let mut page = if self.is_started {
            self.next_child().await?
        } else {
            self.is_started = true;
            Some(self.load(self.place.root, 0).await?)
        };
        while let Some(found) = page {
            if found.view().is_leaf() {
                self.from_key = None;
                return Ok(Some(self.leaf.insert(found)));
            }
            self.descend(found)?;
            page = self.next_child().await?;
        }
        Ok(None)
    }

    /// The current leaf.
    pub fn leaf(&self) -> Option<&LoadedPage> {
        self.leaf.as_ref()
    }

    async fn load(&mut self, page: PageNumber, parent_flags: u32) -> Result<LoadedPage, ReadError> {
        let pending = self.reader.start_read(page)?;
        self.accept(pending, parent_flags).await
    }

    async fn accept(
        &mut self,
        pending: PendingPage,
        parent_flags: u32,
    ) -> Result<LoadedPage, ReadError> {
        let loaded = self.reader.finish_read(pending).await?;
        let (page, view) = (loaded.number(), loaded.view());
        let expected = self.place.object;
        if view.object() != expected {
            let found = view.object();
            return Err(self.reader.fault(FormatError::WrongObject { page, found, expected }));
        }
        self.pages_seen += 1;
        let must_be_leaf = parent_flags & page_flags::PARENT_OF_LEAF != 0;
        let leads_in_circles = self.pages_seen > u64::from(self.reader.page_max())
            || (must_be_leaf && !view.is_leaf());
        if leads_in_circles {
            return Err(self.circle(page));
        }
        Ok(loaded)
    }

    fn circle(&self, page: PageNumber) -> ReadError {
        let object = self.place.object;
        self.reader.fault(FormatError::Circle { object, page })
    }

    fn descend(&mut self, page: LoadedPage) -> Result<(), ReadError> {
        if self.branches.len() >= LEVELS_MAX {
            return Err(self.circle(page.number()));
        }
        let next_line = match &self.from_key {
            Some(key) => {
                self.reader.view_fault(page.number(), page.view(), |view| view.find_child(key))?
            }
            None => 0,
        };
        self.branches.push(Branch { page, next_line, ahead: VecDeque::new() });
        Ok(())
    }

    /// The next child of the lowest branch that has one; finished branches are dropped.
    async fn next_child(&mut self) -> Result<Option<LoadedPage>, ReadError> {
        loop {
            let Some(branch) = self.branches.last_mut() else {
                return Ok(None);
            };
            let parent_flags = branch.page.view().flags();
            // Only leaves are read ahead: of branches, the next one is needed long after.
            let wanted =
                if parent_flags & page_flags::PARENT_OF_LEAF != 0 { self.read_ahead } else { 1 };
            while branch.ahead.len() < wanted && branch.next_line < branch.page.view().lines() {
                let (page, line) = (branch.page.number(), branch.next_line);
                let child =
                    self.reader.view_fault(page, branch.page.view(), |view| view.child(line))?;
                branch.ahead.push_back(self.reader.start_read(child)?);
                branch.next_line += 1;
            }
            match branch.ahead.pop_front() {
                Some(pending) => return self.accept(pending, parent_flags).await.map(Some),
                None => self.branches.pop(),
            };
        }
    }
}
