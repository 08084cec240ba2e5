//! Arithmetic on integers and booleans.

use rspirv::spirv::{GlslStd450Op, Op};

/// Returns a mask of the low `bits` bits.
#[inline]
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[inline]
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    ((value << shift) as i64) >> shift
}

/// Computes an instruction; `None` if it is unknown or its result undefined.
///
/// `from` is the width of the first operand, `bits` that of the result.
#[inline]
pub fn fold(op: Op, arguments: &[u64], from: u32, bits: u32) -> Option<u64> {
    let a = *arguments.first()?;
    let b = arguments.get(1).copied().unwrap_or(0);
    let (x, y) = (sign_extend(a, from), sign_extend(b, from));
    let truth = |holds: bool| Some(u64::from(holds));
    let result = match op {
        Op::IAdd => a.wrapping_add(b),
        Op::ISub => a.wrapping_sub(b),
        Op::IMul => a.wrapping_mul(b),
        Op::UDiv => a.checked_div(b)?,
        Op::UMod => a.checked_rem(b)?,
        // The quotient overflows, which is as undefined as a division by zero.
        Op::SDiv | Op::SRem | Op::SMod if y == -1 && x == sign_extend(1 << (from.clamp(1, 64) - 1), from) => {
            return None;
        }
        Op::SDiv => x.checked_div(y)? as u64,
        Op::SRem => x.checked_rem(y)? as u64,
        Op::SMod => {
            let rest = x.checked_rem(y)?;
            (if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }) as u64
        }
        Op::SNegate => a.wrapping_neg(),
        Op::Not => !a,
        Op::BitwiseAnd => a & b,
        Op::BitwiseOr => a | b,
        Op::BitwiseXor => a ^ b,
        Op::ShiftLeftLogical if b < u64::from(bits) => a << b,
        Op::ShiftRightLogical if b < u64::from(bits) => a >> b,
        Op::ShiftRightArithmetic if b < u64::from(bits) => (x >> b) as u64,
        Op::BitCount => u64::from(a.count_ones()),
        Op::BitReverse => a.reverse_bits() >> (64 - bits.clamp(1, 64)),
        Op::BitFieldUExtract | Op::BitFieldSExtract => {
            let count = *arguments.get(2)?;
            if b.saturating_add(count) > u64::from(bits) {
                return None;
            }
            let field = (a >> b) & mask(count as u32);
            match op {
                Op::BitFieldSExtract if count > 0 => sign_extend(field, count as u32) as u64,
                _ => field,
            }
        }
        Op::BitFieldInsert => {
            let (offset, count) = (*arguments.get(2)?, *arguments.get(3)?);
            if offset.saturating_add(count) > u64::from(bits) {
                return None;
            }
            let field = mask(count as u32) << offset;
            a & !field | b << offset & field
        }
        Op::UConvert | Op::Bitcast | Op::CopyObject | Op::CopyLogical => a,
        Op::SConvert => x as u64,
        Op::LogicalNot => return truth(a == 0),
        Op::LogicalAnd => return truth(a != 0 && b != 0),
        Op::LogicalOr => return truth(a != 0 || b != 0),
        Op::LogicalEqual => return truth(a == b),
        Op::LogicalNotEqual => return truth(a != b),
        Op::IEqual => return truth(a == b),
        Op::INotEqual => return truth(a != b),
        Op::ULessThan => return truth(a < b),
        Op::ULessThanEqual => return truth(a <= b),
        Op::UGreaterThan => return truth(a > b),
        Op::UGreaterThanEqual => return truth(a >= b),
        Op::SLessThan => return truth(x < y),
        Op::SLessThanEqual => return truth(x <= y),
        Op::SGreaterThan => return truth(x > y),
        Op::SGreaterThanEqual => return truth(x >= y),
        _ => return None,
    };
    Some(result & mask(bits))
}

/// Returns true if the operand absorbs: the result equals it whatever the other is, as in `x * 0`.
pub fn is_absorbing_operand(op: Op, operand: u64, bits: u32) -> bool {
    match op {
        Op::LogicalAnd | Op::BitwiseAnd | Op::IMul => operand == 0,
        Op::LogicalOr => operand != 0,
        Op::BitwiseOr => operand == mask(bits),
        _ => false,
    }
}

/// Returns true if [`fold`] supports the instruction.
pub fn can_fold(op: Op) -> bool {
    fold(op, &[0, 1, 0, 0], 64, 64).is_some()
}

/// Computes a `GLSL.std.450` instruction on integers.
///
/// `from` is the width of the operands, `bits` that of the result.
pub fn fold_extended(op: GlslStd450Op, arguments: &[u64], from: u32, bits: u32) -> Option<u64> {
    let a = *arguments.first()?;
    let b = arguments.get(1).copied().unwrap_or(0);
    let c = arguments.get(2).copied().unwrap_or(0);
    let s = |value: u64| sign_extend(value, from);
    let result = match op {
        GlslStd450Op::UMin => a.min(b),
        GlslStd450Op::UMax => a.max(b),
        GlslStd450Op::UClamp if b > c => return None,
        GlslStd450Op::SClamp if s(b) > s(c) => return None,
        GlslStd450Op::UClamp => a.max(b).min(c),
        GlslStd450Op::SMin => s(a).min(s(b)) as u64,
        GlslStd450Op::SMax => s(a).max(s(b)) as u64,
        GlslStd450Op::SClamp => s(a).max(s(b)).min(s(c)) as u64,
        GlslStd450Op::SAbs => s(a).wrapping_abs() as u64,
        GlslStd450Op::SSign => s(a).signum() as u64,
        GlslStd450Op::FindILsb if a == 0 => u64::MAX,
        GlslStd450Op::FindILsb => u64::from(a.trailing_zeros()),
        GlslStd450Op::FindUMsb if a == 0 => u64::MAX,
        GlslStd450Op::FindUMsb => u64::from(63 - a.leading_zeros()),
        GlslStd450Op::FindSMsb => {
            let magnitude = if s(a) < 0 { !a & mask(from) } else { a };
            if magnitude == 0 { u64::MAX } else { u64::from(63 - magnitude.leading_zeros()) }
        }
        _ => return None,
    };
    Some(result & mask(bits))
}
