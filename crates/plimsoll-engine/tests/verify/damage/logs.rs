//! A damaged log of a database that was cut off in the middle of its work.
//!
//! Log is never skipped: damage with anything readable behind it that was written later is refused.
//! Where nothing written later can be read the log looks as if it had ended there, however much is
//! gone. That is not noticed, and what is left is a run of commits without a gap.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::framing::{Framing, UnitState};
use plimsoll_io::{Clock, Loss, MemoryDisk, MemoryOptions, Random};

use crate::damage::{Fate, Table};
use crate::seeds::seeds;
use crate::support::*;

/// What a power cut left, and what had been done by then.
pub struct Stop {
    pub disk: Rc<MemoryDisk>,
    pub field: Field,
    pub ledger: Ledger,
}

/// A database that was cut off with several generations to redo, all of them acknowledged.
///
/// With few frames pages are written to the file all the time, so that it holds what only the last
/// flushes of the log explain.
pub fn cut_off(cache_frames: u64) -> Stop {
    let disk = new_disk(&Rc::new(Clock::simulated()), 3, MemoryOptions::default());
    let (field, ledger) = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let setup = Setup { checkpoint_generations: 2, cache_frames, ..Setup::default() };
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 4).await.unwrap();
        let field = create_field(&instance, &setup, 600, 700).await.unwrap();
        let ledger = RefCell::default();
        let mut random = Random::from_seed(4);
        let weights = Weights { lazy: 0.0, ..Weights::swarm(&mut random) };
        let mut serial = 0;
        // The last generation is to have many flushes.
        while instance.store().log.tip() < Lsn::new(6, 300_000) {
            let done =
                one_transaction(&instance, &field, &weights, serial, &mut random, &ledger).await;
            done.unwrap();
            serial += 1;
            if serial % 50 == 0 {
                instance.checkpoint().await.unwrap();
            }
        }
        (field, ledger.into_inner())
    })
    .unwrap();
    let disk = disk.crash_image(Loss::Everything, &mut Random::from_seed(4));
    Stop { disk, field, ledger }
}

/// Recovers and compares; where redo started and how many commits survived, or why it was refused.
pub fn recovered(
    disk: &Rc<MemoryDisk>,
    field: &Field,
    ledger: &Ledger,
) -> Result<(Lsn, usize), EngineError> {
    let (field, ledger) = (field.clone(), ledger.clone());
    run_on(&disk.clock().clone(), disk, move |files, handle| async move {
        let (instance, report) = open(&files, &handle, &Setup::default(), 5).await?;
        let survived = audit(&instance, &field, &ledger).await.unwrap();
        instance.close().await.unwrap();
        Ok((report.started_at, survived))
    })
    .unwrap()
}

/// The units of a log file behind its header, blank ones left out: number, and the flush that wrote
/// it, if it is whole.
fn units(bytes: &[u8], generation: u32) -> Vec<(u32, Option<u32>)> {
    let framing = Framing::Sectors512;
    let units = bytes.chunks_exact(framing.unit_bytes()).enumerate();
    let behind_header = units.skip(framing.first_unit() as usize);
    let judged = behind_header
        .map(|(index, unit)| (index as u32, framing.decode(unit, generation, index as u32)));
    judged
        .filter_map(|(index, state)| match state {
            UnitState::Blank => None,
            UnitState::Bad => Some((index, None)),
            UnitState::Good { flush, .. } => Some((index, Some(flush))),
        })
        .collect()
}

/// What damage to the last generation must come to: this says nothing about how the engine finds
/// out.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing that was written is damaged.
    Untouched,
    /// A flush can be read behind the damage that began only after another one had been
    /// acknowledged there: log is missing.
    Provable,
    /// Whatever can be read may have been under way at once; so many flushes are gone.
    Unprovable(u32),
}

fn verdict(sound: &[u8], damaged: &[u8], generation: u32, flush_before: u32) -> Verdict {
    let (before, after) = (units(sound, generation), units(damaged, generation));
    let readable = |unit: &(u32, Option<u32>)| after.contains(unit);
    let Some(first_lost) = before.iter().position(|unit| !readable(unit)) else {
        return Verdict::Untouched;
    };
    let last_kept = before[..first_lost].iter().filter_map(|(_, flush)| *flush).max();
    let last_kept = last_kept.unwrap_or(flush_before);
    let behind = after.iter().filter(|(index, _)| *index > before[first_lost].0);
    let last_behind = behind.filter_map(|(_, flush)| *flush).max().unwrap_or(0);
    if last_behind > last_kept + 1 {
        return Verdict::Provable;
    }
    let last = before.iter().filter_map(|(_, flush)| *flush).max();
    Verdict::Unprovable(last.unwrap_or(flush_before) - last_kept)
}

/// The generation of a log file and the last flush before it, from its header.
fn header_of(bytes: &[u8]) -> (u32, u32) {
    let header = plimsoll_engine::log::header::GenerationHeader::decode(&bytes[..4096]).unwrap();
    (header.generation, header.flush)
}

