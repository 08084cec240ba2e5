//! Arithmetic on 32-bit words: the operations that instructions consist of.

use serde::Deserialize;

/// An operation on up to three words.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AluOperation {
    Mov,
    Not,
    And,
    Or,
    Xor,
    Xnor,
    Nand,
    Nor,
    AndNot,
    OrNot,
    Add,
    Sub,
    Mul,
    MulHigh,
    Mul24,
    MinUnsigned,
    MaxUnsigned,
    MinSigned,
    MaxSigned,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    /// Offset and width in one word, as in scalar instructions.
    ExtractUnsignedPacked,
    ExtractSignedPacked,
    ExtractUnsigned,
    ExtractSigned,
    /// A mask of `a` ones from bit `b` on.
    Mask,
    /// Bits of `b` where `a` is 1, else of `c`.
    Insert,
    Add3,
    Or3,
    AndOr,
    AddShift,
    ShiftAdd,
    ShiftOr,
    XorAdd,
    MulAdd24,
    PackLow,
    LowByte,
    LowHalf,
    HighHalf,
    SignByte,
    SignHalf,
    AlignBit,
    Permute,
    Truncate,
    FloatFromSigned,
    FloatFromUnsigned,
    SignedFromFloat,
    UnsignedFromFloat,
    FloatAdd,
    FloatMin,
    FloatMax,
    Equal,
    LessUnsigned,
    LessSigned,
    LessFloat,
    EqualFloat,
    /// 1 if `a + b + c` carries.
    CarryAdd,
    /// 1 if `a - b - c` borrows.
    BorrowSub,
    /// `a - b - c`.
    Sub3,
}

impl AluOperation {
    pub fn operand_count(self) -> usize {
        match self {
            AluOperation::Mov
            | AluOperation::Not
            | AluOperation::LowByte
            | AluOperation::LowHalf
            | AluOperation::HighHalf
            | AluOperation::SignByte
            | AluOperation::SignHalf
            | AluOperation::Truncate
            | AluOperation::FloatFromSigned
            | AluOperation::FloatFromUnsigned
            | AluOperation::SignedFromFloat
            | AluOperation::UnsignedFromFloat => 1,
            AluOperation::ExtractUnsigned
            | AluOperation::ExtractSigned
            | AluOperation::Insert
            | AluOperation::Add3
            | AluOperation::Or3
            | AluOperation::AndOr
            | AluOperation::AddShift
            | AluOperation::ShiftAdd
            | AluOperation::ShiftOr
            | AluOperation::XorAdd
            | AluOperation::MulAdd24
            | AluOperation::AlignBit
            | AluOperation::Permute
            | AluOperation::CarryAdd
            | AluOperation::BorrowSub
            | AluOperation::Sub3 => 3,
            _ => 2,
        }
    }

