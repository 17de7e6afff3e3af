//! An instance that holds a store: the engine, its background jobs, and the open tables.

use std::any::Any;
use std::path::Path;
use std::rc::Rc;

use plimsoll_engine::create::create_database;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::{LogTime, Signature};
use plimsoll_io::{Context, InstanceId, NANOS_PER_SECOND, Purpose, Random};
use plimsoll_stores::shop::{Remembered, Shop, ShopError};
use plimsoll_workload::store::{Catalogue, Population, StoreTask, Visit};

use super::open::{OpenStore, audit_report};
use super::spec::catalogue_of;
use crate::RunError;
use crate::backend::{Audits, Backend, Backups, Crashes, InstanceLevels, Memory, Work, only};
use crate::context::RunContext;
use crate::events::Level;
use crate::outcome::{AuditReport, DatabaseState, RecoveryResult};
use crate::records::{
    LOG_BASE, OpenEngine, RecordsInstance, begins_blank, options_of, recovery_result, until_stop,
};
use crate::spec::InstanceSpec;
use crate::stalls::TransactionWatch;

impl From<ShopError> for RunError {
    fn from(error: ShopError) -> RunError {
        match error {
            ShopError::Engine(error) => error.into(),
            ShopError::WrongContent(text) => RunError::Corruption(text),
            ShopError::NotOurs(text) => RunError::Spec(text),
        }
    }
}

/// See the module text.
pub struct StoreInstance {
    engine: OpenEngine,
    shop: Shop,
}

impl StoreInstance {
    /// Makes the store if it is not there, and opens it, recovering the instance if need be.
    ///
    /// # Errors
    /// What the disk or the engine reports, or another store.
    pub async fn open(
        run: &RunContext,
        number: u16,
        spec: &InstanceSpec,
    ) -> Result<StoreInstance, RunError> {
        let settings = RecordsInstance::of(spec)?;
        let catalogue = catalogue_of(spec)?;
        let opening = run.handle.now();
        let (mut instance, recovery) = open_instance(run, number, spec, &settings).await?;
        let seconds = (run.handle.now() - opening) as f64 / NANOS_PER_SECOND as f64;
        let recovery = recovery_result(number, &recovery, seconds);
        let mut shop = Shop::open(&instance, catalogue, watch(run, number)).await?;
        if shop.is_none() {
            if spec.databases[0].existing_records.is_some() {
                return Err(RunError::Spec(format!(
                    "{} holds no whole store; let it be made again, or name another path",
                    spec.database_path(0).display()
                )));
            }
            let tables = instance.tables(1).await?;
            let found: Vec<_> = tables.iter().map(|placed| placed.table.name.as_str()).collect();
            if let Some(foreign) =
                found.iter().find(|name| !is_system(name) && !Shop::is_table(name))
            {
                let error = format!(
                    "{} holds other tables than those of a store, such as {foreign}; name another \
                     path",
                    spec.database_path(0).display()
                );
                instance.close().await?;
                return Err(RunError::Spec(error));
            }
            if found.iter().any(|name| !is_system(name)) {
                // What was begun and not finished is made anew.
                instance.close().await?;
                discard(run, number, spec).await?;
                instance = open_instance(run, number, spec, &settings).await?.0;
            }
            if let Err(error) = prepare(run, &instance, &catalogue, &spec.database_path(0)).await {
                // The first error is the one to report; what was begun is made anew by the next
                // run.
                let _ = instance.abandon().await;
                return Err(error);
            }
            shop = Shop::open(&instance, catalogue, watch(run, number)).await?;
        }
        let shop = shop.ok_or_else(|| {
            RunError::Corruption("a store that was just made is not whole".into())
        })?;
        Ok(StoreInstance {
            engine: OpenEngine::start(run, instance, &settings, recovery).await?,
            shop,
        })
    }
}

impl OpenStore for StoreInstance {
    fn size_in_words(&self) -> String {
        self.shop.catalogue().scale().to_string()
    }

    fn population(&self) -> Population {
        Population::from(self.shop.catalogue())
    }

    fn begin_session(&self) -> u64 {
        self.shop.begin_session()
    }

    fn visit<'a>(&'a self, task: &'a StoreTask) -> Work<'a, Result<Visit, RunError>> {
        Box::pin(async move { Ok(self.shop.visit(task).await?) })
    }
}

fn context(number: u16, purpose: Purpose) -> Context {
    Context { purpose, instance: InstanceId(number), database: 1, intended: None }
}

fn is_system(table: &str) -> bool {
    table.starts_with("MSys")
}

