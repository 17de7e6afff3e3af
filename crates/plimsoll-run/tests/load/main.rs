//! How load is made: sessions, arrivals, rates that follow from database I/O, and the search for
//! the highest one. In virtual time, so that every figure can be computed by hand and a failure can
//! be replayed.

mod arrivals;
mod habits;
mod overlapping;
mod phase_end;
mod precondition;
mod real_knee;
mod search;
mod stages;
mod stalling;
mod start_together;
mod support;
mod weights;