    /// Computes the result; surplus operands are ignored.
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let extract = |offset: u32, width: u32| -> u64 {
            let width = width.min(32);
            (u64::from(a) >> (offset & 31)) & ((1_u64 << width) - 1)
        };
        let signed = |value: u64, width: u32| -> u32 {
            let width = width.min(32);
            if width == 0 {
                return 0;
            }
            let shift = 64 - width;
            (((value << shift) as i64) >> shift) as u32
        };
        let float = f32::from_bits;
        match self {
            AluOperation::Mov => a,
            AluOperation::Not => !a,
            AluOperation::And => a & b,
            AluOperation::Or => a | b,
            AluOperation::Xor => a ^ b,
            AluOperation::Xnor => !(a ^ b),
            AluOperation::Nand => !(a & b),
            AluOperation::Nor => !(a | b),
            AluOperation::AndNot => a & !b,
            AluOperation::OrNot => a | !b,
            AluOperation::Add => a.wrapping_add(b),
            AluOperation::Sub => a.wrapping_sub(b),
            AluOperation::Mul => a.wrapping_mul(b),
            AluOperation::MulHigh => ((u64::from(a) * u64::from(b)) >> 32) as u32,
            AluOperation::Mul24 => (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff),
            AluOperation::MinUnsigned => a.min(b),
            AluOperation::MaxUnsigned => a.max(b),
            AluOperation::MinSigned => (a as i32).min(b as i32) as u32,
            AluOperation::MaxSigned => (a as i32).max(b as i32) as u32,
            AluOperation::ShiftLeft => a << (b & 31),
            AluOperation::ShiftRight => a >> (b & 31),
            AluOperation::ShiftRightSigned => ((a as i32) >> (b & 31)) as u32,
            AluOperation::ExtractUnsignedPacked => extract(b, (b >> 16) & 0x7f) as u32,
            AluOperation::ExtractSignedPacked => {
                let width = (b >> 16) & 0x7f;
                signed(extract(b, width), width)
            }
            AluOperation::ExtractUnsigned => extract(b, c & 31) as u32,
            AluOperation::ExtractSigned => signed(extract(b, c & 31), c & 31),
            AluOperation::Mask => ((1_u64 << (a & 31)) - 1).wrapping_shl(b & 31) as u32,
            AluOperation::Insert => (a & b) | (!a & c),
            AluOperation::Add3 => a.wrapping_add(b).wrapping_add(c),
            AluOperation::Or3 => a | b | c,
            AluOperation::AndOr => (a & b) | c,
            AluOperation::AddShift => a.wrapping_add(b) << (c & 31),
            AluOperation::ShiftAdd => (a << (b & 31)).wrapping_add(c),
            AluOperation::ShiftOr => (a << (b & 31)) | c,
            AluOperation::XorAdd => (a ^ b).wrapping_add(c),
            AluOperation::MulAdd24 => (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c),
            AluOperation::PackLow => (a & 0xffff) | (b << 16),
            AluOperation::LowByte => a & 0xff,
            AluOperation::LowHalf => a & 0xffff,
            AluOperation::HighHalf => a >> 16,
            AluOperation::SignByte => i32::from(a as u8 as i8) as u32,
            AluOperation::SignHalf => i32::from(a as u16 as i16) as u32,
            AluOperation::AlignBit => (((u64::from(a) << 32) | u64::from(b)) >> (c & 31)) as u32,
            AluOperation::Permute => permute_bytes(a, b, c),
            AluOperation::Truncate => float(a).trunc().to_bits(),
            AluOperation::FloatFromSigned => (a as i32 as f32).to_bits(),
            AluOperation::FloatFromUnsigned => (a as f32).to_bits(),
            AluOperation::SignedFromFloat => float(a) as i32 as u32,
            AluOperation::UnsignedFromFloat => float(a) as u32,
            AluOperation::FloatAdd => (float(a) + float(b)).to_bits(),
            AluOperation::FloatMin => float(a).min(float(b)).to_bits(),
            AluOperation::FloatMax => float(a).max(float(b)).to_bits(),
            AluOperation::Equal => u32::from(a == b),
            AluOperation::LessUnsigned => u32::from(a < b),
            AluOperation::LessSigned => u32::from((a as i32) < (b as i32)),
            AluOperation::LessFloat => u32::from(float(a) < float(b)),
            AluOperation::EqualFloat => u32::from(float(a) == float(b)),
            AluOperation::CarryAdd => ((u64::from(a) + u64::from(b) + u64::from(c)) >> 32) as u32,
            AluOperation::BorrowSub => u32::from(u64::from(a) < u64::from(b) + u64::from(c)),
            AluOperation::Sub3 => a.wrapping_sub(b).wrapping_sub(c),
        }
    }
}

/// `v_perm_b32`: each byte of the selector picks a byte of `a:b`; 12 and above are constants.
fn permute_bytes(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(a) << 32) | u64::from(b);
    let picked = selector.to_le_bytes().map(|choice| match choice {
        0..=7 => (bytes >> (8 * choice)) as u8,
        8..=11 => {
            let sign = [15, 31, 47, 63][usize::from(choice - 8)];
            if (bytes >> sign) & 1 == 1 { 0xff } else { 0 }
        }
        12 => 0,
        _ => 0xff,
    });
    u32::from_le_bytes(picked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_carries() {
        assert_eq!(AluOperation::ExtractUnsignedPacked.apply(0x0000_0fc0, 0x6_0006, 0), 0x3f);
        assert_eq!(AluOperation::ExtractUnsigned.apply(0x1234, 4, 8), 0x23);
        assert_eq!(AluOperation::ExtractSigned.apply(0x0000_00f0, 4, 4), u32::MAX);
        assert_eq!(AluOperation::ExtractUnsigned.apply(7, 40, 0), 0);
        assert_eq!(AluOperation::CarryAdd.apply(u32::MAX, 0, 1), 1);
        assert_eq!(AluOperation::CarryAdd.apply(u32::MAX, 0, 0), 0);
        assert_eq!(AluOperation::BorrowSub.apply(0, 0, 1), 1);
        assert_eq!(AluOperation::Mask.apply(3, 4, 0), 0x70);
        assert_eq!(AluOperation::Permute.apply(0x4433_2211, 0x8877_6655, 0x0c0c_0400), 0x1155);
        assert_eq!(AluOperation::LessSigned.apply(u32::MAX, 0, 0), 1);
        assert_eq!(AluOperation::AlignBit.apply(1, 0, 31), 2);
    }
}
