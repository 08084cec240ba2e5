//! Queries about the executions of one combination of paths, and the evidence for the answers.

use std::collections::BTreeSet;
use std::rc::Rc;

use litmus::{ConditionSide, Outcome};
use solver::{BatsatSolver, Bit};

use super::encoding::{GuardedEncoding, is_encodable};
use super::fit_values;
use super::program::GuardedProgram;
use crate::PredictError;
use crate::flags::Flags;
use crate::matrix::Matrix;
use crate::outcome_collector::{ExecutionGoal, OutcomeCollector, ValueConstraint};
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

/// Returns the flags that executions without self-dependent values raise.
pub(crate) fn grounded_flags(raised: &[(Flags, GoalEvidence)]) -> Flags {
    let mut grounded = Flags::default();
    raised
        .iter()
        .filter(|(_, shown)| *shown == GoalEvidence::Grounded)
        .for_each(|(flags, _)| grounded.add(*flags));
    grounded
}

/// The encoding of one event structure, all of whose events execute.
pub(crate) struct SkeletonEncoding<'a, M: Matrix> {
    encoding: GuardedEncoding<'a, M, BatsatSolver<'a>>,
    /// The assumption that restricts symmetric executions to one representative.
    symmetry: Option<Bit>,
}

impl<'a, M: Matrix> SkeletonEncoding<'a, M> {
    /// Returns true if the model can be encoded.
    pub(crate) fn supports(prepared: &PreparedPlan, static_bounds: &StaticBounds<M>) -> bool {
        is_encodable(prepared, &static_bounds.bounds, true)
    }

    /// Encodes an event structure whose model is [supported](Self::supports); `None` if a value is not.
    pub(crate) fn new(
        collector: &OutcomeCollector<'a>,
        prepared: &'a PreparedPlan,
        static_bounds: &StaticBounds<M>,
    ) -> Option<SkeletonEncoding<'a, M>> {
        let OutcomeCollector { skeleton, rmw_chains, ordered_storages, tracker, .. } = collector;
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
        let (bounds, reads) = (static_bounds.bounds.clone(), static_bounds.reads.clone());
        let mut encoding = GuardedEncoding::with_bounds(Rc::new(program), prepared, bounds, reads, solver);
        let ordered_writes = &collector.symmetry_breaking.ordered_writes;
        let symmetry = (!ordered_writes.is_empty()).then(|| encoding.solver.circuit.input());
        for (earlier, later) in ordered_writes {
            let ordered = encoding.co_bit(*earlier, *later);
            encoding.solver.require_any(&[!symmetry.unwrap_or(Bit::TRUE), ordered]);
        }
        encoding.encode_program();
        Some(SkeletonEncoding { encoding, symmetry })
    }

    /// Finds a consistent execution of the goal; `None` if the budget ran out.
    ///
    /// With `raised`, it looks only for executions that raise further flags, and adds these flags with their
    /// evidence.
    pub(crate) fn find_evidence(
        &mut self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
        raised: Option<&mut Vec<(Flags, GoalEvidence)>>,
    ) -> Option<GoalEvidence> {
        let Some(raised) = raised else { return self.solve_goal(collector, goal, None) };
        let mut best = GoalEvidence::NoExecution;
        for (axiom, assumption) in self.encoding.flags.clone() {
            let mut flags = Flags::default();
            flags.raise_axiom(&self.encoding.prepared.plan.axioms[axiom]);
            if grounded_flags(raised).lacks_any_of(flags) {
                let evidence = self.solve_goal(collector, goal, Some(assumption))?;
                if evidence > GoalEvidence::NoExecution {
                    raised.push((flags, evidence));
                }
                best = best.max(evidence);
            }
        }
        Some(best)
    }

    /// Finds a consistent execution, with `flag` one that raises the flag; `None` if the budget ran out.
    fn solve_goal(
        &mut self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
        flag: Option<Bit>,
    ) -> Option<GoalEvidence> {
        // Symmetry breaking is sound only for goals that all executions of an orbit share. A
        // conjunct and an outcome name threads.
        let is_symmetric = match goal {
            ExecutionGoal::Any | ExecutionGoal::InFilter => true,
            ExecutionGoal::ConditionIs(_) => collector.symmetry_breaking.preserves_condition,
            ExecutionGoal::Violates(_) | ExecutionGoal::Outcome(_) => false,
        };
        let mut assumed: Vec<Bit> = vec![self.goal_bit(collector, goal)];
        assumed.extend(flag.into_iter().chain(self.symmetry.filter(|_| is_symmetric)));
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
            let evidence = self.check_values(collector, goal, blocking);
            if evidence.is_some() {
                return evidence;
            }
        }
        Some(GoalEvidence::NoExecution)
    }

    /// Checks the values that fit the solver's reads-from edges and last writes; excludes these if no tried value meets
    /// the goal.
    fn check_values(
        &mut self,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
        blocking: Bit,
    ) -> Option<GoalEvidence> {
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
        let shown = values
            .iter()
            .filter(|shown| satisfies_constraints(skeleton, &shown.values))
            .filter(|shown| collector.is_goal_met(goal, &collector.to_outcome(&shown.values, &last)));
        shown.map(|v| if v.thin_air { GoalEvidence::OutOfThinAir } else { GoalEvidence::Grounded }).max()
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
            ExecutionGoal::Violates(part) => bits.push(match collector.negated_conjunct(part) {
                Some((index, demand)) => self.value_bit(index, demand),
                None => Bit::FALSE,
            }),
            ExecutionGoal::Outcome(Outcome(values)) => {
                for (index, value) in values.iter().enumerate() {
                    bits.push(self.value_bit(index, ValueConstraint::Value(*value)));
                }
            }
        }
        self.encoding.solver.circuit.all(&bits)
    }

    /// Returns a bit that holds if a final value meets the constraint.
    fn value_bit(&mut self, index: usize, demand: ValueConstraint) -> Bit {
        let encoding = &mut self.encoding;
        let (is_wanted, value, wanted) = match demand {
            ValueConstraint::Value(wanted) => {
                let value = encoding.finals.get(index).cloned().flatten();
                (true, value.unwrap_or_else(|| to_constant(wanted)), to_constant(wanted))
            }
            ValueConstraint::Number(scalar, number) | ValueConstraint::NotNumber(scalar, number) => (
                matches!(demand, ValueConstraint::Number(..)),
                encoding.side_value(ConditionSide::Observed(index, scalar)),
                encoding.side_value(ConditionSide::Number(number)),
            ),
        };
        let is_equal = encoding.solver.circuit.equals(&value, &wanted);
        if is_wanted { is_equal } else { !is_equal }
    }
}
