//! The bytes of a record: a pure function of the database's key, the record number and its version.
//!
//! ```text
//! u8 last fixed column 5, u8 last variable column 128, u16 end of fixed data
//! 1 Number i64 | 2 Scatter i64 | 3 Version i32 | 4 Size i32 | 5 Check i64 | null bitmap 0xE0
//! u16 end of the short pad | 128 ShortPad
//! {u16 256, u16 place} [{u16 257, u16 place}] | 01 256 LongPad [| 05 u32 long-value id, 257 Body]
//! ```
//!
//! Size is the length of both pads together, Check the wrapping sum of their 64-bit words, so that
//! any reader can tell a damaged record without this code. A record with a long value has a long
//! pad shorter by what the reference takes: all records of a database are equally long, which keeps
//! the layout in closed form.

use super::filler::{derive, fill, word};
use super::keys::{KEY_PREFIX_BYTES, NUMBER_KEY_BYTES, node_space_bytes};
use super::permutation::Permutation;
use super::plan::{LongValues, Plan, PlanError, RECORD_NUMBER_MAX, Sharing};

/// End of the fixed columns and their null bitmap.
const FIXED_END: usize = 37;
/// Where the short pad begins.
const SHORT_PAD_START: usize = FIXED_END + 2;
/// Tag-array entry, extended-information byte and long-value id of the Body column.
const REFERENCE_BYTES: usize = 4 + 1 + 4;
/// On small pages, marks a tagged value that begins with an extended-information byte; large pages
/// always have one.
const HAS_EXTENDED_INFO: u16 = 0x4000;
const TAG_BYTES: usize = 4;

/// Column identifiers of the prepared table.
pub mod column {
    /// Record number, the primary key.
    pub const NUMBER: u16 = 1;
    /// A permutation of the record numbers, the secondary key.
    pub const SCATTER: u16 = 2;
    /// How often the record was replaced.
    pub const VERSION: u16 = 3;
    /// Bytes of both pads.
    pub const SIZE: u16 = 4;
    /// Sum of the pads' words.
    pub const CHECK: u16 = 5;
    /// The short pad.
    pub const SHORT_PAD: u16 = 128;
    /// The long pad, inside the record.
    pub const LONG_PAD: u16 = 256;
    /// The long value outside the record.
    pub const BODY: u16 = 257;
}

/// How to write records of one database.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordForm {
    short_pad_bytes: usize,
    long_pad_bytes: usize,
    random_percent: usize,
    long_values: Option<LongValues>,
    is_large: bool,
    key: u64,
    shared: Option<SharedLeaves>,
    pub permutation: Permutation,
    /// Records prepared; later ones have no long value of their own.
    records: u64,
}

/// The leaves a database has in common with others, and what their records are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedLeaves {
    choice_key: u64,
    record_key: u64,
    /// What their vacancies are made from.
    pub vacancy_key: u64,
    leaves_per_million: u32,
    per_leaf: u64,
}

impl SharedLeaves {
    fn new(sharing: Sharing, per_leaf: u64) -> Self {
        // Databases are numbered from 1 here, so none has this key for its own.
        let key = derive(sharing.seed, 0);
        Self {
            choice_key: derive(key, 5),
            record_key: derive(key, 1),
            vacancy_key: derive(key, 4),
            leaves_per_million: sharing.leaves_per_million,
            per_leaf,
        }
    }

    fn holds(&self, number: u64) -> bool {
        word(self.choice_key, number / self.per_leaf) % 1_000_000
            < u64::from(self.leaves_per_million)
    }
}

/// The values of one record, for callers that build records column by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordColumns {
    /// Primary key.
    pub number: i64,
    /// Secondary key.
    pub scatter: i64,
    /// Version.
    pub version: i32,
    /// Bytes of both pads.
    pub size: i32,
    /// Sum of the pads' words.
    pub check: i64,
    /// Short pad.
    pub short_pad: Vec<u8>,
    /// Long pad, to be kept inside the record.
    pub long_pad: Vec<u8>,
    /// Identifier of the prepared long value, if the record has one.
    pub body: Option<u32>,
}

