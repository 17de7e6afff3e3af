//! What mail is made of: every message is a pure function of seed and number, with a stated entropy
//! and a stated share of duplicates.
//!
//! Sizes are classes with weights. A share of the bytes is random (in the letters of base64) and
//! the rest are words, so that storage which compresses can be tested honestly; a share of the
//! messages have the body of another one, for storage that removes duplicates. A header line
//! carries number, lengths and checksums, so that whoever reads a message can say whether it is
//! whole; what a server adds to headers on the way does not matter.

use std::fmt::Write;

use crc_fast::{CrcAlgorithm, Digest};
use plimsoll_io::Random;

use crate::driver::places::draw_place;
use crate::store::{WORDS, word};

/// The header line that tells our messages from others.
const HEADER: &str = "X-Plimsoll";
/// Characters of a line.
const LINE: usize = 76;
/// Different bodies that duplicates share, for each size class.
const SHARED_BODIES: u64 = 16;
/// Letters of mail carry six of eight bits.
const ENTROPY_PERCENT_MAX: u32 = 75;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BOUNDARY: &str = "=_plimsoll_part";
const TEXT_TYPE: &str = "Content-Type: text/plain; charset=us-ascii\r\n";

/// Messages of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeClass {
    /// How often, relative to the others.
    pub weight: f64,
    /// Bytes of the text.
    pub body_bytes: u32,
    /// Bytes of the attachment, as it is sent; 0 for none.
    pub attachment_bytes: u32,
}

/// What makes a corpus impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusError(pub String);

impl std::fmt::Display for CorpusError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for CorpusError {}

/// See the module text.
#[derive(Clone, Debug)]
pub struct Corpus {
    seed: u64,
    sizes: Vec<SizeClass>,
    entropy_percent: u32,
    duplicate_percent: u32,
}

/// Who writes to whom and about what: what is not content.
#[derive(Clone, Copy, Debug)]
pub struct Letter<'a> {
    /// Number of the message; no other of the run has it.
    pub id: u64,
    /// Who writes.
    pub from: &'a str,
    /// To whom.
    pub to: &'a [String],
    /// Before the subject, such as "Re: ".
    pub prefix: &'a str,
    /// Whether it asks to a meeting.
    pub is_meeting: bool,
}

/// A message as it is handed to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Number of the message.
    pub id: u64,
    /// Headers and body, lines ending in CR LF.
    pub bytes: Vec<u8>,
}

/// A message as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    head: Vec<u8>,
    text: Vec<u8>,
    /// The attachment; empty where there is none.
    pub attachment: Vec<u8>,
}

impl Parts {
    /// Headers and text.
    pub fn body(&self) -> Vec<u8> {
        [&self.head[..], &self.text].concat()
    }
}

/// Length and checksum of a part of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Bytes.
    pub bytes: u64,
    /// CRC-64/NVME over them.
    pub sum: u64,
}

/// A part that is still being read.
#[derive(Clone, Debug)]
pub struct PartSum {
    bytes: u64,
    sum: Digest,
}

impl Default for PartSum {
    fn default() -> PartSum {
        PartSum { bytes: 0, sum: Digest::new(CrcAlgorithm::Crc64Nvme) }
    }
}

impl PartSum {
    /// The next bytes of the part; how it is cut into pieces does not matter.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.sum.update(bytes);
    }

    /// What the part came to so far.
    pub fn part(&self) -> Part {
        Part { bytes: self.bytes, sum: self.sum.finalize() }
    }
}

impl Part {
    fn of(bytes: &[u8]) -> Part {
        let mut sum = PartSum::default();
        sum.add(bytes);
        sum.part()
    }
}

/// What the header line of a message says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The seed of the corpus.
    pub seed: u64,
    /// Number of the message.
    pub id: u64,
    /// All behind the headers.
    pub body: Part,
    /// The text.
    pub text: Part,
    /// The attachment; of no bytes where there is none.
    pub attachment: Part,
}

impl Check {
    /// The header line without its end.
    fn line(&self) -> String {
        let part = |part: &Part| format!("{}:{:016x}", part.bytes, part.sum);
        format!(
            "{HEADER}: seed={:016x} id={:016x}\r\n body={}\r\n text={}\r\n file={}",
            self.seed,
            self.id,
            part(&self.body),
            part(&self.text),
            part(&self.attachment)
        )
    }

