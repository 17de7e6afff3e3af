//! The format of a database: what is written where, byte by byte, and that databases of other
//! writers are read as what they are.

#[path = "../golden/mod.rs"]
mod golden;
#[path = "../support/mod.rs"]
mod support;

mod checksum_vectors;
mod header;
mod inherited_columns;
mod key_vectors;
mod page;
mod reader_real;
mod reader_synth;
mod record;
mod unicode_keys;
mod windows_traits;
