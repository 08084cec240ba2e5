//! Terms of the Vulkan specification that tests, kernels and devices share: access masks, pipeline stages
//! and features.

mod access;
mod feature;
mod stage;

pub use access::AccessMask;
pub use feature::{Feature, UnknownFeature};
pub use stage::StageMask;
