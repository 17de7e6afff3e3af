//! How sure one is of a ratio that was measured in batches, such as time by operations: the
//! variation between batches says how far the whole may be off, whatever the single values depend
//! on within a batch.
//!
//! Source: the ratio estimator of survey sampling, with Student's distribution for few batches.
//! Limit: batches must be long against the time a queue remembers, or they are alike by chance.

/// Student's 95th percentile for 1, 2, .. degrees of freedom: each bound of one look by itself.
const STUDENT_95: [f64; 30] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
    1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
    1.703, 1.701, 1.699, 1.697,
];
/// The same for very many.
const NORMAL_95: f64 = 1.645;

/// A measured ratio and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The ratio over all batches.
    pub measured: f64,
    /// It is hardly below this.
    pub low: f64,
    /// It is hardly above this.
    pub high: f64,
}

/// Estimates a ratio from batches of (numerator, denominator); `None` when there is nothing to
/// divide by.
pub fn ratio(batches: &[(f64, f64)]) -> Option<Estimate> {
    let numerator: f64 = batches.iter().map(|(numerator, _)| numerator).sum();
    let denominator: f64 = batches.iter().map(|(_, denominator)| denominator).sum();
    if denominator <= 0.0 {
        return None;
    }
    let measured = numerator / denominator;
    let count = batches.len();
    if count < 2 {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        return Some(Estimate { measured, low, high });
    }
    let squares: f64 = batches
        .iter()
        .map(|(numerator, denominator)| (numerator - measured * denominator).powi(2))
        .sum();
    let variance = squares / (count - 1) as f64 * count as f64;
    let width =
        STUDENT_95.get(count - 2).copied().unwrap_or(NORMAL_95) * variance.sqrt() / denominator;
    Some(Estimate { measured, low: measured - width, high: measured + width })
}
