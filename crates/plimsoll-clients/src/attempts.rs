//! How often and how soon a purchase is begun again in which another session was first: at pauses
//! that grow, for ten seconds.

use std::cell::RefCell;

use plimsoll_io::{Handle, NANOS_PER_MILLISECOND, Nanos, Random};

use crate::client::TRIED_NS_MAX;

const PAUSE_NS: Nanos = NANOS_PER_MILLISECOND / 4;
const PAUSE_NS_MAX: Nanos = 50 * NANOS_PER_MILLISECOND;

/// See the module text.
pub struct Attempts {
    begun: Nanos,
    pause_ns: Nanos,
}

impl Attempts {
    /// The first one begins now.
    pub fn begin(handle: &Handle) -> Attempts {
        Attempts { begun: handle.now(), pause_ns: PAUSE_NS }
    }

    /// Waits before the next one; false when it was tried for long enough.
    pub async fn again(&mut self, handle: &Handle, pauses: &RefCell<Random>) -> bool {
        if handle.now() - self.begun > TRIED_NS_MAX {
            return false;
        }
        let drawn_ns = self.pause_ns / 2 + pauses.borrow_mut().below(self.pause_ns / 2 + 1);
        handle.sleep(drawn_ns).await;
        self.pause_ns = (2 * self.pause_ns).min(PAUSE_NS_MAX);
        true
    }
}
