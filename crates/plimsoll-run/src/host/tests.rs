//! Shares of an interval.

use super::share_of_us;

/// "Some task waited 100.07 % of the time" makes a reader doubt every figure beside it.
#[test]
fn a_share_of_an_interval_is_never_more_than_the_whole() {
    let second_ns = 1e9;
    for (part_us, share) in [(0, 0.0), (250_000, 0.25), (1_000_000, 1.0), (1_000_700, 1.0)] {
        assert_eq!(share_of_us(part_us, second_ns), share, "{part_us} µs of a second");
    }
}
