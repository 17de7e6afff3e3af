//! Operations on records: the first workload family. Sessions or arrivals insert, delete, replace
//! and read the records of databases that either the transactional engine keeps or preallocated
//! files stand in for.

mod checksum;
mod engine;
mod existing;
mod jobs;
mod lagged;
mod ledger;
mod long_reader;
mod open;
mod raw_files;
mod spec;
mod store;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{MemoryDisk, Random};
use plimsoll_measure::Metric;
use plimsoll_prepare::PreparedContent;
use plimsoll_workload::Done;
use plimsoll_workload::records::{Habits, Kind, Mix, RecordDemand, RecordPlace, RecordTask};
use schemars::{Schema, schema_for};

use crate::RunError;
use crate::backend::{Backend, Seat, Work};
use crate::context::RunContext;
use crate::family::{BackendSchemas, ChecksumReads, Family};
use crate::load::{Book, Label, LoadStart, Pair, RunningLoad, Service};
use crate::outcome::ChecksumReport;
use crate::spec::{InstanceSpec, WorkloadSpec};

pub(crate) use checksum::checksum as engine_checksum;
use engine::EngineInstance;
pub use engine::prepared_database;
pub(crate) use engine::{LOG_BASE, options_of, recovery_result, until_stop};
pub(crate) use existing::begins_blank;
pub(crate) use open::OpenEngine;
use raw_files::{RawFiles, Versions};
use spec::{RecordsDatabase, RecordsSpec};
pub(crate) use spec::{RecordsInstance, as_crashed, page_bytes};
use store::RecordStore;

const ENGINE: &str = "engine";
const RAW_FILES: &str = "raw_files";
const OPERATIONS: [&str; 4] =
    [Kind::ALL[0].name(), Kind::ALL[1].name(), Kind::ALL[2].name(), Kind::ALL[3].name()];

/// See the module text.
#[derive(Default)]
pub struct Records {
    /// What this run wrote to each raw file, also when it is closed.
    written: RefCell<BTreeMap<PathBuf, Versions>>,
}

impl Family for Records {
    fn name(&self) -> &'static str {
        "records"
    }

    fn backends(&self) -> &'static [&'static str] {
        &[ENGINE, RAW_FILES]
    }

    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    /// None: its metrics were in the dictionary before there were families, and keep their places
    /// there.
    fn metrics(&self) -> &'static [Metric] {
        &[]
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        let name = &instance.name;
        let settings: RecordsInstance = instance.options_as()?;
        let page_size = settings.page_size(name)?;
        for (position, database) in instance.databases.iter().enumerate() {
            instance.database_options_as::<RecordsDatabase>(position)?;
            let pages = database.size_bytes / page_size.bytes() as u64;
            if pages < 256 || pages > u64::from(u32::MAX) / 2 {
                return Err(format!(
                    "database {} of instance {name} would have {pages} pages; take 256 to {}",
                    database.file_name,
                    u32::MAX / 2
                ));
            }
        }
        Ok(())
    }

    fn check_workload(&self, workload: &WorkloadSpec, _: &[&InstanceSpec]) -> Result<(), String> {
        RecordsSpec::of(workload)?.check(&workload.name)
    }

    fn workload_schema(&self) -> Schema {
        schema_for!(RecordsSpec)
    }

    fn backend_schemas(&self) -> Vec<BackendSchemas> {
        let (instance, database) = (schema_for!(RecordsInstance), schema_for!(RecordsDatabase));
        vec![BackendSchemas::new(self.backends(), instance, database)]
    }

    fn checksum_unit_bytes(&self, instance: &InstanceSpec) -> u32 {
        page_bytes(instance)
    }

    fn as_crashed(&self, instance: &InstanceSpec) -> InstanceSpec {
        as_crashed(instance)
    }

    fn waits_for_writes(&self, instance: &InstanceSpec) -> bool {
        instance.backend == RAW_FILES
    }

    fn load_sparse(
        &self,
        memory: &MemoryDisk,
        instance: &mut InstanceSpec,
    ) -> Result<(), RunError> {
        if instance.backend != ENGINE {
            return Err(RunError::Spec(format!(
                "instance {} is raw files, which a modelled array cannot hold sparsely; write \
                 backend = \"engine\"",
                instance.name
            )));
        }
        for position in 0..instance.databases.len() {
            let prepared = Arc::new(prepared_database(instance, position)?);
            let path = instance.database_path(position);
            memory.load_sparse(path, prepared.file_bytes(), PreparedContent::sparse(&prepared));
            instance.databases[position].existing_records = Some(prepared.records());
        }
        instance.unfinished = false;
        Ok(())
    }

    fn open<'a>(
        &'a self,
        run: &'a RunContext,
        number: u16,
        instance: &'a InstanceSpec,
    ) -> Work<'a, Result<Rc<dyn Backend>, RunError>> {
        Box::pin(async move {
            if instance.backend != RAW_FILES {
                return Ok(Rc::new(EngineInstance::open(run, number, instance).await?) as _);
            }
            let opened = RawFiles::open(run, number, instance).await?;
            self.written.borrow_mut().extend(opened.written());
            Ok(Rc::new(opened) as Rc<dyn Backend>)
        })
    }

    fn checksum<'a>(
        &'a self,
        run: &'a RunContext,
        number: u16,
        position: usize,
        instance: &'a InstanceSpec,
        reads: ChecksumReads,
    ) -> Work<'a, Result<ChecksumReport, RunError>> {
        if instance.backend != RAW_FILES {
            return Box::pin(engine_checksum(run, position, instance, reads));
        }
        let path = instance.database_path(position);
        let written = self.written.borrow().get(&path).cloned().unwrap_or_default();
        Box::pin(raw_files::checksum(run, (number, position), instance, reads, written))
    }

    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError> {
        let spec = RecordsSpec::of(load.spec).map_err(RunError::Spec)?;
        let mut places = Vec::new();
        let mut databases = Vec::new();
        for instance in &load.instances {
            let store =
                store_of(&instance.backend).ok_or_else(|| load.holds_no(instance, "records"))?;
            for (position, population) in store.populations().into_iter().enumerate() {
                places.push(RecordPlace { weight: instance.weight, population });
                databases.push(Database {
                    instance: instance.number,
                    position,
                    seat: instance.seat.clone(),
                });
            }
        }
        Ok(load.start(RecordPair {
            habits: spec.habits(),
            sluggish: spec.sluggish,
            places,
            databases,
        }))
    }
}

