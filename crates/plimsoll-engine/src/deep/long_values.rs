//! Long values: chunks without gaps, lengths as their heads say, exactly as many references as
//! counted. A chunk whose bytes are fewer than the stretch it stands for is compressed, and must
//! expand to exactly that stretch.
//!
//! References are compared by bucketed sums: each reference adds the hash of its number to a
//! bucket, each head takes its count times that hash away. Buckets that are not zero at the end
//! hold a disagreement; only then the trees are walked again, for the numbers.

use std::collections::BTreeMap;

// Circle: what is counted goes into the report of the whole, which is declared above.
use super::DeepReport;
use super::finding::{Finding, Findings};
// Circle: rows refer to long values, and long values are counted by the rows that refer to them.
use super::rows::{Records, for_each_reference};
use super::sums::hash_number;
use super::walk::{Line, Visitor, Walk, Walker};
use crate::catalog::PlacedTable;
use crate::page::{Node, page_flags};
use crate::reader::{CompressionFault, Packed, ReadError, decompress};
use crate::{PageNumber, PageSize, Record, RecordLayout, column_flags};

/// Numbers looked at one by one when something disagrees.
const NUMBERS_MAX: usize = 100_000;

/// References to the long values of one table, as sums.
pub(super) struct References {
    buckets: Vec<u64>,
    is_any: bool,
}

impl References {
    pub(super) fn new(page_max: PageNumber) -> Self {
        let buckets = (page_max as usize / 64).clamp(64, 65_536).next_power_of_two();
        Self { buckets: vec![0; buckets], is_any: false }
    }

    fn bucket(&self, long_value: u64) -> usize {
        hash_number(long_value) as usize & (self.buckets.len() - 1)
    }

    pub(super) fn add(&mut self, long_value: u64) {
        self.is_any = true;
        let bucket = self.bucket(long_value);
        self.buckets[bucket] = self.buckets[bucket].wrapping_add(hash_number(long_value) | 1);
    }

    fn take_away(&mut self, long_value: u64, count: u32) {
        let bucket = self.bucket(long_value);
        let counted = (hash_number(long_value) | 1).wrapping_mul(count.into());
        self.buckets[bucket] = self.buckets[bucket].wrapping_sub(counted);
    }

    fn disagrees(&self, long_value: u64) -> bool {
        self.buckets[self.bucket(long_value)] != 0
    }
}

/// Checks the long values of a table against the references its records hold.
pub(super) async fn check(
    walker: &mut Walker,
    placed: &PlacedTable,
    records: &mut Records<'_>,
    report: &mut DeepReport,
) -> Result<(), ReadError> {
    if let Some(place) = placed.long_values {
        let page_bytes = walker.page_size().bytes();
        let mut values = Values::new(placed, &mut records.references, page_bytes);
        walker.walk(place, page_flags::LONG_VALUE, Walk::First, &mut values).await?;
        values.end(&mut walker.findings);
        report.long_values += values.count;
        if values.has_later_method {
            let what = format!("lengths of some long values of table {}", placed.table.name);
            walker.findings.not_checked(what, "they are compressed in a way of a later format");
        }
    } else if !records.references.is_any {
        return Ok(());
    }
    let objects: Vec<u32> = placed.places().iter().map(|place| place.object).collect();
    let has_disagreements = records.references.buckets.iter().any(|sum| *sum != 0);
    if has_disagreements && walker.is_incomplete(&objects) {
        let what = format!("references to long values of table {}", placed.table.name);
        walker.findings.not_checked(what, "a tree of the table could not be read in full");
    } else if has_disagreements {
        name_disagreements(walker, placed, &records.references).await?;
    }
    Ok(())
}

/// Visits a long-value tree.
struct Values<'a> {
    table: &'a str,
    page_bytes: usize,
    /// Whether chunks may be checked by their lengths: what is encrypted cannot be.
    is_checked: bool,
    references: &'a mut References,
    current: Option<Current>,
    /// Nodes were left out; chunks up to the next head may belong to one of them.
    is_after_gap: bool,
    count: u64,
    /// A chunk is compressed by a method of a later format, so that its length cannot be checked.
    has_later_method: bool,
}

