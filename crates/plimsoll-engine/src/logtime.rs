//! The small fixed-size values that headers are made of: a date ([`LogTime`]), a place in the log
//! ([`LogPosition`]) and the identity of a database or log stream ([`Signature`]).

use std::fmt;

const NANOS_PER_MILLISECOND: u64 = 1_000_000;
const MILLISECONDS_PER_DAY: u64 = 86_400_000;

/// A date and time to the millisecond as ESE writes it, eight bytes; all zero means "never".
///
/// ```text
/// 0 second  1 minute  2 hour  3 day  4 month 1-12  5 year - 1900
/// 6 bit 0: UTC, bits 1-7: low bits of the millisecond   7 bit 0: made by a snapshot, bits 1-3: high bits of the millisecond
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogTime(pub [u8; 8]);

impl LogTime {
    /// "Never".
    pub const NEVER: LogTime = LogTime([0; 8]);

    /// The time `utc_ns` nanoseconds after the start of 1970, to the millisecond. Years past 2155
    /// do not fit and become 2155.
    pub fn from_utc_ns(utc_ns: u64) -> Self {
        let milliseconds = utc_ns / NANOS_PER_MILLISECOND;
        let (year, month, day) = date_of_day(milliseconds / MILLISECONDS_PER_DAY);
        let of_day = milliseconds % MILLISECONDS_PER_DAY;
        let millisecond = (of_day % 1000) as u16;
        Self([
            (of_day / 1000 % 60) as u8,
            (of_day / 60_000 % 60) as u8,
            (of_day / 3_600_000) as u8,
            day,
            month,
            (year - 1900).min(255) as u8,
            1 | ((millisecond & 0x7F) << 1) as u8,
            ((millisecond >> 7) << 1) as u8,
        ])
    }

    /// Nanoseconds since 1970, or nothing for "never", for a date before 1970 and for bytes that
    /// are no date.
    pub fn utc_ns(self) -> Option<u64> {
        let [second, minute, hour, day, month, year, low, high] = self.0.map(u64::from);
        let is_date = second < 61
            && minute < 60
            && hour < 24
            && (1..=31).contains(&day)
            && (1..=12).contains(&month);
        if !is_date || year < 70 {
            return None;
        }
        let millisecond = low >> 1 | (high >> 1 & 7) << 7;
        let seconds =
            day_of_date(year + 1900, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        Some((seconds * 1000 + millisecond) * NANOS_PER_MILLISECOND)
    }

    /// Whether this is "never".
    pub fn is_never(self) -> bool {
        self == Self::NEVER
    }
}

impl fmt::Display for LogTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            return formatter.write_str("never");
        }
        let [second, minute, hour, day, month, year, ..] = self.0;
        let year = 1900 + u16::from(year);
        write!(formatter, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

/// Days are counted in years that begin in March, so that the leap day is the last of its year.
const DAYS_FROM_MARCH_OF_YEAR_0_TO_1970: u64 = 719_468;

fn date_of_day(days_since_1970: u64) -> (u64, u8, u8) {
    let days = days_since_1970 + DAYS_FROM_MARCH_OF_YEAR_0_TO_1970;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month as u8, day as u8)
}

fn day_of_date(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - DAYS_FROM_MARCH_OF_YEAR_0_TO_1970
}

/// A place in a log stream, ordered: generation, then sector of the file, then byte of the sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// Number of the log file; 0 in a position that means "none".
    pub generation: u32,
    /// Sector (segment) of the file.
    pub sector: u16,
    /// Byte of the sector.
    pub byte: u16,
}

impl LogPosition {
    /// "None": before every other position.
    pub const NONE: LogPosition = LogPosition { generation: 0, sector: 0, byte: 0 };

    /// The eight bytes on disk: byte, sector, generation.
    pub fn to_bytes(self) -> [u8; 8] {
        let [b0, b1] = self.byte.to_le_bytes();
        let [s0, s1] = self.sector.to_le_bytes();
        let [g0, g1, g2, g3] = self.generation.to_le_bytes();
        [b0, b1, s0, s1, g0, g1, g2, g3]
    }

    /// From the eight bytes on disk.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let [b0, b1, s0, s1, g0, g1, g2, g3] = bytes;
        Self {
            generation: u32::from_le_bytes([g0, g1, g2, g3]),
            sector: u16::from_le_bytes([s0, s1]),
            byte: u16::from_le_bytes([b0, b1]),
        }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:X},{:X},{:X}", self.generation, self.sector, self.byte)
    }
}

/// Who a database or a log stream is: a random number, when it was made, and a name that is always
/// empty. The log of one database is refused another by it, so no two databases should have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Random number.
    pub random: u32,
    /// When it was made.
    pub created: LogTime,
    /// Computer name; ESE has long written zeros here.
    pub name: [u8; 16],
}

impl Signature {
    /// Bytes on disk.
    pub const BYTES: usize = 28;
    /// Bytes on disk before the name.
    pub const NAMELESS_BYTES: usize = 12;

    /// A new signature, of a number drawn for it and the time, as from [`LogTime::from_utc_ns`].
    pub fn new(random: u32, created: LogTime) -> Self {
        Self { random, created, name: [0; 16] }
    }

    /// The same with an empty name: what makes it differ from others.
    pub fn without_name(self) -> Self {
        Self::new(self.random, self.created)
    }

    /// The bytes on disk.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.random.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.created.0);
        bytes[12..].copy_from_slice(&self.name);
        bytes
    }

    /// From the bytes on disk.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let mut signature = Self::default();
        let (random, rest) = bytes.split_at(4);
        let (created, name) = rest.split_at(8);
        signature.random = u32::from_le_bytes(random.try_into().expect("four bytes"));
        signature.created.0.copy_from_slice(created);
        signature.name.copy_from_slice(name);
        signature
    }
}
