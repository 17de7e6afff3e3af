//! What a user does and how often, and what it makes of a message that it reads.

use plimsoll_io::{Nanos, Random};

use super::task::MailTask;
use crate::driver::places::draw_place;

/// Which kind of mail program the users have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// It asks the server for what it shows, each time.
    Online,
    /// It keeps its own copy and asks for changes.
    Cached,
}

/// How the tasks of a group are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// All gaps of the group alike.
    Even,
    /// Exponential gaps of each user.
    Poisson,
}

/// How often a message that is read is answered, passed on, moved, deleted, or its attachment
/// opened: shares of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in the sentence above")]
pub struct OnRead {
    pub reply: f64,
    pub reply_all: f64,
    pub forward: f64,
    pub r#move: f64,
    pub delete: f64,
    pub attachment: f64,
}

/// What is made of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in `OnRead`")]
pub struct Reaction {
    pub reply: bool,
    pub reply_all: bool,
    pub forward: bool,
    pub r#move: bool,
    pub delete: bool,
    pub attachment: bool,
}

impl OnRead {
    /// What a user does with one message. A message that is deleted is not moved: of both only one
    /// can be.
    pub fn react(&self, random: &mut Random) -> Reaction {
        // All are drawn, so that one share does not change what another one decides.
        let [reply, reply_all, forward, moved, deleted, attachment] =
            [self.reply, self.reply_all, self.forward, self.r#move, self.delete, self.attachment]
                .map(|share| random.chance(share));
        Reaction {
            reply,
            reply_all,
            forward,
            r#move: moved && !deleted,
            delete: deleted,
            attachment,
        }
    }

    fn shares(&self) -> [(&'static str, f64); 6] {
        [
            ("reply", self.reply),
            ("reply_all", self.reply_all),
            ("forward", self.forward),
            ("move", self.r#move),
            ("delete", self.delete),
            ("attachment", self.attachment),
        ]
    }
}

/// See the module text.
#[derive(Clone, Debug, PartialEq)]
pub struct MailHabits {
    /// What a user does, and how often in a day.
    pub tasks: Vec<(MailTask, f64)>,
    /// The length of a day; shorter than one of the calendar where time is compressed.
    pub day_ns: Nanos,
    /// How tasks are spaced.
    pub dispatch: Dispatch,
    /// What programs they have.
    pub client: Client,
    /// How many recipients a new message has: weights and counts.
    pub recipients: Vec<(f64, u32)>,
    /// What becomes of messages that are read.
    pub on_read: OnRead,
    /// A visit trims the inbox to so many messages.
    pub inbox_limit: u32,
    /// Rows that an online client shows.
    pub page_rows: u32,
    /// Unread messages that one visit reads at most.
    pub read_max: u32,
}

impl MailHabits {
    /// Tasks of a user in a day.
    pub fn tasks_per_day(&self) -> f64 {
        self.tasks.iter().map(|(_, per_day)| per_day).sum()
    }

    /// From one task of a user to its next, on average.
    pub fn gap_ns_mean(&self) -> f64 {
        self.day_ns as f64 / self.tasks_per_day()
    }

    /// What a user does next, each task as often as its rate says.
    pub fn draw_task(&self, random: &mut Random) -> MailTask {
        let weights: Vec<f64> = self.tasks.iter().map(|(_, per_day)| *per_day).collect();
        self.tasks[draw_place(&weights, random)].0
    }

    /// How many recipients a new message has.
    pub fn draw_recipients(&self, random: &mut Random) -> u32 {
        let weights: Vec<f64> = self.recipients.iter().map(|(weight, _)| *weight).collect();
        self.recipients[draw_place(&weights, random)].1
    }

    /// Everything about the values that is not possible, in sentences.
    pub fn mistakes(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.tasks.is_empty() {
            found.push("tasks is empty; name at least one".into());
        }
        for (position, (task, per_day)) in self.tasks.iter().enumerate() {
            let name = task.name();
            if !(per_day.is_finite() && *per_day > 0.0) {
                found.push(format!("per_day of {name} is {per_day}; take a number above zero"));
            }
            if task.is_phase() {
                found.push(format!("{name} is a phase of the run and no task; leave it out"));
            }
            if self.tasks[..position].iter().any(|(earlier, _)| earlier == task) {
                found.push(format!("{name} is listed twice; list it once"));
            }
        }
        if self.day_ns == 0 {
            found.push("day_h is 0; take a number above zero".into());
        }
        let weighted =
            |(weight, count): &(f64, u32)| weight.is_finite() && *weight > 0.0 && *count > 0;
        if self.recipients.is_empty() || !self.recipients.iter().all(weighted) {
            found.push("recipients must be weights above zero with counts of at least 1".into());
        }
        for (name, share) in self.on_read.shares() {
            if !(0.0..=1.0).contains(&share) {
                found.push(format!("on_read.{name} is {share}; take 0 to 1"));
            }
        }
        for (name, value) in [("page_rows", self.page_rows), ("read_max", self.read_max)] {
            if value == 0 {
                found.push(format!("{name} is 0; take at least 1"));
            }
        }
        found
    }
}
