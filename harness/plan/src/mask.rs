//! Feature masks: hides features and lowers limits of a device, to test how this program handles smaller
//! devices.

use vocabulary::Feature;

use crate::Capabilities;

/// Hidden features and lowered limits, separated by commas.
///
/// An entry is a Vulkan feature name, `LIMIT=N`, or `apiVersion=1.N`. A prefix `DEVICE:` restricts it to the
/// device of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureMask {
    features: Vec<Feature>,
    limits: Vec<(&'static str, u32)>,
    /// The maximum minor version of Vulkan 1.
    minor: Option<u32>,
}

/// The Vulkan version; 1.1 is the minimum.
const API_VERSION: &str = "apiVersion";

/// The limits that can be lowered, by their Vulkan names.
const LIMITS: [&str; 7] = [
    API_VERSION,
    "maxComputeWorkGroupInvocations",
    "maxComputeWorkGroupCount",
    "maxComputeSharedMemorySize",
    "maxStorageBufferRange",
    "maxPerStageDescriptorStorageBuffers",
    "maxPushConstantsSize",
];

/// The reason why a mask is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum MaskError {
    #[error("{}: unknown limit `{name}`; expected one of {}", FeatureMask::VARIABLE, LIMITS.join(", "))]
    Limit { name: String },
    /// A limit that is 0 or not a number; an invalid version.
    #[error("{}: `{limit}={value}`: expected {}", FeatureMask::VARIABLE, if *limit == API_VERSION { "1.1 or later" } else { "a number of at least 1" })]
    Value {
        limit: &'static str,
        /// The text after `=`.
        value: String,
    },
    #[error("{}: `{name}` is not a feature", FeatureMask::VARIABLE)]
    Feature { name: String },
}

impl FeatureMask {
    /// The environment variable, which also applies to worker processes.
    pub const VARIABLE: &str = "VK_LITMUS_MASK";

    /// Returns the mask of a device from the environment; empty if the variable is not set.
    ///
    /// # Errors
    ///
    /// [`MaskError`], also for entries of other devices.
    pub fn from_environment(device: &str) -> Result<FeatureMask, MaskError> {
        FeatureMask::parse_for(device, &std::env::var(FeatureMask::VARIABLE).unwrap_or_default())
    }

