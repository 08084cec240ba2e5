//! Numbers in mixed radix: `x + a * (y + b * z)` with `x < a` and `y < b` determines `x`, `y` and `z`.
//!
//! A solver that knows products only in the abstract does not find this, and bit-blasted products are too much for it.
//! So an equality of two sums whose summands have a common factor is split: if the rest of both sides is below the
//! factor, the rests and the quotients are equal. This holds for sums and products that do not wrap. Quotients are split
//! again, by other factors.

use std::collections::BTreeMap;

use crate::term::{Operator, TermArena, TermId};

/// Upper bound on the summands of a polynomial.
const MAX_MONOMIALS: usize = 12;
/// Upper bound on the equalities that are split.
const MAX_EQUALITIES: usize = 8;
/// Upper bound on the splits of an equality, one in the quotient of the other.
const MAX_DEPTH: usize = 3;

/// A sum of products: by their sorted factors, their coefficients.
type Polynomial = BTreeMap<Vec<TermId>, u64>;

/// A common factor of some summands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Factor {
    Number(u64),
    Term(TermId),
}

/// Returns what equalities in some conditions imply for the digits of both sides.
///
/// The `exact` terms are assumed not to wrap.
pub(crate) fn radix_facts(terms: &mut TermArena, conjuncts: &[TermId], exact: &[TermId]) -> Vec<TermId> {
    let mut equalities = Vec::new();
    terms.for_each_subterm(conjuncts, |id| {
        if terms.term(id).operator == Operator::Equal {
            equalities.push(id);
        }
    });
    let mut facts = Vec::new();
    for id in equalities.into_iter().take(MAX_EQUALITIES) {
        let sides = terms.term(id).arguments.to_vec();
        let width = terms.width(sides[0]);
        if let [Some(left), Some(right)] = [0, 1].map(|side: usize| polynomial(terms, sides[side], exact))
            && left.keys().chain(right.keys()).any(|factors| factors.len() > 1)
        {
            split(terms, [&left, &right], width, &[id], &mut facts);
        }
    }
    facts
}

/// Adds what an equality of polynomials under some premises implies, for each common factor.
fn split(
    terms: &mut TermArena,
    sides: [&Polynomial; 2],
    width: u32,
    premises: &[TermId],
    facts: &mut Vec<TermId>,
) {
    for factor in common_factors(sides) {
        let [(first, low), (second, high)] = sides.map(|side| divide(side, factor));
        let by = match factor {
            Factor::Number(number) => terms.constant(width, number),
            Factor::Term(term) => terms.extend(term, width, false),
        };
        let [x, y, a, b] = [&low, &high, &first, &second].map(|part| term_of(terms, part, width));
        let are_digits = [x, y].map(|digit| terms.binary(Operator::Less, digit, by));
        let (same_digit, same_quotient) = (terms.equal(x, y), terms.equal(a, b));
        let mut premises = premises.to_vec();
        premises.extend(are_digits);
        let premise = terms.every(&premises);
        if terms.constant_of(premise) == Some(0) {
            continue;
        }
        let not = terms.not(premise);
        for conclusion in [same_digit, same_quotient] {
            facts.push(terms.any(&[not, conclusion]));
        }
        if premises.len() < 1 + 3 * MAX_DEPTH {
            premises.push(same_quotient);
            split(terms, [&first, &second], width, &premises, facts);
        }
    }
}

/// Returns the numbers and terms that divide some, but not all summands of both sides.
fn common_factors([left, right]: [&Polynomial; 2]) -> Vec<Factor> {
    let of = |side: &Polynomial| -> Vec<Factor> {
        let terms = side.keys().flatten().map(|term| Factor::Term(*term));
        let numbers = side.values().filter(|number| **number > 1).map(|number| Factor::Number(*number));
        terms.chain(numbers).collect()
    };
    let others = of(right);
    let mut common = of(left);
    common.retain(|factor| others.contains(factor));
    common.sort_unstable();
    common.dedup();
    common
}

