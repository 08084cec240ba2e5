//! Vulkan features of kernels.

use std::collections::BTreeSet;
use std::ffi::CStr;

use ash::{amd, ext, khr, vk};
use plan::Feature;

use crate::split_barrier::{self, SplitBarrierFeatures};

/// Feature structures of one device.
///
/// Only [`Features::link_chain`] sets the pointers between them, and they are valid only while its result is
/// borrowed.
#[derive(Clone, Default)]
pub(crate) struct Features {
    core: vk::PhysicalDeviceFeatures,
    v11: vk::PhysicalDeviceVulkan11Features<'static>,
    v12: vk::PhysicalDeviceVulkan12Features<'static>,
    subgroup_size: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>,
    zero_initialize: vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'static>,
    synchronization2: vk::PhysicalDeviceSynchronization2Features<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>,
    integer_dot: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>,
    atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    atomic_float2: vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT<'static>,
    image_int64: vk::PhysicalDeviceShaderImageAtomicInt64FeaturesEXT<'static>,
    clock: vk::PhysicalDeviceShaderClockFeaturesKHR<'static>,
    explicit_layout: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static>,
    uniform_control_flow: vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR<'static>,
    reconvergence: vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR<'static>,
    subgroup_rotate: vk::PhysicalDeviceShaderSubgroupRotateFeaturesKHR<'static>,
    interlock: vk::PhysicalDeviceFragmentShaderInterlockFeaturesEXT<'static>,
    mesh: vk::PhysicalDeviceMeshShaderFeaturesEXT<'static>,
    executables: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'static>,
    split_barrier: SplitBarrierFeatures,
    coherent_memory: vk::PhysicalDeviceCoherentMemoryFeaturesAMD<'static>,
}

/// The version of a device and its extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Available {
    pub(crate) version: u32,
    pub(crate) extensions: BTreeSet<String>,
}

impl Available {
    /// Returns the extensions for kernels, and the portability subset, which must be enabled if present.
    pub(crate) fn extensions_to_enable(&self) -> Vec<&'static CStr> {
        let mut extensions = Features::extensions(self);
        extensions.extend(Some(khr::portability_subset::NAME).filter(|name| self.has_extension(name)));
        extensions
    }

    fn has_extension(&self, extension: &CStr) -> bool {
        extension.to_str().is_ok_and(|name| self.extensions.contains(name))
    }
}

/// One list for three purposes: naming features, clearing unlisted ones, and chaining the structures that the
/// device supports.
///
/// A structure comes with a core Vulkan version (0: none) and with an extension.
macro_rules! features {
    ($(
        $member:ident $(: $version:expr, $extension:expr)? => {$($field:ident = $feature:ident),* $(,)?}
    )*) => {
        impl Features {
            pub(crate) fn enabled(&self) -> Vec<Feature> {
                Feature::ALL.into_iter().filter(|feature| self.is_enabled(*feature)).collect()
            }

            pub(crate) fn is_enabled(&self, feature: Feature) -> bool {
                match feature {
                    $($(Feature::$feature => self.$member.$field == vk::TRUE,)*)*
                    // Properties of a device, not features.
                    Feature::SubgroupArithmetic
                    | Feature::SubgroupBallot
                    | Feature::SubgroupBasic
                    | Feature::SubgroupClustered
                    | Feature::SubgroupQuad
                    | Feature::SubgroupShuffle
                    | Feature::SubgroupShuffleRelative
                    | Feature::SubgroupVote => false,
                }
            }

            /// Returns only the listed features.
            ///
            /// Others change how kernels are compiled (`robustBufferAccess`), or are irrelevant to kernels.
            pub(crate) fn only_listed(&self) -> Features {
                let mut listed = Features::default();
                $($(listed.$member.$field = self.$member.$field;)*)*
                listed
            }

            pub(crate) fn without_masked(mut self, masked: &plan::FeatureMask) -> Features {
                $($(if masked.hides_feature(Feature::$feature) { self.$member.$field = vk::FALSE; })*)*
                self
            }

            /// Returns the extensions to enable for the structures of [`Self::link_chain`].
            pub(crate) fn extensions(available: &Available) -> Vec<&'static CStr> {
                let mut extensions: Vec<&'static CStr> = Vec::new();
                $($(
                    if needs_extension(available, $version, $extension) { extensions.push($extension); }
                )?)*
                extensions
            }

            /// Links the structures that the device supports, for a query or for device creation.
            pub(crate) fn link_chain<'a>(&'a mut self, available: &Available) -> vk::PhysicalDeviceFeatures2<'a> {
                let mut chain = vk::PhysicalDeviceFeatures2::default().features(self.core);
                self.v11.p_next = std::ptr::null_mut();
                self.v12.p_next = std::ptr::null_mut();
                if available.version >= vk::API_VERSION_1_2 {
                    chain = chain.push_next(&mut self.v11).push_next(&mut self.v12);
                }
                $($(
                    self.$member.p_next = std::ptr::null_mut();
                    if is_known(available, $version, $extension) { chain = chain.push_next(&mut self.$member); }
                )?)*
                chain
            }
        }
    };
}

