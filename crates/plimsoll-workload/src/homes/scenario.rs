//! Scenarios: what a user does to a file or a folder, as steps that a client of a share makes.
//!
//! A scenario is about one file that is there, one new file, or both: the *new* file is created,
//! written and closed, and then either stays or takes the name of the other one. What a scenario
//! leaves behind follows from its steps.

use plimsoll_io::Random;

use crate::draw_place;

/// What a user does, by the name that it is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file comes into a folder.
    CopyIn,
    /// A file is read to its end.
    CopyOut,
    /// A file is read, written anew beside itself, and replaced.
    Edit,
    /// Folders are looked at.
    Browse,
    /// Every folder is listed for a name.
    Search,
    /// A file goes.
    Delete,
    /// A folder comes.
    NewFolder,
    /// An empty folder goes.
    RemoveFolder,
}

/// Every kind.
pub const KINDS: [Kind; 8] = [
    Kind::CopyIn,
    Kind::CopyOut,
    Kind::Edit,
    Kind::Browse,
    Kind::Search,
    Kind::Delete,
    Kind::NewFolder,
    Kind::RemoveFolder,
];

impl Kind {
    /// The name in plans and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::CopyIn => "home_copy_in",
            Kind::CopyOut => "home_copy_out",
            Kind::Edit => "home_edit",
            Kind::Browse => "home_browse",
            Kind::Search => "home_search",
            Kind::Delete => "home_delete",
            Kind::NewFolder => "home_new_folder",
            Kind::RemoveFolder => "home_remove_folder",
        }
    }
}

/// What a step counts as: the operation of a file server's protocol that it is named for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Opening a file, or creating one; also in vain.
    Create,
    /// Closing.
    Close,
    /// Reading a piece.
    Read,
    /// Writing a piece.
    Write,
    /// Asking what a name stands for.
    QueryInfo,
    /// Listing a folder.
    QueryDirectory,
    /// Flushing, renaming, deleting, making and removing folders.
    Other,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 7] = [
        Operation::Create,
        Operation::Close,
        Operation::Read,
        Operation::Write,
        Operation::QueryInfo,
        Operation::QueryDirectory,
        Operation::Other,
    ];

    /// The name of its metric.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Create => "home_op_create",
            Operation::Close => "home_op_close",
            Operation::Read => "home_op_read",
            Operation::Write => "home_op_write",
            Operation::QueryInfo => "home_op_query_info",
            Operation::QueryDirectory => "home_op_query_directory",
            Operation::Other => "home_op_other",
        }
    }
}

/// One step of a scenario. `file` is the one that is there, `new` the one that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Lists the home.
    ListHome,
    /// Lists the folder of the file.
    ListFolder,
    /// Lists the home and every folder in it.
    ListTree,
    /// Asks what the folder is.
    StatFolder,
    /// Asks what the file is.
    StatFile,
    /// Opens the file.
    OpenFile,
    /// Reads its first piece.
    ReadHead,
    /// Reads all of it.
    ReadFile,
    /// Closes it.
    CloseFile,
    /// Opens the mark of another user's edit, which is not there.
    ProbeLock,
    /// Opens the new file, which is not there yet.
    ProbeNew,
    /// Creates it.
    CreateNew,
    /// Writes all of it.
    WriteNew,
    /// Makes it durable.
    SyncNew,
    /// Closes it.
    CloseNew,
    /// Asks what it is.
    StatNew,
    /// Gives it the name of the file, which goes.
    ReplaceFile,
    /// Deletes the file.
    DeleteFile,
    /// Makes a folder.
    MakeFolder,
    /// Removes an empty folder.
    RemoveFolder,
}

impl Step {
    /// Whether it is about a file that is there.
    fn needs_file(self) -> bool {
        use Step::{CloseFile, DeleteFile, OpenFile, ProbeLock, ReadFile, ReadHead, ReplaceFile};
        matches!(
            self,
            Step::StatFile
                | OpenFile
                | ReadHead
                | ReadFile
                | CloseFile
                | ProbeLock
                | ReplaceFile
                | DeleteFile
        )
    }
}

/// What a scenario leaves behind, in files and folders more or fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Files.
    pub files: i32,
    /// Folders.
    pub folders: i32,
}

/// A scenario and how often it is gone through.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is.
    pub kind: Kind,
    /// Its share, relative to those of the others.
    pub weight: f64,
    /// What is done.
    pub steps: Vec<Step>,
}

/// What is wrong with scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError(pub String);

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ScenarioError {}

