//! Changes of the schema of a table that is there: what they come to, and that nothing but the old
//! or the new table is ever found, whatever happens.

#[path = "../lives/life.rs"]
mod life;
#[path = "../support/mod.rs"]
mod support;

mod changes;
mod copies;
mod damaged;
mod declared;
mod defaults;
mod ended;
mod failing;
mod interrupted;
mod older;
mod redone;
mod refused;
mod released;
mod table_state;
mod told;
mod world;
mod worlds;
