//! Words within memory cells, and the results of atomics.

use crate::code::LDS_SPACE;
use crate::opcode::AtomicOpcode;
use crate::question::MemoryWord;

/// Returns the bytes of a word in a cell.
pub(crate) fn extract_word(cell: u64, word: MemoryWord) -> u64 {
    (cell >> ((word.offset & 7) * 8)) & byte_mask(word.bytes)
}

/// Returns a cell with one word replaced.
pub(crate) fn insert_word(cell: u64, word: MemoryWord, value: u64) -> u64 {
    let shift = (word.offset & 7) * 8;
    let mask = byte_mask(word.bytes) << shift;
    (cell & !mask) | ((value << shift) & mask)
}

fn byte_mask(bytes: u8) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1_u64 << (8 * u32::from(bytes))) - 1 }
}

/// Computes the value that an atomic writes.
pub(super) fn apply_atomic(operation: AtomicOpcode, old: u64, operand: u64, compare: u64, bytes: u8) -> u64 {
    use AtomicOpcode as A;
    let is_64_bit = bytes >= 8;
    let signed = |value: u64| if is_64_bit { value as i64 } else { i64::from(value as u32 as i32) };
    let floats = |apply: fn(f32, f32) -> f32| {
        u64::from(apply(f32::from_bits(old as u32), f32::from_bits(operand as u32)).to_bits())
    };
    match operation {
        A::Swap => operand,
        A::CompareSwap if old == compare & byte_mask(bytes) => operand,
        A::CompareSwap => old,
        A::Add => old.wrapping_add(operand),
        A::Sub => old.wrapping_sub(operand),
        A::And => old & operand,
        A::Or => old | operand,
        A::Xor => old ^ operand,
        A::MinUnsigned => old.min(operand),
        A::MaxUnsigned => old.max(operand),
        A::MinSigned => signed(old).min(signed(operand)) as u64,
        A::MaxSigned => signed(old).max(signed(operand)) as u64,
        A::FloatAdd => floats(|a, b| a + b),
        A::FloatMin => floats(f32::min),
        A::FloatMax => floats(f32::max),
    }
}

/// Returns true if a place is in the local data share.
pub(crate) fn is_in_lds(word: MemoryWord) -> bool {
    word.space == LDS_SPACE
}
