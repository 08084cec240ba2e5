//! Answers about entry points: inputs to choose, and the engines in their order.

mod atomic_features;
mod axes;
mod choose;
mod clean_checks;
mod counters;
mod dispatch;
mod judge;
mod minimize;
mod needs;
mod outcomes;
mod refine;
mod unused_inputs;

pub use choose::{InputChoice, InputGrid, InputMode, InputNeeds, choose_inputs};
pub use dispatch::{DispatchBuffer, DispatchImage, KernelDispatch, plan_dispatch};
pub use judge::{InputChoiceReport, judge, judge_choice};
pub use minimize::minimize_race;
pub use outcomes::{FinalCell, FinalContent, FinalContents, final_contents};
pub use refine::{
    Counterexample, Refinement, RefinementCoverage, RefinementQuery, RefinementVerdict, refine,
    with_open_memory,
};
pub use unused_inputs::{resolve_names, unused_inputs};
