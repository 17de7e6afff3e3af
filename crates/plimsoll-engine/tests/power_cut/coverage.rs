//! What a power cut met: counted from the operations under way when the power failed, and from the
//! log found afterwards, as far as recovery has to redo it. Every name counts at most once for a
//! cut.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_engine::checkpoint::read_checkpoint;
use plimsoll_engine::edit::{Edit, RowChange};
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::{Generation, LogReader};
use plimsoll_engine::log::record::{LogRecord, StructureRecord};
use plimsoll_engine::page::page_flags;
use plimsoll_io::{Context, Files, MemoryDisk, OperationKind, Purpose, Stage, TraceEntry};

use crate::support::{LOG, run_on};

/// Cuts by what they met.
pub type Coverage = BTreeMap<&'static str, u64>;

/// Operations remembered by a disk: more than can be under way at once.
pub const TRACED: usize = 256;

/// What the short form must have met, or its cuts prove less than they seem to.
pub const ALWAYS: [&str; 24] = [
    "leaf split",
    "root split",
    "root split to three levels",
    "branch split",
    "leaf unlinked",
    "branch unlinked",
    "extent conversion",
    "database grown",
    "change taken back",
    "deleted row revived",
    "dead row removed",
    "long value changed",
    "generation rollover",
    "first block of the checkpoint",
    "second block of the checkpoint",
    "first copy of a header",
    "second copy of a header",
    "page write",
    "log write",
    "recovery",
    "undo in recovery",
    "cut without page images",
    "page write without page images",
    "log write in whole sectors of a 512e disk",
];

/// What only the many worlds of the slow form meet for sure.
pub const IN_THE_LONG_RUN: [&str; 8] = [
    "sync of a database",
    "growth of a file",
    "several generations",
    "torn log flush",
    "log read from its shadow",
    "earlier recovery",
    "undo of an earlier recovery",
    "deletion of a generation",
];

/// Adds what one cut met.
pub fn count(coverage: &mut Coverage, met: BTreeSet<&'static str>) {
    for name in met {
        *coverage.entry(name).or_default() += 1;
    }
}

/// Adds what a cut met without page images, and on a disk that may lose the physical sector it was
/// writing a part of.
pub fn name_kind_of_disk(
    met: &mut BTreeSet<&'static str>,
    has_images: bool,
    has_breaking_sectors: bool,
) {
    if !has_images {
        met.insert("cut without page images");
        let writes_page = met.contains("page write");
        met.extend(writes_page.then_some("page write without page images"));
    }
    if has_breaking_sectors && met.contains("log write") {
        met.insert("log write in whole sectors of a 512e disk");
    }
}

/// What was under way on a disk whose power has just failed.
pub fn under_way(disk: &MemoryDisk) -> BTreeSet<&'static str> {
    let mut open: BTreeMap<u64, TraceEntry> = BTreeMap::new();
    for entry in disk.trace() {
        match entry.stage {
            Stage::Submitted => open.insert(entry.operation, entry),
            Stage::Done | Stage::Failed(_) => open.remove(&entry.operation),
        };
    }
    open.values().filter_map(name_of).collect()
}

fn name_of(entry: &TraceEntry) -> Option<&'static str> {
    let ending = entry.path.extension().and_then(|ending| ending.to_str());
    let is_at_start = entry.range.is_some_and(|(offset, _)| offset == 0);
    let is_new_log = entry.path.ends_with("E00tmp.log");
    Some(match (entry.kind, entry.purpose, ending) {
        (OperationKind::Write, _, Some("chk")) if is_at_start => "first block of the checkpoint",
        (OperationKind::Write, _, Some("chk")) => "second block of the checkpoint",
        (OperationKind::Write, Purpose::Header, Some("edb")) if is_at_start => {
            "first copy of a header"
        }
        (OperationKind::Write, Purpose::Header, Some("edb")) => "second copy of a header",
        (OperationKind::Write, Purpose::Header, Some("log")) if is_new_log => "generation rollover",
        (OperationKind::Rename, _, Some("log")) => "generation rollover",
        (OperationKind::SyncDirectory, _, _) if entry.path.ends_with("log") => {
            "generation rollover"
        }
        (OperationKind::Delete, _, Some("log")) if !is_new_log => "deletion of a generation",
        (OperationKind::SyncFile, _, Some("edb")) => "sync of a database",
        (OperationKind::Extend, _, Some("edb")) => "growth of a file",
        (OperationKind::Write, Purpose::LogWrite, _) => "log write",
        (OperationKind::Write, Purpose::DatabaseWrite | Purpose::Redo, _) => "page write",
        _ => return None,
    })
}

