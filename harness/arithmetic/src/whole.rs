//! Instructions on all components together: vector and matrix products, geometry, packing, and pairs of
//! results.

use rspirv::spirv::{GlslStd450Op as Extended, Op};

use crate::float::{bits_of, float_of, scaled};
use crate::instruction::{Instruction, NumberShape, Operand};
use crate::integer::{mask, signed};

/// Returns true for these instructions.
pub(crate) fn is_whole(instruction: Instruction) -> bool {
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
            Some(format.unpacked(*texel as u32).to_vec())
        }
        Instruction::Pack(format) => {
            let numbers = operands.first()?.numbers;
            let component = |index: usize| format.kept(index, numbers.get(index).copied().unwrap_or(0)).0;
            Some(vec![format.packed(std::array::from_fn(component))?.into()])
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
            wide(op, operands)
        }
        Instruction::Core(op) => match dot_signedness(op) {
            Some(signs) => integer_dot(signs, operands, *result.first()?),
            None => product(op, operands),
        },
        Instruction::Extended(Extended::ModfStruct | Extended::FrexpStruct) => {
            split(instruction, operands, result)
        }
        Instruction::Extended(op) => geometric(op, operands).or_else(|| packed(op, operands)),
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
    let whole = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    (bytes.len() == bits * to.count()).then(|| bytes.chunks(bits.max(1)).map(whole).collect())
}

