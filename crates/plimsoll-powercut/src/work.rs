//! The work itself: sessions and lanes, each waiting for its last durable step before it begins the
//! next.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Durability, File, Files, Handle, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, StopSignal,
};
use serde::Serialize;

use crate::begin::{create, mark_context};
use crate::error::PowercutError;
use crate::mark::{Label, MARK_BYTES, encode};
use crate::rows::{Row, Tables};
use crate::spec::PowercutSpec;
use crate::witness::{Acknowledged, Kind, Witness};

/// How long a session waits before it looks again whether the witness has caught up.
const WITNESS_WAIT_NS: Nanos = NANOS_PER_MILLISECOND;
/// How long lanes of both kinds, lanes that ask for durable writes, and lanes that sync have the
/// marks to themselves, in turn. A sync of one lane empties the whole cache of a device, and would
/// hide that a durable write of another was left in it.
const TURN_NS: Nanos = 250 * NANOS_PER_MILLISECOND;

/// What all tasks share.
struct World {
    spec: PowercutSpec,
    handle: Handle,
    instance: Rc<Instance>,
    tables: Tables,
    marks: File,
    witness: Witness,
    until: Until,
    acknowledged: Cell<u64>,
    outcome: RefCell<PowercutOutcome>,
    failure: RefCell<Option<PowercutError>>,
}

/// How the work ended, if it did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PowercutOutcome {
    /// Commits acknowledged.
    pub commits: u64,
    /// Marks acknowledged.
    pub marks: u64,
    /// What a reader must know of how I/O was done.
    pub remarks: Vec<String>,
    /// The way of doing I/O.
    pub method: String,
}

/// The two wishes every task looks at.
#[derive(Clone)]
struct Until {
    stop: StopSignal,
    deadline: u64,
}

impl Until {
    fn is_over(&self, now: u64) -> bool {
        self.stop.is_wanted() || now >= self.deadline
    }
}

/// Makes the files and works on them until the time is over, somebody asks to stop or the storage
/// fails.
///
/// # Errors
/// The first error of any task, or of closing.
pub async fn work(
    files: Files,
    handle: Handle,
    spec: PowercutSpec,
    witness: Witness,
    stop: StopSignal,
) -> Result<PowercutOutcome, PowercutError> {
    spec.check()?;
    let (instance, tables, marks) = create(&files, &handle, &spec).await?;
    let lasting = spec.seconds.map(|seconds| (seconds * NANOS_PER_SECOND as f64) as Nanos);
    let deadline = lasting.map_or(Nanos::MAX, |lasting| handle.now() + lasting);
    let world = Rc::new(World {
        until: Until { stop, deadline },
        handle: handle.clone(),
        instance: instance.clone(),
        tables,
        marks: marks.clone(),
        witness,
        acknowledged: Cell::new(0),
        outcome: RefCell::default(),
        failure: RefCell::default(),
        spec,
    });
    let mut tasks = Vec::new();
    for session in 0..world.spec.sessions {
        let world = world.clone();
        tasks.push(handle.spawn(async move { world.note(world.commit_on(session).await) }));
    }
    for lane in 0..world.spec.lanes {
        let world = world.clone();
        tasks.push(handle.spawn(async move { world.note(world.mark_on(lane).await) }));
    }
    for task in tasks {
        task.await;
    }
    let mut outcome = world.outcome.take();
    let failure = world.failure.take();
    drop(world);
    let closed = instance.close().await.map_err(PowercutError::from);
    let marks_closed = marks.close(mark_context()).await;
    if let Some(failure) = failure {
        return Err(failure);
    }
    closed?;
    marks_closed?;
    let facts = files.disk().facts();
    (outcome.method, outcome.remarks) = (facts.method, facts.remarks);
    Ok(outcome)
}

impl World {
    fn is_over(&self) -> bool {
        self.until.is_over(self.handle.now()) || self.failure.borrow().is_some()
    }

    /// Keeps the first error; the others follow from it.
    fn note(&self, result: Result<(), PowercutError>) {
        if let Err(error) = result {
            self.failure.borrow_mut().get_or_insert(error);
        }
    }

    /// Waits while the witness is too far behind; what it does not know is no evidence.
    async fn may_go_on(&self) -> bool {
        while !self.is_over() {
            let known = self.witness.confirmed();
            if self.acknowledged.get().saturating_sub(known) < self.spec.unwitnessed_max {
                return true;
            }
            self.handle.sleep(WITNESS_WAIT_NS).await;
        }
        false
    }

    fn acknowledge(&self, kind: Kind, lane: u32, sequence: u64, started: u64) {
        let number = self.acknowledged.get() + 1;
        self.acknowledged.set(number);
        match kind {
            Kind::Commit => self.outcome.borrow_mut().commits += 1,
            Kind::Mark => self.outcome.borrow_mut().marks += 1,
        }
        // A witness that listens no more is noticed by whoever speaks to it, who asks to stop.
        let _ =
            self.witness.acknowledged.send(Acknowledged { kind, lane, sequence, number, started });
    }

    async fn commit_on(&self, session: u32) -> Result<(), PowercutError> {
        let mut sequence = 0;
        while self.may_go_on().await {
            sequence += 1;
            let row = Row {
                session,
                slot: sequence % self.spec.rows,
                sequence,
                started: self.acknowledged.get(),
            };
            let transaction = self.instance.begin();
            self.tables.write(&transaction, &self.spec, row).await?;
            transaction.commit(Commit::Durable).await?;
            self.acknowledge(Kind::Commit, session, sequence, row.started);
        }
        Ok(())
    }

    /// Waits until it is the turn of a lane's way of making marks durable.
    async fn my_turn(&self, durability: Durability) {
        loop {
            let now = self.handle.now();
            let is_mine = match now / TURN_NS % 3 {
                1 => durability == Durability::Durable,
                2 => durability == Durability::Volatile,
                _ => true,
            };
            if is_mine || self.is_over() {
                return;
            }
            self.handle.sleep(WITNESS_WAIT_NS).await;
        }
    }

    /// Even lanes ask for each write to be durable, odd ones write and sync: both are promises of
    /// their own.
    async fn mark_on(&self, lane: u32) -> Result<(), PowercutError> {
        let mut sequence = 0;
        let mut buffer = self.marks.allocate(MARK_BYTES);
        let durability = [Durability::Durable, Durability::Volatile][lane as usize % 2];
        loop {
            self.my_turn(durability).await;
            if !self.may_go_on().await {
                return Ok(());
            }
            sequence += 1;
            let started = self.acknowledged.get();
            let label = Label { run: self.spec.run, lane, sequence, started };
            encode(label, &mut buffer);
            let block = u64::from(lane) * self.spec.slots + sequence % self.spec.slots;
            let offset = block * MARK_BYTES as u64;
            buffer = self.marks.write(offset, buffer, durability, mark_context()).await?;
            if durability == Durability::Volatile {
                self.marks.sync(mark_context()).await?;
            }
            self.acknowledge(Kind::Mark, lane, sequence, started);
        }
    }
}
