//! The orbit of a condition under the thread symmetry group.

use litmus::{ConditionSide, Observable, Outcome, ResolvedCondition, Test};

use super::ThreadSymmetry;
use crate::quick::QuickSet;

/// The variants of a condition under the thread symmetries.
///
/// If an execution satisfies a variant, a symmetric execution satisfies the original condition.
#[derive(Debug)]
pub(crate) struct ConditionOrbit {
    /// The observables that the condition names, by number, ascending.
    named: Vec<usize>,
    /// For each variant, the observables that replace the named ones.
    variants: Vec<Vec<usize>>,
}

/// Limit of condition variants.
const MAX_VARIANTS: usize = 1 << 15;

impl ThreadSymmetry {
    /// Returns the variants of the question's condition under the symmetries; `None` if there are too many.
    pub(crate) fn condition_orbit(&self, test: &Test, observables: &[Observable]) -> Option<ConditionOrbit> {
        let mut named = Vec::new();
        if let Some(question) = &test.question {
            let condition = ResolvedCondition::new(test, observables, &question.condition);
            for_each_comparison(&condition, &mut |indexes| named.extend_from_slice(indexes));
        }
        named.sort_unstable();
        named.dedup();
        let mut variants = vec![named.clone()];
        if self.preserves_condition {
            return Some(ConditionOrbit { named, variants });
        }
        let swapped_observables: Vec<Vec<usize>> = self
            .swaps
            .iter()
            .map(|swap| {
                let moved = |(index, observable)| {
                    let moved = swap.swap_observable(observable);
                    observables.iter().position(|other| *other == moved).unwrap_or(index)
                };
                observables.iter().enumerate().map(moved).collect()
            })
            .collect();
        let ty = |index: usize| match observables.get(index) {
            Some(Observable::Register(thread, register)) => Some(test.register_type(*thread, *register)),
            _ => None,
        };
        // A comparison has the type of its observable, so swapped observables must have equal types.
        if swapped_observables
            .iter()
            .any(|moved| moved.iter().enumerate().any(|(from, to)| ty(from) != ty(*to)))
        {
            return None;
        }
        // Closes the set under the swaps, which generate the group.
        let mut known: QuickSet<Vec<usize>> = variants.iter().cloned().collect();
        let mut next = 0;
        while let Some(variant) = variants.get(next).cloned() {
            next += 1;
            for moved in &swapped_observables {
                let other: Vec<usize> = variant.iter().map(|index| moved[*index]).collect();
                if known.insert(other.clone()) {
                    variants.push(other);
                }
            }
            if variants.len() > MAX_VARIANTS {
                return None;
            }
        }
        Some(ConditionOrbit { named, variants })
    }
}

impl ConditionOrbit {
    /// Returns true if the condition has this value on the outcome for some variant.
    pub(crate) fn any_variant_is(
        &self,
        condition: &ResolvedCondition,
        outcome: &Outcome,
        wanted: bool,
    ) -> bool {
        self.variants.iter().any(|variant| {
            let value = |index: usize| {
                let at = self.named.binary_search(&index).ok()?;
                outcome.0.get(*variant.get(at)?).copied()
            };
            condition.evaluate_partial(&mut { value }) == Some(wanted)
        })
    }
}

/// Visits the comparisons of a condition, each with the indices of its observables.
fn for_each_comparison(condition: &ResolvedCondition, visit: &mut impl FnMut(&[usize])) {
    match condition {
        ResolvedCondition::Constant(_) => {}
        ResolvedCondition::Compare(left, _, right) => visit(&observed_indices([*left, *right])),
        ResolvedCondition::And(both) | ResolvedCondition::Or(both) => {
            for_each_comparison(&both.0, visit);
            for_each_comparison(&both.1, visit);
        }
        ResolvedCondition::Not(inner) => for_each_comparison(inner, visit),
    }
}

fn observed_indices(sides: [ConditionSide; 2]) -> Vec<usize> {
    let index = |side| match side {
        ConditionSide::Observed(index, _) => Some(index),
        ConditionSide::Number(_) => None,
    };
    sides.into_iter().filter_map(index).collect()
}
