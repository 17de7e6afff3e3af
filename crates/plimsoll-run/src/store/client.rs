//! An instance that is a store in a database that is not ours: a file of SQLite, or a database on a
//! server.
//!
//! What it costs the storage is not measured by us, but by the counters of its device; what it does
//! is what the server's page cache lets it do. There is no checksum of its pages and no recovery of
//! ours.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use plimsoll_clients::client::{ClientError, Hold, Mode, Source, StoreClient};
use plimsoll_clients::endpoints::Endpoints;
use plimsoll_clients::mysql::{self, MysqlStore};
use plimsoll_clients::postgresql::{self, PostgresStore};
use plimsoll_clients::sqlite::SqliteStore;
use plimsoll_io::{NANOS_PER_SECOND, Nanos, TlsClient, read_text_file};
use plimsoll_workload::store::{Population, StoreAudit, StoreTask, Visit};

use super::open::{OpenStore, audit_report};
use super::spec::{ClientInstanceSpec, EndpointSpec, RowsOf, ServerSpec, catalogue_of};
use crate::RunError;
use crate::backend::{Audits, Backend, Work};
use crate::context::RunContext;
use crate::events::Level;
use crate::outcome::{AuditReport, DatabaseState};
use crate::records::until_stop;
use crate::spec::{DistributionSpec, InstanceSpec, distribution_of};

/// A file of SQLite.
pub const SQLITE: &str = "sqlite";
/// A database on PostgreSQL.
pub const POSTGRESQL: &str = "postgresql";
/// A database on MySQL or MariaDB.
pub const MYSQL: &str = "mysql";

impl From<ClientError> for RunError {
    fn from(error: ClientError) -> RunError {
        match error {
            ClientError::Database { .. } => RunError::Service(error.to_string()),
            ClientError::WrongContent(text) => RunError::Corruption(text),
            ClientError::InUse(text) => RunError::InUse(text),
            ClientError::NotOurs(text) | ClientError::Unusable(text) => RunError::Spec(text),
            ClientError::Companion(error) => RunError::Spec(error.to_string()),
        }
    }
}

/// Whether what an instance says is possible.
///
/// # Errors
/// The first thing that is not.
pub fn check(instance: &InstanceSpec) -> Result<(), String> {
    let spec: ClientInstanceSpec = instance.options_as()?;
    let name = &instance.name;
    let is_file = instance.backend == SQLITE;
    if spec.server.is_some() == is_file {
        let wanted = if is_file { "is a file and has no server" } else { "needs a server" };
        return Err(format!("instance {name} {wanted}"));
    }
    if spec.rows != RowsOf::Seed && is_file {
        return Err(format!(
            "instance {name} is {}: a DVD Store that is there can be driven on a server only",
            instance.backend
        ));
    }
    if instance.backend == MYSQL
        && spec.server.as_ref().is_some_and(|server| server.ca_file.is_some())
    {
        return Err(format!(
            "instance {name} is mysql, which is not talked to in TLS here; leave ca_file out"
        ));
    }
    let distribution = spec.server.as_ref().and_then(|server| server.distribution);
    if let Some(mistake) = distribution.and_then(DistributionSpec::mistake) {
        return Err(format!("instance {name}: {mistake}"));
    }
    for (key, seconds) in [("timeout_s", spec.timeout_s), ("lost_after_s", spec.lost_after_s)] {
        if !(0.1..=86_400.0).contains(&seconds) {
            return Err(format!("instance {name}: {key} is {seconds}; take 0.1 to 86400"));
        }
    }
    match catalogue_of(instance) {
        Ok(_) => Ok(()),
        Err(RunError::Spec(text)) => Err(text),
        Err(other) => Err(other.to_string()),
    }
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * NANOS_PER_SECOND as f64) as Nanos
}

/// How often it is looked whether a database is still claimed for its run.
const LOOK_NS: Nanos = NANOS_PER_SECOND;
/// What is told of a claim that was lost.
const CLAIM_LOST: &str = "store_claim_lost";

/// See the module text.
pub struct ClientInstance {
    store: Box<dyn StoreClient>,
    lost_after_ns: Nanos,
    size_bytes: Cell<u64>,
    /// By what it can lose commits.
    commits_at_risk: RefCell<Vec<String>>,
    claim: Claim,
}

