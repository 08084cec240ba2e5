//! What the executions of a test show.

use litmus::Outcome;

use crate::quick::QuickMap;
use crate::search::Flags;

/// What was found so far, over all skeletons of a test.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) outcomes: OutcomeTable,
    /// What some consistent execution inside the filter raises.
    pub(crate) raised: Flags,
    /// What one of them raises that has no value out of thin air.
    pub(crate) grounded: Flags,
    pub(crate) candidate_executions: u64,
    pub(crate) consistent_executions: u64,
    /// Some allowed outcome inside the filter meets the condition of the question.
    pub(crate) has_match: bool,
    /// Some allowed outcome inside the filter misses it.
    pub(crate) has_mismatch: bool,
    pub(crate) timed_out: bool,
    /// The combinations of paths that some consistent execution takes.
    pub(crate) path_combinations: u64,
    /// Those of them in which the bound of loops ended a thread.
    pub(crate) cut_combinations: u64,
    /// There are more outcomes than are listed.
    pub(crate) unlisted: bool,
    /// To look at threads that do the same in their order was not enough once.
    pub(crate) needs_full_order: bool,
}

/// What of the findings is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExecutionCounts {
    candidate_executions: u64,
    consistent_executions: u64,
    runs: u64,
    cut: u64,
    /// Whether outcomes were among what was counted.
    pub(crate) terminated: bool,
}

impl ExecutionCounts {
    /// What has been counted since.
    pub(crate) fn difference_from(self, before: ExecutionCounts, terminated: bool) -> ExecutionCounts {
        ExecutionCounts {
            candidate_executions: self.candidate_executions.saturating_sub(before.candidate_executions),
            consistent_executions: self.consistent_executions.saturating_sub(before.consistent_executions),
            runs: self.runs - before.runs,
            cut: self.cut - before.cut,
            terminated,
        }
    }
}

impl Findings {
    pub(crate) fn to_counts(&self) -> ExecutionCounts {
        ExecutionCounts {
            candidate_executions: self.candidate_executions,
            consistent_executions: self.consistent_executions,
            runs: self.path_combinations,
            cut: self.cut_combinations,
            terminated: false,
        }
    }

    /// Adds what was found of races alone.
    pub(crate) fn add_races(&mut self, races: &Findings) {
        self.raised.add(races.raised);
        self.grounded.add(races.grounded);
        self.add_counts(races.to_counts(), 1);
        self.timed_out |= races.timed_out;
    }

    /// Counts what was counted before so many times more.
    pub(crate) fn add_counts(&mut self, again: ExecutionCounts, times: u64) {
        let add = |sum: &mut u64, once: u64| *sum = sum.saturating_add(once.saturating_mul(times));
        add(&mut self.candidate_executions, again.candidate_executions);
        add(&mut self.consistent_executions, again.consistent_executions);
        add(&mut self.path_combinations, again.runs);
        add(&mut self.cut_combinations, again.cut);
    }

    /// Notes what a consistent execution inside the filter raises.
    pub(crate) fn raise_flags(&mut self, flags: Flags, thin_air: bool) {
        self.raised.add(flags);
        if !thin_air {
            self.grounded.add(flags);
        }
    }
}

/// Which executions show an outcome: the ones that can, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OutcomeStatus {
    /// Candidates that no axiom was asked about.
    Candidate,
    /// Consistent ones, all of them with values out of thin air.
    OutOfThinAir,
    /// A consistent one without.
    Allowed,
}

impl OutcomeStatus {
    pub(crate) fn is_allowed(self) -> bool {
        self > OutcomeStatus::Candidate
    }
}

/// The outcomes that were found.
#[derive(Debug, Default)]
pub(crate) struct OutcomeTable {
    statuses: QuickMap<Outcome, OutcomeStatus>,
    allowed_count: usize,
}

impl OutcomeTable {
    /// Notes an outcome that executions of this standing show.
    pub(crate) fn record_outcome(&mut self, outcome: Outcome, standing: OutcomeStatus) {
        let known = self.statuses.entry(outcome).or_insert(OutcomeStatus::Candidate);
        self.allowed_count += usize::from(standing.is_allowed() && !known.is_allowed());
        *known = standing.max(*known);
    }

    /// Notes the outcome of a consistent execution.
    pub(crate) fn record_allowed(&mut self, outcome: Outcome, thin_air: bool) {
        self.record_outcome(
            outcome,
            if thin_air { OutcomeStatus::OutOfThinAir } else { OutcomeStatus::Allowed },
        );
    }

    /// How many there are, those included that nothing consistent shows.
    pub(crate) fn len(&self) -> usize {
        self.statuses.len()
    }

    /// How many of them are allowed.
    pub(crate) fn allowed(&self) -> usize {
        self.allowed_count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Outcome, OutcomeStatus)> {
        self.statuses.iter().map(|(outcome, standing)| (outcome, *standing))
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (Outcome, OutcomeStatus)> {
        self.statuses.into_iter()
    }
}
