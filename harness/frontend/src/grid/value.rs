//! Values of a walk over a whole grid: bits with what is to be known of where they come from.

use std::rc::Rc;

use rspirv::spirv::Op;

use super::sampler::Sampler;

/// What is to be known of a value, as bits.
pub(super) type Taint = u32;
/// Nobody gave it.
pub(super) const UNDEFINED: Taint = 1;
/// Another order of the invocations may give another value.
pub(super) const SCHEDULE_DEPENDENT: Taint = 2;
/// It is not computed here: filtered texels, results of matrices.
pub(super) const OPAQUE: Taint = 4;
/// An operation of a subgroup gave it that takes it from a lane that is not active, or not there; beside [`UNDEFINED`].
pub(super) const INACTIVE_LANE: Taint = 8;
/// It was read beyond the end of its object, or computed by an instruction without a defined result: a bit for each place that does,
/// the last for all further ones.
pub(super) const SITE_MASK: Taint = 0xffff_ff00;
/// The first of these bits.
pub(super) const FIRST_SITE: u32 = 8;

/// What somebody depends on who depends on an undefined value of this taint.
pub(super) fn undefined_source(taint: Taint) -> &'static str {
    match taint & INACTIVE_LANE {
        0 => "memory that nobody wrote",
        _ => "what an operation of the subgroup takes from a lane that is not active or not there",
    }
}

/// What is to be known of the result, which has that many bits, of an instruction on numbers, with what is of each of them. Of
/// `a && b` and `a || b` one side may decide alone: compilers of HLSL compute both, so that `i < n && data[i] > 0` reads beyond the
/// end, and nobody looks at it. An undefined number is some number, of which `* 0` and `& 0` make 0 all the same.
pub(super) fn result_taint(op: Op, numbers: &[(u64, Taint)], bits: u32) -> Taint {
    let decides = |(number, taint): &&(u64, Taint)| {
        arithmetic::decides(op, *number, bits) && taint & !SCHEDULE_DEPENDENT == 0
    };
    match numbers.iter().filter(decides).map(|(_, taint)| *taint).reduce(|one, other| one & other) {
        Some(decided) => decided,
        None => numbers.iter().fold(0, |all, (_, taint)| all | taint),
    }
}

/// A pointer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConcretePointer {
    /// Index among the objects that are shared, or with [`LOCAL`] among those of the invocation.
    pub object: u32,
    pub offset: u64,
    /// What it points to.
    pub ty: u32,
    /// Bytes from one column, or row, of a matrix to the next.
    pub matrix_stride: u32,
    pub row_major: bool,
    pub coherent: bool,
    /// Whether an index on the way was beyond its array.
    pub out_of_bounds: bool,
    pub taint: Taint,
    /// Bytes from one element to the next of the array that it points into; 0 where it is none.
    pub stride: u64,
}

/// Objects of one invocation alone.
pub(super) const LOCAL: u32 = 1 << 31;
/// The object of no address.
pub(super) const NULL_OBJECT: u32 = LOCAL - 1;

impl ConcretePointer {
    pub fn to_object(object: u32, ty: u32) -> ConcretePointer {
        ConcretePointer {
            object,
            offset: 0,
            ty,
            matrix_stride: 0,
            row_major: false,
            coherent: false,
            out_of_bounds: false,
            taint: 0,
            stride: 0,
        }
    }

    pub fn null_pointer(ty: u32, taint: Taint) -> ConcretePointer {
        ConcretePointer { taint, ..ConcretePointer::to_object(NULL_OBJECT, ty) }
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum ConcreteValue {
    Bits(u64, Taint),
    Composite(Rc<[ConcreteValue]>),
    Pointer(ConcretePointer),
    /// An image: its object, and the sampler that it is read with, where one is and it is known.
    Image(u32, Option<Sampler>),
    Sampler(Sampler),
    /// Something without bits.
    NoBits(Taint),
}

impl ConcreteValue {
    pub fn from_components(parts: impl IntoIterator<Item = ConcreteValue>) -> ConcreteValue {
        ConcreteValue::Composite(parts.into_iter().collect())
    }

    pub fn from_bool(holds: bool, taint: Taint) -> ConcreteValue {
        ConcreteValue::Bits(u64::from(holds), taint)
    }

    /// All that is to be known of it.
    pub fn combined_taint(&self) -> Taint {
        match self {
            ConcreteValue::Bits(_, taint) | ConcreteValue::NoBits(taint) => *taint,
            ConcreteValue::Composite(parts) => parts.iter().fold(0, |all, part| all | part.combined_taint()),
            ConcreteValue::Pointer(pointer) => pointer.taint,
            ConcreteValue::Image(..) | ConcreteValue::Sampler(_) => 0,
        }
    }

    /// The same value, of which more is to be known.
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
