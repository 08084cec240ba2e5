//! The analysis of users' shaders, without processes, files or clocks.
//!
//! [`analyze`] analyzes an entry point: it chooses the inputs that no option gives ([`choose_inputs`]), walks the grid and
//! asks a model ([`decide_choice`]), and adds proofs, litmus tests and fixes. The command line, the library and the
//! playground call these functions, so their answers agree.

mod atomic_features;
mod axes;
mod choose;
mod clean_checks;
mod contents;
mod counters;
mod decide;
pub mod dispatch;
mod entry_options;
mod minimize;
mod needs;
pub mod outcomes;
mod proof;
mod race;
mod records;
mod refutation;
mod sizes;
mod small_inputs;
mod unused_inputs;

pub use choose::{InputChoice, InputGrid, InputMode, InputNeeds, choose_inputs};
pub use decide::{InputChoiceReport, decide, decide_choice};
pub use entry_options::{
    EntryOptions, entry_options, invalid_use_texts, placed_refusal_text, refusal_record, refusal_text,
    source_refusal_text,
};
pub use minimize::minimize_race;
pub use prove::SmtSolver;
pub use race::{AnalysisRequest, EntryAnswer, ProofMode, RacePhase, SaveInputs, analyze, analyze_module};
pub use records::{finding_place, needed_record, needed_sentence, race_line, refused_line};
pub use unused_inputs::{resolve_names, unused_inputs};
