//! Inputs of an entry point, and their values.

use std::collections::BTreeMap;
use std::fmt;

use spirv_reader::{SpirvModule, SpirvType};

/// The memory of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputMemory {
    PushConstants,
    /// A buffer, by set, binding and index in an array of descriptors.
    Buffer(u32, u32, u64),
}

impl InputMemory {
    /// Returns the memory of a variable, or of an element of an array of descriptors.
    pub(crate) fn of_variable(module: &SpirvModule, variable: u32, element: u64) -> InputMemory {
        let decorations = module.decorations_of(variable);
        decorations.binding.map_or(InputMemory::PushConstants, |binding| {
            InputMemory::Buffer(decorations.set.unwrap_or(0), binding, element)
        })
    }
}

/// A byte range of an input with its value, in a counterexample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputValue {
    pub memory: InputMemory,
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// The name in the source, and the value as the type of the source writes it.
    pub text: String,
}

/// Inputs for which two invocations may conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RacyInputs {
    pub grid: [u32; 3],
    pub inputs: Vec<InputValue>,
    /// Specialization constants by `SpecId`.
    pub specialization: BTreeMap<u32, u64>,
}

/// The value of an input in its type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GivenValue {
    Integer(i128),
    /// Bits and width.
    Float(u64, u32),
}

impl GivenValue {
    /// Returns a value of a type from its bits.
    pub fn new(ty: Option<&SpirvType>, bits: u64, width: u32) -> GivenValue {
        match ty {
            Some(SpirvType::Float { .. }) if matches!(width, 32 | 64) => GivenValue::Float(bits, width),
            Some(SpirvType::Integer { signed: true, .. }) => {
                GivenValue::Integer(arithmetic::sign_extend(bits, width).into())
            }
            _ => GivenValue::Integer(bits.into()),
        }
    }
}

impl fmt::Display for GivenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GivenValue::Integer(value) => value.fmt(f),
            GivenValue::Float(bits, width) => f.write_str(&arithmetic::format_float(*bits, *width)),
        }
    }
}
