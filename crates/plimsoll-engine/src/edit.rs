//! What can be done to one page. The log records these, redo repeats them, and the running engine
//! applies the very same code.

mod laid_node;

pub use laid_node::LaidNode;

use crate::PageNumber;
use crate::log::wire::{PutWire, TakeWire};
use crate::page::{PageMut, TAGS_MAX, node_flags};

/// One node to be put on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// See [`node_flags`].
    pub flags: u8,
    /// Whole key.
    pub key: Vec<u8>,
    /// Data.
    pub data: Vec<u8>,
}

/// One structural change of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Make the page anew with these nodes.
    Format {
        /// Owning object.
        object: u32,
        /// Kind and level bits.
        flags: u32,
        /// Left neighbour.
        previous: PageNumber,
        /// Right neighbour.
        next: PageNumber,
        /// External header.
        external: Vec<u8>,
        /// All nodes in key order, as a page with these flags and this header keeps them.
        nodes: Vec<LaidNode>,
    },
    /// Insert a node before a line.
    Insert {
        /// Line.
        line: u16,
        /// The node.
        node: NewNode,
    },
    /// Remove the node of a line.
    Remove {
        /// Line.
        line: u16,
    },
    /// Remove all nodes from a line on.
    Truncate {
        /// First line removed.
        line: u16,
    },
    /// Replace all data of a line.
    SetData {
        /// Line.
        line: u16,
        /// New data.
        data: Vec<u8>,
    },
    /// Set the leaf neighbours.
    SetSiblings {
        /// Left neighbour.
        previous: PageNumber,
        /// Right neighbour.
        next: PageNumber,
    },
    /// Replace the external header by one of the same length.
    SetExternal {
        /// New header.
        external: Vec<u8>,
    },
    /// Leaves the root page of a new tree as it is and tells recovery: the tree is released unless
    /// this transaction commits.
    MadeBy {
        /// The transaction.
        transaction: u64,
        /// Object of the tree.
        object: u32,
    },
    /// Leaves the root page of a tree as it is and tells recovery: the tree is released once this
    /// transaction commits.
    DroppedBy {
        /// The transaction.
        transaction: u64,
        /// Object of the tree.
        object: u32,
    },
}

impl Edit {
    /// Applies the edit.
    pub fn apply(&self, page: &mut PageMut<'_>, number: PageNumber) {
        match self {
            Edit::Format { object, flags, previous, next, external, nodes } => {
                page.format(number, *object, *flags, external);
                page.set_siblings(*previous, *next);
                for (line, node) in nodes.iter().enumerate() {
                    page.insert(line, node.flags(), &node.key(external), node.data());
                }
            }
            Edit::Insert { line, node } => {
                page.insert(usize::from(*line), node.flags, &node.key, &node.data)
            }
            Edit::Remove { line } => page.remove(usize::from(*line)),
            Edit::Truncate { line } => page.truncate(usize::from(*line)),
            Edit::SetData { line, data } => replace_data(page, usize::from(*line), data),
            Edit::SetSiblings { previous, next } => page.set_siblings(*previous, *next),
            Edit::SetExternal { external } => page.set_external(external),
            Edit::MadeBy { .. } | Edit::DroppedBy { .. } => {}
        }
    }

    /// Whether the page's old content does not matter.
    pub fn makes_anew(&self) -> bool {
        matches!(self, Edit::Format { .. })
    }

