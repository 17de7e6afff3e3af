//! The codes of the units that were written in a sparse file, packed: the codes of neighbours lie
//! one behind the other in one piece of memory.
//!
//! After a day of load ten million units of a terabyte are changed, spread evenly, each with a code
//! of a hundred bytes. A table of pointers costs as much again, and as many small allocations slow
//! everything else down.
//!
//! ```text
//! segment n, units 256 n ..: places {unit in the segment, end of its code}, ascending | codes in the same order
//! ```

#[cfg(test)]
mod tests;

use std::rc::Rc;

const SEGMENT_UNITS: usize = 256;
/// A segment that must grow gets this share more than it needs: enough that few writes move it, not
/// so much that it shows.
const SPARE_SHARE: usize = 8;

#[derive(Clone, Copy)]
struct Place {
    unit: u8,
    end: u32,
}

#[derive(Clone, Default)]
struct Segment {
    places: Vec<Place>,
    codes: Vec<u8>,
}

impl Segment {
    fn find(&self, unit: u8) -> Result<usize, usize> {
        self.places.binary_search_by_key(&unit, |place| place.unit)
    }

    fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.places[before].end as usize)
    }

    fn get(&self, unit: u8) -> Option<&[u8]> {
        let index = self.find(unit).ok()?;
        Some(&self.codes[self.start_of(index)..self.places[index].end as usize])
    }

    fn set(&mut self, unit: u8, code: &[u8]) {
        let index = match self.find(unit) {
            Ok(index) => index,
            Err(_) if code.is_empty() => return,
            Err(index) => {
                let end = self.start_of(index) as u32;
                reserve(&mut self.places, 1);
                self.places.insert(index, Place { unit, end });
                index
            }
        };
        let (start, end) = (self.start_of(index), self.places[index].end as usize);
        reserve(&mut self.codes, code.len().saturating_sub(end - start));
        self.codes.splice(start..end, code.iter().copied());
        for place in &mut self.places[index..] {
            place.end = (place.end as usize + code.len() - (end - start)) as u32;
        }
        if code.is_empty() {
            self.places.remove(index);
        }
    }
}

fn reserve<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() < items.len() + more {
        items.reserve_exact(more + items.len() / SPARE_SHARE);
    }
}

/// See the module text. Copies share every segment until one of them changes it.
#[derive(Clone, Default)]
pub(crate) struct Codes {
    segments: Vec<Option<Rc<Segment>>>,
}

impl Codes {
    /// The code of a unit; `None` for one that is as generated.
    pub(crate) fn get(&self, unit: usize) -> Option<&[u8]> {
        let segment = self.segments.get(unit / SEGMENT_UNITS)?.as_ref()?;
        segment.get((unit % SEGMENT_UNITS) as u8)
    }

    /// Keeps the code of a unit; an empty one means as generated and is not kept.
    pub(crate) fn set(&mut self, unit: usize, code: &[u8]) {
        let index = unit / SEGMENT_UNITS;
        if index >= self.segments.len() {
            if code.is_empty() {
                return;
            }
            self.segments.resize(index + 1, None);
        }
        let segment = self.segments[index].get_or_insert_default();
        Rc::make_mut(segment).set((unit % SEGMENT_UNITS) as u8, code);
    }

    /// Forgets every unit from `units` on.
    pub(crate) fn truncate(&mut self, units: usize) {
        self.segments.truncate(units.div_ceil(SEGMENT_UNITS));
        for unit in units..self.segments.len() * SEGMENT_UNITS {
            if self.get(unit).is_some() {
                self.set(unit, &[]);
            }
        }
    }

    /// Bytes of all codes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let segments = self.segments.iter().flatten();
        segments.map(|segment| segment.codes.len() as u64).sum()
    }
}
