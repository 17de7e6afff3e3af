//! Carries out a script on a disk in memory and judges what is left of it after every round.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::verify::{FileVerdict, VerifyOptions, verify};
use plimsoll_io::{
    Clock, DiskErrorKind, Effect, FaultRule, Files, Handle, Latency, LatencyPlan, Loss, MemoryDisk,
    MemoryOptions, NANOS_PER_SECOND, OperationKind, Random, Stage, TraceEntry, either,
};

use crate::hard_times::judge::{Allowed, Met, examine, look, note, note_error};
use crate::hard_times::script::{Part, SESSIONS, Script};
use crate::support::*;

/// What a swarm has to meet for its promises to mean anything, beside the effects of the disk.
pub const FATES: [&str; 10] = [
    "databases refused",
    "kills before a cut",
    "power cuts",
    "power cuts without page images",
    "recoveries cut",
    "refused: damaged page",
    "refused: error of the disk",
    "refused: the flush map knows of a lost write",
    "rounds with a clean stop",
    "rows compared",
];

/// What a failing operation says, each by itself: one of them met must not stand for all.
pub const FAILURES: [&str; 4] =
    ["failed: device gone", "failed: disk full", "failed: medium", "failed: no room to grow"];

/// Operations remembered by a disk: all of a round.
const TRACED: usize = 1 << 16;

/// What does harm to what is stored, or returns something else.
const DAMAGES: [&str; 7] = [
    "flip_on_read",
    "flip_stored",
    "lose_sector",
    "lose_write",
    "misdirect_to_other_file",
    "misdirect_within_file",
    "tear_write",
];

/// A storage that hangs is not waited for longer.
const HANGING_NS: u64 = 60 * NANOS_PER_SECOND;

struct World<'s> {
    script: &'s Script,
    disk: Rc<MemoryDisk>,
    field: Field,
    ledger: Rc<RefCell<Ledger>>,
    allowed: Allowed,
    has_crashed: bool,
    met: Met,
}

/// Runs a script; how often it met what. Panics when a promise is broken.
pub fn run(script: &Script) -> BTreeMap<&'static str, u64> {
    let mut world = begin(script);
    for round in 0..script.rounds() {
        world.work(round);
        world.cut_recovery(round);
        if !world.judge(round) {
            break;
        }
    }
    world.met.take()
}

fn begin(script: &Script) -> World<'_> {
    let page_bytes = script.setup.size.bytes() as u32;
    let pages_may_tear = script.setup.page_images;
    let ram = MemoryOptions::default();
    let memory = MemoryOptions {
        atomic_write_bytes: if pages_may_tear { ram.atomic_write_bytes } else { page_bytes },
        latency: LatencyPlan::of(Latency::Exponential { fixed_ns: 20_000, mean_ns: 200_000 }),
        trace_operations: TRACED,
        ..ram
    };
    let disk = new_disk(&Rc::new(Clock::simulated()), script.seed, memory);
    let setup = script.setup.clone();
    let field = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let row_bytes_max = setup.size.bytes() as u64 / 6;
        let field = create_field(&instance, &setup, 700, row_bytes_max).await.unwrap();
        instance.close().await.unwrap();
        field
    });
    World {
        script,
        disk,
        field: field.unwrap(),
        ledger: Rc::default(),
        allowed: Allowed::default(),
        has_crashed: false,
        met: Met::default(),
    }
}

