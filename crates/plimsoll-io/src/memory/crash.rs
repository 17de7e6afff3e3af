//! What is found on a disk after its power was cut.
//!
//! The image starts from what is stable. Then chance decides: which pending name changes survive
//! (never one without the earlier changes of the same names), which lengths survive, and for every
//! write at risk whether it survives wholly, not at all, or torn, that is in any subset of its
//! atomic units. Writes in flight at the cut are at risk even when they were submitted as durable.
//! The order of completion decides which of two overlapping survivors wins.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use super::faulty::units;
use super::filesystem::FileSystem;
use super::inode::{ChangeKind, Inode, InodeRef, SECTOR_BYTES};
use super::names::{NameChange, assign};
use super::options::MemoryOptions;
use crate::Random;

/// How much of what is at risk an image loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// All of it: only stable things remain.
    Everything,
    /// None of it: as if the caches had just been written out.
    Nothing,
    /// Each image draws its own severity: sometimes everything, sometimes nothing, mostly a
    /// mixture; once for the names, once for the files, and for every second file again. So the
    /// lopsided images are met too in which the names survive and the bytes do not, or the database
    /// and not its log.
    Drawn,
    /// Each change survives with `survival`; a write that does is torn with `tearing`.
    Chance { survival: f64, tearing: f64 },
}

/// The odds of one part of an image.
#[derive(Clone, Copy)]
struct Severity {
    survival: f64,
    tearing: f64,
}

impl Loss {
    fn severity(self, random: &mut Random) -> Severity {
        let (survival, tearing) = match self {
            Loss::Everything => (0.0, 0.0),
            Loss::Nothing => (1.0, 0.0),
            Loss::Chance { survival, tearing } => (survival, tearing),
            Loss::Drawn => {
                let survival = match random.below(8) {
                    0 => 0.0,
                    1 => 1.0,
                    _ => random.unit(),
                };
                let tearing = if random.below(2) == 0 { 0.0 } else { random.unit() };
                (survival, tearing)
            }
        };
        Severity { survival, tearing }
    }
}

/// The work of making one image.
pub(crate) struct Cut<'a> {
    random: &'a mut Random,
    loss: Loss,
    /// Of what is being decided just now.
    severity: Severity,
    atomic_write_bytes: u64,
    physical_sector_bytes: u64,
}

/// Something submitted and not complete at the cut.
pub(crate) enum InFlight<'a> {
    Change(&'a InodeRef, ChangeKind),
    Names(Vec<(PathBuf, Option<InodeRef>)>),
}

impl<'a> Cut<'a> {
    pub(crate) fn new(random: &'a mut Random, loss: Loss, options: &MemoryOptions) -> Self {
        let severity = loss.severity(random);
        Self {
            random,
            loss,
            severity,
            atomic_write_bytes: u64::from(options.atomic_write_bytes),
            physical_sector_bytes: u64::from(options.physical_sector_bytes),
        }
    }

    fn survives(&mut self) -> bool {
        self.random.chance(self.severity.survival)
    }

    /// Fills `image`, an empty file system, from the one that lost power.
    pub(crate) fn fill(mut self, old: &FileSystem, in_flight: &[InFlight], image: &mut FileSystem) {
        for directory in &old.names.directories {
            image.names.create_directory(directory);
        }
        let names = self.surviving_names(old, in_flight);
        let files = self.loss.severity(self.random);
        for (name, inode) in names {
            let own = self.loss.severity(self.random);
            self.severity = if self.random.below(2) == 0 { files } else { own };
            let survivor = self.surviving_file(&inode, in_flight);
            image.names.settle_file(name, survivor);
        }
    }

    fn surviving_names(
        &mut self,
        old: &FileSystem,
        in_flight: &[InFlight],
    ) -> BTreeMap<PathBuf, InodeRef> {
        let mut names = old.names.stable.clone();
        let mut lost: BTreeSet<PathBuf> = BTreeSet::new();
        let mut decide = |cut: &mut Self, change: &[(PathBuf, Option<InodeRef>)]| {
            let stands_on_lost = change.iter().any(|(name, _)| lost.contains(name));
            if !stands_on_lost && cut.survives() {
                assign(&mut names, change);
            } else {
                lost.extend(change.iter().map(|(name, _)| name.clone()));
            }
        };
        for NameChange { names, .. } in &old.names.pending {
            decide(self, names);
        }
        for operation in in_flight {
            if let InFlight::Names(names) = operation {
                decide(self, names);
            }
        }
        names
    }

    fn surviving_file(&mut self, inode: &InodeRef, in_flight: &[InFlight]) -> InodeRef {
        let old = inode.borrow();
        let mut chunks = old.stable_chunks();
        let mut length_bytes = old.stable_length_bytes;
        let mut unreadable = old.unreadable.clone();
        let begun = in_flight.iter().filter_map(|operation| match operation {
            InFlight::Change(file, kind) if Rc::ptr_eq(file, inode) => Some(kind),
            _ => None,
        });
        for kind in old.changes.iter().map(|change| &change.kind).chain(begun) {
            match kind {
                ChangeKind::Length(length) if self.survives() => {
                    length_bytes = length_bytes.max(*length)
                }
                ChangeKind::Length(_) => {}
                ChangeKind::Write { offset, bytes, certain } => {
                    let grown = offset + bytes.len() as u64;
                    if !certain {
                        unreadable.extend(self.broken_sectors(*offset, grown));
                    }
                    if *certain {
                        chunks.write(*offset, bytes);
                    } else if self.survives() {
                        self.write_torn(*offset, bytes, |at, part| chunks.write(at, part));
                        // The new length is its own step: the bytes may arrive and the length not.
                        if grown > length_bytes && self.survives() {
                            length_bytes = grown;
                        }
                    }
                }
            }
        }
        chunks.truncate(length_bytes);
        let mut copy = Inode::settled(chunks, length_bytes);
        copy.unreadable = unreadable;
        Rc::new(RefCell::new(copy))
    }

    /// The sectors lost because a write covered a part of a physical sector and was interrupted.
    fn broken_sectors(&mut self, start: u64, end: u64) -> BTreeSet<u64> {
        let physical = self.physical_sector_bytes;
        let mut broken = BTreeSet::new();
        for edge in [start, end] {
            let first = edge / physical * physical;
            if first != edge
                && self.random.chance(self.severity.tearing)
                && self.random.below(2) == 0
            {
                broken.extend(first / SECTOR_BYTES..(first + physical) / SECTOR_BYTES);
            }
        }
        broken
    }

    fn write_torn(&mut self, offset: u64, bytes: &[u8], mut write: impl FnMut(u64, &[u8])) {
        if !self.random.chance(self.severity.tearing) {
            write(offset, bytes);
            return;
        }
        for (at, part) in units(offset, bytes, self.atomic_write_bytes) {
            if self.random.below(2) == 0 {
                write(at, part);
            }
        }
    }
}
