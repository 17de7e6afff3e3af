//! Logs, checkpoints and flush maps.
//!
//! A generation is read by the same reader that recovery uses, then its records are decoded one by
//! one. Units of a flush that was under way when the log stopped are counted as torn, not as
//! damage: nothing in them was ever acknowledged. Generations that are checked together must also
//! chain: same stream, no gap, each beginning where the one before says it ended.
//!
//! One gap is no damage: where circular logging deletes several generations, a power cut brings
//! back some of them. Log before a gap is left over if none of the databases and checkpoints that
//! are verified with it needs any of what is gone, and no client that has a durable hold.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_io::{Context, File, Files, Handle, OpenMode, Purpose, is_zero};

use super::needed::{NeededLog, Streams, check_needed};
use super::report::{FileReport, FileVerdict, Finding, FindingClass, HeaderCheck, VerifyReport};
use crate::checkpoint::{decode_checkpoint, is_our_checkpoint};
use crate::error::EngineError;
use crate::flushmap::{MAP_PAGE_BYTES, decode_map_header, is_our_map, map_page_is_whole};
use crate::log::header::GenerationHeader;
use crate::log::holds::decode_file;
use crate::log::names::LogNames;
use crate::log::reader::{Generation, LogReader};
use crate::log::{GENERATION_BYTES, Lsn};
use crate::reader::ReadError;
use crate::{FileType, Signature};
/// What a damaged flush map means.
const MAP_IS_SPARE: &str = "the next opening of its database begins another, which knows nothing \
                            of writes lost before";

/// Records decoded before other tasks may run.
const RECORDS_PER_TURN: usize = 64;
/// Prepared logs are read in pieces of this size; a generation has only a few.
const SEGMENT_BYTES: usize = 32 * 1024;
const CHECKPOINT_BLOCK_BYTES: usize = 4096;
const HOLDS_BYTES: u64 = 8192;
/// What a damaged checkpoint means.
const CHECKPOINT_IS_SPARE: &str =
    "recovery does without it, and the next opening of the databases writes it anew";

/// What a file says of a stream of logs.
pub(super) enum OfStream {
    /// It is a generation of it.
    Link(ChainLink),
    /// It is this generation of it, and damaged.
    Damaged(Signature, u32),
    /// From this generation on it needs the log.
    NeedsFrom(Signature, u32),
    /// It is the checkpoint of our log, which begins here.
    Checkpoint(Signature, u32),
    /// It is a database that was not shut down cleanly.
    Database(NeededLog),
}

/// What later generations are compared with.
pub(super) struct ChainLink {
    /// Which report the generation has.
    file: usize,
    header: GenerationHeader,
    end: Lsn,
}

/// What clients hold of the streams that these files are of. The files of the holds lie beside the
/// logs; those that cannot be read say nothing.
pub(super) async fn held_by_clients(files: &Files, paths: &[PathBuf]) -> Said {
    let of_stream = |path: &PathBuf| LogNames::of_generation(path).map(|names| names.holds());
    let mut said = Vec::new();
    for path in paths.iter().filter_map(of_stream).collect::<BTreeSet<_>>() {
        let Ok(file) = files.open(&path, OpenMode::Read, context()).await else { continue };
        let length_bytes = file.opened().length_bytes.min(HOLDS_BYTES) as usize;
        let bytes = read_whole(&file, length_bytes).await.unwrap_or_default();
        // A close that fails has nothing to do with what was read.
        let _ = file.close(context()).await;
        let Some((holds, signature)) = decode_file(&bytes) else { continue };
        let needs = |held| (None, OfStream::NeedsFrom(signature, held));
        said.extend(holds.into_values().map(needs));
    }
    said
}

fn context() -> Context {
    Context::of(Purpose::Checksum)
}

/// A damaged unit that has no page checksum to show.
fn damaged_unit(index: u64, offset: u64) -> Finding {
    Finding {
        page: u32::try_from(index).unwrap_or(u32::MAX),
        offset,
        class: FindingClass::Bad { page_if_misplaced: None },
        block: 0,
        stored: String::new(),
        computed: String::new(),
        flipped_bits: Vec::new(),
        object: 0,
        flags: 0,
        dbtime: 0,
    }
}