impl World<'_> {
    fn random(&self, what: &str, round: u64) -> Random {
        Random::from_seed(self.script.seed).child(&format!("{what} {round}"))
    }

    /// Opens, works and stops, on storage that goes wrong, until the power fails or all is done.
    fn work(&mut self, round: u64) {
        let rules: Vec<&FaultRule> = self.script.rules(round).collect();
        rules.iter().for_each(|rule| self.disk.inject((*rule).clone()));
        if rules.iter().any(|rule| rule.effect == Effect::Hang) {
            self.disk.power_cut_at(self.disk.clock().now() + HANGING_NS);
        }
        let cut = self.script.parts.iter().find_map(|part| match part {
            Part::Cut { round: of, events } if *of == round => Some(*events),
            _ => None,
        });
        if let Some(events) = cut {
            self.disk.power_cut_at_event(self.disk.events() + events);
        }
        // What goes wrong now may be met now, so it is allowed from here on.
        rules.iter().for_each(|rule| self.allow(rule));
        let closed = Rc::new(Cell::new(false));
        let (setup, seed, done) =
            (self.script.setup.clone(), self.script.seed ^ round, closed.clone());
        let working = self.sessions(round);
        let killed_after_ns = self.script.parts.iter().find_map(|part| match part {
            Part::Kill { round: of, after_ns } if *of == round => Some(*after_ns),
            _ => None,
        });
        let dying = self.disk.clone();
        run_until_power_lost(&self.disk, move |files, handle| async move {
            let life = async {
                match open(&files, &handle, &setup, seed).await {
                    Ok((instance, _)) => {
                        working.run(&instance, &handle).await;
                        done.set(cut.is_none() && instance.close().await.is_ok());
                    }
                    Err(error) => note_error(&working.met, &error),
                }
            };
            match killed_after_ns {
                None => life.await,
                Some(after_ns) => {
                    either(life, handle.sleep(after_ns)).await;
                    dying.process_died();
                }
            }
        });
        if killed_after_ns.is_some() && !closed.get() && !self.disk.is_off() {
            self.live_on();
        }
        for (name, count) in self.disk.injected() {
            note(&self.met, name, count);
        }
        for name in self.disk.trace().iter().filter_map(failure_of) {
            note(&self.met, name, 1);
        }
        let loss = if closed.get() {
            note(&self.met, "rounds with a clean stop", 1);
            Loss::Nothing
        } else {
            note(&self.met, "power cuts", 1);
            if !self.script.setup.page_images {
                note(&self.met, "power cuts without page images", 1);
            }
            self.has_crashed = true;
            Loss::Drawn
        };
        self.take_over(loss, &mut self.random("loss", round));
    }

    /// What the next process does with what a dead one has left: it opens the databases, moves its
    /// checkpoint, and does nothing else until the power fails.
    fn live_on(&self) {
        let (setup, met) = (self.script.setup.clone(), self.met.clone());
        run_until_power_lost(&self.disk, move |files, handle| async move {
            // What the dead one had asked for is carried out, and its files are closed.
            handle.sleep(NANOS_PER_SECOND).await;
            let moved = match open(&files, &handle, &setup, 5).await {
                Ok((instance, _)) => instance.checkpoint().await,
                Err(error) => Err(error),
            };
            match moved {
                Ok(()) => note(&met, "kills before a cut", 1),
                Err(error) => note_error(&met, &error),
            }
        });
    }

    /// Cuts the power, and goes on with the disk that is found.
    fn take_over(&mut self, loss: Loss, random: &mut Random) {
        self.disk.power_cut();
        self.disk = self.disk.crash_image(loss, random);
    }

    /// What a fault may lead to, from now on.
    fn allow(&mut self, rule: &FaultRule) {
        if !DAMAGES.contains(&rule.effect.name()) {
            return;
        }
        let touches = |part: &str| rule.filter.path_part.as_deref() == Some(part);
        let anywhere = rule.effect == Effect::MisdirectToOtherFile;
        self.allowed.refusals = true;
        self.allowed.early_end |= touches(".log") || anywhere;
        self.allowed.stale |= touches(".jfm") || anywhere;
    }

    fn sessions(&self, round: u64) -> Sessions {
        let of = |session: u64| {
            let is_its = move |part: &&Part| match part {
                Part::Transaction { round: of, session: by, .. }
                | Part::Look { round: of, session: by, .. }
                | Part::Checkpoint { round: of, session: by } => (*of, *by) == (round, session),
                _ => false,
            };
            self.script.parts.iter().filter(is_its).cloned().collect()
        };
        Sessions {
            seed: self.script.seed,
            steps: (0..SESSIONS).map(of).collect(),
            field: self.field.clone(),
            ledger: self.ledger.clone(),
            allowed: self.allowed,
            met: self.met.clone(),
            is_unsure: Rc::default(),
        }
    }

    /// The power fails again while the databases are recovered, now on storage that does what it
    /// should.
    fn cut_recovery(&mut self, round: u64) {
        let cut = self.script.parts.iter().find_map(|part| match part {
            Part::RecoveryCut { round: of, events } if *of == round => Some(*events),
            _ => None,
        });
        let Some(events) = cut else { return };
        self.disk.power_cut_at_event(self.disk.events() + events);
        let setup = self.script.setup.clone();
        let ended = Rc::new(Cell::new(false));
        let done = ended.clone();
        run_until_power_lost(&self.disk, move |files, handle| async move {
            let opened = open(&files, &handle, &setup, 3).await;
            done.set(true);
            drop(opened);
        });
        // It may have been done with before the cut came, or may have been refused.
        let name =
            if ended.get() { "recoveries that ended before their cut" } else { "recoveries cut" };
        note(&self.met, name, 1);
        self.has_crashed = true;
        self.take_over(Loss::Drawn, &mut self.random("loss in recovery", round));
    }

    /// Opens on storage that does what it should, and compares everything; whether the world can go
    /// on.
    fn judge(&mut self, round: u64) -> bool {
        let (setup, field, allowed, met) =
            (self.script.setup.clone(), self.field.clone(), self.allowed, self.met.clone());
        let ledger = self.ledger.borrow().clone();
        let where_ = format!("seed {} round {round}", self.script.seed);
        let label = where_.clone();
        let judging = move |files: Files, handle: Handle| async move {
            let instance = match open(&files, &handle, &setup, 77).await {
                Ok((instance, _)) => instance,
                Err(error) => {
                    assert!(allowed.refusals, "{label}: sound databases are refused: {error}");
                    note(&met, "databases refused", 1);
                    note_error(&met, &error);
                    return None;
                }
            };
            if !allowed.refusals {
                audit(&instance, &field, &ledger).await.unwrap();
            }
            let survived = examine(&instance, &field, &ledger, allowed, &met).await;
            let closed = instance.close().await;
            assert!(allowed.refusals || closed.is_ok(), "{label}: {closed:?}");
            if !allowed.refusals {
                expect_sound(&files, &handle, &setup, &label).await;
            }
            survived.filter(|_| closed.is_ok())
        };
        let judged = run_on(&self.disk.clock().clone(), &self.disk, judging);
        let judged = judged.unwrap_or_else(|_| panic!("{where_}: recovery hangs"));
        if let Some(survived) = judged {
            let mut ledger = self.ledger.borrow_mut();
            ledger.committed.truncate(survived);
            let kept: Vec<u64> = ledger.committed.iter().map(|(serial, _)| *serial).collect();
            ledger.acknowledged.retain(|serial| kept.contains(serial));
        }
        judged.is_some()
    }
}

