//! Users of mail: of a server that is not ours, where they read by IMAP and send by LMTP or SMTP,
//! or of a store on our own engine. They do what people do in a day.
//!
//! An instance is a server with its accounts, a database of it one endpoint; or a store, whose
//! first database holds the mailboxes and whose second one is the transport queue. A session is a
//! user with a schedule of its own, so the load is open: a user that is late has its tasks waiting,
//! and response time runs from when a task was due.

mod audit;
mod embedded;
mod gauges;
mod group;
mod ledger;
mod metrics;
mod office;
mod prepare;
mod probes;
mod server;
mod service;
mod spec;
mod tasks;
mod user;
mod watch;

use std::any::Any;
use std::rc::Rc;

use plimsoll_io::{MemoryDisk, Network, RealNetwork, RealNetworkOptions};
use plimsoll_measure::Metric;
use plimsoll_workload::mail::MailHabits;
use schemars::{Schema, schema_for};

use crate::RunError;
use crate::backend::{Audits, Backend, Work, unable};
use crate::context::RunContext;
use crate::family::{BackendSchemas, ChecksumReads, Family};
use crate::load::{Drive, LoadStart, RunningLoad};
use crate::outcome::{AuditReport, ChecksumReport, DatabaseState};
use crate::records::{RecordsInstance, as_crashed, engine_checksum, page_bytes, until_stop};
use crate::spec::{InstanceSpec, WorkloadSpec};

use embedded::{EmbeddedMail, MailStoreDatabase, StorePair, filling_of};
use group::{Group, Place};
use metrics::{METRICS, OPERATIONS};
use office::Office;
use server::MailServer;
use service::MailPair;
use spec::{MailEndpoint, MailInstance, MailSpec};

/// A server that speaks IMAP.
const IMAP: &str = "imap";
/// A store on the engine.
const STORE: &str = "mail_store";

/// How a run reaches servers.
pub type Reach = dyn Fn(&RunContext) -> Result<Rc<dyn Network>, RunError>;

/// See the module text.
pub struct MailFamily {
    reach: Box<Reach>,
}

impl MailFamily {
    /// Users that reach servers by the network of this machine.
    pub fn real() -> MailFamily {
        MailFamily::on(|run| {
            let network = RealNetwork::open(&run.handle, None, RealNetworkOptions::default());
            let network = network.map_err(|error| RunError::Spec(error.to_string()))?;
            Ok(Rc::new(network) as Rc<dyn Network>)
        })
    }

    /// Users that reach servers by another network.
    pub fn on(
        reach: impl Fn(&RunContext) -> Result<Rc<dyn Network>, RunError> + 'static,
    ) -> MailFamily {
        MailFamily { reach: Box::new(reach) }
    }
}

/// A server that is being used.
struct MailBackend {
    run: RunContext,
    server: Rc<MailServer>,
}

impl Backend for MailBackend {
    fn databases(&self) -> Vec<DatabaseState> {
        let endpoints = (0..self.server.endpoints.count()).map(|endpoint| DatabaseState {
            path: self.server.address_of(endpoint).into(),
            records_ever: self.server.ledger.delivered_by(endpoint),
            ..DatabaseState::default()
        });
        endpoints.collect()
    }

    fn audits(&self) -> Option<&dyn Audits> {
        Some(self)
    }

    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(async move {
            self.server.hang_up();
            Ok(())
        })
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Audits for MailBackend {
    fn audit(&self) -> Work<'_, Result<AuditReport, RunError>> {
        Box::pin(async move { until_stop(&self.run, audit::audit(&self.server)).await? })
    }
}

