//! Bit-vectors on a circuit, with the meaning of SMT-LIB's `FixedSizeBitVectors`.
//!
//! Sums are ripple-carry adders, products shifted sums, quotients restoring divisions, and shifts by unknown
//! amounts have one stage per bit of the amount. Constants fold in all of them.
//!
//! A number of few possible values may have a bit for each of them as well ([`Circuit::from_cases`]). Functions of
//! such numbers are tables, which a solver propagates better than sums of bits.

use std::collections::BTreeMap;

use crate::circuit::{Bit, Circuit};

/// Limit of the possible values of a number that has a bit for each of them.
pub const MAX_CASES: usize = 16;

/// Limit of the pairs of values of a table.
const MAX_TABLE_PAIRS: usize = 256;

/// A number of a fixed number of bits, the lowest first.
///
/// If the operands of an operation differ in width, the result has the width of the first. The second is
/// truncated, or extended with zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BitVector {
    bits: Box<[Bit]>,
    /// The possible values in ascending order, each with a bit, of which exactly one holds; `None` if not known.
    cases: Option<Box<[(u64, Bit)]>>,
}

/// The bits that a shift moves in, and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShiftKind {
    /// To the left; zeros enter.
    Left,
    /// To the right; zeros enter.
    LogicalRight,
    /// To the right; copies of the highest bit enter.
    ArithmeticRight,
}

impl BitVector {
    /// Returns the constant with the lowest `width` bits of `value`.
    pub fn constant(width: usize, value: u128) -> BitVector {
        (0..width).map(|place| Bit::from(place < 128 && value >> place & 1 == 1)).collect()
    }

    /// As [`constant`](Self::constant) of at most 64 bits, with its value as the only case.
    pub fn single_case(width: usize, value: u64) -> BitVector {
        let cases = Some(Box::from([(value & low_mask(width), Bit::TRUE)]));
        BitVector { cases, ..BitVector::constant(width, value.into()) }
    }

    /// Returns the possible values, each with the bit that the number has it; `None` if these are not known.
    pub fn cases(&self) -> Option<&[(u64, Bit)]> {
        self.cases.as_deref()
    }

    /// Returns the number of bits.
    pub fn width(&self) -> usize {
        self.bits.len()
    }

    /// Returns the bits, the lowest first.
    pub fn bits(&self) -> &[Bit] {
        &self.bits
    }

    /// Returns the value of a constant of at most 128 bits; `None` if a bit depends on inputs.
    pub fn to_constant(&self) -> Option<u128> {
        if self.width() > 128 {
            return None;
        }
        self.bits.iter().enumerate().map(|(place, bit)| Some(u128::from(bit.constant()?) << place)).sum()
    }

    /// Returns the highest bit, the sign of a signed number; false if there is no bit.
    pub fn sign(&self) -> Bit {
        self.bits.last().copied().unwrap_or(Bit::FALSE)
    }

    /// Returns the bits from `low` on, at most `width` of them.
    pub fn slice(&self, low: usize, width: usize) -> BitVector {
        self.bits.iter().copied().skip(low).take(width).collect()
    }

    /// Returns the vector with these bits above its own.
    pub fn concatenate(&self, high: &BitVector) -> BitVector {
        self.bits.iter().chain(&*high.bits).copied().collect()
    }

    /// Returns the number in another width: truncated, or extended with zeros.
    pub fn resize(&self, width: usize) -> BitVector {
        let resized = self.resize_with(width, Bit::FALSE);
        BitVector { cases: self.map_cases(width, |value| value), ..resized }
    }

    /// Returns the signed number in another width: truncated, or extended with its sign.
    pub fn resize_signed(&self, width: usize) -> BitVector {
        let unused = 64_usize.saturating_sub(self.width());
        let extend = |value: u64| ((value << unused) as i64 >> unused) as u64;
        BitVector { cases: self.map_cases(width, extend), ..self.resize_with(width, self.sign()) }
    }

    /// Returns the bitwise complement.
    pub fn not(&self) -> BitVector {
        self.bits.iter().map(|bit| !*bit).collect()
    }

