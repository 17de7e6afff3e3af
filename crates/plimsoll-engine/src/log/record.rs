//! Log records. Our own bodies under type numbers from 0x80, outside the range of real ESE records.
//!
//! ```text
//! record  = u8 type | LEB128 body length | body            a zero byte where a type is expected is padding
//! ROW     = transaction, database, root page, object, page, dbtime, dbtime before, line, compensation flag, key, change
//! STRUCT  = database, dbtime, pages the database owns after it (0: unchanged), count of pages,
//!           per page: number, dbtime before, count of edits, edits
//! IMAGE   = database, page, the page without its free space
//! ```

use crate::PageNumber;
use crate::edit::{Edit, RowChange, line};
use crate::log::Lsn;
use crate::log::wire::{PutWire, TakeWire};
use crate::logtime::Signature;

/// A row change with everything redo and undo need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRecord {
    /// The transaction, 0 for clean-up outside any.
    pub transaction: u64,
    /// Database number.
    pub database: u8,
    /// Root page of the tree: undo starts there.
    pub root: PageNumber,
    /// Object of the tree.
    pub object: u32,
    /// The leaf.
    pub page: PageNumber,
    /// Database time after.
    pub dbtime: u64,
    /// Database time of the leaf before.
    pub dbtime_before: u64,
    /// Line on the leaf.
    pub line: u16,
    /// Whether this undoes the transaction's latest change that is not yet undone.
    pub compensation: bool,
    /// Whole key of the row.
    pub key: Vec<u8>,
    /// The change.
    pub change: RowChange,
}

/// The edits of one page in a structural change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEdits {
    /// The page.
    pub page: PageNumber,
    /// Its database time before; irrelevant if the first edit makes it anew.
    pub dbtime_before: u64,
    /// The edits in order.
    pub edits: Vec<Edit>,
}

/// A change of several pages that happens whole or not at all: split, merge, space allocation,
/// extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureRecord {
    /// Database number.
    pub database: u8,
    /// Database time after, for every page of it.
    pub dbtime: u64,
    /// Pages the database owns afterwards; 0 if unchanged.
    pub pages_owned: u32,
    /// The pages.
    pub pages: Vec<PageEdits>,
}

/// The state of a page before its first change after a checkpoint, so that a torn write can be
/// mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRecord {
    /// Database number.
    pub database: u8,
    /// The page.
    pub page: PageNumber,
    /// Header and data area of the page.
    pub front: Vec<u8>,
    /// Tag array.
    pub back: Vec<u8>,
}

/// Everything the log can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRecord {
    /// A database joins the stream.
    Attach {
        /// Database number.
        database: u8,
        /// Its signature.
        signature: Signature,
    },
    /// A database leaves the stream cleanly.
    Detach {
        /// Database number.
        database: u8,
    },
    /// A transaction is committed.
    Commit {
        /// The transaction.
        transaction: u64,
    },
    /// A transaction is completely undone.
    RolledBack {
        /// The transaction.
        transaction: u64,
    },
    /// A row changed.
    Row(RowRecord),
    /// Pages changed together.
    Structure(StructureRecord),
    /// A page image.
    Image(ImageRecord),
    /// Recovery begins to undo what was not committed.
    RecoveryUndo,
    /// The instance shut down cleanly.
    Term,
    /// The checkpoint moved: pages last imaged before it get a new image when they change after
    /// this record.
    Checkpoint {
        /// Where it is now.
        at: Lsn,
    },
}

mod kind {
    pub const ATTACH: u8 = 0x80;
    pub const DETACH: u8 = 0x81;
    pub const COMMIT: u8 = 0x82;
    pub const ROLLED_BACK: u8 = 0x83;
    pub const ROW: u8 = 0x84;
    pub const STRUCTURE: u8 = 0x85;
    pub const IMAGE: u8 = 0x86;
    pub const RECOVERY_UNDO: u8 = 0x87;
    pub const TERM: u8 = 0x88;
    pub const CHECKPOINT: u8 = 0x89;
}

impl LogRecord {
    fn kind(&self) -> u8 {
        match self {
            LogRecord::Attach { .. } => kind::ATTACH,
            LogRecord::Detach { .. } => kind::DETACH,
            LogRecord::Commit { .. } => kind::COMMIT,
            LogRecord::RolledBack { .. } => kind::ROLLED_BACK,
            LogRecord::Row(_) => kind::ROW,
            LogRecord::Structure(_) => kind::STRUCTURE,
            LogRecord::Image(_) => kind::IMAGE,
            LogRecord::RecoveryUndo => kind::RECOVERY_UNDO,
            LogRecord::Term => kind::TERM,
            LogRecord::Checkpoint { .. } => kind::CHECKPOINT,
        }
    }

    /// The number of the database whose pages it changes.
    pub(crate) fn changed_database(&self) -> Option<u8> {
        match self {
            LogRecord::Row(row) => Some(row.database),
            LogRecord::Structure(structure) => Some(structure.database),
            LogRecord::Image(image) => Some(image.database),
            _ => None,
        }
    }

