//! Types and values of buffers, and comparisons of them as claims about their bits.
//!
//! Claims compare cells as unsigned numbers. A range of signed integers or floats is one range of unsigned numbers for
//! its positive part and one for its negative part, whose bits ascend with the magnitude of floats.

use arithmetic::{float_from_bits, float_to_bits};
use litmus::Comparison;
use spirv_reader::annotations::{Formula, FormulaTerm};

use super::{MAX_BUFFER_BYTES, ScriptProblem};

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Signed(u32),
    Unsigned(u32),
    /// A float of 16, 32 or 64 bits.
    Float(u32),
}

/// The names of scalars in Amber and in GLSL, and the prefix of their vectors in GLSL.
const SCALARS: [(&str, &str, &str, Scalar); 11] = [
    ("int8", "int8_t", "i8vec", Scalar::Signed(8)),
    ("uint8", "uint8_t", "u8vec", Scalar::Unsigned(8)),
    ("int16", "int16_t", "i16vec", Scalar::Signed(16)),
    ("uint16", "uint16_t", "u16vec", Scalar::Unsigned(16)),
    ("int32", "int", "ivec", Scalar::Signed(32)),
    ("uint32", "uint", "uvec", Scalar::Unsigned(32)),
    ("int64", "int64_t", "i64vec", Scalar::Signed(64)),
    ("uint64", "uint64_t", "u64vec", Scalar::Unsigned(64)),
    ("float16", "float16_t", "f16vec", Scalar::Float(16)),
    ("float", "float", "vec", Scalar::Float(32)),
    ("double", "double", "dvec", Scalar::Float(64)),
];

/// Returns the components of a vector, or the rows and columns of a matrix as `COLUMNSxROWS`.
fn parse_shape(text: &str) -> Option<(u32, u32)> {
    let size = |text: &str| text.parse::<u32>().ok().filter(|size| (2..=4).contains(size));
    match text.split_once('x') {
        Some((columns, rows)) => size(rows).zip(size(columns)),
        None => size(text).map(|size| (size, 1)),
    }
}

/// A type of elements: a scalar, a vector or a matrix, and its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataType {
    pub scalar: Scalar,
    pub rows: u32,
    pub columns: u32,
    /// True for the layout of uniform blocks, with elements and columns of multiples of 16 bytes.
    pub is_std140: bool,
}

/// The largest difference of equal numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    Absolute(f64),
    Percent(f64),
}

impl Tolerance {
    pub fn parse(text: &str) -> Option<Tolerance> {
        let number =
            |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        match text.strip_suffix('%') {
            Some(percent) => number(percent).map(Tolerance::Percent),
            None => number(text).map(Tolerance::Absolute),
        }
    }

    fn difference(self, expected: f64) -> f64 {
        match self {
            Tolerance::Absolute(difference) => difference,
            Tolerance::Percent(percent) => expected.abs() * percent / 100.0,
        }
    }
}

impl Scalar {
    pub fn bytes(self) -> u32 {
        let (Scalar::Signed(bits) | Scalar::Unsigned(bits) | Scalar::Float(bits)) = self;
        bits / 8
    }

    /// Returns the bits of a value.
    pub(super) fn parse(self, text: &str) -> Result<u64, ScriptProblem> {
        let invalid = |expected| ScriptProblem::Value(text.to_owned(), expected);
        let integer = || match text.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => text.strip_suffix(".0").unwrap_or(text).parse::<i128>().ok(),
        };
        match self {
            Scalar::Unsigned(bits) => {
                let value = integer().filter(|value| (0..1 << bits).contains(value));
                value.map(|value| value as u64).ok_or_else(|| invalid("an unsigned number of its size"))
            }
            Scalar::Signed(bits) => {
                // Positive numbers may give the bits.
                let value = integer().filter(|value| (-(1 << (bits - 1))..1 << bits).contains(value));
                let value = value.ok_or_else(|| invalid("a signed number of its size"))?;
                Ok(value as u64 & u64::MAX >> (64 - bits))
            }
            Scalar::Float(bits) => {
                let value = parse_float(text, bits).ok_or_else(|| invalid("a float"))?;
                Ok(float_to_bits(value, bits))
            }
        }
    }
}

