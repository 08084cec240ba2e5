//! Combines the solutions of single locations to outcomes and races of one event structure.
//!
//! Long because outcomes, races and their queries share one traversal of the solutions of the locations.

mod candidates;
mod findings;

use std::cell::Cell;
use std::ops::ControlFlow;

use litmus::{
    Comparison, Condition, ConditionSide, LocationId, Observable, Outcome, ResolvedCondition, ScalarType,
    Test, Value,
};

pub(crate) use self::findings::{ExecutionCounts, Findings, OutcomeStatus};
use crate::choice::ReadChoice;
use crate::flags::Flags;
use crate::location_solver::LocationSolution;
use crate::quick::QuickSet;
use crate::rmw_chain::{CounterLocations, RmwChain};
use crate::search::{LeafVisitor, SearchLeaf};
use crate::skeleton::{FinalValueSource, Skeleton};
use crate::symmetry::SymmetryBreaking;
use crate::valuation::{
    ReadValues, Valuation, ValueDomain, enumerate_valuations, final_value, has_independent_values, reads_of,
    satisfies_constraints,
};
use solver::BudgetTracker;

/// Limit of listed outcomes, of each kind.
const MAX_LISTED_OUTCOMES: usize = 1 << 16;

/// The value semantics of a model: whether values may be self-justifying, and their domain.
pub(crate) struct ValueRules<'a> {
    /// If set, values may depend on themselves.
    pub(crate) out_of_thin_air: bool,
    /// The values that may appear out of thin air.
    pub(crate) domain: &'a ValueDomain<'a>,
}

/// The executions that a query looks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExecutionGoal<'o> {
    /// Any consistent execution.
    Any,
    /// Executions that satisfy the filter.
    InFilter,
    /// Executions inside the filter in which the question's condition has this value.
    ConditionIs(bool),
    /// Executions inside the filter that violate this conjunct of the condition.
    Violates(usize),
    /// Executions with this outcome, regardless of the filter.
    Outcome(&'o Outcome),
}

/// A constraint on one final value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueConstraint {
    Value(Value),
    /// The value is this number, read as a signed value of the type.
    Number(ScalarType, i64),
    /// The value differs from this number, read as a signed value of the type.
    NotNumber(ScalarType, i64),
}

impl ValueConstraint {
    pub(crate) fn allows(self, value: Value) -> bool {
        match self {
            ValueConstraint::Value(wanted) => value == wanted,
            ValueConstraint::Number(ty, number) => value.to_signed(ty) == number,
            ValueConstraint::NotNumber(ty, number) => value.to_signed(ty) != number,
        }
    }
}