/// Computes sums and products with a high half.
fn wide(op: Op, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let (left, right) = (operands.first()?, operands.get(1)?);
    let bits = left.shape.bits;
    let pairs = left.numbers.iter().zip(right.numbers).map(|(a, b)| {
        let (x, y) = (u128::from(*a), u128::from(*b));
        let (low, high) = match op {
            Op::IAddCarry => (x + y, (x + y) >> bits),
            Op::ISubBorrow => (x.wrapping_sub(y), u128::from(x < y)),
            Op::UMulExtended => (x * y, (x * y) >> bits),
            _ => {
                let product = i128::from(signed(*a, bits)) * i128::from(signed(*b, bits));
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
fn integer_dot((left, right): (bool, bool), operands: &[Operand<'_>], to: NumberShape) -> Option<Vec<u64>> {
    let components = |operand: &Operand<'_>, signs: bool| -> Vec<i128> {
        let number = |number: u64, bits: u32| match signs {
            true => i128::from(signed(number, bits)),
            false => i128::from(number & mask(bits)),
        };
        match operand.numbers {
            [packed] if operand.shape.rows == 1 => (0..4).map(|at| number(packed >> (8 * at), 8)).collect(),
            numbers => numbers.iter().map(|of| number(*of, operand.shape.bits)).collect(),
        }
    };
    let (a, b) = (components(operands.first()?, left), components(operands.get(1)?, right));
    let sum: i128 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    let Some(more) = operands.get(2) else { return Some(vec![sum as u64 & mask(to.bits)]) };
    let most = i128::from(mask(to.bits) >> u32::from(left));
    let least = if left { -most - 1 } else { 0 };
    let more = *more.numbers.first()?;
    let more = if left { i128::from(signed(more, to.bits)) } else { i128::from(more) };
    let fits = (least..=most).contains(&sum);
    fits.then(|| vec![(sum + more).clamp(least, most) as u64 & mask(to.bits)])
}

/// Returns the columns of a matrix.
fn matrix_columns(operand: &Operand<'_>) -> Vec<Vec<f64>> {
    floats(operand).chunks(operand.shape.rows.max(1) as usize).map(<[f64]>::to_vec).collect()
}

fn floats(operand: &Operand<'_>) -> Vec<f64> {
    operand.numbers.iter().map(|number| float_of(*number, operand.shape.bits)).collect()
}

fn transposed(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let rows = matrix.first().map_or(0, Vec::len);
    (0..rows).map(|row| matrix.iter().filter_map(|column| column.get(row).copied()).collect()).collect()
}

/// Returns the columns of a product; a vector has one.
fn product_columns(left: &Operand<'_>, rows: usize, right: &Operand<'_>) -> Option<Vec<f64>> {
    let bits = left.shape.bits;
    let rounded = |value: f64| float_of(bits_of(value, bits), bits);
    let inner = left.numbers.len().checked_div(rows).filter(|inner| *inner > 0)?;
    let mut all = Vec::with_capacity(rows * right.numbers.len() / inner);
    for column in right.numbers.chunks(inner) {
        for row in 0..rows {
            let numbers = left.numbers.iter().skip(row).step_by(rows).zip(column);
            let products = numbers.map(|(a, b)| rounded(float_of(*a, bits) * float_of(*b, bits)));
            all.push(products.fold(0.0, |sum, product| rounded(sum + product)));
        }
    }
    Some(all)
}

/// Computes products of vectors and matrices.
fn product(op: Op, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let left = operands.first()?;
    let bits = left.shape.bits;
    let right = operands.get(1).filter(|_| op != Op::Transpose);
    let of_right = || right.map(floats);
    let all: Vec<f64> = match op {
        Op::Transpose => transposed(&matrix_columns(left)).concat(),
        Op::Dot | Op::VectorTimesMatrix => product_columns(left, 1, right?)?,
        Op::MatrixTimesVector | Op::MatrixTimesMatrix => {
            product_columns(left, left.shape.rows as usize, right?)?
        }
        Op::VectorTimesScalar | Op::MatrixTimesScalar => {
            let by = *of_right()?.first()?;
            floats(left).into_iter().map(|value| value * by).collect()
        }
        Op::OuterProduct => {
            let left = floats(left);
            of_right()?.iter().flat_map(|by| left.iter().map(move |value| value * by)).collect()
        }
        _ => return None,
    };
    Some(all.into_iter().map(|value| bits_of(value, bits)).collect())
}

/// Splits a number into two results.
fn split(instruction: Instruction, operands: &[Operand<'_>], result: &[NumberShape]) -> Option<Vec<u64>> {
    let [first, second] = result else { return None };
    let halves = floats(operands.first()?).into_iter().map(|value| match instruction {
        Instruction::Extended(Extended::ModfStruct) => {
            (bits_of(value.fract(), first.bits), bits_of(value.trunc(), second.bits))
        }
        _ => {
            // A subnormal 64-bit number is scaled up first.
            let raised = if value.abs() < f64::MIN_POSITIVE { scaled(value, 64) } else { value };
            let own = (raised.to_bits() >> 52 & 0x7ff) as i32;
            let finite = value != 0.0 && value.is_finite();
            let exponent = if finite { own - 1022 - if raised == value { 0 } else { 64 } } else { 0 };
            let significand = if finite { scaled(value, -exponent) } else { value };
            (bits_of(significand, first.bits), u64::from(exponent as u32) & mask(second.bits))
        }
    });
    let (a, b): (Vec<_>, Vec<_>) = halves.unzip();
    Some([a, b].concat())
}

fn inner_product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes lengths, distances, directions and matrix functions.
fn geometric(op: Extended, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let first = operands.first()?;
    let bits = first.shape.bits;
    let a = floats(first);
    let b = operands.get(1).map(floats).unwrap_or_default();
    let c = operands.get(2).map(floats).unwrap_or_default();
    let length = |of: &[f64]| inner_product(of, of).sqrt();
    let all = match op {
        Extended::Length => vec![length(&a)],
        Extended::Distance => vec![length(&a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vec<_>>())],
        Extended::Normalize => a.iter().map(|x| x / length(&a)).collect(),
        Extended::Cross => match (&a[..], &b[..]) {
            ([a0, a1, a2], [b0, b1, b2]) => vec![a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0],
            _ => return None,
        },
        Extended::Reflect => {
            let twice = 2.0 * inner_product(&b, &a);
            a.iter().zip(&b).map(|(i, n)| i - twice * n).collect()
        }
        Extended::Refract => {
            let (eta, along) = (*c.first()?, inner_product(&b, &a));
            let k = 1.0 - eta * eta * (1.0 - along * along);
            let root = eta * along + k.max(0.0).sqrt();
            a.iter().zip(&b).map(|(i, n)| if k < 0.0 { 0.0 } else { eta * i - root * n }).collect()
        }
        Extended::FaceForward => {
            let side = inner_product(&c, &b) < 0.0;
            a.iter().map(|x| if side { *x } else { -x }).collect()
        }
        Extended::Determinant => vec![determinant(matrix_columns(first))],
        Extended::MatrixInverse => inverse(matrix_columns(first))?.concat(),
        _ => return None,
    };
    Some(all.into_iter().map(|value| bits_of(value, bits)).collect())
}

/// Gaussian elimination with partial pivoting.
fn determinant(mut matrix: Vec<Vec<f64>>) -> f64 {
    let mut product = 1.0;
    for at in 0..matrix.len() {
        let Some(pivot) =
            (at..matrix.len()).max_by(|a, b| matrix[*a][at].abs().total_cmp(&matrix[*b][at].abs()))
        else {
            return 0.0;
        };
        if matrix[pivot][at] == 0.0 {
            return 0.0;
        }
        if pivot != at {
            matrix.swap(pivot, at);
            product = -product;
        }
        product *= matrix[at][at];
        let first = matrix[at].clone();
        for other in matrix.iter_mut().skip(at + 1) {
            let by = other[at] / first[at];
            other.iter_mut().zip(&first).for_each(|(number, first)| *number -= by * first);
        }
    }
    product
}

/// Returns the columns of the inverse, by minors; undefined for a singular matrix.
fn inverse(matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    if size < 2 || matrix.iter().any(|column| column.len() != size) {
        return None;
    }
    let without = |column: usize, row: usize| -> Vec<Vec<f64>> {
        let kept = matrix.iter().enumerate().filter(|(at, _)| *at != column);
        let rows = |(_, all): (usize, &Vec<f64>)| {
            all.iter().enumerate().filter(|(at, _)| *at != row).map(|(_, value)| *value).collect()
        };
        kept.map(rows).collect()
    };
    let whole = determinant(matrix.clone());
    let entry = |column: usize, row: usize| {
        let sign = if (row + column).is_multiple_of(2) { 1.0 } else { -1.0 };
        sign * determinant(without(row, column)) / whole
    };
    Some((0..size).map(|column| (0..size).map(|row| entry(column, row)).collect()).collect())
}

/// Computes packing and unpacking.
fn packed(op: Extended, operands: &[Operand<'_>]) -> Option<Vec<u64>> {
    let operand = operands.first()?;
    let first = *operand.numbers.first()?;
    let at = |index: usize| operand.numbers.get(index).map_or(0.0, |bits| float_of(*bits, 32));
    let words = |all: Vec<f64>| all.into_iter().map(|value| bits_of(value, 32)).collect::<Vec<_>>();
    let fixed = |index: usize, bits: u32, signs: bool| {
        let most = (mask(bits) >> u32::from(signs)) as f64;
        let value = at(index).clamp(if signs { -1.0 } else { 0.0 }, 1.0);
        (value * most).round_ties_even() as i64 as u64 & mask(bits)
    };
    let all = |count: usize, bits: u32, signs: bool| {
        vec![(0..count).fold(0, |all, at| all | fixed(at, bits, signs) << (bits as usize * at))]
    };
    let loose = |count: u32, bits: u32, signs: bool| {
        let most = (mask(bits) >> u32::from(signs)) as f64;
        let field = |index: u32| first >> (index * bits) & mask(bits);
        let value = |field: u64| match signs {
            true => (signed(field, bits) as f64 / most).clamp(-1.0, 1.0),
            false => field as f64 / most,
        };
        words((0..count).map(|index| value(field(index))).collect())
    };
    Some(match op {
        Extended::PackHalf2x16 => vec![bits_of(at(0), 16) | bits_of(at(1), 16) << 16],
        Extended::UnpackHalf2x16 => words([0, 16].map(|by| float_of(first >> by & 0xffff, 16)).to_vec()),
        Extended::PackUnorm2x16 => all(2, 16, false),
        Extended::PackSnorm2x16 => all(2, 16, true),
        Extended::PackUnorm4x8 => all(4, 8, false),
        Extended::PackSnorm4x8 => all(4, 8, true),
        Extended::UnpackUnorm2x16 => loose(2, 16, false),
        Extended::UnpackSnorm2x16 => loose(2, 16, true),
        Extended::UnpackUnorm4x8 => loose(4, 8, false),
        Extended::UnpackSnorm4x8 => loose(4, 8, true),
        Extended::PackDouble2x32 => vec![first & mask(32) | operand.numbers.get(1)? << 32],
        Extended::UnpackDouble2x32 => vec![first & mask(32), first >> 32],
        _ => return None,
    })
}
