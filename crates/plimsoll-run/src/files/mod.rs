//! Files and block devices under access specifications, as Iometer loads them: the second workload
//! family.
//!
//! At the disk seam the data of a file counts as database data, so that whatever is known of reads
//! and writes of databases (latencies, rates, the devices below) is known of files too.

pub(crate) mod content;
mod file_set;
mod metrics;
mod service;
mod spec;
mod witness;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{MemoryDisk, Sparse};
use plimsoll_measure::Metric;
use plimsoll_workload::files::{Access, FilePlace, FileWorker};
use schemars::{Schema, schema_for};

use crate::RunError;
use crate::backend::{Backend, Work};
use crate::context::RunContext;
use crate::family::{BackendSchemas, ChecksumReads, Family};
use crate::load::{Drive, LoadStart, RunningLoad};
use crate::outcome::ChecksumReport;
use crate::spec::{InstanceSpec, WorkloadSpec};

use content::{Pattern, SECTOR_BYTES};
use file_set::{FileSet, OpenFile};
use metrics::{METRICS, OPERATIONS};
use service::{FilePair, LoadedFile};
use spec::{BelowBlock, FilesDatabase, FilesInstance, FilesSpec};
use witness::Witness;

const BACKEND: &str = "files";

/// See the module text.
#[derive(Default)]
pub struct Files {
    /// What each verified file of this run should hold, also when it is closed.
    witnesses: RefCell<BTreeMap<PathBuf, Rc<Witness>>>,
}

impl Family for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn backends(&self) -> &'static [&'static str] {
        &[BACKEND]
    }

    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        let settings: FilesInstance = instance.options_as()?;
        let named = |error: String| format!("instance {}: {error}", instance.name);
        Pattern::of_number(settings.data_pattern).map_err(named)?;
        for (position, file) in instance.databases.iter().enumerate() {
            instance.database_options_as::<FilesDatabase>(position)?;
            if file.size_bytes == 0 || !file.size_bytes.is_multiple_of(1 << 20) {
                return Err(format!(
                    "file {} of instance {} has {} bytes; take a whole number of MiB",
                    file.file_name, instance.name, file.size_bytes
                ));
            }
        }
        Ok(())
    }

    fn check_workload(&self, workload: &WorkloadSpec, _: &[&InstanceSpec]) -> Result<(), String> {
        FilesSpec::of(workload).map(drop)
    }

    fn workload_schema(&self) -> Schema {
        schema_for!(FilesSpec)
    }

    fn backend_schemas(&self) -> Vec<BackendSchemas> {
        let (instance, database) = (schema_for!(FilesInstance), schema_for!(FilesDatabase));
        vec![BackendSchemas::new(self.backends(), instance, database)]
    }

    fn checksum_unit_bytes(&self, instance: &InstanceSpec) -> u32 {
        let verified = instance.options_as().is_ok_and(|settings: FilesInstance| settings.verify);
        if verified { SECTOR_BYTES as u32 } else { 0 }
    }

    fn waits_for_writes(&self, _: &InstanceSpec) -> bool {
        true
    }

    fn load_sparse(
        &self,
        memory: &MemoryDisk,
        instance: &mut InstanceSpec,
    ) -> Result<(), RunError> {
        let settings: FilesInstance = instance.options_as().map_err(RunError::Spec)?;
        for position in 0..instance.databases.len() {
            let recipe = file_set::recipe_of(instance, position, settings)?;
            let (path, size) =
                (instance.database_path(position), instance.databases[position].size_bytes);
            memory.load_sparse(path, size, Sparse::new(Arc::new(recipe)));
            instance.databases[position].existing_records = Some(size / SECTOR_BYTES as u64);
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
            let opened = Rc::new(FileSet::open(run, number, instance).await?);
            for file in opened.files() {
                if let Some(witness) = file.witness() {
                    self.witnesses.borrow_mut().insert(file.path().to_owned(), witness.clone());
                }
            }
            Ok(opened as Rc<dyn Backend>)
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
        let path = instance.database_path(position);
        let witness = self.witnesses.borrow().get(&path).cloned();
        Box::pin(file_set::checksum(run, (number, position), instance, reads, witness))
    }

    fn start(&self, load: LoadStart<'_>) -> Result<Box<dyn RunningLoad>, RunError> {
        let (spec, access) = FilesSpec::of(load.spec).map_err(RunError::Spec)?;
        let files = files_of(&load)?;
        for file in &files {
            let open = &file.set.files()[file.position];
            check_fit(open, &access, spec.below_block)
                .map_err(|error| RunError::Spec(format!("workload {}: {error}", load.spec.name)))?;
        }
        let access = at_boundaries(&access, &files);
        let places: Rc<[FilePlace]> = files.iter().map(LoadedFile::place).collect();
        let count = match load.drive {
            Drive::Sessions { .. } => spec.workers,
            Drive::Arrivals { .. } => 1,
        };
        let workers = (0..count).map(|number| {
            let random = load.random.child(&format!("worker {number}"));
            let worker = FileWorker::new(access.clone(), random, places.clone());
            Rc::new(RefCell::new(worker))
        });
        let pair = FilePair {
            handle: load.run.handle.clone(),
            workers: workers.collect(),
            below_block: spec.below_block,
            files,
        };
        Ok(load.start(pair))
    }
}

fn files_of(load: &LoadStart<'_>) -> Result<Vec<LoadedFile>, RunError> {
    let mut files = Vec::new();
    for instance in &load.instances {
        let set = load.backend_of::<FileSet>(instance, "files")?;
        files.extend((0..set.files().len()).map(|position| LoadedFile {
            instance: instance.number,
            weight: instance.weight,
            position,
            set: set.clone(),
        }));
    }
    Ok(files)
}

/// Whether a file is long enough for the longest transfer, and its blocks short enough where they
/// must be.
fn check_fit(file: &OpenFile, access: &Access, below: BelowBlock) -> Result<(), String> {
    let (path, block) = (file.path().display(), file.block_bytes());
    if access.largest_bytes() > file.size_bytes() {
        return Err(format!(
            "transfers of {} bytes do not fit into {path}, of which {} are used; take a larger \
             file",
            access.largest_bytes(),
            file.size_bytes()
        ));
    }
    let broken = access.lines().iter().find(|line| {
        [line.size_bytes, line.align_bytes, line.reply_bytes]
            .iter()
            .any(|bytes| !bytes.is_multiple_of(block))
    });
    match broken {
        Some(line) if below == BelowBlock::Refuse => Err(format!(
            "a line of {} bytes (align {}, reply {}) is no whole number of the logical blocks of \
             {path}, which have {block} bytes; \
             write below_block = \"round\" or \"read_modify_write\", or other sizes",
            line.size_bytes, line.align_bytes, line.reply_bytes
        )),
        _ => Ok(()),
    }
}

/// Lines without an alignment begin at blocks of the storage; those shorter than a block at sectors
/// of 512 bytes.
fn at_boundaries(access: &Access, files: &[LoadedFile]) -> Access {
    let blocks = files.iter().map(|file| file.set.files()[file.position].block_bytes());
    let block = blocks.max().unwrap_or(SECTOR_BYTES as u64);
    access.aligned(|line| match line.align_bytes {
        0 if line.size_bytes.is_multiple_of(block) => block,
        0 => SECTOR_BYTES as u64,
        align => align,
    })
}