/// What is known of the claim of the database.
#[derive(Default)]
struct Claim {
    /// It is gone, and that was told.
    is_lost: Cell<bool>,
    /// Another run has it.
    taken: RefCell<Option<RunError>>,
}

impl ClientInstance {
    /// Opens the store; makes it first where there is nothing.
    ///
    /// # Errors
    /// A server that lets nobody in, or a database that holds something else.
    pub async fn open(
        run: &RunContext,
        spec: &InstanceSpec,
    ) -> Result<Rc<ClientInstance>, RunError> {
        let settings: ClientInstanceSpec = spec.options_as().map_err(RunError::Spec)?;
        let begun = run.handle.now();
        let store = until_stop(run, connect(run, spec, &settings)).await??;
        let size_bytes = store.size_bytes().await?;
        let commits_at_risk = store.commits_at_risk().await?;
        let opened = Rc::new(ClientInstance {
            store,
            lost_after_ns: nanos(settings.lost_after_s),
            size_bytes: Cell::new(size_bytes),
            commits_at_risk: RefCell::new(commits_at_risk),
            claim: Claim::default(),
        });
        let seconds = (run.handle.now() - begun) as f64 / NANOS_PER_SECOND as f64;
        let (counts, population) = (opened.store.counts(), opened.population());
        let text = format!(
            "{}: a store of {}: {} customers, {} products, {} orders, {} MiB, open after \
             {seconds:.1} s",
            opened.store.place(),
            opened.size_in_words(),
            counts.customers,
            population.products,
            counts.orders,
            size_bytes >> 20
        );
        run.report(Level::Info, "prepared", text);
        let at_risk = opened.commits_at_risk.borrow().join("; ");
        if !at_risk.is_empty() {
            let text = format!(
                "{}: {at_risk}: orders are acknowledged before they are durable",
                opened.store.place()
            );
            run.report(Level::Warning, "store_not_durable", text);
        }
        drop(run.handle.spawn(keep_claim(run.clone(), Rc::downgrade(&opened))));
        Ok(opened)
    }

    /// Looks after the claim of the database, and tells what became of it.
    async fn hold(&self, run: &RunContext) {
        let tell = |text: &str| {
            let text = format!("{}: {text}", self.store.place());
            run.report(Level::Warning, CLAIM_LOST, text);
        };
        match self.store.hold().await {
            Ok(Hold::Kept) => {}
            Ok(Hold::Again) => {
                self.claim.is_lost.set(false);
                tell("the connection that keeps other runs away was lost, and is there again");
            }
            Ok(Hold::Lost) if self.claim.is_lost.replace(true) => {}
            Ok(Hold::Lost) => tell("the connection that keeps other runs away is lost"),
            Err(error) => {
                let error = RunError::from(error);
                self.claim.taken.borrow_mut().get_or_insert(error);
            }
        }
    }

    /// Fails when another run has the database.
    fn check_claim(&self) -> Result<(), RunError> {
        self.claim.taken.borrow().clone().map_or(Ok(()), Err)
    }
}

/// Looks after the claim for as long as the instance is there.
async fn keep_claim(run: RunContext, instance: Weak<ClientInstance>) {
    // It outlives the phase that it begins in.
    let run = RunContext { phase: None, ..run };
    loop {
        run.handle.sleep(LOOK_NS).await;
        let Some(instance) = instance.upgrade() else {
            return;
        };
        instance.hold(&run).await;
    }
}

