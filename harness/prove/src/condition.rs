//! The search for simple conditions on inputs under which refuted obligations hold.
//!
//! The templates relate the scalar inputs in refuted obligations to each other, to sizes of the workgroup and the grid,
//! and to constants that the shader computes with. A candidate must be violated by the counterexample, so some input
//! without it conflicts. One, or two together, are accepted if they prove each refuted obligation and if two invocations
//! still execute the accesses of each; otherwise the proof would say nothing. Weaker templates come first. None sets an
//! input to one value, alone or with another: it would hide races of ordinary inputs. Then constants are replaced by the
//! weakest ones with which the proof holds.

use std::collections::BTreeSet;

use crate::decide::{SMALL_INPUTS, TermModel};
use crate::names::{is_signed, term_text, variable_name};
use crate::prover::{Answer, Claim, Prover, Query};
use crate::term::{FunctionKind, Operator, TermArena, TermId};

/// Upper bounds on the scalars and constants that candidates relate.
const MAX_SCALARS: usize = 8;
const MAX_CONSTANTS: usize = 8;
/// The value from which on an upper bound of an input is weak enough.
const MAX_BOUND: u64 = 1_024;
/// Upper bound on the weaker conditions that are tried.
const MAX_WEAKER: usize = 8;

/// A condition on inputs, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub claim: Claim,
    pub text: String,
    /// The comparison of an input with a constant that the condition is.
    pub comparison: Option<ConstantComparison>,
}

/// The relation of an input to a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    AtLeast,
    AtMost,
    MultipleOf,
}

/// A comparison of an input with a constant.
#[derive(Clone, Debug)]
pub(crate) struct ConstantComparison {
    input: TermId,
    name: String,
    is_signed: bool,
    relation: Relation,
    value: u64,
}

impl Condition {
    fn new(claim: TermId, text: String) -> Condition {
        Condition { claim: Claim::Term(claim), text, comparison: None }
    }
}

impl ConstantComparison {
    /// Returns the condition that the comparison holds.
    fn to_condition(&self, terms: &mut TermArena) -> Condition {
        let ConstantComparison { input, ref name, is_signed, relation, value } = *self;
        let constant = terms.constant(32, value);
        let (claim, text) = match relation {
            Relation::AtLeast => (at_least(terms, input, constant, is_signed), format!("{name} >= {value}")),
            Relation::AtMost => (at_least(terms, constant, input, is_signed), format!("{name} <= {value}")),
            Relation::MultipleOf => (is_multiple(terms, input, constant), format!("{name} % {value} == 0")),
        };
        Condition { claim: Claim::Term(claim), text, comparison: Some(self.clone()) }
    }
}

/// Conditions that suffice, and what else holds then.
pub(crate) struct Sufficient {
    pub conditions: Vec<Condition>,
    /// Products and sums that must not wrap.
    pub exact: BTreeSet<TermId>,
    /// A model of the execution of two invocations under the conditions.
    pub example: TermModel,
}

pub(crate) type Refuted = (Query, TermModel);

