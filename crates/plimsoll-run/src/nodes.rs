//! The nodes that instances live on: whether each instance can be spoken to now, whose processors
//! carry out its transactions, and what a death cost.
//!
//! Tasks of a load go through here on their way to an instance. While it is dead they wait, so a
//! load that arrives by a schedule queues; a task that was being carried out when the node died is
//! lost: its client never hears of it. Without a cluster in the plan nothing is asked and nothing
//! waits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_io::{Handle, Nanos, Notify, either};

use crate::RunError;
use crate::outcome::Failover;
use crate::processors::Processors;
use crate::spec::RunSpec;

/// See the module text.
pub struct Nodes {
    /// Of each instance, by its position in the plan; empty without a cluster.
    lives: Vec<Life>,
    /// Of each node.
    processors: Vec<Processors>,
    /// Of instances on no node.
    of_others: Processors,
    failovers: RefCell<Vec<Failover>>,
    /// How many deaths are being dealt with.
    under_way: Cell<u32>,
    /// Counts phases: a death of one that is over does not happen.
    phase: Cell<u64>,
    failed: RefCell<Option<RunError>>,
    changed: Notify,
}

/// Whether an instance can be spoken to.
struct Life {
    node: Cell<Option<usize>>,
    is_mortal: bool,
    is_down: Cell<bool>,
    /// Tasks that are being carried out.
    inside_count: Cell<u64>,
    lost_count: Cell<u64>,
    /// Its entry in the failovers, until something is served again.
    not_served: Cell<Option<usize>>,
    died: Notify,
}

/// A task that is being carried out.
struct Inside<'a>(&'a Nodes, &'a Life);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.1.inside_count.set(self.1.inside_count.get() - 1);
        if self.1.is_down.get() {
            self.0.changed.notify_all();
        }
    }
}

impl Nodes {
    /// Everything lives.
    pub fn of(spec: &RunSpec, processors: Processors) -> Nodes {
        let cluster = spec.cluster.as_ref();
        let life = |name: &String| Life {
            node: Cell::new(cluster.and_then(|cluster| {
                cluster.nodes.iter().position(|node| node.instances.contains(name))
            })),
            is_mortal: cluster.is_some_and(|cluster| cluster.loses(name)),
            is_down: Cell::new(false),
            inside_count: Cell::new(0),
            lost_count: Cell::new(0),
            not_served: Cell::new(None),
            died: Notify::new(),
        };
        let names = spec.instances.iter().map(|instance| &instance.name);
        Nodes {
            lives: cluster.map_or(Vec::new(), |_| names.map(life).collect()),
            processors: cluster.map_or(Vec::new(), |cluster| {
                cluster.nodes.iter().map(|node| processors.as_many(node.processors)).collect()
            }),
            of_others: processors,
            failovers: RefCell::default(),
            under_way: Cell::new(0),
            phase: Cell::new(0),
            failed: RefCell::default(),
            changed: Notify::new(),
        }
    }

    /// Whether an instance is on a node that dies: what it acknowledges is to be remembered.
    pub fn is_mortal(&self, instance: usize) -> bool {
        self.lives.get(instance).is_some_and(|life| life.is_mortal)
    }

    /// Waits until an instance can be spoken to and one of its processors has taken a transaction
    /// on.
    ///
    /// # Errors
    /// When the instance does not come back.
    pub async fn admit(&self, handle: &Handle, instance: u32) -> Result<(), RunError> {
        let Some(life) = self.lives.get(instance as usize) else {
            self.of_others.transaction(handle).await;
            return Ok(());
        };
        loop {
            while life.is_down.get() {
                self.failure().map_or(Ok(()), Err)?;
                self.changed.notified().await;
            }
            let own = life.node.get().and_then(|node| self.processors.get(node));
            own.unwrap_or(&self.of_others).transaction(handle).await;
            if !life.is_down.get() {
                return Ok(());
            }
        }
    }

