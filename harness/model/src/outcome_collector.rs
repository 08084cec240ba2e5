//! Collects the outcomes and races of the executions of one event structure.

mod candidates;
mod findings;

use litmus::{Condition, LocationId, Observable, Outcome, ResolvedCondition, Test};

pub(crate) use self::findings::{Findings, OutcomeStatus, OutcomeTable};
use crate::flags::Flags;
use crate::search::ExecutionVisitor;
use crate::skeleton::{FinalValueSource, Skeleton};
use crate::valuation::{
    ReadValues, Valuation, ValueDomain, enumerate_valuations, final_value, reads_of, satisfies_constraints,
};
use solver::BudgetTracker;

/// Limit of listed outcomes, of each kind.
pub(crate) const MAX_LISTED_OUTCOMES: usize = 1 << 16;

/// The value semantics of a model: whether values may be self-justifying, and their domain.
pub(crate) struct ValueRules<'a> {
    /// If set, values may depend on themselves.
    pub(crate) out_of_thin_air: bool,
    /// The values that may appear out of thin air.
    pub(crate) domain: &'a ValueDomain<'a>,
}

/// Collects the findings of one event structure.
pub(crate) struct OutcomeCollector<'a> {
    pub(crate) skeleton: &'a Skeleton,
    pub(crate) rules: ValueRules<'a>,
    pub(crate) tracker: &'a BudgetTracker<'a>,
    observed_reads: Vec<u16>,
    /// The test's filter; true if it has none.
    filter: ResolvedCondition,
    /// The condition of the test's question; true if it has none.
    condition: ResolvedCondition,
}

impl<'a> OutcomeCollector<'a> {
    pub(crate) fn new(
        test: &'a Test,
        observables: &'a [Observable],
        skeleton: &'a Skeleton,
        rules: ValueRules<'a>,
        tracker: &'a BudgetTracker<'a>,
    ) -> OutcomeCollector<'a> {
        let mut observed_reads: Vec<u16> = skeleton
            .final_values
            .iter()
            .flat_map(|value| match value {
                FinalValueSource::Expression(expression) => reads_of(expression),
                FinalValueSource::LastWrite(_) => Vec::new(),
            })
            .collect();
        observed_reads.sort_unstable();
        observed_reads.dedup();
        let resolved = |condition: Option<&Condition>| match condition {
            Some(condition) => ResolvedCondition::new(test, observables, condition),
            None => ResolvedCondition::True,
        };
        let filter = resolved(test.filter.as_ref());
        let condition = resolved(test.question.as_ref().map(|question| &question.condition));
        OutcomeCollector { skeleton, rules, tracker, observed_reads, filter, condition }
    }

    /// Returns a search visitor that adds to the findings.
    pub(crate) fn findings_visitor<'s>(&'s self, findings: &'s mut Findings) -> FindingsVisitor<'s, 'a> {
        FindingsVisitor { collector: self, findings, found: false }
    }

    /// Returns true if executions with these reads-from edges can add to the findings.
    fn can_add_findings(&self, flags: Flags, reads_from: &[Option<u16>], findings: &Findings) -> bool {
        if findings.outcomes.is_settled() {
            return false;
        }
        // A flag that was raised only with values out of thin air, or not yet, is still wanted.
        if findings.grounded.lacks_any_of(flags) {
            return true;
        }
        if !self.skeleton.terminated {
            // Cut-off runs contribute only races, and the number of executions while all are counted.
            return !findings.unlisted;
        }
        if !findings.unlisted {
            return true;
        }
        // Two findings remain open: an outcome that satisfies the condition and one that violates it.
        let possible = |condition: &ResolvedCondition, wanted: bool| {
            self.evaluate_condition(condition, reads_from).is_none_or(|holds| holds == wanted)
        };
        possible(&self.filter, true)
            && (!findings.has_match && possible(&self.condition, true)
                || !findings.has_mismatch && possible(&self.condition, false))
    }

    /// Evaluates a condition on the final values that these reads-from edges decide.
    fn evaluate_condition(&self, condition: &ResolvedCondition, rf: &[Option<u16>]) -> Option<bool> {
        let events = &self.skeleton.events;
        let read_value = |read: u16| {
            events[usize::from(rf.get(usize::from(read)).copied().flatten()?)].stored_value.as_ref()
        };
        condition.evaluate_known(&mut |index| match self.skeleton.final_values.get(index)? {
            FinalValueSource::Expression(expression) => {
                expression.evaluate(&mut |read| read_value(read)?.known_value())
            }
            FinalValueSource::LastWrite(_) => None,
        })
    }

    /// Adds a consistent execution with all values that fit it; returns true if some do.
    fn add_execution(
        &self,
        flagged: Flags,
        rf: &[Option<u16>],
        last: &[u16],
        findings: &mut Findings,
    ) -> bool {
        let mut found = false;
        let valuations =
            enumerate_valuations(self.skeleton, rf, self.rules.out_of_thin_air, self.rules.domain);
        for Valuation { values, thin_air } in valuations {
            if !satisfies_constraints(self.skeleton, &values) {
                continue;
            }
            found = true;
            // Without a list, the search skips executions.
            let count = u64::from(!findings.unlisted);
            findings.consistent_executions = findings.consistent_executions.saturating_add(count);
            let outcome = self.to_outcome(&values, last);
            let holds = |condition: &ResolvedCondition| {
                condition.evaluate_known(&mut |index| outcome.0.get(index).copied()) == Some(true)
            };
            if holds(&self.filter) {
                findings.raise_flags(flagged, thin_air);
                if self.skeleton.terminated {
                    let meets = holds(&self.condition);
                    findings.has_match |= meets;
                    findings.has_mismatch |= !meets;
                }
            }
            if !self.skeleton.terminated || findings.unlisted {
                continue;
            }
            if findings.outcomes.allowed_count() < MAX_LISTED_OUTCOMES {
                findings.outcomes.record_allowed(outcome, thin_air);
            } else {
                findings.unlisted = true;
            }
        }
        found
    }

    fn to_outcome(&self, values: &ReadValues, last: &[u16]) -> Outcome {
        let last_write = |storage: LocationId| {
            last.iter()
                .copied()
                .find(|write| self.skeleton.events[usize::from(*write)].storage == Some(storage))
        };
        Outcome(
            self.skeleton
                .final_values
                .iter()
                .map(|observed| final_value(self.skeleton, observed, values, &last_write))
                .collect(),
        )
    }
}

/// A search visitor that adds each execution to the findings.
pub(crate) struct FindingsVisitor<'s, 'a> {
    collector: &'s OutcomeCollector<'a>,
    findings: &'s mut Findings,
    /// True if it has found an execution.
    pub(crate) found: bool,
}

impl ExecutionVisitor for FindingsVisitor<'_, '_> {
    fn needs_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        !self.found || self.collector.can_add_findings(flags, reads_from, self.findings)
    }

    fn visit_execution(&mut self, flags: Flags, reads_from: &[Option<u16>], last_writes: &[u16]) {
        self.found |= self.collector.add_execution(flags, reads_from, last_writes, self.findings);
    }
}
