//! Axiomatic memory models as cat text, and the engine that evaluates them on litmus tests.
//!
//! A model is a `.cat` file ([`cat`]), shipped by name ([`Model::shipped`]) or supplied by the user
//! ([`Model::from_text`]). [`predict`] decides for every outcome of a test if some consistent execution shows
//! it, and if the program races. [`explain_outcome`] gives the reason.
//!
//! The control-flow paths of the threads (`path`) combine to event structures (`skeleton`): events, and the
//! relations that the program alone decides. The model's plan is evaluated on an event structure to lower and
//! upper bounds of every relation (`interval`). A backward analysis finds the choices of reads-from and
//! modification order that matter, and those that matter only within a location (`activity`). The search
//! chooses the global ones (`search`), solves each location alone (`local`) and combines the solutions to
//! outcomes (`combine`). If this takes too long, a query is encoded (`refute`) for a SAT solver (`sat`).
//!
//! `naive` is a brute-force oracle for the tests. `sequential` executes the program operationally and
//! determines which outcomes are weak.
//!
//! ```
//! use model::{Model, Options, predict};
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
//! let prediction = predict(&test, &vulkan, &Options::default()).map_err(|error| error.to_string())?;
//! assert_eq!(prediction.meets, Some(true));
//! assert_eq!(prediction.race, litmus::Race::Free);
//! # Ok::<(), String>(())
//! ```

mod activity;
mod allows;
mod budget;
pub mod cat;
mod cells;
pub mod certify;
mod choice;
pub mod clauses;
mod combinations;
mod combine;
mod conflict;
mod constants;
mod error;
mod explain;
mod explore;
mod facts;
mod few;
mod flags;
mod forced;
mod growing;
#[cfg(feature = "testing")]
pub mod internals;
mod interval;
mod line;
mod liveness;
mod local;
pub mod matrix;
mod model;
pub mod mutation;
mod mutual_order;
#[cfg(feature = "testing")]
pub mod naive;
mod narrow;
mod path;
mod predict;
mod prepared;
pub mod progress;
mod queries;
mod quick;
mod refute;
mod sat;
mod search;
mod sequential;
mod settle;
mod skeleton;
mod stored;
mod supply;
mod supported;
mod symbolic;
mod symmetry;
pub mod synthesis;
mod system;
mod valuation;
mod wait;
mod wgsl;

pub use allows::{OutcomeQuestion, allows};
pub use budget::Budget;
pub use error::PredictError;
pub use explain::{
    BrokenAxiom, ConsistentExecution, ConsistentExecutions, EventId, EventOwner, ExplainOptions,
    ExplainedEdge, ExplainedEvent, ExplainedExecution, Explanation, ExplanationAnswer, FoundRace,
    InstructionChange, Mend, Minimality, StatementLocation, UninitialisedRead, explain_outcome,
    list_consistent_executions, list_witness_executions,
};
pub use growing::predict_growing;
pub use model::Model;
pub use predict::{Options, Summary, decide, predict, verdict};
pub use queries::answer_queries;
pub use settle::settle;
pub use skeleton::{BASE_RELATIONS, BASE_SETS, MAX_EVENTS, MAX_THREADS};
