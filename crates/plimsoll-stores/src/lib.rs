//! Applications that keep their data in the engine, as client loads need them: their tables, what
//! is prepared in them, what sessions do to them and what must hold of them afterwards.
//!
//! Nothing here knows plans, phases or measurements. An application answers how each step went; who
//! asked records it.

pub mod mail;
pub mod shop;
