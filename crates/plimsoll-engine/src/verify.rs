//! Checks files without changing them: databases page by page with both copies of the header, logs,
//! checkpoints, flush maps.
//!
//! The same questions as ESE's own checksum tool asks, with the same words for the answers. Two
//! things are new: a page that is sound but lies in the wrong place is recognised by the constant
//! its page number leaves in every checksum, and is reported with the number of the page it really
//! is; and a place the medium cannot read is reported and passed over, never retried.
//!
//! Reads are large, sequential and several at a time, so that a file is checked at the speed of its
//! disk; checking is cut into pieces that leave the executor free for others.

mod database;
mod log;
mod misplaced;
mod needed;
mod report;
mod scan;
pub(crate) mod used;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_io::{Context, File, Files, Handle, OpenMode, Purpose};

pub use report::{
    FileReport, FileVerdict, Finding, FindingClass, HeaderCheck, Unreadable, VerifyReport,
};

use needed::NeededLog;

use crate::deep::{DeepOptions, pages_in_use, verify_deep};
use crate::flushmap::{FlushMap, flush_map_path, read_flush_map};
use crate::reader::ReadError;
use crate::{DatabaseHeader, DatabaseState, FileType, FormatError};

/// How far to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Every page by itself.
    #[default]
    Pages,
    /// Also whether pages of a clean database that were never written are free.
    Space,
    /// Also whether the pages of a database make one; see [`crate::deep`].
    Deep,
}

/// How to verify.
#[derive(Clone)]
pub struct VerifyOptions {
    /// How far to go.
    pub depth: Depth,
    /// Bytes per read; a multiple of the largest page size.
    pub read_bytes: usize,
    /// Reads in flight at once.
    pub reads_outstanding: usize,
    /// Findings listed per file; further ones are counted only.
    pub findings_max: usize,
    /// Where the flush map of a database may be, apart from beside it and among the files that are
    /// verified. A page of a clean database whose last write it does not carry was lost; without a
    /// map nobody can tell.
    pub flush_maps: Vec<PathBuf>,
    /// Told now and then how far the work is.
    pub progress: Option<ProgressSink>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            depth: Depth::Pages,
            read_bytes: 256 * 1024,
            reads_outstanding: 8,
            findings_max: 1000,
            flush_maps: Vec::new(),
            progress: None,
        }
    }
}

/// How far the verification of one file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The file.
    pub path: PathBuf,
    /// Bytes checked.
    pub bytes_done: u64,
    /// Bytes there are.
    pub bytes_total: u64,
    /// Pages or segments found damaged so far.
    pub damaged: u64,
}

/// Called with every [`Progress`].
pub type ProgressSink = Rc<dyn Fn(&Progress)>;

/// Checks files one after the other. A file that cannot be opened or recognised has a report that
/// says so.
///
/// # Panics
/// When `read_bytes` is not a positive multiple of 32 KiB or `reads_outstanding` is zero.
pub async fn verify(
    files: &Files,
    handle: &Handle,
    paths: &[PathBuf],
    options: &VerifyOptions,
) -> VerifyReport {
    assert!(
        options.read_bytes > 0 && options.read_bytes.is_multiple_of(32 * 1024),
        "reads must hold whole pages of every size"
    );
    assert!(options.reads_outstanding > 0, "at least one read must be in flight");
    let mut report = VerifyReport::default();
    let mut said = Vec::new();
    let named = paths.iter().filter(|path| has_extension(path, "jfm")).cloned();
    let flush_maps = options.flush_maps.iter().cloned().chain(named).collect();
    let options = &VerifyOptions { flush_maps, ..options.clone() };
    for (number, path) in paths.iter().enumerate() {
        let (file_report, of_stream) = verify_file(files, handle, path, options, number).await;
        report.files.push(file_report);
        said.extend(of_stream.map(|of_stream| (Some(number), of_stream)));
    }
    said.extend(log::held_by_clients(files, paths).await);
    log::check_streams(files, &mut report, said).await;
    report
}

async fn verify_file(
    files: &Files,
    handle: &Handle,
    path: &Path,
    options: &VerifyOptions,
    number: usize,
) -> (FileReport, Option<log::OfStream>) {
    let context = Context::of(Purpose::Checksum);
    let started = handle.now();
    let file = match files.open(path, OpenMode::Read, context).await {
        Ok(file) => file,
        Err(error) => return (FileReport::unusable(path, error.to_string()), None),
    };
    let checked = verify_open(files, &file, handle, options, number).await;
    let (mut report, of_stream, blank) = match checked {
        Ok(checked) => checked,
        Err(error) => (FileReport::unusable(path, error.to_string()), None, None),
    };
    // A close that fails has nothing to do with what was read.
    let _ = file.close(context).await;
    let deep_options = DeepOptions {
        read_bytes: options.read_bytes,
        reads_outstanding: options.reads_outstanding,
        findings_max: options.findings_max,
        ..DeepOptions::default()
    };
    if options.depth == Depth::Deep && report.kind == "database" {
        match verify_deep(files, handle, path, deep_options).await {
            Ok(deep) => report.deep = Some(deep),
            Err(error) => report.deep_error = Some(error.to_string()),
        }
    }
    if let Some(blank) = blank.filter(|blank| !blank.is_empty()) {
        match pages_in_use(files, handle, path, deep_options).await {
            Ok(Some(in_use)) => report.note_blank(&in_use.of(blank)),
            // A blank page may be the very one that is needed to know.
            Ok(None) => {
                report.reasons.push("which of its pages are free cannot be read".to_owned())
            }
            Err(error) => report.reasons.push(format!("it cannot be read as a whole: {error}")),
        }
    }
    report.finish(handle.now() - started);
    (report, of_stream)
}

