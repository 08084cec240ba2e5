//! Preconditions: given ones, and the search for simple conditions under which refuted obligations hold.
//!
//! The templates relate the scalar inputs in refuted obligations to each other, to sizes of the workgroup and the grid,
//! and to constants that the shader computes with. A candidate must be violated by the counterexample, so some input
//! without it conflicts. One, or two together, are accepted if they prove each refuted obligation and if two invocations
//! still execute the accesses of each; otherwise the proof would say nothing. Weaker templates come first. None sets an
//! input to one value, alone or with another: it would hide races of ordinary inputs. Then constants are replaced by the
//! weakest ones with which the proof holds.

use std::collections::BTreeSet;

use crate::decide::{SMALL_INPUTS, TermModel};
use crate::input::GivenValue;
use crate::names::{is_signed, symbol_name, term_text, variable_name};
use crate::prover::{Answer, Claim, Prover, Query};
use crate::term::{FunctionKind, Operator, TermArena, TermId};

/// Upper bounds on the scalars and constants that candidates relate.
const MAX_SCALARS: usize = 8;
const MAX_CONSTANTS: usize = 8;
/// The largest input among those that show how many values conditions leave.
const MAX_SMALL: u64 = 1_024;

/// A condition on inputs, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub claim: Claim,
    pub text: String,
    /// The constant that the condition compares an input with.
    limit: Option<Limit>,
}

/// A constant bound of an input.
#[derive(Clone, Debug)]
struct Limit {
    input: TermId,
    name: String,
    is_signed: bool,
    /// True for the least value, false for the largest one.
    is_least: bool,
    value: u64,
}

/// Conditions that suffice, and what else holds then.
pub(crate) struct Sufficient {
    pub conditions: Vec<Condition>,
    /// Products and sums that must not wrap.
    pub exact: BTreeSet<TermId>,
    /// A model of the execution of two invocations under the conditions.
    pub example: TermModel,
}

type Refuted = (Query, TermModel);

