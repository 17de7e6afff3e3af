#![no_main]

use plimsoll_fuzz::recovery::Recoveries;
use plimsoll_fuzz::tell_sound;

thread_local!(static RECOVERIES: Recoveries = Recoveries::new());

libfuzzer_sys::fuzz_target!(
    init: tell_sound(|| RECOVERIES.with(|taker| taker.sound())),
    |input: &[u8]| RECOVERIES.with(|taker| taker.take(input))
);
