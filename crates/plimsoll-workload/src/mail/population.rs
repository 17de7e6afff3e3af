//! How much mail a population of users sends and receives, exactly: the test of whatever makes
//! their load.
//!
//! A user writes `new` messages a day to `recipients` each. Of the messages that arrive it
//! processes a share `processed`; each of those is answered, answered to all, or passed on with the
//! stated probabilities. With `b` = reply + reply_all * recipients + forward * recipients messages
//! that one processed message makes,
//!
//! ```text
//! received = new * recipients + processed * b * received = new * recipients / (1 - processed * b)
//! sent     = new + processed * (reply + reply_all + forward) * received
//! ```
//!
//! With `processed * b` of 1 or more the mail would grow without end. Derived from the published
//! figures of LoadSim's users, which it gives within 2 %.

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Population {
    /// Messages that a user writes in a day, answers not counted.
    pub new: f64,
    /// Recipients of each.
    pub recipients: f64,
    /// Share of what arrives that is processed.
    pub processed: f64,
    /// Share of the processed messages that are answered.
    pub reply: f64,
    /// Share that are answered to all.
    pub reply_all: f64,
    /// Share that are passed on.
    pub forward: f64,
}

/// What a user sends and receives in a day when nothing changes any more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Messages that it sends.
    pub sent: f64,
    /// Messages that arrive.
    pub received: f64,
}

/// Why there is no balance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PopulationError {
    /// Each message makes so many more, and they are not fewer than one.
    Grows(f64),
}

impl std::fmt::Display for PopulationError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PopulationError::Grows(more) = self;
        write!(
            out,
            "the mail population would grow without end: each message makes {more:.2} more; lower \
             reply_all, forward or the recipients"
        )
    }
}

impl std::error::Error for PopulationError {}

impl Population {
    /// Messages that one processed message makes at their recipients.
    pub fn branching(&self) -> f64 {
        self.reply + (self.reply_all + self.forward) * self.recipients
    }

    /// What a user sends and receives in a day.
    ///
    /// # Errors
    /// When the mail would grow without end.
    pub fn balance(&self) -> Result<Balance, PopulationError> {
        let more = self.processed * self.branching();
        if more >= 1.0 {
            return Err(PopulationError::Grows(more));
        }
        let received = self.new * self.recipients / (1.0 - more);
        let answers = self.reply + self.reply_all + self.forward;
        Ok(Balance { sent: self.new + self.processed * answers * received, received })
    }
}
