#![no_main]

use plimsoll_fuzz::databases::catalog_rows;
use plimsoll_fuzz::decoders::Decoders;
use plimsoll_fuzz::tell_sound;

thread_local!(static DECODERS: Decoders = Decoders::new());

libfuzzer_sys::fuzz_target!(
    init: tell_sound(|| DECODERS.with(|taker| taker.sound(&catalog_rows()))),
    |input: &[u8]| DECODERS.with(|taker| taker.take(input))
);
