//! Preconditions: the first simple condition on the inputs under which refuted obligations hold.
//!
//! Candidates are comparisons of two scalar inputs, and of one with a size of the workgroup, that the counterexample
//! falsifies. One is accepted if it proves each refuted obligation, and if two invocations still execute the accesses of
//! each under it; otherwise the proof would say nothing. As the counterexample violates the condition, it is necessary
//! for the counterexample's obligation in part: some input without it races.

use std::collections::BTreeSet;

use crate::decide::{Decision, Products, TermModel};
use crate::names::term_text;
use crate::prover::{Answer, Prover, Query};
use crate::term::{FunctionKind, Operator, TermId};

/// Upper bound on the scalars that are compared.
const MAX_SCALARS: usize = 8;

/// A condition on inputs, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub term: TermId,
    pub text: String,
}

impl Prover<'_> {
    /// Returns the first condition under which refuted queries hold, and the terms that must not wrap then.
    pub fn find_condition(
        &mut self,
        refuted: &[(Query, TermModel)],
    ) -> Option<(Condition, BTreeSet<TermId>)> {
        let (_, model) = refuted.first()?;
        for candidate in self.candidates(refuted) {
            if self.steps == 0 {
                return None;
            }
            if self.evaluate(candidate.term, model) != Some(0) {
                continue;
            }
            self.conditions.push(candidate.term);
            let exact = self.prove_all(refuted);
            self.conditions.pop();
            if let Some(exact) = exact {
                return Some((candidate, exact));
            }
        }
        None
    }

    /// Proves queries under the conditions; returns the terms that must not wrap, or `None`.
    fn prove_all(&mut self, refuted: &[(Query, TermModel)]) -> Option<BTreeSet<TermId>> {
        let mut exact = BTreeSet::new();
        for (query, _) in refuted {
            let needed = match self.answer(query) {
                Answer::Proved => Vec::new(),
                Answer::ProvedIfExact(terms) => terms,
                Answer::Refuted(_) | Answer::Open => return None,
            };
            if !self.is_executable(query, &needed) {
                return None;
            }
            exact.extend(needed);
        }
        Some(exact)
    }

    /// Returns true if two invocations may execute the accesses of a query under the conditions.
    fn is_executable(&mut self, query: &Query, needed: &[TermId]) -> bool {
        let without_overlap = Query { conjuncts: query.execution.clone(), ..query.clone() };
        let mut all = without_overlap.conjuncts.clone();
        all.extend(self.side_facts(&without_overlap));
        // Small inputs suffice, and keep products easy.
        all.extend(self.small_inputs(&all, (4, 1 << 10)));
        let exact = query.inexact.iter().filter(|(_, source)| needed.contains(source));
        let exact: Vec<TermId> = exact.map(|(instance, _)| *instance).collect();
        matches!(self.decide(&all, Products::Exact, &exact, STEPS), Decision::Possible(_))
    }

    fn candidates(&mut self, refuted: &[(Query, TermModel)]) -> Vec<Condition> {
        let mut scalars = BTreeSet::new();
        for (query, _) in refuted {
            self.summary.terms.for_each_application(&query.conjuncts, |id, function| {
                let function = self.summary.terms.function(function);
                let is_input = match function.kind {
                    FunctionKind::Contents(..)
                    | FunctionKind::Specialization(_)
                    | FunctionKind::BufferBytes(_) => {
                        let arguments = &self.summary.terms.term(id).arguments;
                        arguments.iter().all(|one| self.summary.terms.constant_of(*one).is_some())
                    }
                    _ => false,
                };
                if is_input && function.width == 32 && function.original.is_none() {
                    scalars.insert(id);
                }
            });
        }
        let scalars: Vec<TermId> = scalars.into_iter().take(MAX_SCALARS).collect();
        let sizes: BTreeSet<TermId> = self.summary.local_size.into_iter().collect();
        let sizes: Vec<TermId> =
            sizes.into_iter().filter(|size| self.summary.terms.constant_of(*size) != Some(1)).collect();
        let mut all = Vec::new();
        let names: Vec<String> = scalars.iter().map(|scalar| term_text(&self.summary, *scalar)).collect();
        let size_names: Vec<String> = sizes.iter().map(|size| term_text(&self.summary, *size)).collect();
        let terms = &mut self.summary.terms;
        let mut add = |term: TermId, text: String| all.push(Condition { term, text });
        for (a, name) in scalars.iter().zip(&names) {
            for (b, other) in scalars.iter().zip(&names).filter(|(b, _)| *b != a) {
                let is_less = terms.binary(Operator::Less, *a, *b);
                add(terms.not(is_less), format!("{name} >= {other}"));
            }
        }
        for (a, name) in scalars.iter().zip(&names) {
            for (size, other) in sizes.iter().zip(&size_names) {
                let is_less = terms.binary(Operator::Less, *a, *size);
                add(terms.not(is_less), format!("{name} >= {other}"));
                let is_less = terms.binary(Operator::Less, *size, *a);
                add(terms.not(is_less), format!("{name} <= {other}"));
                if terms.constant_of(*size).is_some() {
                    let (rest, zero) = (terms.binary(Operator::Remainder, *a, *size), terms.constant(32, 0));
                    add(terms.equal(rest, zero), format!("{name} % {other} == 0"));
                }
            }
            let (zero, one) = (terms.constant(32, 0), terms.constant(32, 1));
            let is_zero = terms.equal(*a, zero);
            add(terms.not(is_zero), format!("{name} != 0"));
            add(is_zero, format!("{name} == 0"));
            add(terms.equal(*a, one), format!("{name} == 1"));
        }
        for axis in 0..3 {
            if self.grid[axis].is_none() {
                let (count, one) = (self.group_count(axis), self.summary.terms.constant(32, 1));
                let term = self.summary.terms.equal(count, one);
                all.push(Condition { term, text: format!("groups.{} == 1", ["x", "y", "z"][axis]) });
            }
        }
        all
    }

    /// Computes a term for the values of a model; `None` for a quotient by zero.
    pub fn evaluate(&self, id: TermId, model: &TermModel) -> Option<u64> {
        self.summary.terms.evaluate(id, &|application| model.values.get(&application).copied().unwrap_or(0))
    }
}

/// Upper bound on the steps of a check that accesses are executed.
const STEPS: u64 = 20_000;
