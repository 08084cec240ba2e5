//! Judges whether conditions are ordinary preconditions, such as those of sizes and strides.
//!
//! A condition that leaves few values of an input, or one of all that the code computes from it, chooses inputs for which
//! the code happens to be right: `mode != 0` of a barrier in a branch, or `k % 4 == 0` of `k & 3`. The race of the other
//! values is a defect. Values are counted among small ones, so the judgement is a heuristic; proofs do not depend on it.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::condition::{Condition, Refuted};
use crate::prover::{Claim, Prover, Query};
use crate::term::{FunctionKind, Operator, TermId};

/// The values among which those are counted that conditions leave: all up to a number, and its multiples.
const MAX_SMALL: u64 = 1_024;
const MULTIPLES: u64 = 16;
/// The values of an input that an ordinary condition leaves.
const MIN_VALUES: usize = 8;
/// Upper bound on the queries by which conditions are judged.
const MAX_QUERIES: usize = 8;
/// Values of inputs that show which of two conditions is the weaker one.
const SAMPLES: [u64; 12] = [0, 1, 2, 3, 4, 7, 8, 16, 33, 64, 100, 1_024];

/// Values that a query computes from one input alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ComputedValues {
    /// The conditions on the input under which the query is reached.
    pub guards: BTreeSet<TermId>,
    /// Parts of other terms.
    pub computed: BTreeSet<TermId>,
}

