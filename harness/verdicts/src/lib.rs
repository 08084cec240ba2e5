//! Verdicts about one litmus test, without processes, files or clocks.
//!
//! [`check_test`] predicts a test under a model and returns the line of `check`; [`simulate_test`] runs a
//! test on the simulated GPU and returns the line of `run`; [`judge_test`] judges counts of another device. The
//! command line, the library and the playground call these functions, so their answers agree.

mod check;
mod command_outcome;
mod judge;
mod simulate;

pub use check::{
    CheckError, CheckNote, TestAnswer, TestQuestion, check_test, name_without_chains, prepare_test,
};
pub use command_outcome::CommandOutcome;
pub use judge::{JudgeError, JudgeRequest, judge_test};
pub use simulate::{SimulationError, SimulationRequest, driver_record, run_ending, simulate_test};
