//! An online store on the engine, or in a database that is not ours: sessions of customers that log
//! in, look around and order.
//!
//! One order is one task: its steps are timed inside it, and an order that is rolled back for want
//! of stock counts as one, as DVD Store counts it. Purchases that are begun again because another
//! session was first stay one order; the attempts are counted.

mod client;
mod instance;
mod open;
mod service;
mod spec;

use std::rc::Rc;

use plimsoll_io::MemoryDisk;
use plimsoll_measure::{Metric, MetricKind, metric};
use plimsoll_workload::store::Step;
use schemars::{Schema, schema_for};

use crate::RunError;
use crate::backend::{Backend, Work, unable};
use crate::context::RunContext;
use crate::family::{BackendSchemas, ChecksumReads, Family};
use crate::load::{LoadStart, RunningLoad};
use crate::outcome::ChecksumReport;
use crate::records::{RecordsInstance, as_crashed, engine_checksum, page_bytes};
use crate::spec::{InstanceSpec, WorkloadSpec};

use client::{ClientInstance, MYSQL, POSTGRESQL, SQLITE};
use instance::StoreInstance;
use service::{
    CONNECTION_LOST, CONNECTION_REFUSED, GIVEN_UP, NO_SPACE, ORDER, RETRIED, ROLLED_BACK,
    StorePair, store_of,
};
use spec::{ClientInstanceSpec, StoreDatabase, StoreSpec, catalogue_of};

const BACKEND: &str = "store";
/// Stores in databases that are not ours.
const CLIENTS: [&str; 3] = [SQLITE, POSTGRESQL, MYSQL];

const fn step(step: Step, meaning: &'static str) -> Metric {
    metric(step.name(), MetricKind::Timing, "ns", meaning)
}

const METRICS: [Metric; 17] = [
    metric(
        ORDER,
        MetricKind::Timing,
        "ns",
        "orders, from the intended start of the visit to the end of the purchase; rolled back ones \
         included",
    ),
    step(Step::Login, "logins of known customers with what they bought before"),
    step(Step::SignUp, "sign-ups of new customers"),
    step(Step::Search, "searches by category, actor or title"),
    step(Step::Join, "customers that became members, in a store with reviews"),
    step(Step::FindReviews, "searches for reviews by actor or title"),
    step(Step::ReadReviews, "reviews of a product that were read"),
    step(Step::WriteReview, "reviews that were written"),
    step(Step::RateReview, "reviews that were rated"),
    step(Step::Price, "questions for the prices of what is ordered"),
    step(Step::Purchase, "purchases with every attempt that they took"),
    metric(
        ROLLED_BACK,
        MetricKind::Counter,
        "count",
        "orders that were rolled back because something was out of stock",
    ),
    metric(
        RETRIED,
        MetricKind::Counter,
        "count",
        "attempts at a purchase that came to nothing because another session was first",
    ),
    metric(
        CONNECTION_LOST,
        MetricKind::Counter,
        "count",
        "connections to the server of a store that broke, and orders that came to nothing because \
         there was none",
    ),
    metric(
        CONNECTION_REFUSED,
        MetricKind::Counter,
        "count",
        "orders that came to nothing because the server of a store had no connection left",
    ),
    metric(
        NO_SPACE,
        MetricKind::Counter,
        "count",
        "orders that came to nothing because there was no room for their rows",
    ),
    metric(
        GIVEN_UP,
        MetricKind::Counter,
        "count",
        "purchases that were given up because other sessions were first for too long; no orders",
    ),
];

/// See the module text.
pub struct Store;

impl Family for Store {
    fn name(&self) -> &'static str {
        "store"
    }

    fn backends(&self) -> &'static [&'static str] {
        &[BACKEND, SQLITE, POSTGRESQL, MYSQL]
    }

    fn operations(&self) -> &'static [&'static str] {
        &[ORDER]
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        if is_client(instance) {
            return client::check(instance);
        }
        let settings: RecordsInstance = instance.options_as()?;
        settings.page_size(&instance.name)?;
        match catalogue_of(instance) {
            Ok(_) => Ok(()),
            Err(RunError::Spec(text)) => Err(text),
            Err(other) => Err(other.to_string()),
        }
    }

    fn check_workload(&self, workload: &WorkloadSpec, _: &[&InstanceSpec]) -> Result<(), String> {
        StoreSpec::of(workload).map(drop)
    }

    fn workload_schema(&self) -> Schema {
        schema_for!(StoreSpec)
    }

    fn backend_schemas(&self) -> Vec<BackendSchemas> {
        let database = schema_for!(StoreDatabase);
        vec![
            BackendSchemas::new(&[BACKEND], schema_for!(RecordsInstance), database.clone()),
            BackendSchemas::new(&CLIENTS, schema_for!(ClientInstanceSpec), database),
        ]
    }

    fn checksum_unit_bytes(&self, instance: &InstanceSpec) -> u32 {
        if is_client(instance) {
            return 0;
        }
        page_bytes(instance)
    }

    fn is_claimed_by_opening(&self, instance: &InstanceSpec) -> bool {
        is_client(instance)
    }

    fn as_crashed(&self, instance: &InstanceSpec) -> InstanceSpec {
        match is_client(instance) {
            true => instance.as_crashed(),
            false => as_crashed(instance),
        }
    }

    /// Nothing is put in place: a modelled array gets the store by transactions, as any storage
    /// does.
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
            let opened: Rc<dyn Backend> = match is_client(instance) {
                true => ClientInstance::open(run, instance).await?,
                false => Rc::new(StoreInstance::open(run, number, instance).await?),
            };
            Ok(opened)
        })
    }

    fn checksum<'a>(
        &'a self,
        run: &'a RunContext,
        _number: u16,
        position: usize,
        instance: &'a InstanceSpec,
        reads: ChecksumReads,
    ) -> Work<'a, Result<ChecksumReport, RunError>> {
        if is_client(instance) {
            return Box::pin(std::future::ready(Err(unable(instance))));
        }
        Box::pin(engine_checksum(run, position, instance, reads))
    }

    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError> {
        let habits = StoreSpec::of(load.spec).map_err(RunError::Spec)?;
        let (mut stores, mut seats) = (Vec::new(), Vec::new());
        for instance in &load.instances {
            let store = store_of(&instance.backend);
            let store = store.ok_or_else(|| load.holds_no(instance, "a store"))?;
            stores.push((instance.number, instance.weight, store));
            seats.push(instance.seat.clone());
        }
        let run = load.run.clone();
        Ok(load.start(StorePair { run, habits, stores, seats }))
    }
}

fn is_client(instance: &InstanceSpec) -> bool {
    CLIENTS.contains(&instance.backend.as_str())
}
