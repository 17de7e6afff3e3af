//! The mail store on the engine, on a disk in memory and in virtual time.

mod book;
mod faults;
mod lives;
mod moves;
mod rules;
mod world;
mod worlds;
