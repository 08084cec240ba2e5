//! Hash-consed terms over bit-vectors: what an invocation computes as a function of symbols.
//!
//! Sums are kept in a normal form, a linear combination modulo 2^width, so equal addresses are equal terms and
//! differences of addresses often fold to a constant. Each term carries an unsigned range. A number of one bit is a
//! truth value. Uninterpreted functions stand for inputs, contents of memory and results that are not modelled.
//!
//! Long because each operator has its rule of simplification, its range and its value.

use arithmetic::{mask, sign_extend};
use rspirv::spirv::BuiltIn;
use rustc_hash::{FxHashMap, FxHashSet};

/// Upper bound on nested sums and products of extended numbers.
const MAX_WIDENED: u32 = 4;

/// A term of a [`TermArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(u32);

impl TermId {
    pub fn number(self) -> u32 {
        self.0
    }
}

/// An uninterpreted function of a [`TermArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u32);

impl FunctionId {
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The invocations that share a value at the same point of their execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uniformity {
    Grid,
    Workgroup,
    Invocation,
}

/// The meaning of an uninterpreted function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// A component of `LocalInvocationId`, by axis.
    LocalId(usize),
    /// A component of `WorkgroupId`.
    GroupId(usize),
    /// A component of `NumWorkgroups`.
    GroupCount(usize),
    /// A built-in number of subgroups.
    Subgroup(BuiltIn),
    /// True for the elected lane of a subgroup.
    Elected,
    /// A specialization constant, by id.
    Specialization(u32),
    /// The contents of read-only memory, by variable and bits, at a byte offset.
    Contents(u32, u32),
    /// The length of a runtime array, by variable.
    BufferElements(u32),
    /// The iteration of a loop, counted from 0.
    Iteration(usize),
    /// The last iteration of a loop, of the iterations of the loops around it.
    LastIteration(usize),
    /// The value of a loop-carried variable in an iteration.
    Carried,
    /// A computation that is not modelled.
    Computation(String),
    /// Any value.
    Arbitrary,
    /// The contents of a variable before its first store: any value.
    Unwritten,
}

/// An uninterpreted function with a result of a width.
#[derive(Clone, Debug)]
pub struct Function {
    pub kind: FunctionKind,
    pub width: u32,
    pub range: (u64, u64),
    /// The least uniformity of its results for equal arguments.
    pub uniformity: Uniformity,
    /// The terms whose uniformity its results share.
    pub sources: Vec<TermId>,
    /// For the other invocation of a pair, the function of the first one.
    pub original: Option<FunctionId>,
}

/// The operator of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    Constant(u64),
    Apply(FunctionId),
    /// The sum of a constant and the arguments, each times its coefficient.
    Sum {
        coefficients: Box<[u64]>,
        constant: u64,
    },
    Multiply,
    Divide,
    Remainder,
    DivideSigned,
    RemainderSigned,
    And,
    Or,
    Xor,
    /// Shifts give zeros, or signs, if the amount is not below the width.
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    Extend,
    ExtendSigned,
    Truncate,
    Select,
    Equal,
    Less,
    LessSigned,
    /// The conjunction of its arguments, which are sorted.
    Every,
    Not,
}

/// A term: an operator, its arguments and the width of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    pub operator: Operator,
    pub arguments: Box<[TermId]>,
    pub width: u32,
}

/// All terms of a proof.
#[derive(Clone, Debug, Default)]
pub struct TermArena {
    terms: Vec<Term>,
    ranges: Vec<(u64, u64)>,
    known: FxHashMap<Term, TermId>,
    pub functions: Vec<Function>,
    named: FxHashMap<(FunctionKind, u32), FunctionId>,
}

/// A replacement of the applications of functions.
pub trait Substitution {
    /// Returns the term for an application, whose arguments are replaced already; `None` keeps the function.
    fn apply(&mut self, terms: &mut TermArena, function: FunctionId, arguments: &[TermId]) -> Option<TermId>;
}

/// Replaces nothing.
struct Unchanged;

impl Substitution for Unchanged {
    fn apply(&mut self, _: &mut TermArena, _: FunctionId, _: &[TermId]) -> Option<TermId> {
        None
    }
}

