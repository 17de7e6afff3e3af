//! Users of a mail server that is not ours: they read by IMAP, send by LMTP or SMTP, and do what people do in a day.
//!
//! An instance is a server with its accounts, a database of it one endpoint. A session is a user with a schedule of its own, so the load is open:
//! a user that is late has its tasks waiting, and response time runs from when a task was due.

mod audit;
mod gauges;
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

use plimsoll_io::{Network, RealNetwork, RealNetworkOptions};
use plimsoll_measure::Metric;
use schemars::{Schema, schema_for};

use crate::RunError;
use crate::backend::{Audits, Backend, Work};
use crate::context::RunContext;
use crate::family::Family;
use crate::load::{Drive, LoadStart, RunningLoad};
use crate::outcome::{AuditReport, DatabaseState};
use crate::records::until_stop;
use crate::spec::{InstanceSpec, WorkloadSpec};

use metrics::{METRICS, OPERATIONS};
use office::Office;
use server::MailServer;
use service::MailPair;
use spec::{MailDatabase, MailInstance, MailSpec};

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
    pub fn on(reach: impl Fn(&RunContext) -> Result<Rc<dyn Network>, RunError> + 'static) -> MailFamily {
        MailFamily {
            reach: Box::new(reach),
        }
    }
}

/// A server that is being used.
struct MailBackend {
    run: RunContext,
    server: Rc<MailServer>,
}

impl Backend for MailBackend {
    fn databases(&self) -> Vec<DatabaseState> {
        let endpoints = (0..self.server.endpoints()).map(|endpoint| DatabaseState {
            path: self.server.address_of(endpoint).into(),
            size_bytes: 0,
            records_ever: self.server.ledger.delivered_by(endpoint),
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
        &["imap"]
    }

    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        MailInstance::of(instance).map(drop)
    }

    fn check_workload(&self, workload: &WorkloadSpec) -> Result<(), String> {
        MailSpec::of(workload).map(drop)
    }

    fn workload_schema(&self) -> Schema {
        schema_for!(MailSpec)
    }

    fn instance_schema(&self) -> Schema {
        schema_for!(MailInstance)
    }

    fn database_schema(&self) -> Schema {
        schema_for!(MailDatabase)
    }

    fn open<'a>(
        &'a self,
        run: &'a RunContext,
        number: u16,
        instance: &'a InstanceSpec,
    ) -> Work<'a, Result<Rc<dyn Backend>, RunError>> {
        Box::pin(async move {
            let network = (self.reach)(run)?;
            let server = Rc::new(MailServer::new(run, network, number, instance)?);
            prepare::prepare(run, &server).await?;
            let backend: Rc<dyn Backend> = Rc::new(MailBackend {
                run: run.clone(),
                server,
            });
            Ok(backend)
        })
    }

    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError> {
        let (spec, habits) = MailSpec::of(load.spec).map_err(RunError::Spec)?;
        let backend = load.backend_of::<MailBackend>(&load.instances[0], "a mail server")?;
        let server = backend.server.clone();
        let Drive::Sessions { count: users, .. } = load.drive else {
            return Err(RunError::Spec(format!(
                "workload {} arrives by a schedule, but mail users have their own; write sessions",
                load.spec.name
            )));
        };
        if users as usize > server.accounts.len() {
            return Err(RunError::Spec(format!(
                "workload {} has {users} users, but there are {} accounts; take fewer users or more accounts",
                load.spec.name,
                server.accounts.len()
            )));
        }
        let has_probes = spec.probes_per_minute > 0.0;
        let (workload, users) = (load.number as u32 + 1, u64::from(users));
        let office = Office::new(load.run, workload, spec, habits, server, users, &load.random);
        let office = Rc::new(office);
        let handle = &load.run.handle;
        watch::show(&office, 0);
        // Both end by themselves when the load is gone.
        drop(handle.spawn(watch::watch(Rc::downgrade(&office))));
        if has_probes {
            let random = load.random.child("probes");
            drop(handle.spawn(probes::probe(Rc::downgrade(&office), random)));
        }
        Ok(load.start(MailPair { office }))
    }
}
