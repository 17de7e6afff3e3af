//! The log by itself: what is appended comes back, through torn tails and rollovers, with no
//! database attached; a stream that lost acknowledged log or was exchanged is refused.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::log::attached::Attached;
use plimsoll_engine::log::follower::LogFollower;
use plimsoll_engine::log::framing::{Framing, UnitState};
use plimsoll_engine::log::header::GenerationHeader;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::{ImageRecord, LogRecord};
use plimsoll_engine::log::writer::Log;
use plimsoll_engine::log::{HEADER_BYTES, Lsn};
use plimsoll_engine::{LogTime, PageSize, Signature, block_checksum, header_checksum};
use plimsoll_io::{
    Clock, Context, Effect, FaultRule, Files, Handle, Loss, MemoryDisk, MemoryOptions,
    NANOS_PER_MILLISECOND, Purpose, Random,
};

const FRAMINGS: [Framing; 2] = [Framing::Sectors512, Framing::Segments4096];

fn header(framing: Framing) -> GenerationHeader {
    GenerationHeader {
        generation: 1,
        created: LogTime::default(),
        previous_created: LogTime::default(),
        previous_end: Lsn::ZERO,
        signature: Signature::new(77, LogTime::default()),
        framing,
        page_size: PageSize::KIB_4,
        flush: 0,
        circular: false,
        attached: Attached::nothing(),
    }
}

async fn start(files: &Files, handle: &Handle, framing: Framing) -> Rc<Log> {
    start_behind(files, handle, header(framing), &[]).await.unwrap()
}

/// Starts a log with a generation behind those `found`.
async fn start_behind(
    files: &Files,
    handle: &Handle,
    header: GenerationHeader,
    found: &[u32],
) -> Result<Rc<Log>, EngineError> {
    Log::start(
        files.clone(),
        handle.clone(),
        LogNames::new(LOG, "E00"),
        Context::default(),
        header,
        found.iter().copied().collect(),
        64 * 1024,
    )
    .await
}

async fn next_generation(log: &Rc<Log>) -> Result<(), EngineError> {
    log.make_durable(log.begin_generation().end).await
}

fn reader(files: &Files) -> LogReader {
    LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Context::default())
}

fn record(random: &mut Random, number: u64) -> LogRecord {
    if random.chance(0.3) {
        return LogRecord::Commit { transaction: number };
    }
    let mut front = vec![0; random.below(9000) as usize];
    random.fill(&mut front);
    LogRecord::Image(ImageRecord { database: 1, page: number as u32, front, back: vec![1, 2, 3] })
}

fn disk_with(alignment_bytes: u32, seed: u64) -> (Rc<Clock>, Rc<MemoryDisk>) {
    let clock = Rc::new(Clock::simulated());
    let disk =
        new_disk(&clock, seed, MemoryOptions { alignment_bytes, ..MemoryOptions::default() });
    (clock, disk)
}

#[test]
fn what_is_appended_is_followed_record_by_record_through_rollovers() {
    for framing in FRAMINGS {
        for alignment_bytes in [512, 4096] {
            let (clock, disk) = disk_with(alignment_bytes, 3);
            run_on(&clock, &disk, move |files, handle| async move {
                let log = start(&files, &handle, framing).await;
                let mut random = Random::from_seed(11);
                let mut follower = LogFollower::new(reader(&files), Lsn::new(1, 0));
                let (mut written, mut followed) = (Vec::new(), Vec::new());
                for number in 0..900 {
                    let record = record(&mut random, number);
                    let appended = log.append(&record);
                    written.push((appended.start, record));
                    log.room().await.unwrap();
                    if random.chance(0.2) {
                        log.make_durable(appended.end).await.unwrap();
                        followed.extend(follower.poll().await.unwrap());
                        assert_eq!(
                            followed.len(),
                            written.len(),
                            "a durable record can be read at once"
                        );
                    }
                }
                log.make_durable(log.tip()).await.unwrap();
                followed.extend(follower.poll().await.unwrap());
                assert!(log.statistics().generations >= 2);
                assert!(followed == written, "the follower gives exactly what was appended");
                log.close().await.unwrap();
            })
            .unwrap();
        }
    }
}

#[test]
fn overhead_is_at_most_twelve_bytes_a_sector_with_the_old_framing() {
    assert_eq!(Framing::Sectors512.unit_bytes() - Framing::Sectors512.payload_bytes(), 12);
    assert_eq!(Framing::Segments4096.unit_bytes() - Framing::Segments4096.payload_bytes(), 40);
}

