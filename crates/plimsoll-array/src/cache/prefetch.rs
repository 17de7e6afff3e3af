//! Sequential readers: noticed by their addresses, served by chunks that are read ahead.
//!
//! A reader that has read on several times in sequence without a long pause has its data read in
//! chunks, the one it needs and some beyond. Requests of one reader may come a little out of order.
//! What was just written in sequence (a log) is still in memory for a while and can be read back
//! from there.

use plimsoll_io::Nanos;

use crate::spec::PrefetchSpec;

/// Sequential readers told apart on one volume.
const READER_COUNT_MAX: usize = 16;
/// How far out of order the requests of one reader may come.
const REORDER_BYTES: u64 = 1024 * 1024;

/// One chunk of a reader.
#[derive(Clone, Debug)]
struct Chunk {
    index: u64,
    slot: u32,
    is_ready: bool,
}

#[derive(Clone, Debug, Default)]
struct Reader {
    next: u64,
    last_seen: Nanos,
    run_count: u32,
    chunks: Vec<Chunk>,
}

/// What to do about a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// Chunk slots to fetch now, with their offsets.
    pub(crate) fetch: Vec<(u32, u64)>,
    /// Chunk slots the request has to wait for.
    pub(crate) wait: Vec<u32>,
}

/// The sequential readers of one volume.
#[derive(Default)]
pub(crate) struct Prefetcher {
    readers: Vec<Reader>,
}

impl Prefetcher {
    /// Takes note of a read; `Some` when it is served by chunks. `new_slot` gives a fresh chunk
    /// slot.
    pub(crate) fn read(
        &mut self,
        now: Nanos,
        offset: u64,
        bytes: u64,
        spec: &PrefetchSpec,
        new_slot: impl FnMut() -> u32,
    ) -> Option<Ahead> {
        let reader = self.reader_of(now, offset, spec.pause_ns_max);
        reader.next = reader.next.max(offset + bytes);
        reader.last_seen = now;
        reader.run_count = reader.run_count.saturating_add(1);
        if reader.run_count <= spec.run_count_min {
            return None;
        }
        Some(reader.ahead(offset, bytes, spec, new_slot))
    }

    fn reader_of(&mut self, now: Nanos, offset: u64, pause_ns_max: Nanos) -> &mut Reader {
        let near = |reader: &Reader| offset <= reader.next && reader.next - offset <= REORDER_BYTES;
        let exact = self.readers.iter().position(|reader| reader.next == offset);
        let close = || self.readers.iter().position(|reader| reader.run_count > 1 && near(reader));
        if let Some(index) = exact.or_else(close) {
            let reader = &mut self.readers[index];
            if now - reader.last_seen > pause_ns_max {
                reader.run_count = 0;
            }
            return &mut self.readers[index];
        }
        let fresh = Reader { next: offset, ..Reader::default() };
        if self.readers.len() < READER_COUNT_MAX {
            self.readers.push(fresh);
            return self.readers.last_mut().expect("it was just pushed");
        }
        let oldest =
            (0..READER_COUNT_MAX).min_by_key(|index| self.readers[*index].last_seen).unwrap_or(0);
        self.readers[oldest] = fresh;
        &mut self.readers[oldest]
    }

    /// A chunk has been read.
    pub(crate) fn ready(&mut self, slot: u32) {
        let chunks = self.readers.iter_mut().flat_map(|reader| &mut reader.chunks);
        for chunk in chunks.filter(|chunk| chunk.slot == slot) {
            chunk.is_ready = true;
        }
    }
}

impl Reader {
    fn ahead(
        &mut self,
        offset: u64,
        bytes: u64,
        spec: &PrefetchSpec,
        mut new_slot: impl FnMut() -> u32,
    ) -> Ahead {
        let (first, last) = (offset / spec.chunk_bytes, (offset + bytes - 1) / spec.chunk_bytes);
        let mut ahead = Ahead::default();
        for index in first..=last + u64::from(spec.ahead_count) {
            let known = self.chunks.iter().find(|chunk| chunk.index == index);
            let (slot, is_ready) = match known {
                Some(chunk) => (chunk.slot, chunk.is_ready),
                None => {
                    let slot = new_slot();
                    ahead.fetch.push((slot, index * spec.chunk_bytes));
                    self.chunks.push(Chunk { index, slot, is_ready: false });
                    (slot, false)
                }
            };
            if index <= last && !is_ready {
                ahead.wait.push(slot);
            }
        }
        self.chunks.retain(|chunk| !chunk.is_ready || chunk.index + 2 >= first);
        ahead
    }
}

/// What was last written in sequence on a volume.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    start: u64,
    end: u64,
}

impl Recent {
    /// Takes note of a write.
    pub(crate) fn wrote(&mut self, offset: u64, bytes: u64, kept_bytes: u64) {
        let goes_on = offset >= self.start && offset <= self.end && self.end > self.start;
        if goes_on {
            self.end = self.end.max(offset + bytes);
            self.start = self.start.max(self.end.saturating_sub(kept_bytes));
        } else {
            (self.start, self.end) = (offset, offset + bytes);
        }
    }

    /// Whether a read finds everything in memory.
    pub(crate) fn holds(&self, offset: u64, bytes: u64) -> bool {
        offset >= self.start && offset + bytes <= self.end
    }
}