impl TermArena {
    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize]
    }

    pub fn width(&self, id: TermId) -> u32 {
        self.term(id).width
    }

    /// Returns bounds of the unsigned value.
    pub fn range(&self, id: TermId) -> (u64, u64) {
        self.ranges[id.0 as usize]
    }

    pub fn ids(&self) -> impl Iterator<Item = TermId> + use<> {
        (0..self.terms.len() as u32).map(TermId)
    }

    /// Returns true if a term selects among some terms only.
    pub fn has_only_leaves(&self, id: TermId, leaves: &[TermId]) -> bool {
        let (mut open, mut visited) = (vec![id], FxHashSet::default());
        while let Some(id) = open.pop() {
            let term = self.term(id);
            match term.operator {
                _ if leaves.contains(&id) => {}
                Operator::Select if visited.insert(id) => open.extend(&term.arguments[1..]),
                Operator::Select => {}
                _ => return false,
            }
        }
        true
    }

    /// Returns the number of terms.
    pub fn count(&self) -> usize {
        self.terms.len()
    }

    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    pub fn function_mut(&mut self, id: FunctionId) -> &mut Function {
        &mut self.functions[id.0 as usize]
    }

    pub fn constant_of(&self, id: TermId) -> Option<u64> {
        match self.term(id).operator {
            Operator::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the signed value of a constant.
    pub fn signed_constant(&self, id: TermId) -> Option<i64> {
        self.constant_of(id).map(|value| sign_extend(value, self.width(id)))
    }

    fn add_term(&mut self, operator: Operator, arguments: &[TermId], width: u32) -> TermId {
        let term = Term { operator, arguments: arguments.into(), width };
        if let Some(known) = self.known.get(&term) {
            return *known;
        }
        let range = self.compute_range(&term);
        let id = TermId(self.terms.len() as u32);
        self.terms.push(term.clone());
        self.ranges.push(range);
        self.known.insert(term, id);
        if range.0 == range.1 && !matches!(self.term(id).operator, Operator::Constant(_)) {
            return self.constant(width, range.0);
        }
        id
    }

    pub fn constant(&mut self, width: u32, value: u64) -> TermId {
        self.add_term(Operator::Constant(value & mask(width)), &[], width)
    }

    pub fn truth(&mut self, value: bool) -> TermId {
        self.constant(1, value.into())
    }

    /// Adds a function.
    pub fn add_function(&mut self, function: Function) -> FunctionId {
        self.functions.push(function);
        FunctionId(self.functions.len() as u32 - 1)
    }

    /// Returns the function of a kind and width, which exists once.
    pub fn named_function(
        &mut self,
        kind: FunctionKind,
        width: u32,
        range: (u64, u64),
        uniformity: Uniformity,
    ) -> FunctionId {
        if let Some(known) = self.named.get(&(kind.clone(), width)) {
            return *known;
        }
        let (sources, original) = (Vec::new(), None);
        let id =
            self.add_function(Function { kind: kind.clone(), width, range, uniformity, sources, original });
        self.named.insert((kind, width), id);
        id
    }

    pub fn apply(&mut self, function: FunctionId, arguments: &[TermId]) -> TermId {
        let width = self.function(function).width;
        self.add_term(Operator::Apply(function), arguments, width)
    }

    /// Applies the function of a kind, whose results may be any number and are equal in the whole grid.
    pub fn apply_named(&mut self, kind: FunctionKind, width: u32, arguments: &[TermId]) -> TermId {
        let function = self.named_function(kind, width, (0, mask(width)), Uniformity::Grid);
        self.apply(function, arguments)
    }

    /// Returns the kind of the function that a term applies.
    pub fn kind_of(&self, id: TermId) -> Option<&FunctionKind> {
        match self.term(id).operator {
            Operator::Apply(function) => Some(&self.function(function).kind),
            _ => None,
        }
    }

    /// Returns the linear form of a term: coefficients and atoms, and the constant.
    pub fn linear_form(&self, id: TermId) -> (Vec<(TermId, u64)>, u64) {
        let term = self.term(id);
        match &term.operator {
            Operator::Constant(value) => (Vec::new(), *value),
            Operator::Sum { coefficients, constant } => {
                (term.arguments.iter().copied().zip(coefficients.iter().copied()).collect(), *constant)
            }
            _ => (vec![(id, 1)], 0),
        }
    }

    /// Returns the sum of terms of one width, each times a coefficient.
    pub fn sum(&mut self, width: u32, summands: &[(TermId, u64)], constant: u64) -> TermId {
        let (mut all, mut total) = (Vec::new(), constant);
        for (term, factor) in summands {
            let (inner, constant) = self.linear_form(*term);
            total = total.wrapping_add(constant.wrapping_mul(*factor));
            all.extend(
                inner.into_iter().map(|(atom, coefficient)| (atom, coefficient.wrapping_mul(*factor))),
            );
        }
        all.sort_unstable_by_key(|(atom, _)| *atom);
        let mut merged: Vec<(TermId, u64)> = Vec::with_capacity(all.len());
        for (atom, coefficient) in all {
            match merged.last_mut() {
                Some((last, known)) if *last == atom => *known = known.wrapping_add(coefficient),
                _ => merged.push((atom, coefficient)),
            }
        }
        merged.iter_mut().for_each(|(_, coefficient)| *coefficient &= mask(width));
        merged.retain(|(_, coefficient)| *coefficient != 0);
        self.fold_remainder(&mut merged, &mut total, width);
        let constant = total & mask(width);
        match merged.as_slice() {
            [] => self.constant(width, constant),
            [(atom, 1)] if constant == 0 => *atom,
            _ => {
                let atoms: Vec<TermId> = merged.iter().map(|(atom, _)| *atom).collect();
                let coefficients = merged.iter().map(|(_, coefficient)| *coefficient).collect();
                self.add_term(Operator::Sum { coefficients, constant }, &atoms, width)
            }
        }
    }

    /// Replaces `c * a - c * (a / b * b)` in a linear form by the remainder.
    fn fold_remainder(&mut self, atoms: &mut Vec<(TermId, u64)>, total: &mut u64, width: u32) {
        for index in 0..atoms.len() {
            let (product, coefficient) = atoms[index];
            let Term { operator: Operator::Multiply, arguments, .. } = self.term(product) else { continue };
            let quotient = arguments.iter().find_map(|part| match self.term(*part) {
                Term { operator: Operator::Divide, arguments: of, .. } if arguments.contains(&of[1]) => {
                    Some((of[0], of[1]))
                }
                _ => None,
            });
            let Some((a, b)) = quotient else { continue };
            let factor = coefficient.wrapping_neg() & mask(width);
            let (parts, constant) = self.linear_form(a);
            let scaled: Vec<(TermId, u64)> =
                parts.iter().map(|(atom, times)| (*atom, times.wrapping_mul(factor) & mask(width))).collect();
            if scaled.iter().all(|part| atoms.contains(part)) {
                atoms.retain(|atom| atom.0 != product && !scaled.contains(atom));
                *total = total.wrapping_sub(constant.wrapping_mul(factor));
                atoms.push((self.binary(Operator::Remainder, a, b), factor));
                atoms.sort_unstable();
                return;
            }
        }
    }

    pub fn add(&mut self, a: TermId, b: TermId) -> TermId {
        self.sum(self.width(a), &[(a, 1), (b, 1)], 0)
    }

    pub fn subtract(&mut self, a: TermId, b: TermId) -> TermId {
        self.sum(self.width(a), &[(a, 1), (b, u64::MAX)], 0)
    }

    pub fn scale(&mut self, a: TermId, factor: u64) -> TermId {
        self.sum(self.width(a), &[(a, factor)], 0)
    }

    pub fn multiply(&mut self, a: TermId, b: TermId) -> TermId {
        let width = self.width(a);
        if let Some(factor) = self.constant_of(a) {
            return self.scale(b, factor);
        }
        if let Some(factor) = self.constant_of(b) {
            return self.scale(a, factor);
        }
        // A factor of one multiple is moved out, so that products of the same atoms are the same term.
        for (one, other) in [(a, b), (b, a)] {
            if let (&[(atom, factor)], 0) = (self.linear_form(one).0.as_slice(), self.linear_form(one).1)
                && factor != 1
            {
                let product = self.multiply(atom, other);
                return self.scale(product, factor);
            }
        }
        self.add_term(Operator::Multiply, &[a.min(b), a.max(b)], width)
    }

    /// Returns a binary operation; comparisons have one bit.
    pub fn binary(&mut self, operator: Operator, a: TermId, b: TermId) -> TermId {
        let width = self.width(a);
        let constants = (self.constant_of(a), self.constant_of(b));
        if let (Some(x), Some(y)) = constants
            && let Some(value) = fold(&operator, x, y, width)
        {
            return self.constant(result_width(&operator, width), value);
        }
        let ((a_low, a_high), (b_low, b_high)) = (self.range(a), self.range(b));
        match (&operator, constants.1) {
            (Operator::Multiply, _) => return self.multiply(a, b),
            (Operator::Equal, _) => return self.equal(a, b),
            (Operator::Divide, Some(1)) => return a,
            (Operator::Divide, Some(by)) if by.is_power_of_two() => {
                let amount = self.constant(width, by.trailing_zeros().into());
                return self.binary(Operator::ShiftRight, a, amount);
            }
            (Operator::Remainder, Some(by)) if by.is_power_of_two() => {
                let bits = self.constant(width, by - 1);
                return self.binary(Operator::And, a, bits);
            }
            (Operator::Remainder, _) if a_high < b_low => return a,
            // Both are non-negative.
            (Operator::DivideSigned, _) if self.is_non_negative(a) && self.is_non_negative(b) => {
                return self.binary(Operator::Divide, a, b);
            }
            (Operator::RemainderSigned, _) if self.is_non_negative(a) && self.is_non_negative(b) => {
                return self.binary(Operator::Remainder, a, b);
            }
            (Operator::ShiftRightSigned, _) if self.is_non_negative(a) => {
                return self.binary(Operator::ShiftRight, a, b);
            }
            (Operator::ShiftLeft, Some(by)) if by < width.into() => return self.scale(a, 1 << by),
            (Operator::ShiftLeft | Operator::ShiftRight, Some(by)) if by >= width.into() => {
                return self.constant(width, 0);
            }
            (Operator::ShiftRight | Operator::ShiftRightSigned, Some(0)) => return a,
            (Operator::And, Some(0)) => return b,
            (Operator::And, Some(bits)) if bits.wrapping_add(1).is_power_of_two() && a_high <= bits => {
                return a;
            }
            (Operator::Or | Operator::Xor, Some(0)) => return a,
            (Operator::And | Operator::Or, _) if a == b => return a,
            (Operator::Xor, _) if a == b => return self.constant(width, 0),
            (Operator::Less, _) if a == b || a_low >= b_high => return self.truth(false),
            (Operator::Less, _) if a_high < b_low => return self.truth(true),
            (Operator::LessSigned, _) if a == b => return self.truth(false),
            (Operator::LessSigned, _) if self.is_non_negative(a) && self.is_non_negative(b) => {
                return self.binary(Operator::Less, a, b);
            }
            _ => {}
        }
        let commutes = matches!(operator, Operator::And | Operator::Or | Operator::Xor);
        if commutes && constants.0.is_some() {
            return self.binary(operator, b, a);
        }
        let (a, b) = if commutes && constants.1.is_none() { (a.min(b), a.max(b)) } else { (a, b) };
        self.add_term(operator.clone(), &[a, b], result_width(&operator, width))
    }

    /// Returns true if the highest bit is known to be zero.
    pub fn is_non_negative(&self, a: TermId) -> bool {
        self.range(a).1 <= mask(self.width(a)) >> 1
    }

    /// Returns true for a sum or product of numbers that are extended from a width, nested up to a depth.
    fn is_widened(&self, a: TermId, width: u32, depth: u32) -> bool {
        let term = self.term(a);
        let is_part = |part: &TermId| match self.term(*part) {
            Term { operator: Operator::Extend | Operator::ExtendSigned, arguments, .. } => {
                self.width(arguments[0]) <= width
            }
            Term { operator: Operator::Constant(_), .. } => true,
            _ => depth > 0 && self.is_widened(*part, width, depth - 1),
        };
        matches!(term.operator, Operator::Sum { .. } | Operator::Multiply)
            && term.arguments.iter().all(is_part)
    }

    pub fn extend(&mut self, a: TermId, width: u32, signed: bool) -> TermId {
        let from = self.width(a);
        if from == width {
            return a;
        }
        if from > width {
            if let Some(value) = self.constant_of(a) {
                return self.constant(width, value);
            }
            if let Term { operator: Operator::Extend | Operator::ExtendSigned, arguments, .. } = self.term(a)
            {
                let inner = arguments[0];
                if self.width(inner) >= width {
                    return self.extend(inner, width, signed);
                }
            }
            // The low bits of a sum or product of widened numbers are those of the sum or product of the numbers.
            if !self.is_widened(a, width, MAX_WIDENED) {
                return self.add_term(Operator::Truncate, &[a], width);
            }
            let term = self.term(a).clone();
            let parts: Vec<TermId> =
                term.arguments.iter().map(|part| self.extend(*part, width, false)).collect();
            return match &term.operator {
                Operator::Sum { coefficients, constant } => {
                    let summands: Vec<_> = parts.into_iter().zip(coefficients.iter().copied()).collect();
                    self.sum(width, &summands, *constant)
                }
                _ => self.multiply(parts[0], parts[1]),
            };
        }
        let signed = signed && !self.is_non_negative(a);
        if let Some(value) = self.constant_of(a) {
            return self.constant(width, if signed { sign_extend(value, from) as u64 } else { value });
        }
        // A sum that does not wrap is extended by its summands, so that byte offsets keep their linear form.
        if !signed && let Some(summands) = self.exact_summands(a) {
            let wide: Vec<(TermId, u64)> = summands
                .0
                .iter()
                .map(|(atom, coefficient)| (self.extend(*atom, width, false), *coefficient))
                .collect();
            return self.sum(width, &wide, summands.1);
        }
        self.add_term(if signed { Operator::ExtendSigned } else { Operator::Extend }, &[a], width)
    }

    /// Returns the linear form of a sum of non-negative summands that cannot wrap.
    fn exact_summands(&self, a: TermId) -> Option<(Vec<(TermId, u64)>, u64)> {
        if !matches!(self.term(a).operator, Operator::Sum { .. }) {
            return None;
        }
        let (atoms, constant) = self.linear_form(a);
        let high = atoms.iter().fold(u128::from(constant), |all, (atom, coefficient)| {
            all.saturating_add(u128::from(*coefficient) * u128::from(self.range(*atom).1))
        });
        (high <= u128::from(mask(self.width(a)))).then_some((atoms, constant))
    }

    /// Returns the greatest common factor of the coefficients of two offsets; 0 for constants.
    pub fn common_factor(&self, offsets: [TermId; 2]) -> u64 {
        let atoms = offsets.into_iter().flat_map(|offset| self.linear_form(offset).0);
        atoms.map(|(_, factor)| (factor as i64).unsigned_abs()).fold(0, |mut a, mut b| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        })
    }

    /// Returns a number of 64 bits that is equal for offsets in the same block, and the offset in the block, if all
    /// coefficients of an offset are multiples of the size of a block.
    pub fn block_of(&mut self, offset: TermId, block: u64) -> Option<(TermId, u64)> {
        let (atoms, constant) = self.linear_form(offset);
        let size = i64::try_from(block).ok().filter(|size| *size > 0)?;
        let rest = (constant as i64).rem_euclid(size);
        if block.is_power_of_two() {
            return Some((self.sum(64, &[(offset, 1)], (rest as u64).wrapping_neg()), rest as u64));
        }
        // The bounds of the atoms show that the sum does not wrap, so it has one quotient.
        let bound = atoms.iter().try_fold(i128::from(constant as i64).abs(), |bound, (atom, factor)| {
            let high = match self.term(*atom) {
                Term { operator: Operator::ExtendSigned, arguments, .. } => mask(self.width(arguments[0])),
                _ => self.is_non_negative(*atom).then_some(self.range(*atom).1)?,
            };
            Some(bound + i128::from(*factor as i64).abs() * i128::from(high))
        });
        let quotients: Vec<(TermId, u64)> =
            atoms.iter().map(|(atom, factor)| (*atom, (*factor as i64 / size) as u64)).collect();
        let first = (constant as i64 - rest) / size;
        bound.filter(|bound| *bound <= 1 << 62).map(|_| (self.sum(64, &quotients, first as u64), rest as u64))
    }

    pub fn equal(&mut self, a: TermId, b: TermId) -> TermId {
        if a == b {
            return self.truth(true);
        }
        let width = self.width(a);
        if width == 1 {
            match (self.constant_of(a), self.constant_of(b)) {
                (Some(1), _) => return b,
                (_, Some(1)) => return a,
                (Some(_), _) => return self.not(b),
                (_, Some(_)) => return self.not(a),
                _ => return self.add_term(Operator::Equal, &[a.min(b), a.max(b)], 1),
            }
        }
        let ((a_low, a_high), (b_low, b_high)) = (self.range(a), self.range(b));
        if a_high < b_low || b_high < a_low {
            return self.truth(false);
        }
        for (select, constant) in [(a, b), (b, a)] {
            let Some(value) = self.constant_of(constant) else { continue };
            match self.term(select).clone() {
                Term { operator: Operator::Select, arguments, .. } => {
                    let parts = [arguments[1], arguments[2]];
                    if parts.iter().any(|part| self.constant_of(*part).is_some()) {
                        let [yes, no] = parts.map(|part| self.equal(part, constant));
                        return self.select(arguments[0], yes, no);
                    }
                }
                Term { operator: Operator::Extend, arguments, .. } => {
                    let inner = self.width(arguments[0]);
                    if value > mask(inner) {
                        return self.truth(false);
                    }
                    let narrow = self.constant(inner, value);
                    return self.equal(arguments[0], narrow);
                }
                _ => {}
            }
        }
        // The difference decides some equalities, and gives others one form.
        let difference = self.subtract(a, b);
        let (atoms, constant) = self.linear_form(difference);
        if atoms.is_empty() {
            return self.truth(constant == 0);
        }
        let power = atoms.iter().map(|(_, coefficient)| coefficient.trailing_zeros()).min().unwrap_or(0);
        if constant & mask(power) != 0 {
            return self.truth(false);
        }
        // Only differences on one side are normalized; others keep their sides, which are often short sums.
        if let [(atom, coefficient)] = atoms.as_slice()
            && (*coefficient == 1 || *coefficient == mask(width))
        {
            let value = if *coefficient == 1 { constant.wrapping_neg() } else { constant };
            let value = self.constant(width, value);
            let (low, high) = self.range(*atom);
            if self.constant_of(value).is_some_and(|value| value < low || value > high) {
                return self.truth(false);
            }
            if *atom != a && *atom != b {
                return self.equal(*atom, value);
            }
            return self.add_term(Operator::Equal, &[(*atom).min(value), (*atom).max(value)], 1);
        }
        if let Some(equal) = self.equal_extensions(&atoms, constant) {
            return equal;
        }
        let negative = |coefficient: u64| coefficient > mask(width) >> 1;
        let side = |negated: bool| -> Vec<(TermId, u64)> {
            let part = atoms.iter().filter(|(_, coefficient)| negative(*coefficient) == negated);
            part.map(|(atom, coefficient)| {
                (*atom, if negated { coefficient.wrapping_neg() & mask(width) } else { *coefficient })
            })
            .collect()
        };
        let (left, right) = match negative(constant) {
            true => (self.sum(width, &side(false), 0), self.sum(width, &side(true), constant.wrapping_neg())),
            false => (self.sum(width, &side(false), constant), self.sum(width, &side(true), 0)),
        };
        self.add_term(Operator::Equal, &[left.min(right), left.max(right)], 1)
    }

    /// Returns the equality of two extended numbers, whose difference times a small factor this is.
    fn equal_extensions(&mut self, atoms: &[(TermId, u64)], constant: u64) -> Option<TermId> {
        let &[(a, first), (b, second)] = atoms else { return None };
        let factor = first.min(first.wrapping_neg());
        if constant != 0 || first.wrapping_add(second) != 0 || factor >= 1 << 31 || self.width(a) != 64 {
            return None;
        }
        let inner = |id: TermId| match self.term(id) {
            Term { operator: Operator::Extend, arguments, .. } => Some((arguments[0], false)),
            Term { operator: Operator::ExtendSigned, arguments, .. } => Some((arguments[0], true)),
            _ => None,
        };
        let ((x, x_signed), (y, y_signed)) = (inner(a)?, inner(b)?);
        if self.width(x) != self.width(y) || self.width(x) > 32 {
            return None;
        }
        let equal = self.equal(x, y);
        if x_signed == y_signed {
            return Some(equal);
        }
        // The sign of one is lost in the other.
        let zero = self.constant(self.width(x), 0);
        let is_negative = self.binary(Operator::LessSigned, if x_signed { x } else { y }, zero);
        let is_positive = self.not(is_negative);
        Some(self.every(&[equal, is_positive]))
    }

    pub fn not(&mut self, a: TermId) -> TermId {
        if let Some(value) = self.constant_of(a) {
            return self.truth(value == 0);
        }
        if let Term { operator: Operator::Not, arguments, .. } = self.term(a) {
            return arguments[0];
        }
        self.add_term(Operator::Not, &[a], 1)
    }

    /// Returns the conjuncts of a term.
    pub fn conjuncts(&self, a: TermId) -> Vec<TermId> {
        match self.term(a) {
            Term { operator: Operator::Every, arguments, .. } => arguments.to_vec(),
            Term { operator: Operator::Constant(1), .. } => Vec::new(),
            _ => vec![a],
        }
    }

    pub fn every(&mut self, parts: &[TermId]) -> TermId {
        let mut all: Vec<TermId> = parts.iter().flat_map(|part| self.conjuncts(*part)).collect();
        loop {
            all.sort_unstable();
            all.dedup();
            let contradicts = all.iter().any(|part| match self.term(*part) {
                Term { operator: Operator::Not, arguments, .. } => all.binary_search(&arguments[0]).is_ok(),
                Term { operator: Operator::Constant(0), .. } => true,
                _ => false,
            });
            if contradicts {
                return self.truth(false);
            }
            let Some((index, smaller)) = self.smaller_alternative(&all) else { break };
            all.swap_remove(index);
            all.extend(self.conjuncts(smaller));
        }
        match all.as_slice() {
            [] => self.truth(true),
            [only] => *only,
            _ => self.add_term(Operator::Every, &all, 1),
        }
    }

    /// Returns the index of a disjunction in a sorted conjunction, and what the other conjuncts leave of it.
    fn smaller_alternative(&mut self, all: &[TermId]) -> Option<(usize, TermId)> {
        let has = |part: &TermId| all.binary_search(part).is_ok();
        let is_excluded = |one: &TermId| match self.term(*one) {
            Term { operator: Operator::Not, arguments, .. } => has(&arguments[0]),
            _ => self.known.get(&negation(*one)).is_some_and(has),
        };
        let (index, left) = all.iter().enumerate().find_map(|(index, part)| {
            let Term { operator: Operator::Not, arguments: inner, .. } = self.term(*part) else {
                return None;
            };
            let Term { operator: Operator::Every, arguments, .. } = self.term(inner[0]) else { return None };
            if arguments.iter().any(is_excluded) {
                return Some((index, None));
            }
            let left: Vec<TermId> = arguments.iter().copied().filter(|one| !has(one)).collect();
            (left.len() < arguments.len()).then_some((index, Some(left)))
        })?;
        let smaller = match left {
            None => self.truth(true),
            Some(left) => {
                let inner = self.every(&left);
                self.not(inner)
            }
        };
        Some((index, smaller))
    }

    pub fn any(&mut self, parts: &[TermId]) -> TermId {
        let of_parts: Vec<Vec<TermId>> = parts
            .iter()
            .filter(|part| self.constant_of(**part) != Some(0))
            .map(|part| self.conjuncts(*part))
            .collect();
        // What all have in common is moved out.
        let mut common = of_parts.first().cloned().unwrap_or_default();
        common.retain(|one| of_parts.iter().all(|part| part.contains(one)));
        let mut negated = Vec::new();
        for part in &of_parts {
            let own: Vec<TermId> = part.iter().copied().filter(|one| !common.contains(one)).collect();
            let own = self.every(&own);
            negated.push(self.not(own));
        }
        let none = self.every(&negated);
        common.push(self.not(none));
        self.every(&common)
    }

    pub fn select(&mut self, condition: TermId, yes: TermId, no: TermId) -> TermId {
        match self.constant_of(condition) {
            Some(1) => return yes,
            Some(_) => return no,
            None => {}
        }
        if yes == no {
            return yes;
        }
        if let Term { operator: Operator::Not, arguments, .. } = self.term(condition) {
            let inner = arguments[0];
            return self.select(inner, no, yes);
        }
        if self.width(yes) == 1 {
            let (both, not) = (self.every(&[condition, yes]), self.not(condition));
            let other = self.every(&[not, no]);
            return self.any(&[both, other]);
        }
        self.add_term(Operator::Select, &[condition, yes, no], self.width(yes))
    }

    /// Rebuilds a term with other arguments.
    fn rebuild(&mut self, term: &Term, arguments: &[TermId]) -> TermId {
        match &term.operator {
            Operator::Constant(_) => self.add_term(term.operator.clone(), &[], term.width),
            Operator::Apply(function) => self.apply(*function, arguments),
            Operator::Sum { coefficients, constant } => {
                let summands: Vec<(TermId, u64)> =
                    arguments.iter().copied().zip(coefficients.iter().copied()).collect();
                self.sum(term.width, &summands, *constant)
            }
            Operator::Extend | Operator::ExtendSigned | Operator::Truncate => {
                self.extend(arguments[0], term.width, term.operator == Operator::ExtendSigned)
            }
            Operator::Select => self.select(arguments[0], arguments[1], arguments[2]),
            Operator::Every => self.every(arguments),
            Operator::Not => self.not(arguments[0]),
            operator => self.binary(operator.clone(), arguments[0], arguments[1]),
        }
    }

    /// Replaces applications of functions in a term; `memo` holds the results for this substitution.
    pub fn substitute(
        &mut self,
        root: TermId,
        memo: &mut FxHashMap<TermId, TermId>,
        by: &mut dyn Substitution,
    ) -> TermId {
        let mut open = vec![root];
        while let Some(&id) = open.last() {
            if memo.contains_key(&id) {
                open.pop();
                continue;
            }
            let term = self.term(id).clone();
            let before = open.len();
            open.extend(term.arguments.iter().copied().filter(|argument| !memo.contains_key(argument)));
            if open.len() > before {
                continue;
            }
            open.pop();
            let arguments: Vec<TermId> = term.arguments.iter().map(|argument| memo[argument]).collect();
            let replaced = match term.operator {
                Operator::Apply(function) => by.apply(self, function, &arguments),
                _ => None,
            };
            let result = match replaced {
                Some(result) => result,
                None if arguments[..] == term.arguments[..] => id,
                None => self.rebuild(&term, &arguments),
            };
            memo.insert(id, result);
        }
        memo[&root]
    }

    /// Returns a term that is equal to another one wherever a condition holds.
    pub fn simplify_under(&mut self, root: TermId, condition: TermId) -> TermId {
        let mut known = FxHashMap::default();
        for fact in self.conjuncts(condition) {
            let (fact, holds) = match self.term(fact) {
                Term { operator: Operator::Not, arguments, .. } => (arguments[0], false),
                _ => (fact, true),
            };
            known.insert(fact, self.truth(holds));
        }
        self.substitute(root, &mut known, &mut Unchanged)
    }

    /// Returns the other value of a number that alternates: its next value is a constant less the current one, or an
    /// exclusive or with it.
    pub fn other_of_two(&mut self, next: TermId, current: TermId, initial: TermId) -> Option<TermId> {
        let term = self.term(next).clone();
        match &term.operator {
            Operator::Not if term.arguments[..] == [current] => Some(self.not(initial)),
            Operator::Xor if term.arguments.contains(&current) => {
                let with = *term.arguments.iter().find(|one| **one != current)?;
                Some(self.binary(Operator::Xor, initial, with))
            }
            Operator::Sum { coefficients, constant } => {
                let at = term.arguments.iter().position(|one| *one == current)?;
                (coefficients[at] == mask(term.width)).then(|| {
                    let mut summands: Vec<(TermId, u64)> =
                        term.arguments.iter().copied().zip(coefficients.iter().copied()).collect();
                    summands[at].0 = initial;
                    self.sum(term.width, &summands, *constant)
                })
            }
            _ => None,
        }
    }

    /// Calls a function for each subterm of some terms, once.
    pub fn for_each_subterm(&self, roots: &[TermId], mut visit: impl FnMut(TermId)) {
        let mut known = rustc_hash::FxHashSet::default();
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            if known.insert(id) {
                visit(id);
                open.extend(self.term(id).arguments.iter().copied());
            }
        }
    }

    /// Returns true if a term is a part of another one, or the same.
    pub fn has_part(&self, whole: TermId, part: TermId) -> bool {
        let mut is_part = false;
        self.for_each_subterm(&[whole], |id| is_part |= id == part);
        is_part
    }

    pub fn any_subterm(&self, roots: &[TermId], holds: impl Fn(&Term) -> bool) -> bool {
        let mut is_there = false;
        self.for_each_subterm(roots, |id| is_there |= holds(self.term(id)));
        is_there
    }

    /// Calls a function for each application in some terms, once.
    pub fn for_each_application(&self, roots: &[TermId], mut visit: impl FnMut(TermId, FunctionId)) {
        self.for_each_subterm(roots, |id| {
            if let Operator::Apply(function) = self.term(id).operator {
                visit(id, function);
            }
        });
    }

    /// Returns true if the ranges of its arguments show that a product or sum does not wrap.
    pub fn is_exact(&self, id: TermId) -> bool {
        let term = self.term(id);
        match &term.operator {
            Operator::Multiply => {
                let [x, y] = [0, 1].map(|index: usize| u128::from(self.range(term.arguments[index]).1));
                x * y <= u128::from(mask(term.width))
            }
            Operator::Sum { coefficients, constant } => {
                let (low, high) = self.sum_range(term, coefficients, *constant);
                low >= 0 && high <= i128::from(mask(term.width))
            }
            _ => true,
        }
    }

    /// Returns bounds of a sum without wrap-around, of signed coefficients.
    fn sum_range(&self, term: &Term, coefficients: &[u64], constant: u64) -> (i128, i128) {
        let constant = i128::from(sign_extend(constant, term.width));
        let (mut low, mut high) = (constant, constant);
        for (argument, coefficient) in term.arguments.iter().zip(coefficients) {
            let factor = i128::from(sign_extend(*coefficient, term.width));
            let (from, to) = self.range(*argument);
            let (x, y) = (factor * i128::from(from), factor * i128::from(to));
            (low, high) = (low.saturating_add(x.min(y)), high.saturating_add(x.max(y)));
        }
        (low, high)
    }

    /// Computes a term for values of applications; `None` for a quotient by zero.
    pub fn evaluate(&self, root: TermId, value_of: &dyn Fn(TermId) -> u64) -> Option<u64> {
        let mut known: FxHashMap<TermId, u64> = FxHashMap::default();
        let mut open = vec![root];
        while let Some(&id) = open.last() {
            let term = self.term(id);
            let before = open.len();
            open.extend(term.arguments.iter().copied().filter(|argument| !known.contains_key(argument)));
            if open.len() > before {
                continue;
            }
            open.pop();
            let at = |index: usize| known[&term.arguments[index]];
            let from = term.arguments.first().map_or(0, |argument| self.width(*argument));
            let value = match &term.operator {
                Operator::Constant(value) => *value,
                Operator::Apply(_) => value_of(id),
                Operator::Sum { coefficients, constant } => (0..coefficients.len())
                    .fold(*constant, |sum, index| {
                        sum.wrapping_add(coefficients[index].wrapping_mul(at(index)))
                    }),
                Operator::Extend | Operator::Truncate => at(0),
                Operator::ExtendSigned => sign_extend(at(0), from) as u64,
                Operator::Select => at(if at(0) != 0 { 1 } else { 2 }),
                Operator::Every => (0..term.arguments.len()).all(|index| at(index) != 0).into(),
                Operator::Not => u64::from(at(0) == 0),
                operator => fold(operator, at(0), at(1), from)?,
            };
            known.insert(id, value & mask(term.width));
        }
        known.get(&root).copied()
    }

    /// Returns true if a term contains an application of a function.
    pub fn mentions(&self, root: TermId, function: FunctionId) -> bool {
        self.any_subterm(&[root], |term| term.operator == Operator::Apply(function))
    }

    /// Computes the uniformity of each function: the least solution over the terms that it depends on.
    pub fn solve_uniformity(&mut self) {
        loop {
            let mut has_changed = false;
            for index in 0..self.functions.len() {
                let least = self.uniformity_of(&self.functions[index].sources);
                let known = &mut self.functions[index].uniformity;
                has_changed |= least > *known;
                *known = least.max(*known);
            }
            if !has_changed {
                return;
            }
        }
    }

    /// Returns the least uniformity of some terms, for equal iterations of loops.
    pub fn uniformity_of(&self, roots: &[TermId]) -> Uniformity {
        let mut least = Uniformity::Grid;
        self.for_each_application(roots, |_, function| least = least.max(self.function(function).uniformity));
        least
    }

    fn compute_range(&self, term: &Term) -> (u64, u64) {
        let all = (0, mask(term.width));
        let range = |index: usize| self.range(term.arguments[index]);
        let bits_of = |value: u64| mask(64 - value.leading_zeros());
        match &term.operator {
            Operator::Constant(value) => (*value, *value),
            Operator::Apply(function) => self.function(*function).range,
            Operator::Sum { coefficients, constant } => {
                let modulus = 1_i128 << term.width;
                let (low, high) = self.sum_range(term, coefficients, *constant);
                let turns = low.div_euclid(modulus);
                match (low - turns * modulus, high - turns * modulus) {
                    (low, high) if high < modulus => (low as u64, high as u64),
                    _ => all,
                }
            }
            Operator::Multiply => match u128::from(range(0).1) * u128::from(range(1).1) {
                high if high <= u128::from(all.1) => (range(0).0 * range(1).0, high as u64),
                _ => all,
            },
            Operator::Divide => (
                range(0).0.checked_div(range(1).1).unwrap_or(0),
                // A quotient by zero has no defined value.
                if range(1).0 == 0 { all.1 } else { range(0).1 / range(1).0 },
            ),
            Operator::Remainder if range(1).0 > 0 => (0, range(0).1.min(range(1).1 - 1)),
            Operator::And => (0, range(0).1.min(range(1).1)),
            Operator::Or | Operator::Xor => (0, bits_of(range(0).1 | range(1).1)),
            Operator::ShiftRight => {
                let (low, high) = range(1);
                (
                    range(0).0.checked_shr(high.min(64) as u32).unwrap_or(0),
                    range(0).1.checked_shr(low.min(64) as u32).unwrap_or(0),
                )
            }
            Operator::Extend => range(0),
            Operator::Truncate if range(0).1 <= all.1 => range(0),
            Operator::Select => (range(1).0.min(range(2).0), range(1).1.max(range(2).1)),
            _ => all,
        }
    }
}

