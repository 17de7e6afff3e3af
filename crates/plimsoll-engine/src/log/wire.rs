//! The smallest encoding of record fields: LEB128 numbers and length-prefixed bytes. Decoding is
//! total.

/// Appends fields to a byte vector.
pub trait PutWire {
    /// Unsigned LEB128.
    fn put_number(&mut self, value: u64);
    /// Signed, zigzag.
    fn put_signed(&mut self, value: i64);
    /// Length and bytes.
    fn put_bytes(&mut self, bytes: &[u8]);
}

impl PutWire for Vec<u8> {
    fn put_number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_signed(&mut self, value: i64) {
        self.put_number(((value << 1) ^ (value >> 63)) as u64);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_number(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Takes fields off the front of a byte slice; `None` means the bytes end or make no sense.
pub struct TakeWire<'a> {
    rest: &'a [u8],
}

impl<'a> TakeWire<'a> {
    /// Starts at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Unsigned LEB128.
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number that must fit `u32`.
    pub fn number_u32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// A number that must fit `usize`.
    pub fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    /// Signed, zigzag.
    pub fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some(((value >> 1) as i64) ^ -((value & 1) as i64))
    }

    /// `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Length and bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.size()?;
        self.take(count)
    }
}
