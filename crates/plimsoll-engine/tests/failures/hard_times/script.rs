//! What a world does, as a list: transactions and looks of sessions, checkpoints, faults of the
//! storage, and how each round ends. Leaving out a part changes no other part, because what a part
//! does follows from the seed and the part alone.

use plimsoll_engine::PageSize;
use plimsoll_engine::log::framing::Framing;
use plimsoll_io::{DiskErrorKind, Effect, FaultRule, OperationKind, Purpose, Random};

use crate::support::Setup;

pub const SESSIONS: u64 = 3;
const ROUNDS: u64 = 3;
/// Transactions, looks and checkpoints of a session in a round.
const STEPS: u64 = 36;
/// A page of which a multiple of three writes was lost cannot be told from one of which none was.
const LOST_WRITES_MAX: u64 = 2;

/// The share of rounds in which a process is killed, and how long it lives at most.
const KILLED: f64 = 0.3;
const LIFE_NS_MAX: u64 = 300_000_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A transaction of a session.
    Transaction { round: u64, session: u64, number: u64 },
    /// A session reads rows and compares them with what was committed.
    Look { round: u64, session: u64, number: u64 },
    /// A session asks for a checkpoint.
    Checkpoint { round: u64, session: u64 },
    /// The storage goes wrong while the databases are opened and worked on.
    Fault { round: u64, rule: FaultRule },
    /// The power is cut after so many events of a round, or when its work is done. Rounds without
    /// it end with a clean stop.
    Cut { round: u64, events: u64 },
    /// The process dies after so long, and another opens the databases and moves its checkpoint;
    /// then the power is cut.
    Kill { round: u64, after_ns: u64 },
    /// The power is cut again after so many events of the recovery.
    RecoveryCut { round: u64, events: u64 },
}

#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub setup: Setup,
    pub parts: Vec<Part>,
}

/// What a world's storage is bad at; each world draws some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    Slow,
    Hanging,
    Failing,
    Full,
    Forgetful,
    Misplacing,
    Flipping,
    LosingSectors,
    Log,
    SideFiles,
}

const ALL: [Bad; 10] = [
    Bad::Slow,
    Bad::Hanging,
    Bad::Failing,
    Bad::Full,
    Bad::Forgetful,
    Bad::Misplacing,
    Bad::Flipping,
    Bad::LosingSectors,
    Bad::Log,
    Bad::SideFiles,
];

/// The share of worlds without page images, as most plans are. They get a disk that writes whole
/// pages: nothing less is promised there.
const WITHOUT_IMAGES: f64 = 0.25;

impl Script {
    pub fn drawn(seed: u64) -> Script {
        let mut random = Random::from_seed(seed).child("script");
        let setup = Setup {
            size: [PageSize::KIB_4, PageSize::KIB_4, PageSize::KIB_8][random.below(3) as usize],
            framing: [Framing::Sectors512, Framing::Segments4096][random.below(2) as usize],
            cache_frames: 64,
            checkpoint_generations: 1 + random.below(2),
            databases: 1 + random.below(2) as u8,
            // Drawn by itself, so that everything else about a seed stays as it is.
            page_images: !Random::from_seed(seed).child("images").chance(WITHOUT_IMAGES),
            ..Setup::default()
        };
        // One trouble for sure, in turn, so that every kind is met; others by chance.
        let mut bad = vec![ALL[(seed % ALL.len() as u64) as usize]];
        bad.extend(ALL.into_iter().filter(|_| random.chance(0.15)));
        let mut parts = Vec::new();
        for round in 0..ROUNDS {
            parts.extend(steps(round, &mut random));
            if random.chance(0.6) {
                let events = 1 + random.below(3_000);
                parts.push(Part::Cut { round, events });
            }
            if random.chance(0.3) {
                let events = 1 + random.below(200);
                parts.push(Part::RecoveryCut { round, events });
            }
        }
        parts.extend(faults(&bad, &mut random));
        parts.extend(kills(seed));
        Script { seed, setup, parts }
    }

    /// The same world with other parts.
    pub fn with(&self, parts: &[Part]) -> Script {
        Script { parts: parts.to_vec(), ..self.clone() }
    }

    /// Rounds that have anything to do.
    pub fn rounds(&self) -> u64 {
        self.parts.iter().map(Part::round).max().map_or(0, |last| last + 1)
    }

    /// The faults of a round.
    pub fn rules(&self, round: u64) -> impl Iterator<Item = &FaultRule> {
        self.parts.iter().filter_map(move |part| match part {
            Part::Fault { round: of, rule } if *of == round => Some(rule),
            _ => None,
        })
    }
}

impl Part {
    pub fn round(&self) -> u64 {
        match self {
            Part::Transaction { round, .. }
            | Part::Look { round, .. }
            | Part::Checkpoint { round, .. }
            | Part::Fault { round, .. }
            | Part::Cut { round, .. }
            | Part::Kill { round, .. }
            | Part::RecoveryCut { round, .. } => *round,
        }
    }
}

