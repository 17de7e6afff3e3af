//! Counts every error the disk reports and puts it into the log the moment it happens, whatever the
//! engine makes of it.

use std::rc::Rc;

use plimsoll_io::{Clock, CompletedIo, DiskErrorKind, Observer};

use crate::context::Output;
use crate::events::{Event, Level};
use crate::recorder::{Recorder, key_of};

/// See the module text.
pub struct ErrorWatch {
    clock: Rc<Clock>,
    recorder: Rc<Recorder>,
    output: Output,
}

impl ErrorWatch {
    /// Counts in `recorder` and tells `output`.
    pub fn new(clock: Rc<Clock>, recorder: Rc<Recorder>, output: Output) -> ErrorWatch {
        ErrorWatch { clock, recorder, output }
    }
}

impl Observer for ErrorWatch {
    fn completed(&self, completed: &CompletedIo<'_>) {
        let Some(error) = completed.error else { return };
        // That a path names nothing is an answer: the engine asks for files that may or may not be
        // there.
        if error.kind == DiskErrorKind::NotFound {
            return;
        }
        // What somebody else holds, or what is full, ends the run all the same, but is no fault of
        // the storage: whoever counts errors in the log of events must be able to tell.
        let kind = if error.kind.accuses_storage() {
            self.recorder.record_error(key_of(&completed.io.key));
            "io_error"
        } else {
            "io_refused"
        };
        let event = Event::now(&self.clock, Level::Error, kind, None, error.to_string());
        // A caller that no longer listens has its reasons; the outcome is still returned to it.
        drop(self.output.events.send(event));
    }
}
