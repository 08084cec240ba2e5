//! Names of memory.

use super::LocationId;
use super::strength::StorageClass;
use crate::span::Span;

/// A name of memory. Distinct names are distinct references; they may name the same storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name.
    pub name: String,
    /// Declared kind of storage and way of reaching it; without a declaration the accesses' storage class decides.
    pub reference: Option<Reference>,
    /// Declared scalar type, of a vector that of its components; `u32` without one.
    pub scalar: Option<ScalarType>,
    /// Numbers that it holds: from 2 to [`MAX_COMPONENTS`] for a vector, else 1.
    pub components: u8,
    /// What the memory holds at first.
    pub init: LocationInit,
    /// Declared `[host]`: host-visible memory.
    pub host: bool,
    /// Declared `[noncoherent]`: memory without host coherence.
    pub noncoherent: bool,
    /// False for a name that is used but never declared: it starts at 0.
    pub declared: bool,
    /// Where it is declared or first used.
    pub span: Span,
}

/// Components of a vector at most.
pub const MAX_COMPONENTS: u8 = 4;
/// Bytes of a vector at most.
pub const MAX_VECTOR_BYTES: u32 = 16;

impl Location {
    /// The declared type, of a vector that of its components; or the default.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar.unwrap_or_default()
    }

    /// Whether it is declared as a vector.
    pub fn is_vector(&self) -> bool {
        self.components > 1
    }

    /// Size of all of it in bytes.
    pub fn bytes(&self) -> u32 {
        self.scalar_type().bytes() * u32::from(self.components)
    }
}

/// What a location holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationInit {
    /// A number; of a vector each component.
    Constant(i64),
    /// `v = {1, 2, 3}`: a number for each component of a vector; what is behind them is 0.
    Components([i64; MAX_COMPONENTS as usize]),
    /// `x = y`: the initial value of another, earlier location; of a vector one with as many components, or a number for
    /// each of its own.
    CopyOf(LocationId),
    /// `x = &y`: the address of another, earlier location.
    AddressOf(LocationId),
    /// `x aliases y`: a second reference to the storage of an earlier name, with its initial value.
    AliasOf(LocationId),
    /// `x = ?`: nothing that is known. A read of it is uninitialised and may return any value, each another one.
    Undefined,
}

/// Each byte that kernels put where an initial value is undefined: a value that no program computes, so that a device which
/// shows it where the model finds no uninitialised read shows what may not be seen.
pub const UNDEFINED_BYTE: u8 = 0xA5;

/// How memory is declared and reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// A storage buffer through a descriptor of its own.
    Buffer,
    /// Workgroup memory.
    Workgroup,
    /// A storage image.
    Image,
    /// A buffer reached by its device address (physical storage buffer).
    Address,
}

impl Reference {
    /// The storage class whose semantics order accesses through it.
    pub fn storage_class(self) -> StorageClass {
        match self {
            Reference::Buffer | Reference::Address => StorageClass::Buffer,
            Reference::Workgroup => StorageClass::Workgroup,
            Reference::Image => StorageClass::Image,
        }
    }
}

/// Type of a location, a register or an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ScalarType {
    U8,
    U16,
    #[default]
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl ScalarType {
    /// Size in bytes: 1, 2, 4 or 8.
    pub fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// Width in bits: 8, 16, 32 or 64.
    pub fn bits(self) -> u32 {
        match self {
            ScalarType::U8 | ScalarType::I8 => 8,
            ScalarType::U16 | ScalarType::I16 => 16,
            ScalarType::U32 | ScalarType::I32 | ScalarType::F32 => 32,
            ScalarType::U64 | ScalarType::I64 | ScalarType::F64 => 64,
        }
    }
}
