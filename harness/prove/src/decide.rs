//! Decides whether terms can hold together: by bit-blasting, exactly or with products left abstract.
//!
//! Exactly, a term becomes a circuit of its bits, and a function has equal results for equal arguments. Products of two
//! unknown numbers are too much for a SAT solver; so they are abstract first: any number, with what linear reasoning
//! needs. If the product `c * b` does not wrap, `a < c` implies `a * b + b <= c * b`. A quotient `q = a / b` has
//! `q * b <= a < q * b + b`. What holds in the abstraction holds exactly, except that a condition remains if a
//! product or sum is only assumed not to wrap.

use rustc_hash::FxHashMap;
use solver::{Bit, BitVector, Budget, BudgetTracker, Circuit, CircuitSolver, ShiftKind};

use crate::term::{Function, FunctionId, FunctionKind, Operator, Term, TermArena, TermId};

/// Upper bound on the applications of one function that are compared with each other.
const MAX_APPLICATIONS: usize = 64;
/// Upper bound on the products that are compared with each other.
const MAX_PRODUCTS: usize = 24;

/// The values of the symbols of a counterexample.
#[derive(Clone, Debug, Default)]
pub(crate) struct TermModel {
    /// The value of each application, by term.
    pub values: FxHashMap<TermId, u64>,
}

/// An answer about a conjunction.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    Impossible,
    Possible(TermModel),
    Unknown,
}

/// The treatment of products and quotients of unknown numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    Exact,
    Abstract,
}

/// Limits of the inputs of a model, which make circuits small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallInputs {
    /// The bits of the workgroups of a dimension.
    pub group_bits: u32,
    /// The bits of scalar inputs and of iterations.
    pub scalar_bits: u32,
}

/// Limits of the inputs of a counterexample; the first with a model is taken.
pub(crate) const SMALL_INPUTS: [SmallInputs; 4] = [
    SmallInputs { group_bits: 2, scalar_bits: 8 },
    SmallInputs { group_bits: 3, scalar_bits: 12 },
    SmallInputs { group_bits: 6, scalar_bits: 20 },
    SmallInputs { group_bits: 64, scalar_bits: 64 },
];

/// A question whether terms can hold together.
pub(crate) struct Question<'a> {
    pub conjuncts: &'a [TermId],
    pub products: Products,
    /// Products and sums of the abstraction that are assumed not to wrap.
    pub exact: &'a [TermId],
    pub small: Option<SmallInputs>,
    pub steps: u64,
}

/// Two factors and the product, and whether it is known not to wrap.
type AbstractProduct = (BitVector, BitVector, BitVector, Bit);

/// A sum of a product and the rest that does not wrap.
struct ExactSum {
    sum: BitVector,
    product: BitVector,
    rest: BitVector,
}

/// A translation of terms to circuits.
struct Blaster<'t> {
    terms: &'t TermArena,
    products: Products,
    small: Option<SmallInputs>,
    vectors: FxHashMap<TermId, BitVector>,
    /// Applications by function, with their arguments.
    applications: FxHashMap<FunctionId, Vec<TermId>>,
    abstract_products: Vec<AbstractProduct>,
    /// Abstract quotients: dividend and divisor, with quotient and remainder.
    abstract_quotients: Vec<(BitVector, BitVector, (BitVector, BitVector))>,
    requirements: Vec<Bit>,
}

/// A function that returns true once a limit, such as a deadline, is reached.
pub type Stop<'s> = &'s (dyn Fn() -> bool + Sync);

