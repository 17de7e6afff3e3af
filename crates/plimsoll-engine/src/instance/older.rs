//! Databases that were all shut down cleanly, and log beside them that says otherwise: an image of
//! some time ago was put back, or the database that the log is needed for was left out. Opening
//! them would go on behind that log and let it be deleted, with all that it alone holds.
//!
//! The log ends with the close of its last life, or that life was cut short: then what it changed
//! is to be redone, in a database that is not here or is older here. Of lives that were closed,
//! the log says by a database's signature whose number it is, and changes it by that. An opening
//! that came no further than to name databases has changed nothing. Each generation names what
//! was open when it began, so that this can be told after circular logging has deleted older log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use crate::database::Database;
use crate::error::{EngineError, Result};
use crate::log::Lsn;
use crate::log::reader::{Generation, GenerationFile, LogReader};
use crate::log::record::LogRecord;
use crate::logtime::{LogPosition, Signature};

/// Fails where the log holds changes that none of these knows of. `last` is the newest generation.
///
/// # Errors
/// [`EngineError::BadOption`] that says which file or generation, and what reading meets.
pub(super) async fn check_not_older(
    reader: &LogReader,
    generations: &[GenerationFile],
    last: &Generation,
    databases: &[Rc<Database>],
) -> Result<()> {
    if let Some(generation) = changed_and_never_closed(reader, generations, last).await? {
        return Err(EngineError::BadOption {
            name: "databases",
            why: format!(
                "all of them were shut down cleanly, but the log in {} was not closed, and \
                 generation {generation} holds changes: one is missing here, or is older than its \
                 log; give all databases as they were last",
                directory_of(last).display()
            ),
        });
    }
    look_through(reader, generations, Some(last), last.header.signature, databases).await
}

/// Fails where the log changes one of these that was shut down before: beside others that are to be
/// redone, its changes may lie before all that redo reads.
///
/// # Errors
/// As [`check_not_older`].
pub(super) async fn check_clean_not_older(
    reader: &LogReader,
    generations: &[GenerationFile],
    signature: Signature,
    databases: &[Rc<Database>],
) -> Result<()> {
    look_through(reader, generations, None, signature, databases).await
}