/// Checks one generation; its link is for [`check_chains`].
pub(super) async fn verify_log(
    files: &Files,
    handle: &Handle,
    file: &File,
    number: usize,
) -> (FileReport, Option<OfStream>) {
    let path = file.path();
    let mut report = FileReport::new(path, "log", file.opened().length_bytes, 0);
    let names = LogNames::new(path.parent().unwrap_or(Path::new(".")), "");
    let reader = LogReader::new(files.clone(), names, context());
    let generation = match reader.read_generation(path).await {
        Ok(generation) => generation,
        Err(error) => {
            note_log_error(&mut report, error);
            let header = reader.read_header(path).await.ok();
            let damaged = |of: GenerationHeader| OfStream::Damaged(of.signature, of.generation);
            return (report, header.map(damaged));
        }
    };
    count_units(&mut report, &generation);
    check_records(handle, &generation, &mut report).await;
    let link = ChainLink { file: number, end: generation.end(), header: generation.header };
    (report, Some(OfStream::Link(link)))
}

fn note_log_error(report: &mut FileReport, error: EngineError) {
    if let EngineError::LogCorrupt { offset, .. } = &error {
        report.bad += 1;
        report.pages_seen += 1;
        report.findings.push(damaged_unit(0, *offset));
    } else if let EngineError::ForeignLog { .. } = &error {
        report.verdict = FileVerdict::NotJudged;
    } else {
        report.verdict = FileVerdict::Unusable;
    }
    report.error = Some(error.to_string());
}

fn count_units(report: &mut FileReport, generation: &Generation) {
    let framing = generation.header.framing;
    let units = u64::from(framing.units_per_file() - framing.first_unit());
    let written = generation.payload.len().div_ceil(framing.payload_bytes()) as u64;
    let torn = u64::from(generation.torn_units);
    report.page_bytes = framing.unit_bytes() as u32;
    report.headers = vec![HeaderCheck::Ok];
    report.pages_seen = units;
    report.correctable = u64::from(generation.shadows_used);
    report.torn = torn;
    report.uninitialized = units.saturating_sub(written + torn);
    report.reads = GENERATION_BYTES.div_ceil(256 * 1024);
    report.bytes_read = GENERATION_BYTES;
}

async fn check_records(handle: &Handle, generation: &Generation, report: &mut FileReport) {
    for (number, record) in generation.records(0).enumerate() {
        if let Err(error) = record {
            note_log_error(report, error);
            return;
        }
        if number % RECORDS_PER_TURN == 0 {
            handle.yield_now().await;
        }
    }
}

/// What each of the files, by its number, says of a stream; holds of clients are no file of theirs.
pub(super) type Said = Vec<(Option<usize>, OfStream)>;

/// Checks that generations of one stream follow one another, and that what databases need is there.
pub(super) async fn check_streams(files: &Files, report: &mut VerifyReport, said: Said) {
    let (mut links, mut needs) = (Vec::new(), Vec::new());
    let (mut needed, mut streams) = (Vec::new(), Streams::default());
    for (file, said) in said {
        let path = file.map_or(Path::new(""), |file| &report.files[file].path);
        match said {
            OfStream::Link(link) => {
                streams.note(link.header.signature, path, Some(link.header.generation));
                links.push(link);
            }
            OfStream::Damaged(signature, generation) => {
                streams.note(signature, path, Some(generation));
            }
            OfStream::NeedsFrom(signature, generation) => needs.push((signature, generation)),
            OfStream::Checkpoint(signature, generation) => {
                streams.note(signature, path, None);
                needs.push((signature, generation));
            }
            OfStream::Database(log) => {
                needs.push(log.from());
                needed.extend(file.map(|file| (file, log)));
            }
        }
    }
    check_chains(report, links, &needs);
    check_needed(files, context(), report, needed, &streams).await;
}

fn check_chains(report: &mut VerifyReport, mut links: Vec<ChainLink>, needs: &[(Signature, u32)]) {
    links.sort_by_key(|link| (link.header.signature.to_bytes(), link.header.generation, link.end));
    // A power cut between the two names of a generation leaves both.
    links.dedup_by(|further, link| {
        let is_twin = further.header == link.header;
        if is_twin {
            std::mem::swap(further, link);
        }
        is_twin
    });
    for stream in links.chunk_by(|one, other| one.header.signature == other.header.signature) {
        let of_stream = needs.iter().filter(|(of, _)| *of == stream[0].header.signature);
        let needed_from = of_stream.map(|(_, generation)| *generation).min();
        let first = first_not_left_over(stream, needed_from);
        for link in &stream[..first] {
            let file = &mut report.files[link.file];
            // The file that is written has this name as long as there is log.
            if is_current(&file.path) {
                file.error = Some(format!(
                    "it is generation {}, and there is later log of its stream: an old copy has \
                     taken the place of the current log",
                    link.header.generation
                ));
                file.verdict = FileVerdict::Damaged;
            } else {
                file.left_over = true;
            }
        }
        check_chain(report, &stream[first..]);
    }
}

