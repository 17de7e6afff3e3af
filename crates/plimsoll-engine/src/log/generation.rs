//! One generation of the log, read and checked: which of its units are sound, where its readable
//! part ends, and the records in it.
//!
//! The readable part of a generation ends at the first unit that is blank, bad or not full. What
//! lies behind it decides what that end means: units of the very next flush are an unfinished write
//! after the last acknowledged one; units of a later flush prove that acknowledged log is gone,
//! which is an error.

use std::path::{Path, PathBuf};

use plimsoll_io::Buffer;

use super::framing::{Framing, UnitState};
use super::header::GenerationHeader;
use super::record::LogRecord;
use super::{HEADER_BYTES, Lsn};
use crate::error::{EngineError, Result};

/// Bytes of one read; with the header read apart a generation takes a handful, all under way at
/// once.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// One generation, read and checked.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Its file.
    pub path: PathBuf,
    /// Its header.
    pub header: GenerationHeader,
    /// Its record stream.
    pub payload: Vec<u8>,
    /// The last flush seen in the readable part.
    pub flush: u32,
    /// Units that were bad or unreadable behind the readable end: an unfinished flush.
    pub torn_units: u32,
    /// Units that were bad and read from their shadow.
    pub shadows_used: u32,
}

impl Generation {
    /// Where its readable part ends.
    pub fn end(&self) -> Lsn {
        Lsn::new(self.header.generation, self.payload.len() as u32)
    }

    /// Whether it reads further than the generation that follows it says that it went: that log was
    /// given up.
    pub fn goes_beyond(&self, next: &GenerationHeader) -> bool {
        next.previous_created == self.header.created
            && next.generation == self.header.generation + 1
            && next.previous_end < self.end()
    }

    /// Whether both are one generation, of which the other can be read at least as far.
    pub(super) fn is_beginning_of(&self, other: &Generation) -> bool {
        self.header == other.header && other.payload.starts_with(&self.payload)
    }

    /// Leaves out what lies behind `end`.
    pub(crate) fn cut_at(&mut self, end: Lsn) {
        self.payload.truncate(end.offset as usize);
    }

    /// Fails where reading was to go on behind its end: the reader knows log that a power cut took
    /// back, or that was given up.
    pub(super) fn check_reaches(&self, from: Lsn) -> Result<()> {
        if from <= self.end() {
            return Ok(());
        }
        Err(EngineError::ForeignLog {
            path: self.path.clone(),
            why: format!(
                "it ends at {}, and reading was to go on from {from}: what lies between is not of \
                 this history",
                self.end()
            ),
        })
    }

    /// Where the last of its records from payload offset `from` on ends: behind it may lie the
    /// beginning of a record whose flush never ended.
    pub fn end_of_records(&self, from: u32) -> Lsn {
        let mut records = self.records(from);
        while records.next().is_some() {}
        records.place()
    }

    /// The records from payload offset `from` on. `end` is where the last complete record ends.
    pub fn records(&self, from: u32) -> Records<'_> {
        Records { generation: self, offset: from as usize }
    }
}

/// Iterator over the records of a generation: place of the record, the record.
pub struct Records<'a> {
    generation: &'a Generation,
    offset: usize,
}

impl Records<'_> {
    /// Where the next record starts, or where reading stopped.
    pub fn place(&self) -> Lsn {
        Lsn::new(self.generation.header.generation, self.offset as u32)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<(Lsn, LogRecord)>;

    fn next(&mut self) -> Option<Self::Item> {
        let payload = &self.generation.payload;
        while self.offset < payload.len() && payload[self.offset] == 0 {
            self.offset += 1;
        }
        let at = self.place();
        match LogRecord::decode(payload.get(self.offset..)?) {
            Ok(Some((record, used_bytes))) => {
                self.offset += used_bytes;
                Some(Ok((at, record)))
            }
            Ok(None) => None,
            // The tail of an unfinished flush may end inside a record: that record was never
            // acknowledged.
            Err("a record is longer than the log") => None,
            Err(why) => {
                let header = &self.generation.header;
                let unit = header.framing.unit_of(at.offset);
                let offset = u64::from(unit) * header.framing.unit_bytes() as u64;
                self.offset = payload.len();
                Some(Err(EngineError::LogCorrupt {
                    path: self.generation.path.clone(),
                    offset,
                    why: why.into(),
                }))
            }
        }
    }
}

