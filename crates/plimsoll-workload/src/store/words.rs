//! The vocabulary: words made of syllables. All words of a list have the same length and none
//! begins another, so no two are alike.
//!
//! Words have at least four letters, because full-text indexes of some databases leave shorter ones
//! out, and none is a word of a natural language on purpose: stemming must not fold two of them
//! into one.

/// Words of titles.
pub const WORDS: u64 = 1_000;
/// First names of actors.
pub const FIRST_NAMES: u64 = 200;
/// Last names of actors.
pub const LAST_NAMES: u64 = 200;

const OPENING: [&str; 10] = ["BA", "DO", "FI", "GU", "KE", "LA", "MO", "NI", "PU", "RE"];
const MIDDLE: [&str; 10] = ["VA", "ZO", "TI", "SU", "JE", "NA", "KO", "LI", "DU", "ME"];
const CLOSING: [&str; 10] = ["RX", "LK", "NZ", "MB", "GT", "PF", "DV", "KS", "TH", "BR"];
const FIRST_CLOSING: [&str; 2] = ["QA", "QO"];
const LAST_CLOSING: [&str; 2] = ["WIK", "WUK"];

/// Word `index`, from 0 to [`WORDS`] excluded.
pub fn word(index: u64) -> String {
    let [hundreds, tens, units] =
        [index / 100 % 10, index / 10 % 10, index % 10].map(|digit| digit as usize);
    [OPENING[hundreds], MIDDLE[tens], CLOSING[units]].concat()
}

/// First name `index`, from 0 to [`FIRST_NAMES`] excluded.
pub fn first_name(index: u64) -> String {
    let [hundreds, tens, units] =
        [index / 100 % 2, index / 10 % 10, index % 10].map(|digit| digit as usize);
    [OPENING[tens], MIDDLE[units], FIRST_CLOSING[hundreds]].concat()
}

/// Last name `index`, from 0 to [`LAST_NAMES`] excluded.
pub fn last_name(index: u64) -> String {
    let [hundreds, tens, units] =
        [index / 100 % 2, index / 10 % 10, index % 10].map(|digit| digit as usize);
    [OPENING[tens], MIDDLE[units], LAST_CLOSING[hundreds]].concat()
}
