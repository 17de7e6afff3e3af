//! The modelled array that takes the place of real storage.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_array::ArraySpec;
use plimsoll_array::spec::TimedFault;
use plimsoll_io::Nanos;

/// The storage of a modelled run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelledSpec {
    /// The array.
    pub array: ArraySpec,
    /// Which volume the files of a directory lie on.
    pub places: Vec<PlaceSpec>,
    /// Processors of the modelled host.
    pub processor_count: u32,
    /// How long a transaction occupies one of them.
    pub transaction_processor_ns: Nanos,
    /// What breaks or returns, by the time since measuring began.
    pub faults_while_measuring: Vec<TimedFault>,
}

/// A directory and its volume.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceSpec {
    /// The directory.
    pub directory: PathBuf,
    /// The volume, counted from 0.
    pub volume: u32,
}