/// What the logs of a world have told.
#[derive(Clone, Default)]
pub struct Shape {
    /// Branch pages that have branches below them.
    upper: BTreeSet<(u8, u32)>,
    /// What the closed generations hold, by their numbers. They do not change any more, so each is
    /// read once.
    closed: BTreeMap<u32, Rc<Noted>>,
}

/// What a generation holds.
#[derive(Default)]
struct Noted {
    is_torn: bool,
    has_shadow_used: bool,
    /// Where each kind was seen last.
    last_seen: BTreeMap<&'static str, Lsn>,
    steps: Vec<Step>,
}

/// A step of taking back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    RecoveryBegins,
    Back(u64),
    Ended(u64),
}

/// What recovery has to redo, from the log found. `long_values` are the roots of long-value trees.
pub fn to_be_redone(
    disk: &Rc<MemoryDisk>,
    shape: &mut Shape,
    long_values: &[u32],
) -> BTreeSet<&'static str> {
    let mut met =
        Met { long_values: long_values.to_vec(), shape: std::mem::take(shape), ..Met::default() };
    let met = run_on(&disk.clock().clone(), disk, move |files, _| async move {
        met.read(files).await;
        met
    })
    .expect("the log can be read");
    *shape = met.shape;
    met.names
}

#[derive(Default)]
struct Met {
    names: BTreeSet<&'static str>,
    long_values: Vec<u32>,
    shape: Shape,
    has_recovered: bool,
    /// Transactions that a recovery had begun to take back and not finished.
    half_back: BTreeSet<u64>,
}

impl Met {
    async fn read(&mut self, files: Files) {
        let names = LogNames::new(LOG, "E00");
        let checkpoint = read_checkpoint(&files, &names.checkpoint(), Context::default()).await;
        let start = checkpoint.ok().flatten().map_or(Lsn::ZERO, |(at, _)| at);
        let current = names.current();
        let reader = LogReader::new(files, names, Context::default());
        let Ok(generations) = reader.generations().await else {
            return;
        };
        if generations.len() > 1 {
            self.names.insert("several generations");
        }
        let mut known = std::mem::take(&mut self.shape.closed);
        for file in generations {
            let is_closed = file.path != current;
            let known = known.remove(&file.generation).filter(|_| is_closed);
            let noted = match known {
                Some(noted) => noted,
                None => match reader.read_generation(&file.path).await {
                    Ok(generation) => Rc::new(self.note(&generation)),
                    Err(_) => {
                        self.names.insert("unreadable generation");
                        continue;
                    }
                },
            };
            self.count(&noted, start);
            if is_closed {
                self.shape.closed.insert(file.generation, noted);
            }
        }
        if !self.half_back.is_empty() {
            self.names.insert("undo in recovery");
        }
    }

    /// Goes through a generation.
    fn note(&mut self, generation: &Generation) -> Noted {
        let mut noted = Noted {
            is_torn: generation.torn_units > 0,
            has_shadow_used: generation.shadows_used > 0,
            ..Noted::default()
        };
        for (at, record) in generation.records(0).map_while(|record| record.ok()) {
            let mut names = BTreeSet::new();
            match record {
                LogRecord::Structure(structure) => names = self.structure(&structure),
                LogRecord::Row(row) => {
                    if row.compensation && noted.steps.last() != Some(&Step::Back(row.transaction))
                    {
                        noted.steps.push(Step::Back(row.transaction));
                    }
                    names.extend(
                        self.long_values.contains(&row.root).then_some("long value changed"),
                    );
                    names.extend(match row.change {
                        _ if row.compensation => Some("change taken back"),
                        RowChange::Revive { .. } => Some("deleted row revived"),
                        RowChange::Remove => Some("dead row removed"),
                        _ => None,
                    });
                }
                LogRecord::RolledBack { transaction } => noted.steps.push(Step::Ended(transaction)),
                LogRecord::RecoveryUndo => noted.steps.push(Step::RecoveryBegins),
                _ => {}
            }
            noted.last_seen.extend(names.into_iter().map(|name| (name, at)));
        }
        noted
    }

