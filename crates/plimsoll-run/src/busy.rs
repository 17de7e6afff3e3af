//! How busy a thread was over several stretches of time, each counted for as long as it lasted: the
//! last moments of a batch say little of the whole.

/// Stretches so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusyShare {
    busy_s: f64,
    seconds: f64,
}

impl BusyShare {
    /// Adds a stretch of which so large a share was busy.
    pub fn add(&mut self, share: f64, seconds: f64) {
        self.busy_s += share * seconds;
        self.seconds += seconds;
    }

    /// The share of all the time; zero of none.
    pub fn share(&self) -> f64 {
        if self.seconds > 0.0 { self.busy_s / self.seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why: a batch that ended a millisecond after a sample was as busy as that millisecond.
    #[test]
    fn a_sliver_counts_for_its_time_only() {
        let mut busy = BusyShare::default();
        assert_eq!(busy.share(), 0.0);
        busy.add(0.2, 1.999);
        busy.add(1.0, 0.001);
        assert!((busy.share() - 0.2004).abs() < 1e-9, "{}", busy.share());
    }
}
