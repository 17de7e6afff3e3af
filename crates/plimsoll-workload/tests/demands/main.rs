//! The load that is asked for, on its tasks alone: the demand of each family, the schedule of an
//! open load, the search for the highest rate.

mod files;
mod mail;
mod records;
mod records_choice;
mod records_session;
mod schedule;
mod search;
mod store;
