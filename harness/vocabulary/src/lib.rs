//! Terms of the Vulkan specification that tests, kernels and devices share: access masks and pipeline stages.

mod access;
mod stage;

pub use access::AccessMask;
pub use stage::StageMask;
