//! How many seeds a campaign tries.

/// Seeds to try: a few, or as many as `PLIMSOLL_SEEDS` says.
#[expect(clippy::disallowed_methods, reason = "the seeds to try are chosen from outside")]
pub fn seeds(few: u64) -> u64 {
    let wanted = std::env::var("PLIMSOLL_SEEDS").ok();
    wanted.map_or(few, |text| text.parse().expect("PLIMSOLL_SEEDS is a number"))
}