    /// Counts what a generation holds, as far as it lies behind the checkpoint.
    fn count(&mut self, noted: &Noted, start: Lsn) {
        self.names.extend(noted.is_torn.then_some("torn log flush"));
        self.names.extend(noted.has_shadow_used.then_some("log read from its shadow"));
        let redone = noted.last_seen.iter().filter(|(_, at)| **at >= start);
        self.names.extend(redone.map(|(name, _)| *name));
        for step in &noted.steps {
            match step {
                Step::RecoveryBegins => {
                    self.has_recovered = true;
                    self.half_back.clear();
                    self.names.insert("earlier recovery");
                }
                Step::Back(transaction) if self.has_recovered => {
                    self.half_back.insert(*transaction);
                }
                Step::Back(_) => {}
                Step::Ended(transaction) => {
                    let was_half_back = self.half_back.remove(transaction);
                    self.names.extend(was_half_back.then_some("undo of an earlier recovery"));
                }
            }
        }
    }

    /// The names of a structural change.
    fn structure(&mut self, structure: &StructureRecord) -> BTreeSet<&'static str> {
        let mut names = BTreeSet::new();
        if structure.pages_owned > 0 {
            names.insert("database grown");
        }
        let (mut made_anew, mut relinks, mut space_trees) = (BTreeSet::new(), false, 0);
        for page in &structure.pages {
            let key = (structure.database, page.page);
            for edit in &page.edits {
                relinks |= matches!(edit, Edit::SetSiblings { .. });
                match edit {
                    Edit::Format { flags, nodes, .. } if flags & page_flags::SPACE == 0 => {
                        let was_upper = self.shape.upper.remove(&key);
                        let name = self.format(key, *flags, nodes.is_empty());
                        if was_upper && name == Some("emptied") {
                            names.insert("branch unlinked");
                        }
                        made_anew.extend(name);
                    }
                    Edit::Format { flags, .. } => {
                        space_trees += u32::from(flags & page_flags::ROOT != 0)
                    }
                    // Of a branch that has branches below it, one goes with everything below.
                    Edit::Remove { .. } if self.shape.upper.contains(&key) => {
                        names.insert("branch unlinked");
                    }
                    _ => {}
                }
            }
        }
        // A new tree gets its space trees together with an empty root; one that has outgrown its
        // single extent has a root already.
        if space_trees >= 2 && !made_anew.contains("emptied") {
            names.insert("extent conversion");
        }
        self.name_whole(&mut names, &made_anew, relinks);
        names
    }

    /// Notes what kind of page is made anew.
    fn format(&mut self, key: (u8, u32), flags: u32, is_empty: bool) -> Option<&'static str> {
        let (is_root, is_leaf) = (flags & page_flags::ROOT != 0, flags & page_flags::LEAF != 0);
        if !is_leaf && flags & page_flags::PARENT_OF_LEAF == 0 {
            self.shape.upper.insert(key);
        }
        Some(match (is_root, is_leaf) {
            (true, false) => "root",
            (true, true) if is_empty => "emptied",
            (false, true) => "leaf",
            (false, false) => "branch",
            (true, true) => return None,
        })
    }

    /// Names the whole of a structural change after the pages it makes anew.
    fn name_whole(&self, names: &mut BTreeSet<&'static str>, made: &BTreeSet<&str>, relinks: bool) {
        let is_split = made.contains("branch");
        if is_split {
            // A split branch has the bound of its last child taken away.
            names.remove("branch unlinked");
        }
        match (made.contains("root"), is_split, made.contains("leaf")) {
            (true, true, _) => names.insert("root split to three levels"),
            (true, false, _) => names.insert("root split"),
            (false, true, _) => names.insert("branch split"),
            (false, false, true) => names.insert("leaf split"),
            (false, false, false) if relinks => names.insert("leaf unlinked"),
            _ => false,
        };
        if made.contains("emptied") {
            names.insert("tree created or emptied");
        }
    }
}

/// Fails for every name that no cut met.
pub fn check_met(coverage: &Coverage, names: &[&str]) {
    let missed: Vec<_> = names.iter().filter(|name| !coverage.contains_key(**name)).collect();
    assert!(missed.is_empty(), "no cut met: {missed:?}");
}

/// Fails for every name that fewer cuts met than `cuts_min`.
pub fn check_met_often(coverage: &Coverage, names: &[&'static str], cuts_min: u64) {
    let seldom = names.iter().filter_map(|name| {
        let cuts = coverage.get(name).copied().unwrap_or(0);
        (cuts < cuts_min).then_some((name, cuts))
    });
    let seldom: Vec<_> = seldom.collect();
    assert!(seldom.is_empty(), "met less than {cuts_min} times: {seldom:?}");
}
