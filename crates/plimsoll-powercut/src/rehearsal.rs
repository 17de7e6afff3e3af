//! The same work on a disk in memory that keeps or breaks a promise of our choice, with a power cut
//! in virtual time.
//!
//! It shows what an audit says of storage that lies, without any storage that does, and needs no
//! rights and no time.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::channel;

use plimsoll_io::{
    Clock, Disk, Effect, Executor, FaultRule, Files, Loss, MemoryDisk, MemoryOptions,
    NANOS_PER_MILLISECOND, OperationKind, Random, StopSignal, either,
};
use serde::{Deserialize, Serialize};

use crate::error::PowercutError;
use crate::spec::PowercutSpec;
use crate::survey::{Survey, survey};
use crate::witness::{Acknowledged, Witness};
use crate::work::work;

/// Room for the directory names.
const DIRECTORY: &str = "/rehearsal";
/// Everything is made by then; the lies begin.
const LIES_BEGIN_MS: u64 = 150;
/// Share of the writes that a reordering disk forgets for good, though later ones are kept.
const FORGOTTEN_SHARE: f64 = 0.01;

/// What the disk does with its promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// Keeps them: what was flushed is there, blocks of 4 KiB are whole.
    Honest,
    /// Says that it has flushed and has not.
    DropsFlushes,
    /// Writes 4 KiB in pieces of 512 bytes.
    Tears,
    /// Forgets writes that were flushed and keeps later ones.
    Reorders,
}

/// What to rehearse.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RehearsalSpec {
    /// The disk.
    pub behaviour: Behaviour,
    /// Decides everything left to chance.
    pub seed: u64,
    /// Virtual time from the first lie to the cut.
    pub milliseconds: u64,
    /// The work; its directory is replaced.
    pub work: PowercutSpec,
}

/// What the witness heard and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Rehearsal {
    /// In the order of acknowledgement.
    pub acknowledged: Vec<Acknowledged>,
    /// After the cut.
    pub survey: Survey,
}

/// Works until the cut, then looks at what is left.
///
/// # Errors
/// A spec that cannot be carried out, or work that ended before the cut.
pub fn rehearse(mut spec: RehearsalSpec) -> Result<Rehearsal, PowercutError> {
    spec.work.directory = PathBuf::from(DIRECTORY);
    spec.work.check()?;
    let mut random = Random::from_seed(spec.seed).child("rehearsal");
    let disk = lying_disk(&spec);
    let acknowledged = work_until_cut(&disk, &spec.work)?;
    let found = disk.crash_image(loss_of(spec.behaviour), &mut random);
    let executor = Executor::new(found.clock().clone(), found.clone());
    let files = Files::new(found);
    let survey = executor.run(survey(files, executor.handle(), spec.work))?;
    Ok(Rehearsal { acknowledged, survey })
}

fn lying_disk(spec: &RehearsalSpec) -> Rc<MemoryDisk> {
    let atomic_write_bytes = match spec.behaviour {
        Behaviour::Tears => 512,
        _ => 4096,
    };
    let options = MemoryOptions { atomic_write_bytes, ..MemoryOptions::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock, Random::from_seed(spec.seed).child("disk"), options);
    disk.create_directory(DIRECTORY);
    let lies = LIES_BEGIN_MS * NANOS_PER_MILLISECOND;
    let cut = lies + spec.milliseconds * NANOS_PER_MILLISECOND;
    match spec.behaviour {
        Behaviour::DropsFlushes => disk.inject(FaultRule::new(Effect::SkipSync).between(lies, cut)),
        Behaviour::Reorders => disk.inject(
            FaultRule::new(Effect::LoseWrite)
                .with_kind(OperationKind::Write)
                .with_probability(FORGOTTEN_SHARE)
                .between(lies, cut),
        ),
        Behaviour::Honest | Behaviour::Tears => {}
    }
    disk.power_cut_at(cut);
    disk
}

fn loss_of(behaviour: Behaviour) -> Loss {
    match behaviour {
        Behaviour::Honest => Loss::Drawn,
        Behaviour::DropsFlushes => Loss::Everything,
        Behaviour::Tears => Loss::Chance { survival: 1.0, tearing: 1.0 },
        Behaviour::Reorders => Loss::Nothing,
    }
}

fn work_until_cut(
    disk: &Rc<MemoryDisk>,
    spec: &PowercutSpec,
) -> Result<Vec<Acknowledged>, PowercutError> {
    let (sender, acknowledged) = channel();
    let witness = Witness {
        acknowledged: sender,
        // This witness hears everything at once.
        confirmed: Arc::new(AtomicU64::new(u64::MAX)),
    };
    let seen: Rc<dyn Disk> = disk.clone();
    let executor = Executor::new(disk.clock().clone(), seen.clone());
    let handle = executor.handle();
    let (power, spec) = (disk.clone(), spec.clone());
    let ended = Rc::new(std::cell::RefCell::new(None));
    let noted = ended.clone();
    executor.run(async move {
        let working = async move {
            let result = work(Files::new(seen), handle, spec, witness, StopSignal::default()).await;
            noted.replace(Some(result));
        };
        either(working, async move { power.power_lost().await }).await;
    })?;
    match ended.take() {
        Some(Err(error)) => Err(error),
        Some(Ok(_)) => Err(PowercutError::Spec(
            "the work ended before the power was cut; leave seconds out".into(),
        )),
        None => Ok(acknowledged.try_iter().collect()),
    }
}
