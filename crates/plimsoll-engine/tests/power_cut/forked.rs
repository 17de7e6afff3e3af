//! A world whose rounds are cut at many moments (`moments.rs`): what would be found at each is taken as an image, each image is recovered and audited
//! by itself with what had been promised by then, and the world goes on from the last. Recoveries are cut in the same way, and recoveries from that.
//! One run of the sessions serves many cuts, which is what makes a million of them affordable.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_io::{AfterLook, Random};

use crate::Tally;
use crate::coverage::{count, to_be_redone};
use crate::moments::{Moment, Pace, Promises, SharedWatch, Watch};
use crate::support::*;
use crate::tables;
use crate::world::{Kind, World, begin};

/// How often one cut recovery may follow the other.
const RECOVERIES_MAX: u32 = 3;

/// Runs a world; adds what it met to `tally`.
pub fn run(seed: u64, rounds: u64, tally: &mut Tally) {
    let (mut world, mut random) = begin(seed);
    for round in 0..rounds {
        let moments = world.moments_of(round, &mut random);
        world.count_time(tally);
        let mut next = None;
        for moment in moments {
            let (mut found, met) = world.found_at(&moment);
            world.shape = found.shape.clone();
            found.settle(met, 0, &mut random, tally);
            next = Some(found);
        }
        world = next.expect("a round ends with a cut");
    }
}

impl World {
    /// Runs sessions on the disk until the power fails for good or their work is done; the moments at which it failed. The world goes on from the last.
    fn moments_of(&self, round: u64, random: &mut Random) -> Vec<Moment> {
        let pace = match self.kind {
            Kind::Deep => Pace {
                aimed: 0.25,
                events: 2_000,
                gap_ns: 400_000_000,
                moments: 10,
                after_last: AfterLook::Cut,
            },
            _ => Pace {
                aimed: 0.5,
                events: 600,
                gap_ns: 300_000_000,
                moments: 10,
                after_last: AfterLook::Cut,
            },
        };
        let watch = Watch::begin(&self.disk, pace, self.promises(), random);
        self.work(round);
        if !self.disk.is_off() {
            watch.borrow_mut().take(&self.disk);
            self.disk.power_cut();
        }
        watch.borrow_mut().end()
    }

    /// What has been promised so far.
    fn promises(&self) -> impl Fn() -> Promises + use<> {
        let (ground, ledger) = (self.ground.clone(), self.ledger.clone());
        move || Promises {
            ground: ground.borrow().clone(),
            committed: ledger.borrow().committed.len(),
            acknowledged: ledger.borrow().acknowledged.len(),
        }
    }

    /// The world as it is found at a moment, and what the cut met.
    fn found_at(&self, moment: &Moment) -> (World, BTreeSet<&'static str>) {
        let (ledger, promises) = (self.ledger.borrow(), &moment.promises);
        let ledger = Ledger {
            committed: ledger.committed[..promises.committed].to_vec(),
            acknowledged: ledger.acknowledged[..promises.acknowledged].to_vec(),
            ..Ledger::default()
        };
        let ground = promises.ground.as_ref();
        let roots = ground.map_or(Vec::new(), |ground| ground.long_values.clone());
        let mut shape = self.shape.clone();
        let mut met = moment.under_way.clone();
        met.extend(to_be_redone(&moment.image, &mut shape, &roots));
        let found = World {
            seed: self.seed,
            kind: self.kind,
            setup: self.setup.clone(),
            disk: moment.image.clone(),
            ground: Rc::new(RefCell::new(promises.ground.clone())),
            ledger: Rc::new(RefCell::new(ledger)),
            shape,
            kept: self.kept.clone(),
            since_ns: moment.image.clock().now(),
        };
        (found, met)
    }

    /// Recovers what was found after a cut and compares. The recovery itself may be cut; what is found then is settled in the same way.
    fn settle(&mut self, met: BTreeSet<&'static str>, depth: u32, random: &mut Random, tally: &mut Tally) {
        count(&mut tally.coverage, met);
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
            Watch::begin(&self.disk, pace, self.promises(), random)
        });
        let looks_closely = self.kind == Kind::Tables && random.chance(0.15);
        let survived = self.recover_and_compare(watch.clone(), looks_closely);
        self.count_time(tally);
        for moment in watch.map_or(Vec::new(), |watch| watch.borrow_mut().end()) {
            let (mut found, mut met) = self.found_at(&moment);
            met.insert("recovery");
            found.settle(met, depth + 1, random, tally);
        }
        let mut books = self.ledger.borrow_mut();
        tally.commits_kept += survived.saturating_sub(self.kept.get()) as u64;
        tally.commits_lost += (books.committed.len() - survived) as u64;
        books.committed.truncate(survived);
        drop(books);
        self.kept.set(survived);
    }

    fn count_time(&mut self, tally: &mut Tally) {
        let now = self.disk.clock().now();
        tally.simulated_ns += now - self.since_ns;
        self.since_ns = now;
    }

    /// Opens, audits and closes; how many commits are there. Moments are taken only until the databases are open.
    fn recover_and_compare(&self, watch: Option<SharedWatch>, looks_closely: bool) -> usize {
        let (setup, seed) = (self.setup.clone(), self.seed);
        let ground = self.ground.borrow().clone();
        let (books, has_table) = (self.ledger.clone(), self.kind == Kind::Tables);
        let survived = run_on(
            &self.disk.clock().clone(),
            &self.disk,
            move |files, handle| async move {
                let opened = open(&files, &handle, &setup, seed + 77).await;
                if let Some(watch) = watch {
                    watch.borrow_mut().stop();
                }
                let (instance, _) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                let mut survived = 0;
                if let Some(ground) = ground {
                    // Lent to the audit; nobody takes moments any more.
                    let lent = books.take();
                    survived = audit(&instance, &ground.field, &lent).await.unwrap();
                    if has_table {
                        tables::audit(&instance, &lent, survived).await;
                    }
                    books.replace(lent);
                }
                instance.close().await.unwrap();
                if looks_closely {
                    tables::check_files(&files, &handle, seed).await;
                }
                survived
            },
        );
        survived.unwrap_or_else(|_| panic!("seed {seed}: recovery hangs", seed = self.seed))
    }
}