impl DataType {
    pub fn scalar(scalar: Scalar) -> DataType {
        DataType { scalar, rows: 1, columns: 1, is_std140: false }
    }

    /// Returns a type of Amber such as `uint32`, `vec3<float>` or `mat2x3<double>[]`.
    pub fn from_amber(word: &str) -> Option<DataType> {
        let word = word.strip_suffix("[]").unwrap_or(word);
        let (shape, name) = match word.split_once('<') {
            Some((shape, name)) => (shape, name.strip_suffix('>')?),
            None => ("", word),
        };
        let (.., scalar) = SCALARS.iter().find(|(known, ..)| *known == name)?;
        let (rows, columns) = match shape.split_at_checked(3) {
            None if shape.is_empty() => (1, 1),
            Some(("vec", size)) if !size.contains('x') => parse_shape(size)?,
            Some(("mat", sizes)) if sizes.contains('x') => parse_shape(sizes)?,
            _ => return None,
        };
        Some(DataType { rows, columns, ..DataType::scalar(*scalar) })
    }

    /// Returns a type of GLSL such as `uint`, `vec3` or `dmat2x3`.
    pub fn from_glsl(word: &str) -> Option<DataType> {
        if let Some((.., scalar)) = SCALARS.iter().find(|(_, name, ..)| *name == word) {
            return Some(DataType::scalar(*scalar));
        }
        let vector = |(_, _, prefix, scalar): &(_, _, &str, Scalar)| {
            let (rows, columns) =
                parse_shape(word.strip_prefix(prefix)?).filter(|(_, columns)| *columns == 1)?;
            Some(DataType { rows, columns, ..DataType::scalar(*scalar) })
        };
        let matrix = |(prefix, bits)| {
            let (rows, columns) = parse_shape(word.strip_prefix(prefix)?)?;
            // `mat3` has as many columns as rows.
            let columns = if word.contains('x') { columns } else { rows };
            Some(DataType { rows, columns, ..DataType::scalar(Scalar::Float(bits)) })
        };
        SCALARS.iter().find_map(vector).or_else(|| [("mat", 32), ("dmat", 64)].into_iter().find_map(matrix))
    }

    /// Returns the bytes from one column, or element of a vector or scalar type, to the next.
    fn column_stride(&self) -> u64 {
        let rows = if self.rows == 3 { 4 } else { self.rows };
        let stride = u64::from(rows * self.scalar.bytes());
        if self.is_std140 { stride.next_multiple_of(16) } else { stride }
    }

    /// Returns the number of scalars of an element.
    pub fn components(&self) -> u64 {
        u64::from(self.rows * self.columns)
    }

    /// Returns the bytes from one element to the next.
    pub fn stride(&self) -> u64 {
        self.column_stride() * u64::from(self.columns)
    }

    /// Returns the offset of a scalar of a list of elements.
    pub fn component_offset(&self, index: u64) -> u64 {
        let rows = u64::from(self.rows.max(1));
        let row = (index % rows) * u64::from(self.scalar.bytes());
        (index / rows).saturating_mul(self.column_stride()).saturating_add(row)
    }

    /// Writes values at an offset, and extends the contents if they are shorter.
    pub(crate) fn write(
        &self,
        contents: &mut Vec<u8>,
        offset: u64,
        values: &[impl AsRef<str>],
    ) -> Result<(), ScriptProblem> {
        let bits = values.iter().map(|text| self.scalar.parse(text.as_ref()));
        self.write_bits(contents, offset, bits)
    }

