//! Durable work until the power is cut, and the witness of what was acknowledged.

mod rehearsal;
mod witness;