/// What was found in a file, what it says of a stream of logs, and its pages that were never
/// written.
type Checked = (FileReport, Option<log::OfStream>, database::BlankPages);

async fn verify_open(
    files: &Files,
    file: &File,
    handle: &Handle,
    options: &VerifyOptions,
    number: usize,
) -> Result<Checked, ReadError> {
    let start = read_start(file).await?;
    let fault = |fault| ReadError::Format { path: file.path().to_owned(), fault };
    let error = match DatabaseHeader::choose(&start) {
        Ok((header, _)) => {
            let found = flush_map_of(files, file.path(), options, &header).await;
            let (map, unread) = match found {
                Ok(map) => (map, None),
                Err(error) => (None, Some(format!("its flush map cannot be read: {error}"))),
            };
            let of_stream = NeededLog::by(&header).map(log::OfStream::Database);
            let (mut report, blank) =
                database::verify_database(file, handle, options, &start, Some(header), map).await?;
            report.reasons.extend(unread);
            return Ok((report, of_stream, blank));
        }
        Err(error) => error.of_file(file.opened().length_bytes),
    };
    if log::may_be_prepared(file.path(), &start) {
        return Ok((log::verify_prepared(file, handle).await?, None, None));
    }
    if log::is_lost(file, &start) {
        return Ok((log::lost_log(file), None, None));
    }
    if log::is_spare(file.path()) && FileType::of_header(&start) != Some(FileType::Log) {
        return Ok((log::foreign_spare(file), None, None));
    }
    let file_type = FileType::of_header(&start);
    // What is damaged may not say any more what it is, and then its name does.
    let is_named = |extension| {
        matches!(file_type, None | Some(FileType::Other(_)))
            && has_extension(file.path(), extension)
    };
    let report = match file_type {
        Some(FileType::Log) => {
            let (report, of_stream) = log::verify_log(files, handle, file, number).await;
            return Ok((report, of_stream, None));
        }
        _ if file_type == Some(FileType::Checkpoint) || is_named("chk") => {
            let (report, of_stream) = log::verify_checkpoint(file).await?;
            return Ok((report, of_stream, None));
        }
        _ if file_type == Some(FileType::FlushMap) || is_named("jfm") => {
            log::verify_flush_map(file, handle, options.findings_max).await?
        }
        // A first page of zeros or garbage may be a lost header.
        Some(FileType::Database | FileType::Other(_))
            if database::guess_page_size(&start).is_some() =>
        {
            let (report, _) =
                database::verify_database(file, handle, options, &start, None, None).await?;
            report
        }
        Some(found @ (FileType::Streaming | FileType::TemporaryDatabase)) => {
            return Err(fault(FormatError::FileType { found }));
        }
        _ => return Err(fault(error)),
    };
    Ok((report, None, None))
}

/// The flush map of a clean database, and where it is. That of any other may be behind its pages.
async fn flush_map_of(
    files: &Files,
    database: &Path,
    options: &VerifyOptions,
    header: &DatabaseHeader,
) -> crate::error::Result<Option<(PathBuf, FlushMap)>> {
    if header.state != DatabaseState::Clean {
        return Ok(None);
    }
    let context = Context::of(Purpose::Checksum);
    // An older copy beside it, under another name, would be accused of what was written since.
    let beside = has_extension(database, "edb").then(|| flush_map_path(database));
    for path in beside.iter().chain(&options.flush_maps) {
        if let Some(map) = read_flush_map(files, path, header.signature, context).await? {
            return Ok(Some((path.clone(), map)));
        }
    }
    Ok(None)
}

fn has_extension(path: &Path, expected: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(expected))
}

/// Bytes at the start of the file that show what it is: two headers and the first page of the
/// largest size.
const START_BYTES_MAX: u64 = 3 * 32768;

async fn read_start(file: &File) -> Result<Vec<u8>, ReadError> {
    let opened = file.opened();
    let alignment = u64::from(opened.alignment_bytes.max(1));
    let length_bytes = opened.length_bytes.min(START_BYTES_MAX) / alignment * alignment;
    if length_bytes == 0 {
        return Ok(Vec::new());
    }
    let buffer = file.allocate(length_bytes as usize);
    let start = file.read(0, buffer, Context::of(Purpose::Checksum)).await?;
    Ok(start.to_vec())
}
