//! Which rate to try next, given how the ones before went: doubled or halved until one passes and
//! one fails, then the bracket is halved until it is narrow enough. Rates are divided, not
//! subtracted, so the tolerance is a share of the rate. Counts, such as sessions, stay whole.

/// See the module text.
#[derive(Clone, Copy, Debug)]
pub struct Bisection {
    tolerance: f64,
    first: f64,
    lowest: f64,
    highest: f64,
    is_whole: bool,
    passed: Option<f64>,
    failed: Option<f64>,
}

impl Bisection {
    /// A search from `first` until the lowest failing rate is at most `tolerance` (a share) above
    /// the highest passing one. Below `lowest` there is too little to measure: nothing is tried
    /// there.
    pub fn new(first: f64, lowest: f64, tolerance: f64) -> Self {
        let first = first.max(lowest);
        let highest = f64::INFINITY;
        Self { tolerance, first, lowest, highest, is_whole: false, passed: None, failed: None }
    }

    /// A search for a whole number from 1 to `most`. It ends as well when no number lies between
    /// the highest that passed and the lowest that failed, or when `most` passes.
    pub fn whole(first: u32, most: u32, tolerance: f64) -> Self {
        let highest = f64::from(most.max(1));
        let first = f64::from(first).clamp(1.0, highest);
        Self { tolerance, first, lowest: 1.0, highest, is_whole: true, passed: None, failed: None }
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
            (Some(passed), None) => {
                (passed < self.highest).then_some((passed * 2.0).min(self.highest))
            }
            (None, Some(failed)) => {
                (failed > self.lowest).then(|| self.rounded(failed / 2.0).max(self.lowest))
            }
            (Some(passed), Some(failed)) => {
                let is_wide = failed > passed * (1.0 + self.tolerance);
                let has_between = !self.is_whole || failed - passed > 1.0;
                (is_wide && has_between).then(|| self.between(passed, failed))
            }
        }
    }

    fn rounded(&self, rate: f64) -> f64 {
        if self.is_whole { rate.floor() } else { rate }
    }

    fn between(&self, passed: f64, failed: f64) -> f64 {
        let middle = (passed * failed).sqrt();
        if self.is_whole { middle.round().clamp(passed + 1.0, failed - 1.0) } else { middle }
    }

    /// Takes back that a rate passed: it did not when it was tried again for longer. What passed
    /// below it was measured before the storage had come that far and does not count any more.
    pub fn withdraw(&mut self, rate: f64) {
        self.failed = Some(self.failed.map_or(rate, |worst| worst.min(rate)));
        self.passed = None;
    }

    /// Where it begins.
    pub fn first(&self) -> f64 {
        self.first
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
