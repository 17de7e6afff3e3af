//! Blank memory.

/// Whether every byte is zero. Much of a new file is, so whole pieces are looked at: byte by byte
/// this is what reading a young log costs.
pub fn is_zero(bytes: &[u8]) -> bool {
    let (pieces, rest) = bytes.as_chunks::<32>();
    pieces.iter().all(|piece| *piece == [0; 32]) && rest.iter().all(|byte| *byte == 0)
}
