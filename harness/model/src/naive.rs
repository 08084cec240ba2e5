//! Brute-force oracle: enumerates every reads-from and modification order and evaluates every axiom on the
//! complete execution.
//!
//! Tests compare the engine with it. They share the event structures and the cat front end, but no part of
//! the search.

use std::collections::HashSet;

use litmus::{Outcome, QueryTerm, Race, SatisfiabilityLine, Test, Undefinedness};

use crate::candidate::{
    CandidateExecution, EnumerationBounds, EnumerationEnd, for_each_candidate, passes_filter,
};
use crate::cat::{self, CatValue, CompiledModel};
use crate::combinations::collect_skeletons;
use crate::flags::Flags;
use crate::matrix::{Matrix, with_smallest_matrix};
use crate::outcome_collector::{Findings, OutcomeStatus};
use crate::skeleton::{ExecutionSemantics, Skeleton};
use crate::valuation::ValueDomain;
use crate::{Budget, Model, PredictError};
use solver::BudgetTracker;

/// The answer of the oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveAnswer {
    /// Outcomes of consistent executions.
    pub allowed: HashSet<Outcome>,
    /// Outcomes that only executions with out-of-thin-air values show.
    pub thin_air: HashSet<Outcome>,
    /// Race status of the consistent executions inside the filter.
    pub race: Race,
    /// True if only executions with out-of-thin-air values race.
    pub race_thin_air: bool,
    /// True if some consistent execution inside the filter reads an undefined initial value.
    pub uninitialised_read: bool,
    /// The level of undefinedness, for a model that has such levels.
    pub level: Option<Undefinedness>,
}

/// Enumerates every candidate execution; `None` if there are more than `limit`.
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn enumerate(
    test: &Test,
    model: &Model,
    unroll: u32,
    limit: u64,
) -> Result<Option<NaiveAnswer>, PredictError> {
    enumerate_with_vectors(test, model, unroll, limit, false)
}

/// As [`enumerate`], with a whole vector access as one operation, like the parts of a scalar access.
///
/// No profile interprets the specification like this; random tests check the effect of this reading.
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn enumerate_whole_vectors(
    test: &Test,
    model: &Model,
    unroll: u32,
    limit: u64,
) -> Result<Option<NaiveAnswer>, PredictError> {
    enumerate_with_vectors(test, model, unroll, limit, true)
}

fn enumerate_with_vectors(
    test: &Test,
    model: &Model,
    unroll: u32,
    limit: u64,
    vectors_whole: bool,
) -> Result<Option<NaiveAnswer>, PredictError> {
    let mut found = Findings::default();
    let plan = if vectors_whole { model.plan_with_all_features(test)? } else { model.plan_for(test)? };
    // The engine splits locations only as far as the test's accesses distinguish them; the oracle splits
    // every byte.
    let semantic = ExecutionSemantics {
        has_byte_cells: true,
        has_whole_vectors: vectors_whole,
        ..model.execution_semantics()
    };
    let is_complete = for_each_execution(test, semantic, unroll, limit, &mut |skeleton, execution| {
        with_smallest_matrix!(skeleton.len(), M => {
            let nodes = execution.evaluate::<M>(&plan, skeleton)?;
            add_execution(test, &plan, skeleton, execution, &nodes, &mut found);
        });
        Ok(())
    })?;
    let raised = found.raised;
    let outcomes_with = |is: &dyn Fn(OutcomeStatus) -> bool| {
        let matching = found.outcomes.iter().filter(|(_, standing)| is(*standing));
        matching.map(|(outcome, _)| outcome.clone()).collect()
    };
    Ok(is_complete.then(|| NaiveAnswer {
        allowed: outcomes_with(&|standing| standing.is_allowed()),
        thin_air: outcomes_with(&|standing| standing == OutcomeStatus::OutOfThinAir),
        race: if raised.has_race() { Race::Racy } else { Race::Free },
        race_thin_air: raised.has_race() && !found.grounded.has_race(),
        uninitialised_read: raised.uninitialised,
        level: raised.undefinedness(&plan, true),
    }))
}

