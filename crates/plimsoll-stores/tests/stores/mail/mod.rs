//! The mail store on the engine, on a disk in memory and in virtual time.

mod faults;
mod lives;
mod rules;
mod world;
