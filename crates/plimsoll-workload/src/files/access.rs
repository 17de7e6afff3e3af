//! An access specification: lines of which one is drawn for every burst, each with a size, a mix of
//! reads and random places, and what goes with it. The meaning of every field is Iometer's (its
//! `IOGrunt.cpp`, `IOAccess.cpp` and users' guide).

use plimsoll_io::Random;

/// Lines that a specification has at most, as in Iometer.
const LINES_MAX: usize = 100;

/// One line of an access specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessLine {
    /// How many of a hundred bursts are of this line.
    pub share_percent: u32,
    /// Bytes of a request.
    pub size_bytes: u64,
    /// How many of a hundred requests read; the others write.
    pub read_percent: u32,
    /// How many of a hundred transfers go to a random place; the others follow on the one before.
    pub random_percent: u32,
    /// What the worker waits before a burst.
    pub delay_ms: u64,
    /// Transactions of a burst.
    pub burst: u32,
    /// Transfers begin at multiples of this; 0 for the sectors of the storage.
    pub align_bytes: u64,
    /// Bytes that answer each request in the opposite direction; 0 for none.
    pub reply_bytes: u64,
}

/// What is wrong with a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// So many lines.
    Lines(usize),
    /// The shares make this.
    SharesSumTo(u64),
    /// A line, counted from 1, and what is wrong with it.
    Line(usize, &'static str),
}

impl std::fmt::Display for AccessError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AccessError::Lines(count) => {
                write!(formatter, "{count} access lines; write 1 to {LINES_MAX}")
            }
            AccessError::SharesSumTo(sum) => {
                write!(formatter, "the shares of the access lines add up to {sum} %; make them 100")
            }
            AccessError::Line(number, what) => write!(formatter, "access line {number} {what}"),
        }
    }
}

impl std::error::Error for AccessError {}

/// A checked access specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    lines: Vec<AccessLine>,
}

impl Access {
    /// A specification of these lines.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn new(lines: Vec<AccessLine>) -> Result<Access, AccessError> {
        if lines.is_empty() || lines.len() > LINES_MAX {
            return Err(AccessError::Lines(lines.len()));
        }
        for (index, line) in lines.iter().enumerate() {
            let wrong = |what| Err(AccessError::Line(index + 1, what));
            if line.size_bytes == 0 {
                return wrong("has a size of 0 bytes; take at least 1");
            }
            if line.burst == 0 {
                return wrong("has bursts of 0 transactions; take at least 1");
            }
            if line.read_percent > 100 || line.random_percent > 100 {
                return wrong("has a share above 100 %");
            }
        }
        let sum = lines.iter().map(|line| u64::from(line.share_percent)).sum();
        if sum != 100 {
            return Err(AccessError::SharesSumTo(sum));
        }
        Ok(Access { lines })
    }

    /// Its lines.
    pub fn lines(&self) -> &[AccessLine] {
        &self.lines
    }

    /// The same with the boundaries of each line as `align_of` says.
    pub fn aligned(&self, align_of: impl Fn(&AccessLine) -> u64) -> Access {
        let each = self.lines.iter();
        Access {
            lines: each.map(|line| AccessLine { align_bytes: align_of(line), ..*line }).collect(),
        }
    }

    /// Draws the line of a burst.
    pub fn draw(&self, random: &mut Random) -> AccessLine {
        let mut ticket = random.below(100);
        for line in &self.lines {
            let share = u64::from(line.share_percent);
            if ticket < share {
                return *line;
            }
            ticket -= share;
        }
        unreachable!("the shares make 100")
    }

    /// The longest transfer.
    pub fn largest_bytes(&self) -> u64 {
        let sizes = self.lines.iter().map(|line| line.size_bytes.max(line.reply_bytes));
        sizes.max().unwrap_or(0)
    }

    /// Whether any line makes its worker wait.
    pub fn delays(&self) -> bool {
        self.lines.iter().any(|line| line.delay_ms > 0)
    }
}