/// Returns the quotient and the rest of a sum by a factor.
fn divide(sum: &Polynomial, by: Factor) -> (Polynomial, Polynomial) {
    let (mut quotient, mut rest) = (Polynomial::new(), Polynomial::new());
    for (factors, coefficient) in sum {
        let mut factors = factors.clone();
        let found = match by {
            Factor::Number(number) => (coefficient % number == 0).then_some(coefficient / number),
            Factor::Term(term) => factors.iter().position(|one| *one == term).map(|index| {
                factors.remove(index);
                *coefficient
            }),
        };
        let into = if found.is_some() { &mut quotient } else { &mut rest };
        *into.entry(factors).or_default() += found.unwrap_or(*coefficient);
    }
    (quotient, rest)
}

/// Returns the term of a polynomial.
fn term_of(terms: &mut TermArena, of: &Polynomial, width: u32) -> TermId {
    let one = terms.constant(width, 1);
    let mut summands = Vec::new();
    for (factors, coefficient) in of {
        let mut product = one;
        for factor in factors {
            let factor = terms.extend(*factor, width, false);
            product = terms.multiply(product, factor);
        }
        summands.push((product, *coefficient));
    }
    terms.sum(width, &summands, 0)
}

/// Returns a number as a sum of products of non-negative numbers that does not wrap; a part that may wrap is one factor.
///
/// `None` if it has too many summands.
fn polynomial(terms: &TermArena, id: TermId, exact: &[TermId]) -> Option<Polynomial> {
    let term = terms.term(id);
    let is_exact = terms.is_exact(id) || exact.contains(&id);
    let whole = || Some(Polynomial::from([(vec![id], 1)]));
    match &term.operator {
        Operator::Constant(value) => Some(Polynomial::from([(Vec::new(), *value)])),
        Operator::Sum { coefficients, constant } => {
            let is_positive = |number: &u64| *number <= arithmetic::mask(term.width) >> 1;
            let is_sum = is_exact || exact.iter().any(|sum| is_part(terms, id, *sum));
            if !is_sum || !coefficients.iter().chain([constant]).all(is_positive) {
                return whole();
            }
            let mut sum = Polynomial::new();
            if *constant > 0 {
                sum.insert(Vec::new(), *constant);
            }
            for (argument, coefficient) in term.arguments.iter().zip(coefficients) {
                for (factors, number) in polynomial(terms, *argument, exact)? {
                    let known = sum.entry(factors).or_default();
                    *known = known.checked_add(number.checked_mul(*coefficient)?)?;
                }
            }
            (sum.len() <= MAX_MONOMIALS).then_some(sum)
        }
        Operator::Multiply if is_exact => {
            let [left, right] = [0, 1].map(|side: usize| polynomial(terms, term.arguments[side], exact));
            let (left, right) = (left?, right?);
            let mut product = Polynomial::new();
            for (first, number) in &left {
                for (second, other) in &right {
                    let mut factors: Vec<TermId> = first.iter().chain(second).copied().collect();
                    factors.sort_unstable();
                    let known = product.entry(factors).or_default();
                    *known = known.checked_add(number.checked_mul(*other)?)?;
                }
            }
            (product.len() <= MAX_MONOMIALS).then_some(product)
        }
        Operator::Extend => polynomial(terms, term.arguments[0], exact),
        _ => whole(),
    }
}

/// Returns true if a sum has only summands of another one.
fn is_part(terms: &TermArena, part: TermId, whole: TermId) -> bool {
    let ((parts, constant), (all, other)) = (terms.linear_form(part), terms.linear_form(whole));
    let is_positive = |number: u64| number <= arithmetic::mask(terms.width(whole)) >> 1;
    terms.width(part) == terms.width(whole)
        && constant <= other
        && all.iter().all(|(_, number)| is_positive(*number))
        && parts.iter().all(|(atom, number)| all.iter().any(|(one, limit)| one == atom && number <= limit))
}
