//! Axiomatic memory models as cat text, and the engine that evaluates them on litmus tests.
//!
//! A model is a `.cat` file ([`cat`]), shipped by name ([`Model::shipped`]) or supplied by the user
//! ([`Model::from_text`]). [`predict`] decides for every outcome of a test if some consistent execution shows
//! it, and if the program races. [`explain_outcome`] gives the reason.
//!
//! The control-flow paths of the threads (`path`) combine to event structures (`skeleton`): events, and the
//! relations that the program alone decides. The model's plan is evaluated on an event structure to lower and
//! upper bounds of every relation (`interval`). The search (`search`) chooses reads-from and modification order, and
//! prunes by these bounds. If this is too slow, the program is encoded as a whole for the SAT solver of the crate
//! `solver` (`guarded`). Outcomes and races are collected in `outcome_collector`.
//!
//! The models `sc` and `serial` determine which outcomes are weak and which are interleaved. `naive` is a brute-force
//! oracle for the tests.
//!
//! ```
//! use model::{Model, PredictOptions, predict};
//!
//! let test = litmus::parse(
//!     r#"VULKAN SB
//! { x = 0; y = 0; }
//! P0@sg 0, wg 0, qf 0  | P1@sg 0, wg 1, qf 0  ;
//! st.atom.dv.sc0 x, 1  | st.atom.dv.sc0 y, 1  ;
//! ld.atom.dv.sc0 r0, y | ld.atom.dv.sc0 r0, x ;
//! exists (P0:r0 == 0 /\ P1:r0 == 0)"#,
//!     "SB",
//! )
//! .map_err(|errors| errors.to_string())?;
//! let vulkan = Model::shipped("vulkan").ok_or("no such model")?.map_err(|errors| errors.to_string())?;
//! let prediction = predict(&test, &vulkan, &PredictOptions::default()).map_err(|error| error.to_string())?;
//! assert_eq!(prediction.can_meet_condition, Some(true));
//! assert_eq!(prediction.race, litmus::Race::Free);
//! # Ok::<(), String>(())
//! ```

mod bounded_test;
mod candidate;
pub mod cat;
mod cells;
mod choice;
pub mod clauses;
mod combinations;
mod complete_prediction;
mod conflict;
mod constants;
mod error;
mod explain;
mod explore;
mod facts;
mod flags;
mod forced;
mod guarded;
#[cfg(feature = "testing")]
pub mod internals;
mod interval;
mod iterative_deepening;
mod liveness;
pub mod matrix;
mod model;
pub mod mutation;
#[cfg(feature = "testing")]
pub mod naive;
mod outcome_collector;
mod path;
mod predict;
mod prepared;
pub mod progress;
mod queries;
mod quick;
mod registers;
mod rmw_chain;
mod search;
mod skeleton;
mod storage_values;
mod supported;
mod symbolic;
mod symmetry;
pub mod synthesis;
mod system;
mod valuation;
mod wgsl;

pub use complete_prediction::complete_prediction;
pub use error::PredictError;
pub use explain::{
    BrokenAxiom, ConsistentExecution, ConsistentExecutions, EventId, EventOwner, ExplainOptions,
    ExplainedEdge, ExplainedEvent, ExplainedExecution, Explanation, ExplanationAnswer, FixSearchResult,
    FoundRace, InstructionChange, Minimality, StatementLocation, UninitialisedRead, explain_outcome,
    list_consistent_executions, list_witness_executions,
};
pub use iterative_deepening::{GrowingPrediction, predict_with_growing_bound};
pub use model::Model;
pub use predict::{PredictOptions, PredictionSummary, predict, predict_summary, predict_without_outcomes};
pub use queries::answer_queries;
pub use skeleton::{BASE_RELATIONS, BASE_SETS, MAX_EVENTS, MAX_THREADS};
pub use solver::Budget;
