//! What a memory disk is doing: its files, the operations on their way, and the faults that wait
//! for them.

use std::rc::Rc;

use super::chunks::Layout;
use super::crash::InFlight;
use super::faults::{Effect, Injector};
use super::filesystem::{FileSystem, file_of};
use super::inode::ChangeKind;
use super::latency::{Pace, Service};
use super::names::normal;
use super::options::MemoryOptions;
use super::queue::{Queue, Queued};
use super::trace::{Stage, Trace, TraceEntry};
use crate::{Action, Answer, DiskError, DiskErrorKind, FileId, Nanos, Operation, Random};

pub(super) struct State {
    pub(super) files: FileSystem,
    pub(super) queue: Queue,
    pub(super) injector: Injector,
    pub(super) trace: Trace,
    pub(super) gone_at: Option<Nanos>,
    pub(super) events: u64,
    pub(super) cut_at_event: Option<u64>,
    service: Service,
    latency_random: Random,
    fault_random: Random,
}

/// Whether an event ends with the power being cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PowerAfter {
    On,
    Off,
}

impl State {
    pub(super) fn new(random: &Random, options: &MemoryOptions) -> Self {
        Self {
            files: FileSystem::new(options.clone()),
            queue: Queue::default(),
            injector: Injector::default(),
            trace: Trace::new(options.trace_operations),
            gone_at: None,
            events: 0,
            cut_at_event: None,
            service: Service::new(options.latency.clone()),
            latency_random: random.child("latency"),
            fault_random: random.child("faults"),
        }
    }

    /// Takes an operation in.
    pub(super) fn enqueue(&mut self, operation: Operation, now: Nanos) -> PowerAfter {
        let effect = self.decide(&operation, now);
        let pace = match effect {
            Some(Effect::Slow(factor)) => Pace::Times(factor),
            Some(Effect::Delay(delay_ns)) => Pace::Plus(delay_ns),
            Some(Effect::Hang) => Pace::Never,
            _ => Pace::Usual,
        };
        let Operation { action, context, completion } = operation;
        let (kind, random) = (action.kind(), &mut self.latency_random);
        let mut due = self.service.due(now, kind, &context, pace, random);
        let sync_mark = self.files.sync_mark(&action);
        if let Some(handle) = file_of(&action).and_then(|file| self.files.handle_mut(file)) {
            if matches!(action, Action::Close { .. }) {
                due = due.max(handle.busy_until);
            }
            handle.busy_until = handle.busy_until.max(due);
        }
        let queued = Queued {
            due,
            sequence: self.queue.next_sequence(),
            sync_mark,
            submitted: now,
            purpose: context.purpose,
            effect,
            action,
            completion,
        };
        self.events += 1;
        self.note(&queued, now, Stage::Submitted);
        self.queue.push(queued);
        self.power_after(effect, Effect::CutPowerWhenSubmitted)
    }

    fn decide(&mut self, operation: &Operation, now: Nanos) -> Option<Effect> {
        if self.injector.is_idle() {
            return None;
        }
        let (action, context) = (&operation.action, &operation.context);
        let path = self.files.path_of(action);
        let random = &mut self.fault_random;
        self.injector.decide(action.kind(), context, path, now, random)
    }

    /// Lets an operation take effect.
    pub(super) fn complete(
        &mut self,
        queued: &mut Queued,
        now: Nanos,
    ) -> (Result<Answer, DiskError>, PowerAfter) {
        let before = self.trace.is_on().then(|| self.entry(queued, now, Stage::Done));
        // Any action without a buffer will do as a stand-in.
        let action =
            std::mem::replace(&mut queued.action, Action::Close { file: FileId(u32::MAX) });
        let result = if self.gone_at.is_some_and(|then| then <= now) {
            Err(self.files.error_of(&action, DiskErrorKind::Gone))
        } else {
            let random = &mut self.fault_random;
            self.files.perform_with(queued.effect, action, queued.sync_mark, random)
        };
        self.events += 1;
        if let Some(mut entry) = before {
            entry.event = self.events;
            if let Err(error) = &result {
                entry.stage = Stage::Failed(error.kind);
            }
            self.trace.push(entry);
        }
        (result, self.power_after(queued.effect, Effect::CutPowerWhenDone))
    }

    fn power_after(&self, effect: Option<Effect>, cutting: Effect) -> PowerAfter {
        if effect == Some(cutting) || self.cut_at_event == Some(self.events) {
            PowerAfter::Off
        } else {
            PowerAfter::On
        }
    }

    fn note(&mut self, queued: &Queued, now: Nanos, stage: Stage) {
        if self.trace.is_on() {
            let entry = self.entry(queued, now, stage);
            self.trace.push(entry);
        }
    }

    fn entry(&self, queued: &Queued, now: Nanos, stage: Stage) -> TraceEntry {
        let range = match &queued.action {
            Action::Read { offset, buffer, .. } | Action::Write { offset, buffer, .. } => {
                Some((*offset, buffer.len() as u64))
            }
            _ => None,
        };
        TraceEntry {
            event: self.events,
            at_ns: now,
            operation: queued.sequence,
            stage,
            kind: queued.action.kind(),
            purpose: queued.purpose,
            path: self.files.shared_path_of(&queued.action),
            range,
            effect: queued.effect.map(Effect::name),
        }
    }

    /// What an action in flight could leave behind if the power were cut now.
    pub(super) fn at_risk(&self, action: &Action) -> Option<InFlight<'_>> {
        match action {
            Action::Write { file, offset, buffer, .. } => {
                let handle = self.files.handle(*file).filter(|handle| handle.writable)?;
                let kind = ChangeKind::Write {
                    offset: *offset,
                    bytes: Rc::from(&buffer[..]),
                    certain: false,
                };
                Some(InFlight::Change(&handle.inode, kind))
            }
            Action::Extend { file, length_bytes } => {
                let handle = self.files.handle(*file).filter(|handle| handle.writable)?;
                Some(InFlight::Change(&handle.inode, ChangeKind::Length(*length_bytes)))
            }
            Action::Open { path, mode: crate::OpenMode::Create } => {
                let name = normal(path);
                let is_new = !self.files.names.present.contains_key(&name);
                let inode = self.files.new_inode(Layout::plain(self.files.chunk_bytes()));
                is_new.then(|| InFlight::Names(vec![(name, Some(inode))]))
            }
            Action::Rename { from, to } => {
                let inode = self.files.names.present.get(&normal(from))?;
                Some(InFlight::Names(vec![(normal(from), None), (normal(to), Some(inode.clone()))]))
            }
            Action::Delete { path } => Some(InFlight::Names(vec![(normal(path), None)])),
            _ => None,
        }
    }
}
