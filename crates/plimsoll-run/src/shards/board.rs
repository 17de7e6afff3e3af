//! What the shards of a run share: how far each has come, the latest beat, and whether to stop.
//! Nothing of the load goes through it.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_io::StopSignal;

use crate::RunError;

type Values = Vec<Arc<dyn Any + Send + Sync>>;

/// Values that all shards lay down before any of them goes on.
#[derive(Default)]
struct Meeting {
    /// Meetings that are over.
    rounds: u64,
    arrived: Vec<Option<Arc<dyn Any + Send + Sync>>>,
    /// What was laid down in the latest one. It stays until all have arrived again, so until all
    /// have read it.
    latest: Values,
}

/// See the module text.
pub struct Board {
    meeting: Mutex<Meeting>,
    /// The latest sample that the first shard has closed; samples count from 1.
    beat: AtomicU64,
    failure: Mutex<Option<RunError>>,
    /// One for each shard, so that one that does not go on is seen beside others that do.
    signals: Vec<StopSignal>,
}

impl Board {
    /// A board for so many shards.
    pub fn new(count: usize) -> Board {
        Board {
            meeting: Mutex::new(Meeting { arrived: vec![None; count], ..Meeting::default() }),
            beat: AtomicU64::new(0),
            failure: Mutex::new(None),
            signals: (0..count).map(|_| StopSignal::default()).collect(),
        }
    }

    /// The signal that one shard looks at.
    pub fn signal(&self, shard: usize) -> &StopSignal {
        &self.signals[shard]
    }

    /// Asks all shards to stop.
    pub fn stop_all(&self) {
        self.signals.iter().for_each(StopSignal::stop);
    }

    /// Notes what ended a shard and asks all others to stop; whether it was the first to end so.
    pub fn fail(&self, error: &RunError) -> bool {
        let mut failure = locked(&self.failure);
        let is_first = failure.is_none();
        failure.get_or_insert_with(|| error.clone());
        drop(failure);
        self.stop_all();
        is_first
    }

    /// What ended the run, if anything did.
    pub fn failure(&self) -> Option<RunError> {
        locked(&self.failure).clone()
    }

    /// Lays down a value of a shard; the number of the meeting that it belongs to.
    pub fn arrive<T: Send + Sync + 'static>(&self, shard: usize, value: T) -> u64 {
        let mut meeting = locked(&self.meeting);
        meeting.arrived[shard] = Some(Arc::new(value));
        let round = meeting.rounds;
        if meeting.arrived.iter().all(Option::is_some) {
            meeting.latest = meeting.arrived.iter_mut().filter_map(Option::take).collect();
            meeting.rounds += 1;
        }
        round
    }

    /// What all shards laid down in a meeting, in their order; `None` while some have not.
    pub fn laid_down<T: Clone + 'static>(&self, round: u64) -> Option<Vec<T>> {
        let meeting = locked(&self.meeting);
        (meeting.rounds > round).then(|| {
            let values = meeting.latest.iter();
            values.filter_map(|value| value.downcast_ref::<T>().cloned()).collect()
        })
    }

    /// The latest sample that the first shard has closed.
    pub fn beat(&self) -> u64 {
        self.beat.load(Ordering::Acquire)
    }

    /// Counts a sample that the first shard closes.
    pub fn next_beat(&self) -> u64 {
        self.beat.fetch_add(1, Ordering::AcqRel) + 1
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("no panic happens under this lock")
}
