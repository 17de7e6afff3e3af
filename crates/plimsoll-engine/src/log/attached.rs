//! Which databases are attached at a place of the log. Each generation says so of its beginning:
//! the record that attached one may have been deleted since. The table lies where ESE has its own,
//! and has entries of our form: a number, and a signature without the name, which is empty.

use std::collections::BTreeMap;

use super::record::LogRecord;
use crate::databases::DATABASES_MAX;
use crate::logtime::Signature;

/// That there is a table; earlier versions left zeros there.
const IS_THERE: u8 = 2;
/// As [`IS_THERE`], with whole signatures: an earlier version wrote no more than 70 of them.
const WHOLE: u8 = 1;
/// The table begins with such a mark and a count.
const HEAD_BYTES: usize = 2;
/// A number and the bytes of a signature before its name.
const ENTRY_BYTES: usize = 1 + Signature::NAMELESS_BYTES;
/// A number and a whole signature.
const WHOLE_ENTRY_BYTES: usize = 1 + Signature::BYTES;
/// Bytes of ESE's table.
const TABLE_BYTES: usize = 2048;
/// As many as it has room for.
const ENTRIES_MAX: usize = (TABLE_BYTES - HEAD_BYTES) / ENTRY_BYTES;
const _: () = assert!(ENTRIES_MAX >= DATABASES_MAX, "each database of an instance has an entry");

/// Databases by the numbers that the log knows them by, as far as that is known. Their signatures
/// have no names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached(Option<BTreeMap<u8, Signature>>);

impl Attached {
    /// That none is.
    pub fn nothing() -> Attached {
        Attached(Some(BTreeMap::new()))
    }

    /// Takes in a record.
    pub(super) fn note(&mut self, record: &LogRecord) {
        match record {
            LogRecord::Attach { database, signature } => {
                self.0.get_or_insert_default().insert(*database, signature.without_name());
            }
            LogRecord::Detach { database } => {
                if let Some(attached) = &mut self.0 {
                    attached.remove(database);
                }
            }
            LogRecord::Term => *self = Attached::nothing(),
            _ => {}
        }
    }

    /// Numbers and signatures, if anything is known.
    pub fn known(&self) -> Option<impl Iterator<Item = (u8, Signature)> + '_> {
        let attached = self.0.as_ref()?;
        Some(attached.iter().map(|(number, signature)| (*number, *signature)))
    }

    /// Writes the table; nothing where it is not known.
    pub(super) fn encode(&self, table: &mut [u8]) {
        let Some(attached) = self.0.as_ref().filter(|some| some.len() <= ENTRIES_MAX) else {
            return;
        };
        table[..HEAD_BYTES].copy_from_slice(&[IS_THERE, attached.len() as u8]);
        let entries = table[HEAD_BYTES..].chunks_exact_mut(ENTRY_BYTES);
        for (entry, (number, signature)) in entries.zip(attached) {
            entry[0] = *number;
            entry[1..].copy_from_slice(&signature.to_bytes()[..Signature::NAMELESS_BYTES]);
        }
    }

    /// Reads it.
    pub(super) fn decode(table: &[u8]) -> Attached {
        let count = usize::from(table[1]);
        let entry_bytes = match table[0] {
            IS_THERE => ENTRY_BYTES,
            WHOLE => WHOLE_ENTRY_BYTES,
            _ => return Attached::default(),
        };
        if count > (TABLE_BYTES - HEAD_BYTES) / entry_bytes {
            return Attached::default();
        }
        let entries = table[HEAD_BYTES..].chunks_exact(entry_bytes).take(count);
        let found = entries.map(|entry| {
            let mut signature = [0; Signature::BYTES];
            signature[..Signature::NAMELESS_BYTES]
                .copy_from_slice(&entry[1..1 + Signature::NAMELESS_BYTES]);
            (entry[0], Signature::from_bytes(signature))
        });
        Attached(Some(found.collect()))
    }
}
