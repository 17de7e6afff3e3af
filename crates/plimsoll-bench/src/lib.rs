//! What the benchmark programs share: reading their arguments, counting database I/O and processor
//! time, and putting the operation mix on an instance. Not published and used by nothing but `make
//! bench`.

pub mod arguments;
pub mod counted;
pub mod field;
pub mod load;
pub mod processor;
