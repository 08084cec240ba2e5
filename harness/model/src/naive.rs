//! Brute-force oracle: enumerates every reads-from and modification order and evaluates every axiom on the
//! complete execution.
//!
//! Tests compare the engine with it. They share the event structures and the cat front end, but no part of
//! the search.

use std::collections::HashSet;

use litmus::{LocationId, Outcome, QueryTerm, Race, SatisfiabilityLine, Test, Undefinedness};

use crate::cat::{self, BaseProvider, CompiledModel};
use crate::combinations::collect_skeletons;
use crate::flags::Flags;
use crate::matrix::{Matrix, Matrix16, Matrix64, Matrix256};
use crate::outcome_collector::{Findings, OutcomeStatus};
use crate::skeleton::{ExecutionSemantics, Skeleton, Tags};
use crate::valuation::{Valuation, ValueDomain, enumerate_valuations, final_value, satisfies_constraints};
use crate::{Model, PredictError};

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
    let mut remaining = limit;
    let plan = if vectors_whole { model.plan_with_all_features(test)? } else { model.plan_for(test)? };
    // The engine splits locations only as far as the test's accesses distinguish them; the oracle splits
    // every byte.
    let semantic = ExecutionSemantics {
        has_byte_cells: true,
        has_whole_vectors: vectors_whole,
        ..model.execution_semantics()
    };
    for skeleton in collect_skeletons(test, semantic, unroll)? {
        let done = match skeleton.len() {
            0..=16 => {
                enumerate_skeleton::<Matrix16>(test, model, &plan, &skeleton, &mut remaining, &mut found)?
            }
            17..=64 => {
                enumerate_skeleton::<Matrix64>(test, model, &plan, &skeleton, &mut remaining, &mut found)?
            }
            _ => enumerate_skeleton::<Matrix256>(test, model, &plan, &skeleton, &mut remaining, &mut found)?,
        };
        if !done {
            return Ok(None);
        }
    }
    let raised = found.raised;
    let outcomes_with = |is: &dyn Fn(OutcomeStatus) -> bool| {
        let matching = found.outcomes.iter().filter(|(_, standing)| is(*standing));
        matching.map(|(outcome, _)| outcome.clone()).collect()
    };
    Ok(Some(NaiveAnswer {
        allowed: outcomes_with(&|standing| standing.is_allowed()),
        thin_air: outcomes_with(&|standing| standing == OutcomeStatus::OutOfThinAir),
        race: if raised.has_race() { Race::Racy } else { Race::Free },
        race_thin_air: raised.has_race() && !found.grounded.has_race(),
        uninitialised_read: raised.uninitialised,
        level: raised.undefinedness(&plan, true),
    }))
}

struct NaiveExecution<'a, M> {
    skeleton: &'a Skeleton,
    rf: M,
    co: M,
}

impl<M: Matrix> BaseProvider<M> for NaiveExecution<'_, M> {
    fn base_set(&self, name: &str, mask: Option<u8>) -> Option<M::Set> {
        self.skeleton.base_set(name, mask)
    }

    fn base_relation(&self, name: &str, _: Option<u8>) -> Option<M> {
        match name {
            "rf" => Some(self.rf.clone()),
            "co" => Some(self.co.clone()),
            _ => self.skeleton.base_relation(name),
        }
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
    let mut remaining = limit;
    let mut found = false;
    for skeleton in collect_skeletons(test, model.execution_semantics(), 1)? {
        let meets = &mut Some(false);
        let done = match skeleton.len() {
            0..=16 => {
                query_skeleton::<Matrix16>(test, model, &plan, query, &skeleton, &mut remaining, meets)?
            }
            17..=64 => {
                query_skeleton::<Matrix64>(test, model, &plan, query, &skeleton, &mut remaining, meets)?
            }
            _ => query_skeleton::<Matrix256>(test, model, &plan, query, &skeleton, &mut remaining, meets)?,
        };
        match (done, *meets) {
            (true, Some(meets)) => found |= meets,
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}

fn query_skeleton<M: Matrix>(
    test: &Test,
    model: &Model,
    plan: &CompiledModel,
    query: &SatisfiabilityLine,
    skeleton: &Skeleton,
    remaining: &mut u64,
    meets: &mut Option<bool>,
) -> Result<bool, PredictError> {
    let n = skeleton.len();
    for_each_execution::<M>(test, model, skeleton, remaining, &mut |execution, _, _| {
        let nodes = cat::evaluate_model(plan, execution, n)
            .map_err(|missing| PredictError::UnknownBase { name: missing.name })?;
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
            let met = match term {
                QueryTerm::Consistent => Some(satisfies(false)),
                QueryTerm::Races(comparison, number) => {
                    size(&["dr", "race"]).map(|size| comparison.holds_for(size, *number))
                }
                QueryTerm::ReleaseSequences(comparison, number) => {
                    size(&["rs"]).map(|size| comparison.holds_for(size, *number))
                }
            };
            match met {
                Some(met) => all &= met,
                None => *meets = None,
            }
        }
        *meets = meets.map(|found| found || all);
        Ok(())
    })
}

fn enumerate_skeleton<M: Matrix>(
    test: &Test,
    model: &Model,
    plan: &CompiledModel,
    skeleton: &Skeleton,
    remaining: &mut u64,
    found: &mut Findings,
) -> Result<bool, PredictError> {
    let n = skeleton.len();
    for_each_execution::<M>(test, model, skeleton, remaining, &mut |execution, values, last_write| {
        let nodes = cat::evaluate_model(plan, execution, n)
            .map_err(|missing| PredictError::UnknownBase { name: missing.name })?;
        let axioms = |flag: bool| plan.axioms.iter().filter(move |axiom| axiom.is_flag == flag);
        let holds = |axiom: &&cat::Axiom| cat::axiom_holds(axiom, &nodes[axiom.node.to_index()]);
        if !axioms(false).all(|axiom| holds(&axiom)) {
            return Ok(());
        }
        let mut flagged = Flags::default();
        axioms(true).filter(holds).for_each(|axiom| flagged.raise_axiom(axiom));
        for Valuation { values, thin_air } in values {
            let finals = skeleton.final_values.iter();
            let outcome = Outcome(
                finals.map(|observed| final_value(skeleton, observed, values, &last_write)).collect(),
            );
            let is_in_filter = test
                .filter
                .as_ref()
                .is_none_or(|filter| outcome.meets_condition(test, &test.observables(), filter));
            if is_in_filter {
                found.raise_flags(flagged, *thin_air);
            }
            // An execution in which some thread does not end can race, but has no final state.
            if skeleton.terminated {
                found.outcomes.record_allowed(outcome, *thin_air);
            }
        }
        Ok(())
    })
}

/// Callback for one execution, the possible values of its reads, and the last write of each storage.
type VisitCandidate<'v, M> = dyn FnMut(
        &NaiveExecution<'_, M>,
        &[Valuation],
        &dyn Fn(LocationId) -> Option<u16>,
    ) -> Result<(), PredictError>
    + 'v;

