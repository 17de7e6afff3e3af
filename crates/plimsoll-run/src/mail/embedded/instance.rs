//! An instance that holds a mail store: an engine for the mailboxes, one for the transport queue
//! with its own database and log, and where mailboxes are moved one for the further database; their
//! jobs, and the open store.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::create::create_database;
use plimsoll_engine::instance::{Instance, RecoveryReport};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::{LogTime, Signature};
use plimsoll_io::{Context, Disk, Files, InstanceId, NANOS_PER_SECOND, Nanos, Purpose, Random};
use plimsoll_stores::mail::{MailAudit, MailStore, MailStoreError, is_table};

use super::jobs::MailJobs;
use super::relabelled::Relabelled;
use super::spec::filling_of;
use crate::RunError;
use crate::backend::{Audits, Backend, Backups, Crashes, InstanceLevels, Memory, Work, only};
use crate::context::RunContext;
use crate::events::Level;
use crate::outcome::{AuditReport, DatabaseState, RecoveryResult};
use crate::records::{
    LOG_BASE, OpenEngine, RecordsInstance, begins_blank, options_of, recovery_result, until_stop,
};
use crate::spec::InstanceSpec;

/// Base names of the logs of all engines.
const LOG_BASES: [&str; 3] = [LOG_BASE, "E01", "E02"];
/// The position of the queue, and of the further database.
const QUEUE: usize = 1;
const FURTHER: usize = 2;
/// What the queue's cache may hold at most: mail passes through it.
const QUEUE_CACHE_BYTES_MAX: u64 = 16 << 20;
/// How often preparing tells how far it has come.
const TOLD_EVERY_NS: Nanos = 5 * NANOS_PER_SECOND;
/// What each engine is called.
const ENGINES: [&str; 3] = ["store", "queue", "further database"];

impl From<MailStoreError> for RunError {
    fn from(error: MailStoreError) -> RunError {
        match error {
            MailStoreError::Engine(error) => error.into(),
            MailStoreError::NotOurs(text) => RunError::Spec(text),
        }
    }
}

/// See the module text.
pub struct EmbeddedMail {
    run: RunContext,
    mail: OpenEngine,
    queue: OpenEngine,
    further: Option<OpenEngine>,
    store: Rc<MailStore>,
    jobs: MailJobs,
}

impl EmbeddedMail {
    /// Makes the store if it is not there, and opens it, recovering both engines if need be.
    ///
    /// # Errors
    /// What the disk or the engine reports, or another store.
    pub async fn open(
        run: &RunContext,
        number: u16,
        spec: &InstanceSpec,
    ) -> Result<EmbeddedMail, RunError> {
        let settings = RecordsInstance::of(spec)?;
        let (filling, corpus) = filling_of(spec).map_err(RunError::Spec)?;
        let place = Place { run, number, spec, settings: &settings };
        let (mut engines, recovery) = place.open_all().await?;
        let open = async |engines: &[Rc<Instance>]| {
            let [mail, queue, further @ ..] = engines else { unreachable!("two at least") };
            MailStore::open_with(mail, further.first(), queue, corpus.clone(), filling).await
        };
        let store = match open(&engines).await? {
            Some(store) => store,
            None => {
                engines = place.make(engines, &corpus, filling).await?;
                let made = open(&engines).await?;
                made.ok_or_else(|| {
                    RunError::Corruption("a mail store that was just made is not whole".into())
                })?
            }
        };
        let store = Rc::new(store);
        let mut engines = engines.into_iter();
        let [Some(mail), Some(queue), further] = [engines.next(), engines.next(), engines.next()]
        else {
            unreachable!("two at least")
        };
        let of_mail = place.of_engine(0).settings;
        let further = match further {
            Some(further) => Some(OpenEngine::start(run, further, &of_mail, None).await?),
            None => None,
        };
        Ok(EmbeddedMail {
            run: run.clone(),
            mail: OpenEngine::start(run, mail, &of_mail, recovery).await?,
            queue: OpenEngine::start(run, queue, &place.of_engine(QUEUE).settings, None).await?,
            further,
            jobs: MailJobs::start(run, number.into(), &store),
            store,
        })
    }

