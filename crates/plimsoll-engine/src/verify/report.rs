//! What verification found.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::deep::{DeepReport, PageRange};
use crate::{BlockDamage, FlippedBits, PageNumber};

/// The report on all files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VerifyReport {
    /// One report per file, in the order asked for.
    pub files: Vec<FileReport>,
}

impl VerifyReport {
    /// Whether every file was read whole and nothing in it is damaged.
    pub fn is_sound(&self) -> bool {
        self.files.iter().all(|file| file.verdict == FileVerdict::Sound)
    }
}

/// The result for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileVerdict {
    /// All of it was read and is as it should be.
    Sound,
    /// Everything can be read, but flipped bits had to be corrected in memory: the medium changes
    /// data.
    Correctable,
    /// Something is damaged, misplaced or cannot be read.
    Damaged,
    /// The file could not be opened or recognised.
    Unusable,
    /// Another program or version wrote it; what it should look like is not known here.
    NotJudged,
}

/// One copy of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderCheck {
    /// Its checksum fits.
    Ok,
    /// It does not, or this is no header.
    Bad,
}

/// The report on one file. Pages are whatever the file is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// The file; in plain data, bytes of its name that are no text are written as `\xNN`.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// "database", "log", "log_prepared", "checkpoint", "flush_map" or "unknown".
    pub kind: &'static str,
    /// In one word.
    pub verdict: FileVerdict,
    /// Why the file is unusable, or what is wrong with it as a whole.
    pub error: Option<String>,
    /// Length of the file.
    pub file_bytes: u64,
    /// Bytes per page.
    pub page_bytes: u32,
    /// The two copies of the header.
    pub headers: Vec<HeaderCheck>,
    /// State in the header.
    pub state: Option<String>,
    /// Pages looked at; headers are not counted.
    pub pages_seen: u64,
    /// Pages with damage that cannot be corrected.
    pub bad: u64,
    /// Pages with flipped bits that can be flipped back.
    pub correctable: u64,
    /// Sound pages in the wrong place.
    pub wrong_page_number: u64,
    /// Pages that were never written.
    pub uninitialized: u64,
    /// Log units of a flush that was under way when the log stopped; nothing in them was
    /// acknowledged.
    pub torn: u64,
    /// Whether it is log that was deleted and came back with a power cut, without the log that
    /// followed it: nothing that was verified with it needs it.
    pub left_over: bool,
    /// Pages the medium could not read.
    pub unreadable: u64,
    /// Highest database time of any sound page.
    pub dbtime_max: u64,
    /// Page that has it.
    pub dbtime_max_page: PageNumber,
    /// Bytes after the last whole page.
    pub trailing_bytes: u64,
    /// Pages that the database owns and the file is too short for.
    pub pages_missing: u64,
    /// Whether more may be missing: what says how far the database reaches is among them.
    pub is_more_missing: bool,
    /// Pages never written where the database holds something; only those needed to know its
    /// length, unless more was asked for.
    pub blank_in_use: u64,
    /// The flush map that the pages of a clean database were compared with; without one nobody can
    /// tell whether the last write of a page was lost.
    #[serde(serialize_with = "as_text_if_any")]
    pub flush_map: Option<PathBuf>,
    /// Sound pages that are older than the flush map says: the last write of each was lost.
    pub lost: u64,
    /// The first of them.
    pub lost_first: PageNumber,
    /// Reads done.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// How long it took.
    pub seconds: f64,
    /// How fast it was.
    pub mib_per_s: f64,
    /// Damage, page by page.
    pub findings: Vec<Finding>,
    /// Damaged pages beyond those listed.
    pub findings_not_listed: u64,
    /// Places that could not be read.
    pub unreadable_ranges: Vec<Unreadable>,
    /// How the database fits together, if that was asked for.
    pub deep: Option<DeepReport>,
    /// Why it could not be found out.
    pub deep_error: Option<String>,
    /// What is wrong with the file beside its pages, in sentences.
    pub reasons: Vec<String>,
    /// What there is to know of it that is nothing wrong, in sentences.
    pub remarks: Vec<String>,
}

