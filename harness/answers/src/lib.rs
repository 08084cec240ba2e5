//! The published answers about one litmus test, without processes, files or clocks.
//!
//! [`check_test`] predicts a test under a model and returns the line of `check`; [`simulate_test`] runs a test
//! on the simulated GPU and returns the line of `run`; [`judge_test`] judges counts of another device. The command line, the library and the playground all
//! build these lines here, so that they agree.

mod check;
mod conclusion;
mod judge;
pub mod similar;
mod simulate;

pub use check::{
    CheckError, CheckNote, TestAnswer, TestQuestion, check_test, name_without_chains, prepare_test,
};
pub use conclusion::CommandOutcome;
pub use judge::{JudgeError, JudgeRequest, judge_test};
pub use simulate::{SimulationError, SimulationRequest, simulate_test};
