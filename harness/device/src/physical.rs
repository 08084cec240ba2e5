//! Queries of physical devices: identity, capabilities, queue families.

use std::collections::BTreeSet;
use std::ffi::CStr;

use ash::{ext, vk};
use plan::{Capabilities, DeviceError, Feature, Identity};

use crate::compile_only;
use crate::error::call_error;
use crate::features::{Available, Features, subgroup_operations};
use crate::instance::Instance;
use crate::memory::properties_of;
use crate::null::is_shimmed;
use crate::select::{ListedDevice, SoftwareDriver};
use crate::split_barrier::{self, SplitBarrierProperties};

/// The total number of loop iterations after which lavapipe silently ends an invocation's loops
/// (`LP_MAX_TGSI_LOOP_ITERATIONS` in Mesa's llvmpipe).
const LAVAPIPE_LOOP_BUDGET: u32 = 65_535;

/// A physical device with its queried properties.
pub(crate) struct QueriedDevice {
    pub(crate) handle: vk::PhysicalDevice,
    pub(crate) available: Available,
    pub(crate) features: Features,
    pub(crate) families: Vec<ComputeFamily>,
    pub(crate) identity: Identity,
    pub(crate) capabilities: Capabilities,
    /// Nanoseconds per tick of the device's clock.
    pub(crate) timestamp_period: f32,
    /// True if device-local memory is host-cached, so that a staging copy gains nothing.
    pub(crate) unified_memory: bool,
    /// Its memory types, by their index.
    pub(crate) memory_types: Vec<vk::MemoryPropertyFlags>,
    /// `nonCoherentAtomSize`.
    pub(crate) atom_bytes: vk::DeviceSize,
    /// True if pipelines may require a subgroup size; false if only one size exists.
    pub(crate) may_require_subgroup_size: bool,
    kind: vk::PhysicalDeviceType,
}

/// A queue family with compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComputeFamily {
    pub(crate) index: u32,
    pub(crate) queues: u32,
    pub(crate) timestamp_bits: u32,
    /// True if it also has graphics.
    pub(crate) graphics: bool,
}

/// Returns all devices of an instance, the default one first. A device that two driver files offer counts
/// once.
pub(crate) fn physical_devices(instance: &Instance) -> Result<Vec<QueriedDevice>, DeviceError> {
    let mut devices: Vec<QueriedDevice> = Vec::new();
    for handle in instance.physical_devices()? {
        let device = QueriedDevice::query(instance, handle)?;
        if !devices.iter().any(|known| known.identity == device.identity) {
            devices.push(device);
        }
    }
    // A stable sort keeps hardware in the loader's order, which users can set.
    devices.sort_by_key(QueriedDevice::sort_rank);
    Ok(devices)
}

/// Returns the list for users.
pub(crate) fn to_listed(devices: &[QueriedDevice]) -> Vec<ListedDevice> {
    let rows = devices.iter().enumerate();
    rows.map(|(index, device)| ListedDevice {
        index,
        identity: device.identity.clone(),
        capabilities: device.capabilities.clone(),
    })
    .collect()
}

