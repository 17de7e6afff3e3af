//! One session: it does one transaction after the other and thinks in between.
//!
//! Think time follows the published model of sluggish sessions: after a transaction that took `t`,
//! the session waits `sluggish * t`, so its share of busy time is `1 / (1 + sluggish)`. Zero is
//! full speed.

use plimsoll_io::{Nanos, Random};

use crate::demand::Done;
use crate::records::choice::{Choice, Habits};
use crate::records::population::Population;
use crate::records::step::{Previous, Step};

/// See the module text.
#[derive(Debug)]
pub struct Session {
    random: Random,
    choice: Choice,
    sluggish: f64,
}

impl Session {
    /// A session that thinks for `sluggish` times the duration of each transaction.
    pub fn new(random: Random, habits: impl Into<Habits>, sluggish: f64) -> Self {
        Self { random, choice: Choice::new(habits.into()), sluggish }
    }

    /// The next transaction on a database with this population. An operation that found nothing or
    /// lost a conflict is repeated on another record at once, so that the mix of completed
    /// operations is the one asked for. Its response time runs from the first attempt.
    pub fn next(
        &mut self,
        population: &mut Population,
        now: Nanos,
        previous: Option<Previous>,
    ) -> Step {
        let intended = previous.map_or(now, |previous| self.after(previous));
        let operation = self.choice.next(&mut self.random, population, previous);
        Step { intended, operation }
    }

    fn after(&self, previous: Previous) -> Nanos {
        if previous.result != Done::Done {
            return previous.intended;
        }
        let took = previous.finished.saturating_sub(previous.intended);
        previous.finished + (took as f64 * self.sluggish) as Nanos
    }
}