/// Whether a generation has the name of the one that is written.
fn is_current(path: &Path) -> bool {
    LogNames::of_generation(path).is_some_and(|names| names.current() == path)
}

/// Where the log begins that was not brought back by a power cut: behind the last gap that lies
/// wholly before all that is needed, and that circular logging may have made.
fn first_not_left_over(stream: &[ChainLink], needed_from: Option<u32>) -> usize {
    let begins = |index: &usize| {
        let (before, next) = (&stream[index - 1].header, &stream[*index].header);
        next.generation > before.generation + 1
            && needed_from.is_some_and(|needed| next.generation <= needed)
            && stream[*index..].iter().any(|link| link.header.circular)
    };
    (1..stream.len()).rev().find(begins).unwrap_or(0)
}

fn check_chain(report: &mut VerifyReport, stream: &[ChainLink]) {
    for pair in stream.windows(2) {
        let [before, next] = pair else { continue };
        let generation = next.header.generation;
        let problem = if generation == before.header.generation {
            let other = report.files[before.file].path.display();
            Some(format!("it is generation {generation}, as {other} is, and of another history"))
        } else if generation != before.header.generation + 1 {
            Some(format!(
                "generation {} is missing before this one (-528)",
                before.header.generation + 1
            ))
        } else if next.header.previous_created != before.header.created {
            Some(
                "it continues another history of its stream: creation times do not chain"
                    .to_owned(),
            )
        } else if next.header.previous_end > before.end {
            Some(format!(
                "it says that the generation before ended at {}, but that can be read only up to \
                 {}: acknowledged log is lost",
                next.header.previous_end, before.end
            ))
        } else {
            None
        };
        if let Some(problem) = problem {
            let file = &mut report.files[next.file];
            file.error = Some(problem);
            file.verdict = FileVerdict::Damaged;
        }
    }
}

/// Whether a file without a header may be a log that is prepared or held in reserve: by its name,
/// and empty as far as we saw.
pub(super) fn may_be_prepared(path: &Path, start: &[u8]) -> bool {
    is_spare(path) && is_zero(start)
}

/// Whether a file is by its name a log that is prepared or held in reserve.
pub(super) fn is_spare(path: &Path) -> bool {
    let name = name_of(path);
    let is_prepared = name.ends_with("tmp.log") || name.ends_with("tmp.jtx");
    is_prepared || name.ends_with(".jrs") || matches!(&*name, "res1.log" | "res2.log")
}

/// What is said of a spare log that is not empty: ours are, and other versions fill theirs with a
/// pattern or a header.
pub(super) fn foreign_spare(file: &File) -> FileReport {
    let reason = "it is by its name a log made ready or held in reserve, and it is not empty as \
     ours are: another program wrote it";
    FileReport::not_checked(
        file.path(),
        "log_prepared",
        file.opened().length_bytes,
        reason.to_owned(),
    )
}

/// Whether an empty file is by its name a generation: one that was ever in use has a header, so its
/// log is lost.
pub(super) fn is_lost(file: &File, start: &[u8]) -> bool {
    let name = name_of(file.path());
    // Of a file that is shorter than a block nothing is read.
    let is_empty = if start.is_empty() { file.opened().length_bytes == 0 } else { is_zero(start) };
    (name.ends_with(".log") || name.ends_with(".jtx")) && is_empty
}

pub(super) fn lost_log(file: &File) -> FileReport {
    let length_bytes = file.opened().length_bytes;
    let mut report = FileReport::new(file.path(), "log", length_bytes, SEGMENT_BYTES as u32);
    report.error = Some("it is empty: the log that was in it is lost".to_owned());
    report
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().to_ascii_lowercase()
}

/// Checks a prepared or reserve log: nothing but zeros, but all of it readable.
pub(super) async fn verify_prepared(file: &File, handle: &Handle) -> Result<FileReport, ReadError> {
    let length_bytes = file.opened().length_bytes;
    let mut report =
        FileReport::new(file.path(), "log_prepared", length_bytes, SEGMENT_BYTES as u32);
    report.trailing_bytes = length_bytes % SEGMENT_BYTES as u64;
    let mut buffer = file.allocate(SEGMENT_BYTES);
    for number in 0..length_bytes / SEGMENT_BYTES as u64 {
        let offset = number * SEGMENT_BYTES as u64;
        buffer = file.read(offset, buffer, context()).await?;
        (report.reads, report.bytes_read) =
            (report.reads + 1, report.bytes_read + SEGMENT_BYTES as u64);
        report.pages_seen += 1;
        if is_zero(&buffer) {
            report.uninitialized += 1;
        } else {
            report.bad += 1;
            report.findings.push(damaged_unit(number, offset));
        }
        handle.yield_now().await;
    }
    Ok(report)
}

