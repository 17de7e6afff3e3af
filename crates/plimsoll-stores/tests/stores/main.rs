//! Stores on the engine, on a disk in memory and in virtual time: mail and an online shop.

mod mail;
mod shop;
