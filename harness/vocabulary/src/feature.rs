//! Optional features of devices.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

crate::closed_enum! {
    /// A Vulkan feature that kernels may require, or the support of a class of subgroup operations.
    ///
    /// A variant has the name of the member of the feature structure, or of the flag of `VkSubgroupFeatureFlagBits`. Its
    /// documentation is the [Vulkan specification](https://docs.vulkan.org/spec/latest/chapters/features.html).
    #[expect(missing_docs, reason = "the specification documents the variants")]
    pub enum Feature {
        SubgroupArithmetic = "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT",
        SubgroupBallot = "VK_SUBGROUP_FEATURE_BALLOT_BIT",
        SubgroupBasic = "VK_SUBGROUP_FEATURE_BASIC_BIT",
        SubgroupClustered = "VK_SUBGROUP_FEATURE_CLUSTERED_BIT",
        SubgroupQuad = "VK_SUBGROUP_FEATURE_QUAD_BIT",
        SubgroupShuffle = "VK_SUBGROUP_FEATURE_SHUFFLE_BIT",
        SubgroupShuffleRelative = "VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT",
        SubgroupVote = "VK_SUBGROUP_FEATURE_VOTE_BIT",
        BufferDeviceAddress = "bufferDeviceAddress",
        ComputeFullSubgroups = "computeFullSubgroups",
        DeviceCoherentMemory = "deviceCoherentMemory",
        FragmentShaderPixelInterlock = "fragmentShaderPixelInterlock",
        FragmentShaderSampleInterlock = "fragmentShaderSampleInterlock",
        FragmentShaderShadingRateInterlock = "fragmentShaderShadingRateInterlock",
        FragmentStoresAndAtomics = "fragmentStoresAndAtomics",
        LargePoints = "largePoints",
        Maintenance4 = "maintenance4",
        MeshShader = "meshShader",
        PipelineExecutableInfo = "pipelineExecutableInfo",
        RuntimeDescriptorArray = "runtimeDescriptorArray",
        ScalarBlockLayout = "scalarBlockLayout",
        ShaderBufferFloat16AtomicAdd = "shaderBufferFloat16AtomicAdd",
        ShaderBufferFloat16AtomicMinMax = "shaderBufferFloat16AtomicMinMax",
        ShaderBufferFloat16Atomics = "shaderBufferFloat16Atomics",
        ShaderBufferFloat32AtomicAdd = "shaderBufferFloat32AtomicAdd",
        ShaderBufferFloat32AtomicMinMax = "shaderBufferFloat32AtomicMinMax",
        ShaderBufferFloat32Atomics = "shaderBufferFloat32Atomics",
        ShaderBufferFloat64AtomicAdd = "shaderBufferFloat64AtomicAdd",
        ShaderBufferFloat64AtomicMinMax = "shaderBufferFloat64AtomicMinMax",
        ShaderBufferFloat64Atomics = "shaderBufferFloat64Atomics",
        ShaderBufferInt64Atomics = "shaderBufferInt64Atomics",
        ShaderDeviceClock = "shaderDeviceClock",
        ShaderFloat16 = "shaderFloat16",
        ShaderFloat64 = "shaderFloat64",
        ShaderImageFloat32AtomicAdd = "shaderImageFloat32AtomicAdd",
        ShaderImageFloat32AtomicMinMax = "shaderImageFloat32AtomicMinMax",
        ShaderImageFloat32Atomics = "shaderImageFloat32Atomics",
        ShaderImageInt64Atomics = "shaderImageInt64Atomics",
        ShaderInt16 = "shaderInt16",
        ShaderInt64 = "shaderInt64",
        ShaderInt8 = "shaderInt8",
        ShaderIntegerDotProduct = "shaderIntegerDotProduct",
        ShaderMaximalReconvergence = "shaderMaximalReconvergence",
        ShaderSharedFloat16AtomicAdd = "shaderSharedFloat16AtomicAdd",
        ShaderSharedFloat16AtomicMinMax = "shaderSharedFloat16AtomicMinMax",
        ShaderSharedFloat16Atomics = "shaderSharedFloat16Atomics",
        ShaderSharedFloat32AtomicAdd = "shaderSharedFloat32AtomicAdd",
        ShaderSharedFloat32AtomicMinMax = "shaderSharedFloat32AtomicMinMax",
        ShaderSharedFloat32Atomics = "shaderSharedFloat32Atomics",
        ShaderSharedFloat64AtomicAdd = "shaderSharedFloat64AtomicAdd",
        ShaderSharedFloat64AtomicMinMax = "shaderSharedFloat64AtomicMinMax",
        ShaderSharedFloat64Atomics = "shaderSharedFloat64Atomics",
        ShaderSharedInt64Atomics = "shaderSharedInt64Atomics",
        ShaderSplitBarrier = "shaderSplitBarrier",
        ShaderStorageBufferArrayDynamicIndexing = "shaderStorageBufferArrayDynamicIndexing",
        ShaderStorageImageArrayDynamicIndexing = "shaderStorageImageArrayDynamicIndexing",
        ShaderStorageImageExtendedFormats = "shaderStorageImageExtendedFormats",
        ShaderStorageImageReadWithoutFormat = "shaderStorageImageReadWithoutFormat",
        ShaderStorageImageWriteWithoutFormat = "shaderStorageImageWriteWithoutFormat",
        ShaderSubgroupClock = "shaderSubgroupClock",
        ShaderSubgroupExtendedTypes = "shaderSubgroupExtendedTypes",
        ShaderSubgroupRotate = "shaderSubgroupRotate",
        ShaderSubgroupRotateClustered = "shaderSubgroupRotateClustered",
        ShaderSubgroupUniformControlFlow = "shaderSubgroupUniformControlFlow",
        ShaderZeroInitializeWorkgroupMemory = "shaderZeroInitializeWorkgroupMemory",
        StorageBuffer16BitAccess = "storageBuffer16BitAccess",
        StorageBuffer8BitAccess = "storageBuffer8BitAccess",
        SubgroupBroadcastDynamicId = "subgroupBroadcastDynamicId",
        SubgroupSizeControl = "subgroupSizeControl",
        Synchronization2 = "synchronization2",
        TaskShader = "taskShader",
        TimelineSemaphore = "timelineSemaphore",
        UniformAndStorageBuffer16BitAccess = "uniformAndStorageBuffer16BitAccess",
        UniformAndStorageBuffer8BitAccess = "uniformAndStorageBuffer8BitAccess",
        UniformBufferStandardLayout = "uniformBufferStandardLayout",
        VariablePointers = "variablePointers",
        VariablePointersStorageBuffer = "variablePointersStorageBuffer",
        VertexPipelineStoresAndAtomics = "vertexPipelineStoresAndAtomics",
        VulkanMemoryModel = "vulkanMemoryModel",
        VulkanMemoryModelAvailabilityVisibilityChains = "vulkanMemoryModelAvailabilityVisibilityChains",
        VulkanMemoryModelDeviceScope = "vulkanMemoryModelDeviceScope",
        WorkgroupMemoryExplicitLayout = "workgroupMemoryExplicitLayout",
        WorkgroupMemoryExplicitLayout16BitAccess = "workgroupMemoryExplicitLayout16BitAccess",
        WorkgroupMemoryExplicitLayout8BitAccess = "workgroupMemoryExplicitLayout8BitAccess",
        WorkgroupMemoryExplicitLayoutScalarBlockLayout = "workgroupMemoryExplicitLayoutScalarBlockLayout",
    }
}

/// A name that is not a known feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFeature;

impl FromStr for Feature {
    type Err = UnknownFeature;

    fn from_str(name: &str) -> Result<Feature, UnknownFeature> {
        Feature::from_name(name).ok_or(UnknownFeature)
    }
}

impl Serialize for Feature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Feature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Feature, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = |UnknownFeature| serde::de::Error::custom(format!("unknown feature `{name}`"));
        name.parse().map_err(unknown)
    }
}
