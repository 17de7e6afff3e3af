//! Damaged inputs to everything that reads what is on a disk: decoders one by one, whole databases,
//! and recovery.
//!
//! Here the inputs are those that `make fuzz` has kept, and as many again by chance. `make fuzz
//! SECONDS=n` looks for more with libFuzzer, which changes inputs so that they reach code that none
//! has reached (`fuzz/`). A failure prints the input's number, which makes it anew.

#[expect(dead_code, reason = "each test file uses its part of the golden module")]
#[path = "../golden/mod.rs"]
mod golden;
#[path = "../support/mod.rs"]
mod support;

mod damage;
mod databases;
mod decoders;
mod kept;
mod recovery;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use damage::{mutate, pick};
use databases::{Databases, catalog_rows};
use decoders::{DECODERS, Decoders, FITS};
use plimsoll_io::Random;
use recovery::Recoveries;

/// Resident memory the whole program may come to need: no other tests are in it for that.
const MEMORY_KIB_MAX: u64 = 1 << 20;

fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus");
    let inputs = kept::unpack(&folder.join(format!("{target}.gz")));
    assert!(inputs.len() > 20, "the kept inputs of {target} are not there");
    inputs
}

/// Gives every input to `take`; the number of one at which it panics is told.
fn give(inputs: impl IntoIterator<Item = Vec<u8>>, take: impl Fn(&[u8])) {
    let mut count = 0;
    for (number, input) in inputs.into_iter().enumerate() {
        let ended = catch_unwind(AssertUnwindSafe(|| take(&input)));
        assert!(
            ended.is_ok(),
            "input {number} makes it panic: {:02x?}",
            &input[..input.len().min(200)]
        );
        count = number + 1;
    }
    let memory_kib = memory_kib();
    println!("{count} inputs, {memory_kib} KiB of memory");
    assert!(memory_kib < MEMORY_KIB_MAX, "{memory_kib} KiB of memory were needed");
}

/// The most memory this process has needed, where the system tells.
#[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[test]
fn decoders_survive_what_was_kept() {
    let decoders = Decoders::new();
    give(kept("decoders"), |input| decoders.take(input));
}

#[test]
fn decoders_survive_damage_by_chance() {
    let (decoders, rows) = (Decoders::new(), catalog_rows());
    let sound = decoders.sound(&rows);
    let by_decoder: Vec<Vec<&Vec<u8>>> = (0..DECODERS)
        .map(|decoder| sound.iter().filter(|input| input[0] == decoder).collect())
        .collect();
    let inputs = (0..40_000).map(|seed| {
        let mut random = Random::from_seed(seed).child("decoders");
        let of_one = pick(&by_decoder, &mut random);
        let mut input: Vec<u8> = (*pick(of_one, &mut random)).clone();
        mutate(&mut input[2..], &mut random);
        input[1] ^= if random.chance(0.5) { FITS } else { 0 };
        if random.chance(0.2) {
            input.truncate(2 + random.below(input.len() as u64 - 1) as usize);
        }
        input
    });
    give(inputs, |input| decoders.take(input));
}

#[test]
fn databases_survive_what_was_kept() {
    let databases = Databases::new();
    give(kept("databases").into_iter().step_by(5), |input| databases.take(input));
}

#[test]
fn databases_survive_damage_by_chance() {
    let databases = Databases::new();
    give(databases.sound().into_iter().take(40), |input| databases.take(input));
}

#[test]
fn recovery_survives_what_was_kept() {
    let recoveries = Recoveries::new();
    give(kept("recovery"), |input| recoveries.take(input));
}

#[test]
fn recovery_survives_damage_by_chance() {
    let recoveries = Recoveries::new();
    let sound = recoveries.sound();
    let inputs = (0..300).map(|seed| {
        let mut random = Random::from_seed(seed).child("recovery");
        let mut input = pick(&sound, &mut random).clone();
        mutate(&mut input, &mut random);
        input
    });
    give(inputs, |input| recoveries.take(input));
}

/// Each of these was a panic once, or a change that was not meant.
#[test]
fn recovery_names_the_page_that_the_log_does_not_fit() {
    let recoveries = Recoveries::new();
    let mut told: BTreeMap<&str, u64> = BTreeMap::new();
    for (wanted, input) in recoveries.misfits() {
        let error = recoveries.recover(&input).expect_err("nothing fits here");
        assert!(error.to_string().contains(wanted), "{error}, and not {wanted}");
        *told.entry(wanted).or_default() += 1;
    }
    println!("{told:?}");
    assert_eq!(told.len(), 4, "some kind of misfit never came up");
}
