//! The log that databases need that were not shut down cleanly: whether it is there.
//!
//! The headers say which generations recovery needs, and up to which there were commits. Log of
//! their stream may be named, or lie unnamed beside what is named. Where some of it is there, what
//! is not there is lost. Where none of it is, it may be in another place: no one can tell. Log from
//! before what is needed, as of an archive, says as little of where the rest lies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plimsoll_io::{Context, Files};

use super::report::{FileReport, FileVerdict, VerifyReport};
use crate::database::peek_header;
use crate::log::names::LogNames;
use crate::log::reader::LogReader;
use crate::{DatabaseHeader, Signature};

/// What a database needs of its log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct NeededLog {
    signature: Signature,
    /// The first generation that recovery needs.
    first: u32,
    /// The last one.
    required: u32,
    /// The last one with commits.
    committed: u32,
}

impl NeededLog {
    /// What a database says, if it was not shut down cleanly.
    pub(super) fn by(header: &DatabaseHeader) -> Option<NeededLog> {
        let first = header.generation_min_required;
        let needed = NeededLog {
            signature: header.log_signature,
            first,
            required: header.generation_max_required.max(first),
            committed: header.generation_max_committed,
        };
        header.needs_recovery().then_some(needed)
    }

    /// The stream of its log, and the first generation it needs.
    pub(super) fn from(&self) -> (Signature, u32) {
        (self.signature, self.first)
    }

    fn last(&self) -> u32 {
        self.required.max(self.committed)
    }

    /// The first that is not there of those it needs.
    fn first_missing(&self, there: &BTreeSet<u32>) -> Option<u32> {
        let mut wanted = self.first;
        for generation in there.range(self.first..=self.last()) {
            if *generation != wanted {
                break;
            }
            wanted += 1;
        }
        (wanted <= self.last()).then_some(wanted)
    }

    fn which(&self) -> String {
        match (self.first, self.last()) {
            (0, _) => "its header does not say which log is".to_owned(),
            (first, last) if first == last => format!("log generation {first} is"),
            (first, last) => format!("log generations {first} to {last} are"),
        }
    }

    fn what_is_lost(&self, missing: u32) -> String {
        if missing <= self.required {
            return format!(
                "log generation {missing} is needed for recovery and missing (-528): put it back, \
                 or restore the database"
            );
        }
        format!(
            "log generation {missing} is missing, and there were commits up to generation {} \
             (-582): put the log back, or restore the database",
            self.committed
        )
    }
}

/// What the files that were named say of one stream.
#[derive(Default)]
pub(super) struct Stream {
    /// Generations that were named.
    named: BTreeSet<u32>,
    /// Where files of the stream lie.
    directories: BTreeSet<PathBuf>,
    /// Whether its current log or its checkpoint was named, which lie where all of its log lies.
    is_at_home: bool,
}

/// What the files that were named say of streams, by signature.
#[derive(Default)]
pub(super) struct Streams(BTreeMap<[u8; Signature::BYTES], Stream>);

impl Streams {
    /// Notes a file of a stream, and which generation it is if it is one.
    pub(super) fn note(&mut self, signature: Signature, path: &Path, generation: Option<u32>) {
        let stream = self.0.entry(signature.to_bytes()).or_default();
        stream.named.extend(generation);
        stream.directories.insert(directory_of(path));
        let names = LogNames::of_generation(path);
        stream.is_at_home |= names.is_none_or(|names| names.current() == path);
    }
}

fn directory_of(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// What was found of the log of a database.
enum Found {
    AllNamed,
    /// All is there, not all of it was named.
    All,
    /// Nothing of its stream.
    Nothing,
    /// Only what is older than all it needs.
    OnlyOlder,
    /// Its stream, without this generation.
    Lacks(u32),
}

/// Says of every database that was not shut down cleanly what it needs, and whether that is there.
pub(super) async fn check_needed(
    files: &Files,
    context: Context,
    report: &mut VerifyReport,
    needed: Vec<(usize, NeededLog)>,
    streams: &Streams,
) {
    let nothing = Stream::default();
    for (file, needed) in needed {
        let file = &mut report.files[file];
        let stream = streams.0.get(&needed.signature.to_bytes()).unwrap_or(&nothing);
        let mut found = look(files, context, &file.path, needed, stream).await;
        // Whoever has it open goes on with its log meanwhile, and says so in the header.
        if let Found::Lacks(_) = found {
            let header = peek_header(files, &file.path, context).await;
            let now = header.ok().and_then(|header| NeededLog::by(&header));
            found = match now {
                Some(now) if now == needed => look(files, context, &file.path, now, stream).await,
                _ => Found::All,
            };
        }
        note(file, needed, found);
    }
}

async fn look(
    files: &Files,
    context: Context,
    database: &Path,
    needed: NeededLog,
    stream: &Stream,
) -> Found {
    if needed.first_missing(&stream.named).is_none() {
        return Found::AllNamed;
    }
    let mut directories = stream.directories.clone();
    directories.insert(directory_of(database));
    let mut there = stream.named.clone();
    for directory in &directories {
        there.extend(generations_in(files, context, directory, needed.signature).await);
    }
    match needed.first_missing(&there) {
        None => Found::All,
        Some(_) if there.is_empty() && stream.directories.is_empty() => Found::Nothing,
        Some(_) if !stream.is_at_home && there.range(needed.first..).next().is_none() => {
            Found::OnlyOlder
        }
        Some(missing) => Found::Lacks(missing),
    }
}

/// The generations of a stream in a directory. What cannot be read is none.
async fn generations_in(
    files: &Files,
    context: Context,
    directory: &Path,
    signature: Signature,
) -> Vec<u32> {
    let reader = LogReader::new(files.clone(), LogNames::new(directory, ""), context);
    let mut generations = Vec::new();
    for entry in files.list(directory, context).await.unwrap_or_default() {
        let path = directory.join(&entry.name);
        if entry.is_directory || LogNames::of_generation(&path).is_none() {
            continue;
        }
        match reader.read_header(&path).await {
            Ok(header) if header.signature == signature => generations.push(header.generation),
            _ => {}
        }
    }
    generations
}

fn note(file: &mut FileReport, needed: NeededLog, found: Found) {
    let which = needed.which();
    let where_it_is = match found {
        Found::AllNamed | Found::Lacks(_) => "",
        Found::All => ", and not all of its log was named",
        Found::Nothing => ", and none of its log was named or lies beside it",
        Found::OnlyOlder => ", and only log from before that was found",
    };
    file.remarks.push(format!(
        "not shut down cleanly: {which} needed to recover it{where_it_is}; not compared with a \
         flush map, which may be behind its pages"
    ));
    if let Found::Lacks(missing) = found {
        file.reasons.push(needed.what_is_lost(missing));
        if !matches!(file.verdict, FileVerdict::Unusable | FileVerdict::NotJudged) {
            file.verdict = FileVerdict::Damaged;
        }
    }
}
