//! Searches for the execution that an explanation shows, and describes it.

use std::cell::Cell;
use std::sync::Arc;

use litmus::{Condition, Outcome, Test};

use super::derive::{EdgeDeriver, event_id, leaf_edge, location_of_statement};
use super::events::{describe_events, value_text};
use super::fix::FixSearchResult;
use super::{
    BrokenAxiom, ExplainOptions, ExplainedEdge, ExplainedExecution, ExplanationAnswer, FoundRace,
    UninitialisedRead,
};
use crate::bounded_test::BoundedTest;
use crate::candidate::{
    CandidateExecution, CandidateVisitor, EnumerationBounds, EnumerationEnd, for_each_candidate,
    passes_filter,
};
use crate::cat::source::text_of;
use crate::cat::{self, Axiom, AxiomKind, CompiledModel, NodeId, PlanNode};
use crate::combinations::for_each_skeleton;
use crate::flags::Flags;
use crate::guarded::{ExecutionGoal, find_executions};
use crate::matrix::{Bits, Matrix, with_smallest_matrix};
use crate::search::step_weight;
use crate::skeleton::{Skeleton, Tags};
use crate::valuation::ValueDomain;
use crate::{Model, PredictError};
use solver::BudgetTracker;

/// Derived relations that are drawn if the model defines them.
const DRAWN_RELATIONS: [&str; 3] = ["fr", "sw", "locord"];

/// Limit of the event structures whose candidates are enumerated.
const MAX_SKELETONS: usize = 4096;

/// Limit of the candidates that are enumerated before the solver is used, for an event structure of few events.
const FIRST_CANDIDATES: u64 = 5_000;

/// Steps of the solver that take about as long as to examine a candidate.
const SOLVER_STEPS_PER_CANDIDATE: u64 = 8;

/// One test under one model, ready to be searched.
pub(super) struct ExecutionSearch<'a> {
    test: &'a Test,
    model: &'a Model,
    plan: Arc<CompiledModel>,
    unroll: u32,
    skeletons: Vec<Skeleton>,
    /// True if the test has more event structures.
    has_more_skeletons: bool,
    /// The error of a test with too many paths to have event structures.
    too_many_paths: Option<PredictError>,
    options: &'a ExplainOptions<'a>,
    tracker: &'a BudgetTracker<'a>,
    allows_thin_air: bool,
    domain: ValueDomain<'a>,
}

/// The number of broken axioms, and the length of the shortest violation.
type Distance = (usize, usize);

/// Axioms and flags of a candidate.
struct ExaminedCandidate {
    /// The broken axioms, as indices.
    broken_axioms: Vec<usize>,
    /// The flags that are raised.
    flags: Flags,
    /// Length of the shortest violation of an axiom.
    shortest_violation: usize,
}

