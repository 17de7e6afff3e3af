//! What is known of a page without looking at it, as a modelled disk vouches for it: the page was
//! made from a rule, or its code says that it was found sound when it was written. Checking such a
//! page would find nothing else, so checking it is left out, and a page that is only checked, as
//! maintenance does, is never made.
//!
//! ```text
//! vouch = page number << 8 | flush type        flush type 0xFF: all bytes are zero, the page was never written
//! ```

use plimsoll_io::Vouch;

use crate::PageNumber;

const EMPTY: u8 = 0xFF;

/// What a check of the page would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownPage {
    /// Never written.
    Empty,
    /// Right checksums, in its place, sound bounds; written with this flush type.
    Sound { flush_type: u8 },
}

impl KnownPage {
    /// Vouches for page `page`.
    pub fn vouch(self, page: PageNumber) -> Vouch {
        let kind = match self {
            KnownPage::Empty => EMPTY,
            KnownPage::Sound { flush_type } => flush_type,
        };
        Vouch(u64::from(page) << 8 | u64::from(kind))
    }

    /// What is vouched for, if it is this page.
    pub fn of(Vouch(vouch): Vouch, page: PageNumber) -> Option<Self> {
        let kind = vouch as u8;
        let known = match kind {
            EMPTY => KnownPage::Empty,
            flush_type => KnownPage::Sound { flush_type },
        };
        (vouch >> 8 == u64::from(page)).then_some(known)
    }
}
