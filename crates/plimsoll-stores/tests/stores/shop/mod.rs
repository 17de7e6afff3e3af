//! The online store on the engine, on a disk in memory and in virtual time.

mod audits;
mod lives;
mod visits;
mod world;