impl Prover<'_> {
    /// Returns true if conditions leave few values of an input, or one of all that a query computes from it alone, among
    /// the small values with which the query is reached.
    pub fn leave_few_values(&self, conditions: &[Condition], refuted: &[Refuted]) -> bool {
        let (inputs, claims) = self.inputs_of(conditions);
        let queries = refuted.iter().take(MAX_QUERIES);
        let all: BTreeSet<Vec<ComputedValues>> = queries
            .map(|(query, _)| inputs.iter().map(|input| self.computed_from(query, *input)).collect())
            .collect();
        let inputs: Vec<TermId> = inputs.into_iter().collect();
        all.iter().any(|of_inputs| {
            let reached: Vec<Vec<u64>> = inputs
                .iter()
                .zip(of_inputs)
                .map(|(_, of_input)| {
                    let is_reached = |value: &u64| {
                        of_input.guards.iter().all(|guard| self.value_of(*guard, *value) == Some(1))
                    };
                    small_values().filter(is_reached).collect()
                })
                .collect();
            (0..inputs.len()).any(|at| {
                let left = self.left_values(&claims, &inputs, &reached, at);
                let is_one = |values: &[u64], term: TermId| {
                    let first = values.first().map(|value| self.value_of(term, *value));
                    values.iter().all(|value| first == Some(self.value_of(term, *value)))
                };
                let computed = &of_inputs[at].computed;
                left.len() < MIN_VALUES && left.len() < reached[at].len()
                    || !computed.is_empty()
                        && computed.iter().all(|term| is_one(&left, *term))
                        && !computed.iter().all(|term| is_one(&reached[at], *term))
            })
        })
    }

    /// Returns true if conditions bound the grid by an input, although the code itself treats positions beyond an input.
    ///
    /// Such code is for grids that applications round up to whole workgroups.
    pub fn exclude_rounded_grids(&self, conditions: &[Condition], refuted: &[Refuted]) -> bool {
        let terms = &self.summary.terms;
        let has = |root: TermId, accepts: &dyn Fn(&FunctionKind) -> bool| {
            let mut is_there = false;
            terms.for_each_application(&[root], |id, _| is_there |= terms.kind_of(id).is_some_and(accepts));
            is_there
        };
        let is_extent = |id| has(id, &|kind| matches!(kind, FunctionKind::GroupCount(_)));
        let is_position =
            |id| has(id, &|kind| matches!(kind, FunctionKind::LocalId(_) | FunctionKind::GroupId(_)));
        let is_number = |id| {
            let is_input = |kind: &FunctionKind| {
                matches!(kind, FunctionKind::Contents(..) | FunctionKind::Specialization(_))
            };
            has(id, &is_input) && !is_position(id)
        };
        // `extent <= input` is that the input is not less.
        let bounds_grid = |claim: &TermId| {
            let less = terms.term(*claim).arguments.first().map(|less| &terms.term(*less).arguments);
            less.is_some_and(
                |sides| matches!(sides[..], [input, extent] if is_extent(extent) && is_number(input)),
            )
        };
        let relates_positions = |(query, _): &Refuted| {
            terms.any_subterm(&query.conjuncts, |term| {
                let is_relation = matches!(
                    term.operator,
                    Operator::Less | Operator::LessSigned | Operator::Remainder | Operator::RemainderSigned
                );
                is_relation && {
                    let (one, other) = (term.arguments[0], term.arguments[1]);
                    is_position(one) && is_number(other) || is_number(one) && is_position(other)
                }
            })
        };
        self.inputs_of(conditions).1.iter().any(bounds_grid) && refuted.iter().any(relates_positions)
    }

    /// Returns the values of an input that claims leave, for some values of the other inputs.
    fn left_values(&self, claims: &[TermId], inputs: &[TermId], reached: &[Vec<u64>], at: usize) -> Vec<u64> {
        let samples: Vec<Vec<u64>> = reached
            .iter()
            .map(|values| {
                let has = |value: &u64| values.contains(value);
                let some = [1, 64, MAX_SMALL].into_iter().filter(has);
                some.chain([values.last().copied().unwrap_or(0)]).collect()
            })
            .collect();
        let holds = |value: u64, sample: usize| {
            let value_of = |id: TermId| match inputs.iter().position(|input| *input == id) {
                Some(input) if input == at => value,
                Some(input) => samples[input][sample.min(samples[input].len() - 1)],
                None => 0,
            };
            claims.iter().all(|claim| self.summary.terms.evaluate(*claim, &value_of) == Some(1))
        };
        let is_left = |value: &u64| (0..=3).any(|sample| holds(*value, sample));
        reached[at].iter().copied().filter(is_left).collect()
    }

    /// Returns the value of a term of one input.
    fn value_of(&self, term: TermId, input: u64) -> Option<u64> {
        self.summary.terms.evaluate(term, &|_| input)
    }

    /// Returns the inputs of conditions, and what they claim of them.
    pub fn inputs_of(&self, conditions: &[Condition]) -> (BTreeSet<TermId>, Vec<TermId>) {
        let claims = conditions.iter().filter_map(|one| match one.claim {
            Claim::Term(term) => Some(term),
            Claim::DistinctContents(_) => None,
        });
        let (claims, mut inputs) = (Vec::from_iter(claims), BTreeSet::new());
        self.summary.terms.for_each_application(&claims, |id, _| _ = inputs.insert(id));
        (inputs, claims)
    }

    /// Returns the number of samples of inputs that satisfy conditions and guards.
    pub fn satisfied_share(
        &self,
        inputs: &BTreeSet<TermId>,
        conditions: &[Condition],
        guards: &[TermId],
    ) -> usize {
        let (terms, (_, mut claims)) = (&self.summary.terms, self.inputs_of(conditions));
        claims.extend(guards);
        let inputs: Vec<TermId> = inputs.iter().copied().collect();
        let samples = SAMPLES.len().pow(inputs.len().min(3) as u32);
        let holds = |sample: &usize| {
            let value = |id: TermId| {
                let at = inputs.iter().position(|input| *input == id).unwrap_or(0) as u32;
                SAMPLES[sample / SAMPLES.len().pow(at.min(2)) % SAMPLES.len()]
            };
            claims.iter().all(|claim| terms.evaluate(*claim, &value) == Some(1))
        };
        (0..samples).filter(holds).count()
    }

    /// Returns the largest parts of a query that are computed from one input alone.
    pub fn computed_from(&self, query: &Query, input: TermId) -> ComputedValues {
        let (terms, mut parts) = (&self.summary.terms, BTreeSet::new());
        terms.for_each_subterm(&query.conjuncts, |id| _ = parts.insert(id));
        // Arguments have smaller numbers. The value is true for terms of the input, and `None` for other symbols.
        let mut known: FxHashMap<TermId, Option<bool>> = FxHashMap::default();
        let mut computed = BTreeSet::new();
        for id in parts {
            let term = terms.term(id);
            let of_arguments: Vec<Option<bool>> = term.arguments.iter().map(|part| known[part]).collect();
            let of_term = match term.operator {
                _ if id == input => Some(true),
                Operator::Apply(_) => None,
                _ => of_arguments.iter().try_fold(false, |all, one| Some(all | (*one)?)),
            };
            if of_term.is_none() {
                let own = term.arguments.iter().filter(|part| known[*part] == Some(true));
                computed.extend(own.copied());
            }
            known.insert(id, of_term);
        }
        let conjuncts = query.conjuncts.iter().flat_map(|one| terms.conjuncts(*one));
        let guards: BTreeSet<TermId> = conjuncts.filter(|one| known[one] == Some(true)).collect();
        computed.retain(|part| !guards.contains(part));
        ComputedValues { guards, computed }
    }
}

fn small_values() -> impl Iterator<Item = u64> {
    (0..=MAX_SMALL).chain((2..=MULTIPLES).map(|count| count * MAX_SMALL))
}
