//! The bytes of one file: a sparse table of reference-counted chunks, copied when shared.
//!
//! Copying a whole table shares every chunk, so a crash image costs little more than what differs.
//! A chunk nobody wrote is absent: it reads as zero, or as the generated content of a sparse file,
//! whose written chunks are kept as their codes.

use std::ops::Range;
use std::rc::Rc;

use super::coded::Coded;
use super::generated::Generated;
use crate::sparse::Sparse;
use crate::{Buffer, Promise, Vouch, is_zero};

/// Chunks per segment of the table.
const SEGMENT_CHUNKS: usize = 256;

/// One chunk as it is kept; `None` reads as zero or as generated.
pub(crate) type Slot = Option<Rc<[u8]>>;

#[derive(Clone)]
struct Segment([Slot; SEGMENT_CHUNKS]);

/// How chunks are laid out and where unwritten ones come from.
#[derive(Clone)]
pub(crate) struct Layout {
    pub(crate) chunk_bytes: usize,
    sparse: Option<Generated>,
}

/// A piece of a transfer that lies in one chunk.
pub(crate) struct Piece {
    pub(crate) chunk: usize,
    /// Where in the chunk.
    pub(crate) within: Range<usize>,
    /// Where in the transferred bytes.
    pub(crate) bytes: Range<usize>,
}

impl Layout {
    pub(crate) fn plain(chunk_bytes: usize) -> Self {
        Self { chunk_bytes, sparse: None }
    }

    pub(crate) fn sparse(sparse: Sparse, length_bytes: u64) -> Self {
        let content = Generated::new(sparse, length_bytes);
        Self { chunk_bytes: content.unit_bytes(), sparse: Some(content) }
    }

    /// The chunks a transfer touches, in order.
    pub(crate) fn pieces(&self, offset: u64, length: usize) -> impl Iterator<Item = Piece> + use<> {
        let chunk_bytes = self.chunk_bytes;
        let mut chunk = (offset / chunk_bytes as u64) as usize;
        let mut start = (offset % chunk_bytes as u64) as usize;
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == length {
                return None;
            }
            let here = (chunk_bytes - start).min(length - done);
            let piece = Piece { chunk, within: start..start + here, bytes: done..done + here };
            chunk += 1;
            start = 0;
            done += here;
            Some(piece)
        })
    }

    /// Reads a part of one chunk.
    pub(crate) fn read_slot(&self, slot: &Slot, piece: &Piece, bytes: &mut [u8]) {
        match (&self.sparse, slot) {
            (None, None) => bytes.fill(0),
            (None, Some(chunk)) => bytes.copy_from_slice(&chunk[piece.within.clone()]),
            (Some(content), slot) => read_code(content, slot.as_deref(), piece, bytes),
        }
    }

    /// The chunks of a transfer that begins and ends with a chunk.
    fn whole_chunks(&self, offset: u64, length_bytes: usize) -> Option<Range<usize>> {
        let first = (offset / self.chunk_bytes as u64) as usize;
        let is_whole = offset.is_multiple_of(self.chunk_bytes as u64)
            && length_bytes.is_multiple_of(self.chunk_bytes);
        is_whole.then(|| first..first + length_bytes / self.chunk_bytes)
    }

    /// Writes a part of one chunk.
    pub(crate) fn write_slot(&self, slot: &mut Slot, piece: &Piece, bytes: &[u8]) {
        if let Some(content) = &self.sparse {
            let code = content.code_part(piece.chunk, slot.as_deref(), piece.within.clone(), bytes);
            *slot = (!code.is_empty()).then(|| Rc::from(code));
        } else if let Some(chunk) = slot.as_mut().and_then(Rc::get_mut) {
            chunk[piece.within.clone()].copy_from_slice(bytes);
        } else if bytes.len() == self.chunk_bytes {
            *slot = (!is_zero(bytes)).then(|| Rc::from(bytes));
        } else {
            let mut chunk: Rc<[u8]> = match slot {
                Some(shared) => Rc::from(&shared[..]),
                None => std::iter::repeat_n(0, self.chunk_bytes).collect(),
            };
            Rc::get_mut(&mut chunk).expect("just made, so not shared")[piece.within.clone()]
                .copy_from_slice(bytes);
            *slot = Some(chunk);
        }
    }
}

/// Reads a part of one chunk of a sparse file.
fn read_code(content: &Generated, code: Option<&[u8]>, piece: &Piece, bytes: &mut [u8]) {
    if bytes.len() == content.unit_bytes() {
        return content.read(piece.chunk, code, bytes);
    }
    let mut whole = vec![0; content.unit_bytes()];
    content.read(piece.chunk, code, &mut whole);
    bytes.copy_from_slice(&whole[piece.within.clone()]);
}

/// Whole chunks of a sparse file as they were at one moment, to be made when somebody looks.
struct Moment {
    content: Generated,
    first: usize,
    slots: Vec<Slot>,
}

impl Promise for Moment {
    fn keep(&self, bytes: &mut [u8]) {
        let units = bytes.chunks_exact_mut(self.content.unit_bytes());
        for (index, (slot, unit)) in self.slots.iter().zip(units).enumerate() {
            self.content.read(self.first + index, slot.as_deref(), unit);
        }
    }

    fn vouch(&self, position: usize) -> Option<Vouch> {
        let unit_bytes = self.content.unit_bytes();
        let index = position / unit_bytes;
        let is_start = position.is_multiple_of(unit_bytes);
        let slot = self.slots.get(index).filter(|_| is_start)?;
        self.content.vouch(self.first + index, slot.as_deref())
    }
}