/// Writes several flushes and gives the byte offset in the file where each began and ended.
fn written_flushes(framing: Framing, disk: &Rc<MemoryDisk>, clock: &Rc<Clock>) -> Vec<Lsn> {
    run_on(clock, disk, move |files, handle| async move {
        let log = start(&files, &handle, framing).await;
        let mut random = Random::from_seed(5);
        let mut ends = Vec::new();
        for number in 0..12 {
            for _ in 0..3 {
                log.append(&record(&mut random, number));
            }
            let end = log.tip();
            log.make_durable(end).await.unwrap();
            ends.push(end);
        }
        log.close().await.unwrap();
        ends
    })
    .unwrap()
}

/// ENG-14: one damaged byte before the end of a log is an error of the log.
#[test]
fn damage_before_a_later_flush_is_an_error_and_never_a_shorter_log() {
    for framing in FRAMINGS {
        let (clock, disk) = disk_with(512, 4);
        let ends = written_flushes(framing, &disk, &clock);
        let unit = framing.unit_of(ends[4].offset);
        let offset = u64::from(unit) * framing.unit_bytes() as u64;
        disk.corrupt(LogNames::new(LOG, "E00").current(), offset, |bytes| {
            bytes[..framing.unit_bytes()].fill(0xAA)
        });
        let read = run_on(&clock, &disk, |files, _| async move {
            reader(&files).read_generation(&LogNames::new(LOG, "E00").current()).await
        });
        assert!(matches!(read, Ok(Err(EngineError::LogCorrupt { .. }))), "{framing:?}: {read:?}");
    }
}

#[test]
fn damage_in_the_last_flush_ends_the_log_before_it() {
    let framing = Framing::Sectors512;
    let (clock, disk) = disk_with(512, 4);
    let ends = written_flushes(framing, &disk, &clock);
    let unit = framing.unit_of(ends[ends.len() - 2].offset) + 1;
    disk.corrupt(LogNames::new(LOG, "E00").current(), u64::from(unit) * 512, |bytes| {
        bytes[..512].fill(0xAA)
    });
    let generation = run_on(&clock, &disk, |files, _| async move {
        reader(&files).read_generation(&LogNames::new(LOG, "E00").current()).await.unwrap()
    })
    .unwrap();
    assert!(generation.end() >= ends[ends.len() - 2] && generation.end() < ends[ends.len() - 1]);
}

#[test]
fn a_torn_last_segment_is_read_from_its_shadow() {
    let framing = Framing::Segments4096;
    let (clock, disk) = disk_with(512, 4);
    let ends = written_flushes(framing, &disk, &clock);
    let last = ends[ends.len() - 1];
    let unit = framing.unit_of(last.offset - 1);
    // Not a constant fill: over zeros the ESE checksum does not see that, its parities cancel.
    disk.corrupt(LogNames::new(LOG, "E00").current(), u64::from(unit) * 4096, |bytes| {
        Random::from_seed(1).fill(&mut bytes[512..1024])
    });
    let generation = run_on(&clock, &disk, |files, _| async move {
        reader(&files).read_generation(&LogNames::new(LOG, "E00").current()).await.unwrap()
    })
    .unwrap();
    assert_eq!(generation.end(), last);
    assert_eq!(generation.shadows_used, 1);
}

/// Sectors of constant bytes cancel out in the page checksum: it takes most such tears for whole
/// segments. Found by world 1001619 of the power cuts.
#[test]
fn a_torn_segment_of_very_regular_data_is_bad() {
    let (framing, index, generation) = (Framing::Segments4096, 7, 3);
    let mut fooled = 0;
    for torn in 1u32..256 {
        let payload = vec![0x50; framing.payload_bytes()];
        let mut unit = vec![0; 4096];
        framing.encode(&mut unit, generation, index, 9, &payload, LogTime::default());
        for sector in (0..8).filter(|sector| torn & (1 << sector) != 0) {
            unit[sector * 512..(sector + 1) * 512].fill(0);
        }
        let state = framing.decode(&unit, generation, index);
        assert!(!matches!(state, UnitState::Good { .. }), "sectors {torn:#010b} torn: {state:?}");
        let stored = u64::from_le_bytes(unit[..8].try_into().expect("eight bytes"));
        fooled += u32::from(stored != 0 && stored == block_checksum(&unit, index, true));
    }
    assert!(fooled > 20, "the page checksum alone saw all but {fooled}");
}

