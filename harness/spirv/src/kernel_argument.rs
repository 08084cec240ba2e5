//! Arguments of kernels, as clspv's reflection names them.

use std::collections::HashMap;

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelArgument {
    /// The function of the kernel.
    pub function: u32,
    pub name: String,
    pub place: ArgumentPlace,
}

/// The place of an argument in the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentPlace {
    /// Offset and size in the push constants.
    Push(u64, u64),
    /// Set and binding of a block, with offset and size in it.
    Block((u32, u32), u64, u64),
    /// Set and binding of a buffer, an image or a sampler.
    Resource((u32, u32)),
    /// The `SpecId` of the number of elements in workgroup memory.
    Workgroup(u32),
}

/// Kernels and arguments by result id.
#[derive(Debug, Default)]
pub(crate) struct ReflectedIds {
    pub functions: HashMap<u32, u32>,
    pub names: HashMap<u32, String>,
}
