//! Many power cuts of one run. At every moment that a cut is planned for, what would be found is
//! taken as an image, and the run goes on as if nothing had happened. What a cut finds depends only
//! on what happened before it, so an image taken on the way is as good as one taken at the end; a
//! test of the disk holds it to that.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_io::{AfterLook, Loss, MemoryDisk, Random};

use crate::coverage::under_way;
use crate::world::{Ground, aimed, growth};

/// What had been promised when the power failed.
#[derive(Clone)]
pub struct Promises {
    pub ground: Option<Ground>,
    /// Commits, from the first on.
    pub committed: usize,
    pub acknowledged: usize,
}

/// A moment at which the power failed.
pub struct Moment {
    /// The disk that was found.
    pub image: Rc<MemoryDisk>,
    /// Names of the operations under way.
    pub under_way: BTreeSet<&'static str>,
    pub promises: Promises,
}

/// How far apart the cuts of a run are at most, how many there are, and whether the last one ends
/// the run.
#[derive(Clone, Copy)]
pub struct Pace {
    /// How often a cut is aimed at an operation of a rare kind.
    pub aimed: f64,
    pub events: u64,
    pub gap_ns: u64,
    pub moments: usize,
    pub after_last: AfterLook,
}

/// Takes the moments of one run.
pub struct Watch {
    pace: Pace,
    promises: Box<dyn Fn() -> Promises>,
    random: Random,
    taken: Vec<Moment>,
    is_over: bool,
}

/// Shared with the disk that is watched.
pub type SharedWatch = Rc<RefCell<Watch>>;

impl Watch {
    /// Begins to watch a disk.
    pub fn begin(
        disk: &MemoryDisk,
        pace: Pace,
        promises: impl Fn() -> Promises + 'static,
        random: &mut Random,
    ) -> SharedWatch {
        let mut watch = Watch {
            pace,
            promises: Box::new(promises),
            random: Random::from_seed(random.next_u64()),
            taken: Vec::new(),
            is_over: false,
        };
        watch.plan(disk);
        let watch = Rc::new(RefCell::new(watch));
        let looking = watch.clone();
        disk.look_at_cuts(move |disk| looking.borrow_mut().look(disk));
        watch
    }

    /// Plans the next cut. By events as well as by time: fast disks are done with the work of a
    /// round in no time.
    fn plan(&mut self, disk: &MemoryDisk) {
        let random = &mut self.random;
        disk.clear_faults();
        if random.chance(self.pace.aimed) {
            disk.inject(aimed(random));
        }
        // Databases seldom grow, so whenever one does is a moment to look at.
        disk.inject(growth());
        if random.chance(0.5) {
            disk.power_cut_at_event(disk.events() + 1 + random.below(self.pace.events));
        } else {
            disk.power_cut_at(disk.clock().now() + 1 + random.below(self.pace.gap_ns));
        }
    }

    fn look(&mut self, disk: &MemoryDisk) -> AfterLook {
        if self.is_over {
            return AfterLook::GoOn;
        }
        self.take(disk);
        if self.taken.len() == self.pace.moments {
            self.is_over = true;
            return self.pace.after_last;
        }
        self.plan(disk);
        AfterLook::GoOn
    }

    /// Takes a moment now.
    pub fn take(&mut self, disk: &MemoryDisk) {
        self.taken.push(Moment {
            image: disk.crash_image(Loss::Drawn, &mut self.random),
            under_way: under_way(disk),
            promises: (self.promises)(),
        });
    }

    /// Takes no more moments; the cuts that are still planned do nothing.
    pub fn stop(&mut self) {
        self.is_over = true;
    }

    /// The moments taken.
    pub fn end(&mut self) -> Vec<Moment> {
        self.stop();
        std::mem::take(&mut self.taken)
    }
}