/// What was acknowledged stays readable while its segment is written again with more in it, however
/// that write tears.
#[test]
fn a_segment_and_its_shadow_are_never_torn_together() {
    for nth in 2..16 {
        for seed in 0..6 {
            let (_, disk) = disk_with(512, 4);
            let cut = FaultRule::new(Effect::CutPowerWhenSubmitted).with_purpose(Purpose::LogWrite);
            disk.inject(cut.nth(nth));
            let promised = Rc::new(Cell::new(Lsn::ZERO));
            let promise = promised.clone();
            run_until_power_lost(&disk, move |files, handle| async move {
                let log = start(&files, &handle, Framing::Segments4096).await;
                let mut random = Random::from_seed(seed);
                for page in 0..20 {
                    let mut front = vec![0; 300];
                    random.fill(&mut front);
                    let appended = log.append(&LogRecord::Image(ImageRecord {
                        database: 1,
                        page,
                        front,
                        back: Vec::new(),
                    }));
                    log.make_durable(appended.end).await.unwrap();
                    promise.set(appended.end);
                }
            });
            assert!(disk.is_off(), "write {nth} never came");
            let torn = Loss::Chance { survival: 1.0, tearing: 1.0 };
            let image = disk.crash_image(torn, &mut Random::from_seed(seed));
            let end = run_on(&image.clock().clone(), &image, |files, _| async move {
                let path = LogNames::new(LOG, "E00").current();
                reader(&files).read_generation(&path).await.unwrap().end()
            });
            let (end, promised) = (end.unwrap(), promised.get());
            assert!(end >= promised, "write {nth} seed {seed}: {end} of {promised}");
        }
    }
}

#[test]
fn a_closed_generation_that_lost_its_tail_is_missed_by_the_next() {
    let framing = Framing::Sectors512;
    let (clock, disk) = disk_with(512, 4);
    run_on(&clock, &disk, move |files, handle| async move {
        let log = start(&files, &handle, framing).await;
        let mut random = Random::from_seed(5);
        while log.durable().generation < 2 {
            let appended = log.append(&record(&mut random, 1));
            log.make_durable(appended.end).await.unwrap();
        }
        log.close().await.unwrap();
    })
    .unwrap();
    let names = LogNames::new(LOG, "E00");
    // The last two written sectors of the closed generation vanish: to the generation itself that
    // looks like an earlier end.
    let bytes = disk.bytes(names.closed(1)).unwrap();
    let last = (8..2048)
        .rev()
        .find(|unit| bytes[unit * 512..(unit + 1) * 512].iter().any(|byte| *byte != 0))
        .unwrap();
    disk.corrupt(names.closed(1), (last as u64 - 1) * 512, |bytes| bytes[..1024].fill(0));
    let outcome = run_on(&clock, &disk, |files, _| async move {
        let names = LogNames::new(LOG, "E00");
        let first = reader(&files).read_generation(&names.closed(1)).await.unwrap();
        let second = reader(&files).read_header(&names.current()).await.unwrap();
        LogReader::check_chain(&first, &second, &names.current())
    })
    .unwrap();
    assert!(matches!(outcome, Err(EngineError::LogCorrupt { .. })), "{outcome:?}");
}

#[test]
fn a_generation_of_another_history_does_not_chain() {
    let (clock, disk) = disk_with(512, 4);
    run_on(&clock, &disk, |files, handle| async move {
        let log = start(&files, &handle, Framing::Sectors512).await;
        let appended = log.append(&LogRecord::Commit { transaction: 1 });
        log.make_durable(appended.end).await.unwrap();
        log.close().await.unwrap();
        let first =
            reader(&files).read_generation(&LogNames::new(LOG, "E00").current()).await.unwrap();
        handle.sleep(20 * NANOS_PER_MILLISECOND).await;
        let mut next = GenerationHeader {
            generation: 2,
            previous_created: first.header.created,
            previous_end: first.end(),
            ..first.header.clone()
        };
        let path = LogNames::new(LOG, "E00").closed(2);
        LogReader::check_chain(&first, &next, &path).unwrap();
        next.previous_created = LogTime::from_utc_ns(handle.clock().anchor().utc_ns);
        assert!(matches!(
            LogReader::check_chain(&first, &next, &path),
            Err(EngineError::ForeignLog { .. })
        ));
        next.generation = 3;
        assert!(matches!(
            LogReader::check_chain(&first, &next, &path),
            Err(EngineError::LogMissing { generation: 2, .. })
        ));
    })
    .unwrap();
}

#[test]
fn headers_survive_a_round_trip_and_no_flipped_bit_does() {
    let header = header(Framing::Segments4096);
    let bytes = header.encode();
    assert_eq!(bytes.len(), HEADER_BYTES);
    assert_eq!(GenerationHeader::decode(&bytes).unwrap(), header);
    for bit in 0..HEADER_BYTES * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(GenerationHeader::decode(&flipped).is_err(), "bit {bit}");
    }
}