/// What is open and done so far.
#[derive(Default)]
struct State {
    file_is_open: bool,
    new_is_open: bool,
    new_is_there: bool,
    file_is_gone: bool,
    effect: Effect,
}

impl Scenario {
    /// Whether it is about a file that is there.
    pub fn needs_file(&self) -> bool {
        self.steps.iter().any(|step| step.needs_file())
    }

    /// What it leaves behind.
    ///
    /// # Errors
    /// Its first step that cannot be done where it stands.
    pub fn effect(&self) -> Result<Effect, ScenarioError> {
        let wrong = |what: &str| ScenarioError(format!("scenario {} {what}", self.kind.name()));
        if self.steps.is_empty() {
            return Err(wrong("has no steps"));
        }
        let mut state = State::default();
        for (index, step) in self.steps.iter().enumerate() {
            let at = |what: &str| wrong(&format!("step {} {what}", index + 1));
            state.take(*step).map_err(at)?;
        }
        if state.file_is_open || state.new_is_open {
            return Err(wrong("leaves a file open"));
        }
        Ok(state.effect)
    }
}

impl State {
    fn take(&mut self, step: Step) -> Result<(), &'static str> {
        let must = |holds: bool, what: &'static str| if holds { Ok(()) } else { Err(what) };
        must(
            !step.needs_file() || !self.file_is_gone,
            "is about a file that the scenario has deleted or replaced",
        )?;
        match step {
            Step::OpenFile => {
                must(!self.file_is_open, "opens a file that is open")?;
                self.file_is_open = true;
            }
            Step::ReadHead | Step::ReadFile => must(self.file_is_open, "reads no open file")?,
            Step::CloseFile => {
                must(self.file_is_open, "closes no open file")?;
                self.file_is_open = false;
            }
            Step::ProbeNew => must(!self.new_is_there, "looks for a new file that is there")?,
            Step::CreateNew => {
                must(!self.new_is_there, "creates a second new file")?;
                (self.new_is_there, self.new_is_open) = (true, true);
                self.effect.files += 1;
            }
            Step::WriteNew | Step::SyncNew => must(self.new_is_open, "writes no open file")?,
            Step::CloseNew => {
                must(self.new_is_open, "closes no open file")?;
                self.new_is_open = false;
            }
            Step::StatNew => must(self.new_is_there, "asks for a file that is not there")?,
            Step::ReplaceFile => {
                must(
                    self.new_is_there && !self.new_is_open && !self.file_is_open,
                    "replaces a file by one that is not there, or open",
                )?;
                (self.file_is_gone, self.new_is_there) = (true, false);
                self.effect.files -= 1;
            }
            Step::DeleteFile => {
                must(!self.file_is_open, "deletes an open file")?;
                self.file_is_gone = true;
                self.effect.files -= 1;
            }
            Step::MakeFolder => self.effect.folders += 1,
            Step::RemoveFolder => self.effect.folders -= 1,
            _ => {}
        }
        Ok(())
    }
}

/// Scenarios that go together.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenarios {
    all: Vec<(Scenario, Effect)>,
    weights: Vec<f64>,
}

impl Scenarios {
    /// These scenarios, checked.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn new(all: Vec<Scenario>) -> Result<Scenarios, ScenarioError> {
        let weights: Vec<f64> = all.iter().map(|scenario| scenario.weight).collect();
        let possible = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if !weights.iter().all(possible) || weights.iter().sum::<f64>() <= 0.0 {
            return Err(ScenarioError(
                "the weights of the scenarios are no shares; write numbers of which one is above 0"
                    .into(),
            ));
        }
        let mut checked = Vec::new();
        for scenario in all {
            let effect = scenario.effect()?;
            let (files, folders) = (effect.files.abs(), effect.folders.abs());
            if files > 1 || folders > 1 || files + folders > 1 {
                return Err(ScenarioError(format!(
                    "scenario {} leaves more than one file or folder more or fewer",
                    scenario.kind.name()
                )));
            }
            checked.push((scenario, effect));
        }
        Ok(Scenarios { all: checked, weights })
    }

    /// One of them by chance, by its position.
    pub fn draw(&self, random: &mut Random) -> usize {
        draw_place(&self.weights, random)
    }

    /// A scenario and what it leaves behind.
    pub fn get(&self, position: usize) -> (&Scenario, Effect) {
        let (scenario, effect) = &self.all[position];
        (scenario, *effect)
    }

    /// The position of the first one that leaves this behind and has a weight.
    pub fn with_effect(&self, wanted: Effect) -> Option<usize> {
        self.all.iter().position(|(scenario, effect)| *effect == wanted && scenario.weight > 0.0)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}