    /// The store.
    pub fn store(&self) -> &Rc<MailStore> {
        &self.store
    }

    /// Its jobs.
    pub fn jobs(&self) -> &MailJobs {
        &self.jobs
    }

    async fn let_go(self, closes: bool) -> Result<(), RunError> {
        let EmbeddedMail { mail, queue, further, store, jobs, .. } = self;
        let stopped = jobs.stop().await;
        // Its tables hold the engines.
        drop(store);
        let mut ends = Vec::new();
        for engine in [queue, mail].into_iter().chain(further) {
            ends.push(match closes {
                true => engine.close().await,
                false => engine.abandon().await,
            });
        }
        ends.into_iter().chain([stopped]).collect()
    }
}

/// Where the engines of a store lie.
struct Place<'a> {
    run: &'a RunContext,
    number: u16,
    spec: &'a InstanceSpec,
    settings: &'a RecordsInstance,
}

/// What an engine has of its own.
struct OfEngine {
    files: Files,
    settings: RecordsInstance,
}

impl Place<'_> {
    fn of_engine(&self, position: usize) -> OfEngine {
        let mut settings = self.settings.clone();
        if position == QUEUE {
            settings.cache_bytes_max = settings.cache_bytes_max.min(QUEUE_CACHE_BYTES_MAX);
            settings.maintenance = None;
            settings.copies_count = 1;
            settings.lagged_copies = None;
        } else if self.spec.databases.len() > FURTHER {
            // The cache is one for all mailboxes, wherever they live.
            settings.cache_bytes_max /= 2;
        }
        settings.cache_bytes_min = settings.cache_bytes_min.min(settings.cache_bytes_max);
        let disk: Rc<dyn Disk> = self.run.disk.clone();
        let files = match position as u8 {
            0 => self.run.files.clone(),
            before => Files::new(Rc::new(Relabelled { disk, before })),
        };
        OfEngine { files, settings }
    }

    fn context(&self, purpose: Purpose) -> Context {
        Context { purpose, instance: InstanceId(self.number), database: 1, intended: None }
    }

    /// Opens all engines; databases that are not there are made empty first.
    async fn open_all(&self) -> Result<(Vec<Rc<Instance>>, Option<RecoveryResult>), RunError> {
        let reading = self.context(Purpose::Header);
        let count = self.spec.databases.len();
        for position in 0..count {
            let path = self.spec.database_path(position);
            if self.spec.unfinished
                && self.run.files.exists(&path, reading).await?
                && begins_blank(self.run, &path, reading).await?
            {
                self.discard().await?;
            }
        }
        let (mut engines, mut recovery) = (Vec::new(), None);
        for position in 0..count {
            match self.open_one(position).await {
                Ok((engine, report)) => {
                    engines.push(engine);
                    recovery = recovery.or(report);
                }
                Err(error) => {
                    // The first error is the one to report; what is open is recovered by the next
                    // run.
                    for engine in engines {
                        let _ = engine.abandon().await;
                    }
                    return Err(error);
                }
            }
        }
        Ok((engines, recovery))
    }

    async fn open_one(
        &self,
        position: usize,
    ) -> Result<(Rc<Instance>, Option<RecoveryResult>), RunError> {
        let (run, path) = (self.run, self.spec.database_path(position));
        let OfEngine { files, settings } = &self.of_engine(position);
        if !files.exists(&path, self.context(Purpose::Metadata)).await? {
            let size = settings.page_size(&self.spec.name).map_err(RunError::Spec)?;
            let time = LogTime::from_utc_ns(run.clock().anchor().utc_ns);
            let seed = self.spec.databases[position].seed;
            let signature = Signature::new(seed as u32, time);
            create_database(files, &path, size, signature, self.context(Purpose::Prepare)).await?;
        }
        let mut spec = self.spec.clone();
        spec.databases = vec![self.spec.databases[position].clone()];
        let mut options = options_of(self.number, &spec, settings)?;
        options.log = LogNames::new(&spec.log_directory, LOG_BASES[position]);
        let mut random = Random::from_seed(spec.databases[0].seed).child("instance");
        let begun = run.handle.now();
        let opened = Instance::open(files.clone(), run.handle.clone(), options, &mut random);
        let (instance, report) = opened.await?;
        let seconds = (run.handle.now() - begun) as f64 / NANOS_PER_SECOND as f64;
        self.tell_of(position, &report, seconds);
        Ok((instance, recovery_result(self.number, &report, seconds)))
    }

    fn tell_of(&self, position: usize, report: &RecoveryReport, seconds: f64) {
        if report.recovered {
            let text = format!(
                "{} of instance {} had not been closed: its log was replayed in {seconds:.1} s, \
                 {} transactions were rolled back",
                ENGINES[position], self.spec.name, report.rolled_back
            );
            self.run.report(Level::Warning, "recovered", text);
        }
    }

    /// Makes the store of two engines that hold none.
    async fn make(
        &self,
        engines: Vec<Rc<Instance>>,
        corpus: &plimsoll_workload::mail::Corpus,
        filling: plimsoll_stores::mail::Filling,
    ) -> Result<Vec<Rc<Instance>>, RunError> {
        let (run, path) = (self.run, self.spec.database_path(0));
        if self.spec.databases[0].existing_records.is_some() {
            return Err(RunError::Spec(format!(
                "{} holds no whole mail store; let it be made again, or name another path",
                path.display()
            )));
        }
        let mut engines = engines;
        let mut is_begun = false;
        for (engine, position) in engines.iter().zip(0..) {
            let tables = engine.tables(1).await?;
            let mut names = tables.iter().map(|placed| placed.table.name.as_str());
            let own = |name: &&str| !name.starts_with("MSys");
            if let Some(foreign) = names.clone().filter(own).find(|name| !is_table(name)) {
                return Err(RunError::Spec(format!(
                    "{} holds other tables than those of a mail store, such as {foreign}; name \
                     another path",
                    self.spec.database_path(position).display()
                )));
            }
            is_begun |= names.any(|name| own(&name));
        }
        if is_begun {
            // What was begun and not finished is made anew.
            for engine in engines {
                engine.close().await?;
            }
            self.discard().await?;
            engines = self.open_all().await?.0;
        }
        let begun = run.handle.now();
        let told_at = Cell::new(begun);
        let told = |mailbox: u32| {
            let now = run.handle.now();
            if now - told_at.get() >= TOLD_EVERY_NS {
                told_at.set(now);
                let text = format!("{} of {} mailboxes are filled", mailbox + 1, filling.mailboxes);
                run.report(Level::Info, "preparing", text);
            }
        };
        let work = MailStore::prepare(&engines[0], &engines[1], corpus, filling, &told);
        let made = until_stop(run, work).await.and_then(|made| Ok(made?));
        if let Err(error) = made {
            // The first error is the one to report; what was begun is made anew by the next run.
            for engine in engines {
                let _ = engine.abandon().await;
            }
            return Err(error);
        }
        let seconds = (run.handle.now() - begun) as f64 / NANOS_PER_SECOND as f64;
        let bytes: u64 = engines.iter().map(|engine| size_bytes(engine)).sum();
        let text = format!(
            "{}: {} mailboxes of {} messages in {} folders and an inbox, {} MiB in {seconds:.1} s",
            path.display(),
            filling.mailboxes,
            filling.messages(),
            filling.folders,
            bytes >> 20
        );
        run.report(Level::Info, "prepared", text);
        Ok(engines)
    }

    /// Deletes a store that was begun, with its queue and all logs.
    async fn discard(&self) -> Result<(), RunError> {
        let metadata = self.context(Purpose::Metadata);
        let (run, files) = (self.run, &self.run.files);
        let path = self.spec.database_path(0);
        let text = format!("{} was begun and not finished; it is made again", path.display());
        run.report(Level::Warning, "begun_deleted", text);
        for position in 0..self.spec.databases.len() {
            let path = self.spec.database_path(position);
            if files.exists(&path, metadata).await? {
                files.delete(&path, metadata).await?;
            }
        }
        for entry in files.list(&self.spec.log_directory, metadata).await? {
            if LOG_BASES.iter().any(|base| entry.name.starts_with(base)) {
                let path = self.spec.log_directory.join(&entry.name);
                files.delete(&path, metadata).await?;
            }
        }
        Ok(())
    }
}

