//! Types and values of buffers, and comparisons of them as claims about their bits.
//!
//! Claims compare cells as unsigned numbers. A range of signed integers or floats is one range of unsigned numbers for
//! its positive part and one for its negative part, whose bits ascend with the magnitude of floats.

use spirv_reader::annotations::{Formula, FormulaTerm};

use super::{MAX_BUFFER_BYTES, ScriptProblem};

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Signed(u32),
    Unsigned(u32),
    /// A float of 32 or 64 bits.
    Float(u32),
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

/// A comparison of a value with an expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The largest difference of equal floats.
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
    fn parse(self, text: &str) -> Result<u64, ScriptProblem> {
        let invalid = |expected| ScriptProblem::Value(text.to_owned(), expected);
        let integer = || match text.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => text.parse::<i128>().ok(),
        };
        match self {
            Scalar::Unsigned(bits) => {
                let value = integer().filter(|value| (0..1 << bits).contains(value));
                value.map(|value| value as u64).ok_or_else(|| invalid("an unsigned number of its size"))
            }
            Scalar::Signed(bits) => {
                // Hexadecimal numbers give the bits.
                let largest = if text.starts_with("0x") { 1 << bits } else { 1 << (bits - 1) };
                let value = integer().filter(|value| (-(1 << (bits - 1))..largest).contains(value));
                let value = value.ok_or_else(|| invalid("a signed number of its size"))?;
                Ok(value as u64 & u64::MAX >> (64 - bits))
            }
            Scalar::Float(bits) => {
                let value = text.parse::<f64>().map_err(|_| invalid("a float"))?;
                Ok(self.to_bits(value, bits))
            }
        }
    }

    fn to_bits(self, value: f64, bits: u32) -> u64 {
        if bits == 32 { u64::from((value as f32).to_bits()) } else { value.to_bits() }
    }
}

impl DataType {
    pub fn scalar(scalar: Scalar) -> DataType {
        DataType { scalar, rows: 1, columns: 1, is_std140: false }
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
        values: &[&str],
    ) -> Result<(), ScriptProblem> {
        for (index, text) in (0..).zip(values) {
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
            let value = self.scalar.parse(text)?.to_le_bytes();
            if let (Some(place), Some(value)) = (contents.get_mut(start..end), value.get(..bytes)) {
                place.copy_from_slice(value);
            }
        }
        Ok(())
    }
}

/// Returns the claim that a cell has an expected value.
pub(crate) fn compare_value(
    scalar: Scalar,
    term: FormulaTerm,
    comparator: Comparator,
    text: &str,
    tolerance: Option<Tolerance>,
) -> Result<Formula, ScriptProblem> {
    let bits = scalar.parse(text)?;
    let equal = |sign| Formula::Compare(term.clone(), sign, FormulaTerm::Number(bits as i64));
    let ranges = match scalar {
        Scalar::Unsigned(_) => {
            return Ok(equal(match comparator {
                Comparator::Equal => "==",
                Comparator::NotEqual => "!=",
                Comparator::Less => "<",
                Comparator::LessOrEqual => "<=",
                Comparator::Greater => ">",
                Comparator::GreaterOrEqual => ">=",
            }));
        }
        Scalar::Signed(width) => {
            let value = i128::from((bits << (64 - width)) as i64 >> (64 - width));
            let smallest = -(1_i128 << (width - 1));
            let (low, high) = match comparator {
                Comparator::Equal | Comparator::NotEqual => (value, value),
                Comparator::Less => (smallest, value - 1),
                Comparator::LessOrEqual => (smallest, value),
                Comparator::Greater => (value + 1, -smallest - 1),
                Comparator::GreaterOrEqual => (value, -smallest - 1),
            };
            let mask = u64::MAX >> (64 - width);
            [(low.max(0), high), (low, high.min(-1))]
                .map(|(low, high)| (low <= high).then_some((low as u64 & mask, high as u64 & mask)))
        }
        Scalar::Float(width) => {
            let value: f64 = text.parse().unwrap_or(f64::NAN);
            let value = if width == 32 { f64::from(value as f32) } else { value };
            let near = tolerance.map_or(0.0, |tolerance| tolerance.difference(value));
            let next = |value: f64, up: bool| match (width, up) {
                (32, true) => f64::from((value as f32).next_up()),
                (32, false) => f64::from((value as f32).next_down()),
                (_, true) => value.next_up(),
                (_, false) => value.next_down(),
            };
            let (low, high) = match comparator {
                Comparator::Equal | Comparator::NotEqual => (value - near, value + near),
                Comparator::Less => (f64::NEG_INFINITY, next(value, false)),
                Comparator::LessOrEqual => (f64::NEG_INFINITY, value),
                Comparator::Greater => (next(value, true), f64::INFINITY),
                Comparator::GreaterOrEqual => (value, f64::INFINITY),
            };
            let bits = |value: f64| scalar.to_bits(value, width);
            let positive = (high >= 0.0).then(|| (bits(low.max(0.0).abs()), bits(high.abs())));
            let negative = (low <= 0.0).then(|| (bits(-high.min(0.0).abs()), bits(-low.abs())));
            [positive, negative]
        }
    };
    let compare = |sign, bits: u64| Formula::Compare(term.clone(), sign, FormulaTerm::Number(bits as i64));
    let range = |(low, high): (u64, u64)| match low == high {
        true => compare("==", low),
        false => Formula::And(vec![compare(">=", low), compare("<=", high)]),
    };
    let within = Formula::Or(ranges.into_iter().flatten().map(range).collect());
    Ok(if comparator == Comparator::NotEqual { Formula::Not(Box::new(within)) } else { within })
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
            Formula::Compare(..) | Formula::Known(_) => panic!("{claim}"),
        }
    }

    #[test]
    fn claims_about_bits_are_comparisons_of_values() {
        use Comparator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let comparators = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual];
        let term = || FormulaTerm::Number(0);
        let expected = |comparator, order: Option<std::cmp::Ordering>| match comparator {
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
        for comparator in comparators {
            for left in floats {
                for right in floats.iter().filter(|right| right.is_finite()) {
                    let text = format!("{right:?}");
                    let claim = compare_value(Scalar::Float(32), term(), comparator, &text, None).unwrap();
                    let is_expected = expected(comparator, left.partial_cmp(right));
                    assert_eq!(
                        holds(&claim, left.to_bits().into()),
                        is_expected,
                        "{left} {comparator:?} {right}"
                    );
                }
            }
            for left in integers {
                for right in integers {
                    let text = right.to_string();
                    let claim = compare_value(Scalar::Signed(8), term(), comparator, &text, None).unwrap();
                    let is_expected = expected(comparator, Some(left.cmp(&right)));
                    assert_eq!(
                        holds(&claim, (left as u8).into()),
                        is_expected,
                        "{left} {comparator:?} {right}"
                    );
                }
            }
        }
        let near = compare_value(Scalar::Float(32), term(), Equal, "-2.0", Tolerance::parse("10%")).unwrap();
        let values = [(-1.79_f32, false), (-1.81, true), (-2.19, true), (-2.21, false), (2.0, false)];
        for (value, is_near) in values {
            assert_eq!(holds(&near, value.to_bits().into()), is_near, "{value}");
        }
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
