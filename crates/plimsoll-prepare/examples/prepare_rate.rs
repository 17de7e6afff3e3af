//! How fast one core makes prepared pages, per page size and kind of plan. Build with `--release`.

#![expect(clippy::disallowed_methods, reason = "it measures on the real clock")]

use std::time::Instant;

use plimsoll_engine::PageSize;
use plimsoll_prepare::{Extent, LongValues, Plan, PreparedDatabase};

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("warning: a debug build; the figures mean nothing");
    }
    for size in PageSize::ALL {
        for (name, compressible_percent, long_values) in [
            ("random", 0, None),
            ("half compressible", 50, None),
            ("long values", 0, Some(LongValues { every: 4, bytes: 30_000 })),
        ] {
            let plan = Plan {
                compressible_percent,
                long_values,
                ..Plan::new(size, Extent::Bytes(1 << 30), 1)
            };
            measure(name, plan);
        }
    }
}

fn measure(name: &str, plan: Plan) {
    let database = PreparedDatabase::new(plan).expect("the plan is possible");
    let page_bytes = database.page_size().bytes();
    let mut buffer = vec![0; 1 << 20];
    let mut rates = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        for page in 1..=database.pages() {
            let at = page as usize * page_bytes % buffer.len();
            database.page(page, &mut buffer[at..at + page_bytes]);
        }
        let bytes = f64::from(database.pages()) * page_bytes as f64;
        rates.push(bytes / started.elapsed().as_secs_f64() / 1e9);
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{:>6} {name:<18} {:.2} GB/s (slowest {:.2}, fastest {:.2})",
        database.page_size().to_string(),
        rates[2],
        rates[0],
        rates[4]
    );
}