    /// Returns the cases of a function of the number in this width; `None` if it maps two to one.
    fn map_cases(&self, width: usize, function: impl Fn(u64) -> u64) -> Option<Box<[(u64, Bit)]>> {
        let cases = self.cases.as_deref().filter(|_| self.width() <= 64 && width <= 64)?;
        let mapped: BTreeMap<u64, Bit> =
            cases.iter().map(|(value, bit)| (function(*value) & low_mask(width), *bit)).collect();
        (mapped.len() == cases.len()).then(|| mapped.into_iter().collect())
    }

    fn resize_with(&self, width: usize, fill: Bit) -> BitVector {
        (0..width).map(|place| self.bits.get(place).copied().unwrap_or(fill)).collect()
    }

    /// Returns the bits moved to higher places by a constant; zeros enter.
    fn shifted_left(&self, amount: usize) -> BitVector {
        std::iter::repeat_n(Bit::FALSE, amount).chain(self.bits.iter().copied()).take(self.width()).collect()
    }
}

impl FromIterator<Bit> for BitVector {
    fn from_iter<T: IntoIterator<Item = Bit>>(bits: T) -> BitVector {
        BitVector { bits: bits.into_iter().collect(), cases: None }
    }
}

/// Returns the number whose lowest `width` bits are set.
fn low_mask(width: usize) -> u64 {
    if width < 64 { (1 << width) - 1 } else { u64::MAX }
}

impl Circuit {
    /// Returns a number of new inputs.
    pub fn variable(&mut self, width: usize) -> BitVector {
        (0..width).map(|_| self.input()).collect()
    }

    /// Returns the number of at most 64 bits that has each value if its bit holds, of which exactly one does.
    ///
    /// A value may occur several times. Returns `None` if there are more than [`MAX_CASES`] of them.
    pub fn from_cases(
        &mut self,
        width: usize,
        cases: impl IntoIterator<Item = (u64, Bit)>,
    ) -> Option<BitVector> {
        let mut bits_of: BTreeMap<u64, Vec<Bit>> = BTreeMap::new();
        for (value, bit) in cases.into_iter().filter(|(_, bit)| *bit != Bit::FALSE) {
            bits_of.entry(value & low_mask(width)).or_default().push(bit);
        }
        if bits_of.len() > MAX_CASES {
            return None;
        }
        if let (1, Some((value, _))) = (bits_of.len(), bits_of.first_key_value()) {
            return Some(BitVector::single_case(width, *value));
        }
        let cases: Box<[(u64, Bit)]> =
            bits_of.into_iter().map(|(value, bits)| (value, self.any(&bits))).collect();
        let bits = (0..width).map(|place| {
            let set: Vec<Bit> =
                cases.iter().filter(|(value, _)| value >> place & 1 == 1).map(|(_, bit)| *bit).collect();
            if set.len() == cases.len() { Bit::TRUE } else { self.any(&set) }
        });
        Some(BitVector { bits: bits.collect(), cases: Some(cases) })
    }

    /// Returns a function of two numbers as a table of their cases; `None` if these are not known, or too many.
    pub fn tabulate(
        &mut self,
        a: &BitVector,
        b: &BitVector,
        function: impl Fn(u64, u64) -> u64,
    ) -> Option<BitVector> {
        let (first, second) = (a.cases()?, b.cases()?);
        if first.len() * second.len() > MAX_TABLE_PAIRS {
            return None;
        }
        let mut cases = Vec::with_capacity(first.len() * second.len());
        for (x, is_x) in first {
            for (y, is_y) in second {
                cases.push((function(*x, *y), self.and(*is_x, *is_y)));
            }
        }
        self.from_cases(a.width(), cases)
    }

    /// Returns a bit that holds if a predicate of two numbers does, by their cases; `None` if these are not known.
    pub fn decide(
        &mut self,
        a: &BitVector,
        b: &BitVector,
        predicate: impl Fn(u64, u64) -> bool,
    ) -> Option<Bit> {
        let (first, second) = (a.cases()?, b.cases()?);
        let pairs = first.iter().flat_map(|x| second.iter().map(move |y| (x, y)));
        let (holds, fails): (Vec<_>, Vec<_>) = pairs.partition(|(x, y)| predicate(x.0, y.0));
        let is_short = holds.len() <= fails.len();
        let shorter = if is_short { holds } else { fails };
        let bits: Vec<Bit> = shorter.iter().map(|(x, y)| self.and(x.1, y.1)).collect();
        let some = self.any(&bits);
        Some(if is_short { some } else { !some })
    }

