//! Redo must notice when a page is not what the log speaks of.

use super::mismatch;
use crate::PageSize;
use crate::edit::RowChange;
use crate::error::PageDamage;
use crate::log::record::RowRecord;
use crate::page::{PageMut, PageView, page_flags};

fn delete_of(old: &[u8], line: u16) -> RowRecord {
    RowRecord {
        transaction: 1,
        database: 1,
        root: 31,
        object: 8,
        page: 40,
        dbtime: 2,
        dbtime_before: 1,
        line,
        compensation: false,
        key: b"key".to_vec(),
        change: RowChange::Delete {
            old: Some(old.to_vec()),
        },
    }
}

/// A page whose time is right and whose row is another one was written by a lost or misplaced write; deleting it would hide that.
#[test]
fn a_delete_of_another_row_is_damage() {
    let size = PageSize::KIB_4;
    let mut bytes = vec![0; size.bytes()];
    let mut page = PageMut::new(&mut bytes, size);
    page.format(40, 8, page_flags::LEAF, &[]);
    page.insert(0, 0, b"key", b"the row");
    let view = PageView::new(&bytes, size);
    assert_eq!(mismatch(&view, &delete_of(b"the row", 0)), None);
    let other = mismatch(&view, &delete_of(b"another", 0));
    assert!(matches!(other, Some(PageDamage::Link(text)) if text.contains("another row")));
    let beyond = mismatch(&view, &delete_of(b"the row", 1));
    assert!(matches!(beyond, Some(PageDamage::Link(text)) if text.contains("line")));
}