/// What an operation said that was made to fail.
fn failure_of(entry: &TraceEntry) -> Option<&'static str> {
    let Stage::Failed(error) = entry.stage else {
        return None;
    };
    entry.effect.filter(|effect| effect.starts_with("fail"))?;
    Some(match (error, entry.kind) {
        (DiskErrorKind::Full, OperationKind::Extend) => "failed: no room to grow",
        (DiskErrorKind::Full, _) => "failed: disk full",
        (DiskErrorKind::Medium, _) => "failed: medium",
        (DiskErrorKind::Gone, _) => "failed: device gone",
        _ => "failed: something else",
    })
}

/// Nobody is accused of damage where none was done.
async fn expect_sound(files: &Files, handle: &Handle, setup: &Setup, label: &str) {
    let paths: Vec<_> = (1..=setup.databases).map(database_path).collect();
    let report = verify(files, handle, &paths, &VerifyOptions::default()).await;
    for file in &report.files {
        assert_eq!(file.verdict, FileVerdict::Sound, "{label}: {}", file.path.display());
    }
}

/// The sessions of a round.
struct Sessions {
    seed: u64,
    steps: Vec<Vec<Part>>,
    field: Field,
    ledger: Rc<RefCell<Ledger>>,
    allowed: Allowed,
    met: Met,
    /// A commit has failed: whether it counts is decided by recovery, so nothing can be compared
    /// until then.
    is_unsure: Rc<Cell<bool>>,
}

impl Sessions {
    async fn run(&self, instance: &Rc<Instance>, handle: &Handle) {
        let mut joins = Vec::new();
        for steps in &self.steps {
            let session = Sessions {
                steps: vec![steps.clone()],
                field: self.field.clone(),
                ledger: self.ledger.clone(),
                met: self.met.clone(),
                is_unsure: self.is_unsure.clone(),
                ..*self
            };
            let instance = instance.clone();
            joins.push(handle.spawn(async move { session.run_one(&instance).await }));
        }
        for join in joins {
            join.await;
        }
    }

    async fn run_one(&self, instance: &Rc<Instance>) {
        for step in &self.steps[0] {
            let noted = self.ledger.borrow().committed.len();
            let done = self.step(instance, step).await;
            if let Err(error) = done {
                note_error(&self.met, &error);
                self.is_unsure
                    .set(self.is_unsure.get() || self.ledger.borrow().committed.len() > noted);
                if matches!(error, EngineError::Poisoned { .. }) {
                    return;
                }
            }
        }
    }

    async fn step(&self, instance: &Rc<Instance>, step: &Part) -> Result<(), EngineError> {
        let named = |round: &u64, session: &u64, number: &u64| {
            let serial = round * 1_000_000 + session * 1_000 + number;
            (serial, Random::from_seed(self.seed).child(&format!("step {serial}")))
        };
        match step {
            Part::Transaction { round, session, number } => {
                let (serial, mut random) = named(round, session, number);
                let weights = Weights {
                    insert: 6,
                    delete: 2,
                    replace: 4,
                    lazy: 0.3,
                    rollback: 0.1,
                    savepoint: 0.1,
                    operations_max: 12,
                    narrow: 0.2,
                };
                one_transaction(instance, &self.field, &weights, serial, &mut random, &self.ledger)
                    .await
            }
            Part::Look { round, session, number } if !self.is_unsure.get() => {
                let (_, mut random) = named(round, session, number);
                look(instance, &self.field, &self.ledger, &mut random, (self.allowed, &self.met))
                    .await
            }
            Part::Checkpoint { .. } => instance.checkpoint().await,
            _ => Ok(()),
        }
    }
}