async fn read_whole(file: &File, bytes: usize) -> Result<Vec<u8>, ReadError> {
    let buffer = file.read(0, file.allocate(bytes), context()).await?;
    Ok(buffer.to_vec())
}

/// Checks a checkpoint file: two blocks, each with its own checksum. One sound block is enough to
/// recover, but both should be.
pub(super) async fn verify_checkpoint(
    file: &File,
) -> Result<(FileReport, Option<OfStream>), ReadError> {
    let length_bytes = file.opened().length_bytes;
    let mut report =
        FileReport::new(file.path(), "checkpoint", length_bytes, CHECKPOINT_BLOCK_BYTES as u32);
    if length_bytes != 2 * CHECKPOINT_BLOCK_BYTES as u64 {
        report.trailing_bytes = length_bytes.abs_diff(2 * CHECKPOINT_BLOCK_BYTES as u64);
        report.error = Some(format!(
            "it has {length_bytes} bytes, and a checkpoint file has 8192: {CHECKPOINT_IS_SPARE}"
        ));
        return Ok((report, None));
    }
    let mut needs = None;
    let bytes = read_whole(file, length_bytes as usize).await?;
    for (index, block) in bytes.chunks_exact(CHECKPOINT_BLOCK_BYTES).enumerate() {
        report.pages_seen += 1;
        match decode_checkpoint(block) {
            // The first block is the newer one where they differ.
            Some((place, signature)) => {
                needs.get_or_insert(match is_our_checkpoint(block) {
                    true => OfStream::Checkpoint(signature, place.generation),
                    false => OfStream::NeedsFrom(signature, place.generation),
                });
            }
            None => {
                report.bad += 1;
                let offset = (index * CHECKPOINT_BLOCK_BYTES) as u64;
                report.findings.push(damaged_unit(index as u64, offset));
            }
        }
    }
    if report.bad == report.pages_seen {
        report.error =
            Some(format!("both blocks of the checkpoint file are damaged: {CHECKPOINT_IS_SPARE}"));
    }
    (report.reads, report.bytes_read) = (1, length_bytes);
    Ok((report, needs))
}

/// Checks a flush map: its header and every page. That of another program has the file type, but
/// not our mark: it is not checked.
pub(super) async fn verify_flush_map(
    file: &File,
    handle: &Handle,
    findings_max: usize,
) -> Result<FileReport, ReadError> {
    let length_bytes = file.opened().length_bytes;
    let page_bytes = MAP_PAGE_BYTES as u64;
    let mut report = FileReport::new(file.path(), "flush_map", length_bytes, MAP_PAGE_BYTES as u32);
    report.trailing_bytes = length_bytes % page_bytes;
    if length_bytes < page_bytes {
        report.error = Some(format!(
            "it has {length_bytes} bytes, and the header of a flush map has {page_bytes}: it was \
             cut off; {MAP_IS_SPARE}"
        ));
        return Ok(report);
    }
    let mut buffer = file.allocate(MAP_PAGE_BYTES);
    for number in 0..length_bytes / page_bytes {
        let offset = number * page_bytes;
        buffer = file.read(offset, buffer, context()).await?;
        (report.reads, report.bytes_read) = (report.reads + 1, report.bytes_read + page_bytes);
        if number == 0 {
            let has_type = FileType::of_header(&buffer) == Some(FileType::FlushMap);
            if !is_our_map(&buffer) && !has_type {
                report.error = Some(format!(
                    "it does not begin as a flush map does, so its header is damaged; \
                     {MAP_IS_SPARE}"
                ));
                return Ok(report);
            }
            if !is_our_map(&buffer) {
                let reason =
                    "it is the flush map of another program, whose pages are not known here";
                return Ok(FileReport::not_checked(
                    file.path(),
                    "flush_map",
                    length_bytes,
                    reason.to_owned(),
                ));
            }
            let is_sound = decode_map_header(&buffer).is_ok();
            report.headers = vec![if is_sound { HeaderCheck::Ok } else { HeaderCheck::Bad }];
            continue;
        }
        report.pages_seen += 1;
        if is_zero(&buffer) {
            report.uninitialized += 1;
        } else if !map_page_is_whole(number as u32 - 1, &buffer) {
            report.bad += 1;
            if report.findings.len() < findings_max {
                report.findings.push(damaged_unit(number - 1, offset));
            } else {
                report.findings_not_listed += 1;
            }
        }
        handle.yield_now().await;
    }
    Ok(report)
}
