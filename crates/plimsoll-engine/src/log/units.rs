//! What one write of the log consists of: which units, which shadow, where in the file. The writer
//! frames units with it, and who is told of a flush can frame them once more, to the same bytes.

use super::framing::Framing;
use super::{HEADER_BYTES, Lsn};
use crate::logtime::LogTime;

/// Units of one generation that are written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitWrite {
    /// The first unit, on devices with larger blocks that of the block.
    first: u32,
    /// The last unit with payload of its own.
    last: u32,
    /// The unit behind it that is a shadow, if any, stands for this one.
    shadow: Option<u32>,
    /// The unit after the last that is written; what lies behind payload and shadow is blank.
    end: u32,
    /// Where the payload written ends.
    payload_end: u32,
    /// What its segments say of the time.
    time: LogTime,
}

impl UnitWrite {
    /// Units `first..=last` (possibly none) and after them a shadow of unit `shadow`, for a device
    /// with blocks of `alignment_bytes`.
    pub fn new(
        framing: Framing,
        (first, last, shadow): (u32, u32, Option<u32>),
        payload_end: u32,
        alignment_bytes: u32,
        time: LogTime,
    ) -> Self {
        let unit_bytes = framing.unit_bytes() as u64;
        let alignment = u64::from(alignment_bytes).max(unit_bytes);
        // The neighbours in the same block are written again as they are.
        let start =
            (u64::from(first) * unit_bytes / alignment * alignment).max(HEADER_BYTES as u64);
        let units_end = u64::from(last + 1 + u32::from(shadow.is_some())) * unit_bytes;
        let end = units_end.next_multiple_of(alignment);
        Self {
            first: (start / unit_bytes) as u32,
            last,
            shadow,
            end: (end / unit_bytes) as u32,
            payload_end,
            time,
        }
    }

    /// The units of the file that it covers.
    pub fn units(&self) -> std::ops::Range<u32> {
        self.first..self.end
    }

    /// Where in the file it goes.
    pub fn offset(&self, framing: Framing) -> u64 {
        u64::from(self.first) * framing.unit_bytes() as u64
    }

    /// Frames one of its units. `payload` begins at payload offset `payload_from`.
    pub fn frame(
        &self,
        framing: Framing,
        unit: &mut [u8],
        index: u32,
        (generation, flush): (u32, u32),
        (payload, payload_from): (&[u8], u32),
    ) {
        unit.fill(0);
        let content = if index <= self.last { Some(index) } else { self.shadow };
        if let Some(content) = content.filter(|_| index <= self.last + 1) {
            let start = framing.payload_start(content);
            let end = (start + framing.payload_bytes() as u32).min(self.payload_end);
            let bytes = &payload[(start - payload_from) as usize..(end - payload_from) as usize];
            framing.encode(unit, generation, content, flush, bytes, self.time);
        }
    }
}

/// The payload offset at which the first of these writes begins.
pub fn payload_start(framing: Framing, writes: &[UnitWrite], otherwise: Lsn) -> u32 {
    let first = writes.iter().map(|write| write.first).min();
    first.map_or(otherwise.offset, |first| framing.payload_start(first))
}
