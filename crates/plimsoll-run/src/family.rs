//! Workload families: each is one folder that says what its backends and its loads are. Nothing
//! else lists what a family does.
//!
//! A family opens the instances of its backends and starts loads on them. The machinery of loads
//! (`load.rs`), phases and samples know families by this interface only, so a family can also come
//! from outside this crate.

use std::future::ready;
use std::rc::Rc;

use plimsoll_io::MemoryDisk;
use plimsoll_measure::Metric;
use schemars::{Schema, json_schema};

use crate::RunError;
use crate::backend::{Backend, Work, unable};
use crate::context::RunContext;
use crate::load::{LoadStart, RunningLoad};
use crate::outcome::ChecksumReport;
use crate::spec::{InstanceSpec, RunSpec, WorkloadSpec};

/// How a checksum pass reads.
#[derive(Clone, Copy, Debug)]
pub struct ChecksumReads {
    /// Length of a read.
    pub read_bytes: u32,
    /// Reads under way at once.
    pub in_flight: u32,
}

/// What the specs of some backends take beside what those of all take.
pub struct BackendSchemas {
    /// The names of the backends.
    pub backends: Vec<&'static str>,
    /// The JSON Schema of what only they know of an instance.
    pub instance: Schema,
    /// The JSON Schema of what only they know of a database.
    pub database: Schema,
}

impl BackendSchemas {
    /// The schemas of these backends.
    pub fn new(backends: &[&'static str], instance: Schema, database: Schema) -> BackendSchemas {
        BackendSchemas { backends: backends.to_vec(), instance, database }
    }
}

/// See the module text.
pub trait Family {
    /// The name by which a workload of a plan names it.
    fn name(&self) -> &'static str;

    /// The backends whose instances it opens, by their names in a plan.
    fn backends(&self) -> &'static [&'static str];

    /// The names of its operations: each is a metric that counts those that are done, with their
    /// response times.
    fn operations(&self) -> &'static [&'static str];

    /// The metrics that it adds to the dictionary.
    fn metrics(&self) -> &'static [Metric];

    /// Whether the values of an instance are possible.
    ///
    /// # Errors
    /// The first thing that is not.
    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String>;

    /// Whether what only this family knows of a workload is possible.
    ///
    /// # Errors
    /// The first thing that is not.
    fn check_workload(
        &self,
        workload: &WorkloadSpec,
        instances: &[&InstanceSpec],
    ) -> Result<(), String>;

    /// The JSON Schema of what only this family knows of a workload.
    fn workload_schema(&self) -> Schema;

    /// What only this family knows of instances and databases, for each group of its backends.
    fn backend_schemas(&self) -> Vec<BackendSchemas> {
        let nothing = || json_schema!({"type": "object", "properties": {}, "required": []});
        vec![BackendSchemas::new(self.backends(), nothing(), nothing())]
    }

    /// Bytes of what a checksum pass counts as one page; 0 where nothing of an instance can be
    /// judged by reading it.
    fn checksum_unit_bytes(&self, _instance: &InstanceSpec) -> u32 {
        0
    }

    /// Whether opening an instance claims it from other runs at its server. Such are opened before
    /// anything is written elsewhere.
    fn is_claimed_by_opening(&self, _instance: &InstanceSpec) -> bool {
        false
    }

    /// The instance as it is found after a crash, without knowledge of what ran before.
    fn as_crashed(&self, instance: &InstanceSpec) -> InstanceSpec {
        instance.as_crashed()
    }

    /// Whether transactions of an instance wait for their page writes.
    fn waits_for_writes(&self, _instance: &InstanceSpec) -> bool {
        false
    }

    /// Puts the databases of an instance in place as if they had been prepared, on a disk that
    /// keeps them as a rule.
    ///
    /// # Errors
    /// When they cannot be kept so.
    fn load_sparse(
        &self,
        _memory: &MemoryDisk,
        instance: &mut InstanceSpec,
    ) -> Result<(), RunError> {
        Err(RunError::Spec(format!(
            "instance {} is {}, which a modelled array cannot hold sparsely; write backend = \
             \"engine\"",
            instance.name,
            instance.backend.replace('_', " ")
        )))
    }

    /// Prepares the databases that do not exist and opens all of them, recovering them if need be.
    fn open<'a>(
        &'a self,
        run: &'a RunContext,
        number: u16,
        instance: &'a InstanceSpec,
    ) -> Work<'a, Result<Rc<dyn Backend>, RunError>>;

    /// Reads a whole closed database and judges every page.
    fn checksum<'a>(
        &'a self,
        _run: &'a RunContext,
        _number: u16,
        _position: usize,
        instance: &'a InstanceSpec,
        _reads: ChecksumReads,
    ) -> Work<'a, Result<ChecksumReport, RunError>> {
        Box::pin(ready(Err(unable(instance))))
    }

    /// Starts a load.
    ///
    /// # Errors
    /// When it works on an instance of another family.
    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError>;
}