    /// What the headers of a message say; nothing when it is not one of ours.
    pub fn find(headers: &[u8]) -> Option<Check> {
        let text = std::str::from_utf8(headers).ok()?;
        let lower = text.to_ascii_lowercase();
        let marker = format!("{}:", HEADER.to_ascii_lowercase());
        let at = match lower.starts_with(&marker) {
            true => 0,
            false => lower.find(&format!("\n{marker}"))? + 1,
        };
        let mut words = lower[at + marker.len()..].split_ascii_whitespace();
        let mut value =
            |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        let number = |text: String| u64::from_str_radix(&text, 16).ok();
        let part = |text: String| {
            let (bytes, sum) = text.split_once(':')?;
            Some(Part { bytes: bytes.parse().ok()?, sum: u64::from_str_radix(sum, 16).ok()? })
        };
        Some(Check {
            seed: number(value("seed")?)?,
            id: number(value("id")?)?,
            body: part(value("body")?)?,
            text: part(value("text")?)?,
            attachment: part(value("file")?)?,
        })
    }
}

impl Corpus {
    /// The name of the header line, for those who ask a server for it alone.
    pub const HEADER: &'static str = HEADER;

    /// The corpus of a seed.
    ///
    /// # Errors
    /// Values that are not possible.
    pub fn new(
        seed: u64,
        sizes: Vec<SizeClass>,
        entropy_percent: u32,
        duplicate_percent: u32,
    ) -> Result<Corpus, CorpusError> {
        if sizes.is_empty()
            || sizes.iter().any(|size| !(size.weight.is_finite() && size.weight > 0.0))
        {
            return Err(CorpusError(
                "messages.sizes needs at least one class, each with a weight above zero".into(),
            ));
        }
        if sizes
            .iter()
            .any(|size| u64::from(size.body_bytes) + u64::from(size.attachment_bytes) > 64 << 20)
        {
            return Err(CorpusError(
                "messages.sizes has a message above 64 MiB; take a smaller one".into(),
            ));
        }
        for (name, value, most) in [
            ("entropy_percent", entropy_percent, ENTROPY_PERCENT_MAX),
            ("duplicate_percent", duplicate_percent, 100),
        ] {
            if value > most {
                return Err(CorpusError(format!("messages.{name} is {value}; take 0 to {most}")));
            }
        }
        Ok(Corpus { seed, sizes, entropy_percent, duplicate_percent })
    }

    /// What tells its messages from those of others.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What is told apart of two corpora of one seed: sizes, entropy and duplicates, as a number.
    pub fn fingerprint(&self) -> u32 {
        let Corpus { sizes, entropy_percent, duplicate_percent, .. } = self;
        let text = format!("{sizes:?} {entropy_percent} {duplicate_percent}");
        Part::of(text.as_bytes()).sum as u32
    }

    /// The message of a letter.
    pub fn mail(&self, letter: &Letter<'_>) -> Mail {
        let (text, attachment, mut random) = self.content(letter.id);
        let (mime, body) = put_together(letter, &text, &attachment);
        let check = self.check(letter.id, &body, &text, &attachment);
        let mut bytes = headers(letter, &check, &mime, &mut random);
        bytes.extend_from_slice(&body);
        Mail { id: letter.id, bytes }
    }

    /// The same in parts, which are kept apart without the marks that a mail has between them.
    pub fn parts(&self, letter: &Letter<'_>) -> Parts {
        let (text, attachment, mut random) = self.content(letter.id);
        let check = self.check(letter.id, &text, &text, &attachment);
        let head = headers(letter, &check, TEXT_TYPE, &mut random);
        Parts { head, text, attachment }
    }

    /// Text, attachment, and what decides the rest of a message.
    fn content(&self, id: u64) -> (Vec<u8>, Vec<u8>, Random) {
        let root = Random::from_seed(self.seed);
        let mut random = root.child(&format!("message {id}"));
        let weights: Vec<f64> = self.sizes.iter().map(|size| size.weight).collect();
        let class = draw_place(&weights, &mut random);
        let size = self.sizes[class];
        let mut content = if random.below(100) < u64::from(self.duplicate_percent) {
            root.child(&format!("shared {class} {}", random.below(SHARED_BODIES)))
        } else {
            random.child("content")
        };
        let text = self.lines(&mut content, size.body_bytes as usize);
        let attachment = match size.attachment_bytes {
            0 => Vec::new(),
            bytes => self.lines(&mut content, bytes as usize),
        };
        (text, attachment, random)
    }

    fn check(&self, id: u64, body: &[u8], text: &[u8], attachment: &[u8]) -> Check {
        Check {
            seed: self.seed,
            id,
            body: Part::of(body),
            text: Part::of(text),
            attachment: match attachment.is_empty() {
                true => Part::default(),
                false => Part::of(attachment),
            },
        }
    }