struct Current {
    long_value: u64,
    length_bytes: u64,
    /// The last chunk met: its offset and what is stored. Its length is checked when it is known
    /// where the next one begins.
    last: Option<(u64, Vec<u8>)>,
}

impl Current {
    /// Whether the last chunk holds the value from its offset to `end`.
    fn reaches(&self, end: u64, page_bytes: usize) -> Reaches {
        let Some((offset, stored)) = &self.last else {
            return if end == 0 { Reaches::Yes } else { Reaches::No };
        };
        match Packed::of(stored, end.saturating_sub(*offset), page_bytes) {
            Packed::Plain => Reaches::Yes,
            Packed::Impossible => Reaches::No,
            Packed::Compressed { bytes } => match decompress(stored, bytes) {
                Ok(plain) if plain.len() == bytes => Reaches::Yes,
                Err(CompressionFault::Method { method }) if CompressionFault::is_later(method) => {
                    Reaches::Unknown
                }
                _ => Reaches::No,
            },
        }
    }

    fn found_bytes(&self) -> u64 {
        self.last.as_ref().map_or(0, |(offset, stored)| offset + stored.len() as u64)
    }
}

/// Whether a chunk fills its stretch.
#[derive(PartialEq, Eq)]
enum Reaches {
    Yes,
    No,
    Unknown,
}

impl<'a> Values<'a> {
    fn new(placed: &'a PlacedTable, references: &'a mut References, page_bytes: usize) -> Self {
        let mut flags = placed.table.columns.iter().map(|column| column.flags);
        Self {
            table: &placed.table.name,
            page_bytes,
            is_checked: flags.all(|flags| flags & column_flags::ENCRYPTED == 0),
            references,
            current: None,
            is_after_gap: false,
            count: 0,
            has_later_method: false,
        }
    }

    /// Reports the value that ends here if its length is wrong.
    fn end(&mut self, findings: &mut Findings) {
        let Some(current) = self.current.take() else {
            return;
        };
        if !self.is_checked {
            return;
        }
        let reaches = current.reaches(current.length_bytes, self.page_bytes);
        self.has_later_method |= reaches == Reaches::Unknown;
        if reaches == Reaches::No {
            findings.push(Finding::LongValueLength {
                table: self.table.to_owned(),
                long_value: current.long_value,
                found_bytes: current.found_bytes(),
                expected_bytes: current.length_bytes,
            });
        }
    }

    fn head(&mut self, long_value: u64, data: &[u8]) -> Result<(), &'static str> {
        let (counts, _) = data.as_chunks::<4>();
        let [references, length] = counts.first_chunk::<2>().ok_or("the head is too short")?;
        self.count += 1;
        self.is_after_gap = false;
        self.references.take_away(long_value, u32::from_le_bytes(*references));
        self.current = Some(Current {
            long_value,
            length_bytes: u32::from_le_bytes(*length).into(),
            last: None,
        });
        Ok(())
    }

    fn chunk(&mut self, long_value: u64, offset: u32, data: &[u8]) -> Result<(), &'static str> {
        if self.is_after_gap {
            return Ok(());
        }
        let current = self.current.as_mut().filter(|current| current.long_value == long_value);
        let current = current.ok_or("a chunk without a head")?;
        let reaches = match self.is_checked {
            true => current.reaches(offset.into(), self.page_bytes),
            false => Reaches::Yes,
        };
        self.has_later_method |= reaches == Reaches::Unknown;
        // One buffer serves all chunks of a value.
        let mut stored = current.last.take().map_or_else(Vec::new, |(_, stored)| stored);
        stored.clear();
        stored.extend_from_slice(data);
        current.last = Some((offset.into(), stored));
        if reaches == Reaches::No {
            Err("a chunk is missing or overlaps the one before")
        } else {
            Ok(())
        }
    }
}

