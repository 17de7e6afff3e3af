//! A code that came back as another's would be a page of wrong content, so the packed table is
//! compared with a plain map.

use std::collections::BTreeMap;

use super::{Codes, SEGMENT_UNITS};
use crate::Random;

/// Units of four segments, so that many share one and some are the first or last of theirs.
const UNITS: u64 = 4 * SEGMENT_UNITS as u64;

type Model = BTreeMap<usize, Vec<u8>>;

fn change(codes: &mut Codes, model: &mut Model, random: &mut Random) {
    let unit = random.below(UNITS) as usize;
    let mut code = vec![0; random.below(60) as usize];
    random.fill(&mut code);
    codes.set(unit, &code);
    model.remove(&unit);
    if !code.is_empty() {
        model.insert(unit, code);
    }
}

fn check(codes: &Codes, model: &Model) {
    for unit in 0..UNITS as usize + 10 {
        assert_eq!(codes.get(unit), model.get(&unit).map(Vec::as_slice), "unit {unit}");
    }
    let stored: usize = model.values().map(Vec::len).sum();
    assert_eq!(codes.stored_bytes(), stored as u64);
}

/// Codes of all lengths come, change their length and go; each unit has the one that was set last.
#[test]
fn every_unit_has_its_latest_code() {
    let (mut codes, mut model) = (Codes::default(), Model::new());
    let mut random = Random::from_seed(31);
    for round in 0..5000 {
        change(&mut codes, &mut model, &mut random);
        if round % 500 == 0 {
            check(&codes, &model);
        }
    }
    check(&codes, &model);
    for units in [UNITS as usize - 3, 700, SEGMENT_UNITS, 0] {
        codes.truncate(units);
        model.retain(|unit, _| *unit < units);
        check(&codes, &model);
    }
}

/// A copy is of one moment: crash images are copies, and the file goes on being written.
#[test]
fn a_copy_keeps_what_was_there() {
    let (mut codes, mut model) = (Codes::default(), Model::new());
    let mut random = Random::from_seed(32);
    for _ in 0..300 {
        change(&mut codes, &mut model, &mut random);
    }
    let (copy, copied) = (codes.clone(), model.clone());
    for _ in 0..300 {
        change(&mut codes, &mut model, &mut random);
    }
    check(&copy, &copied);
    check(&codes, &model);
}
