//! Search for a proof about one event structure.
//!
//! A branch is a choice of one read's source or of the order of two writes. It ends where the engine's bounds
//! violate an axiom, where values decide, or where no flag can be raised. The choices that this end needs are
//! found by removing choices one by one. A branch that does not need its last choice ends its parent as well
//! (backjumping), and the choices that ended one branch end later ones that contain them (learning).
//!
//! Executions that the search finds are recorded as witnesses.

use std::collections::BTreeMap;
use std::convert::Infallible;

use certificate::{EventStructure, ExecutionChoice, FlagGroup, ProofStep, WitnessExecution, find_outcomes};
use litmus::minimize::remove_chunks;
use litmus::{Outcome, Test, Value};

use crate::PredictError;
use crate::cat::{Axiom, CatValue, NodeId};
use crate::choice::{
    ReadChoice, co_bounds, fix_read_source, is_axiom_possible, rf_may, rf_must, static_base_value,
};
use crate::flags::Flags;
use crate::interval::{Bounds, RequestedBounds, nodes_to_evaluate};
use crate::matrix::Matrix;
use crate::prepared::PreparedPlan;
use crate::skeleton::{FinalValueSource, Skeleton, Tags};
use crate::symbolic::SymbolicValue;
use solver::BudgetTracker;

/// Longest derived step that later branches are compared with.
const MAX_LEARNED_CHOICES: usize = 16;

/// The group of a flag.
pub(super) fn flag_group(axiom: &Axiom) -> FlagGroup {
    match axiom.name.as_deref() {
        Some(Flags::UNDEFINED) => FlagGroup::UndefinedExecution,
        Some(Flags::UNINITIALISED) => FlagGroup::UninitialisedRead,
        _ => FlagGroup::Race,
    }
}

/// A claim to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProofGoal {
    /// Every outcome is in [`FoundExecutions::allowed`], to which the search adds.
    Outcomes,
    /// No execution inside the filter raises a flag of the group.
    Unflagged(FlagGroup),
}

/// The reason that a search ended without a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProofFailure {
    /// The budget ran out.
    BudgetExhausted,
    /// A flag is raised.
    FlagRaised,
    /// There are too many outcomes.
    TooManyOutcomes,
}

/// The executions found, of all structures.
pub(super) struct FoundExecutions<'t> {
    test: &'t Test,
    /// The allowed outcomes, each with an execution.
    pub(super) allowed: BTreeMap<Vec<u64>, WitnessExecution>,
    /// The raised groups of flags, each with an execution.
    pub(super) raised: BTreeMap<FlagGroup, WitnessExecution>,
    max_outcomes: usize,
}

impl<'t> FoundExecutions<'t> {
    pub(super) fn new(test: &'t Test, max_outcomes: usize) -> FoundExecutions<'t> {
        FoundExecutions { test, allowed: BTreeMap::new(), raised: BTreeMap::new(), max_outcomes }
    }

    fn passes_filter(&self, outcome: &[u64]) -> bool {
        let outcome = Outcome(outcome.iter().map(|value| Value(*value)).collect());
        let observables = self.test.observables();
        let passes = |filter| outcome.meets_condition(self.test, &observables, filter);
        self.test.filter.as_ref().is_none_or(passes)
    }
}

/// A step that ends a branch: the executions with its choices are settled.
#[derive(Clone, Debug)]
struct ClosingStep {
    step: usize,
    choices: Vec<ExecutionChoice>,
    /// The claim that it proves; none for every claim.
    only: Option<ProofGoal>,
}

/// The consequences of the decisions of a branch.
struct BranchState<M> {
    /// The source of each read.
    sources: Vec<Option<usize>>,
    /// The certain part of modification order.
    before: M,
}

/// A choice that is not made yet.
#[derive(Clone, Copy, Debug)]
enum DecisionVariable {
    /// A read, by its index among the reads.
    Source(usize),
    /// The order of two writes.
    Order(usize, usize),
}

/// The search for the proofs about one structure.
pub(super) struct ProofSearch<'a, M: Matrix> {
    skeleton: &'a Skeleton,
    structure: &'a EventStructure,
    prepared: &'a PreparedPlan,
    domain: Option<&'a [u64]>,
    tracker: &'a BudgetTracker<'a>,
    reads: Vec<ReadChoice>,
    /// Pairs of writes in open order.
    write_pairs: Vec<(usize, usize)>,
    static_bounds: Bounds<M>,
    co_bounds: (M, M),
    bounds: Bounds<M>,
    requested: Vec<RequestedBounds>,
    goal: ProofGoal,
    structure_index: usize,
    decisions: Vec<ExecutionChoice>,
    steps: Vec<ProofStep>,
    learned: Vec<ClosingStep>,
    /// Scores of the reads and of the pairs of writes: each end of a branch that needed a choice about one adds
    /// to its score, recent ends more than earlier ones.
    read_scores: Vec<f64>,
    pair_scores: Vec<f64>,
    increment: f64,
}

