//! Enumerates candidate executions: reads-from and modification order of every location.

use litmus::{Outcome, Test};

use crate::PredictError;
use crate::cat::{self, BaseProvider, CatValue, CompiledModel};
use crate::matrix::Matrix;
use crate::skeleton::{FinalValueSource, Skeleton, Tags};
use crate::valuation::{
    ReadValues, Valuation, ValueDomain, enumerate_valuations, final_value, has_independent_values,
    satisfies_constraints,
};
use solver::BudgetTracker;

/// A candidate execution of a skeleton.
#[derive(Clone, Debug)]
pub(crate) struct CandidateExecution {
    /// For each event that reads, the write that it reads from.
    pub(crate) rf: Vec<Option<u16>>,
    /// The writes of each storage in their order.
    pub(crate) co: Vec<Vec<usize>>,
    pub(crate) values: ReadValues,
    /// True if some of these values depend on themselves.
    pub(crate) thin_air: bool,
    pub(crate) outcome: Outcome,
}

/// The base sets and relations of a candidate execution.
struct CandidateBase<'a, M> {
    skeleton: &'a Skeleton,
    rf: M,
    co: M,
}

impl<M: Matrix> BaseProvider<M> for CandidateBase<'_, M> {
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

impl CandidateExecution {
    /// Evaluates every node of a plan on this execution of an event structure.
    pub(crate) fn evaluate<M: Matrix>(
        &self,
        plan: &CompiledModel,
        skeleton: &Skeleton,
    ) -> Result<Vec<CatValue<M>>, PredictError> {
        let n = skeleton.len();
        let sources = self.rf.iter().enumerate();
        let rf = M::from_pairs(n, sources.filter_map(|(read, write)| Some((usize::from((*write)?), read))));
        let mut co = M::empty(n);
        for order in &self.co {
            for (position, first) in order.iter().enumerate() {
                for second in &order[position + 1..] {
                    // Initial writes of one undefined value exclude each other.
                    if !skeleton.are_alternatives(*first, *second) {
                        co.insert(*first, *second);
                    }
                }
            }
        }
        cat::evaluate_model(plan, &CandidateBase { skeleton, rf, co }, n)
            .map_err(|missing| PredictError::UnknownBase { name: missing.name })
    }
}

/// Reason for the end of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnumerationEnd {
    /// Every candidate was visited.
    Exhausted,
    /// The visitor ended it.
    Stopped,
    /// The bound or the budget ended it.
    LimitReached,
}

/// Limits of an enumeration, and the values that reads may guess.
pub(crate) struct EnumerationBounds<'a> {
    pub(crate) remaining: u64,
    pub(crate) tracker: &'a BudgetTracker<'a>,
    /// True if values may depend on themselves.
    pub(crate) allows_thin_air: bool,
    pub(crate) domain: &'a ValueDomain<'a>,
}

/// Receives a candidate of an event structure; returns false to end the enumeration.
pub(crate) type CandidateVisitor<'v> =
    dyn FnMut(&Skeleton, CandidateExecution) -> Result<bool, PredictError> + 'v;

/// Visits the candidates of event structures with a wanted outcome, until `visit` returns false. Candidates with
/// self-dependent values come last.
pub(crate) fn for_each_candidate<'s>(
    skeletons: impl Iterator<Item = &'s Skeleton> + Clone,
    mut bounds: EnumerationBounds<'_>,
    is_relevant: &dyn Fn(&Outcome) -> bool,
    visit: &mut CandidateVisitor<'_>,
) -> Result<EnumerationEnd, PredictError> {
    let passes: &[bool] = if bounds.allows_thin_air { &[false, true] } else { &[false] };
    for thin_air in passes {
        for skeleton in skeletons.clone() {
            if *thin_air && has_independent_values(skeleton) {
                continue;
            }
            match visit_candidates(skeleton, *thin_air, &mut bounds, is_relevant, visit)? {
                EnumerationEnd::Exhausted => {}
                end => return Ok(end),
            }
        }
    }
    Ok(EnumerationEnd::Exhausted)
}

