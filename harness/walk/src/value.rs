//! Concrete values of a walk, with taint bits that track where they come from.

use std::rc::Rc;

use arithmetic::Instruction;
use rspirv::spirv::Op;

use entry_point::inputs::Sampler;

/// A set of taint bits.
pub(super) type Taint = u64;
/// The value was never initialized.
pub(super) const UNDEFINED: Taint = 1;
/// Another schedule may produce another value.
pub(super) const SCHEDULE_DEPENDENT: Taint = 2;
/// The walk does not compute the value: filtered texels, cooperative matrices.
pub(super) const OPAQUE: Taint = 4;
/// A subgroup operation read an inactive or missing lane; set together with [`UNDEFINED`].
pub(super) const INACTIVE_LANE: Taint = 8;
/// No invocation has written this workgroup memory; set together with [`UNDEFINED`].
pub(super) const UNWRITTEN: Taint = 16;
/// A computation has an operand that is [`UNWRITTEN`].
pub(super) const COMPUTED_FROM_UNWRITTEN: Taint = 32;
/// An atomic load read the value after every write so far, each of which happens before it. The value is the same in all
/// schedules of the same writes.
pub(super) const LAST_VALUE: Taint = 64;
/// The result of an exchange that failed although the values were equal.
pub(super) const FAILED_WEAKLY: Taint = 128;
/// One bit for each site that read out of bounds or computed an undefined result. The last bit stands for all
/// further sites.
pub(super) const SITE_MASK: Taint = 0xffff_ff00;
/// The first of these bits.
pub(super) const FIRST_SITE: u32 = 8;
/// The last of these bits.
pub(super) const LAST_SITE: u32 = 31;
/// One bit for each input that no option supplies ([`entry_point::assumed`]). The last bit is that of all further
/// inputs.
pub(super) const INPUT_MASK: Taint = 0xffff_ffff_0000_0000;
/// The first of these bits.
const FIRST_INPUT: usize = 32;
/// The last of these bits.
const LAST_INPUT: usize = 63;

/// Returns the taint bit of an assumed input, by its index.
pub(super) fn input_taint(index: usize) -> Taint {
    1 << (FIRST_INPUT + index).min(LAST_INPUT)
}

/// Returns the indices of the assumed inputs in a taint, of `count` inputs.
pub(super) fn inputs_in(taint: Taint, count: usize) -> Vec<usize> {
    (0..count).filter(|index| taint & input_taint(*index) != 0).collect()
}

/// Describes the source of an undefined value.
pub(super) fn undefined_source(taint: Taint) -> &'static str {
    match taint & INACTIVE_LANE {
        0 => "uninitialized memory",
        _ => "the value that a subgroup operation reads from an inactive or missing lane",
    }
}

/// Returns the taint of a result of `bits` bits.
///
/// An absorbing operand decides alone: `a && b`, `a || b`, `* 0` and `& 0`. HLSL compilers evaluate both
/// sides of `i < n && data[i] > 0`, so the right side may read out of bounds without effect. An undefined
/// number is still some number, so `undefined * 0` is 0.
pub(super) fn result_taint(instruction: Instruction, numbers: &[(u64, Taint)], bits: u32) -> Taint {
    let determines_result = |(number, taint): &&(u64, Taint)| {
        matches!(instruction, Instruction::Core(op) if arithmetic::is_absorbing_operand(op, *number, bits))
            && taint & !(SCHEDULE_DEPENDENT | LAST_VALUE | INPUT_MASK) == 0
    };
    // Of two absorbing inputs each decides alone, so that both have to change for another result.
    let either = |one: Taint, other: Taint| one & other | (one | other) & INPUT_MASK;
    let taint = match numbers.iter().filter(determines_result).map(|(_, taint)| *taint).reduce(either) {
        Some(decided) => decided,
        None => numbers.iter().fold(0, |all, (_, taint)| all | taint),
    };
    let is_copy = matches!(
        instruction,
        Instruction::Core(Op::Bitcast | Op::Select | Op::UConvert | Op::SConvert | Op::FConvert)
    );
    if taint & UNWRITTEN != 0 && !is_copy { taint | COMPUTED_FROM_UNWRITTEN } else { taint }
}

/// A pointer into a memory object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConcretePointer {
    /// Index of a shared object, or with [`PRIVATE_TAG`] of an object of the invocation.
    pub object: u32,
    pub offset: u64,
    /// The pointee type.
    pub ty: u32,
    /// Bytes between columns or rows of the matrix that contains the pointee.
    pub matrix_stride: u32,
    pub row_major: bool,
    pub coherent: bool,
    /// True if an index was beyond its array.
    pub is_out_of_bounds: bool,
    pub taint: Taint,
    /// Bytes between elements of the array that it points into; 0 outside of arrays.
    pub stride: u64,
}

/// Tag of object numbers in private memory.
pub(super) const PRIVATE_TAG: u32 = 1 << 31;
/// The object number of a null pointer.
pub(super) const NULL_OBJECT: u32 = PRIVATE_TAG - 1;

impl ConcretePointer {
    pub fn at_object_start(object: u32, ty: u32) -> ConcretePointer {
        ConcretePointer { object, ty, ..ConcretePointer::default() }
    }

    pub fn null_pointer(ty: u32, taint: Taint) -> ConcretePointer {
        ConcretePointer { taint, ..ConcretePointer::at_object_start(NULL_OBJECT, ty) }
    }
}

/// A value, with its taint.
#[derive(Clone, Debug)]
pub(super) enum ConcreteValue {
    Bits(u64, Taint),
    Composite(Rc<[ConcreteValue]>),
    Pointer(ConcretePointer),
    /// An image object, with its sampler if it is known.
    Image(u32, Option<Sampler>),
    Sampler(Sampler),
    /// A value without bits, such as a handle.
    NoBits(Taint),
}

impl ConcreteValue {
    pub fn from_components(parts: impl IntoIterator<Item = ConcreteValue>) -> ConcreteValue {
        ConcreteValue::Composite(parts.into_iter().collect())
    }

    pub fn from_bool(holds: bool, taint: Taint) -> ConcreteValue {
        ConcreteValue::Bits(u64::from(holds), taint)
    }

    /// Returns the union of all taint bits.
    pub fn combined_taint(&self) -> Taint {
        match self {
            ConcreteValue::Bits(_, taint) | ConcreteValue::NoBits(taint) => *taint,
            ConcreteValue::Composite(parts) => parts.iter().fold(0, |all, part| all | part.combined_taint()),
            ConcreteValue::Pointer(pointer) => pointer.taint,
            ConcreteValue::Image(..) | ConcreteValue::Sampler(_) => 0,
        }
    }

    /// Adds taint bits.
    pub fn with_taint(self, more: Taint) -> ConcreteValue {
        if more == 0 {
            return self;
        }
        match self {
            ConcreteValue::Bits(bits, taint) => ConcreteValue::Bits(bits, taint | more),
            ConcreteValue::NoBits(taint) => ConcreteValue::NoBits(taint | more),
            ConcreteValue::Composite(parts) => {
                ConcreteValue::from_components(parts.iter().map(|part| part.clone().with_taint(more)))
            }
            ConcreteValue::Pointer(pointer) => {
                ConcreteValue::Pointer(ConcretePointer { taint: pointer.taint | more, ..pointer })
            }
            ConcreteValue::Image(..) | ConcreteValue::Sampler(_) => self,
        }
    }
}
