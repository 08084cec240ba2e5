//! Instructions on composites: vector and matrix products, geometry, packing, and pairs of
//! results.

use rspirv::spirv::{GlslStd450Op as Extended, Op};

use crate::float::{float_from_bits, float_to_bits, ldexp, split_fraction};
use crate::instruction::{Instruction, NumberShape, Operand};
use crate::integer::{mask, sign_extend};

/// Returns true if the instruction needs all components of its operands together.
pub(crate) fn is_composite(instruction: Instruction) -> bool {
    match instruction {
        Instruction::Unpack(_) | Instruction::Pack(_) => true,
        Instruction::Core(op) => {
            matches!(
                op,
                Op::Any
                    | Op::All
                    | Op::Dot
                    | Op::VectorTimesMatrix
                    | Op::MatrixTimesVector
                    | Op::MatrixTimesMatrix
                    | Op::OuterProduct
                    | Op::Transpose
                    | Op::VectorTimesScalar
                    | Op::MatrixTimesScalar
                    | Op::IAddCarry
                    | Op::ISubBorrow
                    | Op::UMulExtended
                    | Op::SMulExtended
                    | Op::Bitcast
            ) || dot_signedness(op).is_some()
        }
        Instruction::Extended(op) => matches!(
            op,
            Extended::Length
                | Extended::Distance
                | Extended::Normalize
                | Extended::Cross
                | Extended::Reflect
                | Extended::Refract
                | Extended::FaceForward
                | Extended::Determinant
                | Extended::MatrixInverse
                | Extended::ModfStruct
                | Extended::FrexpStruct
                | Extended::PackHalf2x16
                | Extended::UnpackHalf2x16
                | Extended::PackUnorm2x16
                | Extended::PackSnorm2x16
                | Extended::PackUnorm4x8
                | Extended::PackSnorm4x8
                | Extended::UnpackUnorm2x16
                | Extended::UnpackSnorm2x16
                | Extended::UnpackUnorm4x8
                | Extended::UnpackSnorm4x8
                | Extended::PackDouble2x32
                | Extended::UnpackDouble2x32
        ),
    }
}