/// Checks every unit behind the header, in the parts in which it was read.
pub(super) fn check_units(
    path: &Path,
    header: GenerationHeader,
    parts: &[Buffer],
) -> Result<Generation> {
    let framing = header.framing;
    let unit_bytes = framing.unit_bytes();
    let last_payload_unit =
        framing.first_unit() + framing.capacity_bytes() / framing.payload_bytes() as u32;
    // No unit lies in two parts.
    let unit_at = |index: u32| {
        let offset = index as usize * unit_bytes - HEADER_BYTES;
        &parts[offset / READ_BYTES][offset % READ_BYTES..][..unit_bytes]
    };
    let mut generation = Generation {
        path: path.to_owned(),
        flush: header.flush,
        header,
        payload: Vec::new(),
        torn_units: 0,
        shadows_used: 0,
    };
    let mut index = framing.first_unit();
    while index < last_payload_unit {
        let Some((flush, used_bytes, from)) =
            readable(framing, &generation.header, index, &unit_at)
        else {
            break;
        };
        // On devices with larger blocks a flush rewrites older sectors, so the numbers need not
        // rise from unit to unit.
        if flushes_between(generation.flush, flush) > 0 {
            generation.flush = flush;
        }
        generation.shadows_used += u32::from(from != index);
        generation.payload.extend_from_slice(&framing.payload(unit_at(from))[..used_bytes]);
        index += 1;
        if used_bytes < framing.payload_bytes() {
            break;
        }
    }
    check_beyond(&mut generation, index, framing, &unit_at)?;
    Ok(generation)
}

/// The flush, used bytes and place of the unit that holds the payload of `index`: itself, or its
/// shadow if it is torn.
fn readable<'a>(
    framing: Framing,
    header: &GenerationHeader,
    index: u32,
    unit_at: &impl Fn(u32) -> &'a [u8],
) -> Option<(u32, usize, u32)> {
    match framing.decode(unit_at(index), header.generation, index) {
        UnitState::Good { flush, used_bytes, stands_for } if stands_for == index => {
            Some((flush, used_bytes, index))
        }
        // A shadow where a payload unit is expected: the flush that would have replaced it never
        // started.
        UnitState::Good { .. } | UnitState::Blank => None,
        UnitState::Bad if framing.has_shadow() => {
            match framing.decode(unit_at(index + 1), header.generation, index + 1) {
                UnitState::Good { flush, used_bytes, stands_for } if stands_for == index => {
                    Some((flush, used_bytes, index + 1))
                }
                _ => None,
            }
        }
        UnitState::Bad => None,
    }
}

/// How many flushes one is after another; negative where it is before. The numbers begin again at
/// their end, and in one generation there are never as many as half of them.
fn flushes_between(one: u32, other: u32) -> i32 {
    other.wrapping_sub(one).cast_signed()
}

/// Units behind the readable end may only come from the flush that was under way when the log
/// stopped.
fn check_beyond<'a>(
    generation: &mut Generation,
    end: u32,
    framing: Framing,
    unit_at: &impl Fn(u32) -> &'a [u8],
) -> Result<()> {
    for index in end..framing.units_per_file() {
        match framing.decode(unit_at(index), generation.header.generation, index) {
            UnitState::Blank => {}
            UnitState::Bad => generation.torn_units += 1,
            UnitState::Good { flush, stands_for, .. } => {
                let is_shadow_of_end = stands_for + 1 == index && stands_for < end;
                if flushes_between(generation.flush, flush) > 1 && !is_shadow_of_end {
                    return Err(EngineError::LogCorrupt {
                        path: generation.path.clone(),
                        offset: u64::from(end) * framing.unit_bytes() as u64,
                        why: format!(
                            "flush {} can be read, flush {flush} behind it was written later: \
                             acknowledged log is lost",
                            generation.flush
                        ),
                    });
                }
                if !is_shadow_of_end {
                    generation.torn_units += 1;
                }
            }
        }
    }
    Ok(())
}
