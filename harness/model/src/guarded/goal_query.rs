//! Queries about the executions of one combination of paths, and the evidence for the answers.

use std::collections::BTreeSet;
use std::rc::Rc;

use litmus::{Outcome, Value};
use solver::{Bit, BitVector, BudgetTracker};

use super::encoding::{GuardedEncoding, is_encodable};
use super::fit_values;
use super::program::GuardedProgram;
use crate::PredictError;
use crate::flags::Flags;
use crate::matrix::Matrix;
use crate::outcome_collector::{ExecutionGoal, Findings, MAX_LISTED_OUTCOMES, OutcomeCollector};
use crate::path::unroll::{ValueSet, to_constant};
use crate::prepared::PreparedPlan;
use crate::search::StaticBounds;
use crate::valuation::{enumerate_valuations, satisfies_constraints};

/// The strongest evidence for an execution of the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GoalEvidence {
    /// No such execution exists.
    NoExecution,
    /// One exists, with values that depend on themselves.
    OutOfThinAir,
    /// One exists without such values.
    Grounded,
}

/// The encoding of one event structure, all of whose events execute.
pub(crate) struct SkeletonEncoding<'a, M: Matrix> {
    encoding: GuardedEncoding<'a, M>,
}

impl<'a, M: Matrix> SkeletonEncoding<'a, M> {
    /// Returns true if the model can be encoded.
    pub(crate) fn supports(prepared: &PreparedPlan, static_bounds: &StaticBounds<M>) -> bool {
        is_encodable(prepared, static_bounds, true)
    }

