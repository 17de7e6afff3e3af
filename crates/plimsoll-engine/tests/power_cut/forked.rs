//! A world whose rounds are cut at many moments (`moments.rs`): what would be found at each is
//! taken as an image, each image is recovered and audited by itself with what had been promised by
//! then, and the world goes on from the last. Recoveries are cut in the same way, and recoveries
//! from that. Before a round others may have lived on the databases, and been killed or closed
//! (`lives.rs`). One run of the sessions serves many cuts, which is what makes a million of them
//! affordable.
//!
//! Every cut is recovered and every row compared with the history of the run. What comes after
//! that, a clean stop and the deep check of the files, is done for a share of the cuts and counted.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_io::{AfterLook, MemoryDisk, Random};

use crate::Tally;
use crate::coverage::{Shape, count, to_be_redone};
use crate::history::History;
use crate::lives;
use crate::moments::{Moment, Pace, Promises, SharedWatch, Watch};
use crate::sizes::Scale;
use crate::support::*;
use crate::tables;
use crate::world::{Kind, World, begin};

/// How often one cut recovery may follow the other.
const RECOVERIES_MAX: u32 = 3;
/// The share of cuts after which the databases are closed, too.
const CLOSED: f64 = 0.3;
/// The share of cuts of worlds with a table after which the closed files are deeply checked.
const CHECKED_DEEPLY: f64 = 0.15;

/// Runs a world; adds what it met to `tally`.
pub fn run(seed: u64, tally: &mut Tally) {
    let scale = if (seed / 4).is_multiple_of(10) { Scale::Large } else { Scale::Small };
    let (mut world, mut random) = begin(seed, scale);
    // What a round has logged is redone after each of its cuts: many short rounds are cheaper than
    // few long ones.
    let rounds = if scale == Scale::Large { 4 } else { 12 };
    let mut lived = BTreeSet::new();
    for number in 0..rounds {
        world.lived = lives::run(&world, number);
        lived.extend(&world.lived);
        let moments = world.moments_of(number, &mut random);
        tally.simulated_ns += world.disk.clock().now() - world.since_ns;
        let mut shape = world.shape.clone();
        let round = Round { history: Rc::new(History::of(&world.ledger.borrow())), world: &world };
        let mut last = None;
        let count = moments.len();
        for (index, moment) in moments.into_iter().enumerate() {
            let mut found = round.find(moment, &shape);
            shape = found.shape.clone();
            found.is_last = index + 1 == count;
            let survived = round.settle(&mut found, 0, &mut random, tally);
            last = Some((found, survived));
        }
        let (found, survived) = last.expect("a round ends with a cut");
        world.go_on(found, survived);
    }
    tally.note_lives(&lived);
}

impl World {
    /// Runs sessions on the disk until the power fails for good or their work is done; the moments
    /// at which it failed. The world goes on from the last.
    fn moments_of(&self, round: u64, random: &mut Random) -> Vec<Moment> {
        let (aimed, events, gap_ns, moments) = match (self.scale, self.kind) {
            (Scale::Large, Kind::Deep) => (0.25, 2_000, 400_000_000, 10),
            (Scale::Large, _) => (0.5, 600, 300_000_000, 10),
            (Scale::Small, Kind::Deep) => (0.3, 150, 80_000_000, 12),
            (Scale::Small, _) => (0.4, 80, 80_000_000, 12),
        };
        let pace = Pace { aimed, events, gap_ns, moments, after_last: AfterLook::Cut };
        let watch = Watch::begin(&self.disk, pace, self.promises(), random);
        self.work(round);
        if !self.disk.is_off() {
            watch.borrow_mut().take(&self.disk);
            self.disk.power_cut();
        }
        watch.borrow_mut().end()
    }

    /// What has been promised so far.
    pub fn promises(&self) -> impl Fn() -> Promises + use<> {
        let (ground, ledger) = (self.ground.clone(), self.ledger.clone());
        move || Promises {
            ground: ground.borrow().clone(),
            committed: ledger.borrow().committed.len(),
            acknowledged: ledger.borrow().acknowledged.len(),
        }
    }

    /// Goes on from what was found, with the commits that survived.
    fn go_on(&mut self, found: Found, survived: usize) {
        let mut ledger = self.ledger.borrow_mut();
        ledger.committed.truncate(survived);
        ledger.acknowledged.truncate(found.promises.acknowledged);
        drop(ledger);
        *self.ground.borrow_mut() = found.promises.ground;
        (self.disk, self.shape, self.since_ns) = (found.disk, found.shape, found.since_ns);
        self.kept.set(survived);
    }
}

