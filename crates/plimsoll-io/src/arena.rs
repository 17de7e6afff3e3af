//! Memory for I/O: large chunks, divided by halving (the buddy method), lent as [`Buffer`]s and
//! taken back when they drop.
//!
//! A chunk is one piece that the kernel can know by a number, so that io_uring need not look its
//! pages up for each transfer, and it is aligned and sized so that the kernel may back it by one
//! huge page. Chunks come from the program's allocator, so whoever counts allocations counts them;
//! they are kept until the disk and its last buffer are gone.

#[cfg(test)]
mod tests;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::rc::Rc;

use crate::{BUFFER_ALIGNMENT, Buffer, BufferHome};

/// A chunk, and the longest buffer an arena lends.
pub(crate) const CHUNK_BYTES: usize = 2 * 1024 * 1024;
/// Halvings from a chunk down to the smallest piece.
const ORDERS: usize = (CHUNK_BYTES / BUFFER_ALIGNMENT).ilog2() as usize + 1;
/// Runs of each order that are kept as they are when given back.
const RECENT_MAX: usize = 32;
/// Pieces of the smallest size in a chunk.
const PIECES: u32 = (CHUNK_BYTES / BUFFER_ALIGNMENT) as u32;
/// The kernel keeps at most this many registered buffers per ring (IORING_MAX_REG_BUFFERS).
pub(crate) const CHUNKS_REGISTERED_MAX: usize = 1 << 14;

/// See the module text.
#[derive(Default)]
pub(crate) struct Arena {
    state: RefCell<ArenaState>,
}

#[derive(Default)]
struct ArenaState {
    chunks: Vec<Chunk>,
    /// From a chunk's address to its place in `chunks`.
    by_address: BTreeMap<usize, u32>,
    /// Free runs by order, each named by its first piece, counted through all chunks; the lowest is
    /// lent first.
    free: [BTreeSet<u32>; ORDERS],
    /// Runs just given back, lent again as they are: most buffers live for one transfer and are all
    /// of one size.
    recent: [Vec<u32>; ORDERS],
}

struct Chunk {
    start: NonNull<u8>,
    registered: bool,
}

/// A chunk that was just added, for whoever wants to make it known to the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewChunk {
    pub index: usize,
    pub start: NonNull<u8>,
}

impl Arena {
    /// Lends a buffer, or `None` when a chunk must be added first or the length is beyond a chunk.
    pub(crate) fn lend(self: &Rc<Self>, length_bytes: usize) -> Option<Buffer> {
        let order = order_for(length_bytes)?;
        let mut state = self.state.borrow_mut();
        let piece = state.take(order)?;
        let chunk = piece / PIECES;
        let offset = (piece % PIECES) as usize * BUFFER_ALIGNMENT;
        // SAFETY: the piece lies within its chunk.
        let start = unsafe { state.chunks[chunk as usize].start.add(offset) };
        // Chunks beyond what the kernel can number share a number that no transfer uses.
        let index = u16::try_from(chunk).unwrap_or(u16::MAX);
        let capacity_bytes = BUFFER_ALIGNMENT << order;
        // SAFETY: the piece is aligned, zeroed when its chunk was made, within its chunk, and lent
        // to nobody else until it is given back; the arena lives as long as the buffer because the
        // buffer holds it.
        Some(unsafe { Buffer::lent(start, length_bytes, capacity_bytes, self.clone(), index) })
    }

    /// Adds a chunk of zeros.
    pub(crate) fn grow(&self) -> NewChunk {
        let start = zeroed_chunk();
        let mut state = self.state.borrow_mut();
        let index = state.chunks.len();
        state.chunks.push(Chunk { start, registered: false });
        state.by_address.insert(start.as_ptr() as usize, index as u32);
        state.free[ORDERS - 1].insert(index as u32 * PIECES);
        NewChunk { index, start }
    }

    /// Lends a buffer of any length: beyond a chunk it comes from the heap. `added` hears of every
    /// chunk that had to be added.
    pub(crate) fn lend_any(
        self: &Rc<Self>,
        length_bytes: usize,
        added: impl FnOnce(NewChunk),
    ) -> Buffer {
        if length_bytes > CHUNK_BYTES {
            return Buffer::zeroed(length_bytes);
        }
        self.lend(length_bytes).unwrap_or_else(|| {
            added(self.grow());
            self.lend(length_bytes).expect("a new chunk holds any buffer up to its size")
        })
    }

