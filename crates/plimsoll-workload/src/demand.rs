//! What is asked of a service, one task after the other: the pure half of every workload family.
//!
//! A demand is driven by feedback: it sees how its last task ended and says what comes next and
//! when. It does no I/O, so the same seed and the same endings give the same tasks. Carrying tasks
//! out is the other half, the business of a service.

use plimsoll_io::Nanos;

/// The number by which a service names a refusal, such as an SMTP reply code.
pub type RefusalCode = u32;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// As asked.
    Done,
    /// What it was about does not exist.
    Missing,
    /// Another session held what it was about.
    Conflict,
    /// There was no room where it was to go.
    NoRoom,
    /// The service took the work back, as was part of the task.
    RolledBack,
    /// The service said no. That is counted and is not an error of the run.
    Refused(RefusalCode),
    /// The service went away before it answered: nobody knows what became of the task.
    Lost,
}

impl Done {
    /// Whether the task is over. Otherwise the demand asks for another in its place, still counted
    /// from the same intended start.
    pub fn is_final(self) -> bool {
        match self {
            Done::Done | Done::RolledBack | Done::Refused(_) => true,
            Done::Missing | Done::Conflict | Done::NoRoom | Done::Lost => false,
        }
    }
}

/// A task and when it should start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed<T> {
    /// Not before this time; response time runs from here.
    pub intended: Nanos,
    /// The task.
    pub task: T,
}

/// What a demand learns of a task that ended.
#[derive(Debug)]
pub struct Seen<'a, T> {
    /// When it should have started.
    pub intended: Nanos,
    /// When it ended.
    pub finished: Nanos,
    /// What it was.
    pub task: &'a T,
    /// How it ended.
    pub done: Done,
}

/// See the module text.
pub trait Demand {
    /// What is asked for.
    type Task;

    /// The next task, given how one ended; `None` when nothing more is asked for. Arrivals keep
    /// their own schedule: for them `now` is the time the task is due, and only tasks that ended
    /// without being final are seen.
    fn next(&mut self, now: Nanos, seen: Option<Seen<'_, Self::Task>>)
    -> Option<Timed<Self::Task>>;
}
