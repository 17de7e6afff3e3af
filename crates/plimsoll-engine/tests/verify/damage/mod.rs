//! Damage under a database that is then put to work: flipped, swapped, stale, zeroed and torn
//! pages, and damaged headers, flush maps, checkpoints and logs. `corruption.rs` does the same to
//! files that are only read.
//!
//! Why it matters: storage that returns wrong data must show as an error, never as an answer. Each
//! campaign counts the damages it has done, not those it has drawn, and prints what came of them by
//! kind; the classes that can be missed are named here and in `docs/reliability.md`. The slow forms
//! do them by the thousand (`make damage`).

mod files;
mod logs;
mod pages;
mod patient;
mod stale;

use std::collections::BTreeMap;

/// What came of one damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Nothing is wrong, and nobody says that anything is.
    Harmless,
    /// `verify` counts flipped bits that can be flipped back, and everything can be read.
    Mended,
    /// Reading all rows does not come by it; whoever looks at every page names it.
    Noticed,
    /// Pages that are sound each by itself do not fit together, and reading fails over that.
    Misfit,
    /// Rows, or the whole database, are refused with an error that names the damage.
    Refused,
    /// A wrong row came back, or rows are missing without an error.
    Missed,
}

/// How often each kind of damage had each fate, by where it was.
#[derive(Default)]
struct Table {
    counts: BTreeMap<(&'static str, Fate), BTreeMap<String, u64>>,
}

impl Table {
    fn note(&mut self, kind: &'static str, fate: Fate, place: &str) {
        let places = self.counts.entry((kind, fate)).or_default();
        *places.entry(place.to_owned()).or_default() += 1;
    }

    fn count(&self, kind: &str, fate: Fate) -> u64 {
        let places = self.counts.get(&(kind, fate));
        places.map_or(0, |places| places.values().sum())
    }

    fn met(&self, kind: &str) -> bool {
        self.counts.keys().any(|(met, _)| *met == kind)
    }

    fn met_place(&self, word: &str) -> bool {
        let mut places = self.counts.values().flat_map(BTreeMap::keys);
        places.any(|place| place.contains(word))
    }

    fn total(&self) -> u64 {
        self.counts.values().flat_map(BTreeMap::values).sum()
    }

    fn print(&self, title: &str) {
        println!("{title}: {} damages", self.total());
        for ((kind, fate), places) in &self.counts {
            let places: Vec<String> =
                places.iter().map(|(place, count)| format!("{place} {count}")).collect();
            let count = self.count(kind, *fate);
            println!("  {kind}: {fate:?} {count} ({})", places.join(", "));
        }
    }
}
