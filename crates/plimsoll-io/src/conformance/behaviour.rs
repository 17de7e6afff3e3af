//! Promises about how a disk behaves: who calls completions and when, what survives a dropped
//! future, how files close.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

use super::subject::{CONTEXT, Subject, content, create, filled};
use crate::{
    Action, Answer, Context, DiskErrorKind, Durability, FileId, NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND, OpenMode, Operation, Outcome,
};

const BLOCK: usize = 4096;

/// Submits and turns the disk by hand until the answer is there.
fn submit_and_wait(subject: &Subject, action: Action, context: Context) -> Outcome {
    let slot = Rc::new(RefCell::new(None));
    let filled = slot.clone();
    subject.disk.submit(Operation {
        action,
        context,
        completion: Box::new(move |outcome| {
            let before = filled.borrow_mut().replace(outcome);
            assert!(before.is_none(), "a completion is called once");
        }),
    });
    assert!(slot.borrow().is_none(), "submit never calls the completion itself");
    assert_eq!(subject.disk.in_flight(), 1, "what is submitted is in flight");
    while slot.borrow().is_none() {
        turn(subject);
    }
    assert_eq!(subject.disk.in_flight(), 0, "what is delivered is not in flight");
    slot.take().expect("just seen")
}

/// One step as the executor does it.
fn turn(subject: &Subject) {
    if subject.disk.reap() > 0 {
        return;
    }
    if subject.clock.is_virtual() {
        let due = subject.disk.next_event().expect("something in flight is due at some time");
        subject.clock.advance_to(due.max(subject.clock.now()));
    } else {
        subject.disk.wait(Some(subject.clock.now() + NANOS_PER_SECOND));
    }
}

fn opened(outcome: Outcome) -> FileId {
    match outcome.result {
        Ok(Answer::Opened(opened)) => opened.file,
        other => panic!("expected an open file, got {other:?}"),
    }
}

/// The executor is not reentrant: a completion inside submit would run a task inside a task. Errors
/// are no exception.
pub(super) fn completions_come_from_reap_only(subject: &Subject) {
    let path = subject.path("file");
    let create = Action::Open { path: path.clone(), mode: OpenMode::Create };
    let file = opened(submit_and_wait(subject, create, CONTEXT));
    let actions = [
        Action::Extend { file, length_bytes: 4 * BLOCK as u64 },
        Action::Write {
            file,
            offset: 0,
            buffer: subject.disk.allocate(BLOCK),
            durability: Durability::Durable,
        },
        Action::Read { file, offset: 0, buffer: subject.disk.allocate(BLOCK) },
        Action::SyncFile { file },
        Action::List { path: subject.folder.clone() },
        Action::Close { file },
        Action::Delete { path },
    ];
    for action in actions {
        let verb = action.verb();
        let outcome = submit_and_wait(subject, action, CONTEXT);
        assert!(outcome.result.is_ok(), "{verb}: {:?}", outcome.result);
    }
    let closed = Action::Read { file, offset: 0, buffer: subject.disk.allocate(BLOCK) };
    assert!(submit_and_wait(subject, closed, CONTEXT).result.is_err());
}

/// A cancelled transaction must not free memory the device still writes to.
pub(super) fn a_dropped_future_keeps_its_memory(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("dropped"));
    subject.run(async move {
        let file = create(&files, path, 64 * BLOCK as u64).await;
        for block in 0..64u64 {
            let offset = block * BLOCK as u64;
            let buffer = filled(&file, 11, offset, BLOCK);
            drop(file.write(offset, buffer, Durability::Volatile, CONTEXT));
        }
        for block in 0..64u64 {
            drop(file.read(block * BLOCK as u64, file.allocate(BLOCK), CONTEXT));
        }
        // Memory taken now must not be what the abandoned operations still use.
        let mut others: Vec<_> = (0..64).map(|_| file.allocate(BLOCK)).collect();
        for other in &mut others {
            other.fill(0x55);
        }
        file.sync(CONTEXT).await.expect("a sync");
        file.close(CONTEXT).await.expect("a close after everything in flight");
        assert!(others.iter().all(|other| other.iter().all(|byte| *byte == 0x55)));
    });
    let (files, path) = (subject.files(), subject.path("dropped"));
    subject.run(async move {
        let file = files.open(path, OpenMode::Read, CONTEXT).await.expect("the file exists");
        for block in 0..64u64 {
            let offset = block * BLOCK as u64;
            let read = file.read(offset, file.allocate(BLOCK), CONTEXT).await.expect("a read");
            assert!(read[..] == content(11, offset, BLOCK)[..], "an abandoned write still happens");
        }
    });
}