    /// Notes that the kernel knows a chunk by its index.
    pub(crate) fn note_registered(&self, chunk: NewChunk) {
        self.state.borrow_mut().chunks[chunk.index].registered = true;
    }

    /// The number under which the kernel knows this memory, if it was lent by this arena and
    /// registered.
    pub(crate) fn registered_index(&self, buffer: &Buffer) -> Option<u16> {
        let index = buffer.registered_index()?;
        let state = self.state.borrow();
        let chunk = state.chunks.get(usize::from(index))?;
        let offset = (buffer.as_ptr() as usize).checked_sub(chunk.start.as_ptr() as usize)?;
        (chunk.registered && offset < CHUNK_BYTES).then_some(index)
    }

    /// Bytes lent and not given back. What is longer than a chunk is the heap's and not among them.
    pub(crate) fn lent_bytes(&self) -> usize {
        let state = self.state.borrow();
        let here = |order: usize| (state.free[order].len() + state.recent[order].len()) << order;
        let pieces_here: usize = (0..ORDERS).map(here).sum();
        state.chunks.len() * CHUNK_BYTES - pieces_here * BUFFER_ALIGNMENT
    }

    /// Bytes in chunks, lent or not.
    pub(crate) fn size_bytes(&self) -> usize {
        self.state.borrow().chunks.len() * CHUNK_BYTES
    }
}

/// The order of the smallest run that holds a length.
fn order_for(length_bytes: usize) -> Option<usize> {
    let pieces = length_bytes.max(1).div_ceil(BUFFER_ALIGNMENT).next_power_of_two();
    (pieces <= PIECES as usize).then(|| pieces.ilog2() as usize)
}

impl ArenaState {
    fn take(&mut self, order: usize) -> Option<u32> {
        if let Some(piece) = self.recent[order].pop() {
            return Some(piece);
        }
        self.split_off(order).or_else(|| {
            self.join_recent();
            self.split_off(order)
        })
    }

    fn put_back(&mut self, piece: u32, order: usize) {
        if self.recent[order].len() < RECENT_MAX {
            self.recent[order].push(piece);
        } else {
            self.join(piece, order);
        }
    }

    fn join_recent(&mut self) {
        for order in 0..ORDERS {
            for piece in std::mem::take(&mut self.recent[order]) {
                self.join(piece, order);
            }
        }
    }

    fn split_off(&mut self, order: usize) -> Option<u32> {
        let found = (order..ORDERS).find(|larger| !self.free[*larger].is_empty())?;
        let piece = self.free[found].pop_first()?;
        for smaller in (order..found).rev() {
            self.free[smaller].insert(piece + (1 << smaller));
        }
        Some(piece)
    }

    fn join(&mut self, mut piece: u32, mut order: usize) {
        while order < ORDERS - 1 && self.free[order].remove(&(piece ^ (1 << order))) {
            piece &= !(1 << order);
            order += 1;
        }
        self.free[order].insert(piece);
    }
}

impl BufferHome for Arena {
    fn give_back(&self, start: NonNull<u8>, capacity_bytes: usize) {
        let mut state = self.state.borrow_mut();
        let address = start.as_ptr() as usize;
        let (chunk_address, index) = state
            .by_address
            .range(..=address)
            .next_back()
            .map(|(chunk_address, index)| (*chunk_address, *index))
            .expect("only what was lent here is given back here");
        let piece = index * PIECES + ((address - chunk_address) / BUFFER_ALIGNMENT) as u32;
        let order = (capacity_bytes / BUFFER_ALIGNMENT).ilog2() as usize;
        state.put_back(piece, order);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for chunk in &self.state.get_mut().chunks {
            // SAFETY: the chunk was allocated with this layout, and no buffer is left: each holds
            // the arena.
            unsafe { dealloc(chunk.start.as_ptr(), chunk_layout()) };
        }
    }
}

fn chunk_layout() -> Layout {
    Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).expect("a power of two below isize::MAX")
}

fn zeroed_chunk() -> NonNull<u8> {
    let layout = chunk_layout();
    // SAFETY: the layout has a non-zero size.
    let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
    // SAFETY: the range was just allocated with this length; the advice changes no content and may
    // fail without harm. It comes before the first touch, because only then a huge page is taken.
    unsafe {
        libc::madvise(start.as_ptr().cast(), CHUNK_BYTES, libc::MADV_HUGEPAGE);
        start.as_ptr().write_bytes(0, CHUNK_BYTES);
    }
    start
}
