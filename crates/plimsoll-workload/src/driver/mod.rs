//! When tasks are due and where they go, the same for every workload family.

pub(crate) mod bisection;
pub(crate) mod places;
pub(crate) mod schedule;