impl RecordForm {
    pub(super) fn new(plan: &Plan, key: u64, records: u64) -> Self {
        // The scatter column is part of a record, so databases that share leaves share the
        // permutation too.
        let permutation_key = match plan.sharing {
            Some(sharing) => derive(derive(sharing.seed, 0), 2),
            None => derive(key, 2),
        };
        let form = Self {
            short_pad_bytes: plan.shape.short_pad_bytes.into(),
            long_pad_bytes: plan.shape.long_pad_bytes.into(),
            random_percent: 100 - usize::from(plan.compressible_percent),
            long_values: plan.long_values,
            is_large: plan.page_size.is_large(),
            key: derive(key, 1),
            shared: None,
            permutation: Permutation::new(records, permutation_key),
            records,
        };
        let per_leaf = form.per_leaf(plan);
        let shared = plan.sharing.map(|sharing| SharedLeaves::new(sharing, per_leaf));
        Self { shared, ..form }
    }

    /// The sharing of the leaf on which a record was prepared, if that leaf is shared. Records
    /// added later are not.
    pub(super) fn shared_leaf(&self, number: u64) -> Option<SharedLeaves> {
        self.shared.filter(|shared| number < self.records && shared.holds(number))
    }

    /// Length of every record.
    pub(super) fn bytes(&self) -> usize {
        SHORT_PAD_START + self.short_pad_bytes + 4 + 1 + self.long_pad_bytes
    }

    pub(super) fn per_leaf(&self, plan: &Plan) -> u64 {
        let space_bytes = node_space_bytes(plan.page_size, KEY_PREFIX_BYTES);
        let filled_bytes = space_bytes * usize::from(plan.leaf_fill_percent) / 100;
        (filled_bytes / (node_overhead_bytes() + self.bytes())).max(1) as u64
    }

    /// The identifier of the record's prepared long value.
    pub(super) fn value_id(&self, number: u64) -> Option<u32> {
        let every = self.long_values?.every;
        let has_one = number < self.records && number.is_multiple_of(every);
        has_one.then(|| (number / every + 1) as u32)
    }

    /// Writes the record; `bytes` has exactly the right length.
    pub(super) fn write(&self, number: u64, version: u32, bytes: &mut [u8]) {
        let value_id = self.value_id(number);
        let long_pad_bytes = self.long_pad_bytes(value_id);
        let (fixed, rest) = bytes.split_at_mut(SHORT_PAD_START);
        let (short_pad, tagged) = rest.split_at_mut(self.short_pad_bytes);
        let (tags, long_pad, reference) = split_tagged(tagged, long_pad_bytes, value_id);
        let check = self.fill_pads(number, version, short_pad, long_pad);
        let scatter = self.permutation.forward(number);
        fixed[..4].copy_from_slice(&[5, 128, FIXED_END as u8, 0]);
        fixed[4..12].copy_from_slice(&number.to_le_bytes());
        fixed[12..20].copy_from_slice(&scatter.to_le_bytes());
        fixed[20..24].copy_from_slice(&version.to_le_bytes());
        let size = (short_pad.len() + long_pad.len()) as u32;
        fixed[24..28].copy_from_slice(&size.to_le_bytes());
        fixed[28..36].copy_from_slice(&check.to_le_bytes());
        fixed[36] = 0xE0;
        fixed[37..39].copy_from_slice(&(self.short_pad_bytes as u16).to_le_bytes());
        let mark = if self.is_large { 0 } else { HAS_EXTENDED_INFO };
        let array_bytes = if value_id.is_some() { 8 } else { 4 };
        put_tag(&mut tags[..4], column::LONG_PAD, array_bytes | mark);
        tags[usize::from(array_bytes)] = 1;
        if let Some(value_id) = value_id {
            let place = array_bytes + 1 + long_pad.len() as u16;
            put_tag(&mut tags[4..8], column::BODY, place | mark);
            reference[0] = 5;
            reference[1..].copy_from_slice(&value_id.to_le_bytes());
        }
    }