impl<'a, M: Matrix> ProofSearch<'a, M> {
    pub(super) fn new(
        skeleton: &'a Skeleton,
        structure: &'a EventStructure,
        prepared: &'a PreparedPlan,
        domain: Option<&'a [u64]>,
        tracker: &'a BudgetTracker<'a>,
    ) -> Result<ProofSearch<'a, M>, PredictError> {
        let (n, plan) = (skeleton.len(), &prepared.plan);
        let is_read = |event: &usize| skeleton.events[*event].tags.has(Tags::R);
        let reads: Vec<ReadChoice> = (0..n)
            .filter(is_read)
            .map(|read| ReadChoice { read, candidates: skeleton.candidate_writes(read) })
            .collect();
        let co_bounds: (M, M) = co_bounds(skeleton);
        let mut static_bounds: Bounds<M> = Bounds::new(prepared, n);
        for &(id, base) in &prepared.static_bases {
            static_bounds
                .set_static(id, static_base_value::<M>(plan, skeleton, plan.node_at(id).kind(), base)?);
        }
        for &id in &prepared.rf {
            static_bounds.set(
                id,
                CatValue::Relation(rf_must(n, &reads)),
                CatValue::Relation(rf_may(n, &reads)),
            );
        }
        for &id in &prepared.co {
            static_bounds.set(
                id,
                CatValue::Relation(co_bounds.0.clone()),
                CatValue::Relation(co_bounds.1.clone()),
            );
        }
        static_bounds.evaluate_all(plan);
        let roots = plan.axioms.iter().map(|axiom| RequestedBounds {
            node: axiom.node,
            must: !axiom.negated,
            may: axiom.negated,
        });
        let requested =
            nodes_to_evaluate(prepared, roots, |id| static_bounds.must(id) != static_bounds.may(id));
        let open =
            |(a, b): &(usize, usize)| a < b && co_bounds.1.contains(*a, *b) && co_bounds.1.contains(*b, *a);
        let write_pairs: Vec<(usize, usize)> = co_bounds.1.pairs().filter(open).collect();
        let (read_scores, pair_scores) = (vec![0.0; reads.len()], vec![0.0; write_pairs.len()]);
        Ok(ProofSearch {
            skeleton,
            structure,
            prepared,
            domain,
            tracker,
            reads,
            write_pairs,
            bounds: static_bounds.clone(),
            static_bounds,
            co_bounds,
            requested,
            goal: ProofGoal::Outcomes,
            structure_index: 0,
            decisions: Vec::new(),
            steps: Vec::new(),
            learned: Vec::new(),
            read_scores,
            pair_scores,
            increment: 1.0,
        })
    }

    /// Proves a claim about structure `index` and returns the step that proves it.
    pub(super) fn prove(
        &mut self,
        goal: ProofGoal,
        index: usize,
        found: &mut FoundExecutions<'_>,
    ) -> Result<usize, ProofFailure> {
        (self.goal, self.structure_index) = (goal, index);
        self.decisions.clear();
        Ok(self.descend(found)?.step)
    }

    pub(super) fn into_steps(self) -> Vec<ProofStep> {
        self.steps
    }

    fn descend(&mut self, found: &mut FoundExecutions<'_>) -> Result<ClosingStep, ProofFailure> {
        if self.tracker.spend(1) {
            return Err(ProofFailure::BudgetExhausted);
        }
        let state = self.branch_state(&self.decisions);
        if let Some(closing) = self.close_as_learned(&state) {
            return Ok(closing);
        }
        if let Some(closing) = self.close_by_values(found) {
            return Ok(closing);
        }
        if let Some(closing) = self.close_by_relations()? {
            return Ok(closing);
        }
        let Some(variable) = self.next_variable(&state) else {
            return self.record_execution(&state, found);
        };
        self.branch_on(variable, found)
    }

    fn branch_on(
        &mut self,
        variable: DecisionVariable,
        found: &mut FoundExecutions<'_>,
    ) -> Result<ClosingStep, ProofFailure> {
        let choices: Vec<ExecutionChoice> = match variable {
            DecisionVariable::Source(index) => {
                let ReadChoice { read, candidates } = &self.reads[index];
                candidates.iter().map(|write| ExecutionChoice::Rf(*write, *read)).collect()
            }
            DecisionVariable::Order(a, b) => vec![ExecutionChoice::Co(a, b), ExecutionChoice::Co(b, a)],
        };
        let mut cases = Vec::with_capacity(choices.len());
        let mut needed: Vec<ExecutionChoice> = Vec::new();
        let mut only = None;
        for choice in &choices {
            self.decisions.push(*choice);
            let closed = self.descend(found);
            self.decisions.pop();
            let closed = closed?;
            if !closed.choices.contains(choice) {
                return Ok(closed);
            }
            needed.extend(closed.choices.iter().filter(|other| *other != choice));
            only = only.or(closed.only);
            cases.push(closed.step);
        }
        needed.sort_unstable();
        needed.dedup();
        let step = match (variable, cases.as_slice()) {
            (DecisionVariable::Order(first, second), &[forwards, backwards]) => {
                ProofStep::Pair { first, second, forwards, backwards }
            }
            (DecisionVariable::Source(index), _) => ProofStep::Read { read: self.reads[index].read, cases },
            (DecisionVariable::Order(..), _) => return Err(ProofFailure::BudgetExhausted),
        };
        Ok(self.learn_step(step, needed, only))
    }

    fn learn_step(
        &mut self,
        step: ProofStep,
        choices: Vec<ExecutionChoice>,
        only: Option<ProofGoal>,
    ) -> ClosingStep {
        self.steps.push(step);
        let closing = ClosingStep { step: self.steps.len() - 1, choices, only };
        if closing.choices.len() <= MAX_LEARNED_CHOICES {
            self.learned.push(closing.clone());
        }
        closing
    }

    fn branch_state(&self, choices: &[ExecutionChoice]) -> BranchState<M> {
        let mut sources = vec![None; self.skeleton.len()];
        for ReadChoice { read, candidates } in &self.reads {
            if let [write] = candidates.as_slice() {
                sources[*read] = Some(*write);
            }
        }
        let mut before = self.co_bounds.0.clone();
        let mut ordered = false;
        for choice in choices {
            match *choice {
                ExecutionChoice::Rf(write, read) => sources[read] = Some(write),
                ExecutionChoice::Co(first, second) => {
                    before.insert(first, second);
                    ordered = true;
                }
            }
        }
        BranchState { sources, before: if ordered { before.plus() } else { before } }
    }

    /// Ends the branch by an earlier step whose choices are made.
    fn close_as_learned(&mut self, state: &BranchState<M>) -> Option<ClosingStep> {
        let holds = |choice: &ExecutionChoice| match *choice {
            ExecutionChoice::Rf(write, read) => state.sources[read] == Some(write),
            ExecutionChoice::Co(first, second) => state.before.contains(first, second),
        };
        let goal = self.goal;
        let serves = |closing: &&ClosingStep| closing.only.is_none_or(|only| only == goal);
        let known = self.learned.iter().filter(serves).find(|closing| closing.choices.iter().all(holds))?;
        if known.choices.iter().all(|choice| self.decisions.contains(choice)) {
            return Some(known.clone());
        }
        let ClosingStep { step, choices, only } = known.clone();
        let implied = |decided: &[ExecutionChoice]| {
            let state = self.branch_state(decided);
            choices.iter().all(|choice| match *choice {
                ExecutionChoice::Rf(write, read) => state.sources[read] == Some(write),
                ExecutionChoice::Co(first, second) => state.before.contains(first, second),
            })
        };
        let choices = minimize_choices(&self.decisions, implied);
        self.steps.push(ProofStep::Implied { step, choices: choices.clone() });
        Some(ClosingStep { step: self.steps.len() - 1, choices, only })
    }

    /// Returns the outcomes of all executions with these choices, or more; `None` if they are open.
    fn possible_outcomes(&self, state: &BranchState<M>) -> Option<Vec<Vec<u64>>> {
        let complete = self.reads.iter().all(|choice| state.sources[choice.read].is_some());
        let before = |one: usize, other: usize| state.before.contains(one, other);
        find_outcomes(self.structure, &state.sources, &before, self.domain, complete)
    }

    /// Ends the branch if values contradict its path, or if all of its outcomes are settled.
    fn close_by_values(&mut self, found: &FoundExecutions<'_>) -> Option<ClosingStep> {
        let closed = |decided: &[ExecutionChoice]| {
            let outcomes = self.possible_outcomes(&self.branch_state(decided))?;
            let settled = match self.goal {
                ProofGoal::Outcomes => outcomes.iter().all(|outcome| found.allowed.contains_key(outcome)),
                ProofGoal::Unflagged(_) => !outcomes.iter().any(|outcome| found.passes_filter(outcome)),
            };
            settled.then_some(outcomes.is_empty())
        };
        closed(&self.decisions)?;
        let choices = minimize_choices(&self.decisions, |decided| closed(decided).is_some());
        let only = if closed(&choices) == Some(true) { None } else { Some(self.goal) };
        Some(self.learn_step(ProofStep::Values { choices: choices.clone() }, choices, only))
    }

    /// Ends the branch if its certain pairs violate an axiom, or if it raises no flag of the claim.
    fn close_by_relations(&mut self) -> Result<Option<ClosingStep>, ProofFailure> {
        let decisions = self.decisions.clone();
        self.evaluate_bounds(&decisions);
        let prepared = self.prepared;
        let mut axioms = prepared.plan.axioms.iter().filter(|axiom| !axiom.is_flag);
        let violated = axioms.find(|axiom| !is_axiom_possible(axiom, &self.bounds));
        if let Some(axiom) = violated {
            let choices = self.minimize_decisions(&|search| !is_axiom_possible(axiom, &search.bounds))?;
            self.bump_scores(&choices);
            let step = ProofStep::Axiom { choices: choices.clone(), name: axiom.name.clone() };
            return Ok(Some(self.learn_step(step, choices, None)));
        }
        let ProofGoal::Unflagged(group) = self.goal else { return Ok(None) };
        let unflagged = |search: &Self| {
            let flags =
                prepared.plan.axioms.iter().filter(|axiom| axiom.is_flag && flag_group(axiom) == group);
            !flags.into_iter().any(|axiom| is_axiom_possible(axiom, &search.bounds))
        };
        if !unflagged(self) {
            return Ok(None);
        }
        let choices = self.minimize_decisions(&unflagged)?;
        self.bump_scores(&choices);
        let step = ProofStep::Unflagged { choices: choices.clone(), group };
        Ok(Some(self.learn_step(step, choices, Some(self.goal))))
    }

    /// Returns few of the decisions for which the bounds still have a property.
    fn minimize_decisions(
        &mut self,
        holds: &dyn Fn(&Self) -> bool,
    ) -> Result<Vec<ExecutionChoice>, ProofFailure> {
        let mut needed: Vec<ExecutionChoice> = self.decisions.iter().rev().cloned().collect();
        remove_chunks(&mut needed, 1, |fewer| {
            if self.tracker.spend(1) {
                return Err(ProofFailure::BudgetExhausted);
            }
            self.evaluate_bounds(fewer);
            Ok(holds(self))
        })?;
        needed.sort_unstable();
        Ok(needed)
    }

    /// Evaluates the bounds of all axioms and flags under some choices.
    fn evaluate_bounds(&mut self, choices: &[ExecutionChoice]) {
        let prepared = self.prepared;
        for id in prepared.rf.iter().chain(&prepared.co) {
            self.bounds.set(*id, self.static_bounds.must(*id).clone(), self.static_bounds.may(*id).clone());
        }
        for choice in choices {
            if let ExecutionChoice::Rf(write, read) = *choice {
                prepared.rf.iter().for_each(|id| fix_read_source(&mut self.bounds, *id, read, write));
            }
        }
        if !prepared.co.is_empty() {
            let before = self.branch_state(choices).before;
            let may = self.co_bounds.1.difference(&before.transpose());
            let set = |bounds: &mut Bounds<M>, id: NodeId| {
                bounds.set(id, CatValue::Relation(before.clone()), CatValue::Relation(may.clone()));
            };
            prepared.co.iter().for_each(|id| set(&mut self.bounds, *id));
        }
        self.bounds.evaluate(&prepared.plan, &self.requested);
    }

    fn bump_scores(&mut self, choices: &[ExecutionChoice]) {
        for choice in choices {
            match *choice {
                ExecutionChoice::Rf(_, read) => {
                    let index = self.reads.iter().position(|choice| choice.read == read);
                    index.into_iter().for_each(|index| self.read_scores[index] += self.increment);
                }
                ExecutionChoice::Co(a, b) => {
                    let index = self.write_pairs.iter().position(|pair| *pair == (a.min(b), a.max(b)));
                    index.into_iter().for_each(|index| self.pair_scores[index] += self.increment);
                }
            }
        }
        self.increment *= 1.05;
        if self.increment > 1e100 {
            let scores = self.read_scores.iter_mut().chain(&mut self.pair_scores);
            scores.for_each(|score| *score /= 1e100);
            self.increment /= 1e100;
        }
    }

    /// Returns the next choice: first those that decide the outcome, then those that ended branches.
    fn next_variable(&self, state: &BranchState<M>) -> Option<DecisionVariable> {
        let has_choice = |index: &usize| {
            let choice = &self.reads[*index];
            state.sources[choice.read].is_none() && choice.candidates.len() != 1
        };
        if self.goal == ProofGoal::Outcomes {
            let needed = self.needed_reads(state);
            let by_read = |read: &usize| self.reads.iter().position(|choice| choice.read == *read);
            if let Some(index) = needed.iter().filter_map(by_read).find(has_choice) {
                return Some(DecisionVariable::Source(index));
            }
        }
        let is_open =
            |(a, b): &(usize, usize)| !state.before.contains(*a, *b) && !state.before.contains(*b, *a);
        let best = |found: Option<(f64, DecisionVariable)>, (score, variable): (f64, DecisionVariable)| {
            match found {
                Some((known, _)) if known >= score => found,
                _ => Some((score, variable)),
            }
        };
        let sources = (0..self.reads.len()).filter(has_choice);
        let sources = sources.map(|index| (self.read_scores[index], DecisionVariable::Source(index)));
        let orders = (0..self.write_pairs.len()).filter(|index| is_open(&self.write_pairs[*index]));
        let orders = orders.map(|index| {
            let (a, b) = self.write_pairs[index];
            (self.pair_scores[index], DecisionVariable::Order(a, b))
        });
        sources.chain(orders).fold(None, best).map(|(_, variable)| variable)
    }

    /// The reads that final values depend on, as far as their sources are known.
    fn needed_reads(&self, state: &BranchState<M>) -> Vec<usize> {
        let add = |value: &SymbolicValue<u16>, open: &mut Vec<usize>| {
            value.for_each_read(&mut |read| open.push(usize::from(read)));
        };
        let mut open = Vec::new();
        for value in self.skeleton.final_values.iter().rev() {
            match value {
                FinalValueSource::Expression(value) => add(value, &mut open),
                FinalValueSource::LastWrite(storage) => {
                    let written = self.skeleton.events.iter().filter(|event| event.storage == Some(*storage));
                    written
                        .filter_map(|event| event.stored_value.as_ref())
                        .for_each(|value| add(value, &mut open));
                }
            }
        }
        let mut needed = Vec::new();
        while let Some(read) = open.pop() {
            if !needed.contains(&read) {
                needed.push(read);
                if let Some(stored) =
                    state.sources[read].and_then(|write| self.skeleton.events[write].stored_value.as_ref())
                {
                    add(stored, &mut open);
                }
            }
        }
        needed
    }

    /// Records a consistent execution: all choices are made and no axiom is violated.
    fn record_execution(
        &mut self,
        state: &BranchState<M>,
        found: &mut FoundExecutions<'_>,
    ) -> Result<ClosingStep, ProofFailure> {
        let sources = state.sources.iter().enumerate();
        let execution = WitnessExecution {
            structure: self.structure_index,
            rf: sources.filter_map(|(read, write)| Some(((*write)?, read))).collect(),
            co: self.modification_orders(state),
        };
        if let ProofGoal::Unflagged(group) = self.goal {
            // A flag may be raised, and no choice is left that could prevent it.
            found.raised.insert(group, execution);
            return Err(ProofFailure::FlagRaised);
        }
        for outcome in self.possible_outcomes(state).unwrap_or_default() {
            found.allowed.entry(outcome).or_insert_with(|| execution.clone());
        }
        if found.allowed.len() > found.max_outcomes {
            return Err(ProofFailure::TooManyOutcomes);
        }
        self.close_by_values(found).ok_or(ProofFailure::BudgetExhausted)
    }

    fn modification_orders(&self, state: &BranchState<M>) -> Vec<Vec<usize>> {
        let is_write = |event: &usize| self.skeleton.events[*event].tags.has(Tags::W);
        let order = |storage| {
            let of_storage = |event: &usize| self.skeleton.events[*event].storage == Some(storage);
            let mut writes: Vec<usize> =
                (0..self.skeleton.len()).filter(is_write).filter(of_storage).collect();
            writes.sort_by_key(|write| {
                (0..self.skeleton.len()).filter(|e| state.before.contains(*e, *write)).count()
            });
            writes
        };
        self.skeleton.storages().into_iter().map(order).collect()
    }
}

/// Returns few of the choices for which a property that grows with them still holds.
fn minimize_choices(
    choices: &[ExecutionChoice],
    holds: impl Fn(&[ExecutionChoice]) -> bool,
) -> Vec<ExecutionChoice> {
    let mut needed: Vec<ExecutionChoice> = choices.iter().rev().cloned().collect();
    let Ok(_) = remove_chunks(&mut needed, 1, |fewer| Ok::<_, Infallible>(holds(fewer)));
    needed.sort_unstable();
    needed
}
