//! What a run of forward progress adds to its line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a test of forward progress on a device, in one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressRun {
    /// `plain`, `round-robin`, `chunked` or `mixed`.
    pub placement: String,
    /// The levels at which threads part: `qf` (workgroups), `wg` (subgroups), `sg` (invocations), joined by `+`.
    pub level: String,
    /// Copies of the test in a dispatch.
    pub copies: u32,
    /// Dispatches.
    pub runs: u32,
    /// Dispatches in which every thread came to its end.
    pub ended: u32,
    /// Dispatches that did not end by themselves.
    pub stuck: u32,
    /// Of these, those in which some thread was never started.
    pub never_started: u32,
    /// The progress models under which the test ends, with weak fairness, by the checker.
    pub ends_under: Vec<String>,
    /// Those whose promises a dispatch has been seen to break.
    pub refutes: Vec<String>,
    /// The model that the device's expectation file claims.
    pub claim: Option<String>,
    /// The model that the device was told to keep: the simulated GPU.
    pub scheduler: Option<String>,
    /// Dispatches that did not end by themselves: a copy of each.
    pub hangs: Vec<HangRecord>,
}

/// A copy that did not end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HangRecord {
    /// Seconds until its loops were asked to end.
    pub seconds: f64,
    /// Which copy.
    pub copy: u32,
    /// Its threads when they were.
    pub threads: Vec<ThreadRecord>,
}

/// Where a thread stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRecord {
    /// The thread, as in `P0`.
    pub thread: String,
    /// What it was doing.
    pub state: ThreadState,
    /// The number of its beginning among all beginnings and ends of the dispatch; null where it had not begun.
    pub order: Option<u32>,
    /// Turns that it made, one for each basic block.
    pub turns: u32,
    /// The line of its last access or control barrier; null where it had none.
    pub line: Option<u32>,
}

/// What a thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadState {
    /// It had come to its end.
    Ended,
    /// It moved, and did not come to an end.
    Waiting,
    /// It had begun, and did not move.
    Stopped,
    /// It waited in a control barrier.
    Barrier,
    /// It had not begun.
    NeverStarted,
}

impl ThreadState {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            ThreadState::Ended => "ended",
            ThreadState::Waiting => "goes round",
            ThreadState::Stopped => "does not go on",
            ThreadState::Barrier => "waits in a barrier",
            ThreadState::NeverStarted => "never started",
        }
    }
}