fn damage_log(bytes: &mut [u8], random: &mut Random) -> &'static str {
    let used =
        units(bytes, header_of(bytes).0).last().map_or(8, |(index, _)| *index as usize + 1) * 512;
    // Behind the end there is nothing to be damaged, so most damages are before it; some are near
    // it.
    let at = match random.below(8) {
        0 => random.below(bytes.len() as u64) as usize,
        1 | 2 => used - 1 - random.below(used.min(8_192) as u64) as usize,
        _ => random.below(used as u64) as usize,
    };
    let sector = at / 512 * 512;
    match random.below(5) {
        0 | 1 => {
            bytes[at] ^= 1 << random.below(8);
            "one flipped bit in a log"
        }
        2 => {
            let end = (at + 512 * (1 + random.below(16) as usize)).min(bytes.len());
            bytes[at..end].fill(0);
            "a zeroed stretch of a log"
        }
        3 => {
            random.fill(&mut bytes[sector..sector + 512]);
            "a sector of garbage in a log"
        }
        _ => {
            bytes[sector..].fill(0);
            "a log that is zero from a sector on"
        }
    }
}

/// The right error for damage to a file, naming the file.
fn is_right(error: &EngineError, damaged: &Path) -> bool {
    matches!(error, EngineError::LogCorrupt { path, .. } if path.file_name() == damaged.file_name())
}

/// Damage in a log is refused, or it is in what nobody needs, or it cannot be told from a write
/// that was under way: then it is at the very end, and what is there is a run of commits without a
/// gap.
fn campaign(cache_frames: u64, first: u64, count: u64) {
    let Stop { disk, field, ledger } = cut_off(cache_frames);
    let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "log");
    let files = disk.list_files().into_iter().map(|(path, _)| path);
    let logs: Vec<_> = files.filter(|path| is_log(path) && !path.ends_with("E00tmp.log")).collect();
    assert!(logs.len() >= 3, "{logs:?}");
    let promised = ledger.acknowledged.len();
    let books = Ledger { acknowledged: Vec::new(), ..ledger };
    let whole = disk.crash_image(Loss::Nothing, &mut Random::from_seed(1));
    let needed_from = recovered(&whole, &field, &books).unwrap().0.generation;
    let (mut table, mut flushes_lost_max, mut seed) = (Table::default(), 0, first);
    while table.total() < count {
        let mut random = Random::from_seed(seed).child("log");
        seed += 1;
        // Half of them in the last generation.
        let path = if random.chance(0.5) {
            logs.iter().find(|path| path.ends_with("E00.log")).expect("a current log")
        } else {
            &logs[random.below(logs.len() as u64) as usize]
        };
        let sound = disk.bytes(path).unwrap();
        let (generation, flush_before) = header_of(&sound);
        let mut bytes = sound.clone();
        let kind = damage_log(&mut bytes, &mut random);
        if bytes == sound {
            continue;
        }
        let damaged = disk.crash_image(Loss::Nothing, &mut random);
        damaged.load(path, &bytes);
        let is_last = path.ends_with("E00.log");
        let is_header = bytes[..4096] != sound[..4096];
        let expected = verdict(&sound, &bytes, generation, flush_before);
        let label = format!("seed {}: {kind}, {}: {expected:?}", seed - 1, path.display());
        let fate = match recovered(&damaged, &field, &books) {
            Err(error) => {
                assert!(is_right(&error, path), "{label}: {error}");
                Fate::Refused
            }
            Ok((_, survived)) if survived >= promised => Fate::Harmless,
            Ok(_) => Fate::Missed,
        };
        let allowed: &[Fate] = match expected {
            // Also a log that nobody needs is read as far as its header.
            _ if is_header && generation >= needed_from => &[Fate::Refused],
            _ if generation < needed_from => &[Fate::Harmless, Fate::Refused],
            Verdict::Untouched => &[Fate::Harmless],
            Verdict::Provable => &[Fate::Refused],
            Verdict::Unprovable(_) if !is_last => &[Fate::Refused],
            // The flush lost may have been of a transaction that came to nothing.
            Verdict::Unprovable(flushes) => {
                flushes_lost_max = flushes_lost_max.max(flushes);
                &[Fate::Missed, Fate::Harmless]
            }
        };
        assert!(allowed.contains(&fate), "{label}: {fate:?}");
        let place = if is_last { "last generation" } else { "before it" };
        table.note(kind, fate, place);
    }
    table.print("logs");
    println!("  up to {flushes_lost_max} flushes at the end gone without a word");
    assert!(table.count("one flipped bit in a log", Fate::Refused) > 0);
    assert!(table.count("a log that is zero from a sector on", Fate::Missed) > 0);
    assert!(flushes_lost_max > 1);
}

#[test]
fn a_damaged_log_is_refused_or_ends_early_and_never_has_a_hole() {
    campaign(96, 0, seeds(30));
    campaign(64, 500_000, seeds(30));
}

#[test]
#[ignore = "slow: 6,000 damages; `make slow`, `make damage`"]
fn thousands_of_damaged_logs_have_no_hole() {
    campaign(96, 1_000_000, 3_000);
    campaign(64, 2_000_000, 3_000);
}
