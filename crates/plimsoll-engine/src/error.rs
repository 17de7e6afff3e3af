//! Everything that can go wrong in the engine, as values the caller can act on. The numbers in
//! parentheses are the error numbers an ESE administrator knows.

use std::path::PathBuf;

use plimsoll_io::DiskError;

use crate::PageNumber;
use crate::page::PageFault;

/// Result of an engine operation.
pub type Result<T> = std::result::Result<T, EngineError>;

/// Why a page cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageDamage {
    /// Checksum wrong and not correctable (-1018).
    #[error("its checksum is wrong and not correctable (-1018): torn, overwritten or misplaced")]
    Checksum,
    /// The file ends before it.
    #[error("the file ends before it, and the database reaches to page {last}")]
    Missing {
        /// The last page the database owns.
        last: PageNumber,
    },
    /// All zero where data was expected (-1019).
    #[error("it was never written (-1019)")]
    Uninitialized,
    /// The page says it is another page (-1118).
    #[error("it carries the number of page {found} (-1118): a misdirected write")]
    WrongPageNumber {
        /// What the page says.
        found: PageNumber,
    },
    /// The flush type differs from the flush map (-1119).
    #[error(
        "an earlier write of it was lost (-1119): flush type {found}, flush map says {expected}"
    )]
    LostFlush {
        /// Type on the page.
        found: u8,
        /// Type in the flush map.
        expected: u8,
    },
    /// Redo finds an older page than the log says (-566).
    #[error(
        "it is older than the log says (-566): database time {found:#x}, expected {expected:#x}; a \
         write was lost"
    )]
    TooOld {
        /// On the page.
        found: u64,
        /// In the log record.
        expected: u64,
    },
    /// Redo finds a page that the log does not explain (-567).
    #[error(
        "it is newer than the log explains (-567): database time {found:#x} after {expected:#x}"
    )]
    TooNew {
        /// On the page.
        found: u64,
        /// In the log record.
        expected: u64,
    },
    /// The checksum is right, the content is not.
    #[error("its structure is wrong: {0}")]
    Structure(#[from] PageFault),
    /// The page belongs to another object than the tree it was reached from.
    #[error("it belongs to object {found}, not to {expected}")]
    WrongObject {
        /// On the page.
        found: u32,
        /// Of the tree.
        expected: u32,
    },
    /// A link leads outside the database or around in circles.
    #[error("the way to it is broken: {0}")]
    Link(&'static str),
}

/// An engine error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// The disk reported an error.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A page is damaged; nothing of it was used.
    #[error("page {page} of {path} cannot be used: {damage}; run `plimsoll verify` on it",
        path = path.display())]
    DamagedPage {
        /// Database file.
        path: PathBuf,
        /// Logical page number.
        page: PageNumber,
        /// What is wrong.
        damage: PageDamage,
    },
    /// Several pages are damaged, found during recovery.
    #[error("{count} pages of {path} cannot be recovered, the first is page {first}: {damage}; \
     only an image of the page in the log repairs that: \
             restore the database", path = path.display(), count = pages.len(),
                 first = pages[0].0, damage = pages[0].1)]
    DamagedPages {
        /// Database file.
        path: PathBuf,
        /// Each page with its damage.
        pages: Vec<(PageNumber, PageDamage)>,
    },
    /// A header cannot be used.
    #[error("the header of {path} cannot be used: {why}", path = path.display())]
    BadHeader {
        /// File.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Another transaction changed the row since this one began.
    #[error(
        "another transaction changed this row after this transaction began; roll back and try again"
    )]
    WriteConflict,
    /// The key exists.
    #[error("a row with this key exists already{}", in_index(index))]
    KeyDuplicate {
        /// The index that is violated, where the operation was one on a table.
        index: Option<String>,
    },
    /// No such row.
    #[error("no row has this key")]
    RowNotFound,
    /// No such table, column, index or database.
    #[error("there is no {what} {} {name}", called(*is_number))]
    NoSuchObject {
        /// "table", "index", "column", "database".
        what: &'static str,
        /// Asked-for name or number.
        name: String,
        /// Whether that is a number.
        is_number: bool,
    },
    /// A table that is to be changed is in use, or one that is to be used is being changed.
    #[error("table {table} cannot be had: {why}")]
    TableInUse {
        /// Its name.
        table: String,
        /// Who has it, and what to do.
        why: &'static str,
    },
    /// A handle of a table is used in a transaction of another instance.
    #[error(
        "the handle of table {table} belongs to another instance than the transaction: open the \
         table in the instance of the transaction"
    )]
    ForeignTable {
        /// Its name.
        table: String,
    },
    /// A change of a schema that cannot be made.
    #[error("the schema of {table} cannot be changed: {why}")]
    BadChange {
        /// Name of the table.
        table: String,
        /// Why, and what to do.
        why: String,
    },
    /// A row does not fit its table.
    #[error("the row does not fit the table: {0}")]
    BadRow(String),
    /// Too many versions are kept for old transactions.
    #[error(
        "the version store is full ({bytes} bytes kept for the oldest transaction); commit or roll \
         back long transactions"
    )]
    VersionStoreFull {
        /// Bytes in use.
        bytes: usize,
    },
    /// One transaction wants to keep more versions than are its share.
    #[error(
        "this transaction has changed too much ({bytes} bytes of versions, and its share is \
         {bytes_max}): commit it in smaller pieces"
    )]
    TransactionTooLarge {
        /// Bytes it keeps.
        bytes: usize,
        /// Bytes it may keep.
        bytes_max: usize,
    },
    /// The node is larger than a page can hold.
    #[error("a node of {bytes} bytes does not fit a page; store it as a long value")]
    NodeTooLarge {
        /// Bytes.
        bytes: usize,
    },
    /// The key is longer than a page can say, or a branch page would hold too few of its length.
    #[error(
        "a key of {bytes} bytes is too long: with pages of this size keys have at most {bytes_max} \
         bytes"
    )]
    KeyTooLong {
        /// Bytes.
        bytes: usize,
        /// Bytes it may have.
        bytes_max: usize,
    },
    /// The tree has all the levels it may have.
    #[error("a tree of {levels} levels cannot grow by another one: move its rows to a new tree")]
    TreeTooDeep {
        /// Levels, the leaves included.
        levels: usize,
    },
    /// Two operations of one transaction at once.
    #[error(
        "another operation of this transaction is under way: wait until it ends, or use a \
         transaction for each"
    )]
    TransactionBusy,
    /// An operation of the transaction was dropped between its steps, or a savepoint in the middle
    /// of one was gone back to. The transaction was not committed but rolled back.
    #[error(
        "an operation of this transaction was abandoned half-way, and all of it was rolled back: \
         begin it again, and wait for each operation to end"
    )]
    HalfDone,
    /// A savepoint that stands for nothing.
    #[error(
        "the transaction has gone back to before this savepoint, or it is another transaction's: \
         make a savepoint and go back to that"
    )]
    SavepointGone,
    /// An earlier error makes further work unsafe.
    #[error("the instance stopped after an earlier error: {cause}; reopen it to recover")]
    Poisoned {
        /// The first error.
        cause: Box<EngineError>,
    },
    /// The instance is closing or closed.
    #[error("the instance is closing and begins nothing any more; open it again to go on")]
    Closing,
    /// The log is damaged (-501).
    #[error("log file {path} is corrupt at offset {offset} (-501): {why}", path = path.display())]
    LogCorrupt {
        /// File.
        path: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// A generation needed for recovery is missing (-528).
    #[error("log generation {generation} is needed for recovery and missing (-528) in {path}",
        path = path.display())]
    LogMissing {
        /// Generation.
        generation: u32,
        /// Log directory.
        path: PathBuf,
    },
    /// A generation that is to be held is not there any more. Nothing is wrong with the databases.
    #[error(
        "log generation {generation} or the one behind it was deleted, and the oldest is {oldest}: \
         hold the log from there, and take a new copy of what needs more"
    )]
    LogDeleted {
        /// The generation asked for.
        generation: u32,
        /// The oldest that can be held; from there on none is missing.
        oldest: u32,
    },
    /// The stream has no further number for a generation.
    #[error(
        "log generation {generation} is among the last that a stream can have: close the \
         databases, move log and checkpoint file away, and open them again, which begins a stream"
    )]
    LogUsedUp {
        /// The generation.
        generation: u32,
    },
    /// Recovery was to be activated before it had redone what the files already hold.
    #[error(
        "{path} holds pages that need the log up to generation {required}, and recovery has come \
         to generation {last}: feed it more of the log",
        path = path.display()
    )]
    ActivatedTooEarly {
        /// Database.
        path: PathBuf,
        /// What it needs.
        required: u32,
        /// The last generation redone.
        last: u32,
    },
    /// Generations with acknowledged commits are gone (-582).
    #[error(
        "recovery ends with log generation {last}, and {path} says that there were commits up to \
         generation {committed} (-582): restore the log \
         files after {last}; without them the databases can be opened only by giving those commits \
         up",
        path = path.display()
    )]
    CommittedLogMissing {
        /// Database.
        path: PathBuf,
        /// The highest generation it knows of.
        committed: u32,
        /// The last generation redone.
        last: u32,
    },
    /// The log belongs to other databases or another engine (-514 and relatives).
    #[error("log file {path} does not belong here: {why}", path = path.display())]
    ForeignLog {
        /// File.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The copy has gone another way than the log.
    #[error("{path} has diverged from this log stream: {why}", path = path.display())]
    Diverged {
        /// Database.
        path: PathBuf,
        /// Evidence.
        why: String,
    },
    /// Redo of a generation ended before the generation did: it failed, or nobody waited for it any
    /// longer.
    #[error(
        "redo of log generation {generation} was broken off: begin recovery again, which starts \
         where the files say"
    )]
    BrokenOff {
        /// Generation.
        generation: u32,
    },
    /// Opened without recovery though not shut down cleanly (-550).
    #[error("{path} was not shut down cleanly (-550); recover it with its log first",
        path = path.display())]
    DirtyShutdown {
        /// Database.
        path: PathBuf,
    },
    /// An option has an impossible value.
    #[error("option {name}: {why}")]
    BadOption {
        /// Option.
        name: &'static str,
        /// Why.
        why: String,
    },
}