    /// Writes the bits of scalars, one per component.
    ///
    /// # Errors
    /// If a value is invalid, or the buffer would be too large.
    pub(super) fn write_bits(
        &self,
        contents: &mut Vec<u8>,
        offset: u64,
        values: impl Iterator<Item = Result<u64, ScriptProblem>>,
    ) -> Result<(), ScriptProblem> {
        for (index, value) in (0..).zip(values) {
            let bytes = self.scalar.bytes() as usize;
            let start = offset.saturating_add(self.component_offset(index));
            let end = start.saturating_add(bytes as u64);
            if end > MAX_BUFFER_BYTES {
                return Err(ScriptProblem::TooMany(MAX_BUFFER_BYTES, "bytes of a buffer"));
            }
            let (start, end) = (start as usize, end as usize);
            if contents.len() < end {
                contents.resize(end, 0);
            }
            let value = value?.to_le_bytes();
            if let (Some(place), Some(value)) = (contents.get_mut(start..end), value.get(..bytes)) {
                place.copy_from_slice(value);
            }
        }
        Ok(())
    }
}

/// Parses a float, in decimals or as `0x1.8p-3`.
fn parse_float(text: &str, bits: u32) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some(digits) = unsigned.strip_prefix("0x") else {
        // A rounding to 64 bits first could change the result.
        let single = || text.parse::<f32>().ok().map(f64::from);
        return if bits == 32 { single() } else { text.parse().ok() };
    };
    let (digits, exponent) = digits.split_once(['p', 'P']).unwrap_or((digits, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let mantissa = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    // Two steps, of which the first is exact.
    let half = exponent / 2;
    let magnitude = mantissa as f64 * 2.0_f64.powi(half) * 2.0_f64.powi(exponent - half);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// The allowed difference of floats in LLVM's offload test suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FloatTolerance {
    /// Units in the last place; expected values up to a bound differ by at most it instead.
    Ulps(u64, f64),
    /// An exclusive bound.
    Epsilon(f64),
}

/// Returns the claim that a cell has the bits of an expected value, or of a float near it.
///
/// With a tolerance, NaN equals NaN, zeros are equal, and a denormal float of 32 or 64 bits that `may_flush` equals the
/// zero of its sign.
///
/// # Errors
/// If there is a tolerance for other types than floats.
pub(super) fn compare_float(
    scalar: Scalar,
    term: &FormulaTerm,
    bits: u64,
    tolerance: Option<FloatTolerance>,
    may_flush: bool,
) -> Result<Formula, ScriptProblem> {
    let Some(tolerance) = tolerance else { return Ok(within_range(term, (bits, bits))) };
    let Scalar::Float(width) = scalar else {
        return Err(ScriptProblem::Unsupported("a comparison of floats for other values".to_owned()));
    };
    let (infinity, smallest_normal) = match width {
        16 => (0x7c00, 0x400),
        32 => (0x7f80_0000, 0x80_0000),
        _ => (0x7ff0_0000_0000_0000, 1 << 52),
    };
    let sign = 1 << (width - 1);
    let (negative, magnitude) = (bits & sign, bits & (sign - 1));
    let mut ranges = vec![(bits, bits)];
    if magnitude > infinity {
        ranges = vec![(infinity + 1, sign - 1), (sign | (infinity + 1), sign | (sign - 1))];
    } else {
        let value = float_from_bits(bits, width);
        let mut add_interval = |low: f64, high: f64, is_inclusive: bool| {
            let is_above = |value: f64| value > low || is_inclusive && value >= low;
            let is_below = |value: f64| value < high || is_inclusive && value <= high;
            // Positive floats ascend with their bits, negative ones descend.
            for sign in [0, sign] {
                let at = |bits: u64| float_from_bits(sign | bits, width);
                let enters = |bits| if sign == 0 { is_above(at(bits)) } else { is_below(at(bits)) };
                let leaves = |bits| !(if sign == 0 { is_below(at(bits)) } else { is_above(at(bits)) });
                let (start, end) = (first_of(infinity, enters), first_of(infinity, leaves));
                if start < end {
                    ranges.push((sign | start, sign | (end - 1)));
                }
            }
        };
        match tolerance {
            FloatTolerance::Epsilon(bound) if magnitude < infinity => {
                add_interval(value - bound, value + bound, false);
            }
            FloatTolerance::Epsilon(_) => {}
            FloatTolerance::Ulps(_, bound) if bound > 0.0 && value.abs() <= bound => {
                add_interval(value - bound, value + bound, true);
            }
            FloatTolerance::Ulps(count, _) => {
                let high = magnitude.saturating_add(count).min(infinity);
                ranges.push((negative | magnitude.saturating_sub(count), negative | high));
            }
        }
        let is_flushed = may_flush && width > 16 && magnitude < smallest_normal;
        match magnitude {
            0 => ranges.extend([(0, 0), (sign, sign)]),
            _ if is_flushed => ranges.push((negative, negative)),
            _ => {}
        }
    }
    ranges.sort_unstable();
    let mut separate: Vec<(u64, u64)> = Vec::new();
    for (low, high) in ranges {
        match separate.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => separate.push((low, high)),
        }
    }
    Ok(Formula::Or(separate.into_iter().map(|range| within_range(term, range)).collect()))
}

