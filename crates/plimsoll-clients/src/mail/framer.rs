//! Where a response of IMAP ends: lines, with literals in between of as many bytes as were
//! announced.
//!
//! Literals that are contents of messages (they follow a `]`) are summed up and dropped; a literal
//! of no bytes stands in their place. Short ones of other kinds are kept for the grammar. Whatever
//! is announced, no more than the limits is ever held.

use plimsoll_workload::mail::{Part, PartSum};

/// Bytes of a response without its contents.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a literal that is no content, such as a subject.
const KEPT_BYTES_MAX: u64 = 64 << 10;
/// Bytes of headers that are kept of a content.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// What was read of one content.
#[derive(Clone, Debug)]
pub struct Literal {
    /// What was asked for, such as "1" or "HEADER"; empty for the whole message.
    pub section: String,
    /// All of it.
    pub whole: Part,
    /// What lies behind the headers; of a whole message only.
    pub body: Part,
    /// The headers, as far as they were kept.
    pub head: Vec<u8>,
}

/// Why a response cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// A literal or a line is longer than is taken.
    TooLong {
        /// So long.
        bytes: u64,
        /// So much is taken.
        limit: u64,
    },
    /// A line does not end as lines do, or the length of a literal is no number.
    Garbled,
}

/// A content that is being read.
struct Reading {
    section: String,
    whole: PartSum,
    body: PartSum,
    head: Vec<u8>,
    /// Where the headers end is known, or it does not matter.
    past_head: bool,
}

/// See the module text.
pub struct Framer {
    literal_bytes_max: u64,
    message: Vec<u8>,
    literals: Vec<Literal>,
    reading: Option<Reading>,
    /// Bytes of a literal that are still to come.
    left: u64,
    /// Where in the message the line begins that is being read.
    line_begin: usize,
}

impl Framer {
    /// A framer that takes contents of so many bytes.
    pub fn new(literal_bytes_max: u64) -> Framer {
        Framer {
            literal_bytes_max,
            message: Vec::new(),
            literals: Vec::new(),
            reading: None,
            left: 0,
            line_begin: 0,
        }
    }

    /// Takes bytes until a response is complete: how many it took, and whether it is.
    ///
    /// # Errors
    /// When the response cannot be read; nothing that follows can be either.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), FrameError> {
        let mut at = 0;
        while at < bytes.len() {
            let here = &bytes[at..];
            if self.left > 0 {
                let count = (here.len() as u64).min(self.left) as usize;
                self.take_literal(&here[..count]);
                at += count;
                continue;
            }
            let end = here.iter().position(|byte| *byte == b'\n');
            let line = &here[..end.map_or(here.len(), |end| end + 1)];
            if self.message.len() + line.len() > MESSAGE_BYTES_MAX {
                return Err(FrameError::TooLong {
                    bytes: (self.message.len() + line.len()) as u64,
                    limit: MESSAGE_BYTES_MAX as u64,
                });
            }
            self.message.extend_from_slice(line);
            at += line.len();
            if end.is_some() && self.end_line()? {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// The response, with empty literals in the place of contents.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// The contents of the response.
    pub fn take_literals(&mut self) -> Vec<Literal> {
        std::mem::take(&mut self.literals)
    }

    /// Gives back the memory of responses that are over.
    pub fn rest(&mut self) {
        self.message.shrink_to_fit();
        self.literals.shrink_to_fit();
    }

    /// The next response begins.
    pub fn begin_next(&mut self) {
        self.message.clear();
        self.literals.clear();
        self.line_begin = 0;
    }

    /// Whether the response is complete, now that a line is.
    fn end_line(&mut self) -> Result<bool, FrameError> {
        let Some(line) = self.message[self.line_begin..].strip_suffix(b"\r\n") else {
            return Err(FrameError::Garbled);
        };
        let Some(announced) = line.strip_suffix(b"}") else {
            return Ok(true);
        };
        let Some(open) = announced.iter().rposition(|byte| *byte == b'{') else {
            return Ok(true);
        };
        let digits = &announced[open + 1..];
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            // Text that ends in a brace, such as a human might write.
            return Ok(true);
        }
        let bytes = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse::<u64>().ok())
            .ok_or(FrameError::Garbled)?;
        let section = section_before(&announced[..open]);
        let limit = match section {
            Some(_) => self.literal_bytes_max,
            None => KEPT_BYTES_MAX,
        };
        if bytes > limit {
            return Err(FrameError::TooLong { bytes, limit });
        }
        if let Some(section) = section {
            let open = self.line_begin + open;
            self.message.truncate(open);
            self.message.extend_from_slice(b"{0}\r\n");
            self.reading = Some(Reading {
                past_head: !(section.is_empty() || section.starts_with("HEADER")),
                section,
                whole: PartSum::default(),
                body: PartSum::default(),
                head: Vec::new(),
            });
        }
        self.left = bytes;
        self.line_begin = self.message.len();
        if bytes == 0 {
            self.end_literal();
        }
        Ok(false)
    }

    fn take_literal(&mut self, bytes: &[u8]) {
        match &mut self.reading {
            Some(reading) => reading.take(bytes),
            None => self.message.extend_from_slice(bytes),
        }
        self.left -= bytes.len() as u64;
        if self.left == 0 {
            self.end_literal();
        }
    }

    fn end_literal(&mut self) {
        self.line_begin = self.message.len();
        if let Some(reading) = self.reading.take() {
            self.literals.push(Literal {
                section: reading.section,
                whole: reading.whole.part(),
                body: reading.body.part(),
                head: reading.head,
            });
        }
    }
}

impl Reading {
    fn take(&mut self, bytes: &[u8]) {
        self.whole.add(bytes);
        if self.past_head {
            if self.section.is_empty() {
                self.body.add(bytes);
            }
            return;
        }
        // The end of the headers may lie across two pieces, so it is looked for a little before.
        let from = self.head.len().saturating_sub(3);
        self.head.extend_from_slice(bytes);
        let found = self.head[from..].windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(found) = found {
            let rest = self.head.split_off(from + found + 4);
            self.past_head = true;
            if self.section.is_empty() {
                self.body.add(&rest);
            }
        } else if self.head.len() > HEAD_BYTES_MAX {
            self.past_head = true;
        }
    }
}

/// What stands in the brackets that a content follows; nothing when none does.
fn section_before(line: &[u8]) -> Option<String> {
    let line = line.strip_suffix(b" ")?;
    // A part of a content, `<0>`, is one too.
    let line = match line.strip_suffix(b">") {
        Some(inner) => &inner[..inner.iter().rposition(|byte| *byte == b'<')?],
        None => line,
    };
    let inner = line.strip_suffix(b"]")?;
    let open = inner.iter().rposition(|byte| *byte == b'[')?;
    Some(String::from_utf8_lossy(&inner[open + 1..]).to_ascii_uppercase())
}