/// Visits the candidates of one event structure with self-dependent values, or only the others.
fn visit_candidates(
    skeleton: &Skeleton,
    thin_air: bool,
    bounds: &mut EnumerationBounds<'_>,
    is_relevant: &dyn Fn(&Outcome) -> bool,
    visit: &mut CandidateVisitor<'_>,
) -> Result<EnumerationEnd, PredictError> {
    let n = skeleton.len();
    let reads: Vec<usize> = (0..n).filter(|&e| skeleton.events[e].tags.has(Tags::R)).collect();
    let sources: Vec<Vec<usize>> = reads.iter().map(|&read| skeleton.candidate_writes(read)).collect();
    if sources.iter().any(Vec::is_empty) {
        return Ok(EnumerationEnd::Exhausted);
    }
    // Then the outcome is known before the modification orders, and an unwanted outcome needs none.
    let has_only_expressions =
        skeleton.final_values.iter().all(|value| matches!(value, FinalValueSource::Expression(_)));
    let writes = writes_by_storage(skeleton);
    let mut chosen = vec![0; reads.len()];
    loop {
        if bounds.remaining == 0 || bounds.tracker.spend(1) {
            return Ok(EnumerationEnd::LimitReached);
        }
        bounds.remaining -= 1;
        let mut rf = vec![None; n];
        for ((read, choices), index) in reads.iter().zip(&sources).zip(&chosen) {
            rf[*read] = u16::try_from(choices[*index]).ok();
        }
        let valuations = enumerate_valuations(skeleton, &rf, thin_air, bounds.domain).into_iter();
        for Valuation { values, .. } in valuations.filter(|found| found.thin_air == thin_air) {
            if !satisfies_constraints(skeleton, &values) {
                continue;
            }
            if has_only_expressions && !is_relevant(&evaluate_outcome(skeleton, &values, &[])) {
                continue;
            }
            let mut orders: Vec<Vec<usize>> = writes.clone();
            loop {
                let outcome = evaluate_outcome(skeleton, &values, &orders);
                if is_relevant(&outcome) {
                    if bounds.remaining == 0 || bounds.tracker.spend(1) {
                        return Ok(EnumerationEnd::LimitReached);
                    }
                    bounds.remaining -= 1;
                    let (rf, co, values) = (rf.clone(), orders.clone(), values.clone());
                    let candidate = CandidateExecution { rf, co, values, thin_air, outcome };
                    if !visit(skeleton, candidate)? {
                        return Ok(EnumerationEnd::Stopped);
                    }
                }
                if !advance_orders(skeleton, &mut orders) {
                    break;
                }
            }
        }
        if !advance_sources(&mut chosen, &sources) {
            return Ok(EnumerationEnd::Exhausted);
        }
    }
}

fn writes_by_storage(skeleton: &Skeleton) -> Vec<Vec<usize>> {
    let writes_to = |storage| {
        let writes = (0..skeleton.len())
            .filter(|&e| skeleton.events[e].storage == Some(storage) && skeleton.events[e].tags.has(Tags::W));
        // Initial writes have the lowest numbers, so they come first.
        writes.collect()
    };
    skeleton.storages().into_iter().map(writes_to).collect()
}

fn evaluate_outcome(skeleton: &Skeleton, values: &ReadValues, orders: &[Vec<usize>]) -> Outcome {
    let last_write = |storage| {
        let last = orders
            .iter()
            .filter_map(|order| order.last())
            .find(|last| skeleton.events[**last].storage == Some(storage))?;
        u16::try_from(*last).ok()
    };
    let finals = skeleton.final_values.iter();
    Outcome(finals.map(|observed| final_value(skeleton, observed, values, &last_write)).collect())
}

/// Counts up like an odometer; false after the last combination.
fn advance_sources(chosen: &mut [usize], sources: &[Vec<usize>]) -> bool {
    for (index, choices) in chosen.iter_mut().zip(sources) {
        *index += 1;
        if *index < choices.len() {
            return true;
        }
        *index = 0;
    }
    false
}

/// Advances to the next combination of orders; false after the last one, which resets each order.
fn advance_orders(skeleton: &Skeleton, orders: &mut [Vec<usize>]) -> bool {
    orders.iter_mut().any(|order| {
        // Initial writes stay first.
        let initial = order.iter().take_while(|&&e| skeleton.events[e].tags.has(Tags::IW)).count();
        order.get_mut(initial..).is_some_and(next_permutation)
    })
}

/// Advances to the next permutation in lexicographic order; after the last one, resets to the first and returns false.
fn next_permutation(items: &mut [usize]) -> bool {
    let Some(pivot) = items.windows(2).rposition(|pair| pair[0] < pair[1]) else {
        items.reverse();
        return false;
    };
    if let Some(successor) = items.iter().rposition(|item| *item > items[pivot]) {
        items.swap(pivot, successor);
    }
    items[pivot + 1..].reverse();
    true
}

/// Returns true if the filter of the test keeps an outcome.
pub(crate) fn passes_filter(test: &Test, outcome: &Outcome) -> bool {
    test.filter.as_ref().is_none_or(|filter| outcome.meets_condition(test, &test.observables(), filter))
}