    fn parse_for(device: &str, text: &str) -> Result<FeatureMask, MaskError> {
        let mut masked = FeatureMask::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, part) =
                part.split_once(':').map_or((device, part), |(name, part)| (name.trim(), part.trim()));
            masked.add_entry(part, name.eq_ignore_ascii_case(device))?;
        }
        Ok(masked)
    }

    /// Parses one entry, and adds it if it `applies` to this device.
    fn add_entry(&mut self, part: &str, applies: bool) -> Result<(), MaskError> {
        let Some((name, value)) = part.split_once('=') else {
            let feature: Feature = part.parse().map_err(|_| MaskError::Feature { name: part.to_owned() })?;
            self.features.extend(applies.then_some(feature));
            return Ok(());
        };
        let limit = LIMITS.iter().find(|known| **known == name);
        let limit = *limit.ok_or_else(|| MaskError::Limit { name: name.to_owned() })?;
        let digits = if limit == API_VERSION { value.strip_prefix("1.").unwrap_or_default() } else { value };
        let number = digits.parse().ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| MaskError::Value { limit, value: value.to_owned() })?;
        match (applies, limit) {
            (false, _) => {}
            (true, API_VERSION) => self.minor = Some(number),
            (true, _) => self.limits.push((limit, number)),
        }
        Ok(())
    }

    /// Returns the masked minor version of Vulkan 1.
    pub fn minor_version(&self, minor: u32) -> u32 {
        self.minor.map_or(minor, |most| minor.min(most))
    }

    /// Returns true if a feature is hidden, directly or because it requires a hidden one.
    pub fn hides_feature(&self, feature: Feature) -> bool {
        let needs_model = matches!(
            feature,
            Feature::VulkanMemoryModelDeviceScope | Feature::VulkanMemoryModelAvailabilityVisibilityChains
        );
        self.features.contains(&feature) || needs_model && self.features.contains(&Feature::VulkanMemoryModel)
    }

    /// Returns the masked capabilities.
    pub fn apply_to(&self, mut capabilities: Capabilities) -> Capabilities {
        capabilities.features.retain(|feature| !self.hides_feature(*feature));
        capabilities.memory_model &= !self.hides_feature(Feature::VulkanMemoryModel);
        capabilities.device_scope &= !self.hides_feature(Feature::VulkanMemoryModelDeviceScope);
        capabilities.availability_visibility_chains &=
            !self.hides_feature(Feature::VulkanMemoryModelAvailabilityVisibilityChains);
        capabilities.full_subgroups &= !self.hides_feature(Feature::ComputeFullSubgroups)
            && !self.hides_feature(Feature::SubgroupSizeControl);
        for (limit, number) in &self.limits {
            let lower = |own: &mut u32| *own = (*own).min(*number);
            match *limit {
                "maxComputeWorkGroupInvocations" => {
                    lower(&mut capabilities.max_workgroup_invocations);
                    capabilities.max_workgroup_size.iter_mut().for_each(lower);
                }
                "maxComputeWorkGroupCount" => lower(&mut capabilities.max_workgroups),
                "maxComputeSharedMemorySize" => lower(&mut capabilities.max_workgroup_memory_bytes),
                "maxPerStageDescriptorStorageBuffers" => lower(&mut capabilities.max_storage_buffers),
                "maxPushConstantsSize" => lower(&mut capabilities.max_push_constant_bytes),
                _ => {
                    let bytes = &mut capabilities.max_storage_buffer_bytes;
                    *bytes = (*bytes).min(u64::from(*number));
                }
            }
        }
        capabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        FeatureMask::parse_for("sim", text).unwrap_err().to_string()
    }

    #[test]
    fn features_that_cannot_be_masked_are_refused() {
        assert!(
            refused("maxLanes=3")
                .contains("VK_LITMUS_MASK: unknown limit `maxLanes`; expected one of apiVersion, max")
        );
        assert_eq!(
            refused("maxPushConstantsSize=0"),
            "VK_LITMUS_MASK: `maxPushConstantsSize=0`: expected a number of at least 1"
        );
        assert_eq!(refused("shaderInt9"), "VK_LITMUS_MASK: `shaderInt9` is not a feature");
        assert_eq!(refused("apiVersion=2.1"), "VK_LITMUS_MASK: `apiVersion=2.1`: expected 1.1 or later");
        assert_eq!(
            refused("lavapipe:maxLanes=3"),
            refused("maxLanes=3"),
            "also for entries of other devices"
        );
        assert_eq!(refused("sim:"), "VK_LITMUS_MASK: `` is not a feature");
        assert_eq!(FeatureMask::parse_for("sim", ""), Ok(FeatureMask::default()));
        let old = FeatureMask::parse_for("sim", "apiVersion=1.1").unwrap();
        assert_eq!(
            (old.minor_version(3), old.minor_version(0), FeatureMask::default().minor_version(3)),
            (1, 0, 3)
        );
    }

    #[test]
    fn a_mask_applies_to_one_device() {
        let masked = |device| {
            FeatureMask::parse_for(device, "lavapipe:apiVersion=1.1, Lavapipe: shaderInt8,shaderInt64")
                .unwrap()
        };
        let of = |device| {
            let masked = masked(device);
            (
                masked.minor_version(3),
                masked.hides_feature(Feature::ShaderInt8),
                masked.hides_feature(Feature::ShaderInt64),
            )
        };
        assert_eq!((of("lavapipe"), of("swiftshader")), ((1, true, true), (3, false, true)));
    }

    #[test]
    fn masks_lower_limits_and_never_raise_them() {
        let own = Capabilities {
            max_workgroups: 100,
            max_workgroup_invocations: 256,
            max_workgroup_size: [256, 256, 64],
            max_storage_buffer_bytes: 1 << 30,
            ..Capabilities::default()
        };
        let limits =
            "maxComputeWorkGroupInvocations=128, maxComputeWorkGroupCount=4000,maxStorageBufferRange=65536";
        let masked = FeatureMask::parse_for("sim", limits).unwrap();
        let small = masked.apply_to(own.clone());
        assert_eq!((small.max_workgroup_invocations, small.max_workgroup_size), (128, [128, 128, 64]));
        assert_eq!((small.max_workgroups, small.max_storage_buffer_bytes), (100, 65_536));
        assert_eq!(FeatureMask::default().apply_to(own.clone()), own);
    }

    #[test]
    fn masking_the_memory_model_masks_dependent_features() {
        let own = Capabilities {
            memory_model: true,
            device_scope: true,
            availability_visibility_chains: true,
            features: [Feature::VulkanMemoryModelDeviceScope, Feature::ShaderInt8, Feature::ShaderInt64]
                .to_vec(),
            ..Capabilities::default()
        };
        let masked = FeatureMask::parse_for("sim", "vulkanMemoryModel,shaderInt8").unwrap();
        let without = masked.apply_to(own);
        assert!(!without.memory_model && !without.device_scope && !without.availability_visibility_chains);
        assert_eq!(without.features, [Feature::ShaderInt64]);
    }
}
