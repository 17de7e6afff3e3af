//! The operation mix of an edition: shares of insert, delete, replace and read, and how many
//! commits are lazy.

use plimsoll_io::Random;

use crate::records::operation::{Commit, Kind};

/// Shares in percent. See [`Mix::check`] for what must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// New records.
    pub insert_percent: u32,
    /// Records removed.
    pub delete_percent: u32,
    /// Records rewritten.
    pub replace_percent: u32,
    /// Records read.
    pub read_percent: u32,
    /// Commits that do not wait for the log.
    pub lazy_commit_percent: u32,
}

/// A mix that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixError {
    /// The four operations do not add up to 100 percent, but to this.
    SharesSumTo(u32),
    /// More than 100 percent of the commits would be lazy.
    LazyAbove100(u32),
}

impl std::fmt::Display for MixError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MixError::SharesSumTo(sum) => write!(
                formatter,
                "insert, delete, replace and read add up to {sum} percent; make them add up to 100"
            ),
            MixError::LazyAbove100(share) => {
                write!(formatter, "{share} percent of commits cannot be lazy; the most is 100")
            }
        }
    }
}

impl std::error::Error for MixError {}

impl Mix {
    /// Whether the shares are possible.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self) -> std::result::Result<(), MixError> {
        let sum =
            self.insert_percent + self.delete_percent + self.replace_percent + self.read_percent;
        if sum != 100 {
            return Err(MixError::SharesSumTo(sum));
        }
        if self.lazy_commit_percent > 100 {
            return Err(MixError::LazyAbove100(self.lazy_commit_percent));
        }
        Ok(())
    }

    /// Draws what to do next.
    pub fn draw_kind(&self, random: &mut Random) -> Kind {
        let ticket = random.below(100) as u32;
        if ticket < self.insert_percent {
            Kind::Insert
        } else if ticket < self.insert_percent + self.delete_percent {
            Kind::Delete
        } else if ticket < self.insert_percent + self.delete_percent + self.replace_percent {
            Kind::Replace
        } else {
            Kind::Read
        }
    }

    /// Draws whether the commit waits for the log.
    pub fn draw_commit(&self, random: &mut Random) -> Commit {
        if random.below(100) < u64::from(self.lazy_commit_percent) {
            Commit::Lazy
        } else {
            Commit::Durable
        }
    }
}