/// Adds the constraints that a conjunction puts on single values; false if the condition requires more than
/// these.
fn collect_value_constraints(
    condition: &ResolvedCondition,
    demands: &mut Vec<(usize, ValueConstraint)>,
) -> bool {
    match condition {
        ResolvedCondition::Constant(holds) => *holds,
        ResolvedCondition::And(both) => {
            // Both sides are visited, even if one requires more than single values.
            let left = collect_value_constraints(&both.0, demands);
            collect_value_constraints(&both.1, demands) && left
        }
        ResolvedCondition::Compare(left, Comparison::Equal, right) => match (left, right) {
            (ConditionSide::Observed(index, ty), ConditionSide::Number(number))
            | (ConditionSide::Number(number), ConditionSide::Observed(index, ty)) => {
                demands.push((*index, ValueConstraint::Number(*ty, *number)));
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Collects the findings of one event structure.
pub(crate) struct OutcomeCollector<'a> {
    pub(crate) skeleton: &'a Skeleton,
    pub(crate) rules: ValueRules<'a>,
    pub(crate) tracker: &'a BudgetTracker<'a>,
    pub(crate) has_independent_values: bool,
    observed_reads: Vec<u16>,
    /// The test's filter; true if it has none.
    pub(crate) filter: ResolvedCondition,
    /// The condition of the test's question; true if it has none.
    pub(crate) condition: ResolvedCondition,
    /// Symmetry breaking for this event structure.
    pub(crate) symmetry_breaking: SymmetryBreaking,
    /// The RMW chains of this event structure.
    pub(crate) rmw_chains: Vec<RmwChain>,
    /// The storages whose writes are all mutually ordered atomics.
    pub(crate) ordered_storages: &'a [LocationId],
}

/// The value of the last write to a location if it is observed, as far as it is known.
type LastValue = Option<Option<Value>>;

/// One solution of a location: reads-from pairs, the last write and the weight.
type LocationChoice = (Vec<(u16, u16)>, Option<u16>, u64);

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
        let has_independent_values = has_independent_values(skeleton);
        let resolved = |condition: Option<&Condition>| match condition {
            Some(condition) => ResolvedCondition::new(test, observables, condition),
            None => ResolvedCondition::Constant(true),
        };
        let filter = resolved(test.filter.as_ref());
        let condition = resolved(test.question.as_ref().map(|question| &question.condition));
        let symmetry_breaking = SymmetryBreaking::default();
        OutcomeCollector {
            skeleton,
            rules,
            tracker,
            has_independent_values,
            observed_reads,
            filter,
            condition,
            symmetry_breaking,
            rmw_chains: Vec::new(),
            ordered_storages: &[],
        }
    }

    /// Returns the collector with the symmetry breaking of its event structure.
    pub(crate) fn with_symmetry(self, symmetry_breaking: SymmetryBreaking) -> OutcomeCollector<'a> {
        OutcomeCollector { symmetry_breaking, ..self }
    }

    /// Returns the collector with the RMW chains of its event structure.
    pub(crate) fn with_rmw_chains(self, counter_locations: &'a CounterLocations) -> OutcomeCollector<'a> {
        let rmw_chains = counter_locations.chains_in(self.skeleton);
        OutcomeCollector { rmw_chains, ordered_storages: &counter_locations.ordered, ..self }
    }

    /// Returns a search visitor that adds to the findings.
    pub(crate) fn findings_visitor<'s>(&'s self, findings: &'s mut Findings) -> FindingsVisitor<'s, 'a> {
        FindingsVisitor { collector: self, findings }
    }

    /// Returns true if executions with these reads-from edges can add to the findings.
    fn can_add_findings(&self, flags: Flags, reads_from: &[Option<u16>], findings: &Findings) -> bool {
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
            self.evaluate_condition(condition, reads_from, &[]).is_none_or(|holds| holds == wanted)
        };
        possible(&self.filter, true)
            && (!findings.has_match && possible(&self.condition, true)
                || !findings.has_mismatch && possible(&self.condition, false))
    }

    /// Adds a leaf's executions; returns the number visited, about `max_executions` at most if each must be
    /// visited.
    fn add_leaf(&self, leaf: &SearchLeaf, max_executions: u64, findings: &mut Findings) -> u64 {
        // Values do not depend on each other here, so executions are counted as a product and not
        // visited.
        if self.has_independent_values {
            let count = leaf.locations.iter().fold(1u64, |product, solutions| {
                product.saturating_mul(solutions.iter().map(solution_weight).fold(0, u64::saturating_add))
            });
            findings.consistent_executions = findings.consistent_executions.saturating_add(count);
            // With a filter, `decide_leaf` looks for an execution inside it before it raises the
            // flags.
            if self.filter == ResolvedCondition::Constant(true) {
                findings.raise_flags(leaf.flags, false);
            }
            // A run that does not end has no outcome, and its flags are raised already.
            if !self.skeleton.terminated && !findings.grounded.lacks_any_of(leaf.flags) {
                return 1;
            }
        }
        let choices: Vec<Vec<LocationChoice>> = leaf
            .locations
            .iter()
            .map(|solutions| {
                if self.has_independent_values {
                    self.observed_choices(solutions)
                } else {
                    all_choices(solutions)
                }
            })
            .collect();
        let mut rf = vec![None; self.skeleton.len()];
        if self.has_independent_values {
            let outcomes = choices.iter().fold(1usize, |product, c| product.saturating_mul(c.len()));
            // Before the list: it may become too long, which must not affect the answers.
            let tried = self.decide_leaf(&choices, leaf.flags, max_executions, findings);
            if tried > max_executions {
                return tried;
            }
            if findings.unlisted
                || outcomes > MAX_LISTED_OUTCOMES
                || findings.outcomes.allowed_count() > MAX_LISTED_OUTCOMES
            {
                findings.unlisted = true;
                return 1;
            }
            if !self.skeleton.terminated {
                return 1;
            }
        }
        let mut visited = 0;
        let complete =
            self.for_each_choice(&choices, &mut rf, &mut Vec::new(), 1, &mut |rf, last, orders| {
                self.record_valuations(rf, last, orders, leaf.flags, findings);
                visited += 1;
                visited <= max_executions
                    && (!findings.unlisted || self.can_add_findings(leaf.flags, &[], findings))
            });
        if !complete {
            findings.timed_out = true;
        }
        visited
    }

    /// Decides the filter and the question's condition for a leaf without listing its outcomes.
    ///
    /// It looks for an outcome inside the filter, one that satisfies the condition and one that violates it.
    /// The values of different locations are independent here, so that a condition is decided once the values
    /// that it reads are.
    ///
    /// Returns the number of tried choices. If it exceeds `max_tries`, the leaf is not decided.
    fn decide_leaf(
        &self,
        choices: &[Vec<LocationChoice>],
        flagged: Flags,
        max_tries: u64,
        findings: &mut Findings,
    ) -> u64 {
        let mut tries = 0;
        let mut search =
            |goal: ExecutionGoal<'_>| self.find_choice(goal, choices, max_tries, &mut tries).unwrap_or(false);
        if findings.grounded.lacks_any_of(flagged) && search(ExecutionGoal::InFilter) {
            findings.raise_flags(flagged, false);
        }
        if self.skeleton.terminated {
            findings.has_match = findings.has_match || search(ExecutionGoal::ConditionIs(true));
            findings.has_mismatch = findings.has_mismatch || search(ExecutionGoal::ConditionIs(false));
        }
        findings.timed_out |= self.tracker.is_exhausted();
        tries
    }

    /// Returns true if some combination of choices meets the goal; `None` if more than `max_tries` were tried, or
    /// the budget ran out.
    fn find_choice(
        &self,
        goal: ExecutionGoal<'_>,
        choices: &[Vec<LocationChoice>],
        max_tries: u64,
        tries: &mut u64,
    ) -> Option<bool> {
        let (mut rf, mut last) = (vec![None; self.skeleton.len()], Vec::new());
        let mut decided = |rf: &[Option<u16>], last: &[u16]| {
            *tries += 1;
            if self.tracker.spend(1) || *tries > max_tries {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(self.evaluate_goal(goal, rf, last))
        };
        match self.is_satisfiable(&mut decided, choices, &mut rf, &mut last) {
            ControlFlow::Break(()) => None,
            ControlFlow::Continue(found) => Some(found),
        }
    }

    /// Returns true if some combination of choices satisfies `decided`, which is evaluated on partial choices
    /// too, and may end the search.
    fn is_satisfiable(
        &self,
        decided: &mut impl FnMut(&[Option<u16>], &[u16]) -> ControlFlow<(), Option<bool>>,
        choices: &[Vec<LocationChoice>],
        rf: &mut Vec<Option<u16>>,
        last: &mut Vec<u16>,
    ) -> ControlFlow<(), bool> {
        // Three-valued evaluation: a decided condition has this value for all remaining choices.
        if let Some(decided) = decided(rf, last)? {
            return ControlFlow::Continue(decided);
        }
        let Some((first, rest)) = choices.split_first() else { return ControlFlow::Continue(false) };
        for (reads_from, last_write, _) in first {
            for (read, write) in reads_from {
                rf[usize::from(*read)] = Some(*write);
            }
            last.extend(last_write);
            let found = self.is_satisfiable(decided, rest, rf, last)?;
            if last_write.is_some() {
                last.pop();
            }
            for (read, _) in reads_from {
                rf[usize::from(*read)] = None;
            }
            if found {
                return ControlFlow::Continue(true);
            }
        }
        ControlFlow::Continue(false)
    }

    fn evaluate_condition(
        &self,
        condition: &ResolvedCondition,
        rf: &[Option<u16>],
        last: &[u16],
    ) -> Option<bool> {
        condition.evaluate_partial(&mut |index| self.evaluate_final_value(index, rf, last))
    }

    /// Returns the value of an observable, as far as it is known.
    fn evaluate_final_value(&self, index: usize, rf: &[Option<u16>], last: &[u16]) -> Option<Value> {
        let stored = |write: u16| {
            self.skeleton.events[usize::from(write)]
                .stored_value
                .as_ref()
                .and_then(|stored| stored.known_value())
        };
        match self.skeleton.final_values.get(index)? {
            FinalValueSource::Expression(expression) => {
                expression.evaluate(&mut |read| rf.get(usize::from(read)).copied().flatten().and_then(stored))
            }
            FinalValueSource::LastWrite(storage) => last
                .iter()
                .find(|write| self.skeleton.events[usize::from(**write)].storage == Some(*storage))
                .and_then(|write| stored(*write)),
        }
    }

    /// Evaluates the goal on partial reads-from edges; `None` while it is undecided.
    pub(crate) fn evaluate_goal(
        &self,
        goal: ExecutionGoal<'_>,
        rf: &[Option<u16>],
        last: &[u16],
    ) -> Option<bool> {
        match goal {
            ExecutionGoal::Any => Some(true),
            ExecutionGoal::InFilter => self.evaluate_condition(&self.filter, rf, last),
            ExecutionGoal::ConditionIs(wanted) => {
                let inside = self.evaluate_condition(&self.filter, rf, last);
                let is_met = self.evaluate_condition(&self.condition, rf, last).map(|holds| holds == wanted);
                match (inside, is_met) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            ExecutionGoal::Violates(part) => {
                let inside = self.evaluate_condition(&self.filter, rf, last);
                let is_violated = self.negated_conjunct(part).and_then(|(index, demand)| {
                    Some(demand.allows(self.evaluate_final_value(index, rf, last)?))
                });
                match (inside, is_violated) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            ExecutionGoal::Outcome(outcome) => {
                let mut known = true;
                for (index, wanted) in outcome.0.iter().enumerate() {
                    match self.evaluate_final_value(index, rf, last) {
                        Some(value) if value != *wanted => return Some(false),
                        Some(_) => {}
                        None => known = false,
                    }
                }
                known.then_some(true)
            }
        }
    }

    pub(crate) fn is_goal_met(&self, goal: ExecutionGoal<'_>, outcome: &Outcome) -> bool {
        let holds = |condition: &ResolvedCondition| {
            condition.evaluate_partial(&mut |index| outcome.0.get(index).copied()) == Some(true)
        };
        match goal {
            ExecutionGoal::Any => true,
            ExecutionGoal::InFilter => holds(&self.filter),
            ExecutionGoal::ConditionIs(wanted) => holds(&self.filter) && holds(&self.condition) == wanted,
            ExecutionGoal::Violates(part) => {
                let is_violated = self
                    .negated_conjunct(part)
                    .and_then(|(index, demand)| Some(demand.allows(*outcome.0.get(index)?)));
                holds(&self.filter) && is_violated == Some(true)
            }
            ExecutionGoal::Outcome(wanted) => outcome == wanted,
        }
    }

    /// Returns the number of conjuncts if the condition is a conjunction of constraints on single values.
    pub(crate) fn conjunct_count(&self) -> Option<usize> {
        let mut demands = Vec::new();
        collect_value_constraints(&self.condition, &mut demands).then_some(demands.len())
    }

    /// Returns the constraint that violates one conjunct of the condition.
    pub(crate) fn negated_conjunct(&self, part: usize) -> Option<(usize, ValueConstraint)> {
        let mut demands = Vec::new();
        collect_value_constraints(&self.condition, &mut demands);
        match demands.get(part)? {
            (index, ValueConstraint::Number(ty, number)) => {
                Some((*index, ValueConstraint::NotNumber(*ty, *number)))
            }
            _ => None,
        }
    }

    /// Returns true if one of the leaf's executions meets the goal; `None` if more than `max_tries` choices were
    /// tried, or the budget ran out.
    pub(crate) fn leaf_meets_goal(
        &self,
        leaf: &SearchLeaf,
        goal: ExecutionGoal<'_>,
        max_tries: u64,
        tries: &mut u64,
    ) -> Option<bool> {
        let mut rf = vec![None; self.skeleton.len()];
        if self.has_independent_values {
            let choices: Vec<Vec<LocationChoice>> =
                leaf.locations.iter().map(|solutions| self.observed_choices(solutions)).collect();
            return self.find_choice(goal, &choices, max_tries, tries);
        }
        let choices: Vec<Vec<LocationChoice>> =
            leaf.locations.iter().map(|solutions| all_choices(solutions)).collect();
        let found = Cell::new(false);
        let complete = self.for_each_choice(&choices, &mut rf, &mut Vec::new(), 1, &mut |rf, last, _| {
            let values =
                enumerate_valuations(self.skeleton, rf, self.rules.out_of_thin_air, self.rules.domain);
            let mut shown = values.iter().filter(|shown| satisfies_constraints(self.skeleton, &shown.values));
            let meets_goal =
                |shown: &Valuation| self.is_goal_met(goal, &self.to_outcome(&shown.values, last));
            found.set(found.get() || shown.any(meets_goal));
            !found.get()
        });
        (found.get() || complete).then_some(found.get())
    }

    /// Restricts each read to the writes that an execution of the goal may read from; `None` if there is no
    /// such execution.
    ///
    /// The flag is true if all of these writes serve the goal equally. The value of every write must be
    /// known.
    pub(crate) fn restrict_sources(
        &self,
        reads: &[ReadChoice],
        goal: ExecutionGoal<'_>,
    ) -> Option<(Vec<ReadChoice>, bool)> {
        let mut demands = Vec::new();
        let mut are_equivalent = true;
        match goal {
            ExecutionGoal::Any => {}
            ExecutionGoal::InFilter => {
                are_equivalent &= collect_value_constraints(&self.filter, &mut demands)
            }
            ExecutionGoal::ConditionIs(wanted) => {
                are_equivalent &= collect_value_constraints(&self.filter, &mut demands);
                // The negation of a condition puts no constraint on a single value.
                are_equivalent &= wanted && collect_value_constraints(&self.condition, &mut demands);
            }
            ExecutionGoal::Violates(part) => {
                are_equivalent &= collect_value_constraints(&self.filter, &mut demands);
                demands.push(self.negated_conjunct(part)?);
            }
            ExecutionGoal::Outcome(outcome) => {
                demands.extend(
                    outcome
                        .0
                        .iter()
                        .enumerate()
                        .map(|(index, value)| (index, ValueConstraint::Value(*value))),
                );
            }
        }
        let mut reads = reads.to_vec();
        for (index, demand) in demands {
            let FinalValueSource::Expression(expression) = self.skeleton.final_values.get(index)? else {
                continue;
            };
            match reads_of(expression).as_slice() {
                [] => {
                    // A constant that violates the constraint excludes every execution of the goal.
                    expression.known_value().filter(|value| demand.allows(*value))?;
                }
                [read] => {
                    let choice = reads.iter_mut().find(|choice| choice.read == usize::from(*read))?;
                    choice.candidates.retain(|write| {
                        let stored = &self.skeleton.events[*write].stored_value;
                        let stored = stored.as_ref().and_then(|stored| stored.known_value());
                        expression.evaluate(&mut |_| stored).is_some_and(|value| demand.allows(value))
                    });
                }
                // A value computed from several reads restricts no single read.
                _ => are_equivalent = false,
            }
        }
        reads.iter().all(|choice| !choice.candidates.is_empty()).then_some((reads, are_equivalent))
    }

    /// Returns the distinct observable results of a location, each with one example.
    fn observed_choices(&self, solutions: &[LocationSolution]) -> Vec<LocationChoice> {
        let mut seen: QuickSet<(Vec<Option<Value>>, LastValue)> = QuickSet::default();
        let mut choices = Vec::new();
        let stored = |write: u16| {
            self.skeleton.events[usize::from(write)]
                .stored_value
                .as_ref()
                .and_then(|stored| stored.known_value())
        };
        for solution in solutions {
            // The product over the reads, with one source for each value: equal values lead to
            // equal outcomes.
            let mut expanded: Vec<Vec<(u16, u16)>> = vec![Vec::new()];
            for (read, source) in &solution.reads_from {
                // The source of an unobserved read cannot change the outcome.
                if self.observed_reads.binary_search(read).is_err() {
                    continue;
                }
                let mut values: Vec<Option<Value>> = Vec::new();
                let mut writes = Vec::new();
                for write in source.writes() {
                    let value = stored(*write);
                    if !values.contains(&value) {
                        values.push(value);
                        writes.push(*write);
                    }
                }
                expanded = expanded
                    .iter()
                    .flat_map(|prefix| {
                        writes.iter().map(|write| {
                            let mut next = prefix.clone();
                            next.push((*read, *write));
                            next
                        })
                    })
                    .collect();
            }
            for reads_from in expanded {
                let key = (
                    reads_from.iter().map(|(_, write)| stored(*write)).collect(),
                    solution.last_write.map(stored),
                );
                if seen.insert(key) {
                    choices.push((reads_from, solution.last_write, 1));
                }
            }
        }
        choices
    }

    /// Visits every combination of the choices until `visit` returns false; false if the budget ran out.
    fn for_each_choice(
        &self,
        choices: &[Vec<LocationChoice>],
        rf: &mut Vec<Option<u16>>,
        last: &mut Vec<u16>,
        orders: u64,
        visit: &mut impl FnMut(&[Option<u16>], &[u16], u64) -> bool,
    ) -> bool {
        let mut continues = true;
        let mut in_time = true;
        self.visit_combinations(choices, rf, last, orders, &mut |rf, last, orders| {
            in_time &= !self.tracker.spend(1);
            continues &= in_time && visit(rf, last, orders);
            continues
        });
        in_time
    }

    fn visit_combinations(
        &self,
        choices: &[Vec<LocationChoice>],
        rf: &mut Vec<Option<u16>>,
        last: &mut Vec<u16>,
        orders: u64,
        visit: &mut impl FnMut(&[Option<u16>], &[u16], u64) -> bool,
    ) -> bool {
        let Some((first, rest)) = choices.split_first() else {
            return visit(rf, last, orders);
        };
        for (reads_from, last_write, weight) in first {
            for (read, write) in reads_from {
                rf[usize::from(*read)] = Some(*write);
            }
            last.extend(last_write);
            let continues = self.visit_combinations(rest, rf, last, orders.saturating_mul(*weight), visit);
            if last_write.is_some() {
                last.pop();
            }
            for (read, _) in reads_from {
                rf[usize::from(*read)] = None;
            }
            if !continues {
                return false;
            }
        }
        true
    }

    fn record_valuations(
        &self,
        rf: &[Option<u16>],
        last: &[u16],
        orders: u64,
        flagged: Flags,
        findings: &mut Findings,
    ) {
        // A plain structure is only listed here: `add_leaf` has counted its executions and decided
        // the question.
        let valuations =
            enumerate_valuations(self.skeleton, rf, self.rules.out_of_thin_air, self.rules.domain);
        for Valuation { values, thin_air } in valuations {
            if !self.has_independent_values {
                if !satisfies_constraints(self.skeleton, &values) {
                    continue;
                }
                // One choice of reads-from represents `orders` modification orders.
                findings.consistent_executions = findings.consistent_executions.saturating_add(orders);
            }
            let outcome = self.to_outcome(&values, last);
            let holds = |condition: &ResolvedCondition| {
                condition.evaluate_partial(&mut |index| outcome.0.get(index).copied()) == Some(true)
            };
            let is_in_filter = holds(&self.filter);
            if is_in_filter {
                findings.raise_flags(flagged, thin_air);
            }
            if self.skeleton.terminated {
                if is_in_filter && !self.has_independent_values {
                    let meets = holds(&self.condition);
                    findings.has_match |= meets;
                    findings.has_mismatch |= !meets;
                }
                if findings.outcomes.allowed_count() < MAX_LISTED_OUTCOMES {
                    findings.outcomes.record_allowed(outcome, thin_air);
                } else {
                    findings.unlisted = true;
                }
            }
        }
    }

    /// Adds one execution of a plain event structure: a candidate, and its findings if it is consistent and
    /// raises `flags`.
    pub(crate) fn add_execution(
        &self,
        rf: &[Option<u16>],
        last: &[u16],
        flags: Option<Flags>,
        findings: &mut Findings,
    ) {
        findings.candidate_executions = findings.candidate_executions.saturating_add(1);
        let value = |index| self.evaluate_final_value(index, rf, last).unwrap_or_default();
        let outcome = Outcome((0..self.skeleton.final_values.len()).map(value).collect());
        if let Some(flags) = flags {
            findings.consistent_executions = findings.consistent_executions.saturating_add(1);
            if self.is_goal_met(ExecutionGoal::InFilter, &outcome) {
                findings.raise_flags(flags, false);
                if self.skeleton.terminated {
                    let meets = self.is_goal_met(ExecutionGoal::ConditionIs(true), &outcome);
                    findings.has_match |= meets;
                    findings.has_mismatch |= !meets;
                }
            }
        }
        if !self.skeleton.terminated {
            return;
        }
        if findings.outcomes.len() >= MAX_LISTED_OUTCOMES {
            findings.unlisted = true;
            return;
        }
        let status = if flags.is_some() { OutcomeStatus::Allowed } else { OutcomeStatus::Candidate };
        findings.outcomes.record_outcome(outcome, status);
    }

    pub(crate) fn to_outcome(&self, values: &ReadValues, last: &[u16]) -> Outcome {
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

/// A search visitor that adds each leaf to the findings.
pub(crate) struct FindingsVisitor<'s, 'a> {
    collector: &'s OutcomeCollector<'a>,
    findings: &'s mut Findings,
}

impl LeafVisitor for FindingsVisitor<'_, '_> {
    fn needs_executions(&mut self, flags: Flags, reads_from: &[Option<u16>]) -> bool {
        self.collector.can_add_findings(flags, reads_from, self.findings)
    }

    fn visit_executions(&mut self, leaf: SearchLeaf, max_executions: u64) -> u64 {
        self.collector.add_leaf(&leaf, max_executions, self.findings)
    }
}

/// Returns the number of executions that a solution represents.
fn solution_weight(solution: &LocationSolution) -> u64 {
    solution
        .reads_from
        .iter()
        .fold(solution.orders, |product, (_, source)| product.saturating_mul(source.writes().len() as u64))
}

/// Returns every choice of a location, with the source of each read.
fn all_choices(solutions: &[LocationSolution]) -> Vec<LocationChoice> {
    let mut choices = Vec::new();
    for solution in solutions {
        let mut expanded: Vec<Vec<(u16, u16)>> = vec![Vec::new()];
        for (read, source) in &solution.reads_from {
            expanded = expanded
                .iter()
                .flat_map(|prefix| {
                    source.writes().iter().map(|write| {
                        let mut next = prefix.clone();
                        next.push((*read, *write));
                        next
                    })
                })
                .collect();
        }
        choices.extend(expanded.into_iter().map(|reads| (reads, solution.last_write, solution.orders)));
    }
    choices
}
