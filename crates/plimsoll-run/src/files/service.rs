//! The pair of the family: slots of workers, and what carries their transactions out.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::{Handle, Random};
use plimsoll_workload::Done;
use plimsoll_workload::files::{Direction, FileDemand, FilePlace, FileTask, FileWorker, Transfer};

use super::file_set::FileSet;
use super::metrics::{OPERATIONS, size_class};
use super::spec::BelowBlock;
use crate::RunError;
use crate::load::{Book, Label, Pair, Service};

/// A file that a workload works on.
pub struct LoadedFile {
    /// Position of its instance in the plan.
    pub instance: u32,
    /// Its share of what arrives.
    pub weight: f64,
    /// Its position in the instance.
    pub position: usize,
    /// What holds it.
    pub set: Rc<FileSet>,
}

impl LoadedFile {
    /// What a demand knows of it.
    pub fn place(&self) -> FilePlace {
        FilePlace { weight: self.weight, size_bytes: self.set.files()[self.position].size_bytes() }
    }
}

/// See the module text.
pub struct FilePair {
    /// Time.
    pub handle: Handle,
    /// The workers; sessions of a file are shared out between them.
    pub workers: Vec<Rc<RefCell<FileWorker>>>,
    /// What becomes of transfers that are no whole blocks.
    pub below_block: BelowBlock,
    /// The files.
    pub files: Vec<LoadedFile>,
}

impl Pair for FilePair {
    type Task = FileTask;
    type Demand = FileDemand;
    type Service = FileService;

    fn weights(&self) -> Vec<f64> {
        self.files.iter().map(|file| file.weight).collect()
    }

    fn description(&self) -> String {
        format!("{} files by {} workers", self.files.len(), self.workers.len())
    }

    fn session(&self, number: u32, _: Random, places: Random, positions: &[usize]) -> FileDemand {
        let worker = &self.workers[number as usize % self.workers.len()];
        FileDemand::new(worker.clone(), places, positions)
    }

    fn arrivals(&self, _: Random, places: Random) -> FileDemand {
        let all: Vec<usize> = (0..self.files.len()).collect();
        FileDemand::new(self.workers[0].clone(), places, &all)
    }

    fn into_service(self) -> FileService {
        FileService { handle: self.handle, below_block: self.below_block, files: self.files }
    }
}

/// Carries out transactions on files.
pub struct FileService {
    handle: Handle,
    below_block: BelowBlock,
    files: Vec<LoadedFile>,
}

impl FileService {
    async fn transfer(
        &self,
        place: usize,
        transfer: &Transfer,
        book: &mut Book,
    ) -> Result<(), RunError> {
        let file = &self.files[place];
        let begun = self.handle.now();
        file.set.transfer(file.position, transfer, self.below_block).await?;
        book.note(size_class(transfer.size_bytes), self.handle.now() - begun);
        Ok(())
    }
}

impl Service for FileService {
    type Task = FileTask;

    async fn execute(&self, task: &FileTask, book: &mut Book) -> Result<Done, RunError> {
        let begun = self.handle.now();
        self.transfer(task.place, &task.request, book).await?;
        if let Some(reply) = &task.reply {
            self.transfer(task.place, reply, book).await?;
        }
        let file = &self.files[task.place];
        file.set.watch().done(file.position, operation(task), begun);
        Ok(Done::Done)
    }

    fn label(&self, task: &FileTask) -> Label {
        let file = &self.files[task.place];
        Label {
            instance: file.instance,
            database: file.position as u32 + 1,
            operation: operation(task),
        }
    }

    fn count(&self, task: &FileTask, _: Done, count: &mut dyn FnMut(&'static str)) {
        let file = &self.files[task.place];
        let block = file.set.files()[file.position].block_bytes();
        for transfer in [Some(task.request), task.reply].into_iter().flatten() {
            if !(transfer.offset | transfer.size_bytes).is_multiple_of(block) {
                count("file_below_block");
            }
        }
    }
}

fn operation(task: &FileTask) -> &'static str {
    match task.request.direction {
        Direction::Read => OPERATIONS[0],
        Direction::Write => OPERATIONS[1],
    }
}
