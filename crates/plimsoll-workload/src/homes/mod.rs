//! Home folders on a file server: users who copy, edit, browse, search and delete files, scenario
//! by scenario, and what their folders then hold.
//!
//! What a scenario does, step by step, and how often comes from a plan. A home knows what it should
//! hold, so every answer of a storage can be compared.

mod demand;
mod home;
mod scenario;

pub use demand::{HomeDemand, HomePlace, HomeTask};
pub use home::{FileState, FolderState, Home, HomeShape, Move, Sizes};
pub use scenario::{Effect, KINDS, Kind, Operation, Scenario, ScenarioError, Scenarios, Step};
