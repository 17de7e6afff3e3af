//! The way to the array: links, the queue of a virtual disk, the host's own limits, path loss,
//! controllers.

mod controller;
mod link;
mod queue;

pub(crate) use controller::Controllers;
pub(crate) use link::{Links, Sending, Way};
pub(crate) use queue::Queue;
