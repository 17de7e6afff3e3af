//! What can be searched for in a store that somebody else made: actors and titles that are there.
//!
//! The demand draws from words of ours, which nobody finds there. Each of its searches stands for one of the sample, always the same one.

use tokio_postgres::{Client, Error};

/// Rows that are looked at.
const SAMPLE_ROWS: i64 = 2_000;

/// See the module text. An empty one lets searches be what they are.
#[derive(Debug, Default)]
pub struct Vocabulary {
    actors: Vec<String>,
    titles: Vec<String>,
}

impl Vocabulary {
    /// From the products of a database, evenly spread over their numbers.
    pub async fn of(client: &Client) -> Result<Vocabulary, Error> {
        let text = "SELECT actor, title FROM products WHERE prod_id % greatest(1, (SELECT count(*) FROM products) / $1) = 0 \
            ORDER BY prod_id LIMIT $1";
        let rows = client.query(text, &[&SAMPLE_ROWS]).await?;
        Ok(Vocabulary {
            actors: rows.iter().map(|row| row.get(0)).collect(),
            titles: rows.iter().map(|row| row.get(1)).collect(),
        })
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