impl QueriedDevice {
    fn query(instance: &Instance, handle: vk::PhysicalDevice) -> Result<QueriedDevice, DeviceError> {
        let raw = &instance.raw;
        // SAFETY: the handle comes from this instance.
        let (core, extensions, queue_families, memory) = unsafe {
            (
                raw.get_physical_device_properties(handle),
                raw.enumerate_device_extension_properties(handle)
                    .map_err(call_error("vkEnumerateDeviceExtensionProperties"))?,
                raw.get_physical_device_queue_family_properties(handle),
                raw.get_physical_device_memory_properties(handle),
            )
        };
        check_memory_properties(&core, &memory)?;
        let full = Available { version: core.api_version, extensions: extension_names(&extensions) };
        let properties = ExtendedProperties::query(instance, handle, &full);
        let software = match properties.driver_id {
            vk::DriverId::MESA_LLVMPIPE => Some(SoftwareDriver::Lavapipe),
            vk::DriverId::GOOGLE_SWIFTSHADER => Some(SoftwareDriver::Swiftshader),
            _ => None,
        };
        let shimmed = core.device_type != vk::PhysicalDeviceType::CPU && is_shimmed();
        let executes = !is_null(&core, &memory) && !shimmed;
        let identity = make_identity(&core, &properties, software, executes);
        // Unreadable masks were already refused when devices were listed.
        let masked = plan::FeatureMask::from_environment(&identity.name).unwrap_or_default();
        let minor = masked.minor_version(vk::api_version_minor(full.version));
        let older = minor < vk::api_version_minor(full.version);
        let version = if older { vk::make_api_version(0, 1, minor, 0) } else { full.version };
        let available = Available { version, ..full };
        let features = Features::query(raw, handle, &available).only_listed().without_masked(&masked);
        let families = compute_families(&queue_families);
        let is_cpu = core.device_type == vk::PhysicalDeviceType::CPU;
        let memory_types: Vec<_> =
            memory.memory_types_as_slice().iter().map(|kind| kind.property_flags).collect();
        let capabilities = masked.apply_to(Capabilities {
            executes,
            memory_types: memory_types
                .iter()
                .filter_map(|flags| properties_of(*flags))
                .filter(|properties| {
                    features.is_enabled(Feature::DeviceCoherentMemory) || !properties.device_coherent
                })
                .collect(),
            ..make_capabilities(&core.limits, &properties, &features, &families, software, is_cpu)
        });
        Ok(QueriedDevice {
            handle,
            available,
            features,
            families,
            identity,
            capabilities,
            timestamp_period: core.limits.timestamp_period,
            unified_memory: core.device_type != vk::PhysicalDeviceType::DISCRETE_GPU
                && has_unified_memory(&memory),
            memory_types,
            atom_bytes: core.limits.non_coherent_atom_size,
            may_require_subgroup_size: properties.may_require_subgroup_size,
            kind: core.device_type,
        })
    }

    /// Returns the sort key for the default order.
    fn sort_rank(&self) -> (u8, String) {
        let order = match self.kind {
            vk::PhysicalDeviceType::DISCRETE_GPU => 0,
            vk::PhysicalDeviceType::INTEGRATED_GPU => 1,
            vk::PhysicalDeviceType::VIRTUAL_GPU => 2,
            vk::PhysicalDeviceType::CPU => 3,
            _ => 4,
        };
        let name = if order >= 3 { self.identity.name.clone() } else { String::new() };
        (order, name)
    }
}

/// Properties beyond the core structure; zero if the device does not support them.
struct ExtendedProperties {
    driver_id: vk::DriverId,
    driver_name: String,
    driver_info: String,
    uuid: [u8; vk::UUID_SIZE],
    subgroup_size: u32,
    subgroup_size_range: (u32, u32),
    max_workgroup_subgroups: u32,
    subgroup_stages: vk::ShaderStageFlags,
    subgroup_operations: vk::SubgroupFeatureFlags,
    may_require_subgroup_size: bool,
    /// Bytes of workgroup memory that split barriers reserve.
    split_barrier_bytes: u32,
}

impl ExtendedProperties {
    fn query(instance: &Instance, handle: vk::PhysicalDevice, available: &Available) -> ExtendedProperties {
        let mut ids = vk::PhysicalDeviceIDProperties::default();
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut size_control = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let mut split = SplitBarrierProperties::default();
        let mut chain = vk::PhysicalDeviceProperties2::default();
        if available.version >= vk::API_VERSION_1_1 {
            chain = chain.push_next(&mut ids).push_next(&mut subgroup);
        }
        if available.version >= vk::API_VERSION_1_2 {
            chain = chain.push_next(&mut driver);
        }
        let sizes_known = available.version >= vk::API_VERSION_1_3
            || ext::subgroup_size_control::NAME
                .to_str()
                .is_ok_and(|name| available.extensions.contains(name));
        if sizes_known {
            chain = chain.push_next(&mut size_control);
        }
        if split_barrier::NAME.to_str().is_ok_and(|name| available.extensions.contains(name)) {
            chain = chain.push_next(&mut split);
        }
        // SAFETY: the handle comes from this instance, and the chain has only structures that the device
        // supports.
        unsafe { instance.raw.get_physical_device_properties2(handle, &mut chain) };
        let range = (size_control.min_subgroup_size, size_control.max_subgroup_size);
        ExtendedProperties {
            driver_id: driver.driver_id,
            driver_name: string_or_empty(driver.driver_name_as_c_str().ok()),
            driver_info: string_or_empty(driver.driver_info_as_c_str().ok()),
            uuid: ids.device_uuid,
            subgroup_size: subgroup.subgroup_size,
            subgroup_size_range: if range.0 == 0 {
                (subgroup.subgroup_size, subgroup.subgroup_size)
            } else {
                range
            },
            max_workgroup_subgroups: size_control.max_compute_workgroup_subgroups,
            subgroup_stages: if subgroup.supported_operations.contains(vk::SubgroupFeatureFlags::BASIC) {
                subgroup.supported_stages
            } else {
                vk::ShaderStageFlags::empty()
            },
            subgroup_operations: subgroup.supported_operations,
            may_require_subgroup_size: size_control
                .required_subgroup_size_stages
                .contains(vk::ShaderStageFlags::COMPUTE),
            split_barrier_bytes: split.reserved_shared_memory,
        }
    }
}

