//! The layout of a mark: a block of 4 KiB whose eight sectors each tell whose they are.
//!
//! ```text
//! 0   magic            8 bytes
//! 8   run              u64
//! 16  lane             u32
//! 20  sector in block  u32
//! 24  sequence         u64   0: written before the work began
//! 32  started          u64
//! 40  filler           464 bytes that follow from all of the above, so that nothing compresses or repeats
//! 504 checksum         u64   CRC-64/NVME of the bytes before it
//! ```

use plimsoll_io::Random;

/// Bytes of a mark: what storage with 4 KiB sectors promises to write in one piece.
pub const MARK_BYTES: usize = 4096;
/// The smallest piece that is told apart.
pub const SECTOR_BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"PLIMMARK";
const FILLER: std::ops::Range<usize> = 40..504;

/// What a sector says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Which run.
    pub run: u64,
    /// Which lane.
    pub lane: u32,
    /// Which write of the lane.
    pub sequence: u64,
    /// Acknowledgements when it was begun.
    pub started: u64,
}

/// Writes a whole mark into a block.
pub fn encode(label: Label, block: &mut [u8]) {
    assert_eq!(block.len(), MARK_BYTES, "a mark is one block");
    for (index, sector) in block.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..16].copy_from_slice(&label.run.to_le_bytes());
        sector[16..20].copy_from_slice(&label.lane.to_le_bytes());
        sector[20..24].copy_from_slice(&(index as u32).to_le_bytes());
        sector[24..32].copy_from_slice(&label.sequence.to_le_bytes());
        sector[32..40].copy_from_slice(&label.started.to_le_bytes());
        let seed =
            label.run ^ label.sequence.rotate_left(20) ^ u64::from(label.lane) << 8 ^ index as u64;
        Random::from_seed(seed).fill(&mut sector[FILLER]);
        let sum = checksum(&sector[..FILLER.end]);
        sector[FILLER.end..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// What each sector of a block says; `None` where it is damaged or not where it belongs.
pub fn decode(run: u64, lane: u32, block: &[u8]) -> Vec<Option<Label>> {
    let sectors = block.chunks_exact(SECTOR_BYTES).enumerate();
    sectors
        .map(|(index, sector)| decode_sector(index as u32, sector))
        .map(|label| label.filter(|label| label.run == run && label.lane == lane))
        .collect()
}

fn decode_sector(index: u32, sector: &[u8]) -> Option<Label> {
    let number =
        |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"));
    let is_whole = sector[..8] == MAGIC && number(FILLER.end) == checksum(&sector[..FILLER.end]);
    (is_whole && half(20) == index).then(|| Label {
        run: number(8),
        lane: half(16),
        sequence: number(24),
        started: number(32),
    })
}

fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes)
}
