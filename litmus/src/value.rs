//! Values of registers and locations.

use serde::{Deserialize, Serialize};

use crate::test::ScalarType;

/// A value as a bit pattern, zero-extended to 64 bits; its [`ScalarType`] gives the bits their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Value(pub u64);

impl Value {
    /// Returns the constant of a program text, truncated to the width of `ty`.
    pub fn from_constant(constant: i64, ty: ScalarType) -> Value {
        Value(constant as u64).truncate_to(ty)
    }

    /// Returns true if `ty` can represent the constant, as a signed or an unsigned number.
    pub fn fits_type(constant: i64, ty: ScalarType) -> bool {
        let truncated = Value::from_constant(constant, ty);
        truncated.to_signed(ty) == constant || truncated.0 as i64 == constant
    }

    /// Returns the low bits that fit into `ty`.
    pub fn truncate_to(self, ty: ScalarType) -> Value {
        match ty.bits() {
            64 => self,
            bits => Value(self.0 & ((1 << bits) - 1)),
        }
    }

    /// Returns a value of type `from` as a register of type `to` holds it: sign-extended if `from` is signed.
    pub fn extend(self, from: ScalarType, to: ScalarType) -> Value {
        if from.is_signed() { Value(self.to_signed(from) as u64).truncate_to(to) } else { self }
    }

    /// Returns the value as a signed number of the width of `ty`.
    ///
    /// Comparisons in branches and conditions are signed, as in Dartagnan's `bge` and `<`.
    pub fn to_signed(self, ty: ScalarType) -> i64 {
        let shift = 64 - ty.bits();
        ((self.0 << shift) as i64) >> shift
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
