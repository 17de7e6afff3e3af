//! Inputs that are kept: those with which `make fuzz` reaches everything it has ever reached, in
//! one packed file for each target (`tests/fuzz/guided.py` packs them).

#![expect(clippy::disallowed_methods, reason = "they lie on the real disk")]

use std::io::Read;
use std::path::Path;

/// The inputs in a file, which need not be there.
pub fn unpack(path: &Path) -> Vec<Vec<u8>> {
    let Ok(packed) = std::fs::read(path) else {
        return Vec::new();
    };
    let (mut bytes, mut inputs) = (Vec::new(), Vec::new());
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("it was packed here");
    let mut rest = &bytes[..];
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (input, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        inputs.push(input.to_vec());
        rest = behind;
    }
    inputs
}