    /// Appends the wire form.
    pub fn encode(&self, wire: &mut Vec<u8>) {
        match self {
            Edit::Format { object, flags, previous, next, external, nodes } => {
                wire.push(kind::FORMAT);
                for number in [*object, *flags, *previous, *next] {
                    wire.put_number(u64::from(number));
                }
                wire.put_bytes(external);
                wire.put_number(nodes.len() as u64);
                nodes.iter().for_each(|node| node.encode(wire));
            }
            Edit::Insert { line, node } => {
                wire.push(2);
                wire.put_number(u64::from(*line));
                node.encode(wire);
            }
            Edit::Remove { line } => {
                wire.push(3);
                wire.put_number(u64::from(*line));
            }
            Edit::Truncate { line } => {
                wire.push(4);
                wire.put_number(u64::from(*line));
            }
            Edit::SetData { line, data } => {
                wire.push(5);
                wire.put_number(u64::from(*line));
                wire.put_bytes(data);
            }
            Edit::SetSiblings { previous, next } => {
                wire.push(6);
                wire.put_number(u64::from(*previous));
                wire.put_number(u64::from(*next));
            }
            Edit::SetExternal { external } => {
                wire.push(7);
                wire.put_bytes(external);
            }
            Edit::MadeBy { transaction, object } => {
                wire.push(8);
                wire.put_number(*transaction);
                wire.put_number(u64::from(*object));
            }
            Edit::DroppedBy { transaction, object } => {
                wire.push(9);
                wire.put_number(*transaction);
                wire.put_number(u64::from(*object));
            }
        }
    }

    /// Reads the wire form.
    pub fn decode(wire: &mut TakeWire<'_>) -> Option<Self> {
        Some(match wire.byte()? {
            format @ (kind::FORMAT_OF_WHOLE_KEYS | kind::FORMAT) => {
                let [object, flags, previous, next] = [
                    wire.number_u32()?,
                    wire.number_u32()?,
                    wire.number_u32()?,
                    wire.number_u32()?,
                ];
                let external = wire.bytes()?.to_vec();
                let count = wire.size().filter(|count| *count < TAGS_MAX)?;
                let decode = |_| match format {
                    kind::FORMAT => LaidNode::decode(wire, &external),
                    _ => NewNode::decode(wire).map(|node| node.laid(flags, &external)),
                };
                let nodes = (0..count).map(decode).collect::<Option<Vec<_>>>()?;
                Edit::Format { object, flags, previous, next, external, nodes }
            }
            2 => Edit::Insert { line: line(wire)?, node: NewNode::decode(wire)? },
            3 => Edit::Remove { line: line(wire)? },
            4 => Edit::Truncate { line: line(wire)? },
            5 => Edit::SetData { line: line(wire)?, data: wire.bytes()?.to_vec() },
            6 => Edit::SetSiblings { previous: wire.number_u32()?, next: wire.number_u32()? },
            7 => Edit::SetExternal { external: wire.bytes()?.to_vec() },
            8 => Edit::MadeBy { transaction: wire.number()?, object: wire.number_u32()? },
            9 => Edit::DroppedBy { transaction: wire.number()?, object: wire.number_u32()? },
            _ => return None,
        })
    }
}

fn replace_data(page: &mut PageMut<'_>, line: usize, data: &[u8]) {
    let old_bytes = page.view().node(line).map_or(0, |node| node.data.len());
    page.splice(line, 0, old_bytes, data);
}

pub(crate) fn line(wire: &mut TakeWire<'_>) -> Option<u16> {
    wire.number()?.try_into().ok()
}

/// Kinds of edits on the wire that have another form than they had.
mod kind {
    /// How versions of the log before 4 have it: with the whole key of each node. Those of one page
    /// can be longer than a generation.
    pub const FORMAT_OF_WHOLE_KEYS: u8 = 1;
    /// Nodes as they lie on the page.
    pub const FORMAT: u8 = 10;
}

impl NewNode {
    /// The node as a page with these flags and this external header keeps it.
    pub fn laid(self, of_page: u32, external: &[u8]) -> LaidNode {
        LaidNode::new(of_page, external, self.flags, &self.key, self.data)
    }

    fn encode(&self, wire: &mut Vec<u8>) {
        wire.push(self.flags);
        wire.put_bytes(&self.key);
        wire.put_bytes(&self.data);
    }

    fn decode(wire: &mut TakeWire<'_>) -> Option<Self> {
        Some(Self {
            flags: wire.byte().filter(|flags| flags & !node_flags::ALL == 0)?,
            key: wire.bytes()?.to_vec(),
            data: wire.bytes()?.to_vec(),
        })
    }
}

