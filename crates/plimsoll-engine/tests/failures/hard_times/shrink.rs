//! Makes a failing list of parts smaller: pieces of it are left out as long as the rest still
//! fails, first halves, then ever smaller pieces, at last single parts.

/// The parts that are left when nothing more can be left out, or when `fails` was asked `tries_max`
/// times. What is returned has failed.
pub fn shrink<T: Clone>(parts: &[T], tries_max: u64, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut kept = parts.to_vec();
    let mut piece = kept.len().div_ceil(2);
    let mut tries = 0;
    while piece > 0 {
        let before = kept.len();
        let mut at = 0;
        while at < kept.len() && tries < tries_max {
            let end = (at + piece).min(kept.len());
            let without = [&kept[..at], &kept[end..]].concat();
            tries += 1;
            if fails(&without) {
                kept = without;
            } else {
                at = end;
            }
        }
        if tries == tries_max {
            break;
        }
        // What could not be left out before may be superfluous now.
        piece = match (piece, kept.len() < before) {
            (1, true) => 1,
            _ => piece / 2,
        };
    }
    kept
}
