//! What drives can be bound together: the array model's own answer, for everything that plans
//! arrays.

use plimsoll_array::raid::{LEVELS, impossibilities, usable_in_group};
use pyo3::prelude::*;

use crate::errors::ConfigError;

/// The names of all levels.
#[pyfunction]
pub fn raid_levels() -> Vec<&'static str> {
    LEVELS.iter().map(|(name, _)| *name).collect()
}

/// Why a group cannot be built: what is wrong, and a hint.
type Reasons = Vec<(String, &'static str)>;

/// Drives' worth of data in a group of a level with these sets, `None` where it cannot be built,
/// and every reason against it with a hint.
#[pyfunction]
pub fn raid_group(level: &str, sets: Vec<u32>) -> PyResult<(Option<u32>, Reasons)> {
    let known = LEVELS.iter().find(|(name, _)| *name == level);
    let (_, level) = known.ok_or_else(|| {
        ConfigError::new_err(format!(
            "{level:?} is not a RAID level; name one of {}",
            raid_levels().join(", ")
        ))
    })?;
    let reasons = impossibilities(*level, &sets);
    let reasons = reasons.into_iter().map(|wrong| (wrong.message, wrong.hint)).collect();
    Ok((usable_in_group(*level, &sets), reasons))
}
