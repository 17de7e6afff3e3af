//! Asks work to stop, from any thread, and shows whether it is still alive: work that goes on looks
//! at the signal many times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// See the module text.
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    wanted: Arc<AtomicBool>,
    asked_count: Arc<AtomicU64>,
}

impl StopSignal {
    /// Asks for a clean stop.
    pub fn stop(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    /// Whether the work was asked to stop. Only the work itself asks this: each question is its
    /// heartbeat.
    pub fn is_wanted(&self) -> bool {
        self.asked_count.fetch_add(1, Ordering::Relaxed);
        self.was_asked()
    }

    /// Whether the work was asked to stop, for those who only watch it.
    pub fn was_asked(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// How often the work has looked; it does so many times a second.
    pub fn heartbeat_count(&self) -> u64 {
        self.asked_count.load(Ordering::Relaxed)
    }
}
