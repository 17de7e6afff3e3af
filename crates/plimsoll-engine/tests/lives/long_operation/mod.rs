//! What only long operation shows: log held back for copies and backups, recovery that pauses and
//! forks, databases larger than a page of the flush map, and tables made while others work. Each of
//! these went wrong once in a copy of the engine with a planted bug, and no test noticed.

mod flush_map;
mod holds;
mod replicas;
mod schema;
mod space;