impl Prover<'_> {
    /// Returns the first conditions under which refuted queries hold.
    ///
    /// Each counterexample rules out the candidates that it satisfies, so few reach the solver.
    ///
    /// # Errors
    /// Returns true if the budget ended before every candidate was tried, and none was found that leaves few values.
    pub fn find_conditions(&mut self, refuted: &[Refuted]) -> Result<Sufficient, bool> {
        let candidates = self.candidates(refuted);
        let mut violations: Vec<Vec<bool>> =
            refuted.iter().map(|one| self.violations(&candidates, one)).collect();
        let (count, mut useless, mut leaves_few) = (candidates.len(), BTreeSet::new(), false);
        let singles = (0..count).map(|one| vec![one]);
        for set in singles.chain((0..count).flat_map(|a| (a + 1..count).map(move |b| vec![a, b]))) {
            if set.len() > 1 && leaves_few {
                break;
            }
            if set.iter().any(|one| useless.contains(one))
                || violations.iter().any(|violated| set.iter().all(|one| !violated[*one]))
            {
                continue;
            }
            self.is_inconclusive |= self.steps == 0;
            if self.steps == 0 {
                break;
            }
            let conditions: Vec<Condition> = set.iter().map(|one| candidates[*one].clone()).collect();
            match self.prove_under(&conditions, refuted) {
                // Conditions for few values hide a defect of ordinary ones.
                Ok(_)
                    if self.leave_few_values(&conditions, refuted)
                        || self.exclude_rounded_grids(&conditions, refuted) =>
                {
                    leaves_few |= set.len() == 1;
                }
                Ok((exact, example)) => {
                    let found = Sufficient { conditions, exact, example };
                    let later = candidates.iter().zip(0..).filter(|(_, index)| {
                        set == [set[0]] && *index > set[0] && violations.iter().all(|one| one[*index])
                    });
                    let later: Vec<Condition> = later.map(|(one, _)| one.clone()).collect();
                    let found = self.replace_by_weaker(found, &later, refuted);
                    return Ok(self.with_weakest_constants(found, refuted));
                }
                Err(Some(counterexample)) => violations.push(self.violations(&candidates, &counterexample)),
                // Under this one alone, nothing is executed, or nothing is known.
                Err(None) if set.len() == 1 => useless.extend(set),
                Err(None) => {}
            }
        }
        Err(!leaves_few && (self.is_inconclusive || self.steps == 0))
    }

    /// Replaces a condition by one of the same inputs that more small inputs satisfy, if one suffices.
    fn replace_by_weaker(
        &mut self,
        found: Sufficient,
        others: &[Condition],
        refuted: &[Refuted],
    ) -> Sufficient {
        let is_inconclusive = self.is_inconclusive;
        let (inputs, _) = self.inputs_of(&found.conditions);
        let of_queries = refuted
            .iter()
            .flat_map(|(query, _)| inputs.iter().flat_map(|input| self.computed_from(query, *input).guards));
        let guards: Vec<TermId> = of_queries.collect();
        let share = self.satisfied_share(&inputs, &found.conditions, &guards);
        let mut weaker = Vec::new();
        for other in others {
            let one = std::slice::from_ref(other);
            if self.inputs_of(one).0.is_subset(&inputs) && self.satisfied_share(&inputs, one, &guards) > share
            {
                weaker.push(other.clone());
            }
        }
        for other in weaker.into_iter().take(MAX_WEAKER) {
            let conditions = vec![other];
            if let Ok((exact, example)) = self.prove_under(&conditions, refuted)
                && !self.leave_few_values(&conditions, refuted)
            {
                self.is_inconclusive = is_inconclusive;
                return Sufficient { conditions, exact, example };
            }
        }
        self.is_inconclusive = is_inconclusive;
        found
    }

    /// Proves queries under conditions in addition; see [`Prover::prove_all`].
    fn prove_under(
        &mut self,
        conditions: &[Condition],
        refuted: &[Refuted],
    ) -> Result<(BTreeSet<TermId>, TermModel), Option<Box<Refuted>>> {
        let before = self.conditions.len();
        self.conditions.extend(conditions.iter().map(|condition| condition.claim));
        let result = self.prove_all(refuted);
        self.conditions.truncate(before);
        result
    }

    /// Replaces the constants of conditions by the weakest ones with which the queries hold: divisors by their least
    /// divisor, bounds by bisection up to a value for which a query is refuted.
    fn with_weakest_constants(&mut self, mut found: Sufficient, refuted: &[Refuted]) -> Sufficient {
        let is_inconclusive = self.is_inconclusive;
        for index in 0..found.conditions.len() {
            let Some(comparison) = found.conditions[index].comparison.clone() else { continue };
            let weaken = |prover: &mut Self, found: &mut Sufficient, value: u64| {
                let mut weaker = found.conditions.clone();
                let comparison = ConstantComparison { value, ..comparison.clone() };
                weaker[index] = comparison.to_condition(&mut prover.summary.terms);
                let proof = prover.prove_under(&weaker, refuted).ok();
                proof.is_some_and(|(exact, example)| {
                    *found = Sufficient { conditions: weaker, exact, example };
                    true
                })
            };
            let value = comparison.value;
            if comparison.relation == Relation::MultipleOf {
                let mut divisors = (2..value).filter(|divisor| value.is_multiple_of(*divisor));
                divisors.any(|divisor| weaken(self, &mut found, divisor));
                continue;
            }
            let excluded = self.excluded_value(&comparison, index, &found.conditions, refuted);
            let mut holding = value;
            let mut failing = match comparison.relation {
                Relation::AtMost => excluded.unwrap_or(2 * holding),
                Relation::AtLeast | Relation::MultipleOf => excluded.unwrap_or(0),
            };
            while excluded.is_none() && failing > holding && weaken(self, &mut found, failing) {
                (holding, failing) = (failing, 2 * failing);
                if holding > MAX_BOUND {
                    break;
                }
            }
            while holding.abs_diff(failing) > 1 && self.steps > 0 {
                let value = holding.min(failing) + holding.abs_diff(failing) / 2;
                let is_weaker = weaken(self, &mut found, value);
                *(if is_weaker { &mut holding } else { &mut failing }) = value;
            }
        }
        self.is_inconclusive = is_inconclusive;
        found
    }

    /// Returns the value of a refuting input that is nearest to a bound, if the bound alone excludes it.
    fn excluded_value(
        &self,
        comparison: &ConstantComparison,
        index: usize,
        conditions: &[Condition],
        refuted: &[Refuted],
    ) -> Option<u64> {
        let values = refuted.iter().filter_map(|(_, model)| self.evaluate(comparison.input, model));
        let others = conditions.iter().enumerate().filter(|(other, _)| *other != index);
        let violates_others = |(_, model): &Refuted| {
            others.clone().any(|(_, other)| match other.claim {
                Claim::Term(term) => self.evaluate(term, model) == Some(0),
                Claim::DistinctContents(_) => true,
            })
        };
        let nearest = match comparison.relation {
            _ if refuted.iter().any(violates_others) => None,
            Relation::AtLeast => values.max(),
            Relation::AtMost => values.min(),
            Relation::MultipleOf => None,
        };
        // Bounds of signed inputs are not negative.
        nearest.map(|value| if comparison.is_signed && value > i32::MAX as u64 { 0 } else { value })
    }

    /// Returns for each candidate whether a counterexample violates it.
    fn violations(&self, candidates: &[Condition], (query, model): &Refuted) -> Vec<bool> {
        let at = |id: TermId| self.evaluate(id, model);
        // Another condition may exclude that a product or sum wraps.
        if query.inexact.iter().any(|(instance, _)| !self.is_exact_in(*instance, model)) {
            return vec![true; candidates.len()];
        }
        let is_violated = |candidate: &Condition| match candidate.claim {
            Claim::Term(term) => at(term) == Some(0),
            Claim::DistinctContents(variable) => {
                let pairs = self.contents_pairs(&query.conjuncts, variable);
                pairs.iter().any(|(a, b)| at(*a) == at(*b) && !self.has_equal_arguments(*a, *b, model))
            }
        };
        candidates.iter().map(is_violated).collect()
    }

    /// Returns true if a product or sum does not wrap for the values of a model.
    fn is_exact_in(&self, id: TermId, model: &TermModel) -> bool {
        let term = self.summary.terms.term(id);
        let at = |id: &TermId| i128::from(self.evaluate(*id, model).unwrap_or(0));
        let value = match &term.operator {
            Operator::Sum { coefficients, constant } => {
                let signed = |value: u64| i128::from(arithmetic::sign_extend(value, term.width));
                if !term.arguments.iter().all(|atom| self.is_exact_in(*atom, model)) {
                    return false;
                }
                let summands = term.arguments.iter().zip(coefficients);
                summands.fold(signed(*constant), |sum, (one, factor)| sum + at(one) * signed(*factor))
            }
            Operator::Multiply => term.arguments.iter().map(at).product(),
            _ => 0,
        };
        (0..=i128::from(arithmetic::mask(term.width))).contains(&value)
    }

    fn has_equal_arguments(&self, a: TermId, b: TermId, model: &TermModel) -> bool {
        let terms = &self.summary.terms;
        let mut pairs = terms.term(a).arguments.iter().zip(&terms.term(b).arguments);
        pairs.all(|(x, y)| self.evaluate(*x, model) == self.evaluate(*y, model))
    }

    /// Proves queries under the conditions; fails with a counterexample, or with none if nothing is known.
    fn prove_all(
        &mut self,
        refuted: &[Refuted],
    ) -> Result<(BTreeSet<TermId>, TermModel), Option<Box<Refuted>>> {
        let (mut exact, mut example) = (BTreeSet::new(), None);
        for (query, _) in refuted {
            self.execute(query, &exact).ok_or(None)?;
        }
        for (query, _) in refuted {
            match self.answer(query) {
                Answer::Proved => {}
                Answer::ProvedIfExact(terms) => exact.extend(terms),
                Answer::Refuted(model) => return Err(Some(Box::new((query.clone(), model)))),
                Answer::Open => {
                    self.is_inconclusive = true;
                    return Err(None);
                }
            }
        }
        for (query, _) in refuted {
            example = Some(self.execute(query, &exact).ok_or(None)?);
        }
        example.map(|example| (exact, example)).ok_or(None)
    }

    /// Returns values that satisfy the conditions.
    pub fn example(&mut self) -> Option<TermModel> {
        let facts = self.condition_facts(&[]);
        self.find_small(&facts, &[], SMALL_INPUTS[1])
    }

    /// Returns values for which two invocations execute the accesses of a query under the conditions.
    pub fn execute(&mut self, query: &Query, exact: &BTreeSet<TermId>) -> Option<TermModel> {
        let without_overlap = Query { conjuncts: query.execution.clone(), ..query.clone() };
        let mut all = without_overlap.conjuncts.clone();
        all.extend(self.side_facts(&without_overlap));
        let instances = self.exact_instances(query, exact, &all);
        self.find_small(&all, &instances, SMALL_INPUTS[1])
    }

    fn candidates(&mut self, refuted: &[Refuted]) -> Vec<Condition> {
        let (mut scalars, mut contents) = (BTreeSet::new(), BTreeSet::new());
        // A buffer for each of two turns.
        let mut constants = BTreeSet::from([2]);
        // The inputs that a shift halves, or that make a mask.
        let mut halved = BTreeSet::new();
        let terms = &self.summary.terms;
        for (query, _) in refuted {
            terms.for_each_subterm(&query.conjuncts, |id| {
                let term = terms.term(id);
                match &term.operator {
                    Operator::Apply(function)
                        if terms.function(*function).original.is_none() && term.width == 32 =>
                    {
                        let is_fixed = term.arguments.iter().all(|one| terms.constant_of(*one).is_some());
                        match terms.function(*function).kind {
                            FunctionKind::Contents(variable, _) | FunctionKind::BufferElements(variable)
                                if self.summary.is_given(variable) => {}
                            FunctionKind::Contents(variable, _) if !is_fixed => _ = contents.insert(variable),
                            FunctionKind::Contents(..)
                            | FunctionKind::Specialization(_)
                            | FunctionKind::BufferElements(_)
                                if is_fixed =>
                            {
                                scalars.insert(id);
                            }
                            _ => {}
                        }
                    }
                    Operator::Constant(value) if term.width == 32 && (2..=1 << 16).contains(value) => {
                        constants.insert(value + u64::from((value + 1).is_power_of_two()));
                    }
                    Operator::Less | Operator::LessSigned | Operator::Equal => {
                        let limits = term.arguments.iter().filter_map(|one| terms.constant_of(*one));
                        constants.extend(
                            limits.filter(|limit| (1..1 << 16).contains(limit)).map(|limit| limit + 1),
                        );
                    }
                    Operator::ShiftLeft => constants.extend([8]),
                    Operator::ShiftRight => {
                        halved.extend(terms.linear_form(term.arguments[0]).0.iter().map(|atom| atom.0));
                    }
                    Operator::And => halved.extend(term.arguments.iter().filter_map(|part| {
                        let (atoms, constant) = terms.linear_form(*part);
                        let is_mask = atoms.len() == 1 && constant == arithmetic::mask(term.width);
                        is_mask.then(|| atoms[0].0)
                    })),
                    // A given width of rows.
                    Operator::Sum { coefficients, .. } if term.width == 32 => {
                        constants.extend(coefficients.iter().filter(|one| (2..=1 << 16).contains(*one)));
                    }
                    _ => {}
                }
            });
        }
        let scalars: Vec<TermId> = scalars.into_iter().take(MAX_SCALARS).collect();
        let constants = constants.into_iter().take(MAX_CONSTANTS);
        let mut sizes: BTreeSet<TermId> = self.summary.local_size.into_iter().collect();
        sizes.extend(constants.map(|value| self.summary.terms.constant(32, value)));
        sizes.retain(|size| self.summary.terms.constant_of(*size) != Some(1));
        let names = |of: &[TermId]| of.iter().map(|one| term_text(&self.summary, *one)).collect::<Vec<_>>();
        let mut sizes: Vec<TermId> = sizes.into_iter().collect();
        sizes.sort_by_key(|size| self.summary.terms.constant_of(*size));
        let is_signed_input = |id: &TermId| is_signed(&self.summary, *id);
        let signed: BTreeSet<TermId> = scalars.iter().copied().filter(is_signed_input).collect();
        let (scalars, sizes): (Vec<_>, Vec<_>) = (
            scalars.iter().copied().zip(names(&scalars)).collect(),
            sizes.iter().copied().zip(names(&sizes)).collect(),
        );
        let is_length = |(id, _): &&(TermId, String)| {
            matches!(self.summary.terms.kind_of(*id), Some(FunctionKind::BufferElements(_)))
        };
        let (lengths, numbers): (Vec<_>, Vec<_>) = scalars.iter().partition(is_length);
        let extents = self.grid_extents();
        let terms = &mut self.summary.terms;
        let ordered = |terms: &mut TermArena, greater: &[&(TermId, String)], less: &[&(TermId, String)]| {
            let mut all = Vec::new();
            for (a, name) in greater {
                let is_other = |b: &TermId| b != a && signed.contains(b) == signed.contains(a);
                for (b, other) in less.iter().filter(|(b, _)| is_other(b)) {
                    let claim = at_least(terms, *a, *b, signed.contains(a));
                    all.push(Condition::new(claim, format!("{name} >= {other}")));
                }
            }
            all
        };
        let mut all = ordered(terms, &numbers, &numbers);
        let (zero, one) = (terms.constant(32, 0), terms.constant(32, 1));
        for (a, name) in &scalars {
            let is_signed = signed.contains(a);
            if is_signed {
                all.push(Condition::new(at_least(terms, *a, zero, true), format!("{name} >= 0")));
            }
            let is_zero = terms.equal(*a, zero);
            all.push(Condition::new(terms.not(is_zero), format!("{name} != 0")));
            let least = sizes.iter().map(|size| (size, Relation::AtLeast));
            let most = sizes.iter().rev().map(|size| (size, Relation::AtMost));
            let divisors = sizes.iter().map(|size| (size, Relation::MultipleOf));
            for ((size, other), relation) in least.chain(most).chain(divisors) {
                let (input, name) = (*a, name.clone());
                let value = terms.constant_of(*size);
                match (relation, value) {
                    // The rest of a negative number is that of its bits only for powers of two.
                    (Relation::MultipleOf, None) => {}
                    (Relation::MultipleOf, Some(value)) if is_signed && !value.is_power_of_two() => {}
                    (_, Some(value)) => {
                        let comparison = ConstantComparison { input, name, is_signed, relation, value };
                        all.push(comparison.to_condition(terms));
                        if relation == Relation::AtMost {
                            let value = value - 1;
                            all.push(ConstantComparison { value, ..comparison }.to_condition(terms));
                        }
                    }
                    (Relation::AtLeast, None) => {
                        let claim = at_least(terms, input, *size, is_signed);
                        all.push(Condition::new(claim, format!("{name} >= {other}")));
                    }
                    (Relation::AtMost, None) => {
                        let claim = at_least(terms, *size, input, is_signed);
                        all.push(Condition::new(claim, format!("{name} <= {other}")));
                    }
                }
            }
            if halved.contains(a) {
                let below = terms.subtract(*a, one);
                let common = terms.binary(Operator::And, *a, below);
                all.push(Condition::new(terms.equal(common, zero), format!("({name} & ({name} - 1)) == 0")));
            }
            let wide = terms.extend(*a, 64, is_signed);
            for (extent, text) in &extents {
                all.push(Condition::new(at_least(terms, wide, *extent, true), format!("{text} <= {name}")));
                all.push(Condition::new(at_least(terms, *extent, wide, true), format!("{text} >= {name}")));
            }
        }
        // A number that is at least a length, or at most, is rarely a precondition.
        for (greater, less) in [(&numbers, &lengths), (&lengths, &numbers), (&lengths, &lengths)] {
            all.extend(ordered(terms, greater, less));
        }
        for variable in contents {
            let name = variable_name(self.summary.module, variable);
            let (claim, text) = (Claim::DistinctContents(variable), format!("distinct({name})"));
            all.push(Condition { claim, text, comparison: None });
        }
        all
    }

    /// Returns the workgroups and the invocations of each dimension whose number of workgroups is not fixed.
    fn grid_extents(&mut self) -> Vec<(TermId, String)> {
        let mut all = Vec::new();
        for axis in (0..3).filter(|axis| self.grid[*axis].is_none()).collect::<Vec<usize>>() {
            let (count, size) = (self.summary.group_count(axis), self.summary.local_size[axis]);
            let (count_text, size_text) = (term_text(&self.summary, count), term_text(&self.summary, size));
            let [count, wide_size] = [count, size].map(|one| self.summary.terms.extend(one, 64, false));
            let total = self.summary.terms.multiply(count, wide_size);
            all.push((count, count_text.clone()));
            if total != count {
                all.push((total, format!("{count_text} * {size_text}")));
            }
        }
        all
    }

    /// Returns the pairs of applications, in some terms, of the contents of a read-only variable.
    fn contents_pairs(&self, roots: &[TermId], variable: u32) -> Vec<(TermId, TermId)> {
        let (terms, mut found) = (&self.summary.terms, Vec::new());
        terms.for_each_application(roots, |id, function| {
            if matches!(terms.function(function).kind, FunctionKind::Contents(of, _) if of == variable) {
                found.push((id, function));
            }
        });
        let pairs = (0..found.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let same = pairs.filter(|(a, b)| found[*a].1 == found[*b].1);
        same.map(|(a, b)| (found[a].0, found[b].0)).collect()
    }

    /// Returns what the conditions say of some terms.
    pub fn condition_facts(&mut self, roots: &[TermId]) -> Vec<TermId> {
        let mut facts = Vec::new();
        for claim in self.conditions.clone() {
            let variable = match claim {
                Claim::Term(term) => {
                    facts.push(term);
                    continue;
                }
                Claim::DistinctContents(variable) => variable,
            };
            for (a, b) in self.contents_pairs(roots, variable) {
                let terms = &mut self.summary.terms;
                let [x, y] = [a, b].map(|id| terms.term(id).arguments.clone());
                let equal: Vec<TermId> = x.iter().zip(&y).map(|(x, y)| terms.equal(*x, *y)).collect();
                let (same, equal) = (terms.every(&equal), terms.equal(a, b));
                let differ = terms.not(equal);
                facts.push(terms.any(&[same, differ]));
            }
        }
        facts
    }

    /// Computes a term for the values of a model; `None` for a quotient by zero.
    pub fn evaluate(&self, id: TermId, model: &TermModel) -> Option<u64> {
        self.summary.terms.evaluate(id, &|application| model.values.get(&application).copied().unwrap_or(0))
    }
}

/// Returns the term that `a` is at least `b`.
fn at_least(terms: &mut TermArena, a: TermId, b: TermId, is_signed: bool) -> TermId {
    let less = if is_signed { Operator::LessSigned } else { Operator::Less };
    let is_less = terms.binary(less, a, b);
    terms.not(is_less)
}

/// Returns the term that `a` is a multiple of `b`.
fn is_multiple(terms: &mut TermArena, a: TermId, b: TermId) -> TermId {
    let (rest, zero) = (terms.binary(Operator::Remainder, a, b), terms.constant(32, 0));
    terms.equal(rest, zero)
}
