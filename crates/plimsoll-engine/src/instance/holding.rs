//! Taking, changing and releasing holds on the log. See [`holds`](super::holds).

use std::rc::Rc;

use super::Instance;
use super::holds::Hold;
use crate::error::{EngineError, Result};
use crate::log::holds::{LOST_HOLDS, NamedHolds, encode_holds, write_holds};

/// A hold on the log for work of this process. It ends with the work, in whichever way that ends,
/// and is nobody else's: two backups of one database hold their log each, and no caller can take
/// it away by its name.
pub(crate) struct Held {
    instance: Rc<Instance>,
    number: u64,
}

impl Held {
    /// Keeps generations from `generation` on for what the work is called.
    pub(crate) fn begin(instance: &Rc<Instance>, what: &str, generation: u32) -> Held {
        let number = instance.holders.get() + 1;
        instance.holders.set(number);
        let name = format!("{what}, number {number}");
        let hold = Hold { name, generation, is_durable: false };
        instance.holds.of_work.borrow_mut().insert(number, hold);
        Held { instance: instance.clone(), number }
    }

    /// From now on only those from `generation` on.
    pub(crate) fn raise(&self, generation: u32) {
        if let Some(hold) = self.instance.holds.of_work.borrow_mut().get_mut(&self.number) {
            hold.generation = generation;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.instance.holds.of_work.borrow_mut().remove(&self.number);
    }
}

/// Refuses names that are none, or that stand for something else.
fn check_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "a hold needs a name: give that of the client, which releases it under it".to_owned()
    } else if name.chars().any(char::is_control) {
        format!("the name {name:?} has control characters: leave them out")
    } else if name == LOST_HOLDS {
        format!("the name {name:?} stands for holds of before: choose another")
    } else {
        return Ok(());
    };
    Err(EngineError::BadOption { name: "hold", why })
}

impl Instance {
    /// Keeps generations from `generation` on until the hold is changed or released, or the process
    /// ends; used by who reads along.
    pub fn hold_log(&self, holder: &str, generation: u32) {
        let mut holds = self.holds.of_callers.borrow_mut();
        holds.insert(holder.to_owned(), generation);
    }

    /// Ends a hold of [`Instance::hold_log`].
    pub fn release_log(&self, holder: &str) {
        self.holds.of_callers.borrow_mut().remove(holder);
    }

    /// Keeps generations from `generation` on for a client, across restarts and crashes, until the
    /// hold is changed or released under its name. It goes on to the end when nobody waits for it
    /// any longer.
    ///
    /// # Errors
    /// [`EngineError::LogDeleted`] when that generation was purged, with the oldest that is there;
    /// [`EngineError::BadOption`] for a generation behind the next to come, for a name that is
    /// empty, has control characters or is reserved, and when there is no room for the hold;
    /// [`EngineError::Closing`]; and whatever writing meets: then the hold may be there or not, and
    /// no log is purged that it would need.
    pub async fn hold_log_durably(self: &Rc<Self>, name: &str, generation: u32) -> Result<()> {
        drop(self.store.enter()?);
        check_name(name)?;
        let next = self.store.log.tip().generation.saturating_add(1);
        if generation > next {
            let why = format!(
                "log generation {generation} cannot be held yet: the next to come is {next}, hold \
                 the log from there"
            );
            return Err(EngineError::BadOption { name: "hold", why });
        }
        // Before anything is waited for: from now on nobody deletes it.
        let ticket = self.holds.expect(generation);
        let oldest = self.store.log.oldest_generation().max(self.holds.unbroken_from);
        if generation < oldest {
            self.holds.coming.borrow_mut().remove(&ticket);
            return Err(EngineError::LogDeleted { generation, oldest });
        }
        let name = name.to_owned();
        let change = move |holds: &mut NamedHolds| {
            holds.insert(name, generation);
        };
        self.change_holds(ticket, change).await
    }

    /// Ends a durable hold; one that is not there has been released before. It goes on to the end
    /// when nobody waits for it any longer.
    ///
    /// # Errors
    /// Whatever writing meets: then the hold stays.
    pub async fn release_durably(self: &Rc<Self>, name: &str) -> Result<()> {
        let (name, ticket) = (name.to_owned(), self.holds.expect(u32::MAX));
        let change = move |holds: &mut NamedHolds| {
            holds.remove(&name);
        };
        self.change_holds(ticket, change).await
    }

    /// Deletes the generations before `before` that neither recovery nor a holder needs, also where
    /// log is kept otherwise: for who holds a backup that needs none of them. Answers the first
    /// that is left.
    ///
    /// # Errors
    /// [`EngineError::Closing`] once the log is not written any more, and what deleting meets: then
    /// the others are left.
    pub async fn truncate_log(&self, before: u32) -> Result<u32> {
        let log = &self.store.log;
        if log.is_stopped() {
            return Err(EngineError::Closing);
        }
        log.delete_before(|| self.needed_from().min(before), true).await?;
        Ok(log.oldest_generation())
    }

    /// All holds: durable ones first, then those of callers, both by name, then those of backups
    /// and other work.
    pub fn holds(&self) -> Vec<Hold> {
        let listed = |holds: &NamedHolds, is_durable| -> Vec<Hold> {
            let hold = |(name, generation): (&String, &u32)| Hold {
                name: name.clone(),
                generation: *generation,
                is_durable,
            };
            holds.iter().map(hold).collect()
        };
        let mut holds = listed(&self.holds.durable.borrow(), true);
        holds.extend(listed(&self.holds.of_callers.borrow(), false));
        holds.extend(self.holds.of_work.borrow().values().cloned());
        holds
    }

    /// Changes the file, in a task of its own: who stops waiting must not leave it half written.
    async fn change_holds(
        self: &Rc<Self>,
        ticket: u64,
        change: impl FnOnce(&mut NamedHolds) + 'static,
    ) -> Result<()> {
        let this = self.clone();
        let changed =
            self.store.handle.spawn(async move { this.change_holds_alone(ticket, change).await });
        changed.await
    }

    async fn change_holds_alone(
        &self,
        ticket: u64,
        change: impl FnOnce(&mut NamedHolds),
    ) -> Result<()> {
        let (store, holds) = (&self.store, &self.holds);
        let prepared = async {
            let entered = store.enter()?;
            let turn = holds.turn.acquire().await;
            let mut wanted = holds.durable.borrow().clone();
            change(&mut wanted);
            encode_holds(&wanted, store.log.signature())?;
            Ok((entered, turn, wanted))
        };
        let (_entered, _turn, wanted) = match prepared.await {
            Ok(prepared) => prepared,
            Err(refusal) => {
                holds.coming.borrow_mut().remove(&ticket);
                return Err(refusal);
            }
        };
        let (signature, names) = (store.log.signature(), &self.options.log);
        match write_holds(&store.files, names, &wanted, signature, store.context).await {
            Ok(()) => {
                holds.note_written(ticket, wanted);
                Ok(())
            }
            Err(error) => {
                holds.in_doubt.borrow_mut().push(ticket);
                Err(error)
            }
        }
    }
}