    fn long_pad_bytes(&self, value_id: Option<u32>) -> usize {
        let reference_bytes = if value_id.is_some() { REFERENCE_BYTES } else { 0 };
        self.long_pad_bytes - reference_bytes
    }

    fn fill_pads(
        &self,
        number: u64,
        version: u32,
        short_pad: &mut [u8],
        long_pad: &mut [u8],
    ) -> u64 {
        let database_key = self.shared_leaf(number).map_or(self.key, |shared| shared.record_key);
        let key = derive(derive(database_key, number), version.into());
        let random_bytes = |bytes: usize| bytes * self.random_percent / 100;
        let sum = fill(short_pad, derive(key, 1), random_bytes(short_pad.len()));
        sum.wrapping_add(fill(long_pad, key, random_bytes(long_pad.len())))
    }

    /// The record's values.
    pub(super) fn columns(&self, number: u64, version: u32) -> RecordColumns {
        let body = self.value_id(number);
        let mut short_pad = vec![0; self.short_pad_bytes];
        let mut long_pad = vec![0; self.long_pad_bytes(body)];
        let check = self.fill_pads(number, version, &mut short_pad, &mut long_pad);
        RecordColumns {
            number: number as i64,
            scatter: self.permutation.forward(number) as i64,
            version: version as i32,
            size: (short_pad.len() + long_pad.len()) as i32,
            check: check as i64,
            short_pad,
            long_pad,
            body,
        }
    }

    /// The number and version a record claims, if it has the form of ours.
    pub(super) fn identify(&self, record: &[u8]) -> Option<(u64, u32)> {
        (record.len() == self.bytes()).then(|| self.identify_head(record)).flatten()
    }

    /// The number and version that the beginning of a record claims.
    pub(super) fn identify_head(&self, head: &[u8]) -> Option<(u64, u32)> {
        let number = u64::from_le_bytes(head.get(4..12)?.try_into().ok()?);
        let version = u32::from_le_bytes(head.get(20..24)?.try_into().ok()?);
        let is_ours = head[..4] == [5, 128, FIXED_END as u8, 0] && number < RECORD_NUMBER_MAX;
        is_ours.then_some((number, version))
    }
}

/// Tag, key words and key suffix of a record's node.
fn node_overhead_bytes() -> usize {
    TAG_BYTES + 4 + NUMBER_KEY_BYTES - KEY_PREFIX_BYTES
}

/// Splits the tagged area into array with the first information byte, long pad and reference.
fn split_tagged(
    tagged: &mut [u8],
    long_pad_bytes: usize,
    value_id: Option<u32>,
) -> (&mut [u8], &mut [u8], &mut [u8]) {
    let head_bytes = if value_id.is_some() { 9 } else { 5 };
    let (head, rest) = tagged.split_at_mut(head_bytes);
    let (long_pad, reference) = rest.split_at_mut(long_pad_bytes);
    (head, long_pad, reference)
}

fn put_tag(bytes: &mut [u8], column: u16, place: u16) {
    bytes[..2].copy_from_slice(&column.to_le_bytes());
    bytes[2..].copy_from_slice(&place.to_le_bytes());
}

/// Whether a record of this shape fits a page and its own long pad.
pub(super) fn check(plan: &Plan) -> Result<(), PlanError> {
    let bytes = RecordForm::new(plan, 0, 0).bytes();
    let bytes_max = node_space_bytes(plan.page_size, KEY_PREFIX_BYTES) - node_overhead_bytes();
    if bytes > bytes_max {
        return Err(PlanError::RecordTooLong { bytes, bytes_max });
    }
    let pad_bytes = usize::from(plan.shape.long_pad_bytes);
    if plan.long_values.is_some() && pad_bytes < REFERENCE_BYTES {
        return Err(PlanError::PadTooShort { bytes_min: REFERENCE_BYTES });
    }
    Ok(())
}
