//! Home folders on a file server: users who copy, edit, browse, search and delete files, as
//! Microsoft's File Server Capacity Tool plays them.
//!
//! Homes are made anew by every run, because a run changes them, and audited after it: the tree
//! holds exactly what was made. At the disk seam what is read and written counts as database data,
//! as with files under access specifications; opens, closes and names count as metadata.

mod home_set;
mod metrics;
mod service;
mod spec;

use std::rc::Rc;

use plimsoll_io::MemoryDisk;
use plimsoll_measure::Metric;
use schemars::{Schema, schema_for};

use crate::RunError;
use crate::backend::{Backend, Work};
use crate::context::RunContext;
use crate::family::{BackendSchemas, Family};
use crate::load::{LoadStart, RunningLoad};
use crate::spec::{InstanceSpec, WorkloadSpec};

use home_set::HomeSet;
use metrics::{METRICS, SCENARIO};
use service::{HomePair, LoadedHomes};
use spec::{HomesDatabase, HomesInstance, HomesSpec};

const BACKEND: &str = "home_folders";

/// See the module text.
pub struct Homes;

impl Family for Homes {
    fn name(&self) -> &'static str {
        "home_folders"
    }

    fn backends(&self) -> &'static [&'static str] {
        &[BACKEND]
    }

    fn operations(&self) -> &'static [&'static str] {
        &[SCENARIO]
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        HomesInstance::of(instance).map(drop)
    }

    fn check_workload(&self, workload: &WorkloadSpec, _: &[&InstanceSpec]) -> Result<(), String> {
        HomesSpec::of(workload).map(drop)
    }

    fn workload_schema(&self) -> Schema {
        schema_for!(HomesSpec)
    }

    fn backend_schemas(&self) -> Vec<BackendSchemas> {
        let (instance, database) = (schema_for!(HomesInstance), schema_for!(HomesDatabase));
        vec![BackendSchemas::new(self.backends(), instance, database)]
    }

    fn waits_for_writes(&self, _: &InstanceSpec) -> bool {
        true
    }

    /// Nothing is put in place: a modelled array gets the homes as any storage does.
    fn load_sparse(&self, _: &MemoryDisk, _: &mut InstanceSpec) -> Result<(), RunError> {
        Ok(())
    }

    fn open<'a>(
        &'a self,
        run: &'a RunContext,
        number: u16,
        instance: &'a InstanceSpec,
    ) -> Work<'a, Result<Rc<dyn Backend>, RunError>> {
        Box::pin(async move {
            let opened: Rc<dyn Backend> = Rc::new(HomeSet::open(run, number, instance).await?);
            Ok(opened)
        })
    }

    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError> {
        let scenarios = HomesSpec::of(load.spec).map_err(RunError::Spec)?;
        let mut homes = Vec::new();
        for instance in &load.instances {
            homes.push(LoadedHomes {
                instance: instance.number,
                weight: instance.weight,
                set: load.backend_of::<HomeSet>(instance, "home folders")?,
            });
        }
        let pair =
            HomePair { handle: load.run.handle.clone(), scenarios: Rc::new(scenarios), homes };
        Ok(load.start(pair))
    }
}
