//! The search must end at the knee wherever it begins, in few steps: each one takes the storage to
//! its limit.

use plimsoll_workload::Bisection;

/// Searches a storage that passes up to `knee`; returns the end and the rates tried.
fn search(first: f64, knee: f64) -> (Bisection, Vec<f64>) {
    played(Bisection::new(first, 0.5, 0.02), knee)
}

fn played(mut search: Bisection, knee: f64) -> (Bisection, Vec<f64>) {
    let mut tried = Vec::new();
    let mut previous = None;
    while let Some(rate) = search.next(previous) {
        tried.push(rate);
        assert!(tried.len() < 60, "it does not end: {tried:?}");
        previous = Some((rate, rate <= knee));
    }
    (search, tried)
}

/// Whoever buys storage by this number wants it within the tolerance, from below.
#[test]
fn the_bracket_holds_the_knee() {
    for (first, knee) in [(100.0, 1234.0), (5000.0, 1234.0), (1234.0, 1234.0), (1.0, 40_000.0)] {
        let (search, tried) = search(first, knee);
        let (passed, failed) = (search.passed().unwrap(), search.failed().unwrap());
        assert!(passed <= knee && knee < failed, "{passed} {knee} {failed}");
        assert!(failed <= passed * 1.0201, "{passed} {failed}");
        let most = 8.0 + (knee / first).log2().abs();
        assert!((tried.len() as f64) <= most, "{} steps from {first} to {knee}", tried.len());
    }
}

/// Sessions are whole: the answer is the last that passes, from wherever the search begins, and a
/// limit that nobody meets ends it at the most that may be tried.
#[test]
fn whole_numbers_are_found_to_the_last_one() {
    for knee in 0..=40u32 {
        for first in [1, 3, 7, 40, 90] {
            let (search, tried) = played(Bisection::whole(first, 32, 0.0), f64::from(knee));
            let expected = (knee > 0).then_some(f64::from(knee.min(32)));
            assert_eq!(search.passed(), expected, "from {first} to {knee}: {tried:?}");
            let failed = (knee < 32).then_some(f64::from(knee + 1));
            assert_eq!(search.failed(), failed, "from {first} to {knee}: {tried:?}");
            let possible = |tried: &f64| tried.fract() == 0.0 && (1.0..=32.0).contains(tried);
            assert!(tried.iter().all(possible), "{tried:?}");
            assert!(tried.len() <= 12, "{tried:?}");
        }
    }
    let (search, _) = played(Bisection::whole(1, 10_000, 0.05), 1234.0);
    let (passed, failed) = (search.passed().unwrap(), search.failed().unwrap());
    assert!(passed <= 1234.0 && 1234.0 < failed && failed <= 1.05 * passed, "{passed} {failed}");
}

/// A storage that fails at any rate must not be asked for ever.
#[test]
fn it_gives_up_when_nothing_passes() {
    let (search, tried) = search(1000.0, 0.0);
    assert_eq!(search.passed(), None);
    assert_eq!(tried.last(), Some(&0.5), "down to where nothing can be measured any more");
    assert!(tried.len() <= 12);
}

/// A rate is never tried above what has failed: that would only do harm.
#[test]
fn nothing_above_a_failed_rate_is_tried_again() {
    let (_, tried) = search(3000.0, 100.0);
    let mut failed = f64::INFINITY;
    for rate in tried {
        assert!(rate < failed);
        if rate > 100.0 {
            failed = rate;
        }
    }
}

/// What passed for seconds and fails for minutes is no answer, nor is what was measured before it
/// went wrong.
#[test]
fn a_rate_that_is_taken_back_is_looked_for_below() {
    let (mut search, _) = search(100.0, 1234.0);
    let passed = search.passed().expect("a rate passes");
    search.withdraw(passed);
    let mut previous = None;
    while let Some(rate) = search.next(previous) {
        assert!(rate < passed);
        previous = Some((rate, rate <= 700.0));
    }
    let (found, failed) =
        (search.passed().expect("a rate passes"), search.failed().expect("one fails"));
    assert!(found <= 700.0 && 700.0 < failed && failed <= found * 1.0201, "{found} {failed}");
}