/// The table of a file.
#[derive(Clone)]
enum Table {
    /// Chunks as they are.
    Plain(Vec<Option<Rc<Segment>>>),
    /// The codes of a sparse file's chunks.
    Coded(Coded),
}

/// See the module text.
#[derive(Clone)]
pub(crate) struct Chunks {
    layout: Layout,
    table: Table,
}

impl Chunks {
    pub(crate) fn new(layout: Layout) -> Self {
        let table = match &layout.sparse {
            None => Table::Plain(Vec::new()),
            Some(content) => Table::Coded(Coded::new(content.clone())),
        };
        Self { layout, table }
    }

    /// Lets a second thread code what is written to a sparse file.
    pub(crate) fn code_ahead(&mut self) {
        if let Table::Coded(coded) = &mut self.table {
            coded.code_ahead();
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// One chunk as it is kept.
    pub(crate) fn slot(&self, chunk: usize) -> Slot {
        match &self.table {
            Table::Plain(segments) => plain_slot(segments, chunk).clone(),
            Table::Coded(coded) => coded.with_code(chunk, |code| code.map(Rc::from)),
        }
    }

    /// Keeps a chunk as it was kept elsewhere.
    pub(crate) fn set_slot(&mut self, chunk: usize, slot: Slot) {
        match &mut self.table {
            Table::Plain(segments) => *plain_slot_mut(segments, chunk) = slot,
            Table::Coded(coded) => coded.set(chunk, slot.as_deref().unwrap_or_default()),
        }
    }

    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) {
        for piece in self.layout.pieces(offset, bytes.len()) {
            let part = &mut bytes[piece.bytes.clone()];
            match &self.table {
                Table::Plain(segments) => {
                    let slot = plain_slot(segments, piece.chunk);
                    self.layout.read_slot(slot, &piece, part);
                }
                Table::Coded(coded) => {
                    coded.with_code(piece.chunk, |code| {
                        read_code(coded.content(), code, &piece, part)
                    });
                }
            }
        }
    }

    /// Reads into a buffer, at once or, where that costs more, when somebody looks at it: generated
    /// content is kept as a promise.
    pub(crate) fn read_into(&self, offset: u64, buffer: &mut Buffer) {
        let chunks = self.layout.whole_chunks(offset, buffer.len());
        let (Some(content), Some(chunks)) = (&self.layout.sparse, chunks) else {
            return self.read(offset, buffer);
        };
        buffer.promise(Box::new(Moment {
            content: content.clone(),
            first: chunks.start,
            slots: chunks.map(|chunk| self.slot(chunk)).collect(),
        }));
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for piece in self.layout.pieces(offset, bytes.len()) {
            let part = &bytes[piece.bytes.clone()];
            match &mut self.table {
                Table::Plain(segments) => {
                    let slot = plain_slot_mut(segments, piece.chunk);
                    self.layout.write_slot(slot, &piece, part);
                }
                Table::Coded(coded) => coded.write(piece.chunk, piece.within.clone(), part),
            }
        }
    }

    /// Writes a buffer. One that is shared, so that nobody changes it, may be kept until another
    /// thread has coded it.
    pub(crate) fn write_buffer(&mut self, offset: u64, buffer: &mut Buffer) {
        match (&mut self.table, self.layout.whole_chunks(offset, buffer.len())) {
            (Table::Coded(coded), Some(chunks)) if coded.is_ahead() && buffer.is_shared() => {
                for (index, chunk) in chunks.enumerate() {
                    coded.write_shared(chunk, buffer.share(), index * self.layout.chunk_bytes);
                }
            }
            _ => self.write(offset, buffer),
        }
    }

    /// Forgets everything from `length_bytes` on, so that a later extension reads as zero.
    pub(crate) fn truncate(&mut self, length_bytes: u64) {
        let chunk_bytes = self.layout.chunk_bytes as u64;
        let whole = length_bytes.div_ceil(chunk_bytes) as usize;
        match &mut self.table {
            Table::Plain(segments) => {
                segments.truncate(whole.div_ceil(SEGMENT_CHUNKS));
                for chunk in whole..segments.len() * SEGMENT_CHUNKS {
                    if plain_slot(segments, chunk).is_some() {
                        *plain_slot_mut(segments, chunk) = None;
                    }
                }
            }
            Table::Coded(coded) => coded.truncate(whole),
        }
        let tail = whole as u64 * chunk_bytes - length_bytes;
        if tail > 0 && whole > 0 && self.slot(whole - 1).is_some() {
            self.write(length_bytes, &vec![0; tail as usize]);
        }
    }

    /// Bytes held in chunks: what the file costs in memory, without the table.
    pub(crate) fn stored_bytes(&self) -> u64 {
        match &self.table {
            Table::Plain(segments) => {
                let slots =
                    segments.iter().flatten().flat_map(|segment| segment.0.iter().flatten());
                slots.map(|chunk| chunk.len() as u64).sum()
            }
            Table::Coded(coded) => coded.stored_bytes(),
        }
    }
}

fn plain_slot(segments: &[Option<Rc<Segment>>], chunk: usize) -> &Slot {
    match segments.get(chunk / SEGMENT_CHUNKS) {
        Some(Some(segment)) => &segment.0[chunk % SEGMENT_CHUNKS],
        _ => &None,
    }
}

fn plain_slot_mut(segments: &mut Vec<Option<Rc<Segment>>>, chunk: usize) -> &mut Slot {
    let index = chunk / SEGMENT_CHUNKS;
    if index >= segments.len() {
        segments.resize(index + 1, None);
    }
    let segment =
        segments[index].get_or_insert_with(|| Rc::new(Segment(std::array::from_fn(|_| None))));
    &mut Rc::make_mut(segment).0[chunk % SEGMENT_CHUNKS]
}
