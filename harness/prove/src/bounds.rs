//! Upper bounds of numbers wherever some facts hold: by the guards that compare them.
//!
//! An access that is guarded by `y < height` and `height <= 4096` computes `y * width` without wrap-around. The bounds of
//! parts give those of sums and products, as long as these do not wrap. A bound proves nothing about smaller numbers.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::term::{Operator, TermArena, TermId};

/// Upper bound on the passes over the facts: each fact may bound what another one compares with.
const MAX_PASSES: usize = 4;

/// Upper bounds of the unsigned values of terms.
pub(crate) struct UpperBounds<'t> {
    terms: &'t TermArena,
    /// The bounds of the parts of the facts and of some more terms.
    bounds: FxHashMap<TermId, u64>,
}

impl UpperBounds<'_> {
    /// Returns the bounds that follow from facts, also those of the parts of `others`.
    pub fn new<'t>(terms: &'t TermArena, facts: &[TermId], others: &BTreeSet<TermId>) -> UpperBounds<'t> {
        let mut found = UpperBounds { terms, bounds: FxHashMap::default() };
        let facts: Vec<TermId> = facts.iter().flat_map(|fact| terms.conjuncts(*fact)).collect();
        let (mut parts, mut roots) = (BTreeSet::new(), facts.clone());
        roots.extend(others);
        terms.for_each_subterm(&roots, |id| _ = parts.insert(id));
        let mut has_changed = !others.is_empty();
        for _ in 0..MAX_PASSES {
            if !std::mem::take(&mut has_changed) {
                break;
            }
            // Arguments have smaller numbers.
            for id in &parts {
                has_changed |= found.lower(*id, found.bound_of_parts(*id));
            }
            for fact in &facts {
                has_changed |= found.apply(*fact);
            }
        }
        found
    }

    /// Returns an upper bound of a term.
    fn bound(&self, id: TermId) -> u64 {
        self.bounds.get(&id).copied().unwrap_or(self.terms.range(id).1)
    }

    /// Lowers the bound of a term; returns true if it was higher.
    fn lower(&mut self, id: TermId, bound: u64) -> bool {
        let is_lower = bound < self.bound(id);
        if is_lower {
            self.bounds.insert(id, bound);
        }
        is_lower
    }

    fn apply(&mut self, fact: TermId) -> bool {
        let (term, is_negated) = match self.terms.term(fact) {
            term if term.operator == Operator::Not => (self.terms.term(term.arguments[0]), true),
            term => (term, false),
        };
        let [a, b] = term.arguments[..] else { return false };
        let highest = arithmetic::mask(self.terms.width(a)) >> 1;
        let is_positive = |found: &Self, id: TermId| found.bound(id) <= highest;
        match (&term.operator, is_negated) {
            (Operator::Less, false) => self.lower(a, self.bound(b).saturating_sub(1)),
            (Operator::Less, true) => self.lower(b, self.bound(a)),
            (Operator::LessSigned, false) if is_positive(self, a) => {
                let is_lower = self.lower(b, highest);
                self.lower(a, self.bound(b).saturating_sub(1)) | is_lower
            }
            (Operator::LessSigned, true) if is_positive(self, b) => {
                let is_lower = self.lower(a, highest);
                self.lower(b, self.bound(a)) | is_lower
            }
            (Operator::Equal, false) => self.lower(a, self.bound(b)) | self.lower(b, self.bound(a)),
            _ => false,
        }
    }

    /// Returns a bound of a term by those of its arguments.
    fn bound_of_parts(&self, id: TermId) -> u64 {
        let term = self.terms.term(id);
        let own = self.terms.range(id).1;
        let argument = |index: usize| self.bound(term.arguments[index]);
        match &term.operator {
            Operator::Sum { .. } | Operator::Multiply if self.is_exact(id) => {
                self.value_range(id).map_or(own, |(_, high)| own.min(high as u64))
            }
            Operator::Divide if self.terms.range(term.arguments[1]).0 > 0 => own.min(argument(0)),
            Operator::Remainder => own.min(argument(0)),
            Operator::ShiftRight | Operator::Extend | Operator::Truncate => own.min(argument(0)),
            Operator::Select => own.min(argument(1).max(argument(2))),
            _ => own,
        }
    }

    /// Returns bounds of a product or of a sum of signed coefficients, computed without wrap-around.
    fn value_range(&self, id: TermId) -> Option<(i128, i128)> {
        let term = self.terms.term(id);
        match &term.operator {
            Operator::Multiply => {
                let [a, b] = [0, 1].map(|index: usize| i128::from(self.bound(term.arguments[index])));
                Some((0, a.checked_mul(b)?))
            }
            Operator::Sum { coefficients, constant } => {
                let constant = i128::from(arithmetic::sign_extend(*constant, term.width));
                let (mut low, mut high) = (constant, constant);
                for (argument, coefficient) in term.arguments.iter().zip(coefficients) {
                    let factor = i128::from(arithmetic::sign_extend(*coefficient, term.width));
                    let ends = [self.terms.range(*argument).0, self.bound(*argument)];
                    let [a, b] = ends.map(|end| factor.saturating_mul(i128::from(end)));
                    (low, high) = (low.saturating_add(a.min(b)), high.saturating_add(a.max(b)));
                }
                Some((low, high))
            }
            _ => None,
        }
    }

    /// Returns true if a product or sum does not wrap, nor the products in the sum.
    pub fn is_exact(&self, id: TermId) -> bool {
        let term = self.terms.term(id);
        let is_small = self
            .value_range(id)
            .is_some_and(|(low, high)| low >= 0 && high <= i128::from(arithmetic::mask(term.width)));
        let is_product = |part: &TermId| self.terms.term(*part).operator == Operator::Multiply;
        let mut products = term.arguments.iter().filter(|part| is_product(part));
        is_small && (term.operator == Operator::Multiply || products.all(|part| self.is_exact(*part)))
    }
}