/// "Operations still in flight on it complete first."
pub(super) fn close_waits_for_what_is_in_flight(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("closing"));
    subject.run(async move {
        let file = create(&files, path, 256 * BLOCK as u64).await;
        let writes: Vec<_> = (0..256u64)
            .map(|block| block * BLOCK as u64)
            .map(|offset| {
                let buffer = filled(&file, 12, offset, BLOCK);
                file.write(offset, buffer, Durability::Volatile, CONTEXT)
            })
            .collect();
        file.close(CONTEXT).await.expect("a close");
        for write in writes {
            write.await.expect("a write submitted before the close");
        }
    });
}

/// An open file is a locked one: nobody could open it again. Abandoned before the answer is there,
/// and after.
pub(super) fn an_abandoned_open_leaves_no_file_open(subject: &Subject) {
    let (files, path, folder) =
        (subject.files(), subject.path("abandoned open"), subject.folder.clone());
    subject.run(async move {
        let file = create(&files, path.clone(), BLOCK as u64).await;
        file.close(CONTEXT).await.expect("a close");
        for answered in [false, true] {
            let mut opening = Box::pin(files.open(path.clone(), OpenMode::Write, CONTEXT));
            let poll =
                std::future::poll_fn(|context| Poll::Ready(opening.as_mut().poll(context))).await;
            assert!(poll.is_pending(), "no disk answers at once");
            if answered {
                // Names are worked on in order: when the list is there, so is the answer that
                // nobody takes.
                files.list(&folder, CONTEXT).await.expect("a list");
            }
            drop(opening);
            files.list(&folder, CONTEXT).await.expect("a list");
            files.list(&folder, CONTEXT).await.expect("a list");
            let again = files.open(path.clone(), OpenMode::Write, CONTEXT).await;
            let again = again.expect("the abandoned file is closed");
            again.close(CONTEXT).await.expect("a close");
        }
    });
}

/// File numbers are not used again at once: a late operation must not hit the next file.
pub(super) fn a_closed_file_is_an_error(subject: &Subject) {
    let (files, path, other) = (subject.files(), subject.path("closed"), subject.path("next"));
    subject.run(async move {
        let file = create(&files, path, BLOCK as u64).await;
        file.close(CONTEXT).await.expect("a close");
        let next = create(&files, other, BLOCK as u64).await;
        let buffer = filled(&file, 13, 0, BLOCK);
        assert!(file.write(0, buffer, Durability::Durable, CONTEXT).await.is_err());
        assert!(file.read(0, file.allocate(BLOCK), CONTEXT).await.is_err());
        assert!(file.sync(CONTEXT).await.is_err());
        assert!(file.extend(2 * BLOCK as u64, CONTEXT).await.is_err());
        assert!(file.close(CONTEXT).await.is_err());
        let read = next.read(0, next.allocate(BLOCK), CONTEXT).await.expect("a read");
        assert!(read.iter().all(|byte| *byte == 0), "the next file is untouched");
    });
}

