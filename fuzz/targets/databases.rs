#![no_main]

use plimsoll_fuzz::databases::Databases;
use plimsoll_fuzz::tell_sound;

thread_local!(static DATABASES: Databases = Databases::new());

libfuzzer_sys::fuzz_target!(
    init: tell_sound(|| DATABASES.with(|taker| taker.sound())),
    |input: &[u8]| DATABASES.with(|taker| taker.take(input))
);
