//! Memory locations of a test.

use super::LocationId;
use crate::span::Span;
use vocabulary::StorageClass;

/// A memory name. Distinct names are distinct references, possibly to the same storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name.
    pub name: String,
    /// The declared kind of storage and access path; without a declaration, the storage class of the accesses
    /// decides.
    pub reference: Option<Reference>,
    /// The declared scalar type, of the components of a vector; `u32` by default.
    pub scalar: Option<ScalarType>,
    /// The number of components: 2 to [`MAX_COMPONENTS`] for a vector, else 1.
    pub components: u8,
    /// The initial contents.
    pub init: LocationInit,
    /// Declared `[host]`: host-visible memory.
    pub host: bool,
    /// Declared `[noncoherent]`: memory without host coherence.
    pub noncoherent: bool,
    /// False for a name that is used but never declared: it starts at 0.
    pub declared: bool,
    /// The position of its declaration or first use.
    pub span: Span,
}

/// The maximum number of components of a vector.
pub const MAX_COMPONENTS: u8 = 4;
/// The maximum size of a vector in bytes.
pub const MAX_VECTOR_BYTES: u32 = 16;

impl Location {
    /// Returns a scalar location of the default type that starts at 0, without a declared reference.
    pub fn new(name: impl Into<String>) -> Location {
        Location {
            name: name.into(),
            reference: None,
            scalar: None,
            components: 1,
            init: LocationInit::Constant(0),
            host: false,
            noncoherent: false,
            declared: true,
            span: Span::default(),
        }
    }

    /// Returns the declared or default type, of the components of a vector.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar.unwrap_or_default()
    }

    /// Returns true if it is declared as a vector.
    pub fn is_vector(&self) -> bool {
        self.components > 1
    }

    /// Returns the total size in bytes.
    pub fn bytes(&self) -> u32 {
        self.scalar_type().bytes() * u32::from(self.components)
    }
}

/// The initial contents of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationInit {
    /// A number; for a vector, the value of each component.
    Constant(i64),
    /// `v = {1, 2, 3}`: a number for each component of a vector; missing ones are 0.
    Components([i64; MAX_COMPONENTS as usize]),
    /// `x = y`: the initial value of an earlier location; a vector copies one with equally many components,
    /// or a scalar into each component.
    CopyOf(LocationId),
    /// `x = &y`: the address of an earlier location.
    AddressOf(LocationId),
    /// `x aliases y`: a second reference to the storage of an earlier name, with its initial value.
    AliasOf(LocationId),
    /// `x = ?`: undefined. A read of it is uninitialised and may return any value, a different one each time.
    Undefined,
}

/// The byte that kernels write to undefined locations.
///
/// No program computes this value. If a device shows it although the model finds no uninitialised read, the
/// device is wrong.
pub const UNDEFINED_BYTE: u8 = 0xA5;

/// The declared kind of storage and access path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// A storage buffer with its own descriptor.
    Buffer,
    /// Workgroup memory.
    Workgroup,
    /// A storage image.
    Image,
    /// A buffer reached by its device address (physical storage buffer).
    Address,
}

impl Reference {
    /// Returns the storage class whose semantics order accesses through it.
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
    /// Returns the size in bytes: 1, 2, 4 or 8.
    pub fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// Returns true for a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64)
    }

    /// Returns the type of a register that holds a value of this type: at least 32 bits, and signed if this is.
    pub fn widen_to_register(self) -> ScalarType {
        match self {
            ScalarType::U8 | ScalarType::U16 => ScalarType::U32,
            ScalarType::I8 | ScalarType::I16 => ScalarType::I32,
            wide => wide,
        }
    }

    /// Returns the width in bits: 8, 16, 32 or 64.
    pub fn bits(self) -> u32 {
        match self {
            ScalarType::U8 | ScalarType::I8 => 8,
            ScalarType::U16 | ScalarType::I16 => 16,
            ScalarType::U32 | ScalarType::I32 | ScalarType::F32 => 32,
            ScalarType::U64 | ScalarType::I64 | ScalarType::F64 => 64,
        }
    }
}