/// Visits every candidate execution of an event structure; false if there are more than `remaining`.
fn for_each_execution<M: Matrix>(
    test: &Test,
    model: &Model,
    skeleton: &Skeleton,
    remaining: &mut u64,
    visit: &mut VisitCandidate<'_, M>,
) -> Result<bool, PredictError> {
    let n = skeleton.len();
    let reads: Vec<usize> = (0..n).filter(|&e| skeleton.events[e].tags.has(Tags::R)).collect();
    let writes_to = |storage| -> Vec<usize> {
        (0..n)
            .filter(|&e| skeleton.events[e].storage == storage && skeleton.events[e].tags.has(Tags::W))
            .collect()
    };
    // Initial writes precede all others in modification order.
    let orders: Vec<Vec<Vec<usize>>> = skeleton
        .storages()
        .into_iter()
        .map(|storage| {
            let all = writes_to(Some(storage));
            let (initial, others): (Vec<usize>, Vec<usize>) =
                all.into_iter().partition(|&e| skeleton.events[e].tags.has(Tags::IW));
            permutations(&others)
                .into_iter()
                .map(|order| initial.iter().copied().chain(order).collect())
                .collect()
        })
        .collect();
    let candidates: Vec<Vec<usize>> = reads
        .iter()
        .map(|&read| {
            writes_to(skeleton.events[read].storage)
                .into_iter()
                .filter(|&write| skeleton.may_read(read, write))
                .collect()
        })
        .collect();
    let (out_of_thin_air, domain) = (model.execution_semantics().allows_thin_air, ValueDomain::new(test));
    let mut chosen_rf = vec![0; reads.len()];
    loop {
        // A read without a candidate excludes every execution.
        if reads.is_empty() || candidates.iter().all(|c| !c.is_empty()) {
            let mut rf = vec![None; n];
            let mut rf_matrix = M::empty(n);
            for ((read, choices), index) in reads.iter().zip(&candidates).zip(&chosen_rf) {
                let write: usize = choices[*index];
                rf[*read] = Some(write as u16);
                rf_matrix.insert(write, *read);
            }
            let values: Vec<_> = enumerate_valuations(skeleton, &rf, out_of_thin_air, &domain)
                .into_iter()
                .filter(|shown| satisfies_constraints(skeleton, &shown.values))
                .collect();
            // Values depend only on reads-from: if there is none, no modification order adds one.
            if !values.is_empty() {
                let mut chosen_co = vec![0; orders.len()];
                loop {
                    if *remaining == 0 {
                        return Ok(false);
                    }
                    *remaining -= 1;
                    let mut co = M::empty(n);
                    for (choices, index) in orders.iter().zip(&chosen_co) {
                        let order: &Vec<usize> = &choices[*index];
                        for (position, first) in order.iter().enumerate() {
                            for second in &order[position + 1..] {
                                // Initial writes of one undefined value exclude each other.
                                if !skeleton.are_alternatives(*first, *second) {
                                    co.insert(*first, *second);
                                }
                            }
                        }
                    }
                    let execution = NaiveExecution { skeleton, rf: rf_matrix.clone(), co };
                    let last_write = |storage| {
                        orders.iter().zip(&chosen_co).find_map(|(choices, index)| {
                            let last = *choices.get(*index)?.last()?;
                            (skeleton.events[last].storage == Some(storage)).then_some(last as u16)
                        })
                    };
                    visit(&execution, &values, &last_write)?;
                    if !advance_odometer(&mut chosen_co, |index| orders[index].len()) {
                        break;
                    }
                }
            }
        }
        if !advance_odometer(&mut chosen_rf, |index| candidates[index].len()) {
            return Ok(true);
        }
    }
}

/// Advances the indices like an odometer; false after the last combination.
fn advance_odometer(indices: &mut [usize], limit: impl Fn(usize) -> usize) -> bool {
    for (position, index) in indices.iter_mut().enumerate() {
        *index += 1;
        if *index < limit(position) {
            return true;
        }
        *index = 0;
    }
    false
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(index);
        for mut tail in permutations(&rest) {
            tail.insert(0, *item);
            all.push(tail);
        }
    }
    all
}
