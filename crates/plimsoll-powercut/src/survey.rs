//! What is there after the power came back: the database recovered and read, the marks read sector
//! by sector.
//!
//! A database that cannot be recovered is a finding, not an error; the marks are read all the same.

use std::collections::BTreeMap;

use plimsoll_engine::instance::RecoveryReport;
use plimsoll_io::{Files, Handle, OpenMode};
use serde::Serialize;

use crate::begin::{mark_context, open};
use crate::error::PowercutError;
use crate::mark::{MARK_BYTES, decode};
use crate::rows::Tables;
use crate::spec::PowercutSpec;

/// What recovery did.
#[derive(Clone, Debug, Serialize)]
pub struct SurveyRecovery {
    /// Whether the database had not been closed.
    pub recovered: bool,
    /// First generation redone.
    pub generation_first: u32,
    /// Last generation there.
    pub generation_last: u32,
    /// Transactions taken back.
    pub rolled_back: usize,
}

/// Why something could not be looked at.
#[derive(Clone, Debug, Serialize)]
pub struct SurveyError {
    /// As of a run's errors.
    pub family: &'static str,
    /// In words.
    pub text: String,
}

impl SurveyError {
    fn of(error: &PowercutError) -> Self {
        Self { family: error.family(), text: error.to_string() }
    }
}

/// A row of a session's ring.
#[derive(Clone, Debug, Serialize)]
pub struct CommitFound {
    /// Whose.
    pub lane: u32,
    /// Its place in the ring.
    pub slot: u64,
    /// Which transaction wrote it; 0 if only its twin is there.
    pub sequence: u64,
    /// Acknowledgements when that was begun.
    pub started: u64,
    /// Which transaction wrote its twin; 0 if there is none.
    pub twin: u64,
    /// Whether its body is what was written.
    pub is_sound: bool,
}

/// A block of a lane's ring.
#[derive(Clone, Debug, Serialize)]
pub struct MarkFound {
    /// Whose.
    pub lane: u32,
    /// Its place in the ring.
    pub slot: u64,
    /// Which write all its sectors are of; none if they disagree or one is damaged.
    pub sequence: Option<u64>,
    /// Acknowledgements when that was begun.
    pub started: u64,
    /// Which write each sector is of, none where it is damaged; left empty for whole blocks.
    pub sectors: Vec<Option<u64>>,
}

/// Everything found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Survey {
    /// What recovery did, if the database could be opened.
    pub recovery: Option<SurveyRecovery>,
    /// Why the database could not be opened or read.
    pub database_error: Option<SurveyError>,
    /// Why the marks could not be read.
    pub marks_error: Option<SurveyError>,
    /// Every row of both tables.
    pub commits: Vec<CommitFound>,
    /// Every block.
    pub marks: Vec<MarkFound>,
}

/// See the module text. Recovery writes: give it a copy where the original is evidence.
pub async fn survey(files: Files, handle: Handle, spec: PowercutSpec) -> Survey {
    let mut found = Survey::default();
    match read_marks(&files, &spec).await {
        Ok(marks) => found.marks = marks,
        Err(error) => found.marks_error = Some(SurveyError::of(&error)),
    }
    if let Err(error) = read_database(&files, &handle, &spec, &mut found).await {
        found.database_error = Some(SurveyError::of(&error));
    }
    found
}

async fn read_database(
    files: &Files,
    handle: &Handle,
    spec: &PowercutSpec,
    found: &mut Survey,
) -> Result<(), PowercutError> {
    let (instance, report) = open(files, handle, spec).await?;
    found.recovery = Some(recovery_of(&report));
    let read = async {
        let tables = Tables::open(&instance).await?;
        let transaction = instance.begin();
        let commits = tables.commits(&transaction, spec).await?;
        let twins = tables.twins(&transaction).await?;
        transaction.rollback().await?;
        Ok::<_, PowercutError>((commits, twins))
    };
    let read = read.await;
    let closed = instance.close().await.map_err(PowercutError::from);
    let (commits, twins) = read?;
    let mut twins: BTreeMap<(u32, u64), u64> =
        twins.iter().map(|row| ((row.session, row.slot), row.sequence)).collect();
    for (row, is_sound) in commits {
        found.commits.push(CommitFound {
            lane: row.session,
            slot: row.slot,
            sequence: row.sequence,
            started: row.started,
            twin: twins.remove(&(row.session, row.slot)).unwrap_or(0),
            is_sound,
        });
    }
    let alone = twins.into_iter().map(|((lane, slot), twin)| CommitFound {
        lane,
        slot,
        sequence: 0,
        started: 0,
        twin,
        is_sound: false,
    });
    found.commits.extend(alone);
    closed
}

fn recovery_of(report: &RecoveryReport) -> SurveyRecovery {
    SurveyRecovery {
        recovered: report.recovered,
        generation_first: report.started_at.generation,
        generation_last: report.ended_at.generation,
        rolled_back: report.rolled_back,
    }
}

async fn read_marks(files: &Files, spec: &PowercutSpec) -> Result<Vec<MarkFound>, PowercutError> {
    let file = files.open(&spec.marks(), OpenMode::Read, mark_context()).await?;
    let lane_bytes = spec.slots * MARK_BYTES as u64;
    let mut found = Vec::new();
    for lane in 0..spec.lanes {
        let buffer = file.allocate(lane_bytes as usize);
        let buffer = file.read(u64::from(lane) * lane_bytes, buffer, mark_context()).await?;
        let blocks = buffer.chunks_exact(MARK_BYTES).enumerate();
        found.extend(blocks.map(|(slot, block)| mark_found(spec.run, lane, slot as u64, block)));
    }
    file.close(mark_context()).await?;
    Ok(found)
}

fn mark_found(run: u64, lane: u32, slot: u64, block: &[u8]) -> MarkFound {
    let labels = decode(run, lane, block);
    let is_whole = labels.iter().all(|label| label.is_some() && *label == labels[0]);
    let first = labels[0].filter(|_| is_whole);
    MarkFound {
        lane,
        slot,
        sequence: first.map(|label| label.sequence),
        started: first.map_or(0, |label| label.started),
        sectors: match is_whole {
            true => Vec::new(),
            false => labels.iter().map(|label| label.map(|label| label.sequence)).collect(),
        },
    }
}
