//! An entry point of a user's shader: what every analysis of it shares.
//!
//! The options of an analysis with all inputs ([`AnalysisOptions`], case files in [`inputs`]), the inputs that no
//! option supplies ([`assumed`]), the launch; findings and refusals with their positions; facts about the code that
//! hold for every execution. Other crates hold the engines that execute it.

pub mod accessed_variable;
pub mod assumed;
mod contents;
pub mod dataflow;
mod error;
mod finding;
pub mod input_place;
pub mod inputs;
pub mod interlock;
pub mod launch;
pub mod layout;
mod non_observable;
pub mod open_memory;
mod options;
pub mod order;
pub mod question;
mod robustness;
mod sampler;
pub mod update;

pub use error::{
    Problem, Refusal, WalkLimit, malformed, read_module, source_location, unknown_instruction, unsupported,
};
pub use finding::{FindingCause, FindingKind, InvocationId, LiftFinding, Spot, undefined_result};
pub use non_observable::non_observable_ids;
pub use options::{
    AnalysisOptions, DEFAULT_UNROLL, DeadlinePredicate, InputBytes, ScheduleToken, ScheduleTokenError,
    StopFunction,
};
pub use robustness::{BufferRobustness, Robustness};
