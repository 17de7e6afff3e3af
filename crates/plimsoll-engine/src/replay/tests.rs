//! Redo must notice when a page is not what the log speaks of, and leave it alone then.

use super::misfit::{edited, of_content, of_row};
use crate::PageSize;
use crate::edit::{Edit, LaidNode, NewNode, RowChange};
use crate::error::PageDamage;
use crate::log::record::{PageEdits, RowRecord};
use crate::log::wire::TakeWire;
use crate::page::{PageMut, PageView, page_flags};

const SIZE: PageSize = PageSize::KIB_4;

fn row(line: u16, change: RowChange) -> RowRecord {
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
        change,
    }
}

/// A leaf with the row `the row`.
fn leaf() -> Vec<u8> {
    let mut bytes = vec![0; SIZE.bytes()];
    let mut page = PageMut::new(&mut bytes, SIZE);
    page.format(40, 8, page_flags::LEAF, &[]);
    page.insert(0, 0, b"key", b"the row");
    bytes
}

#[track_caller]
fn assert_told(found: Option<PageDamage>, part: &str) {
    assert!(
        matches!(&found, Some(PageDamage::Link(text)) if text.contains(part)),
        "{found:?} and not {part}"
    );
}

/// A page whose time is right and whose row is another one was written by a lost or misplaced
/// write; changing it would hide that.
#[test]
fn a_change_of_another_row_is_damage() {
    let bytes = leaf();
    let view = PageView::new(&bytes, SIZE);
    let delete = |old: &[u8]| RowChange::Delete { old: Some(old.to_vec()) };
    let splice = |at, old: &[u8]| RowChange::Splice { at, old: old.to_vec(), new: b"new".to_vec() };
    let add = |at| RowChange::Delta { at, width: 4, amount: 1 };
    for sound in [delete(b"the row"), splice(4, b"row"), add(3), RowChange::Undelete] {
        assert_eq!(of_row(&view, &row(0, sound.clone())), None);
        assert_told(of_row(&view, &row(1, sound)), "line");
    }
    assert_told(of_row(&view, &row(0, delete(b"another"))), "another row");
    assert_told(of_row(&view, &row(0, splice(4, b"raw"))), "other data");
    assert_told(of_row(&view, &row(0, splice(5, b"row"))), "other data");
    assert_told(of_row(&view, &row(0, splice(u32::MAX, b"row"))), "other data");
    assert_told(of_row(&view, &row(0, add(4))), "counter");
}

#[test]
fn what_has_no_room_on_the_page_is_damage() {
    let bytes = leaf();
    let view = PageView::new(&bytes, SIZE);
    let insert = |bytes| RowChange::Insert { data: vec![1; bytes] };
    assert_eq!(of_row(&view, &row(1, insert(100))), None);
    assert_told(of_row(&view, &row(2, insert(100))), "line");
    assert_told(of_row(&view, &row(1, insert(4040))), "room");
    let grown = RowChange::Bury { data: vec![1; 4060] };
    assert_told(of_row(&view, &row(0, grown)), "room");
}

#[test]
fn edits_that_do_not_fit_leave_the_page_alone() {
    let bytes = leaf();
    let view = PageView::new(&bytes, SIZE);
    let node = |bytes| NewNode { flags: 0, key: b"nearly".to_vec(), data: vec![1; bytes] };
    let format = |nodes, external: &[u8]| Edit::Format {
        object: 8,
        flags: page_flags::LEAF,
        previous: 0,
        next: 0,
        external: external.to_vec(),
        nodes: laid(nodes, external),
    };
    let set = |line, bytes| Edit::SetData { line, data: vec![1; bytes] };
    let external = |bytes| Edit::SetExternal { external: vec![b'k'; bytes] };
    let made = |edits: Vec<Edit>| {
        let edits = PageEdits { page: 40, dbtime_before: 1, edits };
        edited(&view, &edits)
    };
    for (edit, part) in [
        (format(vec![node(2000), node(2100)], b""), "room"),
        (format(vec![], &[1; 4060]), "room"),
        (Edit::Insert { line: 2, node: node(1) }, "line"),
        (Edit::Insert { line: 1, node: node(4060) }, "room"),
        (Edit::Remove { line: 1 }, "line"),
        (set(1, 1), "line"),
        (set(0, 4060), "room"),
        (external(4060), "room"),
    ] {
        let after =
            vec![Edit::Remove { line: 0 }, Edit::Insert { line: 0, node: node(3) }, edit.clone()];
        assert_told(made(vec![edit]).err(), part);
        assert!(made(after[..2].to_vec()).is_ok());
        assert_told(made(after).err(), part);
    }
    // The prefix of the node goes: what is left is no page.
    let shortened = vec![
        format(vec![NewNode { flags: 0, key: vec![b'k'; 20], data: vec![] }], &[b'k'; 20]),
        external(3),
    ];
    assert_told(made(shortened).err(), "no page");
}