impl Prover<'_> {
    /// Returns the first conditions under which refuted queries hold.
    ///
    /// Each counterexample rules out the candidates that it satisfies, so few reach the solver.
    pub fn find_conditions(&mut self, refuted: &[Refuted]) -> Option<Sufficient> {
        let candidates = self.candidates(refuted);
        let mut violations: Vec<Vec<bool>> =
            refuted.iter().map(|one| self.violations(&candidates, one)).collect();
        let (count, mut useless) = (candidates.len(), BTreeSet::new());
        let singles = (0..count).map(|one| vec![one]);
        for set in singles.chain((0..count).flat_map(|a| (a + 1..count).map(move |b| vec![a, b]))) {
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
                // Together they may leave an input one value.
                Ok(_) if self.leaves_one_value(&conditions) => {}
                Ok((exact, example)) => {
                    let found = Sufficient { conditions, exact, example };
                    return Some(self.with_weakest_limits(found, refuted));
                }
                Err(Some(counterexample)) => violations.push(self.violations(&candidates, &counterexample)),
                // Under this one alone, nothing is executed, or nothing is known.
                Err(None) if set.len() == 1 => useless.extend(set),
                Err(None) => {}
            }
        }
        None
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

    /// Replaces the constants of conditions by the weakest ones with which the queries hold, by bisection up to a value
    /// for which a query is refuted.
    fn with_weakest_limits(&mut self, mut found: Sufficient, refuted: &[Refuted]) -> Sufficient {
        let is_inconclusive = self.is_inconclusive;
        for index in 0..found.conditions.len() {
            let Some(limit) = found.conditions[index].limit.clone() else { continue };
            let of_models = refuted.iter().filter_map(|(_, model)| self.evaluate(limit.input, model));
            let others = found.conditions.iter().enumerate().filter(|(other, _)| *other != index);
            let violates_others = |(_, model): &&Refuted| {
                others.clone().any(|(_, other)| match other.claim {
                    Claim::Term(term) => self.evaluate(term, model) == Some(0),
                    Claim::DistinctContents(_) => true,
                })
            };
            // Only the condition itself excludes these values.
            let beyond = match refuted.iter().any(|one| violates_others(&one)) {
                true => None,
                false if limit.is_least => of_models.max(),
                false => of_models.min(),
            };
            let Some(mut failing) = beyond else { continue };
            // Bounds of signed inputs are not negative.
            if limit.is_signed && failing > i32::MAX as u64 {
                failing = 0;
            }
            let mut holding = limit.value;
            while holding.abs_diff(failing) > 1 && self.steps > 0 {
                let value = holding.min(failing) + holding.abs_diff(failing) / 2;
                let mut weaker = found.conditions.clone();
                weaker[index] = self.limit_condition(Limit { value, ..limit.clone() });
                match self.prove_under(&weaker, refuted) {
                    Ok((exact, example)) => {
                        found = Sufficient { conditions: weaker, exact, example };
                        holding = value;
                    }
                    Err(_) => failing = value,
                }
            }
        }
        self.is_inconclusive = is_inconclusive;
        found
    }

    /// Returns the condition that an input is within a constant bound.
    fn limit_condition(&mut self, limit: Limit) -> Condition {
        let terms = &mut self.summary.terms;
        let constant = terms.constant(32, limit.value);
        let (low, high) = if limit.is_least { (constant, limit.input) } else { (limit.input, constant) };
        let claim = Claim::Term(at_least(terms, high, low, limit.is_signed));
        let relation = if limit.is_least { ">=" } else { "<=" };
        let text = format!("{} {relation} {}", limit.name, limit.value);
        Condition { claim, text, limit: Some(limit) }
    }

    /// Returns true if some input has one value in all small inputs that satisfy conditions.
    fn leaves_one_value(&self, conditions: &[Condition]) -> bool {
        let terms = &self.summary.terms;
        let claims = conditions.iter().filter_map(|one| match one.claim {
            Claim::Term(term) => Some(term),
            Claim::DistinctContents(_) => None,
        });
        let (claims, mut inputs) = (Vec::from_iter(claims), BTreeSet::new());
        terms.for_each_application(&claims, |id, _| _ = inputs.insert(id));
        inputs.iter().any(|input| {
            let holds = |value: u64, rest: u64| {
                let at = |id: TermId| if id == *input { value } else { rest };
                claims.iter().all(|claim| terms.evaluate(*claim, &at) == Some(1))
            };
            let values =
                (0..=MAX_SMALL).filter(|value| [1, 64, MAX_SMALL].iter().any(|rest| holds(*value, *rest)));
            values.take(2).count() == 1
        })
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
        let instances = self.exact_instances(query, exact);
        self.find_small(&all, &instances, SMALL_INPUTS[1])
    }

    fn candidates(&mut self, refuted: &[Refuted]) -> Vec<Condition> {
        let (mut scalars, mut constants, mut contents) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
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
        let mut all: Vec<Condition> = Vec::new();
        let open = (0..3).filter(|axis| self.grid[*axis].is_none()).collect::<Vec<usize>>();
        let counts: Vec<(usize, TermId)> =
            open.into_iter().map(|axis| (axis, self.summary.group_count(axis))).collect();
        let local_size = self.summary.local_size;
        let terms = &mut self.summary.terms;
        let mut add = |term: TermId, text: String, limit: Option<Limit>| {
            all.push(Condition { claim: Claim::Term(term), text, limit });
        };
        for (a, name) in &scalars {
            let is_signed = signed.contains(a);
            for (b, other) in scalars.iter().filter(|(b, _)| b != a && signed.contains(b) == is_signed) {
                add(at_least(terms, *a, *b, is_signed), format!("{name} >= {other}"), None);
            }
        }
        let (zero, one) = (terms.constant(32, 0), terms.constant(32, 1));
        for (a, name) in &scalars {
            let is_signed = signed.contains(a);
            if is_signed {
                add(at_least(terms, *a, zero, true), format!("{name} >= 0"), None);
            }
            let is_zero = terms.equal(*a, zero);
            add(terms.not(is_zero), format!("{name} != 0"), None);
            let bounds =
                sizes.iter().map(|size| (size, true)).chain(sizes.iter().rev().map(|size| (size, false)));
            for ((size, other), is_least) in bounds {
                let (low, high) = if is_least { (*size, *a) } else { (*a, *size) };
                let relation = if is_least { ">=" } else { "<=" };
                let claim = at_least(terms, high, low, is_signed);
                let (input, name) = (*a, name.clone());
                let text = format!("{name} {relation} {other}");
                let value = terms.constant_of(*size);
                let limit = value.map(|value| Limit { input, name, is_signed, is_least, value });
                add(claim, text, limit);
            }
            for (size, other) in &sizes {
                // The rest of a negative number is that of its bits only for powers of two.
                if terms.constant_of(*size).is_some_and(|size| !is_signed || size.is_power_of_two()) {
                    let rest = terms.binary(Operator::Remainder, *a, *size);
                    add(terms.equal(rest, zero), format!("{name} % {other} == 0"), None);
                }
            }
            let below = terms.subtract(*a, one);
            let common = terms.binary(Operator::And, *a, below);
            add(terms.equal(common, zero), format!("{name} & ({name} - 1) == 0"), None);
            let wide = terms.extend(*a, 64, is_signed);
            for (axis, count) in &counts {
                let [count, size] = [*count, local_size[*axis]].map(|one| terms.extend(one, 64, false));
                let (total, axis) = (terms.multiply(count, size), ["x", "y", "z"][*axis]);
                let size =
                    terms.constant_of(size).map_or_else(|| "local".to_owned(), |size| size.to_string());
                add(at_least(terms, wide, total, true), format!("groups.{axis} * {size} <= {name}"), None);
                add(at_least(terms, total, wide, true), format!("groups.{axis} * {size} >= {name}"), None);
            }
        }
        for variable in contents {
            let name = variable_name(self.summary.module, variable);
            all.push(Condition {
                claim: Claim::DistinctContents(variable),
                text: format!("distinct({name})"),
                limit: None,
            });
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

    /// Returns the inputs and sizes of the shader by name.
    fn named_symbols(&mut self) -> Vec<(String, TermId)> {
        (0..3).for_each(|axis| _ = self.summary.group_count(axis));
        let ids = self.summary.terms.ids();
        let mut all: Vec<_> = ids.filter_map(|id| Some((symbol_name(&self.summary, id)?, id))).collect();
        for (name, value) in &self.summary.used {
            if let GivenValue::Integer(value) = value {
                all.push((name.clone(), self.summary.terms.constant(64, *value as u64)));
            }
        }
        all
    }

    /// Parses a given condition, such as `pc.stride >= pc.width and pc.n % 16 == 0`.
    ///
    /// # Errors
    /// Returns the column, counted from 1, with what was expected there.
    pub fn parse_condition(&mut self, text: &str) -> Result<Vec<Condition>, (usize, String)> {
        let symbols = self.named_symbols();
        let mut parser = Parser { text, at: 0, symbols, prover: self };
        let mut all = Vec::new();
        loop {
            let from = parser.at;
            let claim = parser.comparison()?;
            let text = text[from..parser.at].trim().to_owned();
            all.push(Condition { claim, text, limit: None });
            if !parser.take("and") && !parser.take("&&") {
                break;
            }
        }
        match parser.rest() {
            "" => Ok(all),
            _ => Err(parser.expected("`and` or the end")),
        }
    }
}

/// Returns the term that `a` is at least `b`.
fn at_least(terms: &mut TermArena, a: TermId, b: TermId, is_signed: bool) -> TermId {
    let less = if is_signed { Operator::LessSigned } else { Operator::Less };
    let is_less = terms.binary(less, a, b);
    terms.not(is_less)
}

/// A parser of conditions; numbers are computed in 64 bits, so ordinary values do not wrap.
struct Parser<'t, 'p, 'm> {
    text: &'t str,
    at: usize,
    symbols: Vec<(String, TermId)>,
    prover: &'p mut Prover<'m>,
}