/// What was found after a cut.
struct Found {
    disk: Rc<MemoryDisk>,
    promises: Promises,
    shape: Shape,
    met: BTreeSet<&'static str>,
    since_ns: u64,
    /// The world goes on from here, so the databases are closed.
    is_last: bool,
}

/// What the cuts of one run of the sessions have in common.
struct Round<'a> {
    world: &'a World,
    history: Rc<History>,
}

impl Round<'_> {
    /// What is found at a moment, and what the cut met.
    fn find(&self, moment: Moment, shape: &Shape) -> Found {
        let mut shape = shape.clone();
        let mut met = moment.under_way;
        let ground = moment.promises.ground.as_ref();
        let roots = ground.map_or(&[][..], |ground| &ground.long_values);
        met.extend(to_be_redone(&moment.image, &mut shape, roots));
        self.world.name(&mut met);
        Found {
            since_ns: moment.image.clock().now(),
            disk: moment.image,
            promises: moment.promises,
            shape,
            met,
            is_last: false,
        }
    }

    /// Recovers what was found after a cut and compares; how many commits are there. The recovery
    /// itself may be cut; what is found then is settled in the same way.
    fn settle(
        &self,
        found: &mut Found,
        depth: u32,
        random: &mut Random,
        tally: &mut Tally,
    ) -> usize {
        count(&mut tally.coverage, std::mem::take(&mut found.met));
        tally.cuts += 1;
        tally.cuts_in_recovery += u64::from(depth > 0);
        let watch = (depth < RECOVERIES_MAX && random.chance(0.3)).then(|| {
            let pace = Pace {
                aimed: 0.2,
                events: 1 << (3 + random.below(8)),
                gap_ns: 100_000_000,
                moments: 2,
                after_last: AfterLook::GoOn,
            };
            let promises = found.promises.clone();
            Watch::begin(&found.disk, pace, move || promises.clone(), random)
        });
        let looks_closely = self.world.kind == Kind::Tables && random.chance(CHECKED_DEEPLY);
        let closes = looks_closely || found.is_last || random.chance(CLOSED);
        let survived = self.recover_and_compare(found, watch.clone(), closes, looks_closely);
        tally.closed += u64::from(closes);
        tally.checked_deeply += u64::from(looks_closely);
        let knows_serials = self.world.only_serials(found.promises.ground.as_ref()).is_some();
        tally.space_checked += u64::from(looks_closely && knows_serials);
        let now = found.disk.clock().now();
        tally.simulated_ns += now - found.since_ns;
        found.since_ns = now;
        tally.commits_kept += survived.saturating_sub(self.world.kept.get()) as u64;
        tally.commits_lost += (found.promises.committed - survived) as u64;
        for moment in watch.map_or(Vec::new(), |watch| watch.borrow_mut().end()) {
            let mut again = self.find(moment, &found.shape);
            again.met.insert("recovery");
            self.settle(&mut again, depth + 1, random, tally);
        }
        survived
    }

    /// Opens, audits and perhaps closes; how many commits are there. Moments are taken only until
    /// the databases are open.
    fn recover_and_compare(
        &self,
        found: &Found,
        watch: Option<SharedWatch>,
        closes: bool,
        looks_closely: bool,
    ) -> usize {
        let (setup, seed) = (self.world.setup.clone(), self.world.seed);
        let (promises, history) = (found.promises.clone(), self.history.clone());
        let has_table = self.world.kind == Kind::Tables;
        let serials = self.world.only_serials(promises.ground.as_ref());
        let survived =
            run_on(&found.disk.clock().clone(), &found.disk, move |files, handle| async move {
                let opened = open(&files, &handle, &setup, seed + 77).await;
                if let Some(watch) = watch {
                    watch.borrow_mut().stop();
                }
                let (instance, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                let mut survived = 0;
                if let Some(ground) = &promises.ground {
                    survived = history.audit(&instance, &ground.field, &promises).await;
                    if has_table {
                        let (tree, rows) = tables::read(&instance).await;
                        let is_same = agree(&rows, history.rows(tree, survived));
                        assert!(
                            is_same,
                            "the rows of the table are not those of {survived} commits"
                        );
                    }
                }
                if closes {
                    instance.close().await.unwrap();
                }
                if looks_closely {
                    tables::check_files(&files, &handle, seed, serials).await;
                }
                survived
            });
        survived.unwrap_or_else(|_| panic!("seed {seed}: recovery hangs"))
    }
}