impl<'a> ExecutionSearch<'a> {
    pub(super) fn new(
        test: &'a Test,
        model: &'a Model,
        options: &'a ExplainOptions<'a>,
        unroll: u32,
        tracker: &'a BudgetTracker<'a>,
    ) -> Result<ExecutionSearch<'a>, PredictError> {
        let semantic = model.execution_semantics();
        let mut skeletons = Vec::new();
        let (mut has_more_skeletons, mut too_many_paths) = (false, None);
        let collected = for_each_skeleton(test, semantic, unroll, &mut |skeleton| {
            has_more_skeletons = skeletons.len() == MAX_SKELETONS;
            if !has_more_skeletons {
                skeletons.push(skeleton);
            }
            Ok(!has_more_skeletons)
        });
        match collected {
            Err(error @ PredictError::TooManyPaths { .. }) => {
                has_more_skeletons = true;
                too_many_paths = Some(error);
            }
            collected => collected?,
        }
        Ok(ExecutionSearch {
            test,
            model,
            plan: model.plan_for(test)?,
            unroll,
            skeletons,
            has_more_skeletons,
            too_many_paths,
            options,
            tracker,
            allows_thin_air: semantic.allows_thin_air,
            domain: ValueDomain::new(test),
        })
    }

    /// Returns the limits of an enumeration before and after the solver is used.
    fn candidate_limits(&self) -> [u64; 2] {
        let events = self.skeletons.iter().map(Skeleton::len).max().unwrap_or(0);
        let all = self.options.max_candidates;
        [all.min(FIRST_CANDIDATES / step_weight(events)), all]
    }

    /// Visits the candidates with a wanted outcome, up to a limit.
    fn visit_candidates(
        &self,
        limit: u64,
        terminated: bool,
        is_relevant: &dyn Fn(&Outcome) -> bool,
        visit: &mut CandidateVisitor<'_>,
    ) -> Result<EnumerationEnd, PredictError> {
        let bounds = EnumerationBounds {
            remaining: limit,
            tracker: self.tracker,
            allows_thin_air: self.allows_thin_air,
            domain: &self.domain,
        };
        let skeletons = self.skeletons.iter().filter(|skeleton| skeleton.terminated || !terminated);
        match for_each_candidate(skeletons, bounds, is_relevant, visit)? {
            EnumerationEnd::Exhausted if self.has_more_skeletons => Ok(EnumerationEnd::LimitReached),
            end => Ok(end),
        }
    }

    /// Finds executions that reach a goal with the solver; `None` if that is not possible.
    fn solve(
        &self,
        goal: &ExecutionGoal<'_>,
    ) -> Result<Option<Vec<(Skeleton, CandidateExecution)>>, PredictError> {
        let (compiled, observables) = (self.model.model_plans_for(self.test)?, self.test.observables());
        let bounded = BoundedTest::new(self.test, self.model, &compiled, &observables, self.unroll);
        let tracker = BudgetTracker::new(self.tracker.remaining().divided(SOLVER_STEPS_PER_CANDIDATE));
        let found = find_executions(bounded, goal, &tracker);
        self.tracker.spend(tracker.spent_steps() / SOLVER_STEPS_PER_CANDIDATE);
        found
    }

    /// Returns the predicate that an outcome meets the condition and the filter.
    fn shows(&self, condition: &Condition) -> impl Fn(&Outcome) -> bool {
        let observables = self.test.observables();
        move |outcome| {
            outcome.meets_condition(self.test, &observables, condition) && passes_filter(self.test, outcome)
        }
    }

    /// Finds an explanation of the outcome; `verdict` is the already computed one.
    pub(super) fn find_answer(
        &mut self,
        condition: &Condition,
        verdict: Option<bool>,
    ) -> Result<ExplanationAnswer, PredictError> {
        let shows_outcome = self.shows(condition);
        let (candidates, mut witness) = (Cell::new(0), None);
        let mut closest: Option<(Distance, usize, Skeleton, CandidateExecution)> = None;
        let mut end = EnumerationEnd::LimitReached;
        let mut consider = |skeleton: &Skeleton, candidate: CandidateExecution| {
            candidates.set(candidates.get() + 1);
            let examined = self.examine_candidate(skeleton, &candidate)?;
            let Some(first) = examined.broken_axioms.first().copied() else {
                witness = Some(self.describe_execution(skeleton, &candidate, None)?.0);
                return Ok(false);
            };
            // Nearest to consistent: fewest broken axioms, then the shortest violation.
            let distance = (examined.broken_axioms.len(), examined.shortest_violation);
            if closest.as_ref().is_none_or(|(known, ..)| distance < *known) {
                closest = Some((distance, first, skeleton.clone(), candidate));
            }
            Ok(true)
        };
        for limit in self.candidate_limits() {
            candidates.set(0);
            end = self.visit_candidates(limit, true, &shows_outcome, &mut consider)?;
            if end != EnumerationEnd::LimitReached || limit == self.options.max_candidates {
                break;
            }
            let is_inconsistent = verdict == Some(false);
            let goal = ExecutionGoal { condition: Some(condition), raises: None, is_inconsistent };
            match self.solve(&goal)? {
                // No candidate shows the outcome, consistent or not.
                Some(found) if found.is_empty() && is_inconsistent && candidates.get() == 0 => {
                    end = EnumerationEnd::Exhausted;
                    break;
                }
                Some(found) if !found.is_empty() => {
                    for (skeleton, candidate) in found {
                        consider(&skeleton, candidate)?;
                    }
                    break;
                }
                // All candidates decide.
                Some(_) | None => {}
            }
        }
        if witness.is_some() || verdict == Some(true) {
            return Ok(ExplanationAnswer::Allowed { witness });
        }
        // With a known verdict, a search that was cut short still shows the closest candidate.
        if end == EnumerationEnd::LimitReached && verdict.is_none() {
            return Ok(ExplanationAnswer::Unknown);
        }
        let (complete, candidates) = (end == EnumerationEnd::Exhausted, candidates.get());
        let Some((_, _, skeleton, candidate)) = closest else {
            return Ok(if complete {
                ExplanationAnswer::Impossible
            } else {
                ExplanationAnswer::Forbidden { closest: None, candidates, complete }
            });
        };
        // Of several broken axioms, the one with the fewest edges is shown.
        let examined = self.examine_candidate(&skeleton, &candidate)?;
        let mut best: Option<(ExplainedExecution, BrokenAxiom)> = None;
        for axiom in examined.broken_axioms {
            let (execution, broken) = self.describe_execution(&skeleton, &candidate, Some(axiom))?;
            let Some(broken) = broken else { continue };
            if best.as_ref().is_none_or(|(_, known)| broken.edges.len() < known.edges.len()) {
                best = Some((execution, broken));
            }
        }
        Ok(ExplanationAnswer::Forbidden { closest: best, candidates, complete })
    }

    /// Returns true if the loop bound ended some run.
    pub(super) fn is_truncated(&self) -> bool {
        self.skeletons.iter().any(|skeleton| skeleton.is_truncated)
    }

    /// Returns up to `max_executions` consistent executions with their races, and true if these are all.
    pub(super) fn list_consistent(
        &self,
        condition: &Condition,
        max_executions: usize,
    ) -> Result<(Vec<(ExplainedExecution, bool)>, bool), PredictError> {
        if let Some(error) = &self.too_many_paths {
            return Err(error.clone());
        }
        let shows_condition = self.shows(condition);
        let mut found = Vec::new();
        let limit = self.options.max_candidates;
        let end = self.visit_candidates(limit, true, &shows_condition, &mut |skeleton, candidate| {
            let examined = self.examine_candidate(skeleton, &candidate)?;
            if !examined.broken_axioms.is_empty() {
                return Ok(true);
            }
            // One more than requested: these are not all.
            if found.len() == max_executions {
                return Ok(false);
            }
            found.push((self.describe_execution(skeleton, &candidate, None)?.0, examined.flags.has_race()));
            Ok(true)
        })?;
        Ok((found, end == EnumerationEnd::Exhausted))
    }

    /// Returns a race in some consistent execution with its fix, if one is found.
    pub(super) fn find_race(
        &self,
        condition: &Condition,
        find_fix: impl FnOnce() -> Result<FixSearchResult, PredictError>,
    ) -> Result<Option<FoundRace>, PredictError> {
        // Prefer a race that also shows the outcome.
        let found_execution = match self.find_flagged(&Flags::has_race, Some(condition))? {
            // Without the outcome, executions that do not end count as well.
            None => self.find_flagged(&Flags::has_race, None)?,
            found => found,
        };
        let Some((skeleton, candidate)) = found_execution else { return Ok(None) };
        with_smallest_matrix!(skeleton.len(), M => self.describe_race::<M>(&skeleton, &candidate, find_fix))
    }

    /// Returns an uninitialised read in some consistent execution, if one is found.
    pub(super) fn find_uninitialised_read(&self) -> Result<Option<UninitialisedRead>, PredictError> {
        let reads_uninitialised = |flags: &Flags| flags.uninitialised;
        let Some((skeleton, candidate)) = self.find_flagged(&reads_uninitialised, None)? else {
            return Ok(None);
        };
        // Reads of threads precede final reads.
        let read = candidate.rf.iter().position(|write| {
            write.is_some_and(|write| skeleton.events[usize::from(write)].tags.has(Tags::UW))
        });
        let (execution, _) = self.describe_execution(&skeleton, &candidate, None)?;
        Ok(read.map(|read| UninitialisedRead { execution, read: event_id(read) }))
    }

    /// Returns a consistent execution that raises certain flags, if one is found; without a condition of its outcome, it
    /// need not end.
    fn find_flagged(
        &self,
        has_flags: &dyn Fn(&Flags) -> bool,
        condition: Option<&Condition>,
    ) -> Result<Option<(Skeleton, CandidateExecution)>, PredictError> {
        let is_relevant = self.shows(condition.unwrap_or(&Condition::True));
        let mut found = None;
        let mut consider = |skeleton: &Skeleton, candidate: CandidateExecution| {
            let examined = self.examine_candidate(skeleton, &candidate)?;
            if !examined.broken_axioms.is_empty() || !has_flags(&examined.flags) {
                return Ok(true);
            }
            found = Some((skeleton.clone(), candidate));
            Ok(false)
        };
        for limit in self.candidate_limits() {
            let end = self.visit_candidates(limit, condition.is_some(), &is_relevant, &mut consider)?;
            if end != EnumerationEnd::LimitReached || limit == self.options.max_candidates {
                break;
            }
            let goal = ExecutionGoal { condition, raises: Some(has_flags), is_inconsistent: false };
            if let Some(executions) = self.solve(&goal)? {
                for (skeleton, candidate) in executions {
                    consider(&skeleton, candidate)?;
                }
                break;
            }
        }
        Ok(found)
    }

    fn examine_candidate(
        &self,
        skeleton: &Skeleton,
        candidate: &CandidateExecution,
    ) -> Result<ExaminedCandidate, PredictError> {
        with_smallest_matrix!(skeleton.len(), M => self.examine_with_matrix::<M>(skeleton, candidate))
    }

    fn examine_with_matrix<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &CandidateExecution,
    ) -> Result<ExaminedCandidate, PredictError> {
        let values = candidate.evaluate::<M>(&self.plan, skeleton)?;
        let value = |axiom: &Axiom| &values[axiom.node.to_index()];
        let axioms = || self.plan.axioms.iter().enumerate();
        let broken: Vec<usize> = axioms()
            .filter(|(_, axiom)| !axiom.is_flag && !cat::axiom_holds(axiom, value(axiom)))
            .map(|(index, _)| index)
            .collect();
        let mut flagged = Flags::default();
        // An axiom is broken if it fails; a flag is raised if its condition holds.
        axioms()
            .filter(|(_, axiom)| axiom.is_flag && cat::axiom_holds(axiom, value(axiom)))
            .for_each(|(_, axiom)| flagged.raise_axiom(axiom));
        let length = |axiom: &Axiom| match (axiom.kind, value(axiom).as_relation()) {
            (AxiomKind::Acyclic, Some(relation)) if !axiom.negated => {
                relation.shortest_cycle().map_or(usize::MAX, |cycle| cycle.len())
            }
            _ => 2,
        };
        let shortest =
            broken.iter().filter_map(|index| self.plan.axioms.get(*index)).map(length).min().unwrap_or(0);
        Ok(ExaminedCandidate { broken_axioms: broken, flags: flagged, shortest_violation: shortest })
    }

    /// The execution, and how it breaks an axiom.
    fn describe_execution(
        &self,
        skeleton: &Skeleton,
        candidate: &CandidateExecution,
        axiom: Option<usize>,
    ) -> Result<(ExplainedExecution, Option<BrokenAxiom>), PredictError> {
        with_smallest_matrix!(skeleton.len(), M => self.describe_with_matrix::<M>(skeleton, candidate, axiom))
    }

    fn describe_with_matrix<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &CandidateExecution,
        axiom: Option<usize>,
    ) -> Result<(ExplainedExecution, Option<BrokenAxiom>), PredictError> {
        let values = candidate.evaluate::<M>(&self.plan, skeleton)?;
        let mut deriver = EdgeDeriver::new(&self.plan, &values);
        let execution = self.build_execution(skeleton, candidate, &values, &mut deriver);
        let axiom = axiom.and_then(|index| self.plan.axioms.get(index));
        let broken =
            axiom.map(|axiom| self.find_broken_axiom(axiom, &values[axiom.node.to_index()], &mut deriver));
        Ok((execution, broken))
    }

    fn build_execution<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &CandidateExecution,
        values: &[cat::CatValue<M>],
        deriver: &mut EdgeDeriver<'_, M>,
    ) -> ExplainedExecution {
        let observables = self.test.observables();
        let outcome = observables.iter().zip(&candidate.outcome.0);
        ExplainedExecution {
            thin_air: candidate.thin_air,
            events: describe_events(self.test, skeleton, candidate),
            edges: self.select_drawn_edges(skeleton, candidate, values, deriver),
            outcome: outcome
                .map(|(observable, value)| {
                    let ty = self.test.observable_type(*observable);
                    (self.test.observable_name(*observable), value_text(*value, ty))
                })
                .collect(),
        }
    }

    fn select_drawn_edges<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &CandidateExecution,
        values: &[cat::CatValue<M>],
        deriver: &mut EdgeDeriver<'_, M>,
    ) -> Vec<ExplainedEdge> {
        let mut edges = Vec::new();
        for (read, write) in candidate.rf.iter().enumerate() {
            edges.extend(write.map(|write| leaf_edge("rf", usize::from(write), read)));
        }
        for order in &candidate.co {
            let ordered = order.windows(2).filter(|pair| !skeleton.are_alternatives(pair[0], pair[1]));
            edges.extend(ordered.map(|pair| leaf_edge("co", pair[0], pair[1])));
        }
        for name in ["ssw", "syncbar", "syncsplit"] {
            let Some(relation) = skeleton.base_relation::<M>(name) else { continue };
            let is_thread_event = |e: usize| skeleton.events[e].thread().is_some();
            let pairs = relation.pairs().filter(|(from, to)| {
                // Barriers synchronize in both directions; one edge is drawn.
                is_thread_event(*from) && is_thread_event(*to) && from != to && (name == "ssw" || from < to)
            });
            edges.extend(pairs.map(|(from, to)| leaf_edge(name, from, to)));
        }
        let owner = |e: usize| skeleton.events[e].owner;
        for name in DRAWN_RELATIONS {
            let Some(node) = self.plan.find_definition(name) else { continue };
            let Some(relation) = values.get(node.to_index()).and_then(cat::CatValue::as_relation) else {
                continue;
            };
            // Omit the edges that program order or a longer path implies.
            for (from, to) in relation.pairs() {
                let is_same_thread = owner(from) == owner(to);
                let are_thread_events = [from, to].iter().all(|e| skeleton.events[*e].thread().is_some());
                // From-reads to the next write in modification order implies those to later writes.
                let is_implied = name == "fr"
                    && candidate.co.iter().any(|order| {
                        let position = |e| order.iter().position(|write| *write == e);
                        position(to).is_some_and(|to| {
                            order.get(..to).is_some_and(|before| {
                                before.iter().any(|write| relation.contains(from, *write))
                            })
                        })
                    });
                if are_thread_events && !is_same_thread && !is_implied {
                    edges.push(deriver.derive_edge(node, name, from, to));
                }
            }
        }
        edges
    }

    /// Returns the edges of an axiom violation or a raised flag.
    fn find_broken_axiom<M: Matrix>(
        &self,
        axiom: &Axiom,
        value: &cat::CatValue<M>,
        deriver: &mut EdgeDeriver<'_, M>,
    ) -> BrokenAxiom {
        let statement = self.plan.statement_at(axiom.statement);
        let mut broken = BrokenAxiom {
            text: text_of(statement.span, &self.plan.sources),
            name: axiom.name.clone(),
            location: location_of_statement(&self.plan, axiom.statement),
            clauses: statement.clauses.clone(),
            edges: Vec::new(),
            is_cycle: false,
            events: Vec::new(),
        };
        if broken.clauses.is_empty()
            && let Some(definition) = self.plan.definitions.iter().find(|d| d.node == axiom.node)
        {
            broken.clauses = self.plan.statement_at(definition.statement).clauses.clone();
        }
        // A flag is raised under the condition that breaks the negated axiom.
        if axiom.negated != axiom.is_flag {
            return broken;
        }
        match (axiom.kind, value) {
            (_, cat::CatValue::Set(set)) => broken.events = set.iter().map(event_id).collect(),
            (AxiomKind::Acyclic, cat::CatValue::Relation(relation)) => {
                let events = relation.shortest_cycle().unwrap_or_default();
                let next = events.iter().cycle().skip(1);
                broken.edges = events
                    .iter()
                    .zip(next)
                    .flat_map(|(from, to)| named_edges(deriver, axiom.node, *from, *to, &broken.text))
                    .collect();
                broken.is_cycle = true;
            }
            (AxiomKind::Irreflexive, cat::CatValue::Relation(relation)) => {
                let at = relation.pairs().filter(|(from, to)| from == to);
                let best = at.min_by_key(|(from, to)| deriver.derivation_cost(axiom.node, *from, *to));
                broken.edges = best.map_or(Vec::new(), |(from, to)| {
                    named_edges(deriver, axiom.node, from, to, &broken.text)
                });
                broken.is_cycle = true;
            }
            (AxiomKind::Empty, cat::CatValue::Relation(relation)) => {
                let best =
                    relation.pairs().min_by_key(|(from, to)| deriver.derivation_cost(axiom.node, *from, *to));
                broken.edges = best.map_or(Vec::new(), |(from, to)| {
                    named_edges(deriver, axiom.node, from, to, &broken.text)
                });
            }
        }
        for edge in &broken.edges {
            for event in [edge.from, edge.to] {
                if !broken.events.contains(&event) {
                    broken.events.push(event);
                }
            }
        }
        broken
    }

    fn describe_race<M: Matrix>(
        &self,
        skeleton: &Skeleton,
        candidate: &CandidateExecution,
        find_fix: impl FnOnce() -> Result<FixSearchResult, PredictError>,
    ) -> Result<Option<FoundRace>, PredictError> {
        let values = candidate.evaluate::<M>(&self.plan, skeleton)?;
        // An uninitialized read has a separate flag, which is not a race.
        let raised_flag = self
            .plan
            .axioms
            .iter()
            .filter(|axiom| axiom.name.as_deref() != Some(Flags::UNINITIALISED))
            .find(|axiom| axiom.is_flag && cat::axiom_holds(axiom, &values[axiom.node.to_index()]));
        let Some(axiom) = raised_flag else { return Ok(None) };
        let value = &values[axiom.node.to_index()];
        let mut deriver = EdgeDeriver::new(&self.plan, &values);
        let execution = self.build_execution(skeleton, candidate, &values, &mut deriver);
        let flag = self.find_broken_axiom(axiom, value, &mut deriver);
        let pair = match (axiom.kind, value.as_relation()) {
            (AxiomKind::Empty, Some(relation)) => {
                let preference = |(from, to): &(usize, usize)| {
                    let is_thread_event = |e: usize| skeleton.events[e].thread().is_some();
                    // Prefer a pair of two threads, in the order of the events.
                    (!(is_thread_event(*from) && is_thread_event(*to)), from > to)
                };
                relation.pairs().min_by_key(preference).map(|(from, to)| (event_id(from), event_id(to)))
            }
            _ => None,
        };
        let missing_relations = self.subtracted_names(axiom.node);
        Ok(Some(FoundRace { execution, flag, pair, missing_relations, fix: find_fix()? }))
    }

    /// Returns the names subtracted from a relation; a pair in any of them would not be in the relation.
    fn subtracted_names(&self, node: NodeId) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut worklist = vec![node];
        while let Some(next) = worklist.pop() {
            match self.plan.node_at(next) {
                PlanNode::Difference(_, inner, subtracted) => {
                    let less = match self.plan.node_at(subtracted) {
                        PlanNode::Inverse(inverse) => inverse,
                        _ => subtracted,
                    };
                    // If several definitions have equal values, the text subtracts the last one.
                    let last = self.plan.definitions.iter().rfind(|definition| definition.node == less);
                    let name = last.map(|definition| definition.name.as_str());
                    if let Some(name) = name.or_else(|| self.plan.name_of(less))
                        && !names.iter().any(|known| known == name)
                    {
                        names.insert(0, name.to_owned());
                    }
                    worklist.push(inner);
                }
                PlanNode::RestrictRows(_, inner) | PlanNode::RestrictColumns(inner, _) => {
                    worklist.push(inner)
                }
                PlanNode::Intersection(_, left, right) => worklist.extend([left, right]),
                _ => {}
            }
        }
        names
    }
}

/// Returns the edges of a pair; falls back to one edge with the name of the axiom's relation.
fn named_edges<M: Matrix>(
    deriver: &mut EdgeDeriver<'_, M>,
    node: NodeId,
    from: usize,
    to: usize,
    text: &str,
) -> Vec<ExplainedEdge> {
    match deriver.derive_edges(node, from, to) {
        edges if edges.is_empty() && from != to => vec![leaf_edge(text, from, to)],
        edges => edges,
    }
}