/// The records of an instance, if it holds any.
fn store_of(backend: &Rc<dyn Backend>) -> Option<Rc<dyn RecordStore>> {
    let any = backend.clone().into_any();
    match any.downcast::<EngineInstance>() {
        Ok(engine) => Some(engine),
        Err(other) => {
            let files = other.downcast::<RawFiles>().ok()?;
            Some(files)
        }
    }
}

/// A database that a workload works on.
struct Database {
    instance: u32,
    position: usize,
    seat: Seat,
}

struct RecordPair {
    habits: Habits,
    sluggish: f64,
    places: Vec<RecordPlace>,
    databases: Vec<Database>,
}

impl RecordPair {
    fn demand(&self, operations: Random, places: Random, positions: &[usize]) -> RecordDemand {
        RecordDemand::new(operations, places, self.habits, self.sluggish, &self.places, positions)
    }
}

impl Pair for RecordPair {
    type Task = RecordTask;
    type Demand = RecordDemand;
    type Service = RecordService;

    fn weights(&self) -> Vec<f64> {
        self.places.iter().map(|place| place.weight).collect()
    }

    fn description(&self) -> String {
        let Mix {
            insert_percent,
            delete_percent,
            replace_percent,
            read_percent,
            lazy_commit_percent,
        } = self.habits.mix;
        format!(
            "{} databases, {insert_percent} % insert, {delete_percent} % delete, {replace_percent} \
             % replace, {read_percent} % read, \
             {lazy_commit_percent} % lazy commits",
            self.places.len(),
        )
    }

    fn session(
        &self,
        _: u32,
        operations: Random,
        places: Random,
        positions: &[usize],
    ) -> RecordDemand {
        self.demand(operations, places, positions).skip_place()
    }

    fn arrivals(&self, operations: Random, places: Random) -> RecordDemand {
        let all: Vec<usize> = (0..self.places.len()).collect();
        self.demand(operations, places, &all)
    }

    fn into_service(self) -> RecordService {
        RecordService {
            hot_percent: self.habits.locality.hot_percent,
            places: self.places,
            databases: self.databases,
        }
    }
}

/// Carries out transactions on the databases of a workload.
struct RecordService {
    hot_percent: u32,
    places: Vec<RecordPlace>,
    databases: Vec<Database>,
}

impl Service for RecordService {
    type Task = RecordTask;

    async fn execute(&self, task: &RecordTask, _book: &mut Book) -> Result<Done, RunError> {
        let database = &self.databases[task.place];
        let store = store_of(&database.seat.backend()?);
        let store = store.ok_or_else(|| RunError::Spec("an instance holds no records".into()))?;
        store.execute(database.position, &task.operation).await
    }

    fn label(&self, task: &RecordTask) -> Label {
        let database = &self.databases[task.place];
        Label {
            instance: database.instance,
            database: database.position as u32 + 1,
            operation: task.operation.kind.name(),
        }
    }

    fn count(&self, task: &RecordTask, done: Done, count: &mut dyn FnMut(&'static str)) {
        match done {
            Done::Done => {
                let population = self.places[task.place].population.borrow();
                let is_hot = task.operation.record < population.hot_count(self.hot_percent);
                if task.operation.kind != Kind::Insert && is_hot {
                    count("hot_operation");
                }
            }
            Done::Missing => count("missing_record"),
            Done::Conflict => count("write_conflict"),
            // Not an operation that failed: the same one follows at the end of the table.
            Done::NoRoom => {}
            Done::RolledBack | Done::Refused(_) | Done::Lost => {
                unreachable!("records are neither rolled back on purpose nor refused")
            }
        }
    }
}