    /// Returns the sum, modulo 2 to the width.
    pub fn add(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        self.add_with_carry(a, b, Bit::FALSE).0
    }

    /// Returns the difference, modulo 2 to the width.
    pub fn sub(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        self.add_with_carry(a, &b.resize(a.width()).not(), Bit::TRUE).0
    }

    /// Returns the two's complement.
    pub fn neg(&mut self, a: &BitVector) -> BitVector {
        self.sub(&BitVector::constant(a.width(), 0), a)
    }

    /// Returns the sum of two numbers and a carry, modulo 2 to the width, and the carry of the highest bit.
    pub fn add_with_carry(&mut self, a: &BitVector, b: &BitVector, carry: Bit) -> (BitVector, Bit) {
        let b = b.resize(a.width());
        let mut carry = carry;
        let mut sum = Vec::with_capacity(a.width());
        for (&a, &b) in a.bits.iter().zip(&b.bits) {
            let half = self.xor(a, b);
            sum.push(self.xor(half, carry));
            // The operands are equal if `half` does not hold, so either is the carry then.
            carry = self.if_then_else(half, carry, a);
        }
        (sum.into_iter().collect(), carry)
    }

    /// Returns the product, modulo 2 to the width.
    pub fn mul(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        let b = b.resize(a.width());
        // The factor with fewer unknown bits selects the summands.
        let constants =
            |vector: &BitVector| vector.bits.iter().filter(|bit| bit.constant().is_some()).count();
        let (selector, summand) = if constants(a) > constants(&b) { (a, &b) } else { (&b, a) };
        let mut product = BitVector::constant(a.width(), 0);
        for (place, select) in selector.bits.iter().enumerate() {
            if *select != Bit::FALSE {
                let shifted = summand.shifted_left(place);
                let selected = shifted.bits.iter().map(|bit| self.and(*bit, *select)).collect();
                product = self.add(&product, &selected);
            }
        }
        product
    }

    /// Returns the unsigned quotient; if the divisor is 0, all bits are set.
    pub fn udiv(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        self.divide(a, b).0
    }

    /// Returns the unsigned remainder; if the divisor is 0, it is the dividend.
    pub fn urem(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        self.divide(a, b).1
    }

    /// Returns the signed quotient, rounded towards 0; if the divisor is 0, it is -1, or 1 for a negative
    /// dividend.
    pub fn sdiv(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        let (quotient, _) = self.divide_magnitudes(a, b);
        let is_negative = self.xor(a.sign(), b.resize(a.width()).sign());
        self.negate_if(is_negative, &quotient)
    }

    /// Returns the signed remainder, with the sign of the dividend; if the divisor is 0, it is the dividend.
    pub fn srem(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        let (_, remainder) = self.divide_magnitudes(a, b);
        self.negate_if(a.sign(), &remainder)
    }

    /// Returns the number shifted by an amount; if the amount is at least the width, only new bits are left.
    pub fn shift(&mut self, kind: ShiftKind, a: &BitVector, amount: &BitVector) -> BitVector {
        let fill = if kind == ShiftKind::ArithmeticRight { a.sign() } else { Bit::FALSE };
        let mut result = a.clone();
        for (stage, &select) in amount.bits.iter().enumerate() {
            let distance = 1_usize.checked_shl(stage as u32).unwrap_or(usize::MAX).min(a.width());
            let moved = match kind {
                ShiftKind::Left => result.shifted_left(distance),
                ShiftKind::LogicalRight | ShiftKind::ArithmeticRight => {
                    result.slice(distance, a.width()).resize_with(a.width(), fill)
                }
            };
            result = self.select(select, &moved, &result);
        }
        result
    }

    /// Returns the bitwise conjunction.
    pub fn bit_and(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        self.map_bits(a, b, Circuit::and)
    }

    /// Returns the bitwise disjunction.
    pub fn bit_or(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        self.map_bits(a, b, Circuit::or)
    }

    /// Returns the bitwise exclusive or.
    pub fn bit_xor(&mut self, a: &BitVector, b: &BitVector) -> BitVector {
        self.map_bits(a, b, Circuit::xor)
    }