fn is_known(available: &Available, version: u32, extension: &CStr) -> bool {
    (version != 0 && available.version >= version) || available.has_extension(extension)
}

fn needs_extension(available: &Available, version: u32, extension: &CStr) -> bool {
    (version == 0 || available.version < version) && available.has_extension(extension)
}

/// The bits of `VkSubgroupFeatureFlagBits` that kernels require.
const SUBGROUP_OPERATIONS: [(vk::SubgroupFeatureFlags, Feature); 8] = [
    (vk::SubgroupFeatureFlags::BASIC, Feature::SubgroupBasic),
    (vk::SubgroupFeatureFlags::VOTE, Feature::SubgroupVote),
    (vk::SubgroupFeatureFlags::ARITHMETIC, Feature::SubgroupArithmetic),
    (vk::SubgroupFeatureFlags::BALLOT, Feature::SubgroupBallot),
    (vk::SubgroupFeatureFlags::SHUFFLE, Feature::SubgroupShuffle),
    (vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE, Feature::SubgroupShuffleRelative),
    (vk::SubgroupFeatureFlags::CLUSTERED, Feature::SubgroupClustered),
    (vk::SubgroupFeatureFlags::QUAD, Feature::SubgroupQuad),
];

/// Returns the subgroup operations that compute shaders of a device support.
pub(crate) fn subgroup_operations(
    stages: vk::ShaderStageFlags,
    supported: vk::SubgroupFeatureFlags,
) -> impl Iterator<Item = Feature> {
    let in_compute = stages.contains(vk::ShaderStageFlags::COMPUTE);
    let has = move |bit: vk::SubgroupFeatureFlags| in_compute && supported.contains(bit);
    SUBGROUP_OPERATIONS.into_iter().filter(move |(bit, _)| has(*bit)).map(|(_, feature)| feature)
}

impl Features {
    /// Queries a device. The core structure is copied back, because the query writes it outside of the chain.
    pub(crate) fn query(
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
        available: &Available,
    ) -> Features {
        let mut features = Features::default();
        let core = {
            let mut chain = features.link_chain(available);
            // SAFETY: the handle comes from this instance, and the chain has only structures that the device
            // supports.
            unsafe { instance.get_physical_device_features2(physical, &mut chain) };
            chain.features
        };
        features.core = core;
        features
    }
}

