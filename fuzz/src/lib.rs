//! What the fuzzing targets do with an input is what the engine's own tests do: their files,
//! compiled once more.

#![allow(dead_code, reason = "the targets use a part of what the tests use")]

#[path = "../../crates/plimsoll-engine/tests/fuzz/databases.rs"]
pub mod databases;
#[path = "../../crates/plimsoll-engine/tests/fuzz/decoders.rs"]
pub mod decoders;
#[path = "../../crates/plimsoll-engine/tests/golden/mod.rs"]
mod golden;
#[path = "../../crates/plimsoll-engine/tests/fuzz/recovery.rs"]
pub mod recovery;
#[path = "../../crates/plimsoll-engine/tests/support/mod.rs"]
mod support;

/// Writes sound inputs into the folder that `PLIMSOLL_FUZZ_SOUND` names, if it names one: what the
/// search begins with.
#[expect(clippy::disallowed_methods, reason = "libFuzzer reads files")]
pub fn tell_sound(inputs: impl FnOnce() -> Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os("PLIMSOLL_FUZZ_SOUND") else {
        return;
    };
    for (number, input) in inputs().into_iter().enumerate() {
        let path = std::path::Path::new(&folder).join(format!("sound-{number:04}"));
        std::fs::write(path, input).expect("a folder that can be written");
    }
}