/// A range of bytes the medium could not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// Where it begins.
    pub offset: u64,
    /// How long the failed read was.
    pub bytes: u64,
    /// What the disk said.
    pub error: String,
}

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "class")]
pub enum FindingClass {
    /// Damaged beyond correction.
    Bad {
        /// A page that this one could be, were it misplaced; the evidence speaks against it.
        page_if_misplaced: Option<PageNumber>,
    },
    /// Bits are flipped and can be flipped back.
    Correctable,
    /// Sound, but it is another page.
    WrongPageNumber {
        /// Which.
        found: PageNumber,
    },
}

/// A damaged page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its number, from its place.
    pub page: PageNumber,
    /// Byte offset in the file.
    pub offset: u64,
    /// What is wrong.
    #[serde(flatten)]
    pub class: FindingClass,
    /// First damaged checksum block.
    pub block: u8,
    /// Checksum stored for that block, in hexadecimal.
    pub stored: String,
    /// Checksum its content has, in hexadecimal.
    pub computed: String,
    /// Flipped bits, counted from the start of the page.
    pub flipped_bits: Vec<u32>,
    /// Object the page says it belongs to.
    pub object: u32,
    /// Flags the page carries.
    pub flags: u32,
    /// Database time the page carries.
    pub dbtime: u64,
}

impl Finding {
    pub(super) fn damage(&mut self, damage: BlockDamage) {
        self.block = damage.block;
        self.stored = format!("{:016x}", damage.stored);
        self.computed = format!("{:016x}", damage.computed);
    }

    pub(super) fn flips(&mut self, bits: FlippedBits) {
        self.flipped_bits = bits.as_slice().to_vec();
    }
}

/// A name that is not UTF-8 must neither be lost nor end the report.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text_of(path))
}

fn as_text_if_any<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(text_of).serialize(serializer)
}

fn text_of(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| {
            text.push_str(&format!("\\x{byte:02X}"));
        });
    }
    text
}

impl FileReport {
    pub(super) fn new(path: &Path, kind: &'static str, file_bytes: u64, page_bytes: u32) -> Self {
        Self {
            path: path.to_owned(),
            kind,
            verdict: FileVerdict::Sound,
            error: None,
            file_bytes,
            page_bytes,
            headers: Vec::new(),
            state: None,
            pages_seen: 0,
            bad: 0,
            correctable: 0,
            wrong_page_number: 0,
            uninitialized: 0,
            torn: 0,
            left_over: false,
            unreadable: 0,
            dbtime_max: 0,
            dbtime_max_page: 0,
            trailing_bytes: 0,
            pages_missing: 0,
            is_more_missing: false,
            blank_in_use: 0,
            flush_map: None,
            lost: 0,
            lost_first: 0,
            reads: 0,
            bytes_read: 0,
            seconds: 0.0,
            mib_per_s: 0.0,
            findings: Vec::new(),
            findings_not_listed: 0,
            unreadable_ranges: Vec::new(),
            deep: None,
            deep_error: None,
            reasons: Vec::new(),
            remarks: Vec::new(),
        }
    }

    pub(super) fn unusable(path: &Path, error: String) -> Self {
        Self {
            verdict: FileVerdict::Unusable,
            error: Some(error),
            ..Self::new(path, "unknown", 0, 0)
        }
    }

    /// The report on a file of another program or version.
    pub(super) fn not_checked(
        path: &Path,
        kind: &'static str,
        file_bytes: u64,
        reason: String,
    ) -> Self {
        Self {
            verdict: FileVerdict::NotJudged,
            error: Some(reason),
            ..Self::new(path, kind, file_bytes, 0)
        }
    }

    /// Pages that are not as they should be, correctable ones included.
    pub fn damaged(&self) -> u64 {
        self.bad + self.correctable + self.wrong_page_number + self.unreadable
    }