/// The families that a run knows.
#[derive(Clone)]
pub struct Families(Rc<[Rc<dyn Family>]>);

impl Families {
    /// These families; the first one is meant where a workload names none.
    pub fn of(families: Vec<Rc<dyn Family>>) -> Families {
        Families(families.into())
    }

    /// The family of a workload.
    ///
    /// # Errors
    /// When there is no family of that name.
    pub fn of_workload(&self, workload: &WorkloadSpec) -> Result<&dyn Family, String> {
        let Some(wanted) = &workload.family else {
            return Ok(self.0[0].as_ref());
        };
        let found = self.0.iter().find(|family| family.name() == wanted);
        found.map(AsRef::as_ref).ok_or_else(|| {
            let known: Vec<_> = self.0.iter().map(|family| family.name()).collect();
            format!(
                "workload {} is of family {wanted}; write one of {}",
                workload.name,
                known.join(", ")
            )
        })
    }

    /// The family whose backend stands behind an instance.
    ///
    /// # Errors
    /// When no family has such a backend.
    pub fn of_instance(&self, instance: &InstanceSpec) -> Result<&dyn Family, String> {
        let wanted = instance.backend.as_str();
        let found = self.0.iter().find(|family| family.backends().contains(&wanted));
        found.map(AsRef::as_ref).ok_or_else(|| {
            format!(
                "instance {} has backend {wanted}; write one of {}",
                instance.name,
                self.backends().join(", ")
            )
        })
    }

    /// Prepares and opens an instance.
    ///
    /// # Errors
    /// What the disk reports, or data that is not what was asked for.
    pub async fn open(
        &self,
        run: &RunContext,
        number: u16,
        instance: &InstanceSpec,
    ) -> Result<Rc<dyn Backend>, RunError> {
        let family = self.of_instance(instance).map_err(RunError::Spec)?;
        family.open(run, number, instance).await
    }

    /// The names of all backends.
    pub fn backends(&self) -> Vec<&'static str> {
        let each = self.0.iter().flat_map(|family| family.backends());
        each.copied().collect()
    }

    /// Each of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Family> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The metrics that the families add to the dictionary.
    pub fn metrics(&self) -> Vec<Metric> {
        let each = self.0.iter().flat_map(|family| family.metrics());
        each.copied().collect()
    }

    /// Checks what only families know of a spec.
    ///
    /// # Errors
    /// [`RunError::Spec`] with the first thing that is wrong.
    pub fn check(&self, spec: &RunSpec) -> Result<(), RunError> {
        let instances = spec.instances.iter().map(|instance| {
            let family = self.of_instance(instance)?;
            family.check_instance(instance)
        });
        let workloads = spec.workloads.iter().map(|workload| {
            let family = self.of_workload(workload)?;
            let is_its = |instance: &&InstanceSpec| workload.instances.contains(&instance.name);
            let instances: Vec<_> = spec.instances.iter().filter(is_its).collect();
            family.check_workload(workload, &instances)
        });
        instances.chain(workloads).collect::<Result<(), String>>().map_err(RunError::Spec)
    }
}