pub(crate) fn compute(
    instruction: Instruction,
    operands: &[Operand<'_>],
    result: &[NumberShape],
) -> Option<Vec<u64>> {
    match instruction {
        Instruction::Unpack(format) => {
            let texel = operands.first()?.numbers.first()?;
            Some(format.unpack((*texel).into()).to_vec())
        }
        Instruction::Pack(format) => {
            let numbers = operands.first()?.numbers;
            let component = |index: usize| format.quantize(index, numbers.get(index).copied().unwrap_or(0)).0;
            Some(vec![format.pack(std::array::from_fn(component))? as u64])
        }
        Instruction::Core(Op::Bitcast) => bitcast(operands.first()?, *result.first()?),
        Instruction::Core(op @ (Op::Any | Op::All)) => {
            let numbers = operands.first()?.numbers;
            let holds = match op {
                Op::Any => numbers.iter().any(|number| *number != 0),
                _ => numbers.iter().all(|number| *number != 0),
            };
            Some(vec![u64::from(holds)])
        }
        Instruction::Core(op @ (Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended)) => {
            compute_wide(op, operands)
        }
        Instruction::Core(op) => match dot_signedness(op) {
            Some((left, right)) => compute_integer_dot(left, right, operands, *result.first()?),
            None => compute_product(op, operands),
        },
        Instruction::Extended(Extended::ModfStruct | Extended::FrexpStruct) => {
            split_float(instruction, operands, result)
        }
        Instruction::Extended(op) => {
            compute_geometric(op, operands).or_else(|| compute_packing(op, operands))
        }
    }
}

/// Reinterprets bits as other numbers.
fn bitcast(operand: &Operand<'_>, to: NumberShape) -> Option<Vec<u64>> {
    let (from, bits) = (operand.shape.bits.div_ceil(8) as usize, to.bits.div_ceil(8) as usize);
    if from == bits {
        return Some(operand.numbers.to_vec());
    }
    let bytes: Vec<u8> =
        (operand.numbers.iter()).flat_map(|number| number.to_le_bytes().into_iter().take(from)).collect();
    let from_le_bytes = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    (bytes.len() == bits * to.count()).then(|| bytes.chunks(bits.max(1)).map(from_le_bytes).collect())
}

/// Computes an addition, subtraction or multiplication with its carry, borrow or high half.
fn compute_wide(op: Op, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let (left, right) = (operands.first()?, operands.get(1)?);
    let bits = left.shape.bits;
    let pairs = left.numbers.iter().zip(right.numbers).map(|(a, b)| {
        let (x, y) = (u128::from(*a), u128::from(*b));
        let (low, high) = match op {
            Op::IAddCarry => (x + y, (x + y) >> bits),
            Op::ISubBorrow => (x.wrapping_sub(y), u128::from(x < y)),
            Op::UMulExtended => (x * y, (x * y) >> bits),
            _ => {
                let product = i128::from(sign_extend(*a, bits)) * i128::from(sign_extend(*b, bits));
                (product as u128, (product >> bits) as u128)
            }
        };
        (low as u64 & mask(bits), high as u64 & mask(bits))
    });
    let (low, high): (Vec<_>, Vec<_>) = pairs.unzip();
    Some([low, high].concat())
}

/// Returns the signedness of both operands of an integer dot product; `None` for other instructions.
fn dot_signedness(op: Op) -> Option<(bool, bool)> {
    match op {
        Op::SDot | Op::SDotAccSat => Some((true, true)),
        Op::UDot | Op::UDotAccSat => Some((false, false)),
        Op::SUDot | Op::SUDotAccSat => Some((true, false)),
        _ => None,
    }
}

/// Computes an integer dot product; a scalar operand holds four 8-bit components.
///
/// A third operand is added with saturation. The result is undefined if the dot product overflows before the addition.
fn compute_integer_dot(
    left: bool,
    right: bool,
    operands: &[Operand<'_>],
    to: NumberShape,
) -> Option<Vec<u64>> {
    let components = |operand: &Operand<'_>, signs: bool| -> Vec<i128> {
        let number = |number: u64, bits: u32| match signs {
            true => i128::from(sign_extend(number, bits)),
            false => i128::from(number & mask(bits)),
        };
        match operand.numbers {
            [packed] if operand.shape.rows == 1 => (0..4).map(|at| number(packed >> (8 * at), 8)).collect(),
            numbers => numbers.iter().map(|of| number(*of, operand.shape.bits)).collect(),
        }
    };
    let (a, b) = (components(operands.first()?, left), components(operands.get(1)?, right));
    let sum: i128 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    let Some(accumulator) = operands.get(2) else { return Some(vec![sum as u64 & mask(to.bits)]) };
    let max_value = i128::from(mask(to.bits) >> u32::from(left));
    let min_value = if left { -max_value - 1 } else { 0 };
    let accumulator = *accumulator.numbers.first()?;
    let accumulator =
        if left { i128::from(sign_extend(accumulator, to.bits)) } else { i128::from(accumulator) };
    let fits = (min_value..=max_value).contains(&sum);
    fits.then(|| vec![(sum + accumulator).clamp(min_value, max_value) as u64 & mask(to.bits)])
}

fn matrix_columns(operand: &Operand<'_>) -> Vec<Vec<f64>> {
    to_floats(operand).chunks(operand.shape.rows.max(1) as usize).map(<[f64]>::to_vec).collect()
}

pub(crate) fn to_floats(operand: &Operand<'_>) -> Vec<f64> {
    operand.numbers.iter().map(|number| float_from_bits(*number, operand.shape.bits)).collect()
}

fn transpose(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let rows = matrix.first().map_or(0, Vec::len);
    (0..rows).map(|row| matrix.iter().filter_map(|column| column.get(row).copied()).collect()).collect()
}

/// Returns the columns of a product; a vector has one.
fn product_columns(left: &Operand<'_>, rows: usize, right: &Operand<'_>) -> Option<Vec<f64>> {
    let bits = left.shape.bits;
    let rounded = |value: f64| float_from_bits(float_to_bits(value, bits), bits);
    let inner = left.numbers.len().checked_div(rows).filter(|inner| *inner > 0)?;
    let mut all = Vec::with_capacity(rows * right.numbers.len() / inner);
    for column in right.numbers.chunks(inner) {
        for row in 0..rows {
            let numbers = left.numbers.iter().skip(row).step_by(rows).zip(column);
            let products =
                numbers.map(|(a, b)| rounded(float_from_bits(*a, bits) * float_from_bits(*b, bits)));
            // The sum of negative zeros is negative.
            all.push(products.fold(-0.0, |sum, product| rounded(sum + product)));
        }
    }
    Some(all)
}

/// Computes products of vectors and matrices.
fn compute_product(op: Op, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let left = operands.first()?;
    let bits = left.shape.bits;
    let right = operands.get(1).filter(|_| op != Op::Transpose);
    let right_floats = || right.map(to_floats);
    let all: Vec<f64> = match op {
        Op::Transpose => transpose(&matrix_columns(left)).concat(),
        Op::Dot | Op::VectorTimesMatrix => product_columns(left, 1, right?)?,
        Op::MatrixTimesVector | Op::MatrixTimesMatrix => {
            product_columns(left, left.shape.rows as usize, right?)?
        }
        Op::VectorTimesScalar | Op::MatrixTimesScalar => {
            let factor = *right_floats()?.first()?;
            to_floats(left).into_iter().map(|value| value * factor).collect()
        }
        Op::OuterProduct => {
            let left = to_floats(left);
            right_floats()?.iter().flat_map(|factor| left.iter().map(move |value| value * factor)).collect()
        }
        _ => return None,
    };
    Some(all.into_iter().map(|value| float_to_bits(value, bits)).collect())
}

/// Splits floats into fraction and whole number, or into significand and exponent.
fn split_float(
    instruction: Instruction,
    operands: &[Operand<'_>],
    result: &[NumberShape],
) -> Option<Vec<u64>> {
    let [first, second] = result else { return None };
    let halves = to_floats(operands.first()?).into_iter().map(|value| match instruction {
        Instruction::Extended(Extended::ModfStruct) => {
            let (fraction, whole) = split_fraction(value);
            (float_to_bits(fraction, first.bits), float_to_bits(whole, second.bits))
        }
        _ => {
            // A subnormal 64-bit number is scaled up first.
            let scaled_up = if value.abs() < f64::MIN_POSITIVE { ldexp(value, 64) } else { value };
            let biased_exponent = (scaled_up.to_bits() >> 52 & 0x7ff) as i32;
            let finite = value != 0.0 && value.is_finite();
            let exponent =
                if finite { biased_exponent - 1022 - if scaled_up == value { 0 } else { 64 } } else { 0 };
            let significand = if finite { ldexp(value, -exponent) } else { value };
            (float_to_bits(significand, first.bits), u64::from(exponent as u32) & mask(second.bits))
        }
    });
    let (a, b): (Vec<_>, Vec<_>) = halves.unzip();
    Some([a, b].concat())
}

fn dot_product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes lengths, distances, directions and matrix functions.
fn compute_geometric(op: Extended, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let first = operands.first()?;
    let bits = first.shape.bits;
    let a = to_floats(first);
    let b = operands.get(1).map(to_floats).unwrap_or_default();
    let c = operands.get(2).map(to_floats).unwrap_or_default();
    let length = |vector: &[f64]| dot_product(vector, vector).sqrt();
    let all = match op {
        Extended::Length => vec![length(&a)],
        Extended::Distance => vec![length(&a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vec<_>>())],
        Extended::Normalize => a.iter().map(|x| x / length(&a)).collect(),
        Extended::Cross => match (&a[..], &b[..]) {
            ([a0, a1, a2], [b0, b1, b2]) => vec![a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0],
            _ => return None,
        },
        Extended::Reflect => {
            let twice = 2.0 * dot_product(&b, &a);
            a.iter().zip(&b).map(|(i, n)| i - twice * n).collect()
        }
        Extended::Refract => {
            let (eta, normal_dot_incident) = (*c.first()?, dot_product(&b, &a));
            let k = 1.0 - eta * eta * (1.0 - normal_dot_incident * normal_dot_incident);
            let root = eta * normal_dot_incident + k.max(0.0).sqrt();
            a.iter().zip(&b).map(|(i, n)| if k < 0.0 { 0.0 } else { eta * i - root * n }).collect()
        }
        Extended::FaceForward => {
            let keeps_normal = dot_product(&c, &b) < 0.0;
            a.iter().map(|x| if keeps_normal { *x } else { -x }).collect()
        }
        Extended::Determinant => vec![determinant(&matrix_columns(first))],
        Extended::MatrixInverse => invert_matrix(&matrix_columns(first))?.concat(),
        _ => return None,
    };
    Some(all.into_iter().map(|value| float_to_bits(value, bits)).collect())
}

/// Returns a matrix without a column and a row.
fn minor(matrix: &[Vec<f64>], column: usize, row: usize) -> Vec<Vec<f64>> {
    let without = |at: usize, mut all: Vec<f64>| {
        all.remove(at);
        all
    };
    let columns = matrix.iter().enumerate().filter(|(at, _)| *at != column);
    columns.map(|(_, all)| without(row, all.clone())).collect()
}

/// Returns the determinant, by minors of the first column as compilers do: elimination would round more often.
fn determinant(matrix: &[Vec<f64>]) -> f64 {
    let Some(first) = matrix.first() else { return 1.0 };
    let sign = |row: usize| if row.is_multiple_of(2) { 1.0 } else { -1.0 };
    (first.iter().enumerate())
        .map(|(row, number)| sign(row) * number * determinant(&minor(matrix, 0, row)))
        .sum()
}

/// Returns the columns of the inverse, by minors; undefined for a singular matrix.
fn invert_matrix(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    if size < 2 || matrix.iter().any(|column| column.len() != size) {
        return None;
    }
    let full_determinant = determinant(matrix);
    let entry = |column: usize, row: usize| {
        let sign = if (row + column).is_multiple_of(2) { 1.0 } else { -1.0 };
        sign * determinant(&minor(matrix, row, column)) / full_determinant
    };
    let column = |column| (0..size).map(|row| entry(column, row)).collect();
    (full_determinant != 0.0).then(|| (0..size).map(column).collect())
}

/// Computes an instruction that packs or unpacks components.
fn compute_packing(op: Extended, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let operand = operands.first()?;
    let first = *operand.numbers.first()?;
    let at = |index: usize| operand.numbers.get(index).map_or(0.0, |bits| float_from_bits(*bits, 32));
    let words = |all: Vec<f64>| all.into_iter().map(|value| float_to_bits(value, 32)).collect::<Vec<_>>();
    let pack_component = |index: usize, bits: u32, signs: bool| {
        let max_value = (mask(bits) >> u32::from(signs)) as f64;
        let value = at(index).clamp(if signs { -1.0 } else { 0.0 }, 1.0);
        (value * max_value).round_ties_even() as i64 as u64 & mask(bits)
    };
    let pack_components = |count: usize, bits: u32, signs: bool| {
        vec![(0..count).fold(0, |all, at| all | pack_component(at, bits, signs) << (bits as usize * at))]
    };
    let unpack_components = |count: u32, bits: u32, signs: bool| {
        let max_value = (mask(bits) >> u32::from(signs)) as f64;
        let field = |index: u32| first >> (index * bits) & mask(bits);
        let value = |field: u64| match signs {
            true => (sign_extend(field, bits) as f64 / max_value).clamp(-1.0, 1.0),
            false => field as f64 / max_value,
        };
        words((0..count).map(|index| value(field(index))).collect())
    };
    Some(match op {
        Extended::PackHalf2x16 => vec![float_to_bits(at(0), 16) | float_to_bits(at(1), 16) << 16],
        Extended::UnpackHalf2x16 => {
            words([0, 16].map(|by| float_from_bits(first >> by & 0xffff, 16)).to_vec())
        }
        Extended::PackUnorm2x16 => pack_components(2, 16, false),
        Extended::PackSnorm2x16 => pack_components(2, 16, true),
        Extended::PackUnorm4x8 => pack_components(4, 8, false),
        Extended::PackSnorm4x8 => pack_components(4, 8, true),
        Extended::UnpackUnorm2x16 => unpack_components(2, 16, false),
        Extended::UnpackSnorm2x16 => unpack_components(2, 16, true),
        Extended::UnpackUnorm4x8 => unpack_components(4, 8, false),
        Extended::UnpackSnorm4x8 => unpack_components(4, 8, true),
        Extended::PackDouble2x32 => vec![first & mask(32) | operand.numbers.get(1)? << 32],
        Extended::UnpackDouble2x32 => vec![first & mask(32), first >> 32],
        _ => return None,
    })
}
