//! The bounds of a search and its answer.

use std::collections::BTreeMap;

use litmus::Outcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchBounds {
    /// Bound on iterations of a loop body.
    pub loop_bound: u32,
    /// Limit of candidate executions.
    pub max_executions: u64,
}

impl Default for SearchBounds {
    fn default() -> Self {
        SearchBounds { loop_bound: 1, max_executions: 2_000_000 }
    }
}

/// Verdict of the specification on a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessAnswer {
    /// The outcomes of consistent executions, including racy ones. True for an outcome that only executions
    /// with self-dependent values have.
    pub outcomes: BTreeMap<Outcome, bool>,
    /// Data races in consistent executions.
    pub races: Races,
    /// True if in a consistent execution a thread reads an initial value that is undefined, or one is
    /// observed at the end.
    pub reads_uninitialised: bool,
    /// True if the loop bound ended a thread.
    pub is_truncated: bool,
    /// True if a thread may wait for ever at a control barrier that others skip. Such executions are ignored.
    pub has_endless_wait: bool,
}

/// Data races in the consistent executions of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Races {
    /// None has one.
    Never,
    /// Only executions with self-dependent values have one.
    OutOfThinAir,
    /// Some execution has one.
    Sometimes,
}
