//! An entry point of a user's shader: what every analysis of it shares.
//!
//! The options of an analysis with all inputs ([`AnalysisOptions`], case files in [`inputs`]), the inputs that no
//! option supplies ([`assumed`]), the launch; findings and refusals with their positions; facts about the code that
//! hold for every execution. Other crates hold the engines that execute it.

pub mod accessed_variable;
pub mod address_offset;
pub mod assumed;
mod contents;
pub mod dataflow;
mod element_names;
mod error;
mod finding;
pub mod input_place;
pub mod inputs;
pub mod interlock;
pub mod launch;
pub mod layout;
mod memory_cell;
mod non_observable;
pub mod open_memory;
mod options;
pub mod order;
pub mod question;
pub mod ray_queries;
pub mod sampler;
pub mod stage;
mod undefined_result;
pub mod update;

pub use element_names::element_names;
pub use error::{
    Problem, Refusal, malformed, read_module, source_location, unknown_instruction, unsupported,
};
pub use finding::{FindingCause, FindingKind, InvocationId, LiftFinding, Spot};
pub use memory_cell::{MemoryCell, ObjectId};
pub use non_observable::non_observable_ids;
pub use options::{AnalysisOptions, DEFAULT_BYTES, DEFAULT_UNROLL, DeadlinePredicate, StopFunction};
pub use undefined_result::undefined_result;
