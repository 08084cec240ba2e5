//! What the executions of a test show.

use litmus::Outcome;

use crate::quick::QuickSet;
use crate::search::Flags;

/// What was found so far, over all skeletons of a test.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) allowed: QuickSet<Outcome>,
    pub(crate) candidates: QuickSet<Outcome>,
    /// Those of the allowed outcomes that only executions with values out of thin air show.
    pub(crate) thin_air: QuickSet<Outcome>,
    /// What some consistent execution inside the filter raises.
    pub(crate) raised: Flags,
    /// What one of them raises that has no value out of thin air.
    pub(crate) grounded: Flags,
    pub(crate) candidate_executions: u64,
    pub(crate) consistent_executions: u64,
    /// Some allowed outcome inside the filter meets the condition of the question.
    pub(crate) meets: bool,
    /// Some allowed outcome inside the filter misses it.
    pub(crate) misses: bool,
    pub(crate) timed_out: bool,
    /// The combinations of paths that some consistent execution takes.
    pub(crate) runs: u64,
    /// Those of them in which the bound of loops ended a thread.
    pub(crate) cut: u64,
    /// There are more outcomes than are listed.
    pub(crate) unlisted: bool,
}

/// What of the findings is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    candidate_executions: u64,
    consistent_executions: u64,
    runs: u64,
    cut: u64,
    /// Whether outcomes were among what was counted.
    pub(crate) terminated: bool,
}

impl Counts {
    /// What has been counted since.
    pub(crate) fn since(self, before: Counts, terminated: bool) -> Counts {
        Counts {
            candidate_executions: self.candidate_executions.saturating_sub(before.candidate_executions),
            consistent_executions: self.consistent_executions.saturating_sub(before.consistent_executions),
            runs: self.runs - before.runs,
            cut: self.cut - before.cut,
            terminated,
        }
    }
}

impl Findings {
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            candidate_executions: self.candidate_executions,
            consistent_executions: self.consistent_executions,
            runs: self.runs,
            cut: self.cut,
            terminated: false,
        }
    }

    /// Counts what was counted before once more.
    pub(crate) fn count(&mut self, again: Counts) {
        self.candidate_executions = self.candidate_executions.saturating_add(again.candidate_executions);
        self.consistent_executions = self.consistent_executions.saturating_add(again.consistent_executions);
        self.runs += again.runs;
        self.cut += again.cut;
    }

    /// Notes what a consistent execution inside the filter raises.
    pub(crate) fn raise(&mut self, flags: Flags, thin_air: bool) {
        self.raised.add(flags);
        if !thin_air {
            self.grounded.add(flags);
        }
    }

    /// Notes the outcome of a consistent execution.
    pub(crate) fn allow(&mut self, outcome: Outcome, thin_air: bool) {
        if !thin_air {
            self.thin_air.remove(&outcome);
            self.allowed.insert(outcome);
        } else if self.allowed.insert(outcome.clone()) {
            self.thin_air.insert(outcome);
        }
    }
}