fn make_identity(
    core: &vk::PhysicalDeviceProperties,
    properties: &ExtendedProperties,
    software: Option<SoftwareDriver>,
    executes: bool,
) -> Identity {
    let device_name = string_or_empty(core.device_name_as_c_str().ok());
    // Devices on a shim report real names; the variable set for this process names the simulated chip.
    let chosen = || std::env::var(vendor::SELECTOR_VARIABLE).ok().filter(|name| !name.is_empty());
    let name = if executes { None } else { vendor::compile_only_name(&device_name).or_else(chosen) };
    let version = core.api_version;
    Identity {
        name: name
            .or_else(|| software.map(|driver| driver.name().to_owned()))
            .unwrap_or_else(|| device_name.clone()),
        device_name,
        kind: match core.device_type {
            _ if !executes => "compile-only",
            vk::PhysicalDeviceType::DISCRETE_GPU => "discrete",
            vk::PhysicalDeviceType::INTEGRATED_GPU => "integrated",
            vk::PhysicalDeviceType::VIRTUAL_GPU => "virtual",
            vk::PhysicalDeviceType::CPU => "cpu",
            _ => "other",
        }
        .to_owned(),
        driver_name: properties.driver_name.clone(),
        driver_info: properties.driver_info.clone(),
        driver_id: properties.driver_id.as_raw(),
        driver_version: core.driver_version,
        api_version: format!(
            "{}.{}.{}",
            vk::api_version_major(version),
            vk::api_version_minor(version),
            vk::api_version_patch(version)
        ),
        vendor_id: core.vendor_id,
        device_id: core.device_id,
        uuid: properties.uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Checks memory properties before they are used as indices, so that every caller gets the same
/// error.
fn check_memory_properties(
    core: &vk::PhysicalDeviceProperties,
    memory: &vk::PhysicalDeviceMemoryProperties,
) -> Result<(), DeviceError> {
    let (types, heaps) = (memory.memory_type_count as usize, memory.memory_heap_count as usize);
    let wrong = |what: String| {
        let call = "vkGetPhysicalDeviceMemoryProperties";
        Err(DeviceError::Driver { call, code: format!("reports {what}") })
    };
    // Of the compile-only devices, only shims in place of a kernel's device have no memory.
    if types == 0 && core.device_type == vk::PhysicalDeviceType::CPU {
        return wrong("no memory type".to_owned());
    }
    if types > vk::MAX_MEMORY_TYPES {
        return wrong(format!("{types} memory types (at most {} are possible)", vk::MAX_MEMORY_TYPES));
    }
    if heaps > vk::MAX_MEMORY_HEAPS {
        return wrong(format!("{heaps} memory heaps (at most {} are possible)", vk::MAX_MEMORY_HEAPS));
    }
    let invalid_type = memory.memory_types_as_slice().iter().find(|kind| kind.heap_index as usize >= heaps);
    invalid_type
        .map_or(Ok(()), |kind| wrong(format!("memory of heap {}, and {heaps} heaps", kind.heap_index)))
}

/// Returns true if a device is compile-only: Mesa's null back ends have a special name, and a shim in place of a
/// kernel's device may have no memory.
fn is_null(core: &vk::PhysicalDeviceProperties, memory: &vk::PhysicalDeviceMemoryProperties) -> bool {
    let name = string_or_empty(core.device_name_as_c_str().ok());
    memory.memory_types_as_slice().is_empty() || name.starts_with(compile_only::NULL_HARDWARE)
}

fn make_capabilities(
    limits: &vk::PhysicalDeviceLimits,
    properties: &ExtendedProperties,
    features: &Features,
    families: &[ComputeFamily],
    software: Option<SoftwareDriver>,
    is_cpu: bool,
) -> Capabilities {
    let (smallest, largest) = properties.subgroup_size_range;
    Capabilities {
        executes: true,
        is_cpu,
        shares_choices: false,
        host_threads: true,
        memory_model: features.is_enabled(Feature::VulkanMemoryModel),
        device_scope: features.is_enabled(Feature::VulkanMemoryModelDeviceScope),
        availability_visibility_chains: features
            .is_enabled(Feature::VulkanMemoryModelAvailabilityVisibilityChains),
        subgroup_size: properties.subgroup_size,
        subgroup_size_range: properties.subgroup_size_range,
        full_subgroups: features.is_enabled(Feature::ComputeFullSubgroups)
            && features.is_enabled(Feature::SubgroupSizeControl)
            && (properties.may_require_subgroup_size || smallest == largest),
        subgroups_in_compute: properties.subgroup_stages.contains(vk::ShaderStageFlags::COMPUTE),
        max_workgroup_invocations: limits.max_compute_work_group_invocations,
        max_workgroup_size: limits.max_compute_work_group_size,
        max_workgroups: limits.max_compute_work_group_count[0],
        max_workgroup_subgroups: properties.max_workgroup_subgroups,
        max_workgroup_memory_bytes: limits
            .max_compute_shared_memory_size
            .saturating_sub(properties.split_barrier_bytes),
        max_storage_buffer_bytes: limits.max_storage_buffer_range.into(),
        max_storage_buffers: limits
            .max_per_stage_descriptor_storage_buffers
            .min(limits.max_descriptor_set_storage_buffers)
            .min(limits.max_per_stage_resources),
        max_push_constant_bytes: limits.max_push_constants_size,
        compute_queues: families.iter().map(|family| family.queues).collect(),
        graphics_queues: families
            .iter()
            .filter(|family| family.graphics)
            .map(|family| family.queues)
            .collect(),
        max_point_size: limits.point_size_range[1] as u32,
        loop_budget: (software == Some(SoftwareDriver::Lavapipe)).then_some(LAVAPIPE_LOOP_BUDGET),
        features: [
            features.enabled(),
            subgroup_operations(properties.subgroup_stages, properties.subgroup_operations).collect(),
        ]
        .concat(),
        memory_types: Vec::new(),
    }
}

fn compute_families(families: &[vk::QueueFamilyProperties]) -> Vec<ComputeFamily> {
    (0..)
        .zip(families)
        .filter(|(_, family)| family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0)
        .map(|(index, family)| ComputeFamily {
            index,
            queues: family.queue_count,
            timestamp_bits: family.timestamp_valid_bits,
            graphics: family.queue_flags.contains(vk::QueueFlags::GRAPHICS),
        })
        .collect()
}

fn has_unified_memory(memory: &vk::PhysicalDeviceMemoryProperties) -> bool {
    let needed = vk::MemoryPropertyFlags::DEVICE_LOCAL
        | vk::MemoryPropertyFlags::HOST_VISIBLE
        | vk::MemoryPropertyFlags::HOST_COHERENT
        | vk::MemoryPropertyFlags::HOST_CACHED;
    memory.memory_types_as_slice().iter().any(|kind| kind.property_flags.contains(needed))
}

fn extension_names(extensions: &[vk::ExtensionProperties]) -> BTreeSet<String> {
    extensions.iter().map(|extension| string_or_empty(extension.extension_name_as_c_str().ok())).collect()
}

/// Returns a driver's string, with invalid UTF-8 replaced.
fn string_or_empty(bytes: Option<&CStr>) -> String {
    bytes.map_or_else(String::new, |bytes| bytes.to_string_lossy().into_owned())
}