/// Segments of version 1 had no CRC; records of a version to come are not known.
#[test]
fn a_log_of_another_version_is_refused_by_name() {
    for (minor, whose) in [(0, "an older"), (1, "an older"), (5, "a newer"), (u8::MAX, "a newer")] {
        let mut bytes = header(Framing::Segments4096).encode();
        bytes[36] = minor;
        let checksum = header_checksum(&bytes);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        let refusal = GenerationHeader::decode(&bytes).unwrap_err();
        for said in ["-514", &format!(".{minor} was written by {whose} version")] {
            assert!(refusal.contains(said), "{refusal}");
        }
    }
}

#[test]
fn garbage_records_never_panic() {
    let mut random = Random::from_seed(1);
    for _ in 0..20_000 {
        let mut bytes = vec![0; random.below(200) as usize];
        random.fill(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first = 0x80 + (*first % 12);
        }
        let _ = LogRecord::decode(&bytes);
    }
}

/// Why it matters: creation times tell two histories apart, which may part and go on within one
/// millisecond where storage is fast.
#[test]
fn two_lives_never_begin_generations_of_one_number_at_one_time() {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 3, MemoryOptions::ram());
    run_on(&clock, &disk, |files, handle| async move {
        let mut created = Vec::new();
        for _ in 0..20 {
            let second = GenerationHeader { generation: 2, ..header(Framing::Segments4096) };
            let log = start_behind(&files, &handle, second, &[]).await.unwrap();
            log.close().await.unwrap();
            let current = LogNames::new(LOG, "E00").current();
            created.push(reader(&files).read_header(&current).await.unwrap().created.utc_ns());
            files.delete(&current, Context::default()).await.unwrap();
        }
        assert!(created.is_sorted_by(|one, next| one < next), "{created:?}");
    })
    .unwrap();
}

/// Why it matters: a generation of long ago that somebody put back must not cost an opening one
/// deletion for each number since.
#[test]
fn numbers_that_have_no_file_are_not_deleted_one_by_one() {
    let (clock, disk) = disk_with(4096, 3);
    run_on(&clock, &disk, |files, handle| async move {
        let current = GenerationHeader { generation: 90_000, ..header(Framing::Segments4096) };
        let log = start_behind(&files, &handle, current, &[7, 9, 89_999]).await.unwrap();
        next_generation(&log).await.unwrap();
        assert_eq!(log.oldest_generation(), 7);
        let asked = Cell::new(0);
        let keep_from = || {
            asked.set(asked.get() + 1);
            90_001
        };
        log.delete_before(keep_from, false).await.unwrap();
        assert_eq!((asked.get(), log.oldest_generation()), (5, 90_001));
        let left = reader(&files).generations().await.unwrap();
        assert_eq!(left.iter().map(|file| file.generation).collect::<Vec<_>>(), [90_001]);
        log.close().await.unwrap();
    })
    .unwrap();
}

/// Why it matters: a number that wraps around would take the place of log that is needed.
#[test]
fn a_stream_ends_with_its_numbers_and_leaves_room_to_close() {
    let (clock, disk) = disk_with(4096, 3);
    run_on(&clock, &disk, |files, handle| async move {
        let at = |generation| GenerationHeader { generation, ..header(Framing::Segments4096) };
        let log = start_behind(&files, &handle, at(0xFFFF_0000), &[]).await.unwrap();
        let mut begun = 0;
        let error = loop {
            match next_generation(&log).await {
                Ok(()) => begun += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(begun, 1024);
        assert!(error.to_string().contains("begins a stream"), "{error}");
        let _ = log.close().await;
        let refused = start_behind(&files, &handle, at(u32::MAX - 2000), &[]).await;
        assert!(matches!(refused, Err(EngineError::LogUsedUp { .. })));
    })
    .unwrap();
}

/// What is attached, as version 0.1 wrote it until 2026-11-27: with whole signatures.
#[test]
fn a_table_of_what_is_attached_with_whole_signatures_is_read() {
    const TABLE_AT: usize = 671;
    let signatures = [(3u8, 0x1234_5678), (200, 9)].map(|(number, random)| {
        (number, Signature::new(random, LogTime::from_utc_ns(77_000_000_000)))
    });
    let mut bytes = header(Framing::Sectors512).encode();
    let mut table = vec![1, 2];
    for (number, signature) in signatures {
        table.push(number);
        table.extend(signature.to_bytes());
    }
    bytes[TABLE_AT..TABLE_AT + table.len()].copy_from_slice(&table);
    let checksum = header_checksum(&bytes);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    let read = GenerationHeader::decode(&bytes).unwrap();
    let found: Vec<(u8, Signature)> = read.attached.known().expect("a table").collect();
    assert_eq!(found, signatures);
    let written = GenerationHeader::decode(&read.encode()).unwrap();
    assert_eq!(written.attached, read.attached, "written as of today");
}