    /// The record with type and length.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(64);
        self.encode_body(&mut body);
        let mut wire = Vec::with_capacity(body.len() + 6);
        wire.push(self.kind());
        wire.put_number(body.len() as u64);
        wire.append(&mut body);
        wire
    }

    fn encode_body(&self, body: &mut Vec<u8>) {
        match self {
            LogRecord::Attach { database, signature } => {
                body.push(*database);
                body.extend_from_slice(&signature.to_bytes());
            }
            LogRecord::Detach { database } => body.push(*database),
            LogRecord::Commit { transaction } | LogRecord::RolledBack { transaction } => {
                body.put_number(*transaction)
            }
            LogRecord::Row(row) => row.encode(body),
            LogRecord::Structure(structure) => structure.encode(body),
            LogRecord::Image(image) => {
                body.push(image.database);
                body.put_number(u64::from(image.page));
                body.put_bytes(&image.front);
                body.put_bytes(&image.back);
            }
            LogRecord::Checkpoint { at } => {
                body.put_number(u64::from(at.generation));
                body.put_number(u64::from(at.offset));
            }
            LogRecord::RecoveryUndo | LogRecord::Term => {}
        }
    }

    /// Reads one record from the front of `payload`; gives it with its length. `Ok(None)` is
    /// padding (one byte) or the end.
    pub fn decode(payload: &[u8]) -> Result<Option<(LogRecord, usize)>, &'static str> {
        let mut wire = TakeWire::new(payload);
        let Some(kind) = wire.byte() else {
            return Ok(None);
        };
        if kind == 0 {
            return Ok(None);
        }
        let body = wire.bytes().ok_or("a record is longer than the log")?;
        let used_bytes = payload.len() - wire.rest().len();
        let mut body = TakeWire::new(body);
        let record = Self::decode_body(kind, &mut body).ok_or("a record cannot be read")?;
        if !body.rest().is_empty() {
            return Err("a record is longer than its content");
        }
        Ok(Some((record, used_bytes)))
    }

    fn decode_body(kind: u8, body: &mut TakeWire<'_>) -> Option<LogRecord> {
        Some(match kind {
            kind::ATTACH => LogRecord::Attach {
                database: body.byte()?,
                signature: Signature::from_bytes(body.take(Signature::BYTES)?.try_into().ok()?),
            },
            kind::DETACH => LogRecord::Detach { database: body.byte()? },
            kind::COMMIT => LogRecord::Commit { transaction: body.number()? },
            kind::ROLLED_BACK => LogRecord::RolledBack { transaction: body.number()? },
            kind::ROW => LogRecord::Row(RowRecord::decode(body)?),
            kind::STRUCTURE => LogRecord::Structure(StructureRecord::decode(body)?),
            kind::IMAGE => LogRecord::Image(ImageRecord {
                database: body.byte()?,
                page: body.number_u32()?,
                front: body.bytes()?.to_vec(),
                back: body.bytes()?.to_vec(),
            }),
            kind::RECOVERY_UNDO => LogRecord::RecoveryUndo,
            kind::TERM => LogRecord::Term,
            kind::CHECKPOINT => {
                LogRecord::Checkpoint { at: Lsn::new(body.number_u32()?, body.number_u32()?) }
            }
            _ => return None,
        })
    }
}

/// The records of a run of payload that begins at `from`; padding is left out. An error names its
/// place.
pub fn decode_records(
    payload: &[u8],
    from: Lsn,
) -> Result<Vec<(Lsn, LogRecord)>, (Lsn, &'static str)> {
    let (mut records, mut offset) = (Vec::new(), 0);
    while offset < payload.len() {
        let at = Lsn::new(from.generation, from.offset + offset as u32);
        match LogRecord::decode(&payload[offset..]).map_err(|why| (at, why))? {
            Some((record, used_bytes)) => {
                records.push((at, record));
                offset += used_bytes;
            }
            None => offset += 1,
        }
    }
    Ok(records)
}

impl RowRecord {
    fn encode(&self, body: &mut Vec<u8>) {
        body.put_number(self.transaction);
        body.push(self.database);
        for number in [self.root, self.object, self.page] {
            body.put_number(u64::from(number));
        }
        body.put_number(self.dbtime);
        body.put_number(self.dbtime - self.dbtime_before.min(self.dbtime));
        body.put_number(u64::from(self.line));
        body.push(u8::from(self.compensation));
        body.put_bytes(&self.key);
        self.change.encode(body);
    }

    fn decode(body: &mut TakeWire<'_>) -> Option<Self> {
        let transaction = body.number()?;
        let database = body.byte()?;
        let [root, object, page] = [body.number_u32()?, body.number_u32()?, body.number_u32()?];
        let dbtime = body.number()?;
        let dbtime_before = dbtime.checked_sub(body.number()?)?;
        let line = line(body)?;
        let compensation = body.byte()? != 0;
        let key = body.bytes()?.to_vec();
        let change = RowChange::decode(body)?;
        Some(Self {
            transaction,
            database,
            root,
            object,
            page,
            dbtime,
            dbtime_before,
            line,
            compensation,
            key,
            change,
        })
    }
}

impl StructureRecord {
    fn encode(&self, body: &mut Vec<u8>) {
        body.push(self.database);
        body.put_number(self.dbtime);
        body.put_number(u64::from(self.pages_owned));
        body.put_number(self.pages.len() as u64);
        for page in &self.pages {
            body.put_number(u64::from(page.page));
            body.put_number(page.dbtime_before);
            body.put_number(page.edits.len() as u64);
            page.edits.iter().for_each(|edit| edit.encode(body));
        }
    }

    fn decode(body: &mut TakeWire<'_>) -> Option<Self> {
        let (database, dbtime, pages_owned) = (body.byte()?, body.number()?, body.number_u32()?);
        let count = body.size()?;
        let mut pages = Vec::new();
        for _ in 0..count {
            let (page, dbtime_before, edit_count) =
                (body.number_u32()?, body.number()?, body.size()?);
            let mut edits = Vec::new();
            for _ in 0..edit_count {
                edits.push(Edit::decode(body)?);
            }
            pages.push(PageEdits { page, dbtime_before, edits });
        }
        Some(Self { database, dbtime, pages_owned, pages })
    }
}
