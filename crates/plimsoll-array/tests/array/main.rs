//! Modelled arrays: drives, RAID, caches, links and controllers, whole arrays, and what breaks.

mod arrays;
mod cache;
mod disk;
mod disk_queue;
mod faults;
mod neighbours;
mod physics;
mod queueing;
mod raid;
mod raid_plans;
mod stations;
mod support;
