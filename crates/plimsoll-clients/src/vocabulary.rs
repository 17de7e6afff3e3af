//! What can be searched for in a store that somebody else made: actors and titles that are there.
//!
//! The demand draws from words of ours, which nobody finds there. Each of its searches stands for
//! one of the sample, always the same one.

/// Rows that are looked at.
pub const SAMPLE_ROWS: i64 = 2_000;

/// See the module text. An empty one lets searches be what they are.
#[derive(Debug, Default)]
pub struct Vocabulary {
    actors: Vec<String>,
    titles: Vec<String>,
}

impl Vocabulary {
    /// Of these.
    pub fn new(actors: Vec<String>, titles: Vec<String>) -> Vocabulary {
        Vocabulary { actors, titles }
    }

    /// The actor that a search stands for.
    pub fn actor<'a>(&'a self, asked: &'a str) -> &'a str {
        drawn(&self.actors, asked)
    }

    /// The title that a search stands for.
    pub fn title<'a>(&'a self, asked: &'a str) -> &'a str {
        drawn(&self.titles, asked)
    }
}

fn drawn<'a>(known: &'a [String], asked: &'a str) -> &'a str {
    let mixed = asked.bytes().fold(0xCBF2_9CE4_8422_2325u64, |mixed, byte| {
        (mixed ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    });
    match known.len() as u64 {
        0 => asked,
        count => &known[(mixed % count) as usize],
    }
}
