//! The published answers about one litmus test or shader, without processes, files or clocks.
//!
//! [`check_test`] predicts a test under a model and returns the line of `check`; [`simulate_test`] runs a
//! test on the simulated GPU and returns the line of `run`; [`judge_test`] judges counts of another device;
//! [`analyze`] analyzes an entry point of a shader. The command line, the library and the playground call these
//! functions, so their answers agree.

mod check;
mod command_outcome;
mod fix;
mod judge;
mod limit;
mod proof;
mod race;
mod repair;
pub mod scan;
mod shader;
pub mod similar;
mod simulate;
pub mod wgsl;

pub use check::{
    CheckError, CheckNote, TestAnswer, TestQuestion, check_test, name_without_chains, prepare_test,
};
pub use command_outcome::CommandOutcome;
pub use fix::{CodeEdit, FixEdits, add_fixes, change_record, fix_edits, line_range};
pub use judge::{JudgeError, JudgeRequest, judge_test};
pub use limit::StopFunction;
pub use race::{
    AnalysisRequest, EntryAnswer, ProofMode, RacePhase, SaveInputs, analyze, analyze_module, needed_record,
    needed_sentence, race_line, refused_line,
};
pub use repair::EditableSource;
pub use shader::{
    EntryOptions, entry_options, invalid_use_texts, placed_refusal_text, refusal_text, source_location,
    source_refusal_text,
};
pub use simulate::{SimulationError, SimulationRequest, driver_record, run_ending, simulate_test};
