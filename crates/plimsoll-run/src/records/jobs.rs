//! What an engine instance does besides the transactions while it is open: maintenance of each
//! database, the reading back of its log for each further copy, copies that replay it later, and a
//! transaction that stays open. An error of a job ends the run as an error of a session does.

use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::maintenance::{MaintenanceOptions, MaintenanceProgress, maintain};
use plimsoll_engine::jobs::read_back::{ReadBackProgress, read_back};
use plimsoll_io::{JoinHandle, NANOS_PER_MILLISECOND, NANOS_PER_SECOND};

use super::lagged::LaggedCopy;
use super::long_reader::{LongReader, read_for_long};
use super::spec::RecordsInstance;
use crate::context::RunContext;
use crate::events::Level;

/// The running jobs of one instance.
pub struct Jobs {
    run: RunContext,
    /// The file of each database that is maintained, and how far it is.
    maintenance: Vec<(String, Rc<MaintenanceProgress>)>,
    read_back: Vec<Rc<ReadBackProgress>>,
    lagged_copies: Vec<Rc<LaggedCopy>>,
    long_reader: Rc<LongReader>,
    tasks: Vec<JoinHandle<Result<(), EngineError>>>,
}

impl Jobs {
    /// Starts what the spec wants.
    pub fn start(
        run: &RunContext,
        instance: &Rc<Instance>,
        settings: &RecordsInstance,
        lagged_copies: Vec<Rc<LaggedCopy>>,
    ) -> Jobs {
        let mut jobs = Jobs {
            run: run.clone(),
            maintenance: Vec::new(),
            read_back: Vec::new(),
            lagged_copies,
            long_reader: Rc::default(),
            tasks: Vec::new(),
        };
        if let Some(maintenance) = settings.maintenance {
            let options = MaintenanceOptions {
                read_bytes: maintenance.read_bytes as usize,
                pause_ns: maintenance.throttle_ms * NANOS_PER_MILLISECOND,
            };
            for (number, path) in (1..).zip(&instance.options().databases) {
                let progress = Rc::new(MaintenanceProgress::default());
                jobs.maintenance.push((path.display().to_string(), progress.clone()));
                let work = maintain(instance.clone(), number, options, progress);
                jobs.tasks.push(run.handle.spawn(work));
            }
        }
        for copy in 2..=settings.copies_count {
            let progress = Rc::new(ReadBackProgress::default());
            jobs.read_back.push(progress.clone());
            let work = read_back(instance.clone(), copy, progress);
            jobs.tasks.push(run.handle.spawn(work));
        }
        for copy in &jobs.lagged_copies {
            jobs.tasks.push(run.handle.spawn(copy.clone().follow(instance.clone())));
        }
        if let Some(seconds) = settings.long_reader_s {
            let open_ns = u64::from(seconds) * NANOS_PER_SECOND;
            let work = read_for_long(instance.clone(), open_ns, jobs.long_reader.clone());
            jobs.tasks.push(run.handle.spawn(work));
        }
        jobs
    }

    /// The first generation that the most lagged copy needs, if there are such copies.
    pub fn lagged_needs_from(&self) -> Option<u32> {
        let needed = self.lagged_copies.iter().map(|copy| copy.needs_from.get());
        needed.filter(|generation| *generation > 0).min()
    }

    /// Ends all jobs and says what they found.
    ///
    /// # Errors
    /// The first error a job met.
    pub async fn stop(self) -> Result<(), EngineError> {
        self.maintenance.iter().for_each(|(_, progress)| progress.stop.set(true));
        self.read_back.iter().for_each(|progress| progress.stop.set(true));
        self.lagged_copies.iter().for_each(|copy| copy.stop.set(true));
        self.long_reader.stop.set(true);
        let mut first_error = None;
        for task in self.tasks {
            if let Err(error) = task.await {
                first_error.get_or_insert(error);
            }
        }
        for (database, progress) in &self.maintenance {
            for (page, damage) in progress.damaged.borrow().iter() {
                let text = format!("maintenance of {database}: page {page}: {damage}");
                self.run.report(Level::Error, "bad_pages", text);
            }
            let text = format!(
                "maintenance of {database}: {} pages checked, {} whole passes",
                progress.pages_checked.get(),
                progress.passes.get()
            );
            self.run.report(Level::Info, "maintenance_ended", text);
        }
        for copy in &self.lagged_copies {
            self.run.report(Level::Info, "lagged_copy_ended", copy.to_string());
        }
        if self.long_reader.looks.get() > 0 {
            self.run.report(Level::Info, "long_reader_ended", self.long_reader.to_string());
        }
        first_error.map_or(Ok(()), Err)
    }
}
