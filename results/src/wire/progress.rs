//! The part of a run line about forward progress.

use litmus::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a forward-progress test on a device, in one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressRun {
    /// `plain`, `round-robin`, `chunked` or `mixed`.
    pub placement: String,
    /// The levels at which threads are in different groups: `qf` (workgroups), `wg` (subgroups), `sg`
    /// (invocations), joined by `+`.
    pub level: String,
    /// Copies of the test in a dispatch.
    pub copies: u32,
    /// Dispatches.
    pub runs: u32,
    /// Dispatches in which every thread terminated.
    pub ended: u32,
    /// Dispatches that were stopped from outside.
    pub stuck: u32,
    /// Those of them in which some thread never started.
    pub never_started: u32,
    /// The progress models under which the test terminates with weak fairness, according to the checker.
    pub ends_under: Vec<String>,
    /// The progress models that a stuck dispatch refutes.
    pub refutes: Vec<String>,
    /// The model that the device's expectation file claims.
    pub claim: Option<String>,
    /// The model that the scheduler was configured to implement; only for the simulated GPU.
    pub scheduler: Option<String>,
    /// One copy of each stuck dispatch.
    pub hangs: Vec<HangRecord>,
}

/// A copy that did not terminate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HangRecord {
    /// Seconds until its loops were stopped.
    pub seconds: f64,
    /// Index of the copy.
    pub copy: u32,
    /// Its threads at that time.
    pub threads: Vec<ThreadRecord>,
}

/// The position of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRecord {
    /// The thread, as in `P0`.
    pub thread: String,
    /// Its activity.
    pub state: ThreadState,
    /// Position of its start in the sequence of all starts and ends of the dispatch; null if it had not
    /// started.
    pub order: Option<u32>,
    /// Number of executed basic blocks.
    pub turns: u32,
    /// Line of its last access or control barrier; null if there was none.
    pub line: Option<u32>,
}

closed_enum! {
    /// The activity of a thread.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ThreadState {
        /// It had terminated.
        Ended = "ended",
        /// It executed blocks without terminating.
        Waiting = "loops",
        /// It had started and executed no more blocks.
        Stopped = "makes no progress",
        /// It waited at a control barrier.
        Barrier = "waits in a barrier",
        /// It had not started.
        NeverStarted = "never started",
    }
}
