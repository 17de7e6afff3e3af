//! Moving a mailbox to the other database of its store while its user goes on.
//!
//! All its rows are copied with the mailbox open, in batches. Then it is closed for its user, and
//! what changed meanwhile is copied once more. The row of the mailbox is the last one: its durable
//! commit is the move. Before it the copy is worth nothing, after it the original is. The mailbox
//! is opened again at its new place, and the original is deleted in batches.
//!
//! Two marks tell what a crash interrupted. `Leaving` is durable in the old database before the
//! switch; `Coming` stands in the new one, before any row of the copy, until the switch. A copy
//! that was begun stays and is gone on with by the next move of its mailbox; an original that is
//! left is deleted when the store is opened.
//!
//! Limit: only where each mailbox has contents of its own, and without an index of words; one
//! mailbox at a time.

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::transaction::{Commit, Transaction};

use super::align::{BATCH_ROWS, Copied, Way, keys_of, tables_of};
use super::homes::{Home, Mark};
use super::tally::{Moved, Tally};
use super::{Layout, MailStore};
use crate::shop::Value;

impl MailStore {
    /// Whether mailboxes can be moved.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn check_moves(&self) -> std::result::Result<(), String> {
        if self.homes.len() < 2 {
            return Err("a mailbox needs a further database to be moved to; name one".into());
        }
        if self.filling.layout == Layout::Shared {
            return Err("mailboxes that share their contents are not moved; write layout = \
                        \"per_mailbox\""
                .into());
        }
        if self.filling.is_indexed {
            return Err(
                "mailboxes with an index of words are not moved; write indexed = false".into()
            );
        }
        Ok(())
    }

    /// Mailboxes whose move was begun and did not come to its switch.
    pub fn begun_moves(&self) -> Vec<u32> {
        self.begun.borrow().iter().copied().collect()
    }

    /// Moves a mailbox to the database that it is not in, or goes on with its move. `told` hears
    /// again and again how far it has come, and ends it by `false`: before the switch the mailbox
    /// stays where it is and what was copied is kept for the next time; after it the rest is done
    /// all the same.
    ///
    /// # Errors
    /// [`EngineError::BadRow`] for a mailbox that cannot be moved, and what the disks report. After
    /// an error in the switch nobody comes into the mailbox until the store is opened again.
    pub async fn move_mailbox(&self, number: u32, told: &dyn Fn(&Moved) -> bool) -> Result<Moved> {
        let refused = |why: String| EngineError::BadRow(format!("mailbox {number}: {why}"));
        self.check_moves().map_err(refused)?;
        if number >= self.filling.mailboxes {
            return Err(refused("there is none with this number".into()));
        }
        let _alone = self.movers.acquire().await;
        let place = self.place_of(number);
        let way = Way { from: &self.homes[place], to: &self.homes[1 - place], number };
        let tally = Tally::new([way.from, way.to], told);
        tally.metered(self.carry(way, &tally)).await?;
        Ok(tally.moved())
    }

    async fn carry(&self, way: Way<'_>, tally: &Tally<'_>) -> Result<()> {
        if !self.begun.borrow().contains(&way.number) {
            // Before any copy: a crash must find what it left. The log of the new place keeps the
            // mark before the copy.
            self.mark(way.from, way.number, Some(Mark::Leaving), Commit::Durable).await?;
            self.mark(way.to, way.number, Some(Mark::Coming), Commit::Lazy).await?;
            self.begun.borrow_mut().insert(way.number);
        }
        if !self.align(way, tally, true).await? {
            return Ok(());
        }
        let closed = self.doors.close(way.number).await;
        if self.half_way.get() {
            // Mail was delivered to some of its recipients and an error came: those may not move
            // before it has come to all, or it would come to them once more.
            return Ok(());
        }
        let closed_at = way.from.mail.store().handle.now();
        self.align(way, tally, false).await?;
        self.switch(way, tally).await?;
        let closed_ns = way.from.mail.store().handle.now() - closed_at;
        tally.note(|moved| (moved.is_over, moved.closed_ns) = (true, closed_ns));
        drop(closed);
        self.delete_original(way.from, way.number, Some(tally)).await
    }

    /// Writes or takes away the mark of a mailbox.
    async fn mark(&self, home: &Home, number: u32, mark: Option<Mark>, how: Commit) -> Result<()> {
        self.transact(home, how, async |transaction| {
            set_mark(home, transaction, number, mark).await
        })
        .await
    }

    /// From its durable commit on the mailbox lives at the new place.
    async fn switch(&self, way: Way<'_>, tally: &Tally<'_>) -> Result<()> {
        let (source, target) = (&way.from.tables.mailboxes, &way.to.tables.mailboxes);
        let key = source.key_of_number(way.number.into())?;
        let own = {
            let reading = way.from.mail.begin();
            let row = source.get(&reading, &key).await?;
            Copied::of(source, &reading, &row.ok_or(EngineError::RowNotFound)?).await?
        };
        let doubt = self.doors.doubt(way.number);
        let done = self
            .transact(way.to, Commit::Durable, async |transaction| {
                own.write(target, transaction).await?;
                set_mark(way.to, transaction, way.number, None).await
            })
            .await;
        if let Err(error) = done {
            doubt.failed(&error);
            return Err(error);
        }
        let mut moved = self.moved.borrow_mut();
        if !moved.remove(&way.number) {
            moved.insert(way.number);
        }
        self.begun.borrow_mut().remove(&way.number);
        doubt.settle();
        tally.note(|moved| {
            moved.rows += 1;
            moved.read_bytes += own.bytes;
            moved.written_bytes += own.bytes;
        });
        Ok(())
    }

    /// Deletes all of a mailbox at a place, its own row and the mark last: until then a crash knows
    /// that something is left.
    async fn delete_original(
        &self,
        home: &Home,
        number: u32,
        tally: Option<&Tally<'_>>,
    ) -> Result<()> {
        let place = [Value::Number(number.into())];
        for (sheet, _) in tables_of(home) {
            loop {
                let count = self
                    .transact(home, Commit::Lazy, async |transaction| {
                        let keys = keys_of(sheet, transaction, &place, BATCH_ROWS).await?;
                        for key in &keys {
                            sheet.delete(transaction, key).await?;
                        }
                        Ok(keys.len())
                    })
                    .await?;
                if let Some(tally) = tally {
                    tally.note(|moved| moved.deleted_rows += count as u64);
                    tally.tell();
                }
                if count < BATCH_ROWS {
                    break;
                }
                home.mail.store().handle.breathe().await;
            }
        }
        let sheet = &home.tables.mailboxes;
        // Durable, or after a move back and a crash there would be two originals.
        self.transact(home, Commit::Durable, async |transaction| {
            sheet.delete(transaction, &sheet.key_of_number(number.into())?).await?;
            set_mark(home, transaction, number, None).await
        })
        .await
    }

    /// Finds where mailboxes live, and finishes what a crash left of moves, before anybody comes.
    pub(super) async fn settle_moves(&self) -> Result<()> {
        let [first, further] = &self.homes[..] else { return Ok(()) };
        let (here, there) = (first.mailboxes().await?, further.mailboxes().await?);
        let mut begun = further.marked(Mark::Coming).await?;
        begun.append(&mut first.marked(Mark::Coming).await?);
        self.begun.replace(begun);
        let mut moved = there.clone();
        for home in &self.homes {
            for number in home.marked(Mark::Leaving).await? {
                if here.contains(&number) && there.contains(&number) {
                    self.delete_original(home, number, None).await?;
                    if std::ptr::eq(home, further) {
                        moved.remove(&number);
                    }
                }
            }
        }
        self.moved.replace(moved);
        Ok(())
    }
}

/// Gives a mailbox this mark and no other.
async fn set_mark(
    home: &Home,
    transaction: &Transaction,
    number: u32,
    mark: Option<Mark>,
) -> Result<()> {
    let sheet = home.marks()?;
    let key = sheet.key_of_number(number.into())?;
    if sheet.get(transaction, &key).await?.is_some() {
        sheet.delete(transaction, &key).await?;
    }
    if let Some(mark) = mark {
        let values = [number.into(), mark as i64].map(Value::Number);
        sheet.insert(transaction, &values).await?;
    }
    Ok(())
}