fn size_bytes(instance: &Instance) -> u64 {
    let open = instance.store().databases.all();
    open.iter().map(|database| database.size().file_bytes(database.pages_in_use())).sum()
}

impl Backend for EmbeddedMail {
    fn levels(&self) -> InstanceLevels {
        let mut levels = self.mail.levels();
        if let Some(further) = self.further.as_ref().map(OpenEngine::levels) {
            levels.cache_used_bytes += further.cache_used_bytes;
            levels.cache_limit_bytes += further.cache_limit_bytes;
            levels.page_fault_stalls += further.page_fault_stalls;
            // Generations are counted of both logs of mailboxes.
            levels.log_generation += further.log_generation;
            levels.log_space_bytes += further.log_space_bytes;
            levels.log_lagged_bytes += further.log_lagged_bytes;
        }
        levels
    }

    fn databases(&self) -> Vec<DatabaseState> {
        let messages = std::iter::once(self.store.filling().messages());
        let queued = std::iter::once(self.store.acknowledged());
        let mut found = self.mail.databases(messages);
        found.extend(self.queue.databases(queued));
        if let Some(further) = &self.further {
            found.extend(further.databases(std::iter::once(self.store.moved() as u64)));
        }
        found
    }

    fn pages_corrected(&self) -> Vec<u64> {
        let engines = [&self.mail, &self.queue].into_iter().chain(&self.further);
        engines.flat_map(OpenEngine::pages_corrected).collect()
    }

