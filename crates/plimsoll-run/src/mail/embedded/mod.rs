//! Mail users on a store of our own engine: no server in between, direct I/O, and every message
//! accounted for.

mod instance;
mod jobs;
mod moves;
mod relabelled;
mod service;
mod spec;
mod tasks;

pub use instance::EmbeddedMail;
pub use service::StorePair;
pub use spec::{MailStoreDatabase, filling_of};
