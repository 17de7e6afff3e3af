//! For crates that write whole pages of a database themselves, without an instance, as
//! `plimsoll-prepare` does: pages laid out front to back, the pages of a fresh catalog, and what a
//! modelled disk may vouch for. A program that only uses databases needs nothing of this.

pub use crate::checksum::{SLOTS, with_best_kernel};
pub use crate::create::system::{FRESH_DBTIME_FIRST, SystemPages, space_header};
pub use crate::known_page::KnownPage;
pub use crate::page::{
    PREPARED_FLUSH_TYPE, PageBuilder, PlacedNode, node_bytes, place_nodes, set_all_flags,
};
pub use crate::page_class::is_sound_under;
