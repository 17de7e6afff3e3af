//! Damage by chance: what a deterministic test gives to the decoders. `make fuzz` has something
//! better, which looks at what each input reaches.

use plimsoll_io::Random;

/// One of several.
pub fn pick<'a, T>(from: &'a [T], random: &mut Random) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

/// Changes bytes in one to eight ways: single bits, whole bytes, numbers at their limits, noise,
/// pieces moved, what stands at the end.
pub fn mutate(bytes: &mut [u8], random: &mut Random) {
    const LIMITS: [u32; 9] = [0, 1, 0x1FFF, 0x4000, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, u32::MAX];
    let length = bytes.len() as u64;
    if length == 0 {
        return;
    }
    for _ in 0..1 + random.below(8) {
        let at = random.below(length) as usize;
        match random.below(8) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next_u64() as u8,
            3 => {
                let width = *pick(&[2, 4], random);
                let value = pick(&LIMITS, random).to_le_bytes();
                let end = (at + width).min(bytes.len());
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
            4 => {
                let end = (at + random.below(64) as usize).min(bytes.len());
                random.fill(&mut bytes[at..end]);
            }
            5 => {
                let count = random.below(length - at as u64) as usize;
                let to = random.below(length - count as u64) as usize;
                bytes.copy_within(at..at + count, to);
            }
            // Where pages have their tags.
            6 => {
                let back = 1 + random.below(length.min(64)) as usize;
                bytes[length as usize - back] = random.next_u64() as u8;
            }
            _ => {}
        }
    }
}
