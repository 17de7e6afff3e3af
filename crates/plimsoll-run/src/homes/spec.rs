//! What a plan says of home folders and of the users who work in them.

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_workload::homes::{HomeShape, Kind, Scenario, Scenarios, Sizes, Step};

use crate::spec::{InstanceSpec, WorkloadSpec};

/// Files are whole numbers of these, as direct I/O wants it on every disk.
const UNIT_BYTES: u64 = 4096;
const HOMES_MAX: u32 = 1_000_000;
const FILES_PER_HOME_MAX: u32 = 100_000;

/// What only this family knows of an instance.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HomesInstance {
    /// How many homes there are.
    pub homes: u32,
    /// Folders of a home at first.
    pub folders: u32,
    /// Files of each of these at first.
    pub files_per_folder: u32,
    /// How long files are.
    pub sizes: Vec<HomeFileSize>,
    /// The longest read or write.
    pub piece_bytes: u64,
}

/// One length of files.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HomeFileSize {
    /// Bytes.
    pub bytes: u64,
    /// How often, relative to the others.
    pub weight: f64,
}

/// What only this family knows of a database, which is the tree of all homes: nothing.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HomesDatabase {}

/// What only this family knows of a workload.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HomesSpec {
    /// What users do, and how often.
    pub scenarios: Vec<ScenarioSpec>,
}

/// One scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSpec {
    /// Which one.
    pub name: KindSpec,
    /// How often, relative to the others.
    pub weight: f64,
    /// What is done.
    pub steps: Vec<StepSpec>,
}

macro_rules! named {
    ($(#[$of:meta])* $name:ident for $target:ident {
        $($(#[$doc:meta])* $variant:ident),+ $(,)?
    }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl From<$name> for $target {
            fn from(spec: $name) -> $target {
                match spec { $($name::$variant => $target::$variant),+ }
            }
        }
    };
}

named! {
    /// The name of a scenario.
    KindSpec for Kind {
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
}

named! {
    /// A step; `file` is the one that is there, `new` the one that comes.
    StepSpec for Step {
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
}

impl HomesInstance {
    /// What an instance says, checked.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn of(instance: &InstanceSpec) -> Result<(HomesInstance, HomeShape), String> {
        let spec: HomesInstance = instance.options_as()?;
        let wrong = |what: String| Err(format!("instance {} {what}", instance.name));
        if instance.databases.len() != 1 {
            return wrong(format!("has {} trees of homes; it is one", instance.databases.len()));
        }
        instance.database_options_as::<HomesDatabase>(0)?;
        if !(1..=HOMES_MAX).contains(&spec.homes) {
            return wrong(format!("has {} homes; take 1 to {HOMES_MAX}", spec.homes));
        }
        let files = spec.folders.saturating_mul(spec.files_per_folder);
        if !(1..=FILES_PER_HOME_MAX).contains(&files) {
            return wrong(format!("has {files} files in a home; take 1 to {FILES_PER_HOME_MAX}"));
        }
        let lengths = spec.sizes.iter().map(|size| size.bytes).chain([spec.piece_bytes]);
        if let Some(odd) = lengths.into_iter().find(|bytes| {
            *bytes == 0 || !bytes.is_multiple_of(UNIT_BYTES) || *bytes > u64::from(u32::MAX)
        }) {
            return wrong(format!(
                "has sizes or pieces of {odd} bytes; take whole numbers of {UNIT_BYTES} below 4 GiB"
            ));
        }
        let sizes: Vec<_> = spec.sizes.iter().map(|size| (size.bytes, size.weight)).collect();
        let sizes =
            Sizes::new(&sizes).map_err(|error| format!("instance {}: {error}", instance.name))?;
        let (folders, files_per_folder) = (spec.folders, spec.files_per_folder);
        Ok((spec, HomeShape { folders, files_per_folder, sizes }))
    }
}

impl HomesSpec {
    /// The scenarios of a workload, checked.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn of(workload: &WorkloadSpec) -> Result<Scenarios, String> {
        let spec: HomesSpec = workload.options_as()?;
        let scenarios = spec.scenarios.iter().map(|scenario| Scenario {
            kind: scenario.name.into(),
            weight: scenario.weight,
            steps: scenario.steps.iter().map(|step| (*step).into()).collect(),
        });
        Scenarios::new(scenarios.collect())
            .map_err(|error| format!("workload {}: {error}", workload.name))
    }
}
