//! Durable work until the power is cut, in virtual time on disks that keep or break their promises:
//! what is acknowledged and what is found. What the difference means is judged in Python, and
//! tested there.

use std::collections::BTreeMap;

use plimsoll_powercut::{Behaviour, Kind, PowercutSpec, Rehearsal, RehearsalSpec, rehearse};

/// Places of each ring of rows ...
const ROWS: u64 = 64;
/// ... and of marks: more than are written between the first lie and the cut, so that none of the
/// lies is overwritten.
const SLOTS: u64 = 512;

fn rehearsal(behaviour: Behaviour, seed: u64) -> Rehearsal {
    let work = PowercutSpec {
        directory: "/replaced".into(),
        run: 7 + seed,
        page_bytes: 4096,
        sessions: 3,
        rows: ROWS,
        row_bytes: 300,
        lanes: 2,
        slots: SLOTS,
        cache_bytes: 512 << 10,
        unwitnessed_max: 100,
        io_method: "auto".into(),
        seconds: None,
    };
    let spec = RehearsalSpec { behaviour, seed, milliseconds: 60, work };
    rehearse(spec).expect("the work goes on until the cut")
}

/// The newest acknowledged of each place in a ring that the survey does not show, by kind.
fn missing(found: &Rehearsal) -> (u64, u64) {
    let survey = &found.survey;
    let mut there: BTreeMap<(&str, u32, u64), u64> = BTreeMap::new();
    for row in &survey.commits {
        there.insert(("commit", row.lane, row.slot), row.sequence);
    }
    for mark in &survey.marks {
        there.insert(("mark", mark.lane, mark.slot), mark.sequence.unwrap_or(0));
    }
    let mut missing = (0, 0);
    for line in &found.acknowledged {
        let ring = match line.kind {
            Kind::Commit => ROWS,
            Kind::Mark => SLOTS,
        };
        let place = (line.kind.name(), line.lane, line.sequence % ring);
        if there.get(&place).is_none_or(|sequence| *sequence < line.sequence) {
            match line.kind {
                Kind::Commit => missing.0 += 1,
                Kind::Mark => missing.1 += 1,
            }
        }
    }
    missing
}

/// What storage with an honest flush has acknowledged must be there, whatever else is lost: else
/// every audit would accuse the innocent.
#[test]
fn an_honest_disk_keeps_everything_acknowledged() {
    for seed in 1..=3 {
        let found = rehearsal(Behaviour::Honest, seed);
        assert!(found.acknowledged.len() > 100, "it worked: {}", found.acknowledged.len());
        assert!(found.survey.database_error.is_none(), "{:?}", found.survey.database_error);
        assert!(found.survey.recovery.as_ref().is_some_and(|report| report.recovered));
        assert_eq!(missing(&found), (0, 0));
        assert!(found.survey.marks.iter().all(|mark| mark.sectors.is_empty()), "no block is torn");
        let halves =
            found.survey.commits.iter().filter(|row| row.twin != row.sequence || !row.is_sound);
        assert_eq!(halves.count(), 0, "no transaction is half there");
    }
}

/// A disk that says it has flushed and has not loses commits and marks alike.
#[test]
fn a_disk_that_drops_flushes_loses_what_was_acknowledged() {
    let found = rehearsal(Behaviour::DropsFlushes, 1);
    let (commits, marks) = missing(&found);
    assert!(marks > 20, "{marks} marks lost");
    assert!(commits > 20 || found.survey.database_error.is_some(), "{commits} commits lost");
}

/// Torn blocks must be seen as torn; with page images the database survives them.
#[test]
fn a_disk_that_tears_shows_sectors_of_two_writes_in_one_block() {
    let torn = (1..=4).any(|seed| {
        let found = rehearsal(Behaviour::Tears, seed);
        assert!(found.survey.database_error.is_none(), "{:?}", found.survey.database_error);
        assert_eq!(missing(&found).0, 0, "commits survive torn blocks");
        found.survey.marks.iter().any(|mark| !mark.sectors.is_empty())
    });
    assert!(torn, "four cuts without a write under way");
}

/// A write that was flushed and is gone while later ones are there: either ring shows it.
#[test]
fn a_disk_that_reorders_loses_single_writes() {
    let lost: Vec<u64> =
        (1..=4).map(|seed| missing(&rehearsal(Behaviour::Reorders, seed)).1).collect();
    assert!(lost.iter().sum::<u64>() > 0, "one mark in a hundred is forgotten");
    assert!(lost.iter().all(|count| *count < 50), "and no more: {lost:?}");
}

/// The same seed must give the same bytes, or a failure could not be looked at again.
#[test]
fn a_rehearsal_is_a_function_of_its_seed() {
    let text =
        |seed| serde_json::to_string(&rehearsal(Behaviour::Reorders, seed)).expect("plain data");
    assert_eq!(text(5), text(5));
}
