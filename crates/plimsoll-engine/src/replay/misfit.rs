//! Whether what the log says can be done to a page as it is. It always can where the two belong
//! together; where they do not (a write that was lost or went elsewhere, a log made by somebody
//! else) the page is named as damaged, and nothing is done to it.

use crate::edit::{Edit, LaidNode, RowChange};
use crate::error::PageDamage;
use crate::log::record::{PageEdits, RowRecord};
use crate::page::{PageMut, PageView, TAG_BYTES, TAGS_MAX, page_flags};

/// Keys have their length in thirteen bits.
const KEY_BYTES_LIMIT: usize = 0x2000;

const NO_LINE: &str = "the log names a line the page does not have";
const NO_ROOM: &str = "the log puts more on the page than it has room for";
const NO_PAGE: &str = "what the log makes of it is no page";

/// Why the change of a row cannot be made.
pub(super) fn of_row(page: &PageView<'_>, row: &RowRecord) -> Option<PageDamage> {
    row_misfit(page, row).map(PageDamage::Link)
}

fn row_misfit(page: &PageView<'_>, row: &RowRecord) -> Option<&'static str> {
    let line = usize::from(row.line);
    if let RowChange::Insert { data } = &row.change {
        return insert_misfit(page, line, &row.key, data);
    }
    let Some(present) = data_of(page, line) else {
        return Some(NO_LINE);
    };
    if row.change.growth_bytes(present.len()) > page.free_bytes() {
        return Some(NO_ROOM);
    }
    row.change.disagrees(present)
}

/// The page after the edits, or why they cannot be made.
pub(super) fn edited(page: &PageView<'_>, edits: &PageEdits) -> Result<Vec<u8>, PageDamage> {
    let mut bytes = page.bytes().to_vec();
    let mut edited = PageMut::new(&mut bytes, page.size());
    for edit in &edits.edits {
        if let Some(why) = edit_misfit(&edited.view(), edit) {
            return Err(PageDamage::Link(why));
        }
        edit.apply(&mut edited, edits.page);
    }
    of_content(&edited.view()).map_or(Ok(bytes), Err)
}

/// Why this is not the content of a page.
pub(super) fn of_content(page: &PageView<'_>) -> Option<PageDamage> {
    page.check_bounds().err().map(|_| PageDamage::Link(NO_PAGE))
}

fn edit_misfit(page: &PageView<'_>, edit: &Edit) -> Option<&'static str> {
    match edit {
        Edit::Format { flags, external, nodes, .. } => {
            let room_bytes = page.size().bytes() - page.size().header_bytes() - TAG_BYTES;
            let is_root = flags & page_flags::ROOT != 0;
            let cost_bytes = |node: &LaidNode| {
                PageMut::node_cost_bytes(external, is_root, &node.key(external), node.data())
            };
            // Whole keys are made of one node at a time, and of none that is too long.
            let fits = nodes.len() < TAGS_MAX
                && nodes.iter().all(|node| node.key_bytes() < KEY_BYTES_LIMIT)
                && external.len() + nodes.iter().map(cost_bytes).sum::<usize>() <= room_bytes;
            (!fits).then_some(NO_ROOM)
        }
        Edit::Insert { line, node } => {
            insert_misfit(page, usize::from(*line), &node.key, &node.data)
        }
        Edit::Remove { line } => data_of(page, usize::from(*line)).is_none().then_some(NO_LINE),
        Edit::SetData { line, data } => match data_of(page, usize::from(*line)) {
            None => Some(NO_LINE),
            Some(present) => growth_misfit(page, present.len(), data.len()),
        },
        Edit::SetExternal { external } => {
            growth_misfit(page, page.external().map_or(0, <[u8]>::len), external.len())
        }
        Edit::Truncate { .. }
        | Edit::SetSiblings { .. }
        | Edit::MadeBy { .. }
        | Edit::DroppedBy { .. } => None,
    }
}

fn data_of<'a>(page: &PageView<'a>, line: usize) -> Option<&'a [u8]> {
    let found = (line < page.lines()).then(|| page.node(line));
    found?.ok().map(|node| node.data)
}

fn growth_misfit(page: &PageView<'_>, present_bytes: usize, bytes: usize) -> Option<&'static str> {
    (bytes.saturating_sub(present_bytes) > page.free_bytes()).then_some(NO_ROOM)
}

fn insert_misfit(
    page: &PageView<'_>,
    line: usize,
    key: &[u8],
    data: &[u8],
) -> Option<&'static str> {
    if line > page.lines() {
        return Some(NO_LINE);
    }
    let Ok(external) = page.external() else {
        return Some(NO_PAGE);
    };
    let needed_bytes = PageMut::node_cost_bytes(external, page.is_root(), key, data);
    (key.len() >= KEY_BYTES_LIMIT || !page.has_room_for(needed_bytes)).then_some(NO_ROOM)
}
