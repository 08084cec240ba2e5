//! Atomic instructions: one access with an operation.

use arithmetic::{float_from_bits, float_to_bits, mask, sign_extend};
use rspirv::spirv::Op;

/// An atomic instruction. Scope and semantics are ids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtomicAccess {
    pub pointer: u32,
    pub scope: u32,
    pub semantics: u32,
    pub kind: AtomicKind,
}

/// The kind of an atomic access, with its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtomicKind {
    Load,
    Store {
        value: u32,
    },
    Exchange {
        value: u32,
    },
    CompareExchange {
        /// The semantics if the comparison fails.
        unequal: u32,
        value: u32,
        comparator: u32,
        /// True if it may fail although the values are equal.
        is_weak: bool,
    },
    Update {
        function: AtomicFunction,
        /// `None` for 1.
        value: Option<u32>,
    },
}

macro_rules! atomic_functions {
    ($($function:ident = $op:ident,)*) => {
        /// The function by which an atomic update changes memory.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AtomicFunction {
            $(#[doc = concat!("`Op", stringify!($op), "`.")] $function,)*
        }

        impl AtomicFunction {
            /// Returns the function of an instruction with an operand.
            pub(crate) fn from_op(op: Op) -> Option<AtomicFunction> {
                match op {
                    $(Op::$op => Some(AtomicFunction::$function),)*
                    _ => None,
                }
            }
        }
    };
}

atomic_functions! {
    Add = AtomicIAdd,
    Subtract = AtomicISub,
    And = AtomicAnd,
    Or = AtomicOr,
    Xor = AtomicXor,
    SignedMin = AtomicSMin,
    Min = AtomicUMin,
    SignedMax = AtomicSMax,
    Max = AtomicUMax,
    FloatAdd = AtomicFAddEXT,
    FloatMin = AtomicFMinEXT,
    FloatMax = AtomicFMaxEXT,
}

impl AtomicKind {
    /// Returns true for all kinds but stores.
    pub fn reads(self) -> bool {
        !matches!(self, AtomicKind::Store { .. })
    }

    /// Returns true for all kinds but loads; a comparison may fail.
    pub fn writes(self) -> bool {
        !matches!(self, AtomicKind::Load)
    }

    /// Returns the id of the stored value or the operand of the update, if it has one.
    pub fn value(self) -> Option<u32> {
        match self {
            AtomicKind::Load => None,
            AtomicKind::Store { value }
            | AtomicKind::Exchange { value }
            | AtomicKind::CompareExchange { value, .. } => Some(value),
            AtomicKind::Update { value, .. } => value,
        }
    }
}

impl AtomicFunction {
    /// Returns the value that an update of `bits` bits stores.
    pub fn apply(self, old: u64, value: u64, bits: u32) -> u64 {
        let (x, y) = (sign_extend(old, bits), sign_extend(value, bits));
        let float = |compute: fn(f64, f64) -> f64| {
            float_to_bits(compute(float_from_bits(old, bits), float_from_bits(value, bits)), bits)
        };
        let result = match self {
            AtomicFunction::Add => old.wrapping_add(value),
            AtomicFunction::Subtract => old.wrapping_sub(value),
            AtomicFunction::And => old & value,
            AtomicFunction::Or => old | value,
            AtomicFunction::Xor => old ^ value,
            AtomicFunction::SignedMin => x.min(y) as u64,
            AtomicFunction::Min => old.min(value),
            AtomicFunction::SignedMax => x.max(y) as u64,
            AtomicFunction::Max => old.max(value),
            AtomicFunction::FloatAdd => float(|a, b| a + b),
            AtomicFunction::FloatMin => float(f64::min),
            AtomicFunction::FloatMax => float(f64::max),
        };
        result & mask(bits)
    }

    /// Returns true if the operands are floats.
    pub fn is_float(self) -> bool {
        match self {
            AtomicFunction::FloatAdd | AtomicFunction::FloatMin | AtomicFunction::FloatMax => true,
            AtomicFunction::Add
            | AtomicFunction::Subtract
            | AtomicFunction::And
            | AtomicFunction::Or
            | AtomicFunction::Xor
            | AtomicFunction::SignedMin
            | AtomicFunction::Min
            | AtomicFunction::SignedMax
            | AtomicFunction::Max => false,
        }
    }
}
