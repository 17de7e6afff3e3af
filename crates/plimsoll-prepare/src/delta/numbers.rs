//! Numbers in as few bytes as they need.

/// Appends a number, seven bits to a byte, low bits first.
pub(super) fn push_number(coded: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        coded.push(number as u8 | 0x80);
        number >>= 7;
    }
    coded.push(number as u8);
}

/// Takes a number from the front.
pub(super) fn take_number(coded: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = coded[0];
        *coded = &coded[1..];
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Appends the difference of two numbers; small differences either way are short.
pub(super) fn push_difference(coded: &mut Vec<u8>, number: u64, expected: u64) {
    let difference = number.wrapping_sub(expected) as i64;
    push_number(coded, (difference << 1 ^ difference >> 63) as u64);
}

/// Takes the number of which [`push_difference`] kept the difference.
pub(super) fn take_difference(coded: &mut &[u8], expected: u64) -> u64 {
    let zigzag = take_number(coded);
    expected.wrapping_add(zigzag >> 1 ^ (zigzag & 1).wrapping_neg())
}

/// Appends bytes with their length.
pub(super) fn push_bytes(coded: &mut Vec<u8>, bytes: &[u8]) {
    push_number(coded, bytes.len() as u64);
    coded.extend_from_slice(bytes);
}

/// Takes bytes with their length.
pub(super) fn take_bytes<'a>(coded: &mut &'a [u8]) -> &'a [u8] {
    let length = take_number(coded) as usize;
    let (bytes, rest) = coded.split_at(length);
    *coded = rest;
    bytes
}
