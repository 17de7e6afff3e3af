//! Whose changes the log holds. It names databases by the numbers that they had in their instance,
//! and the record that says which database a number is may lie behind the checkpoint. So the
//! headers are asked: a database that is to be redone knows its number, and one that was shut down
//! cleanly knows where the log stopped speaking of it. Changes of anything else are of a database
//! that is not there, or is another one now, and nothing may be redone over that.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::database::Database;
use crate::error::{EngineError, Result};
use crate::logtime::{LogPosition, Signature};

const WHAT_TO_DO: &str = "give all databases of the instance, in the order that they had when they \
                          were last open together";

/// What becomes of a change of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It is redone where the page does not have it.
    Redone,
    /// It is in the file, which was synced before its header said that it is clean.
    InFile,
}

/// What the header of a database says of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    ToBeRedone,
    /// Shut down cleanly, as the log says at this place.
    Clean {
        log: Signature,
        until: LogPosition,
    },
}

/// See the module text.
pub(super) struct Whose {
    known: BTreeMap<u8, Known>,
}

impl Whose {
    pub(super) fn of(databases: &[Rc<Database>]) -> Whose {
        let known = |database: &Rc<Database>| {
            let header = database.header();
            let had_number = header.database_id == u32::from(database.number());
            let (log, until) = (header.log_signature, header.detach_position);
            let known = match header.needs_recovery() {
                true => Known::ToBeRedone,
                false if had_number => Known::Clean { log, until },
                false => Known::Clean { log, until: LogPosition::NONE },
            };
            (database.number(), known)
        };
        Whose { known: databases.iter().map(known).collect() }
    }

    /// What becomes of a change of a database that lies at this place of a log.
    ///
    /// # Errors
    /// [`EngineError::BadOption`] where the databases are not those that the log was written for.
    pub(super) fn change(&self, number: u8, log: Signature, at: LogPosition) -> Result<Change> {
        match self.known.get(&number) {
            Some(Known::ToBeRedone) => Ok(Change::Redone),
            Some(Known::Clean { log: of, until }) if *of == log && at < *until => {
                Ok(Change::InFile)
            }
            given => {
                let is = match given {
                    Some(Known::Clean { log: of, until })
                        if *of == log && *until > LogPosition::NONE =>
                    {
                        "older here than the log, or another one"
                    }
                    Some(_) => "another one here",
                    None => "not given",
                };
                Err(EngineError::BadOption {
                    name: "databases",
                    why: format!(
                        "the log that is to be redone changes database {number}, which is {is}: \
                         {WHAT_TO_DO}"
                    ),
                })
            }
        }
    }
}

/// Fails where a database that is to be redone has another number than its log knows it by.
pub(crate) fn check_numbers<'a>(dirty: impl Iterator<Item = &'a Rc<Database>>) -> Result<()> {
    let number = |database: &Database| u32::from(database.number());
    let mut others = dirty.filter(|database| database.header().database_id != number(database));
    match others.next() {
        None => Ok(()),
        Some(database) => Err(EngineError::BadOption {
            name: "databases",
            why: format!(
                "the log that is to be redone knows {} as database {}, and it is given as database \
                 {}: {WHAT_TO_DO}",
                database.path().display(),
                database.header().database_id,
                database.number()
            ),
        }),
    }
}