/// Returns the claim that the bits of a term are within a range.
fn within_range(term: &FormulaTerm, (low, high): (u64, u64)) -> Formula {
    let compare = |sign, bits: u64| Formula::Compare(term.clone(), sign, FormulaTerm::Number(bits as i64));
    match low == high {
        true => compare("==", low),
        false => Formula::And(vec![compare(">=", low), compare("<=", high)]),
    }
}

/// Returns the first number from zero for which a condition holds, and `end` if there is none before it; the condition
/// holds for all numbers after one for which it holds.
fn first_of(end: u64, condition: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if condition(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Returns the claim that a cell has an expected value.
pub(crate) fn compare_value(
    scalar: Scalar,
    term: FormulaTerm,
    comparison: Comparison,
    text: &str,
    tolerance: Option<Tolerance>,
) -> Result<Formula, ScriptProblem> {
    let bits = scalar.parse(text)?;
    if let (Scalar::Unsigned(_), None) = (scalar, tolerance) {
        return Ok(Formula::Compare(term, comparison.sign(), FormulaTerm::Number(bits as i64)));
    }
    let near_of = |value: f64| tolerance.map_or(0.0, |tolerance| tolerance.difference(value));
    let ranges = match scalar {
        Scalar::Unsigned(width) | Scalar::Signed(width) => {
            let (value, smallest, largest) = match scalar {
                Scalar::Unsigned(_) => (i128::from(bits), 0, (1_i128 << width) - 1),
                _ => {
                    let largest = (1_i128 << (width - 1)) - 1;
                    (i128::from((bits << (64 - width)) as i64 >> (64 - width)), -largest - 1, largest)
                }
            };
            let near = near_of(value as f64).min(f64::from(u32::MAX).powi(2)) as i128;
            let (low, high) = match comparison {
                Comparison::Equal | Comparison::NotEqual => {
                    ((value - near).max(smallest), (value + near).min(largest))
                }
                Comparison::Less => (smallest, value - 1),
                Comparison::LessOrEqual => (smallest, value),
                Comparison::Greater => (value + 1, largest),
                Comparison::GreaterOrEqual => (value, largest),
            };
            let mask = u64::MAX >> (64 - width);
            [(low.max(0), high), (low, high.min(-1))]
                .map(|(low, high)| (low <= high).then_some((low as u64 & mask, high as u64 & mask)))
        }
        Scalar::Float(width) => {
            let value = float_from_bits(bits, width);
            let near = near_of(value);
            let next = |value: f64, is_up: bool| match float_to_bits(value.abs(), width) {
                0 => float_from_bits(1, width) * if is_up { 1.0 } else { -1.0 },
                _ if value.is_infinite() && (value > 0.0) == is_up => value,
                bits => {
                    let magnitude = if (value > 0.0) == is_up { bits + 1 } else { bits - 1 };
                    float_from_bits(magnitude, width).copysign(value)
                }
            };
            let (low, high) = match comparison {
                Comparison::Equal | Comparison::NotEqual => (value - near, value + near),
                Comparison::Less => (f64::NEG_INFINITY, next(value, false)),
                Comparison::LessOrEqual => (f64::NEG_INFINITY, value),
                Comparison::Greater => (next(value, true), f64::INFINITY),
                Comparison::GreaterOrEqual => (value, f64::INFINITY),
            };
            let bits = |value: f64| float_to_bits(value, width);
            let positive = (high >= 0.0).then(|| (bits(low.max(0.0).abs()), bits(high.abs())));
            let negative = (low <= 0.0).then(|| (bits(-high.min(0.0).abs()), bits(-low.abs())));
            [positive, negative]
        }
    };
    let ranges = ranges.into_iter().flatten();
    let within = Formula::Or(ranges.map(|range| within_range(&term, range)).collect());
    Ok(if comparison == Comparison::NotEqual { Formula::Not(Box::new(within)) } else { within })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates a claim for the bits of its term.
    fn holds(claim: &Formula, value: u64) -> bool {
        match claim {
            Formula::Compare(_, sign, FormulaTerm::Number(number)) => match *sign {
                "==" => value == *number as u64,
                "!=" => value != *number as u64,
                "<" => value < *number as u64,
                "<=" => value <= *number as u64,
                ">" => value > *number as u64,
                _ => value >= *number as u64,
            },
            Formula::And(parts) => parts.iter().all(|part| holds(part, value)),
            Formula::Or(parts) => parts.iter().any(|part| holds(part, value)),
            Formula::Not(inner) => !holds(inner, value),
            Formula::Compare(..) | Formula::Known(_) | Formula::AtLine(..) => panic!("{claim}"),
        }
    }

    #[test]
    fn claims_about_bits_are_comparisons_of_values() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let comparisons = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual];
        let term = || FormulaTerm::Number(0);
        let expected = |comparison, order: Option<std::cmp::Ordering>| match comparison {
            Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            NotEqual => !order.is_some_and(std::cmp::Ordering::is_eq),
            Less => order.is_some_and(std::cmp::Ordering::is_lt),
            LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        };
        let floats =
            [-1.5_f32, -0.0, 0.0, 1.0e-45, 2.0, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let integers = [i8::MIN, -2, -1, 0, 1, 5, i8::MAX];
        for comparison in comparisons {
            let check = |scalar, right: String, bits: u64, order| {
                let claim = compare_value(scalar, term(), comparison, &right, None).unwrap();
                assert_eq!(
                    holds(&claim, bits),
                    expected(comparison, order),
                    "{bits:#x} {comparison:?} {right}"
                );
            };
            for left in floats {
                for right in floats.iter().filter(|right| right.is_finite()) {
                    let order = left.partial_cmp(right);
                    check(Scalar::Float(32), format!("{right:?}"), left.to_bits().into(), order);
                }
            }
            for left in integers {
                for right in integers {
                    check(Scalar::Signed(8), right.to_string(), (left as u8).into(), Some(left.cmp(&right)));
                }
            }
        }
        let near = compare_value(Scalar::Float(32), term(), Equal, "-2.0", Tolerance::parse("10%")).unwrap();
        let values = [(-1.79_f32, false), (-1.81, true), (-2.19, true), (-2.21, false), (2.0, false)];
        for (value, is_near) in values {
            assert_eq!(holds(&near, value.to_bits().into()), is_near, "{value}");
        }
        // As `IsEqualWithTolerance` of Amber's verifier.
        for (expected, tolerance) in [(3, "1"), (100, "5%"), (-128, "3"), (2, "1e300"), (7, "0.5")] {
            let bound = Tolerance::parse(tolerance).unwrap();
            let is_near =
                |value: f64| (value - f64::from(expected)).abs() <= bound.difference(expected.into());
            for bits in u8::MIN..=u8::MAX {
                let numbers =
                    [(Scalar::Signed(8), f64::from(bits as i8)), (Scalar::Unsigned(8), bits.into())];
                for (scalar, value) in
                    numbers.into_iter().filter(|(scalar, _)| *scalar == Scalar::Signed(8) || expected >= 0)
                {
                    let claim =
                        compare_value(scalar, term(), Equal, &expected.to_string(), Some(bound)).unwrap();
                    assert_eq!(holds(&claim, bits.into()), is_near(value), "{value}: {expected} {tolerance}");
                }
            }
        }
    }

    /// Floats compare as in `Check.cpp` of LLVM's offload test suite.
    #[test]
    fn floats_near_others_are_ranges_of_bits() {
        let floats = [
            0.0_f32,
            1.0e-45,
            1.0e-39,
            0.1,
            0.100_000_01,
            0.100_000_02,
            1.0,
            1.000_1,
            3.0e38,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        let floats: Vec<f32> = floats.into_iter().flat_map(|float| [float, -float]).collect();
        let tolerances = [
            FloatTolerance::Ulps(0, 0.0),
            FloatTolerance::Ulps(2, 0.0),
            FloatTolerance::Epsilon(0.001),
            FloatTolerance::Epsilon(2.0),
        ];
        for (tolerance, may_flush) in tolerances.into_iter().flat_map(|one| [(one, true), (one, false)]) {
            for reference in &floats {
                let bits = u64::from(reference.to_bits());
                let term = FormulaTerm::Number(0);
                let claim =
                    compare_float(Scalar::Float(32), &term, bits, Some(tolerance), may_flush).unwrap();
                for float in &floats {
                    let is_flushed = may_flush && reference.is_subnormal() && *float == 0.0;
                    let is_near = match tolerance {
                        FloatTolerance::Ulps(count, _) => {
                            let bits = [float, reference].map(|float| i64::from(float.to_bits() as i32));
                            float.is_sign_negative() == reference.is_sign_negative()
                                && bits[0].abs_diff(bits[1]) <= count
                        }
                        FloatTolerance::Epsilon(bound) => f64::from(float - reference).abs() < bound,
                    };
                    let is_expected = match float.is_nan() || reference.is_nan() {
                        true => float.is_nan() && reference.is_nan(),
                        false => {
                            float == reference
                                || is_flushed && float.is_sign_negative() == reference.is_sign_negative()
                                || is_near
                        }
                    };
                    let found = holds(&claim, float.to_bits().into());
                    assert_eq!(
                        found, is_expected,
                        "{float:e}, {reference:e} within {tolerance:?}, {may_flush}"
                    );
                }
            }
        }
        let half = compare_float(
            Scalar::Float(16),
            &FormulaTerm::Number(0),
            0x3c00,
            Some(FloatTolerance::Epsilon(0.01)),
            true,
        );
        let half = half.unwrap();
        assert_eq!(
            [0x3beb, 0x3bec, 0x3c0a, 0x3c0b].map(|bits| holds(&half, bits)),
            [false, true, true, false]
        );
        let texts = [("0x1.8p-3", 0.1875), ("-0x0.8p1", -1.0), ("0x10", 16.0), ("-inf", f64::NEG_INFINITY)];
        assert!(texts.iter().all(|(text, value)| parse_float(text, 64) == Some(*value)));
        assert_eq!(["0x1.8p", "0xp1", "1.0f", ""].map(|text| parse_float(text, 64)), [None; 4]);
    }

    #[test]
    fn vectors_of_three_and_uniform_blocks_are_padded() {
        let vector = DataType { rows: 3, ..DataType::scalar(Scalar::Float(32)) };
        let matrix = DataType { rows: 2, columns: 2, ..vector };
        let uniform = DataType { is_std140: true, ..DataType::scalar(Scalar::Unsigned(32)) };
        let offsets = |ty: DataType| [2, 3, 4].map(|index| ty.component_offset(index));
        assert_eq!(
            [offsets(vector), offsets(matrix), offsets(uniform)],
            [[8, 16, 20], [8, 12, 16], [32, 48, 64]]
        );
    }
}
