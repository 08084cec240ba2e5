//! Predictions: axiomatic memory models as cat text, and the engine that evaluates them on litmus tests.
//!
//! A model is a `.cat` file ([`cat`]), shipped by name ([`Model::shipped`]) or the user's own ([`Model::from_text`]).
//! [`predict`] enumerates the candidate executions of a test and says of every outcome whether some consistent execution
//! shows it, and whether the program races. [`explain_outcome`] says why.
//!
//! How it works: each thread's control-flow paths (`path`) combine to skeletons (`skeleton`): events, and the relations
//! that the program alone decides. The model's plan is evaluated on a skeleton to what each relation holds at least and at
//! most (`interval`); from the axioms down it is found out which choices of reads-from and modification order matter, and
//! which of them only within their own location (`activity`). The rest is chosen (`search`), each location is solved alone
//! (`local`), and solutions combine to outcomes (`combine`). A question that takes this too long is put as clauses
//! (`refute`) to a solver (`sat`). `naive` does the same by brute force, as an oracle for the
//! tests; `sequential` runs the program step by step and says which outcomes are weak.
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
pub mod clauses;
mod combine;
mod error;
mod explain;
mod explore;
mod facts;
mod few;
mod forced;
mod growing;
mod interval;
mod line;
mod liveness;
mod local;
pub mod matrix;
mod model;
pub mod mutation;
#[cfg(any(test, feature = "testing"))]
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
mod symbolic;
mod symmetry;
pub mod synthesis;
mod system;
mod valuation;
mod wait;

pub use allows::{OutcomeQuestion, allows};
pub use budget::Budget;
pub use error::PredictError;
pub use explain::{
    BrokenAxiom, ConsistentExecution, ConsistentExecutions, Event, EventId, EventOwner, ExplainOptions,
    ExplainedEdge, ExplainedExecution, Explanation, ExplanationAnswer, FoundRace, InstructionChange, Mend,
    Minimality, StatementLocation, UninitialisedRead, explain_outcome, list_consistent_executions,
};
pub use growing::predict_growing;
pub use model::Model;
pub use predict::{Options, Summary, decide, predict, verdict};
pub use queries::answer_queries;
pub use settle::settle;
pub use skeleton::{BASE_RELATIONS, BASE_SETS, MAX_EVENTS, MAX_THREADS};
