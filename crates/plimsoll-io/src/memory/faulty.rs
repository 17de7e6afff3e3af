//! File operations with a fault in them.

use std::rc::Rc;

use super::faults::Effect;
use super::filesystem::FileSystem;
use super::inode::{InodeRef, SECTOR_BYTES};
use crate::DiskErrorKind as Kind;
use crate::{Action, Answer, Buffer, DiskError, Durability, Random};

/// A write that is wanted, checked, and about to go wrong.
struct Wanted {
    inode: InodeRef,
    offset: u64,
    buffer: Buffer,
    durability: Durability,
}

impl FileSystem {
    /// Does an action with an effect. `sync_mark` was taken when the action was submitted.
    pub(crate) fn perform_with(
        &mut self,
        effect: Option<Effect>,
        action: Action,
        sync_mark: u64,
        random: &mut Random,
    ) -> Result<Answer, DiskError> {
        match effect {
            Some(Effect::Fail(kind)) => Err(self.error_of(&action, kind)),
            Some(Effect::FlipOnRead | Effect::FlipStored | Effect::LoseSector) => {
                self.perform_damaging(effect, action, random)
            }
            Some(Effect::SkipSync) => self.perform_unsynced(action),
            Some(
                Effect::LoseWrite
                | Effect::TearWrite
                | Effect::FailPartly(_)
                | Effect::MisdirectWithinFile
                | Effect::MisdirectToOtherFile,
            ) => self.write_wrongly(effect, action, random),
            _ => self.perform(action, sync_mark),
        }
    }

    /// An error that names the action's file and range.
    pub(crate) fn error_of(&self, action: &Action, kind: Kind) -> DiskError {
        let error = DiskError::new(kind, action.verb(), self.path_of(action));
        match action {
            Action::Read { offset, buffer, .. } | Action::Write { offset, buffer, .. } => {
                error.at(*offset, buffer.len() as u64)
            }
            _ => error,
        }
    }

    /// A sync acknowledged and not done. A durable write becomes a volatile one.
    fn perform_unsynced(&mut self, action: Action) -> Result<Answer, DiskError> {
        match action {
            Action::Write { file, offset, buffer, .. } => {
                self.write(file, offset, buffer, Durability::Volatile)
            }
            // A mark of zero covers nothing; a sync of a closed file still fails as it must.
            other => self.perform(other, 0),
        }
    }

    /// A read that meets damage, or a write that leaves it.
    fn perform_damaging(
        &mut self,
        effect: Option<Effect>,
        action: Action,
        random: &mut Random,
    ) -> Result<Answer, DiskError> {
        let (Action::Read { file, offset, ref buffer }
        | Action::Write { file, offset, ref buffer, .. }) = action
        else {
            unreachable!("these effects concern reads and writes only")
        };
        let at = random.below(buffer.len().max(1) as u64);
        let bit = 1 << random.below(8);
        let is_read = matches!(action, Action::Read { .. });
        let inode = self.handle(file).map(|handle| handle.inode.clone());
        let damage = |files: &Self| {
            if let Some(inode) = &inode {
                files.damage(effect, inode, offset.saturating_add(at), bit);
            }
        };
        if is_read {
            damage(self);
        }
        let mut answer = self.perform(action, 0)?;
        if !is_read {
            damage(self);
        }
        if is_read && let (Some(Effect::FlipOnRead), Answer::Buffer(buffer)) = (effect, &mut answer)
        {
            buffer[at as usize] ^= bit;
        }
        Ok(answer)
    }

    /// Flips a stored bit or loses a sector. The damage is on the medium: no power cut undoes it.
    fn damage(&self, effect: Option<Effect>, inode: &InodeRef, at: u64, bit: u8) {
        let mut inode = inode.borrow_mut();
        if at >= inode.length_bytes {
            return;
        }
        match effect {
            Some(Effect::FlipStored) => {
                let mut byte = [0];
                inode.chunks.read(at, &mut byte);
                inode.write(at, &[byte[0] ^ bit], self.keeping(Durability::Durable));
            }
            Some(Effect::LoseSector) => {
                inode.unreadable.insert(at / SECTOR_BYTES);
            }
            _ => {}
        }
    }