/// Adds the outcome and the flags of an execution if it is consistent.
fn add_execution<M: Matrix>(
    test: &Test,
    plan: &CompiledModel,
    skeleton: &Skeleton,
    execution: &CandidateExecution,
    nodes: &[CatValue<M>],
    found: &mut Findings,
) {
    let axioms = |flag: bool| plan.axioms.iter().filter(move |axiom| axiom.is_flag == flag);
    let holds = |axiom: &&cat::Axiom| cat::axiom_holds(axiom, &nodes[axiom.node.to_index()]);
    if !axioms(false).all(|axiom| holds(&axiom)) {
        return;
    }
    if passes_filter(test, &execution.outcome) {
        let mut flagged = Flags::default();
        axioms(true).filter(holds).for_each(|axiom| flagged.raise_axiom(axiom));
        found.raise_flags(flagged, execution.thin_air);
    }
    // An execution in which some thread does not end can race, but has no final state.
    if skeleton.terminated {
        found.outcomes.record_allowed(execution.outcome.clone(), execution.thin_air);
    }
}

/// Decides whether some candidate execution meets the terms of a query.
///
/// Returns `None` if there are more than `limit` executions, or if the model lacks a relation that the query
/// counts.
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn has_execution(
    test: &Test,
    model: &Model,
    query: &SatisfiabilityLine,
    limit: u64,
) -> Result<Option<bool>, PredictError> {
    let plan = model.plan_for(test)?;
    let mut meets = Some(false);
    let semantic = model.execution_semantics();
    let is_complete = for_each_execution(test, semantic, 1, limit, &mut |skeleton, execution| {
        with_smallest_matrix!(skeleton.len(), M => {
            let nodes = execution.evaluate::<M>(&plan, skeleton)?;
            meets = meets.zip(meets_query(&plan, query, &nodes)).map(|(found, now)| found || now);
        });
        Ok(())
    })?;
    Ok(meets.filter(|_| is_complete))
}

/// Returns true if an execution meets the terms of a query; `None` if the model lacks a relation that it counts.
fn meets_query<M: Matrix>(
    plan: &CompiledModel,
    query: &SatisfiabilityLine,
    nodes: &[CatValue<M>],
) -> Option<bool> {
    // Facts hold in every execution, the other axioms in consistent ones.
    let satisfies = |fact: bool| {
        plan.axioms.iter().enumerate().all(|(index, axiom)| {
            axiom.is_flag
                || plan.well_formedness_axioms.contains(&index) != fact
                || cat::axiom_holds(axiom, &nodes[axiom.node.to_index()])
        })
    };
    let size = |names: &[&str]| {
        let node = names.iter().find_map(|name| plan.find_definition(name))?;
        nodes[node.to_index()].as_relation().map(Matrix::len)
    };
    let mut all = satisfies(true);
    for term in &query.terms {
        all &= match term {
            QueryTerm::Consistent => satisfies(false),
            QueryTerm::Races(comparison, number) => {
                comparison.holds(size(&["dr", "race"])?, *number as usize)
            }
            QueryTerm::ReleaseSequences(comparison, number) => {
                comparison.holds(size(&["rs"])?, *number as usize)
            }
        };
    }
    Some(all)
}

/// Visits every candidate execution of a test; returns false if there are too many: a choice of sources counts like an
/// execution.
fn for_each_execution(
    test: &Test,
    semantic: ExecutionSemantics,
    unroll: u32,
    limit: u64,
    visit: &mut dyn FnMut(&Skeleton, &CandidateExecution) -> Result<(), PredictError>,
) -> Result<bool, PredictError> {
    let (tracker, domain) = (BudgetTracker::new(Budget::UNLIMITED), ValueDomain::new(test));
    let skeletons = collect_skeletons(test, semantic, unroll)?;
    let allows_thin_air = semantic.allows_thin_air;
    let bounds = EnumerationBounds { remaining: limit, tracker: &tracker, allows_thin_air, domain: &domain };
    let mut each = |skeleton: &Skeleton, candidate| visit(skeleton, &candidate).map(|()| true);
    let end = for_each_candidate(skeletons.iter(), bounds, &|_| true, &mut each)?;
    Ok(end == EnumerationEnd::Exhausted)
}
