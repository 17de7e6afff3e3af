//! A prepared database as the content of a sparse file: a disk in memory holds it without storing
//! it.

use std::sync::Arc;

use plimsoll_io::{Content, Sparse, Vouch};

use super::PreparedDatabase;
use super::delta::PageDelta;

/// The whole file, headers included.
#[derive(Clone, Debug)]
pub struct PreparedContent {
    database: Arc<PreparedDatabase>,
    header: Vec<u8>,
}

impl PreparedContent {
    /// The content of the database's file.
    pub fn new(database: Arc<PreparedDatabase>) -> Self {
        let header = database.header_page();
        Self { database, header }
    }

    /// The content with its page-aware coding of what is written over it.
    pub fn sparse(database: &Arc<PreparedDatabase>) -> Sparse {
        Sparse {
            content: Arc::new(Self::new(database.clone())),
            delta: Arc::new(PageDelta::new(database.clone())),
        }
    }
}

impl Content for PreparedContent {
    fn unit_bytes(&self) -> usize {
        self.database.page_size().bytes()
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) {
        let place = offset / bytes.len() as u64;
        match place.checked_sub(1).map(u32::try_from) {
            None | Some(Ok(0)) => bytes.copy_from_slice(&self.header),
            Some(Ok(page)) => self.database.page(page, bytes),
            // Past the last page the format can number.
            Some(Err(_)) => bytes.fill(0),
        }
    }

    fn vouch(&self, offset: u64) -> Option<Vouch> {
        let place = offset / self.unit_bytes() as u64;
        let page = u32::try_from(place.checked_sub(1)?).ok()?;
        self.database.known(page).map(|known| known.vouch(page))
    }
}
