//! Which of several places a task goes to: each as often as its weight says.

use plimsoll_io::Random;

/// The resolution of weights.
const STEPS: u64 = 1 << 32;

/// A position by chance, each as often as its weight says.
///
/// # Panics
/// When there is no weight at all.
pub fn draw_place(weights: &[f64], random: &mut Random) -> usize {
    let same = weights.iter().all(|weight| *weight == weights[0]);
    if same {
        return random.below(weights.len() as u64) as usize;
    }
    let total: f64 = weights.iter().sum();
    let mut left = random.below(STEPS) as f64 / STEPS as f64 * total;
    for (position, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return position;
        }
    }
    weights.len() - 1
}
