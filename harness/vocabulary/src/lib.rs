//! Terms of the Vulkan specification that tests, shaders and devices share: scopes, storage classes, memory
//! semantics, access masks, pipeline stages and features.

#![warn(missing_docs)]

mod access;
mod closed_enum;
mod feature;
mod stage;
mod strength;

pub use access::AccessMask;
pub use feature::{Feature, UnknownFeature};
pub use stage::StageMask;
pub use strength::{IgnoredClass, IgnoredClasses, Order, Scope, Semantics, StorageClass, StorageClassSet};