/// What a transaction does to one row (one node of a leaf). Each can be undone by key, wherever the
/// node is by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// A new node.
    Insert {
        /// Its data.
        data: Vec<u8>,
    },
    /// A node flagged deleted gets new data and lives again.
    Revive {
        /// Its new data.
        data: Vec<u8>,
        /// Its old data, if the same transaction deleted it and may undo that too.
        old: Option<Vec<u8>>,
    },
    /// Old data is put back and the node flagged deleted again: undoes `Revive`.
    Bury {
        /// The old data.
        data: Vec<u8>,
    },
    /// The node is flagged deleted.
    Delete {
        /// The row that goes, so that the log alone tells what was there and redo notices when it
        /// deletes something else. Undoing an insert leaves it out: the insert's own record has it.
        old: Option<Vec<u8>>,
    },
    /// The deleted flag is undone: undoes `Delete`.
    Undelete,
    /// Part of the data is replaced.
    Splice {
        /// Where.
        at: u32,
        /// Bytes there before.
        old: Vec<u8>,
        /// Bytes there after.
        new: Vec<u8>,
    },
    /// A little-endian counter inside the data is added to; concurrent transactions may do so
    /// together.
    Delta {
        /// Where.
        at: u32,
        /// Width of the counter in bytes: 4 or 8.
        width: u8,
        /// What is added, wrapping.
        amount: i64,
    },
    /// The node is removed for good; part of no transaction.
    Remove,
}

impl RowChange {
    /// What undoes this change; `None` for changes no transaction makes.
    pub fn inverse(&self) -> Option<RowChange> {
        match self {
            RowChange::Revive { old: Some(old), .. } => Some(RowChange::Bury { data: old.clone() }),
            RowChange::Insert { .. } | RowChange::Revive { old: None, .. } => {
                Some(RowChange::Delete { old: None })
            }
            RowChange::Delete { .. } => Some(RowChange::Undelete),
            RowChange::Splice { at, old, new } => {
                Some(RowChange::Splice { at: *at, old: new.clone(), new: old.clone() })
            }
            RowChange::Delta { at, width, amount } => {
                Some(RowChange::Delta { at: *at, width: *width, amount: amount.wrapping_neg() })
            }
            RowChange::Undelete | RowChange::Bury { .. } | RowChange::Remove => None,
        }
    }

    /// The splice that turns `old` into `new`: everything but the common ends.
    pub fn difference(old: &[u8], new: &[u8]) -> RowChange {
        let head = old.iter().zip(new).take_while(|(left, right)| left == right).count();
        let (old_rest, new_rest) = (&old[head..], &new[head..]);
        let tail = old_rest
            .iter()
            .rev()
            .zip(new_rest.iter().rev())
            .take_while(|(left, right)| left == right)
            .count();
        RowChange::Splice {
            at: head as u32,
            old: old_rest[..old_rest.len() - tail].to_vec(),
            new: new_rest[..new_rest.len() - tail].to_vec(),
        }
    }

    /// Applies the change at `line` of a leaf.
    pub fn apply(&self, page: &mut PageMut<'_>, line: usize, key: &[u8]) {
        match self {
            RowChange::Insert { data } => page.insert(line, 0, key, data),
            RowChange::Revive { data, .. } => {
                replace_data(page, line, data);
                page.set_node_flags(line, 0);
            }
            RowChange::Bury { data } => {
                replace_data(page, line, data);
                page.set_node_flags(line, node_flags::DELETED);
            }
            RowChange::Delete { .. } => page.set_node_flags(line, node_flags::DELETED),
            RowChange::Undelete => page.set_node_flags(line, 0),
            RowChange::Splice { at, old, new } => page.splice(line, *at as usize, old.len(), new),
            RowChange::Delta { at, width, amount } => {
                let (at, width) = (*at as usize, usize::from(*width));
                let mut counter = [0; 8];
                let view = page.view();
                let data = view.node(line).expect("the row was found on this page").data;
                counter[..width].copy_from_slice(&data[at..at + width]);
                let sum = u64::from_le_bytes(counter).wrapping_add(*amount as u64).to_le_bytes();
                page.splice(line, at, width, &sum[..width]);
            }
            RowChange::Remove => page.remove(line),
        }
    }