impl Family for MailFamily {
    fn name(&self) -> &'static str {
        "mail"
    }

    fn backends(&self) -> &'static [&'static str] {
        &[IMAP, STORE]
    }

    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        if is_server(instance) {
            return MailInstance::of(instance).map(drop);
        }
        let settings: RecordsInstance = instance.options_as()?;
        settings.page_size(&instance.name)?;
        filling_of(instance).map(drop)
    }

    fn check_workload(
        &self,
        workload: &WorkloadSpec,
        instances: &[&InstanceSpec],
    ) -> Result<(), String> {
        let speaks_imap = instances.iter().any(|instance| is_server(instance));
        let (spec, _) = MailSpec::checked(workload, speaks_imap)?;
        if spec.mailbox_moves_per_h.is_some()
            && instances.iter().any(|instance| instance.databases.len() < 3)
        {
            return Err(format!(
                "workload {} moves mailboxes, but its store has no third database to move them to",
                workload.name
            ));
        }
        Ok(())
    }

    fn workload_schema(&self) -> Schema {
        schema_for!(MailSpec)
    }

    fn backend_schemas(&self) -> Vec<BackendSchemas> {
        let (server, store) = (schema_for!(MailInstance), schema_for!(RecordsInstance));
        vec![
            BackendSchemas::new(&[IMAP], server, schema_for!(MailEndpoint)),
            BackendSchemas::new(&[STORE], store, schema_for!(MailStoreDatabase)),
        ]
    }

    fn checksum_unit_bytes(&self, instance: &InstanceSpec) -> u32 {
        if is_server(instance) { 0 } else { page_bytes(instance) }
    }

    fn as_crashed(&self, instance: &InstanceSpec) -> InstanceSpec {
        if is_server(instance) { instance.as_crashed() } else { as_crashed(instance) }
    }

    /// Nothing is put in place: a modelled array gets the store by transactions, as any storage
    /// does.
    fn load_sparse(&self, _: &MemoryDisk, instance: &mut InstanceSpec) -> Result<(), RunError> {
        if is_server(instance) {
            return Err(RunError::Spec(format!(
                "instance {} is a server, which a modelled array cannot hold",
                instance.name
            )));
        }
        Ok(())
    }

    fn checksum<'a>(
        &'a self,
        run: &'a RunContext,
        _: u16,
        position: usize,
        instance: &'a InstanceSpec,
        reads: ChecksumReads,
    ) -> Work<'a, Result<ChecksumReport, RunError>> {
        if is_server(instance) {
            return Box::pin(std::future::ready(Err(unable(instance))));
        }
        Box::pin(engine_checksum(run, position, instance, reads))
    }

    fn open<'a>(
        &'a self,
        run: &'a RunContext,
        number: u16,
        instance: &'a InstanceSpec,
    ) -> Work<'a, Result<Rc<dyn Backend>, RunError>> {
        if !is_server(instance) {
            return Box::pin(async move {
                let store = EmbeddedMail::open(run, number, instance).await?;
                Ok(Rc::new(store) as Rc<dyn Backend>)
            });
        }
        Box::pin(async move {
            let network = (self.reach)(run)?;
            let server = Rc::new(MailServer::new(run, network, number, instance)?);
            prepare::prepare(run, &server).await?;
            let backend: Rc<dyn Backend> = Rc::new(MailBackend { run: run.clone(), server });
            Ok(backend)
        })
    }

    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError> {
        let (spec, habits) = MailSpec::of(load.spec).map_err(RunError::Spec)?;
        let Drive::Sessions { count: users, .. } = load.drive else {
            return Err(RunError::Spec(format!(
                "workload {} arrives by a schedule, but mail users have their own; write sessions",
                load.spec.name
            )));
        };
        let place = Place {
            workload: load.number as u32 + 1,
            number: load.instances[0].number,
            users: users.into(),
        };
        match load.backend_of::<EmbeddedMail>(&load.instances[0], "mail") {
            Ok(store) => start_on_store(load, place, store, spec, habits),
            Err(_) => start_on_server(load, place, spec, habits),
        }
    }
}

fn is_server(instance: &InstanceSpec) -> bool {
    instance.backend == IMAP
}

/// Fails when there are more users than those who can have mail.
fn check_users(load: &LoadStart<'_>, place: Place, accounts: u64) -> Result<(), RunError> {
    if place.users > accounts {
        return Err(RunError::Spec(format!(
            "workload {} has {} users, but there are {accounts} accounts; take fewer users or \
             more accounts",
            load.spec.name, place.users
        )));
    }
    Ok(())
}

fn start_on_store(
    load: LoadStart<'_>,
    place: Place,
    instance: Rc<EmbeddedMail>,
    spec: MailSpec,
    habits: MailHabits,
) -> Result<Box<dyn RunningLoad>, RunError> {
    check_users(&load, place, instance.store().filling().mailboxes.into())?;
    if spec.mailbox_moves_per_h.is_some() {
        let named = |why| RunError::Spec(format!("workload {}: {why}", load.spec.name));
        instance.store().check_moves().map_err(named)?;
    }
    let mut group = Group::new(load.run, place, spec, habits, &load.random);
    let seat = load.instances[0].seat.clone();
    let waiting = seat.clone();
    group.queued = Some(Box::new(move || {
        waiting.holder::<EmbeddedMail>().map_or(0, |instance| instance.store().waiting())
    }));
    let group = Rc::new(group);
    instance.jobs().work_for(&group, instance.store());
    watch::show(&group, 0);
    // It ends by itself when the load is gone.
    drop(load.run.handle.spawn(watch::watch(Rc::downgrade(&group))));
    Ok(load.start(StorePair { group, instance, seat }))
}

fn start_on_server(
    load: LoadStart<'_>,
    place: Place,
    spec: MailSpec,
    habits: MailHabits,
) -> Result<Box<dyn RunningLoad>, RunError> {
    let server = load.backend_of::<MailBackend>(&load.instances[0], "mail")?.server.clone();
    check_users(&load, place, server.accounts.len() as u64)?;
    let has_probes = spec.probes_per_minute > 0.0;
    let mut group = Group::new(load.run, place, spec, habits, &load.random);
    // What preparing did is no news of the load.
    let _ = server.endpoints.news();
    group.endpoints = Some(server.endpoints.clone());
    let group = Rc::new(group);
    let office = Rc::new(Office::new(group, server));
    let handle = &load.run.handle;
    watch::show(&office.group, 0);
    // Both end by themselves when the load is gone.
    drop(handle.spawn(watch::watch(Rc::downgrade(&office.group))));
    if has_probes {
        let random = load.random.child("probes");
        drop(handle.spawn(probes::probe(Rc::downgrade(&office), random)));
    }
    Ok(load.start(MailPair { office }))
}
