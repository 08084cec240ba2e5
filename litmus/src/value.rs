//! Values of registers and locations.

use crate::test::ScalarType;

/// A value as a bit pattern, zero-extended to 64 bits. What the bits mean is the [`ScalarType`]'s business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u64);

impl Value {
    /// The constant of a program text, cut to the width of `ty`.
    pub fn from_constant(constant: i64, ty: ScalarType) -> Value {
        Value(constant as u64).truncate(ty)
    }

    /// Whether `ty` has a constant: as a number with or without a sign.
    pub fn fits(constant: i64, ty: ScalarType) -> bool {
        let cut = Value::from_constant(constant, ty);
        cut.signed(ty) == constant || cut.0 as i64 == constant
    }

    /// The low bits that fit into `ty`.
    pub fn truncate(self, ty: ScalarType) -> Value {
        match ty.bits() {
            64 => self,
            bits => Value(self.0 & ((1 << bits) - 1)),
        }
    }

    /// The value as a signed number of the width of `ty`: comparisons of branches and conditions are signed
    /// (Dartagnan's reading of `bge`, `<` and the like).
    pub fn signed(self, ty: ScalarType) -> i64 {
        let shift = 64 - ty.bits();
        ((self.0 << shift) as i64) >> shift
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