    /// Carries a task out on an instance; nothing when its node died meanwhile.
    pub async fn attempt<T>(&self, instance: u32, work: impl Future<Output = T>) -> Option<T> {
        let Some(life) = self.lives.get(instance as usize).filter(|life| life.is_mortal) else {
            return Some(work.await);
        };
        life.inside_count.set(life.inside_count.get() + 1);
        let _inside = Inside(self, life);
        let mut done = None;
        let died = life.died.notified();
        either(async { done = Some(work.await) }, died).await;
        done
    }

    /// A task was lost with its instance.
    pub fn lost(&self, instance: u32) {
        let lost_count = &self.lives[instance as usize].lost_count;
        lost_count.set(lost_count.get() + 1);
    }

    /// An instance has answered.
    pub fn served(&self, instance: u32, at: Nanos) {
        let life = self.lives.get(instance as usize);
        if let Some(number) = life.and_then(|life| life.not_served.take())
            && let Some(failover) = self.failovers.borrow_mut().get_mut(number)
        {
            failover.served_ns = Some(at);
        }
    }

    /// Nobody can speak to these instances any more; returns when nobody does.
    pub async fn kill(&self, instances: &[usize]) {
        for instance in instances {
            let life = &self.lives[*instance];
            life.is_down.set(true);
            life.lost_count.set(0);
            life.died.notify_all();
        }
        let speaks = |instance: &usize| self.lives[*instance].inside_count.get() > 0;
        while instances.iter().any(speaks) {
            self.changed.notified().await;
        }
    }

    /// Whether an instance is dead, and not back yet.
    pub fn is_down(&self, instance: usize) -> bool {
        self.lives[instance].is_down.get()
    }

    /// Waits until these instances are back from an earlier death.
    ///
    /// # Errors
    /// When one of them does not come back.
    pub async fn arrived(&self, instances: &[usize]) -> Result<(), RunError> {
        while instances.iter().any(|instance| self.is_down(*instance)) {
            self.failure().map_or(Ok(()), Err)?;
            self.changed.notified().await;
        }
        Ok(())
    }

    /// Tasks that the last death of an instance has cost.
    pub fn lost_count(&self, instance: usize) -> u64 {
        self.lives[instance].lost_count.get()
    }

    /// An instance can be spoken to again, on another node.
    pub fn revive(&self, instance: usize, node: usize, failover: Failover) {
        let mut failovers = self.failovers.borrow_mut();
        let life = &self.lives[instance];
        life.node.set(Some(node));
        life.not_served.set(Some(failovers.len()));
        failovers.push(failover);
        life.is_down.set(false);
        self.changed.notify_all();
    }

    /// Begins to deal with a death, unless the phase it belongs to is over.
    pub fn begin(self: &Rc<Self>, phase: u64) -> bool {
        let is_on = self.phase.get() == phase;
        if is_on {
            self.under_way.set(self.under_way.get() + 1);
        }
        is_on
    }

    /// A death has been dealt with.
    pub fn end(&self, result: Result<(), RunError>) {
        self.under_way.set(self.under_way.get() - 1);
        if let Err(error) = result {
            self.failed.borrow_mut().get_or_insert(error);
        }
        self.changed.notify_all();
    }

    /// The number of the phase that runs.
    pub fn phase(&self) -> u64 {
        self.phase.get()
    }

    /// Ends the phase: what has not died yet stays alive. Waits until all that died is back.
    ///
    /// # Errors
    /// When something does not come back.
    pub async fn settle(&self) -> Result<(), RunError> {
        self.phase.set(self.phase.get() + 1);
        while self.under_way.get() > 0 {
            self.changed.notified().await;
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Why an instance does not come back.
    pub fn failure(&self) -> Option<RunError> {
        self.failed.borrow().clone()
    }

    /// What came back since it was asked last.
    pub fn take_failovers(&self) -> Vec<Failover> {
        self.lives.iter().for_each(|life| life.not_served.set(None));
        self.failovers.take()
    }
}