features! {
    core => {
        fragment_stores_and_atomics = FragmentStoresAndAtomics,
        vertex_pipeline_stores_and_atomics = VertexPipelineStoresAndAtomics,
        large_points = LargePoints,
        shader_float64 = ShaderFloat64,
        shader_int64 = ShaderInt64,
        shader_int16 = ShaderInt16,
        shader_storage_buffer_array_dynamic_indexing = ShaderStorageBufferArrayDynamicIndexing,
        shader_storage_image_array_dynamic_indexing = ShaderStorageImageArrayDynamicIndexing,
        shader_storage_image_extended_formats = ShaderStorageImageExtendedFormats,
        shader_storage_image_read_without_format = ShaderStorageImageReadWithoutFormat,
        shader_storage_image_write_without_format = ShaderStorageImageWriteWithoutFormat,
    }
    v11 => {
        storage_buffer16_bit_access = StorageBuffer16BitAccess,
        uniform_and_storage_buffer16_bit_access = UniformAndStorageBuffer16BitAccess,
        variable_pointers_storage_buffer = VariablePointersStorageBuffer,
        variable_pointers = VariablePointers,
    }
    v12 => {
        storage_buffer8_bit_access = StorageBuffer8BitAccess,
        uniform_and_storage_buffer8_bit_access = UniformAndStorageBuffer8BitAccess,
        shader_buffer_int64_atomics = ShaderBufferInt64Atomics,
        shader_shared_int64_atomics = ShaderSharedInt64Atomics,
        shader_float16 = ShaderFloat16,
        shader_int8 = ShaderInt8,
        scalar_block_layout = ScalarBlockLayout,
        uniform_buffer_standard_layout = UniformBufferStandardLayout,
        shader_subgroup_extended_types = ShaderSubgroupExtendedTypes,
        runtime_descriptor_array = RuntimeDescriptorArray,
        timeline_semaphore = TimelineSemaphore,
        buffer_device_address = BufferDeviceAddress,
        vulkan_memory_model = VulkanMemoryModel,
        vulkan_memory_model_device_scope = VulkanMemoryModelDeviceScope,
        vulkan_memory_model_availability_visibility_chains = VulkanMemoryModelAvailabilityVisibilityChains,
        subgroup_broadcast_dynamic_id = SubgroupBroadcastDynamicId,
    }
    subgroup_size: vk::API_VERSION_1_3, ext::subgroup_size_control::NAME => {
        subgroup_size_control = SubgroupSizeControl,
        compute_full_subgroups = ComputeFullSubgroups,
    }
    zero_initialize: vk::API_VERSION_1_3, khr::zero_initialize_workgroup_memory::NAME => {
        shader_zero_initialize_workgroup_memory = ShaderZeroInitializeWorkgroupMemory,
    }
    synchronization2: vk::API_VERSION_1_3, khr::synchronization2::NAME => {
        synchronization2 = Synchronization2,
    }
    maintenance4: vk::API_VERSION_1_3, khr::maintenance4::NAME => {
        maintenance4 = Maintenance4,
    }
    integer_dot: vk::API_VERSION_1_3, khr::shader_integer_dot_product::NAME => {
        shader_integer_dot_product = ShaderIntegerDotProduct,
    }
    atomic_float: 0, ext::shader_atomic_float::NAME => {
        shader_buffer_float32_atomics = ShaderBufferFloat32Atomics,
        shader_buffer_float32_atomic_add = ShaderBufferFloat32AtomicAdd,
        shader_buffer_float64_atomics = ShaderBufferFloat64Atomics,
        shader_buffer_float64_atomic_add = ShaderBufferFloat64AtomicAdd,
        shader_shared_float32_atomics = ShaderSharedFloat32Atomics,
        shader_shared_float32_atomic_add = ShaderSharedFloat32AtomicAdd,
        shader_shared_float64_atomics = ShaderSharedFloat64Atomics,
        shader_shared_float64_atomic_add = ShaderSharedFloat64AtomicAdd,
        shader_image_float32_atomics = ShaderImageFloat32Atomics,
        shader_image_float32_atomic_add = ShaderImageFloat32AtomicAdd,
    }
    atomic_float2: 0, ext::shader_atomic_float2::NAME => {
        shader_buffer_float16_atomics = ShaderBufferFloat16Atomics,
        shader_buffer_float16_atomic_add = ShaderBufferFloat16AtomicAdd,
        shader_buffer_float16_atomic_min_max = ShaderBufferFloat16AtomicMinMax,
        shader_buffer_float32_atomic_min_max = ShaderBufferFloat32AtomicMinMax,
        shader_buffer_float64_atomic_min_max = ShaderBufferFloat64AtomicMinMax,
        shader_shared_float16_atomics = ShaderSharedFloat16Atomics,
        shader_shared_float16_atomic_add = ShaderSharedFloat16AtomicAdd,
        shader_shared_float16_atomic_min_max = ShaderSharedFloat16AtomicMinMax,
        shader_shared_float32_atomic_min_max = ShaderSharedFloat32AtomicMinMax,
        shader_shared_float64_atomic_min_max = ShaderSharedFloat64AtomicMinMax,
        shader_image_float32_atomic_min_max = ShaderImageFloat32AtomicMinMax,
    }
    image_int64: 0, ext::shader_image_atomic_int64::NAME => {
        shader_image_int64_atomics = ShaderImageInt64Atomics,
    }
    clock: 0, khr::shader_clock::NAME => {
        shader_subgroup_clock = ShaderSubgroupClock,
        shader_device_clock = ShaderDeviceClock,
    }
    explicit_layout: 0, khr::workgroup_memory_explicit_layout::NAME => {
        workgroup_memory_explicit_layout = WorkgroupMemoryExplicitLayout,
        workgroup_memory_explicit_layout_scalar_block_layout = WorkgroupMemoryExplicitLayoutScalarBlockLayout,
        workgroup_memory_explicit_layout8_bit_access = WorkgroupMemoryExplicitLayout8BitAccess,
        workgroup_memory_explicit_layout16_bit_access = WorkgroupMemoryExplicitLayout16BitAccess,
    }
    uniform_control_flow: 0, khr::shader_subgroup_uniform_control_flow::NAME => {
        shader_subgroup_uniform_control_flow = ShaderSubgroupUniformControlFlow,
    }
    reconvergence: 0, khr::shader_maximal_reconvergence::NAME => {
        shader_maximal_reconvergence = ShaderMaximalReconvergence,
    }
    subgroup_rotate: 0, khr::shader_subgroup_rotate::NAME => {
        shader_subgroup_rotate = ShaderSubgroupRotate,
        shader_subgroup_rotate_clustered = ShaderSubgroupRotateClustered,
    }
    interlock: 0, ext::fragment_shader_interlock::NAME => {
        fragment_shader_sample_interlock = FragmentShaderSampleInterlock,
        fragment_shader_pixel_interlock = FragmentShaderPixelInterlock,
        fragment_shader_shading_rate_interlock = FragmentShaderShadingRateInterlock,
    }
    mesh: 0, ext::mesh_shader::NAME => {
        mesh_shader = MeshShader,
        task_shader = TaskShader,
    }
    executables: 0, khr::pipeline_executable_properties::NAME => {
        pipeline_executable_info = PipelineExecutableInfo,
    }
    split_barrier: 0, split_barrier::NAME => {
        shader_split_barrier = ShaderSplitBarrier,
    }
    coherent_memory: 0, amd::device_coherent_memory::NAME => {
        device_coherent_memory = DeviceCoherentMemory,
    }
}