/// Parses an integer literal of C, with an optional suffix such as `u`; `None` if it is none or needs 64 bits.
fn parse_number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    u64::from_str_radix(digits, radix).ok().filter(|number| i64::try_from(*number).is_ok())
}

type Parsed<T> = Result<T, (usize, String)>;

impl Parser<'_, '_, '_> {
    fn rest(&mut self) -> &str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn expected(&self, what: &str) -> (usize, String) {
        (self.text[..self.at].chars().count() + 1, format!("expected {what}"))
    }

    fn comparison(&mut self) -> Parsed<Claim> {
        if self.take("distinct(") {
            let start = self.at;
            let name = self.name();
            let module = self.prover.summary.module;
            let found =
                module.variables.keys().find(|id| variable_name(module, **id) == name && self.take(")"));
            self.at = if found.is_some() { self.at } else { start };
            return found
                .map(|id| Claim::DistinctContents(*id))
                .ok_or_else(|| self.expected("the name of a buffer"));
        }
        let left = self.sum()?;
        let operators = [">=", "<=", "==", "!=", ">", "<"];
        let Some(operator) = operators.into_iter().find(|one| self.take(one)) else {
            return Err(self.expected("a comparison: >=, <=, ==, !=, > or <"));
        };
        let right = self.sum()?;
        let terms = &mut self.prover.summary.terms;
        let term = match operator {
            "==" | "!=" => terms.equal(left, right),
            "<" | ">=" => terms.binary(Operator::LessSigned, left, right),
            _ => terms.binary(Operator::LessSigned, right, left),
        };
        Ok(Claim::Term(if matches!(operator, "!=" | ">=" | "<=") { terms.not(term) } else { term }))
    }

    fn sum(&mut self) -> Parsed<TermId> {
        let mut left = self.product()?;
        loop {
            let is_added = self.take("+");
            if !is_added && !self.take("-") {
                return Ok(left);
            }
            let right = self.product()?;
            let terms = &mut self.prover.summary.terms;
            left = if is_added { terms.add(left, right) } else { terms.subtract(left, right) };
        }
    }

    fn product(&mut self) -> Parsed<TermId> {
        let mut left = self.atom()?;
        let operators =
            [("*", Operator::Multiply), ("/", Operator::DivideSigned), ("%", Operator::RemainderSigned)];
        while let Some((_, operator)) = operators.iter().find(|(token, _)| self.take(token)) {
            let right = self.atom()?;
            left = self.prover.summary.terms.binary(operator.clone(), left, right);
        }
        Ok(left)
    }

    fn name(&mut self) -> String {
        let is_part = |c: char| c.is_alphanumeric() || "_.[]$@".contains(c);
        let rest = self.rest();
        let name = rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())].to_owned();
        self.at += name.len();
        name
    }

    fn atom(&mut self) -> Parsed<TermId> {
        if self.take("(") {
            let inner = self.sum()?;
            return if self.take(")") { Ok(inner) } else { Err(self.expected("`)`")) };
        }
        if self.take("-") {
            let value = self.atom()?;
            let zero = self.prover.summary.terms.constant(64, 0);
            return Ok(self.prover.summary.terms.subtract(zero, value));
        }
        let is_length = self.take("len(");
        self.rest();
        let start = self.at;
        let mut name = self.name();
        let is_number = name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains(['.', '@', '[']);
        if !is_length && is_number {
            let number = parse_number(&name);
            self.at = if number.is_none() { start } else { self.at };
            let number = number.ok_or_else(|| {
                self.expected(
                    "a number below 2^63: decimal, octal (017), hexadecimal (0x1f) or binary (0b101)",
                )
            })?;
            return Ok(self.prover.summary.terms.constant(64, number));
        }
        if is_length && self.take(")") || name.ends_with(".length") && self.take("()") {
            name = format!("{}.length()", name.trim_end_matches(".length"));
        }
        // The last part of a name suffices if it is unique.
        let exact = self.symbols.iter().find(|(known, _)| *known == name);
        let mut short = self.symbols.iter().filter(|(known, _)| known.ends_with(&format!(".{name}")));
        let found = exact.or_else(|| short.next().filter(|_| short.next().is_none())).map(|(_, id)| *id);
        let Some(id) = found else {
            self.at = start;
            let known: BTreeSet<&str> = self.symbols.iter().map(|(name, _)| &**name).collect();
            let known = Vec::from_iter(known).join(", ");
            return Err(self.expected(&format!("a number or one of {known}")));
        };
        let is_signed = is_signed(&self.prover.summary, id);
        Ok(self.prover.summary.terms.extend(id, 64, is_signed))
    }
}