/// Drawn by themselves, so that everything else about a seed stays as it is.
fn kills(seed: u64) -> Vec<Part> {
    let mut random = Random::from_seed(seed).child("kills");
    let mut parts = Vec::new();
    for round in 0..ROUNDS {
        let after_ns = 1 + random.below(LIFE_NS_MAX);
        if random.chance(KILLED) {
            parts.push(Part::Kill { round, after_ns });
        }
    }
    parts
}

fn steps(round: u64, random: &mut Random) -> Vec<Part> {
    let mut parts = Vec::new();
    for session in 0..SESSIONS {
        for number in 0..STEPS {
            parts.push(match random.below(12) {
                0 | 1 => Part::Look { round, session, number },
                2 => Part::Checkpoint { round, session },
                _ => Part::Transaction { round, session, number },
            });
        }
    }
    parts
}

fn faults(bad: &[Bad], random: &mut Random) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lost = 0;
    for trouble in bad {
        for _ in 0..1 + random.below(3) {
            let round = random.below(ROUNDS);
            let rule = fault(*trouble, random);
            lost += u64::from(loses_writes(rule.effect));
            if lost <= LOST_WRITES_MAX || !loses_writes(rule.effect) {
                parts.push(Part::Fault { round, rule });
            }
            // More flips of one page than two may look like one.
            if *trouble == Bad::Flipping {
                break;
            }
        }
    }
    parts
}

fn loses_writes(effect: Effect) -> bool {
    use Effect::{LoseWrite, MisdirectToOtherFile, MisdirectWithinFile};
    matches!(effect, LoseWrite | MisdirectWithinFile | MisdirectToOtherFile)
}

fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

fn fault(trouble: Bad, random: &mut Random) -> FaultRule {
    let page_write = |effect| FaultRule::new(effect).with_purpose(Purpose::DatabaseWrite);
    let any_error = [DiskErrorKind::Medium, DiskErrorKind::Full, DiskErrorKind::Gone];
    let nth = 1 + random.below(40);
    match trouble {
        Bad::Slow => {
            let effect = one_of(random, &[Effect::Slow(100), Effect::Delay(2_000_000_000)]);
            FaultRule { skip: nth, limit: 1 + random.below(200), ..FaultRule::new(effect) }
        }
        Bad::Hanging => FaultRule::new(Effect::Hang).nth(nth * 20),
        Bad::Failing => {
            let kind = one_of(random, &any_error);
            let effect = one_of(random, &[Effect::Fail(kind), Effect::FailPartly(kind)]);
            let what = one_of(
                random,
                &[OperationKind::Read, OperationKind::Write, OperationKind::SyncFile],
            );
            match effect {
                Effect::FailPartly(_) => page_write(effect).nth(nth),
                _ => FaultRule::new(effect).with_kind(what).nth(nth),
            }
        }
        Bad::Full => FaultRule {
            skip: random.below(6),
            ..FaultRule::new(Effect::Fail(DiskErrorKind::Full)).with_kind(OperationKind::Extend)
        },
        Bad::Forgetful => {
            page_write(one_of(random, &[Effect::LoseWrite, Effect::TearWrite])).nth(nth)
        }
        Bad::Misplacing => {
            let effect =
                one_of(random, &[Effect::MisdirectWithinFile, Effect::MisdirectToOtherFile]);
            page_write(effect).nth(nth)
        }
        Bad::Flipping => {
            let effect = one_of(random, &[Effect::FlipOnRead, Effect::FlipStored]);
            let rule = FaultRule::new(effect).with_path_part(".edb").nth(nth);
            match effect {
                Effect::FlipOnRead => rule.with_kind(OperationKind::Read),
                _ => rule
                    .with_purpose(one_of(random, &[Purpose::DatabaseRead, Purpose::DatabaseWrite])),
            }
        }
        Bad::LosingSectors => {
            let purpose = one_of(random, &[Purpose::DatabaseRead, Purpose::DatabaseWrite]);
            FaultRule::new(Effect::LoseSector).with_purpose(purpose).nth(nth)
        }
        Bad::Log => {
            let effect = one_of(
                random,
                &[Effect::LoseWrite, Effect::TearWrite, Effect::FlipStored, Effect::LoseSector],
            );
            let rule = FaultRule::new(effect).with_path_part(".log");
            rule.with_kind(OperationKind::Write).nth(nth)
        }
        Bad::SideFiles => {
            let effect =
                one_of(random, &[Effect::TearWrite, Effect::FlipStored, Effect::LoseSector]);
            let rule = FaultRule::new(effect).with_path_part(one_of(random, &[".jfm", ".chk"]));
            rule.with_kind(OperationKind::Write).nth(1 + random.below(8))
        }
    }
}
