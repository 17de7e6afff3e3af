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

/// A directory where a file should be is nothing that an error number explains.
#[test]
fn a_directory_in_the_way_is_called_one() {
    let error = DiskError::from_errno(libc::EISDIR, "delete", Path::new("/log/E00tmp.log"));
    let text = error.to_string();
    for words in ["/log/E00tmp.log", "it is a directory", "move the directory away"] {
        assert!(text.contains(words), "{text}");
    }
}