/// Decides a conjunction of terms within a number of steps, until `stop` returns true.
pub(crate) fn decide(terms: &TermArena, question: &Question<'_>, stop: Option<Stop<'_>>) -> (Decision, u64) {
    let Question { conjuncts, products, exact, small, steps } = *question;
    if conjuncts.iter().any(|one| terms.constant_of(*one) == Some(0)) {
        return (Decision::Impossible, 0);
    }
    // Without steps, the circuits would be built for nothing.
    if steps == 0 || stop.is_some_and(|stop| stop()) {
        return (Decision::Unknown, 0);
    }
    let tracker = BudgetTracker::new(stop.map_or(Budget::UNLIMITED, Budget::until).with_step_limit(steps));
    let mut solver = CircuitSolver::new(&tracker);
    let mut blaster = Blaster {
        terms,
        products,
        small,
        vectors: FxHashMap::default(),
        applications: FxHashMap::default(),
        abstract_products: Vec::new(),
        abstract_quotients: Vec::new(),
        requirements: Vec::new(),
    };
    let circuit = &mut solver.circuit;
    for one in exact {
        blaster.require_exact(circuit, *one);
    }
    let mut bits: Vec<Bit> = conjuncts.iter().map(|one| blaster.bit(circuit, *one)).collect();
    blaster.relate_products(circuit, exact);
    bits.append(&mut blaster.requirements);
    for bit in bits {
        if bit == Bit::FALSE {
            return (Decision::Impossible, tracker.spent_steps());
        }
        solver.require(bit);
    }
    let decision = match solver.solve(&[]) {
        Some(false) => Decision::Impossible,
        None => Decision::Unknown,
        Some(true) if products == Products::Abstract && !blaster.abstract_products.is_empty() => {
            Decision::Unknown
        }
        Some(true) => {
            let assignment = solver.assignment();
            let applications = blaster
                .vectors
                .iter()
                .filter(|(id, _)| matches!(terms.term(**id).operator, Operator::Apply(_)));
            let values = applications.map(|(id, vector)| (*id, assignment.number(vector) as u64)).collect();
            Decision::Possible(TermModel { values })
        }
    };
    (decision, tracker.spent_steps())
}

/// Returns the bits of the results of a function.
pub(crate) fn result_bits(function: &Function, small: Option<SmallInputs>) -> u32 {
    let limit = small.map_or(64, |small| match function.kind {
        FunctionKind::GroupId(_) | FunctionKind::GroupCount(_) => small.group_bits,
        FunctionKind::Contents(..)
        | FunctionKind::BufferElements(_)
        | FunctionKind::Specialization(_)
        | FunctionKind::Iteration(_)
        | FunctionKind::LastIteration(_) => small.scalar_bits,
        FunctionKind::LocalId(_)
        | FunctionKind::Subgroup(_)
        | FunctionKind::Elected
        | FunctionKind::Carried
        | FunctionKind::Computation(_)
        | FunctionKind::Arbitrary
        | FunctionKind::Unwritten => 64,
    });
    function.width.min(limit)
}

