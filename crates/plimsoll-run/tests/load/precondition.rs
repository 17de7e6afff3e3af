//! When a storage counts as steady.

use plimsoll_run::steadiness;

fn check(rounds: &[f64], range_percent: f64, slope_percent: f64) {
    let found = steadiness(rounds).expect("there are rounds enough");
    assert!((found.range_percent - range_percent).abs() < 1e-9, "{found:?}");
    assert!((found.slope_percent - slope_percent).abs() < 1e-9, "{found:?}");
}

/// Range and slope are those of the published rule: extremes about the mean, and the ends of the
/// best straight line.
#[test]
fn range_and_slope_are_shares_of_the_mean() {
    check(&[100.0; 5], 0.0, 0.0);
    check(&[80.0, 90.0, 100.0, 110.0, 120.0], 40.0, 40.0);
    check(&[120.0, 110.0, 100.0, 90.0, 80.0], 40.0, 40.0);
    // One round out of line in the middle has a range and no slope.
    check(&[95.0, 95.0, 120.0, 95.0, 95.0], 25.0, 0.0);
}

/// Without I/O nothing is steady: a storage that stands still must not count as one that keeps its
/// rate.
#[test]
fn nothing_is_said_of_nothing() {
    assert!(steadiness(&[]).is_none());
    assert!(steadiness(&[5.0]).is_none());
    assert!(steadiness(&[0.0, 0.0, 0.0]).is_none());
}
