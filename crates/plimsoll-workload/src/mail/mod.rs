//! Users of a mail server: what they do in a day, when, and what their mail is like.
//!
//! Names of tasks are those of the published score sheet of LoadGen, the distributions those of
//! LoadSim's users; facts only were taken from both. The load is open: each user has a schedule
//! that knows nothing of the server, does one thing at a time, and is late when the server is.
//! Everything is a pure function of seed, user and number, so any host can carry any of the users
//! and a run can be repeated.

mod corpus;
mod day;
mod demand;
mod habits;
mod population;
mod task;

pub use corpus::{Check, Corpus, CorpusError, Letter, Mail, Part, PartSum, Parts, SizeClass};
pub use day::Day;
pub use demand::{MailDemand, MailOrder};
pub use habits::{Client, Dispatch, MailHabits, OnRead, Reaction};
pub use population::{Balance, Population, PopulationError};
pub use task::MailTask;