    /// Returns a bit that holds if the numbers are equal.
    pub fn equals(&mut self, a: &BitVector, b: &BitVector) -> Bit {
        if let Some(equal) = self.decide(a, b, |a, b| a == b) {
            return equal;
        }
        let same = self.map_bits(a, b, Circuit::iff);
        self.all(&same.bits)
    }

    /// Returns a bit that holds if `a < b`, unsigned.
    pub fn less_than(&mut self, a: &BitVector, b: &BitVector) -> Bit {
        if let Some(less) = self.decide(a, b, |a, b| a < b) {
            return less;
        }
        // `a - b` borrows if it does not carry.
        !self.add_with_carry(a, &b.resize(a.width()).not(), Bit::TRUE).1
    }

    /// Returns a bit that holds if `a <= b`, unsigned.
    pub fn less_or_equal(&mut self, a: &BitVector, b: &BitVector) -> Bit {
        !self.less_than(&b.resize(a.width()), a)
    }

    /// Returns a bit that holds if `a < b`, signed.
    pub fn less_than_signed(&mut self, a: &BitVector, b: &BitVector) -> Bit {
        let is_less = self.less_than(a, b);
        let signs_differ = self.xor(a.sign(), b.resize(a.width()).sign());
        self.if_then_else(signs_differ, a.sign(), is_less)
    }

    /// Returns a bit that holds if `a <= b`, signed.
    pub fn less_or_equal_signed(&mut self, a: &BitVector, b: &BitVector) -> Bit {
        !self.less_than_signed(&b.resize(a.width()), a)
    }

    /// Returns the number `then` if `condition` holds, else `otherwise`.
    pub fn select(&mut self, condition: Bit, then: &BitVector, otherwise: &BitVector) -> BitVector {
        if let (Some(first), Some(second)) = (then.cases(), otherwise.cases()) {
            let (first, second) = (BTreeMap::from_iter(first.to_vec()), BTreeMap::from_iter(second.to_vec()));
            let mut values: Vec<u64> = first.keys().chain(second.keys()).copied().collect();
            values.sort_unstable();
            values.dedup();
            let bit = |cases: &BTreeMap<u64, Bit>, value| cases.get(value).copied().unwrap_or(Bit::FALSE);
            let cases: Vec<(u64, Bit)> = values
                .iter()
                .map(|v| (*v, self.if_then_else(condition, bit(&first, v), bit(&second, v))))
                .collect();
            if let Some(selected) = self.from_cases(then.width(), cases) {
                return selected;
            }
        }
        self.map_bits(then, otherwise, |circuit, then, otherwise| {
            circuit.if_then_else(condition, then, otherwise)
        })
    }

    fn map_bits(
        &mut self,
        a: &BitVector,
        b: &BitVector,
        mut gate: impl FnMut(&mut Circuit, Bit, Bit) -> Bit,
    ) -> BitVector {
        let b = b.resize(a.width());
        a.bits.iter().zip(&b.bits).map(|(a, b)| gate(self, *a, *b)).collect()
    }

    fn negate_if(&mut self, condition: Bit, a: &BitVector) -> BitVector {
        let negated = self.neg(a);
        self.select(condition, &negated, a)
    }

    /// Returns the quotient and the remainder of the absolute values.
    fn divide_magnitudes(&mut self, a: &BitVector, b: &BitVector) -> (BitVector, BitVector) {
        let b = b.resize(a.width());
        let (dividend, divisor) = (self.negate_if(a.sign(), a), self.negate_if(b.sign(), &b));
        self.divide(&dividend, &divisor)
    }

    /// Returns the unsigned quotient and remainder: restoring division, the highest bit first.
    fn divide(&mut self, a: &BitVector, b: &BitVector) -> (BitVector, BitVector) {
        // Before it is reduced, twice a remainder needs one more bit.
        let (width, wide) = (a.width(), a.width() + 1);
        let divisor = b.resize(width).resize(wide);
        let mut remainder = BitVector::constant(wide, 0);
        let mut quotient = vec![Bit::FALSE; width];
        for place in (0..width).rev() {
            remainder = a.slice(place, 1).concatenate(&remainder).resize(wide);
            let (reduced, fits) = self.add_with_carry(&remainder, &divisor.not(), Bit::TRUE);
            quotient[place] = fits;
            remainder = self.select(fits, &reduced, &remainder);
        }
        (quotient.into_iter().collect(), remainder.resize(width))
    }
}