    fn write_wrongly(
        &mut self,
        effect: Option<Effect>,
        action: Action,
        random: &mut Random,
    ) -> Result<Answer, DiskError> {
        let failure = self.error_of(&action, Kind::Other);
        let Action::Write { file, offset, buffer, durability } = action else {
            unreachable!("these effects concern writes only")
        };
        let wanted = Wanted {
            inode: self.check_write(file, offset, buffer.len() as u64)?,
            offset,
            buffer,
            durability,
        };
        match effect {
            Some(Effect::TearWrite) => self.store_some(&wanted, random),
            Some(Effect::FailPartly(kind)) => {
                self.store_some(&wanted, random);
                return Err(DiskError { kind, ..failure });
            }
            Some(Effect::MisdirectWithinFile) => {
                self.store_elsewhere(&wanted, &wanted.inode, random)
            }
            Some(Effect::MisdirectToOtherFile) => {
                if let Some(other) = self.other_file(&wanted, random) {
                    self.store_elsewhere(&wanted, &other, random);
                }
            }
            _ => {}
        }
        Ok(Answer::Buffer(wanted.buffer))
    }

    /// Stores a random choice of the write's atomic units. Within the file they are one write, as
    /// they were asked for: each by itself would cover a part of a larger physical sector only.
    fn store_some(&self, wanted: &Wanted, random: &mut Random) {
        let keeping = self.keeping(wanted.durability);
        let mut inode = wanted.inode.borrow_mut();
        let (start, length) = (wanted.offset, wanted.buffer.len());
        let is_within = start + length as u64 <= inode.length_bytes
            && !inode.is_unreadable(start, length as u64);
        let mut mixed = vec![0; length];
        inode.chunks.read(start, &mut mixed);
        for (at, part) in units(start, &wanted.buffer, self.atomic_write_bytes()) {
            if random.below(2) != 0 {
                continue;
            }
            if is_within {
                let first = (at - start) as usize;
                mixed[first..first + part.len()].copy_from_slice(part);
            } else {
                inode.write(at, part, keeping);
            }
        }
        if is_within {
            inode.write(start, &mixed, keeping);
        }
    }

    /// Stores the write at another multiple of its length, inside the file; a file without such a
    /// place gets nothing.
    fn store_elsewhere(&self, wanted: &Wanted, inode: &InodeRef, random: &mut Random) {
        let length = wanted.buffer.len() as u64;
        let places = inode.borrow().length_bytes / length;
        let is_same_file = Rc::ptr_eq(inode, &wanted.inode);
        let others = places.saturating_sub(u64::from(is_same_file));
        if others == 0 {
            return;
        }
        let mut place = random.below(others);
        if is_same_file && place >= wanted.offset / length {
            place += 1;
        }
        let keeping = self.keeping(wanted.durability);
        inode.borrow_mut().write(place * length, &wanted.buffer, keeping);
    }

    fn other_file(&self, wanted: &Wanted, random: &mut Random) -> Option<InodeRef> {
        let length = wanted.buffer.len() as u64;
        let others: Vec<&InodeRef> = self
            .names
            .present
            .values()
            .filter(|inode| {
                !Rc::ptr_eq(inode, &wanted.inode) && inode.borrow().length_bytes >= length
            })
            .collect();
        if others.is_empty() {
            return None;
        }
        Some(others[random.below(others.len() as u64) as usize].clone())
    }
}

/// A write cut at the borders of aligned atomic units.
pub(crate) fn units(
    offset: u64,
    bytes: &[u8],
    unit_bytes: u64,
) -> impl Iterator<Item = (u64, &[u8])> {
    let end = offset + bytes.len() as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let next = ((at / unit_bytes + 1) * unit_bytes).min(end);
        let part = &bytes[(at - offset) as usize..(next - offset) as usize];
        let item = (at, part);
        at = next;
        Some(item)
    })
}
