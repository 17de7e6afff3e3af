//! Which places on the leaves of a prepared table are vacant: what a mail database looks like that
//! has lived for a while.
//!
//! New records that are put beside old ones need leaves with room. In a database where as many
//! records are put into gaps as deletes make, the number of gaps on a leaf goes up and down by one
//! and settles where every further gap is as likely as the first: a geometric distribution. That is
//! what is prepared here, so that a run begins where a long one ends. At most half a leaf is
//! vacant, and always its last places.

use super::filler::{derive, word};
use super::plan::Plan;

/// Whether the place of `number` holds a record.
pub(super) fn is_taken(plan: &Plan, per_leaf: u64, key: u64, number: u64) -> bool {
    if plan.vacancy_percent == 0 {
        return true;
    }
    number % per_leaf < per_leaf - vacant_places(plan, per_leaf, key, number / per_leaf)
}

fn vacant_places(plan: &Plan, per_leaf: u64, key: u64, leaf: u64) -> u64 {
    let key = derive(key, leaf);
    let gap = |place: &u64| word(key, *place) % 100 < u64::from(plan.vacancy_percent);
    (0..per_leaf / 2).take_while(gap).count() as u64
}
