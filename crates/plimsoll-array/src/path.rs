//! The way to the array: links, the host's own limits, path loss, controllers.

mod controller;
mod link;

pub(crate) use controller::Controllers;
pub(crate) use link::{Links, Way};