impl Visitor for Values<'_> {
    fn gap(&mut self) {
        self.current = None;
        self.is_after_gap = true;
    }

    fn node(&mut self, at: Line, key: &[u8], node: &Node<'_>, findings: &mut Findings) {
        let outcome = match parse_key(key) {
            Some((long_value, None)) => {
                self.end(findings);
                self.head(long_value, node.data)
            }
            Some((long_value, Some(offset))) => self.chunk(long_value, offset, node.data),
            None => Err("the key is neither that of a head nor that of a chunk"),
        };
        if let Err(problem) = outcome {
            let (Line { page, line }, table) = (at, self.table.to_owned());
            findings.push(Finding::BadLongValue { page, line, table, problem });
        }
    }
}

/// Number, and offset for a chunk. Later formats (from 110 on) number with eight bytes, of which
/// the highest bit is set; a number of four bytes never has it.
fn parse_key(key: &[u8]) -> Option<(u64, Option<u32>)> {
    const LONG_NUMBER: u8 = 0x80;
    let number_bytes = match key.first()? & LONG_NUMBER {
        0 => 4,
        _ => 8,
    };
    let (number, offset) = key.split_at_checked(number_bytes)?;
    let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match *offset {
        [] => Some((number, None)),
        [a, b, c, d] => Some((number, Some(u32::from_be_bytes([a, b, c, d])))),
        _ => None,
    }
}

/// References found and counted, by number.
type Numbers = BTreeMap<u64, (u64, u64)>;

async fn name_disagreements(
    walker: &mut Walker,
    placed: &PlacedTable,
    references: &References,
) -> Result<(), ReadError> {
    let mut found = Found {
        layout: RecordLayout::of_placed(placed),
        page_size: walker.page_size(),
        references,
        numbers: Numbers::new(),
    };
    walker.walk(placed.place, 0, Walk::Again, &mut found).await?;
    let mut counted = Counted { references, numbers: found.numbers };
    if let Some(place) = placed.long_values {
        walker.walk(place, page_flags::LONG_VALUE, Walk::Again, &mut counted).await?;
    }
    for (long_value, (found, counted)) in counted.numbers {
        if found != counted {
            walker.findings.push(Finding::LongValueReferences {
                table: placed.table.name.clone(),
                long_value,
                counted,
                found,
            });
        }
    }
    Ok(())
}

/// The entry of a number that may disagree, as long as there is room.
fn entry<'n>(
    references: &References,
    numbers: &'n mut Numbers,
    long_value: u64,
) -> Option<&'n mut (u64, u64)> {
    let has_room = numbers.len() < NUMBERS_MAX || numbers.contains_key(&long_value);
    (references.disagrees(long_value) && has_room).then(|| numbers.entry(long_value).or_default())
}

struct Found<'r> {
    layout: RecordLayout,
    page_size: PageSize,
    references: &'r References,
    numbers: Numbers,
}

impl Visitor for Found<'_> {
    fn node(&mut self, _: Line, _: &[u8], node: &Node<'_>, _: &mut Findings) {
        if let Ok(record) = Record::parse(node.data, &self.layout, self.page_size) {
            for_each_reference(&record, |long_value| {
                if let Some(entry) = entry(self.references, &mut self.numbers, long_value) {
                    entry.0 += 1;
                }
            });
        }
    }
}

struct Counted<'r> {
    references: &'r References,
    numbers: Numbers,
}

impl Visitor for Counted<'_> {
    fn node(&mut self, _: Line, key: &[u8], node: &Node<'_>, _: &mut Findings) {
        if let Some((long_value, None)) = parse_key(key)
            && let Some(count) = node.data.first_chunk::<4>()
            && let Some(entry) = entry(self.references, &mut self.numbers, long_value)
        {
            entry.1 += u64::from(u32::from_le_bytes(*count));
        }
    }
}
