//! A sound prepared database with ways to damage one thing in it, checksums right.

use plimsoll_engine::deep::{DeepOptions, DeepReport, Finding, verify_deep};
use plimsoll_engine::page::{PageMut, PageView, page_flags};
use plimsoll_engine::{PageSize, set_checksum};
use plimsoll_prepare::{Extent, LongValues, Plan, PreparedDatabase};

use crate::golden;

pub const SIZE: PageSize = PageSize::KIB_8;
pub const PAGE_BYTES: usize = 8192;
pub const TABLE: u32 = 8;
pub const INDEX: u32 = 9;
pub const VALUES: u32 = 10;
pub const VALUE_BYTES: u32 = 30_000;

/// A sound database to be damaged.
pub struct Patient {
    pub bytes: Vec<u8>,
}

impl Patient {
    pub fn new() -> Self {
        let plan = Plan {
            long_values: Some(LongValues { every: 40, bytes: VALUE_BYTES }),
            branch_fill_percent: 3,
            free_pages: 40,
            ..Plan::new(SIZE, Extent::Records(900), 4)
        };
        let database = PreparedDatabase::new(plan).unwrap();
        let mut bytes = vec![0; database.file_bytes() as usize];
        for (index, page) in bytes.chunks_exact_mut(PAGE_BYTES).enumerate() {
            match index {
                0 | 1 => page.copy_from_slice(&database.header_page()),
                _ => database.page(index as u32 - 1, page),
            }
        }
        Self { bytes }
    }

    pub fn pages(&self) -> u32 {
        (self.bytes.len() / PAGE_BYTES) as u32 - 2
    }

    pub fn raw(&mut self, page: u32) -> &mut [u8] {
        let start = (page as usize + 1) * PAGE_BYTES;
        &mut self.bytes[start..start + PAGE_BYTES]
    }

    pub fn view(&self, page: u32) -> PageView<'_> {
        let start = (page as usize + 1) * PAGE_BYTES;
        PageView::new(&self.bytes[start..start + PAGE_BYTES], SIZE)
    }

    /// Changes a page and makes its checksum right.
    pub fn change<T>(&mut self, page: u32, change: impl FnOnce(&mut PageMut<'_>) -> T) -> T {
        let raw = self.raw(page);
        let result = change(&mut PageMut::new(raw, SIZE));
        set_checksum(raw, page);
        result
    }

    /// Changes the bytes of a page and makes its checksum right.
    pub fn poke(&mut self, page: u32, at: usize, bytes: &[u8]) {
        let raw = self.raw(page);
        raw[at..at + bytes.len()].copy_from_slice(bytes);
        set_checksum(raw, page);
    }

    /// Leaves of a tree from left to right.
    pub fn leaves(&self, object: u32) -> Vec<u32> {
        let is_leaf = |page: &u32| {
            let view = self.view(*page);
            view.object() == object && view.is_leaf() && !view.is_root()
        };
        (1..=self.pages()).filter(is_leaf).collect()
    }

    pub fn root(&self, object: u32) -> u32 {
        let is_root = |page: &u32| {
            let view = self.view(*page);
            view.object() == object && view.is_root() && view.flags() & page_flags::SPACE == 0
        };
        (1..=self.pages()).find(is_root).unwrap()
    }

    /// (first, last) of a tree's only free extent.
    pub fn free(&self, object: u32) -> (u32, u32) {
        let view = self.view(self.root(object) + 2);
        let node = view.node(0).unwrap();
        let last = u32::from_be_bytes(node.suffix.try_into().unwrap());
        (last + 1 - u32::from_le_bytes(node.data.try_into().unwrap()), last)
    }

    pub fn add_extent(&mut self, space_page: u32, last: u32, pages: u32) {
        let key = last.to_be_bytes();
        self.change(space_page, |page| {
            let line = page.view().find(&key).unwrap().unwrap_err();
            page.insert(line, 0, &key, &pages.to_le_bytes());
        });
    }

    pub fn owned_page(&self, object: u32) -> u32 {
        self.root(object) + 1
    }

    pub fn free_page(&self, object: u32) -> u32 {
        self.root(object) + 2
    }

    pub fn report(&self) -> DeepReport {
        golden::on_memory_disk(&self.bytes, |files, handle| async move {
            verify_deep(&files, &handle, golden::DATABASE, DeepOptions::default()).await.unwrap()
        })
    }

    #[track_caller]
    pub fn expect(&self, finding: Finding) {
        assert_eq!(self.report().findings, [finding]);
    }
}