/// `verify` never writes.
pub(super) fn a_readers_file_cannot_be_changed(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("read only"));
    subject.run(async move {
        let file = create(&files, path.clone(), BLOCK as u64).await;
        file.close(CONTEXT).await.expect("a close");
        let file = files.open(path, OpenMode::Read, CONTEXT).await.expect("the file exists");
        let buffer = filled(&file, 14, 0, BLOCK);
        let error = file.write(0, buffer, Durability::Volatile, CONTEXT).await.err();
        assert_eq!(error.map(|error| error.kind), Some(DiskErrorKind::PermissionDenied));
        let error = file.extend(2 * BLOCK as u64, CONTEXT).await.err();
        assert_eq!(error.map(|error| error.kind), Some(DiskErrorKind::PermissionDenied));
        let read = file.read(0, file.allocate(BLOCK), CONTEXT).await.expect("a read");
        assert!(read.iter().all(|byte| *byte == 0));
    });
}

/// Every latency in every report is the difference of two of these.
pub(super) fn times_are_in_order(subject: &Subject) {
    let create = Action::Open { path: subject.path("timed"), mode: OpenMode::Create };
    let file = opened(submit_and_wait(subject, create, CONTEXT));
    let extend = Action::Extend { file, length_bytes: BLOCK as u64 };
    submit_and_wait(subject, extend, CONTEXT);
    let before = subject.clock.now();
    let read = Action::Read { file, offset: 0, buffer: subject.disk.allocate(BLOCK) };
    let outcome = submit_and_wait(subject, read, CONTEXT);
    assert!(before <= outcome.submitted, "not submitted before it was asked for");
    assert!(outcome.submitted <= outcome.completed);
    assert!(outcome.completed <= subject.clock.now());
}

/// The engine plans its transfers by these numbers.
pub(super) fn opening_tells_sizes(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("sizes"));
    subject.run(async move {
        let file = create(&files, path.clone(), 5 * BLOCK as u64).await;
        assert_eq!(file.opened().length_bytes, 0, "a new file is empty");
        file.close(CONTEXT).await.expect("a close");
        let opened =
            files.open(path, OpenMode::Write, CONTEXT).await.expect("the file exists").opened();
        assert_eq!(opened.length_bytes, 5 * BLOCK as u64);
        assert!(opened.alignment_bytes.is_power_of_two());
        assert!(opened.alignment_bytes <= BLOCK as u32, "the smallest page can be written");
        assert!(opened.atomic_write_bytes.is_power_of_two());
    });
}

/// "Which file, which place" is the first question after an error.
pub(super) fn an_error_names_file_and_range(subject: &Subject) {
    let (files, path) = (subject.files(), subject.path("named"));
    subject.run(async move {
        let file = create(&files, path.clone(), BLOCK as u64).await;
        let read = file.read(8 * BLOCK as u64, file.allocate(BLOCK), CONTEXT);
        let error = read.await.expect_err("beyond the end");
        assert_eq!(error.doing, "read");
        assert_eq!(error.path, path);
        assert_eq!(error.range, Some((8 * BLOCK as u64, BLOCK as u64)));
        let missing = path.with_file_name("missing");
        let error = files
            .open(&missing, OpenMode::Write, CONTEXT)
            .await
            .err()
            .expect("there is no such file");
        assert_eq!((error.doing, error.path), ("open", missing));
    });
}

/// A timer must fire although the disk is silent. In virtual time nobody sleeps.
pub(super) fn waiting_ends_at_its_deadline(subject: &Subject) {
    if subject.clock.is_virtual() {
        return;
    }
    let reaped = Cell::new(0);
    let start = subject.clock.now();
    let deadline = start + 20 * NANOS_PER_MILLISECOND;
    while subject.clock.now() < deadline {
        subject.disk.wait(Some(deadline));
        reaped.set(reaped.get() + subject.disk.reap());
    }
    let late = subject.clock.now() - deadline;
    assert!(late < 2 * NANOS_PER_SECOND, "woken {late} ns too late");
    assert_eq!(reaped.get(), 0, "nothing was submitted");
}
