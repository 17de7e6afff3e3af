//! Mail servers as they should be and as they are: scripted ones on the simulated network.

mod delivery;
mod framing;
mod idle;
mod imap;
mod rig;
