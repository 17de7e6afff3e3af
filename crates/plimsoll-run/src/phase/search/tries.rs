//! Which rate or number of sessions is tried next, and what follows from how it went.
//!
//! A rate that failed while the load generator was late says nothing of the storage: it is tried
//! once more, because what keeps a generator from its processor often passes.

use plimsoll_workload::Bisection;

/// What a step is limited by where the generator was late.
pub const GENERATOR: &str = "generator";

/// One level to be tried: a rate per second, or a number of sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Try {
    pub level: f64,
    /// It is the answer, tried for longer.
    pub confirms: bool,
}

/// The tries of a search.
pub struct Tries {
    pub bisection: Bisection,
    previous: Option<(f64, bool)>,
    /// The rate that is tried once more.
    again: Option<f64>,
    pub confirmed: bool,
}

impl Tries {
    /// Nothing tried yet.
    pub fn new(bisection: Bisection) -> Self {
        Tries { bisection, previous: None, again: None, confirmed: false }
    }

    /// The next rate; `None` when the search is over.
    pub fn next(&mut self) -> Option<Try> {
        if self.confirmed {
            return None;
        }
        match self.bisection.next(self.previous.take()) {
            Some(level) => Some(Try { level, confirms: false }),
            None => self.bisection.passed().map(|level| Try { level, confirms: true }),
        }
    }

    /// Takes in whether a try passed, and what it failed by.
    pub fn note(&mut self, tried: Try, passed: bool, failed_by: Option<&str>) {
        let by_generator = !passed && failed_by == Some(GENERATOR);
        if by_generator && self.again != Some(tried.level) {
            self.again = Some(tried.level);
            return;
        }
        self.again = None;
        match (tried.confirms, passed) {
            (false, _) => self.previous = Some((tried.level, passed)),
            (true, true) => self.confirmed = true,
            (true, false) => self.bisection.withdraw(tried.level),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a search on a storage that carries so much, with a generator that is late at some
    /// tries, by their number.
    fn found(carries: f64, late: &[usize]) -> (Option<f64>, Vec<f64>) {
        let mut tries = Tries::new(Bisection::new(100.0, 1.0, 0.05));
        let mut rates = Vec::new();
        while let Some(tried) = tries.next() {
            let limit = match rates.len() {
                number if late.contains(&number) => Some(GENERATOR),
                _ if tried.level > carries => Some("reads"),
                _ => None,
            };
            rates.push(tried.level);
            tries.note(tried, limit.is_none(), limit);
        }
        assert!(tries.confirmed);
        (tries.bisection.passed(), rates)
    }

    /// Why: another program took the processor for ten seconds, and half of what the storage
    /// carries was the answer.
    #[test]
    fn a_rate_that_failed_by_the_generator_is_tried_again() {
        let (quiet, rates) = found(450.0, &[]);
        for number in 0..rates.len() {
            let (disturbed, more) = found(450.0, &[number]);
            assert_eq!(disturbed, quiet, "late at try {number}");
            assert_eq!(more.len(), rates.len() + 1);
            assert_eq!(more[number], more[number + 1]);
        }
        let (limited, _) = found(450.0, &[1, 2]);
        assert!(limited < Some(200.0), "a generator that stays late is a limit");
    }
}
