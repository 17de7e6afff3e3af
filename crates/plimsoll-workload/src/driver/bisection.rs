//! Which rate to try next, given how the ones before went: doubled or halved until one passes and
//! one fails, then the bracket is halved until it is narrow enough. Rates are divided, not
//! subtracted, so the tolerance is a share of the rate.

/// See the module text.
#[derive(Clone, Copy, Debug)]
pub struct Bisection {
    tolerance: f64,
    first: f64,
    lowest: f64,
    passed: Option<f64>,
    failed: Option<f64>,
}

impl Bisection {
    /// A search from `first` until the lowest failing rate is at most `tolerance` (a share) above
    /// the highest passing one. Below `lowest` there is too little to measure: nothing is tried
    /// there.
    pub fn new(first: f64, lowest: f64, tolerance: f64) -> Self {
        Self { tolerance, first: first.max(lowest), lowest, passed: None, failed: None }
    }

    /// The rate to try after one that passed or failed; `None` when the search is over.
    pub fn next(&mut self, previous: Option<(f64, bool)>) -> Option<f64> {
        match previous {
            Some((rate, true)) => {
                self.passed = Some(self.passed.map_or(rate, |best| best.max(rate)))
            }
            Some((rate, false)) => {
                self.failed = Some(self.failed.map_or(rate, |worst| worst.min(rate)))
            }
            None => {}
        }
        match (self.passed, self.failed) {
            (None, None) => Some(self.first),
            (Some(passed), None) => Some(passed * 2.0),
            (None, Some(failed)) => {
                (failed > self.lowest).then_some((failed / 2.0).max(self.lowest))
            }
            (Some(passed), Some(failed)) => {
                (failed > passed * (1.0 + self.tolerance)).then(|| (passed * failed).sqrt())
            }
        }
    }

    /// Takes back that a rate passed: it did not when it was tried again for longer. What passed
    /// below it was measured before the storage had come that far and does not count any more.
    pub fn withdraw(&mut self, rate: f64) {
        self.failed = Some(self.failed.map_or(rate, |worst| worst.min(rate)));
        self.passed = None;
    }

    /// The highest rate that passed.
    pub fn passed(&self) -> Option<f64> {
        self.passed
    }

    /// The lowest rate that failed.
    pub fn failed(&self) -> Option<f64> {
        self.failed
    }
}
