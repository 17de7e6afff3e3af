//! What a disk error advises. Why it matters: whoever follows wrong advice loses a day and trusts
//! nothing any more.

use std::path::Path;

use plimsoll_io::{DiskError, DiskErrorKind};

/// A write needs no new space in a file that has all of its own: only what lies below can be full.
#[test]
fn a_full_pool_is_told_from_a_full_file_system() {
    let of =
        |doing| DiskError::new(DiskErrorKind::Full, doing, Path::new("/data/one.edb")).to_string();
    assert!(of("write").contains("extend the thin pool"), "{}", of("write"));
    assert!(of("extend").contains("choose a smaller database"), "{}", of("extend"));
}