/// Returns the negation of a truth value as a term.
fn negation(of: TermId) -> Term {
    Term { operator: Operator::Not, arguments: [of].into(), width: 1 }
}

fn result_width(operator: &Operator, width: u32) -> u32 {
    match operator {
        Operator::Equal | Operator::Less | Operator::LessSigned => 1,
        _ => width,
    }
}

/// Computes a binary operator on constants; `None` for a quotient by zero.
pub(crate) fn fold(operator: &Operator, a: u64, b: u64, width: u32) -> Option<u64> {
    let (x, y) = (sign_extend(a, width), sign_extend(b, width));
    let in_width = b < u64::from(width);
    let result = match operator {
        Operator::Multiply => a.wrapping_mul(b),
        Operator::Divide => a.checked_div(b)?,
        Operator::Remainder => a.checked_rem(b)?,
        Operator::DivideSigned if y != 0 => x.wrapping_div(y) as u64,
        Operator::RemainderSigned if y != 0 => x.wrapping_rem(y) as u64,
        Operator::DivideSigned | Operator::RemainderSigned => return None,
        Operator::And => a & b,
        Operator::Or => a | b,
        Operator::Xor => a ^ b,
        Operator::ShiftLeft if in_width => a << b,
        Operator::ShiftRight if in_width => a >> b,
        Operator::ShiftLeft | Operator::ShiftRight => 0,
        Operator::ShiftRightSigned => (x >> b.min(63)) as u64,
        Operator::Equal => u64::from(a == b),
        Operator::Less => u64::from(a < b),
        Operator::LessSigned => u64::from(x < y),
        Operator::Constant(_)
        | Operator::Apply(_)
        | Operator::Sum { .. }
        | Operator::Extend
        | Operator::ExtendSigned
        | Operator::Truncate
        | Operator::Select
        | Operator::Every
        | Operator::Not => return None,
    };
    Some(result & mask(result_width(operator, width)))
}