async fn look_through(
    reader: &LogReader,
    generations: &[GenerationFile],
    last: Option<&Generation>,
    signature: Signature,
    databases: &[Rc<Database>],
) -> Result<()> {
    let was_shut_down = |database: &&Rc<Database>| {
        let header = database.header();
        !header.needs_recovery() && header.log_signature == signature
    };
    let databases: Vec<&Rc<Database>> = databases.iter().filter(was_shut_down).collect();
    let shut_down_in = |database: &&Rc<Database>| database.header().detach_position.generation;
    let Some(oldest) = databases.iter().map(shut_down_in).min() else { return Ok(()) };
    let there = generations.iter().map(|file| file.generation).collect();
    let mut look = Look { databases, there, named: BTreeMap::new() };
    for file in generations.iter().filter(|file| file.generation >= oldest) {
        if let Some(last) = last.filter(|last| last.header.generation == file.generation) {
            look.through(last)?;
            continue;
        }
        match reader.read_generation(&file.path).await {
            Ok(generation) => look.through(&generation)?,
            // What nobody can read says as little as what is not there.
            Err(error) if error.is_corruption() => drop(look.there.remove(&file.generation)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn directory_of(generation: &Generation) -> PathBuf {
    generation.path.parent().map(PathBuf::from).unwrap_or_default()
}

/// A generation with changes of the last life, if that was not closed. A life begins with a
/// generation of its own; where the log before it is gone, there were changes in that.
async fn changed_and_never_closed(
    reader: &LogReader,
    generations: &[GenerationFile],
    last: &Generation,
) -> Result<Option<u32>> {
    let mut life = Life::default();
    let mut is_begun = life.look_back(last)?;
    let mut oldest = last.header.generation;
    for file in generations.iter().rev().filter(|file| file.generation < last.header.generation) {
        if is_begun || file.generation + 1 < oldest {
            break;
        }
        is_begun = life.look_back(&reader.read_generation(&file.path).await?)?;
        oldest = file.generation;
    }
    let is_unknown = !is_begun && oldest > 1 && life.closed.is_empty();
    Ok(life.changed_in.or(is_unknown.then_some(oldest)))
}

/// What is known of the last life, from its end backwards.
#[derive(Default)]
struct Life {
    /// Databases that were shut down later than what is looked at.
    closed: BTreeSet<u8>,
    /// The newest generation that changes one that was not.
    changed_in: Option<u32>,
}

impl Life {
    /// Takes in an older generation; whether another life ends in it, or the last one did.
    fn look_back(&mut self, generation: &Generation) -> Result<bool> {
        let records: Vec<LogRecord> =
            generation.records(0).map(|record| Ok(record?.1)).collect::<Result<_>>()?;
        for record in records.into_iter().rev() {
            match record {
                LogRecord::Term => return Ok(true),
                LogRecord::Detach { database } => drop(self.closed.insert(database)),
                record => {
                    let number = record.changed_database();
                    if number.is_some_and(|number| !self.closed.contains(&number)) {
                        self.changed_in.get_or_insert(generation.header.generation);
                    }
                }
            }
        }
        Ok(false)
    }
}

struct Look<'a> {
    databases: Vec<&'a Rc<Database>>,
    /// Generations that there are: an old one may have been put back, too.
    there: BTreeSet<u32>,
    /// Whose number the log says it is, once it has said so after the shutdown. It stays so when
    /// that one is shut down again: nothing changes a number until a record says whose it is next.
    named: BTreeMap<u8, &'a Rc<Database>>,
}

impl<'a> Look<'a> {
    /// The database of a signature, if it was shut down before a place of the log.
    fn shut_down_before(&self, at: LogPosition, signature: Signature) -> Option<&'a Rc<Database>> {
        let mut databases = self.databases.iter().copied();
        databases.find(|database| {
            let header = database.header();
            header.signature.without_name() == signature.without_name()
                && header.detach_position < at
        })
    }

    /// Fails where one was open when a generation began, and log since its shutdown is gone: of a
    /// life that filled whole generations nobody can say that it has changed nothing.
    fn check_deleted(&self, generation: &Generation) -> Result<()> {
        let is_gone = |database: &&&Rc<Database>| {
            let after = database.header().detach_position.generation + 1;
            (after..generation.header.generation).any(|number| !self.there.contains(&number))
        };
        match self.named.values().find(is_gone) {
            None => Ok(()),
            Some(database) => Err(EngineError::BadOption {
                name: "databases",
                why: format!(
                    "{} was shut down at {}, and was open again when generation {} began; log in \
                     between has been deleted: the file is older than its log; put back the \
                     newest one, or keep this one with an empty log directory",
                    database.path().display(),
                    database.header().detach_position,
                    generation.header.generation
                ),
            }),
        }
    }

    fn through(&mut self, generation: &Generation) -> Result<()> {
        // The record that attached one may have been deleted since.
        if let Some(attached) = generation.header.attached.known() {
            let begin = Lsn::new(generation.header.generation, 0);
            let begin = generation.header.framing.position(begin);
            let named = attached.filter_map(|(number, signature)| {
                Some((number, self.shut_down_before(begin, signature)?))
            });
            self.named = named.collect();
            self.check_deleted(generation)?;
        }
        for record in generation.records(0) {
            let (start, record) = record?;
            if let LogRecord::Attach { database: number, signature } = record {
                let at = generation.header.framing.position(start);
                match self.shut_down_before(at, signature) {
                    Some(database) => self.named.insert(number, database),
                    None => self.named.remove(&number),
                };
                continue;
            }
            let number = record.changed_database();
            if let Some(database) = number.and_then(|number| self.named.get(&number)) {
                return Err(EngineError::BadOption {
                    name: "databases",
                    why: format!(
                        "{} was shut down at {}, and the log beside it changes it after that, in \
                         generation {}: the file is older than its log; put back the newest one, \
                         or keep this one with an empty log directory",
                        database.path().display(),
                        database.header().detach_position,
                        generation.header.generation
                    ),
                });
            }
        }
        Ok(())
    }
}
