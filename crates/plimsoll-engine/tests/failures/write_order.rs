//! What one write may not overtake, and what a unit of the log says of its place.
//!
//! Why it matters: both copies of a header under way at once can be torn by one power cut, and a
//! unit of another generation that passes for one of this is somebody else's history. Neither is
//! met by chance often enough to be left to it.

use std::path::Path;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::attached::Attached;
use plimsoll_engine::log::framing::{Framing, UnitState};
use plimsoll_engine::log::header::GenerationHeader;
use plimsoll_engine::log::reader::{Generation, LogReader};
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{LogTime, PageSize, Signature};
use plimsoll_io::{
    Clock, Effect, FaultRule, Files, Handle, MemoryOptions, NANOS_PER_SECOND, OperationKind,
    Purpose, Stage,
};

const FRAMINGS: [Framing; 2] = [Framing::Sectors512, Framing::Segments4096];

/// Three lives, each of which changes the headers of its database several times.
async fn three_lives(files: Files, handle: Handle) -> Result<(), EngineError> {
    let setup = Setup::default();
    for life in 0..3 {
        let (instance, _) = open(&files, &handle, &setup, life).await?;
        instance.create_tree(1, 1, 50 + life as u32, 0, 3).await?;
        instance.checkpoint().await?;
        instance.close().await?;
    }
    Ok(())
}

/// The second copy is touched only when the first is on stable storage: one of them is whole at any
/// moment. Readers of the format take the first where it is whole, so that is the one written
/// first.
#[test]
fn the_copies_of_a_header_are_written_one_after_the_other_the_first_first() {
    let memory = MemoryOptions { trace_operations: 100_000, ..MemoryOptions::default() };
    let disk = new_disk(&Rc::new(Clock::simulated()), 1, memory);
    run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        create_databases(&files, &Setup::default()).await.unwrap();
        three_lives(files, handle).await.unwrap();
    })
    .unwrap();
    let (mut under_way, mut next_copy, mut writes) = (0, 0, 0);
    for entry in disk.trace() {
        let is_header = entry.purpose == Purpose::Header
            && entry.path.extension().is_some_and(|end| end == "edb");
        let is_write = is_header && entry.kind == OperationKind::Write;
        let Some((offset, _)) = entry.range.filter(|_| is_write) else {
            continue;
        };
        let copy = offset / PageSize::KIB_4.bytes() as u64;
        let event = entry.event;
        if entry.stage == Stage::Submitted {
            assert_eq!(under_way, 0, "event {event}: two copies are written at once");
            assert_eq!(copy, next_copy, "event {event}: copy {copy} out of turn");
            under_way += 1;
        } else {
            under_way -= 1;
            next_copy = 1 - next_copy;
            writes += 1;
        }
    }
    assert!(writes > 10, "only {writes} writes of headers were seen");
}

/// Why: the first page of a generation raised the header in memory and waited for its write; a
/// second one found it raised and went ahead. A power cut then left pages that no header speaks of.
#[test]
fn no_page_of_a_generation_is_written_before_the_header_that_allows_it() {
    const ROWS: u64 = 3_000;
    let memory = MemoryOptions { trace_operations: 100_000, ..MemoryOptions::default() };
    let disk = new_disk(&Rc::new(Clock::simulated()), 1, memory);
    let watched = disk.clone();
    let since = run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        let setup = Setup { checkpoint_generations: 1, page_images: false, ..Setup::default() };
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 64).await.unwrap();
        for number in 0..ROWS {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[1; 200]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        let log = &instance.store().log;
        for _ in 0..3 {
            // All pages are written, and no header speaks of pages of the last generation.
            log.make_durable(log.begin_generation().end).await.unwrap();
            handle.sleep(3 * NANOS_PER_SECOND).await;
        }
        let slow = FaultRule::new(Effect::Delay(50_000_000)).with_purpose(Purpose::Header);
        watched.inject(slow.with_path_part("database"));
        let (since, generation) = (watched.events(), log.tip().generation);
        for number in 0..ROWS / 4 {
            let transaction = instance.begin();
            let key = row_key(number * 7919 % ROWS);
            transaction.replace(tree, &key, &[2; 200]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        assert_eq!(log.tip().generation, generation, "the header is raised once");
        instance.close().await.unwrap();
        since
    });
    let since = since.unwrap();
    let (mut copies_written, mut pages) = (0, 0);
    for entry in disk.trace().into_iter().filter(|entry| entry.event > since) {
        let is_write = entry.kind == OperationKind::Write;
        if is_write && entry.purpose == Purpose::Header && entry.path.ends_with("database 1.edb") {
            copies_written += u32::from(entry.stage != Stage::Submitted);
        }
        if is_write && entry.purpose == Purpose::DatabaseWrite && entry.stage == Stage::Submitted {
            assert!(copies_written >= 2, "a page goes ahead at event {}", entry.event);
            pages += 1;
        }
    }
    assert!(pages > 100, "only {pages} pages were written");
}

/// A log file is used again and again: what an earlier generation left in it must not pass for the
/// log of this one, nor a unit for its neighbour.
#[test]
fn a_unit_of_another_generation_or_place_is_bad() {
    for framing in FRAMINGS {
        let mut unit = vec![0; framing.unit_bytes()];
        let index = framing.first_unit() + 5;
        framing.encode(&mut unit, 7, index, 3, b"records", LogTime::default());
        assert!(matches!(framing.decode(&unit, 7, index), UnitState::Good { flush: 3, .. }));
        // The low bits are kept besides: 65,536 generations later they are the same.
        for generation in [6, 8, 7 + 65_536] {
            let found = framing.decode(&unit, generation, index);
            assert_eq!(found, UnitState::Bad, "{framing:?}: generation {generation}");
        }
        // One place further a segment may be the shadow of its neighbour.
        let elsewhere = if framing.has_shadow() { index + 2 } else { index + 1 };
        for place in [index - 1, elsewhere, index + 8] {
            let found = framing.decode(&unit, 7, place);
            assert_eq!(found, UnitState::Bad, "{framing:?}: place {place}");
        }
    }
}

/// The log of another instance, put in the place of the next generation: recovery would redo a
/// stranger's work.
#[test]
fn a_generation_of_another_stream_does_not_chain() {
    let previous = Generation {
        path: "/log/E0000000001.log".into(),
        header: GenerationHeader {
            generation: 1,
            created: LogTime::default(),
            previous_created: LogTime::default(),
            previous_end: Lsn::ZERO,
            signature: Signature::new(77, LogTime::default()),
            framing: Framing::Sectors512,
            page_size: PageSize::KIB_4,
            flush: 0,
            circular: false,
            attached: Attached::nothing(),
        },
        payload: vec![1; 100],
        flush: 1,
        torn_units: 0,
        shadows_used: 0,
    };
    let mut next =
        GenerationHeader { generation: 2, previous_end: previous.end(), ..previous.header.clone() };
    let path = Path::new("/log/E00.log");
    LogReader::check_chain(&previous, &next, path).unwrap();
    next.signature = Signature::new(78, LogTime::default());
    let found = LogReader::check_chain(&previous, &next, path);
    assert!(matches!(found, Err(EngineError::ForeignLog { .. })), "{found:?}");
}
