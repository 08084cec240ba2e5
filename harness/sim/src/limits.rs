//! Sizes of the simulated GPU.

/// The number of invocations in a subgroup.
pub(crate) const SUBGROUP_SIZE: u32 = 16;

/// The maximal number of invocations in a workgroup.
pub(crate) const MAX_WORKGROUP_INVOCATIONS: u32 = 1024;