async fn connect(
    run: &RunContext,
    spec: &InstanceSpec,
    settings: &ClientInstanceSpec,
) -> Result<Box<dyn StoreClient>, RunError> {
    let catalogue = catalogue_of(spec)?;
    let Some(server) = &settings.server else {
        let path = spec.database_path(0);
        return Ok(Box::new(SqliteStore::open(&run.handle, &path, catalogue).await?));
    };
    let password = password_of(server)?;
    let first = EndpointSpec { host: server.host.clone(), port: server.port };
    let endpoints = [first].into_iter().chain(server.endpoints.clone());
    let distribution = distribution_of(server.distribution);
    let (user, database) = (server.user.clone(), server.database.clone());
    let timeout_ns = nanos(settings.timeout_s);
    let source = match settings.rows {
        RowsOf::Seed => Source::Made(catalogue),
        RowsOf::DvdStore => Source::Existing(Mode::Version2),
        RowsOf::DvdStore3 => Source::Existing(Mode::Version3),
    };
    if spec.backend == MYSQL {
        let accesses = endpoints.map(|EndpointSpec { host, port }| mysql::Access {
            host,
            port,
            user: user.clone(),
            password: password.clone(),
            database: database.clone(),
            timeout_ns,
        });
        let accesses = accesses.collect();
        let opened = MysqlStore::open(&run.handle, accesses, distribution, source);
        return Ok(Box::new(opened.await?));
    }
    let tls = tls_of(server)?;
    let accesses = endpoints.map(|EndpointSpec { host, port }| postgresql::Access {
        host,
        port,
        user: user.clone(),
        password: password.clone(),
        database: database.clone(),
        tls: tls.clone(),
        timeout_ns,
    });
    let (accesses, network) = (accesses.collect(), run.network.open(&run.handle)?);
    let opened = PostgresStore::open(&run.handle, network, accesses, distribution, source);
    Ok(Box::new(opened.await?))
}

/// The first line of the file of passwords. Whoever can read it is not asked about: that is checked
/// where the plan is.
fn password_of(server: &ServerSpec) -> Result<Option<String>, RunError> {
    let Some(path) = &server.password_file else {
        return Ok(None);
    };
    let text = read_text_file(path).map_err(RunError::Spec)?;
    Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
}

fn tls_of(server: &ServerSpec) -> Result<Option<TlsClient>, RunError> {
    let Some(path) = &server.ca_file else {
        return Ok(None);
    };
    let text = read_text_file(path).map_err(RunError::Spec)?;
    let client = TlsClient::trusting(text.as_bytes());
    client.map(Some).map_err(|error| RunError::Spec(format!("{}: {error}", path.display())))
}

impl OpenStore for ClientInstance {
    fn size_in_words(&self) -> String {
        let made = self.store.catalogue();
        made.map_or_else(|| "another maker".to_owned(), |catalogue| catalogue.scale().to_string())
    }

    fn population(&self) -> Population {
        self.store.population()
    }

    fn begin_session(&self) -> u64 {
        self.store.begin_session()
    }

    fn visit<'a>(&'a self, task: &'a StoreTask) -> Work<'a, Result<Visit, RunError>> {
        Box::pin(async move {
            self.check_claim()?;
            Ok(self.store.visit(task).await?)
        })
    }

    fn lost_after_ns(&self) -> Option<Nanos> {
        Some(self.lost_after_ns)
    }

    fn endpoints(&self) -> Option<&Endpoints> {
        self.store.endpoints()
    }
}

impl Backend for ClientInstance {
    fn databases(&self) -> Vec<DatabaseState> {
        vec![DatabaseState {
            path: PathBuf::from(self.store.place()),
            size_bytes: self.size_bytes.get(),
            records_ever: self.store.counts().orders,
            commits_at_risk: self.commits_at_risk.borrow().clone(),
        }]
    }

    fn audits(&self) -> Option<&dyn Audits> {
        Some(self)
    }

    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        Box::pin(async move { Ok(self.store.close().await?) })
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Audits for ClientInstance {
    fn audit(&self) -> Work<'_, Result<AuditReport, RunError>> {
        Box::pin(async move {
            self.check_claim()?;
            let audit = self.store.audit().await?;
            self.size_bytes.set(self.store.size_bytes().await?);
            // A server may have been set otherwise meanwhile.
            self.commits_at_risk.replace(self.store.commits_at_risk().await?);
            let mut report = audit_report(&audit, &self.store.counts());
            if !report.findings.is_empty() {
                report.findings.extend(differing(&self.store.audits().await?));
            }
            Ok(report)
        })
    }
}

/// Endpoints that do not lead to the same data as the first, in sentences.
fn differing(audits: &[(String, StoreAudit)]) -> Vec<String> {
    let Some(((first, expected), others)) = audits.split_first() else {
        return Vec::new();
    };
    let differ = others.iter().filter(|(_, found)| {
        (found.orders, found.customers) != (expected.orders, expected.customers)
    });
    let differ = differ.map(|(place, found)| {
        format!(
            "endpoints lead to different data: {place} has {} orders and {} customers, {first} has \
             {} and {}; name endpoints of one database",
            found.orders, found.customers, expected.orders, expected.customers
        )
    });
    differ.collect()
}
