//! Generated content with a length: zero from there on, because what a file is extended by is new,
//! whatever the content would say.

use std::ops::Range;

use crate::Vouch;
use crate::sparse::Sparse;

/// See the module text.
#[derive(Clone)]
pub(crate) struct Generated {
    sparse: Sparse,
    length_bytes: u64,
}

impl Generated {
    pub(super) fn new(sparse: Sparse, length_bytes: u64) -> Self {
        assert!(
            length_bytes.is_multiple_of(sparse.content.unit_bytes() as u64),
            "generated content is a whole number of units"
        );
        Self { sparse, length_bytes }
    }

    pub(super) fn unit_bytes(&self) -> usize {
        self.sparse.content.unit_bytes()
    }

    fn offset_of(&self, unit: usize) -> u64 {
        unit as u64 * self.unit_bytes() as u64
    }

    fn fill(&self, unit: usize, bytes: &mut [u8]) {
        let offset = self.offset_of(unit);
        if offset < self.length_bytes {
            self.sparse.content.fill(offset, bytes);
        } else {
            bytes.fill(0);
        }
    }

    /// Makes a whole unit that has this code, or none.
    pub(super) fn read(&self, unit: usize, code: Option<&[u8]>, bytes: &mut [u8]) {
        self.fill(unit, bytes);
        if let Some(code) = code {
            self.sparse.delta.decode(code, bytes);
        }
    }

    /// The code of a unit written as a whole; `generated` is a unit of memory to work in.
    pub(super) fn code_whole(&self, unit: usize, written: &[u8], generated: &mut [u8]) -> Vec<u8> {
        self.fill(unit, generated);
        self.sparse.delta.encode(generated, written)
    }

    /// The code of a unit with this code once `bytes` are written to a part of it.
    pub(super) fn code_part(
        &self,
        unit: usize,
        code: Option<&[u8]>,
        within: Range<usize>,
        bytes: &[u8],
    ) -> Vec<u8> {
        let mut work = vec![0; self.unit_bytes()];
        if bytes.len() == work.len() {
            return self.code_whole(unit, bytes, &mut work);
        }
        let mut written = work.clone();
        self.read(unit, code, &mut written);
        written[within].copy_from_slice(bytes);
        self.code_whole(unit, &written, &mut work)
    }

    /// What is known of a unit with this code, or none.
    pub(super) fn vouch(&self, unit: usize, code: Option<&[u8]>) -> Option<Vouch> {
        let offset = self.offset_of(unit);
        match code {
            Some(code) => self.sparse.delta.vouch(code),
            None if offset < self.length_bytes => self.sparse.content.vouch(offset),
            None => None,
        }
    }
}