    /// Bytes the page must have free for this change to be made to a node with `present_bytes` of
    /// data.
    pub fn growth_bytes(&self, present_bytes: usize) -> usize {
        match self {
            RowChange::Revive { data, .. } | RowChange::Bury { data } => {
                data.len().saturating_sub(present_bytes)
            }
            RowChange::Splice { old, new, .. } => new.len().saturating_sub(old.len()),
            _ => 0,
        }
    }

    /// Why this change cannot be meant for a row with this data: the log and the page do not belong
    /// together.
    pub fn disagrees(&self, present: &[u8]) -> Option<&'static str> {
        match self {
            RowChange::Delete { old: Some(old) } => (present != old.as_slice())
                .then_some("the log deletes another row than the page has"),
            RowChange::Splice { at, old, .. } => {
                let there = present.get(*at as usize..*at as usize + old.len());
                (there != Some(&old[..])).then_some("the log changes other data than the page has")
            }
            RowChange::Delta { at, width, .. } => (*at as usize + usize::from(*width)
                > present.len())
            .then_some("the log adds to a counter outside the row's data"),
            _ => None,
        }
    }

    /// Takes a delta back from a copy of the row's data.
    pub fn unapply_delta(&self, data: &mut [u8]) {
        if let RowChange::Delta { at, width, amount } = self {
            let (at, width) = (*at as usize, usize::from(*width));
            let mut counter = [0; 8];
            counter[..width].copy_from_slice(&data[at..at + width]);
            let sum = u64::from_le_bytes(counter).wrapping_sub(*amount as u64).to_le_bytes();
            data[at..at + width].copy_from_slice(&sum[..width]);
        }
    }

    /// Appends the wire form.
    pub fn encode(&self, wire: &mut Vec<u8>) {
        match self {
            RowChange::Insert { data } => {
                wire.push(1);
                wire.put_bytes(data);
            }
            RowChange::Revive { data, old } => {
                wire.push(if old.is_some() { 8 } else { 2 });
                wire.put_bytes(data);
                if let Some(old) = old {
                    wire.put_bytes(old);
                }
            }
            RowChange::Bury { data } => {
                wire.push(9);
                wire.put_bytes(data);
            }
            RowChange::Delete { old: None } => wire.push(3),
            RowChange::Delete { old: Some(old) } => {
                wire.push(10);
                wire.put_bytes(old);
            }
            RowChange::Undelete => wire.push(4),
            RowChange::Splice { at, old, new } => {
                wire.push(5);
                wire.put_number(u64::from(*at));
                wire.put_bytes(old);
                wire.put_bytes(new);
            }
            RowChange::Delta { at, width, amount } => {
                wire.push(6);
                wire.put_number(u64::from(*at));
                wire.push(*width);
                wire.put_signed(*amount);
            }
            RowChange::Remove => wire.push(7),
        }
    }

    /// Reads the wire form.
    pub fn decode(wire: &mut TakeWire<'_>) -> Option<Self> {
        Some(match wire.byte()? {
            1 => RowChange::Insert { data: wire.bytes()?.to_vec() },
            2 => RowChange::Revive { data: wire.bytes()?.to_vec(), old: None },
            8 => RowChange::Revive {
                data: wire.bytes()?.to_vec(),
                old: Some(wire.bytes()?.to_vec()),
            },
            9 => RowChange::Bury { data: wire.bytes()?.to_vec() },
            3 => RowChange::Delete { old: None },
            10 => RowChange::Delete { old: Some(wire.bytes()?.to_vec()) },
            4 => RowChange::Undelete,
            5 => RowChange::Splice {
                at: wire.number_u32()?,
                old: wire.bytes()?.to_vec(),
                new: wire.bytes()?.to_vec(),
            },
            6 => {
                let (at, width) = (wire.number_u32()?, wire.byte()?);
                if width != 4 && width != 8 {
                    return None;
                }
                RowChange::Delta { at, width, amount: wire.signed()? }
            }
            7 => RowChange::Remove,
            _ => return None,
        })
    }
}