fn in_index(index: &Option<String>) -> String {
    index.as_ref().map_or_else(String::new, |index| format!(" in index {index}"))
}

fn called(is_number: bool) -> &'static str {
    if is_number { "number" } else { "named" }
}

impl EngineError {
    /// Nothing has this name.
    pub(crate) fn no_such(what: &'static str, name: impl Into<String>) -> Self {
        EngineError::NoSuchObject { what, name: name.into(), is_number: false }
    }

    /// Nothing has this number.
    pub(crate) fn no_such_number(what: &'static str, number: impl ToString) -> Self {
        EngineError::NoSuchObject { what, name: number.to_string(), is_number: true }
    }

    /// Whether the same transaction, begun again, may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, EngineError::WriteConflict | EngineError::VersionStoreFull { .. })
    }

    /// What everything after this error fails with; what follows from an earlier error keeps that
    /// as its cause.
    pub(crate) fn poisoning(&self) -> Self {
        match self {
            EngineError::Poisoned { .. } => self.clone(),
            first => EngineError::Poisoned { cause: Box::new(first.clone()) },
        }
    }
}

impl EngineError {
    /// Whether what is on the storage is not what was written.
    pub fn is_corruption(&self) -> bool {
        matches!(
            self,
            EngineError::DamagedPage { .. }
                | EngineError::DamagedPages { .. }
                | EngineError::BadHeader { .. }
                | EngineError::LogCorrupt { .. }
                | EngineError::LogMissing { .. }
                | EngineError::CommittedLogMissing { .. }
        )
    }
}