/// How a leaf with this prefix keeps nodes.
fn laid(nodes: Vec<NewNode>, external: &[u8]) -> Vec<LaidNode> {
    nodes.into_iter().map(|node| node.laid(page_flags::LEAF, external)).collect()
}

/// The count of nodes has 12 bits, and one of them stands for the prefix.
#[test]
fn more_nodes_than_a_page_can_count_are_no_edit() {
    let size = PageSize::KIB_32;
    let mut bytes = vec![0; size.bytes()];
    PageMut::new(&mut bytes, size).format(40, 8, page_flags::LEAF, b"");
    let node = NewNode { flags: 0, key: Vec::new(), data: Vec::new() };
    let format = |count| Edit::Format {
        object: 8,
        flags: page_flags::LEAF,
        previous: 0,
        next: 0,
        external: Vec::new(),
        nodes: laid(vec![node.clone(); count], b""),
    };
    let made = |edits: Vec<Edit>| {
        let edits = PageEdits { page: 40, dbtime_before: 1, edits };
        edited(&PageView::new(&bytes, size), &edits).map(|page| PageView::new(&page, size).lines())
    };
    let decoded = |edit: &Edit| {
        let mut wire = Vec::new();
        edit.encode(&mut wire);
        Edit::decode(&mut TakeWire::new(&wire))
    };
    assert_eq!(made(vec![format(4094)]), Ok(4094));
    assert_eq!(decoded(&format(4094)), Some(format(4094)));
    assert_told(made(vec![format(4095)]).err(), "room");
    assert_eq!(decoded(&format(4095)), None);
    let one_more = Edit::Insert { line: 0, node: node.clone() };
    assert_told(made(vec![format(4094), one_more]).err(), "room");
}

#[test]
fn an_image_of_no_page_is_damage() {
    let mut bytes = leaf();
    assert_eq!(of_content(&PageView::new(&bytes, SIZE)), None);
    bytes.fill(0xFF);
    assert_told(of_content(&PageView::new(&bytes, SIZE)), "no page");
}

/// A page whose keys are `kkkkk`, `kkkkkz` and `b`, as an edit of either kind has it.
fn wire_of_three(kind: u8, nodes: [&[u8]; 3]) -> Vec<u8> {
    let head = [kind, 8, page_flags::LEAF as u8, 0, 0, 5];
    [&head[..], b"kkkkk", &[3], nodes[0], nodes[1], nodes[2]].concat()
}

/// Log that older versions left has whole keys.
#[test]
fn a_page_that_is_made_reads_the_same_in_the_older_form_and_in_the_newer() {
    let older = wire_of_three(1, [b"\0\x05kkkkk\x01d", b"\x02\x06kkkkkz\0", b"\0\x01b\0"]);
    let newer = wire_of_three(10, [b"\x04\x05\0\x01d", b"\x06\x05\x01z\0", b"\0\x01b\0"]);
    let read = |wire: &[u8]| Edit::decode(&mut TakeWire::new(wire)).expect("it is sound");
    assert_eq!(read(&older), read(&newer));
    let mut wire = Vec::new();
    read(&older).encode(&mut wire);
    assert_eq!(wire, newer);
    let mut bytes = leaf();
    let edits = PageEdits { page: 40, dbtime_before: 1, edits: vec![read(&newer)] };
    bytes = edited(&PageView::new(&bytes, SIZE), &edits).unwrap();
    let view = PageView::new(&bytes, SIZE);
    let keys: Vec<_> = (0..3).map(|line| view.node(line).unwrap().key()).collect();
    assert_eq!(keys, [&b"kkkkk"[..], b"kkkkkz", b"b"]);
    assert_eq!((view.node(0).unwrap().data, view.node(1).unwrap().is_deleted()), (&b"d"[..], true));
}

/// Why it matters: a damaged record must be an error, and nothing may be made of it.
#[test]
fn a_node_that_asks_for_more_prefix_than_there_is_cannot_be_read() {
    let with_prefix = |prefix: &[u8]| {
        let asking = [&[4][..], prefix, b"\0\0"].concat();
        let wire = wire_of_three(10, [b"\0\x01b\0", b"\0\x01c\0", &asking]);
        Edit::decode(&mut TakeWire::new(&wire))
    };
    assert!(with_prefix(&[5]).is_some());
    for beyond in [&[0][..], &[6], &[0xFF, 0x7F], &[0xFF; 9]] {
        assert_eq!(with_prefix(beyond), None);
    }
}
