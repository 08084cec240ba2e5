//! The findings of a test: outcomes, raised flags and counts.

use litmus::{Outcome, Race};

use crate::flags::Flags;
use crate::quick::QuickMap;

/// The findings so far, over all event structures of a test.
#[derive(Clone, Default)]
pub(crate) struct Findings {
    pub(crate) outcomes: OutcomeTable,
    /// The flags that some consistent execution inside the filter raises.
    pub(crate) raised: Flags,
    /// The flags that such an execution raises without out-of-thin-air values.
    pub(crate) grounded: Flags,
    pub(crate) candidate_executions: u64,
    pub(crate) consistent_executions: u64,
    /// Some allowed outcome inside the filter satisfies the condition of the question.
    pub(crate) has_match: bool,
    /// Some allowed outcome inside the filter violates it.
    pub(crate) has_mismatch: bool,
    pub(crate) timed_out: bool,
    /// The search of an event structure ended at its limit of steps.
    pub(crate) reached_step_limit: bool,
    /// The path combinations that some consistent execution takes.
    pub(crate) path_combinations: u64,
    /// Those of them in which the loop bound ended a thread.
    pub(crate) truncated_combinations: u64,
    /// The outcomes are not listed, or not all of them.
    pub(crate) unlisted: bool,
    /// Races and answers were all found before the search had seen every run.
    pub(crate) ended_early: bool,
    /// The explored paths represent others with other dependencies, so races that are not grounded may be grounded
    /// on these.
    pub(crate) replaces_dependencies: bool,
}

impl Findings {
    /// Returns the race status of the program, unknown if some runs were not searched.
    pub(crate) fn race(&self) -> Race {
        match (self.raised.has_race(), self.timed_out || self.truncated_combinations > 0) {
            (true, _) => Race::Racy,
            (false, false) => Race::Free,
            (false, true) => Race::Unknown,
        }
    }

    /// Returns true if every result holds beyond the loop bound, as far as outcomes are not listed.
    pub(crate) fn is_unbounded(&self) -> bool {
        !self.timed_out && !self.ended_early && self.truncated_combinations == 0
    }

    /// Adds the races and matches of a search that was cut short: each was found in an execution.
    pub(crate) fn add_definite(&mut self, partial: &Findings) {
        self.raised.add(partial.raised);
        self.grounded.add(partial.grounded);
        self.has_match |= partial.has_match;
        self.has_mismatch |= partial.has_mismatch;
    }

    /// Records the flags of a consistent execution inside the filter.
    pub(crate) fn raise_flags(&mut self, flags: Flags, thin_air: bool) {
        self.raised.add(flags);
        if !thin_air {
            self.grounded.add(flags);
        }
    }
}

/// The strongest evidence for an outcome, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OutcomeStatus {
    /// Candidate executions whose axioms were not checked.
    Candidate,
    /// Consistent executions, all with out-of-thin-air values.
    OutOfThinAir,
    /// A consistent execution without out-of-thin-air values.
    Allowed,
}

impl OutcomeStatus {
    pub(crate) fn is_allowed(self) -> bool {
        self > OutcomeStatus::Candidate
    }
}

/// The outcomes found, with their status.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutcomeTable {
    /// True if no further outcomes are wanted.
    pub(crate) is_fixed: bool,
    statuses: QuickMap<Outcome, OutcomeStatus>,
    allowed_count: usize,
}

impl OutcomeTable {
    /// Returns a table for these outcomes only.
    pub(crate) fn of_outcomes<'o>(outcomes: impl Iterator<Item = &'o Outcome>) -> OutcomeTable {
        let statuses = outcomes.map(|outcome| (outcome.clone(), OutcomeStatus::Candidate)).collect();
        OutcomeTable { is_fixed: true, statuses, allowed_count: 0 }
    }

    /// Records an outcome with the status of its executions.
    pub(crate) fn record_outcome(&mut self, outcome: Outcome, status: OutcomeStatus) {
        if self.is_fixed && !self.contains(&outcome) {
            return;
        }
        let entry = self.statuses.entry(outcome).or_insert(OutcomeStatus::Candidate);
        self.allowed_count += usize::from(status.is_allowed() && !entry.is_allowed());
        *entry = status.max(*entry);
    }

    /// Records the outcome of a consistent execution.
    pub(crate) fn record_allowed(&mut self, outcome: Outcome, thin_air: bool) {
        self.record_outcome(
            outcome,
            if thin_air { OutcomeStatus::OutOfThinAir } else { OutcomeStatus::Allowed },
        );
    }

    /// Returns the number of outcomes, including those without a consistent execution.
    pub(crate) fn len(&self) -> usize {
        self.statuses.len()
    }

    pub(crate) fn contains(&self, outcome: &Outcome) -> bool {
        self.statuses.contains_key(outcome)
    }

    /// Returns true if no further execution changes the table: its outcomes are given, and all of them are allowed.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_fixed && self.allowed_count == self.statuses.len()
    }

    /// Returns the number of allowed outcomes.
    pub(crate) fn allowed_count(&self) -> usize {
        self.allowed_count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Outcome, OutcomeStatus)> {
        self.statuses.iter().map(|(outcome, status)| (outcome, *status))
    }

    /// The allowed outcomes.
    pub(crate) fn into_allowed(self) -> impl Iterator<Item = Outcome> {
        self.into_iter().filter_map(|(outcome, status)| status.is_allowed().then_some(outcome))
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (Outcome, OutcomeStatus)> {
        self.statuses.into_iter()
    }
}