impl Blaster<'_> {
    fn bit(&mut self, circuit: &mut Circuit, id: TermId) -> Bit {
        self.vector(circuit, id).bits().first().copied().unwrap_or(Bit::FALSE)
    }

    fn vector(&mut self, circuit: &mut Circuit, root: TermId) -> BitVector {
        let mut open = vec![root];
        while let Some(&id) = open.last() {
            if self.vectors.contains_key(&id) {
                open.pop();
                continue;
            }
            let before = open.len();
            let term = self.terms.term(id);
            open.extend(term.arguments.iter().copied().filter(|one| !self.vectors.contains_key(one)));
            if open.len() > before {
                continue;
            }
            open.pop();
            let vector = self.translate(circuit, id, term);
            self.vectors.insert(id, vector);
        }
        self.vectors[&root].clone()
    }

    fn translate(&mut self, circuit: &mut Circuit, id: TermId, term: &Term) -> BitVector {
        let width = term.width as usize;
        let argument = |index: usize| self.vectors[&term.arguments[index]].clone();
        let one = |bit: Bit| -> BitVector { std::iter::once(bit).collect() };
        match &term.operator {
            Operator::Constant(value) => BitVector::constant(width, u128::from(*value)),
            Operator::Apply(function) => self.apply(circuit, id, *function, term),
            Operator::Sum { coefficients, constant } => {
                let mut sum = BitVector::constant(width, u128::from(*constant));
                for (index, coefficient) in coefficients.iter().enumerate() {
                    // A negative factor is subtracted, which takes fewer gates.
                    let negated = coefficient.wrapping_neg() & arithmetic::mask(term.width);
                    let is_negative = negated.count_ones() < coefficient.count_ones();
                    let factor = BitVector::constant(
                        width,
                        u128::from(if is_negative { negated } else { *coefficient }),
                    );
                    let product = circuit.mul(&argument(index), &factor);
                    sum = if is_negative { circuit.sub(&sum, &product) } else { circuit.add(&sum, &product) };
                }
                sum
            }
            Operator::Multiply => {
                let (a, b) = (argument(0), argument(1));
                match self.products {
                    Products::Exact => circuit.mul(&a, &b),
                    Products::Abstract => {
                        let (x, y) =
                            (self.terms.range(term.arguments[0]), self.terms.range(term.arguments[1]));
                        let fits =
                            u128::from(x.1) * u128::from(y.1) <= u128::from(arithmetic::mask(term.width));
                        self.abstract_product(circuit, a, b, Bit::from(fits))
                    }
                }
            }
            Operator::Divide | Operator::Remainder => {
                let (a, b) = (argument(0), argument(1));
                let is_known = b.to_constant().is_some();
                match (&term.operator, self.products) {
                    (Operator::Divide, _) if is_known => circuit.udiv(&a, &b),
                    (Operator::Divide, Products::Exact) => circuit.udiv(&a, &b),
                    (Operator::Divide, Products::Abstract) => self.abstract_quotient(circuit, &a, &b).0,
                    (_, Products::Abstract) if !is_known => self.abstract_quotient(circuit, &a, &b).1,
                    _ => circuit.urem(&a, &b),
                }
            }
            Operator::DivideSigned | Operator::RemainderSigned => {
                let (a, b) = (argument(0), argument(1));
                let is_quotient = term.operator == Operator::DivideSigned;
                match self.products {
                    Products::Abstract if b.to_constant().is_none() => {
                        let (quotient, rest) = self.abstract_signed_quotient(circuit, &a, &b);
                        if is_quotient { quotient } else { rest }
                    }
                    _ if is_quotient => circuit.sdiv(&a, &b),
                    _ => circuit.srem(&a, &b),
                }
            }
            Operator::And => circuit.bit_and(&argument(0), &argument(1)),
            Operator::Or => circuit.bit_or(&argument(0), &argument(1)),
            Operator::Xor => circuit.bit_xor(&argument(0), &argument(1)),
            Operator::ShiftLeft => circuit.shift(ShiftKind::Left, &argument(0), &argument(1)),
            Operator::ShiftRight => circuit.shift(ShiftKind::LogicalRight, &argument(0), &argument(1)),
            Operator::ShiftRightSigned => {
                circuit.shift(ShiftKind::ArithmeticRight, &argument(0), &argument(1))
            }
            Operator::Extend | Operator::Truncate => argument(0).resize(width),
            Operator::ExtendSigned => argument(0).resize_signed(width),
            Operator::Select => {
                let condition = argument(0).bits()[0];
                circuit.select(condition, &argument(1), &argument(2))
            }
            Operator::Equal => one(circuit.equals(&argument(0), &argument(1))),
            Operator::Less => one(circuit.less_than(&argument(0), &argument(1))),
            Operator::LessSigned => one(circuit.less_than_signed(&argument(0), &argument(1))),
            Operator::Every => {
                let bits: Vec<Bit> = term.arguments.iter().map(|part| self.vectors[part].bits()[0]).collect();
                one(circuit.all(&bits))
            }
            Operator::Not => one(!argument(0).bits()[0]),
        }
    }

    /// Returns the result of a function: an unknown number, equal to those for equal arguments.
    fn apply(&mut self, circuit: &mut Circuit, id: TermId, function: FunctionId, term: &Term) -> BitVector {
        let function_of = self.terms.function(function);
        let (low, high) = function_of.range;
        let bits = result_bits(function_of, self.small).min(64 - high.leading_zeros());
        let result = circuit.variable(bits as usize).resize(term.width as usize);
        if low > 0 {
            let low = BitVector::constant(result.width(), u128::from(low));
            self.requirements.push(circuit.less_or_equal(&low, &result));
        }
        if high < arithmetic::mask(term.width) {
            let high = BitVector::constant(result.width(), u128::from(high));
            self.requirements.push(circuit.less_or_equal(&result, &high));
        }
        if term.arguments.is_empty() {
            return result;
        }
        let known = self.applications.entry(function).or_default();
        if known.len() < MAX_APPLICATIONS {
            for other in known.iter() {
                let arguments = self.terms.term(*other).arguments.iter().zip(&term.arguments);
                let equal: Vec<Bit> =
                    arguments.map(|(a, b)| circuit.equals(&self.vectors[a], &self.vectors[b])).collect();
                let (all, same) = (circuit.all(&equal), circuit.equals(&self.vectors[other], &result));
                self.requirements.push(circuit.implies(all, same));
            }
            known.push(id);
        }
        result
    }

    fn abstract_product(
        &mut self,
        circuit: &mut Circuit,
        a: BitVector,
        b: BitVector,
        fits: Bit,
    ) -> BitVector {
        let is_same = |x: &BitVector, y: &BitVector| (x, y) == (&a, &b) || (y, x) == (&a, &b);
        if let Some(known) = self.abstract_products.iter_mut().find(|one| is_same(&one.0, &one.1)) {
            known.3 = if fits == Bit::TRUE { fits } else { known.3 };
            return known.2.clone();
        }
        let product = circuit.variable(a.width());
        let zero = BitVector::constant(a.width(), 0);
        for (factor, other) in [(&a, &b), (&b, &a)] {
            let is_zero = circuit.equals(factor, &zero);
            let product_is_zero = circuit.equals(&product, &zero);
            self.requirements.push(circuit.implies(is_zero, product_is_zero));
            let is_one = circuit.equals(factor, &BitVector::constant(a.width(), 1));
            let product_is_other = circuit.equals(&product, other);
            self.requirements.push(circuit.implies(is_one, product_is_other));
        }
        self.abstract_products.push((a, b, product.clone(), fits));
        product
    }

    /// Returns the quotient and the remainder by a divisor that is not zero.
    fn abstract_quotient(
        &mut self,
        circuit: &mut Circuit,
        a: &BitVector,
        b: &BitVector,
    ) -> (BitVector, BitVector) {
        if let Some((.., known)) = self.abstract_quotients.iter().find(|one| (&one.0, &one.1) == (a, b)) {
            return known.clone();
        }
        let quotient = circuit.variable(a.width());
        // The product is at most the dividend, so it does not wrap.
        let product = self.abstract_product(circuit, quotient.clone(), b.clone(), Bit::TRUE);
        let remainder = circuit.sub(a, &product);
        let zero = BitVector::constant(b.width(), 0);
        let is_zero = circuit.equals(b, &zero);
        let (is_below, is_rest) = (circuit.less_or_equal(&product, a), circuit.less_than(&remainder, b));
        let is_quotient = circuit.and(is_below, is_rest);
        self.requirements.push(circuit.or(is_zero, is_quotient));
        let result = (quotient, remainder);
        self.abstract_quotients.push((a.clone(), b.clone(), result.clone()));
        result
    }

    /// Returns the quotient and the remainder of signed numbers: those of the magnitudes, with their signs.
    fn abstract_signed_quotient(
        &mut self,
        circuit: &mut Circuit,
        a: &BitVector,
        b: &BitVector,
    ) -> (BitVector, BitVector) {
        let zero = BitVector::constant(a.width(), 0);
        let signs = [a, b].map(|one| one.bits().last().copied().unwrap_or(Bit::FALSE));
        let signed = |circuit: &mut Circuit, of: &BitVector, sign: Bit| {
            let negated = circuit.sub(&zero, of);
            circuit.select(sign, &negated, of)
        };
        let (dividend, divisor) = (signed(circuit, a, signs[0]), signed(circuit, b, signs[1]));
        let (quotient, rest) = self.abstract_quotient(circuit, &dividend, &divisor);
        let differ = circuit.xor(signs[0], signs[1]);
        (signed(circuit, &quotient, differ), signed(circuit, &rest, signs[0]))
    }

    /// Requires that a product or a sum does not wrap.
    fn require_exact(&mut self, circuit: &mut Circuit, id: TermId) {
        self.vector(circuit, id);
        let term = self.terms.term(id).clone();
        match &term.operator {
            Operator::Multiply => {
                let (result, a, b) = (
                    self.vectors[&id].clone(),
                    self.vectors[&term.arguments[0]].clone(),
                    self.vectors[&term.arguments[1]].clone(),
                );
                if self.products == Products::Exact {
                    let wide = 2 * a.width();
                    let high = circuit.mul(&a.resize(wide), &b.resize(wide)).slice(a.width(), a.width());
                    let zero = BitVector::constant(high.width(), 0);
                    self.requirements.push(circuit.equals(&high, &zero));
                    return;
                }
                for product in &mut self.abstract_products {
                    if product.2 == result {
                        product.3 = Bit::TRUE;
                    }
                }
                // A product is at least each factor, if the other is not zero.
                let zero = BitVector::constant(a.width(), 0);
                for (factor, other) in [(&a, &b), (&b, &a)] {
                    let (is_zero, is_above) =
                        (circuit.equals(other, &zero), circuit.less_or_equal(factor, &result));
                    self.requirements.push(circuit.or(is_zero, is_above));
                }
            }
            Operator::Sum { coefficients, constant } => {
                term.arguments.iter().for_each(|atom| self.require_exact(circuit, *atom));
                let wide = term.width as usize + 40;
                let signed = |value: u64| arithmetic::sign_extend(value, term.width);
                let mut sum = BitVector::constant(wide, signed(*constant) as i128 as u128);
                for (argument, coefficient) in term.arguments.iter().zip(coefficients) {
                    let factor = signed(*coefficient);
                    let magnitude = BitVector::constant(wide, u128::from(factor.unsigned_abs()));
                    let product = circuit.mul(&self.vectors[argument].resize(wide), &magnitude);
                    sum = if factor < 0 { circuit.sub(&sum, &product) } else { circuit.add(&sum, &product) };
                }
                let high = sum.slice(term.width as usize, wide - term.width as usize);
                let zero = BitVector::constant(high.width(), 0);
                self.requirements.push(circuit.equals(&high, &zero));
            }
            _ => {}
        }
    }

    /// Adds what products with a common factor, and sums with such products, have in common.
    fn relate_products(&mut self, circuit: &mut Circuit, exact: &[TermId]) {
        let sums = self.exact_sums(circuit, exact);
        let products = std::mem::take(&mut self.abstract_products);
        for (index, first) in products.iter().enumerate().take(MAX_PRODUCTS) {
            for second in products.iter().take(index) {
                let factors =
                    |one: &AbstractProduct| [(one.0.clone(), one.1.clone()), (one.1.clone(), one.0.clone())];
                for (a, b) in factors(first) {
                    for (c, d) in factors(second) {
                        // Factors that are equal for some inputs only are too many for the solver.
                        if a.width() == c.width() && b == d {
                            self.relate_pair(circuit, [(&a, first), (&c, second)], &b, &sums);
                        }
                    }
                }
            }
        }
        self.abstract_products = products;
        for (index, (a, b, (quotient, remainder))) in self.abstract_quotients.iter().enumerate() {
            for (c, d, (other, rest)) in self.abstract_quotients.iter().take(index) {
                if b == d {
                    let equal = [circuit.equals(quotient, other), circuit.equals(remainder, rest)];
                    let (both, same) = (circuit.all(&equal), circuit.equals(a, c));
                    self.requirements.push(circuit.implies(both, same));
                }
            }
        }
    }

    /// Relates the products of two numbers with one factor.
    fn relate_pair(
        &mut self,
        circuit: &mut Circuit,
        [(a, first), (c, second)]: [(&BitVector, &AbstractProduct); 2],
        factor: &BitVector,
        sums: &[ExactSum],
    ) {
        let (same, equal) = (circuit.equals(a, c), circuit.equals(&first.2, &second.2));
        self.requirements.push(circuit.implies(same, equal));
        let wide = a.width() + 1;
        // If the product of the larger number does not wrap, neither does the other one.
        for ((x, low), (y, high), fits) in
            [((a, &first.2), (c, &second.2), second.3), ((c, &second.2), (a, &first.2), first.3)]
        {
            let is_less = circuit.less_than(x, y);
            let next = circuit.add(&low.resize(wide), &factor.resize(wide));
            let is_below = circuit.less_or_equal(&next, &high.resize(wide));
            let premise = circuit.and(fits, is_less);
            self.requirements.push(circuit.implies(premise, is_below));
            // The same follows for sums, but the solver needs long to find it.
            for one in sums.iter().filter(|one| one.product == *low) {
                for other in sums.iter().filter(|other| other.product == *high) {
                    let is_rest = circuit.less_than(&one.rest, factor);
                    let premise = circuit.all(&[premise, is_rest]);
                    let is_less = circuit.less_than(&one.sum, &other.sum);
                    self.requirements.push(circuit.implies(premise, is_less));
                    let (same_sum, same_rest) =
                        (circuit.equals(&one.sum, &other.sum), circuit.equals(&one.rest, &other.rest));
                    let premise = circuit.and(same, same_sum);
                    self.requirements.push(circuit.implies(premise, same_rest));
                }
            }
        }
    }

    /// Returns the sums of a product and of non-negative summands that do not wrap.
    fn exact_sums(&mut self, circuit: &mut Circuit, exact: &[TermId]) -> Vec<ExactSum> {
        let mut ids: Vec<TermId> = self.vectors.keys().copied().collect();
        ids.sort_unstable();
        let mut found = Vec::new();
        for id in ids {
            let term = self.terms.term(id);
            let Operator::Sum { coefficients, constant } = &term.operator else { continue };
            let is_exact = self.terms.is_exact(id) || exact.contains(&id);
            let is_positive = |number: &u64| *number <= arithmetic::mask(term.width) >> 1;
            if !is_exact || !coefficients.iter().chain([constant]).all(is_positive) {
                continue;
            }
            let width = term.width as usize;
            for (index, atom) in term.arguments.iter().enumerate() {
                if self.terms.term(*atom).operator != Operator::Multiply || coefficients[index] != 1 {
                    continue;
                }
                let mut rest = BitVector::constant(width, u128::from(*constant));
                for (other, atom) in term.arguments.iter().enumerate().filter(|(other, _)| *other != index) {
                    let factor = BitVector::constant(width, u128::from(coefficients[other]));
                    let summand = circuit.mul(&self.vectors[atom], &factor);
                    rest = circuit.add(&rest, &summand);
                }
                let (sum, product) = (self.vectors[&id].clone(), self.vectors[atom].clone());
                found.push(ExactSum { sum, product, rest });
            }
        }
        found
    }
}