    /// Encodes an event structure whose model is [supported](Self::supports); `None` if a value is not.
    pub(crate) fn new(
        collector: &OutcomeCollector<'a>,
        prepared: &'a PreparedPlan,
        static_bounds: &StaticBounds<M>,
        tracker: &'a BudgetTracker<'a>,
    ) -> Option<SkeletonEncoding<'a, M>> {
        let OutcomeCollector { skeleton, rmw_chains, ordered_storages, .. } = collector;
        let storages = skeleton.events.iter().filter_map(|event| event.storage);
        let storages = storages.map(|storage| usize::from(storage.0) + 1).max().unwrap_or(0);
        let mut possible = vec![ValueSet::Few(BTreeSet::new()); storages];
        for event in &skeleton.events {
            if let (Some(storage), Some(stored)) = (event.storage, &event.stored_value)
                && let Some(value) = stored.known_value()
            {
                possible[usize::from(storage.0)].include(&to_constant(value), false);
            }
        }
        let fitted = fit_values(possible, tracker, |possible, circuit| {
            let program =
                GuardedProgram::from_skeleton(skeleton, rmw_chains, ordered_storages, possible, circuit);
            Ok::<_, PredictError>(program)
        });
        let (program, solver) = fitted.ok()??;
        let mut encoding =
            GuardedEncoding::with_bounds(Rc::new(program), prepared, static_bounds.clone(), solver);
        encoding.encode_program();
        Some(SkeletonEncoding { encoding })
    }

    /// Finds the strongest evidence for a consistent execution of the goal; `None` if the budget ran out.
    pub(crate) fn find_evidence(
        &mut self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
    ) -> Option<GoalEvidence> {
        self.solve_goal(collector, goal, None)
    }

    /// Adds the flags that executions inside the filter raise; returns false if the budget ran out.
    pub(crate) fn raise_flags(&mut self, collector: &OutcomeCollector<'_>, findings: &mut Findings) -> bool {
        for (axiom, assumption) in self.encoding.flags.clone() {
            let mut flags = Flags::default();
            flags.raise_axiom(&self.encoding.prepared.plan.axioms[axiom]);
            if findings.grounded.lacks_any_of(flags) {
                match self.solve_goal(collector, ExecutionGoal::InFilter, Some(assumption)) {
                    None => return false,
                    Some(GoalEvidence::NoExecution) => {}
                    Some(evidence) => findings.raise_flags(flags, evidence == GoalEvidence::OutOfThinAir),
                }
            }
        }
        true
    }

    /// Adds the outcomes of all executions, each by one call of the solver; returns false if they are too many, or the
    /// budget ran out.
    pub(crate) fn list_outcomes(
        &mut self,
        collector: &OutcomeCollector<'_>,
        findings: &mut Findings,
    ) -> bool {
        self.list_grounded_outcomes(findings) == Some(true)
            && self.list_ungrounded_outcomes(collector, findings) == Some(true)
    }

    /// Adds the outcomes of executions in which no value depends on itself.
    fn list_grounded_outcomes(&mut self, findings: &mut Findings) -> Option<bool> {
        let encoding = &mut self.encoding;
        // The blocking clauses hold under an assumption, which later queries do not make.
        let blocking = encoding.solver.circuit.input();
        let assumed: Vec<Bit> = encoding.grounded.into_iter().chain([blocking]).collect();
        let unknown = || to_constant(Value::default());
        let finals: Vec<BitVector> =
            encoding.finals.iter().map(|value| value.clone().unwrap_or_else(unknown)).collect();
        while !encoding.solver.is_exhausted() && findings.outcomes.allowed_count() < MAX_LISTED_OUTCOMES {
            if !encoding.solver.solve(&assumed)? {
                return Some(true);
            }
            let assignment = encoding.solver.assignment();
            let values: Vec<u64> = finals.iter().map(|value| assignment.number(value) as u64).collect();
            let mut clause = vec![!blocking];
            for (value, number) in finals.iter().zip(&values) {
                let wanted = to_constant(Value(*number));
                clause.push(!encoding.solver.circuit.equals(value, &wanted));
            }
            encoding.solver.require_any(&clause);
            findings.outcomes.record_allowed(Outcome(values.into_iter().map(Value).collect()), false);
        }
        None
    }

    /// Adds the outcomes of executions in which some value depends on itself.
    fn list_ungrounded_outcomes(
        &mut self,
        collector: &OutcomeCollector<'_>,
        findings: &mut Findings,
    ) -> Option<bool> {
        if self.encoding.grounded.is_none() {
            return Some(true);
        }
        let circular = self.encoding.encode_circularity();
        let blocking = self.encoding.solver.circuit.input();
        while findings.outcomes.allowed_count() < MAX_LISTED_OUTCOMES {
            if !self.encoding.solver.solve(&[circular, blocking])? {
                return Some(true);
            }
            for (outcome, thin_air) in self.take_outcomes(collector, blocking) {
                findings.outcomes.record_allowed(outcome, thin_air);
            }
        }
        None
    }

    /// Finds a consistent execution, with `flag` one that raises the flag; `None` if the budget ran out.
    fn solve_goal(
        &mut self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
        flag: Option<Bit>,
    ) -> Option<GoalEvidence> {
        let mut assumed: Vec<Bit> = vec![self.goal_bit(collector, goal)];
        assumed.extend(flag);
        let encoding = &mut self.encoding;
        // First try executions in which no value depends on itself.
        assumed.extend(encoding.grounded);
        // An encoding that was built after the budget ran out is incomplete.
        if encoding.solver.is_exhausted() {
            return None;
        }
        if encoding.solver.solve(&assumed)? {
            debug_assert!(
                encoding.is_solution_consistent().unwrap_or(false),
                "the clauses must agree with the axioms"
            );
            return Some(GoalEvidence::Grounded);
        }
        if encoding.grounded.is_none() {
            return Some(GoalEvidence::NoExecution);
        }
        assumed.pop();
        // The blocking clauses hold under a fresh assumption, which later queries do not make.
        let blocking = encoding.solver.circuit.input();
        assumed.push(blocking);
        while self.encoding.solver.solve(&assumed)? {
            // A value cycle permits more values than are tried. Another choice may have a fitting one.
            let outcomes = self.take_outcomes(collector, blocking).into_iter();
            let evidence =
                outcomes.filter(|(outcome, _)| collector.is_goal_met(goal, outcome)).map(|(_, thin_air)| {
                    if thin_air { GoalEvidence::OutOfThinAir } else { GoalEvidence::Grounded }
                });
            if let Some(evidence) = evidence.max() {
                return Some(evidence);
            }
        }
        Some(GoalEvidence::NoExecution)
    }

    /// Returns the outcomes that fit the solver's reads-from edges and last writes, each with true if values depend on
    /// themselves; excludes these edges and writes from further answers.
    fn take_outcomes(&mut self, collector: &OutcomeCollector<'_>, blocking: Bit) -> Vec<(Outcome, bool)> {
        let (encoding, skeleton) = (&mut self.encoding, collector.skeleton);
        let assignment = encoding.solver.assignment();
        let mut reads_from = vec![None; skeleton.len()];
        let (mut clause, mut last) = (vec![!blocking], Vec::new());
        for (read, sources) in
            encoding.reads.iter().filter_map(|choice| encoding.sources.get_key_value(&choice.read))
        {
            if let Some((write, source)) = sources.iter().find(|(_, source)| assignment.bit(*source)) {
                reads_from[*read] = Some(*write as u16);
                clause.push(!*source);
            }
        }
        let observed = skeleton.observed_storages();
        for storage in skeleton.storages() {
            let writes = encoding.writes_of(Some(storage));
            let is_last = |write: &&usize| {
                let mut others = writes.iter().filter(|other| other != write);
                others.all(|other| encoding.is_before(&assignment, *other, **write))
            };
            let Some(write) = writes.iter().find(is_last) else { continue };
            last.push(*write as u16);
            for other in writes.iter().filter(|other| *other != write && observed.contains(&storage)) {
                clause.push(!encoding.co_bit(*other, *write));
            }
        }
        encoding.solver.require_any(&clause);
        let rules = &collector.rules;
        let values = enumerate_valuations(skeleton, &reads_from, rules.out_of_thin_air, rules.domain);
        let shown = values.iter().filter(|shown| satisfies_constraints(skeleton, &shown.values));
        shown.map(|shown| (collector.to_outcome(&shown.values, &last), shown.thin_air)).collect()
    }

    /// Returns a bit that holds if the goal is met.
    fn goal_bit(&mut self, collector: &OutcomeCollector<'_>, goal: ExecutionGoal<'_>) -> Bit {
        let encoding = &mut self.encoding;
        let mut bits = Vec::new();
        if !matches!(goal, ExecutionGoal::Any | ExecutionGoal::Outcome(_)) {
            bits.push(encoding.condition_bit(&collector.filter));
        }
        match goal {
            ExecutionGoal::Any | ExecutionGoal::InFilter => {}
            ExecutionGoal::ConditionIs(true) => bits.push(encoding.condition_bit(&collector.condition)),
            ExecutionGoal::ConditionIs(false) => bits.push(!encoding.condition_bit(&collector.condition)),
            ExecutionGoal::Outcome(Outcome(values)) => {
                for (value, wanted) in encoding.finals.iter().zip(values) {
                    if let Some(value) = value {
                        bits.push(encoding.solver.circuit.equals(value, &to_constant(*wanted)));
                    }
                }
            }
        }
        self.encoding.solver.circuit.all(&bits)
    }
}