    fn recovery(&self) -> Option<RecoveryResult> {
        self.mail.recovery()
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
        Box::pin(only(self).let_go(true))
    }

    fn into_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Backups for EmbeddedMail {
    fn backup(&self, position: usize, read_bytes: u32) -> Result<Backup, RunError> {
        let engine = match (position, &self.further) {
            (0, _) => &self.mail,
            (FURTHER, Some(further)) => further,
            _ => &self.queue,
        };
        engine.backup(0, read_bytes)
    }

    fn truncate_log(&self, _before: u32) -> Work<'_, Result<u32, RunError>> {
        // Mailboxes and queue have logs of their own, and no backup of them is kept.
        Box::pin(async { Err(RunError::Spec("log of a mail store is not truncated".into())) })
    }
}

impl Crashes for EmbeddedMail {
    fn abandon(self: Rc<Self>) -> Work<'static, Result<Memory, RunError>> {
        let memory: Memory = Box::new(self.store.acknowledged());
        Box::pin(async move {
            only(self).let_go(false).await?;
            Ok(memory)
        })
    }

    fn remember(&self, memory: Memory, _lost_count: u64) {
        if let Ok(acknowledged) = memory.downcast::<u64>() {
            self.store.remember(*acknowledged);
        }
    }
}

impl Audits for EmbeddedMail {
    fn audit(&self) -> Work<'_, Result<AuditReport, RunError>> {
        Box::pin(async move {
            if let Some(error) = self.jobs.failure() {
                return Err(error);
            }
            // What was accepted is delivered first, so that all of it is looked at.
            until_stop(&self.run, self.store.deliver_queued(&|_| {})).await??;
            let audit = until_stop(&self.run, self.store.audit()).await??;
            Ok(report(&self.store, &audit))
        })
    }
}

fn report(store: &MailStore, audit: &MailAudit) -> AuditReport {
    let counts = [
        ("accounts", u64::from(store.filling().mailboxes)),
        ("moved", store.moved() as u64),
        ("recipients_acknowledged", store.acknowledged()),
        ("recipients_accepted", audit.accepted),
        ("delivered", audit.delivered),
        ("queued", audit.queued),
        ("received", audit.received),
        ("deleted", audit.deleted),
        ("messages", audit.messages),
        ("contents", audit.contents),
        ("used_bytes", audit.used_bytes),
    ];
    AuditReport {
        counts: counts.into_iter().collect(),
        findings: audit.findings(store.acknowledged()),
    }
}