/// Opens the instance; of a database that is not there, an empty one is made first.
async fn open_instance(
    run: &RunContext,
    number: u16,
    spec: &InstanceSpec,
    settings: &RecordsInstance,
) -> Result<(Rc<Instance>, plimsoll_engine::instance::RecoveryReport), RunError> {
    let path = spec.database_path(0);
    let reading = context(number, Purpose::Header);
    if spec.unfinished
        && run.files.exists(&path, reading).await?
        && begins_blank(run, &path, reading).await?
    {
        discard(run, number, spec).await?;
    }
    if !run.files.exists(&path, context(number, Purpose::Metadata)).await? {
        let size = settings.page_size(&spec.name).map_err(RunError::Spec)?;
        let time = LogTime::from_utc_ns(run.clock().anchor().utc_ns);
        let signature = Signature::new(spec.databases[0].seed as u32, time);
        create_database(&run.files, &path, size, signature, context(number, Purpose::Prepare))
            .await?;
    }
    let mut random = Random::from_seed(spec.databases[0].seed).child("instance");
    let options = options_of(number, spec, settings)?;
    let opened = Instance::open(run.files.clone(), run.handle.clone(), options, &mut random);
    Ok(opened.await?)
}

/// Deletes a store that was begun, with its log.
async fn discard(run: &RunContext, number: u16, spec: &InstanceSpec) -> Result<(), RunError> {
    let metadata = context(number, Purpose::Metadata);
    let path = spec.database_path(0);
    run.report(
        Level::Warning,
        "begun_deleted",
        format!("{} was begun and not finished; it is made again", path.display()),
    );
    run.files.delete(&path, metadata).await?;
    for entry in run.files.list(&spec.log_directory, metadata).await? {
        if entry.name.starts_with(LOG_BASE) {
            let path = spec.log_directory.join(&entry.name);
            run.files.delete(&path, metadata).await?;
        }
    }
    Ok(())
}

async fn prepare(
    run: &RunContext,
    instance: &Rc<Instance>,
    catalogue: &Catalogue,
    path: &Path,
) -> Result<(), RunError> {
    let begun = run.handle.now();
    let scale = catalogue.scale();
    until_stop(run, Shop::prepare(instance, catalogue, &|_, _| {})).await??;
    let seconds = (run.handle.now() - begun) as f64 / NANOS_PER_SECOND as f64;
    run.report(
        Level::Info,
        "prepared",
        format!(
            "{}: a store of {scale}: {} customers, {} products, {} orders, {} MiB in {seconds:.1} \
             s",
            path.display(),
            scale.customers(),
            scale.products(),
            scale.orders(),
            size_bytes(instance) >> 20
        ),
    );
    Ok(())
}

fn size_bytes(instance: &Instance) -> u64 {
    let open = instance.store().databases.all();
    let sizes = open.iter().map(|database| database.size().file_bytes(database.pages_in_use()));
    sizes.sum()
}

fn watch(run: &RunContext, number: u16) -> Box<dyn Fn(plimsoll_workload::store::Step, u64, u64)> {
    let watch = TransactionWatch::new(&run.handle, &run.recorder, &run.stalls, number);
    Box::new(move |step, begun, commit_begun| watch.committed(0, step.name(), begun, commit_begun))
}

impl Backend for StoreInstance {
    fn levels(&self) -> InstanceLevels {
        self.engine.levels()
    }

    fn databases(&self) -> Vec<DatabaseState> {
        self.engine.databases(std::iter::repeat(self.shop.orders_ever()))
    }

    fn pages_corrected(&self) -> Vec<u64> {
        self.engine.pages_corrected()
    }

    fn recovery(&self) -> Option<RecoveryResult> {
        self.engine.recovery()
    }

    fn backups(&self) -> Option<&dyn Backups> {
        Some(self)
    }

    fn audits(&self) -> Option<&dyn Audits> {
        Some(self)
    }

    fn crashes(self: Rc<Self>) -> Option<Rc<dyn Crashes>> {
        Some(self)
    }

    fn close(self: Rc<Self>) -> Work<'static, Result<(), RunError>> {
        let StoreInstance { engine, shop } = only(self);
        // Its tables hold the engine.
        drop(shop);
        Box::pin(engine.close())
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Backups for StoreInstance {
    fn backup(&self, position: usize, read_bytes: u32) -> Result<Backup, RunError> {
        self.engine.backup(position, read_bytes)
    }

    fn truncate_log(&self, before: u32) -> Work<'_, Result<u32, RunError>> {
        Box::pin(self.engine.truncate_log(before))
    }
}

impl Crashes for StoreInstance {
    fn abandon(self: Rc<Self>) -> Work<'static, Result<Memory, RunError>> {
        let StoreInstance { engine, shop } = only(self);
        let memory: Memory = Box::new(shop.remembered());
        // Its tables hold the engine.
        drop(shop);
        Box::pin(async move {
            engine.abandon().await?;
            Ok(memory)
        })
    }

    fn remember(&self, memory: Memory, lost_count: u64) {
        if let Ok(told) = memory.downcast::<Remembered>() {
            self.shop.remember(&told, lost_count);
        }
    }
}

impl Audits for StoreInstance {
    fn audit(&self) -> Work<'_, Result<AuditReport, RunError>> {
        Box::pin(async move { Ok(audit_report(&self.shop.audit().await?, &self.shop.counts())) })
    }
}