    /// Notes stretches of pages that hold something and were never written.
    pub(super) fn note_blank(&mut self, lost: &[PageRange]) {
        let (Some((first, _)), Some((_, last))) = (lost.first(), lost.last()) else {
            return;
        };
        let pages: u64 = lost.iter().map(|(first, last)| u64::from(last - first) + 1).sum();
        self.blank_in_use += pages;
        let which = match pages {
            1 => format!("page {first}, which is in use, was"),
            _ => format!("{pages} pages that are in use, from {first} to {last}, were"),
        };
        self.reasons.push(format!("{which} never written"));
    }

    /// Notes a sound page whose last write was lost.
    pub(super) fn note_lost(&mut self, page: PageNumber) {
        // Pages come in no particular order.
        let is_first = self.lost == 0 || page < self.lost_first;
        self.lost_first = if is_first { page } else { self.lost_first };
        self.lost += 1;
    }

    pub(super) fn finish(&mut self, elapsed_ns: u64) {
        self.seconds = elapsed_ns as f64 / 1e9;
        if elapsed_ns > 0 {
            self.mib_per_s = self.bytes_read as f64 / (1 << 20) as f64 / self.seconds;
        }
        self.findings.sort_by_key(|finding| finding.offset);
        self.unreadable_ranges.sort_by_key(|range| range.offset);
        if matches!(self.verdict, FileVerdict::Unusable | FileVerdict::NotJudged) {
            return;
        }
        self.reasons.extend(self.reasons_beside_pages());
        let fits_together =
            self.error.is_none() && self.deep.as_ref().is_none_or(DeepReport::is_sound);
        let is_damaged = !fits_together
            || self.bad + self.wrong_page_number + self.unreadable > 0
            || !self.reasons.is_empty();
        self.verdict = if is_damaged {
            FileVerdict::Damaged
        } else if self.correctable > 0 {
            FileVerdict::Correctable
        } else {
            FileVerdict::Sound
        };
    }

    /// A database that still needs its log cannot be checked as a whole, which says nothing against
    /// it.
    fn is_deep_error_damage(&self) -> bool {
        self.state.as_ref().is_none_or(|state| state == "Clean")
    }

    fn reasons_beside_pages(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let names = match self.headers.len() {
            2 | 3 => [
                "the first copy of its header is damaged",
                "the second copy of its header is damaged",
                "the page that a backup ends in is damaged",
            ],
            _ => ["its header is damaged"; 3],
        };
        let headers = self.headers.iter().zip(names);
        let damaged = headers.filter(|(check, _)| **check == HeaderCheck::Bad);
        reasons.extend(damaged.map(|(_, name)| name.to_owned()));
        if self.trailing_bytes > 0 {
            let bytes = self.trailing_bytes;
            reasons.push(format!("its length is {bytes} bytes away from that of whole pages"));
        }
        reasons.extend(self.what_is_missing());
        let first = self.lost_first;
        match self.lost {
            0 => {}
            1 => reasons.push(format!("the last write of page {first} was lost (-1119)")),
            lost => reasons.push(format!(
                "the last writes of {lost} pages, of page {first} first, were lost (-1119)"
            )),
        }
        if self.pages_seen == 0 && self.kind != "log_prepared" {
            reasons.push("it has no pages".to_owned());
        }
        if let Some(error) = self.deep_error.as_ref().filter(|_| self.is_deep_error_damage()) {
            reasons.push(format!("it cannot be read as a whole: {error}"));
        }
        reasons
    }

    fn what_is_missing(&self) -> Option<String> {
        let (missing, last) = (self.pages_missing, self.pages_missing + self.pages_there());
        let pages = match missing {
            0 => return None,
            1 => "1 page is missing at its end".to_owned(),
            _ => format!("{missing} pages are missing at its end"),
        };
        Some(match self.is_more_missing {
            false => format!("{pages}: by its own account it reaches to page {last}"),
            true => format!(
                "at least {pages}: page {last}, which says how far it reaches, is itself not there"
            ),
        })
    }

    fn pages_there(&self) -> u64 {
        (self.file_bytes / u64::from(self.page_bytes.max(1))).saturating_sub(2)
    }
}
