//! Expands values that Windows stored compressed. We never compress.
//!
//! The top five bits of the first byte name the method.
//!
//! ```text
//! 1 seven-bit characters, packed from the low bit up; the low three bits of the first byte are the bits used of the last byte, less one
//! 2 the same, each character giving two bytes
//! 3 u16 expanded length, then plain LZ77 as in the published specification MS-XCA
//! ```

/// Why a value cannot be expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressionFault {
    /// A method of a later format, or none.
    #[error("compression method {method} is not known")]
    Method {
        /// Its number.
        method: u8,
    },
    /// The bytes end early or refer to bytes that are not there.
    #[error("the compressed bytes make no sense")]
    Damaged,
    /// It would grow beyond what its place allows.
    #[error("it expands to more than {limit_bytes} bytes")]
    TooLong {
        /// Limit.
        limit_bytes: usize,
    },
}

impl CompressionFault {
    /// Whether later versions of Windows have a method of this number, which is then no damage: 4
    /// scrambled, 5 and 6 two kinds of Xpress, 7 LZ4.
    pub fn is_later(method: u8) -> bool {
        (4..=7).contains(&method)
    }
}

/// How a chunk of a long value holds its stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packed {
    /// Byte by byte.
    Plain,
    /// Compressed, to be expanded to so many bytes.
    Compressed {
        /// Length of the stretch.
        bytes: usize,
    },
    /// Neither: a chunk is missing or the stretch ends before it begins.
    Impossible,
}

impl Packed {
    /// Judges by the lengths of what is stored and of the stretch. No stretch is longer than a
    /// page.
    pub(crate) fn of(stored: &[u8], stretch_bytes: u64, page_bytes: usize) -> Self {
        match usize::try_from(stretch_bytes) {
            Ok(bytes) if bytes == stored.len() => Packed::Plain,
            Ok(bytes) if bytes > stored.len() && bytes <= page_bytes => {
                Packed::Compressed { bytes }
            }
            _ => Packed::Impossible,
        }
    }
}

/// Expands a value to at most `limit_bytes`.
///
/// # Errors
/// See [`CompressionFault`].
pub fn decompress(value: &[u8], limit_bytes: usize) -> Result<Vec<u8>, CompressionFault> {
    let (first, packed) = value.split_first().ok_or(CompressionFault::Damaged)?;
    let bits_of_last_byte = usize::from(first & 7) + 1;
    let expanded = match first >> 3 {
        1 => seven_bit(packed, bits_of_last_byte).collect(),
        2 => seven_bit(packed, bits_of_last_byte).flat_map(|character| [character, 0]).collect(),
        3 => {
            let (length, packed) = packed.split_first_chunk().ok_or(CompressionFault::Damaged)?;
            let length_bytes = usize::from(u16::from_le_bytes(*length));
            lz77(packed, length_bytes)?
        }
        method => return Err(CompressionFault::Method { method }),
    };
    if expanded.len() > limit_bytes {
        return Err(CompressionFault::TooLong { limit_bytes });
    }
    Ok(expanded)
}

fn seven_bit(packed: &[u8], bits_of_last_byte: usize) -> impl Iterator<Item = u8> + '_ {
    let bits = (packed.len() * 8).saturating_sub(8 - bits_of_last_byte);
    (0..bits / 7).map(|character| {
        let bit = character * 7;
        let low = packed[bit / 8];
        let high = packed.get(bit / 8 + 1).copied().unwrap_or(0);
        (u16::from_le_bytes([low, high]) >> (bit % 8) & 0x7F) as u8
    })
}

/// Reads little-endian numbers off the front of a slice.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], CompressionFault> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(CompressionFault::Damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<usize, CompressionFault> {
        Ok(usize::from(self.take::<1>()?[0]))
    }
}

fn lz77(packed: &[u8], length_bytes: usize) -> Result<Vec<u8>, CompressionFault> {
    let mut input = Input(packed);
    let mut output: Vec<u8> = Vec::with_capacity(length_bytes);
    let (mut flags, mut flags_left) = (0u32, 0);
    // Two long matches share one byte of length, a nibble each.
    let mut spare_nibble: Option<usize> = None;
    while output.len() < length_bytes {
        if flags_left == 0 {
            flags = u32::from_le_bytes(input.take()?);
            flags_left = 32;
        }
        flags_left -= 1;
        if flags >> flags_left & 1 == 0 {
            output.push(input.take::<1>()?[0]);
            continue;
        }
        let word = usize::from(u16::from_le_bytes(input.take()?));
        let distance = (word >> 3) + 1;
        let match_bytes = match_length(&mut input, word & 7, &mut spare_nibble)?;
        let start = output.len().checked_sub(distance).ok_or(CompressionFault::Damaged)?;
        if output.len() + match_bytes > length_bytes {
            return Err(CompressionFault::Damaged);
        }
        // A match may reach into what it produces.
        for at in start..start + match_bytes {
            output.push(output[at]);
        }
    }
    Ok(output)
}

fn match_length(
    input: &mut Input<'_>,
    short: usize,
    spare_nibble: &mut Option<usize>,
) -> Result<usize, CompressionFault> {
    const SHORTEST: usize = 3;
    if short < 7 {
        return Ok(short + SHORTEST);
    }
    let nibble = match spare_nibble.take() {
        Some(nibble) => nibble,
        None => {
            let byte = input.byte()?;
            *spare_nibble = Some(byte >> 4);
            byte & 15
        }
    };
    if nibble < 15 {
        return Ok(7 + nibble + SHORTEST);
    }
    let byte = input.byte()?;
    if byte < 255 {
        return Ok(7 + 15 + byte + SHORTEST);
    }
    let mut long = usize::from(u16::from_le_bytes(input.take()?));
    if long == 0 {
        long = u32::from_le_bytes(input.take()?) as usize;
    }
    long.checked_add(SHORTEST).ok_or(CompressionFault::Damaged)
}