    /// Lines of words and random letters, about as many bytes as asked for; always whole lines.
    fn lines(&self, random: &mut Random, bytes: usize) -> Vec<u8> {
        let mut lines = Vec::with_capacity(bytes + LINE + 2);
        while lines.len() < bytes.max(1) {
            let begun = lines.len();
            let wanted = LINE.min(bytes.max(1).saturating_sub(lines.len() + 2).max(1));
            let is_random =
                random.below(u64::from(ENTROPY_PERCENT_MAX)) < u64::from(self.entropy_percent);
            while lines.len() - begun < wanted {
                if is_random {
                    let drawn = random.next_u64();
                    lines
                        .extend((0..10).map(|place| LETTERS[(drawn >> (6 * place)) as usize & 63]));
                } else {
                    lines.extend_from_slice(
                        word(random.below(WORDS)).to_ascii_lowercase().as_bytes(),
                    );
                    lines.push(b' ');
                }
            }
            lines.truncate(begun + wanted);
            // A blank at the end of a line is at the mercy of servers.
            if let Some(last) = lines.last_mut().filter(|last| **last == b' ') {
                *last = b'.';
            }
            lines.extend_from_slice(b"\r\n");
        }
        lines
    }
}

/// The headers that say what the body is, and the body.
fn put_together(letter: &Letter<'_>, text: &[u8], attachment: &[u8]) -> (String, Vec<u8>) {
    if attachment.is_empty() && !letter.is_meeting {
        return (TEXT_TYPE.to_owned(), text.to_vec());
    }
    let kind = if letter.is_meeting { "alternative" } else { "mixed" };
    let mut body = format!("--{BOUNDARY}\r\n{TEXT_TYPE}\r\n").into_bytes();
    body.extend_from_slice(text);
    if !attachment.is_empty() {
        let head = "Content-Type: application/octet-stream\r\nContent-Disposition: attachment; \
         filename=\"file.bin\"\r\n\r\n";
        body.extend_from_slice(format!("\r\n--{BOUNDARY}\r\n{head}").as_bytes());
        body.extend_from_slice(attachment);
    }
    if letter.is_meeting {
        let head = "Content-Type: text/calendar; method=REQUEST; charset=us-ascii\r\n\r\n";
        body.extend_from_slice(format!("\r\n--{BOUNDARY}\r\n{head}").as_bytes());
        body.extend_from_slice(meeting(letter).as_bytes());
    }
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    (format!("Content-Type: multipart/{kind}; boundary=\"{BOUNDARY}\"\r\n"), body)
}

/// An invitation as RFC 5546 wants it.
fn meeting(letter: &Letter<'_>) -> String {
    let day = 1 + letter.id % 28;
    let hour = 8 + letter.id / 28 % 9;
    let mut text = format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Plimsoll//EN\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:{:016x}@plimsoll\r\n\
         DTSTAMP:20260101T000000Z\r\nDTSTART:202601{day:02}T{hour:02}0000Z\r\nDTEND:202601{day:02}T{hour:02}3000Z\r\n\
         SUMMARY:Meeting {:x}\r\nORGANIZER:mailto:{}\r\n",
        letter.id, letter.id, letter.from
    );
    for to in letter.to {
        let _ = write!(text, "ATTENDEE;RSVP=TRUE:mailto:{to}\r\n");
    }
    text.push_str("END:VEVENT\r\nEND:VCALENDAR\r\n");
    text
}

fn headers(letter: &Letter<'_>, check: &Check, mime: &str, random: &mut Random) -> Vec<u8> {
    let subject =
        format!("{} {}", word(random.below(WORDS)), word(random.below(WORDS))).to_ascii_lowercase();
    let mut text = format!(
        "From: <{}>\r\nTo: <{}>\r\nSubject: {}{subject}\r\nMessage-ID: \
         <{:016x}.{:016x}@plimsoll>\r\n",
        letter.from,
        letter.to.join(">,\r\n <"),
        letter.prefix,
        check.seed,
        check.id
    );
    let _ = write!(
        text,
        "Date: Thu, {:02} Jan 2026 {:02}:{:02}:00 +0000\r\nMIME-Version: 1.0\r\n{mime}{}\r\n\r\n",
        [1, 8, 15, 22, 29][random.below(5) as usize],
        random.below(24),
        random.below(60),
        check.line()
    );
    text.into_bytes()
}
