//! A Vulkan device as an implementation of the device interface.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use ash::{ext, khr, vk};
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings};
use plan::{
    Capabilities, Device, DeviceError, Feature, Identity, Image, Kernel, KernelStage, Plan, Prepared,
};

use crate::error::{allocation_error, call_error};
use crate::executable::{self, Executable};
use crate::gpu::Gpu;
use crate::image::image_features;
use crate::instance::Instance;
use crate::memory::MemoryHeap;
use crate::null::NullPrepared;
use crate::physical::{QueriedDevice, physical_devices, to_listed};
use crate::pipeline::PipelineCompiler;
use crate::pipelines::PipelineStore;
use crate::prepared::VulkanPrepared;
use crate::scoped::DependencyRecorder;
use crate::select::{ListedDevice, Selector};
use crate::slices;

/// The block size of memory allocations. Some software drivers clear allocations immediately, which takes 0.4
/// ms per MiB.
const BLOCK_BYTES: u64 = 4 << 20;

/// Options of a Vulkan device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Enables the Khronos validation layer with synchronization validation; see
    /// [`Device::validation_messages`].
    pub validation: bool,
    /// Treats memory as on a discrete GPU: [`plan::BufferMemory::Device`] is not host-visible, and
    /// [`plan::PlanStep::ToHost`] copies. It allows testing this path on software drivers.
    pub staging: bool,
}

/// A Vulkan device.
///
/// Dropping it does not wait. If a submission never finished ([`Prepared`] dropped in flight, or device
/// lost), the device is **leaked on purpose**: destroying it, or waiting for it, would block forever on
/// drivers whose kernel hangs. It ends with its process, so run work that may hang in a separate process.
pub struct VulkanDevice {
    identity: Identity,
    capabilities: Capabilities,
    /// The functions that report a pipeline's executables, if supported.
    kernel_executables: Option<khr::pipeline_executable_properties::Device>,
    // Dropped in this order: memory and logical device, instance.
    gpu: Gpu,
    instance: Instance,
}

/// Returns the devices of all drivers that the loader finds in this process's environment (see
/// [`crate::DriverEnvironment`]), the default one first.
///
/// # Errors
///
/// [`DeviceError::NoDriver`] without a loader, a driver or a device.
pub fn list_devices() -> Result<Vec<ListedDevice>, DeviceError> {
    let instance = Instance::new(false)?;
    Ok(to_listed(&physical_devices(&instance)?))
}

impl VulkanDevice {
    /// Opens the selected device.
    ///
    /// For a CPU driver, which computes in threads of this process, the calling thread requests short time
    /// slices from then on.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoDriver`], [`DeviceError::NoSuchDevice`]; [`DeviceError::Unsupported`] for a device
    /// below Vulkan 1.1 or without a compute queue, and if validation is requested but not installed.
    pub fn open(selector: &Selector, options: DeviceOptions) -> Result<VulkanDevice, DeviceError> {
        let instance = Instance::new(options.validation)?;
        let mut devices = physical_devices(&instance)?;
        let index = selector.choose_from(&to_listed(&devices))?.index;
        if index >= devices.len() {
            return Err(DeviceError::NoSuchDevice(selector.to_string()));
        }
        VulkanDevice::create(instance, devices.swap_remove(index), options)
    }

    fn create(
        instance: Instance,
        physical: QueriedDevice,
        options: DeviceOptions,
    ) -> Result<VulkanDevice, DeviceError> {
        if physical.available.version < vk::API_VERSION_1_1 {
            return Err(DeviceError::Unsupported("Vulkan 1.1".to_owned()));
        }
        if physical.families.is_empty() {
            return Err(DeviceError::Unsupported("a queue with compute".to_owned()));
        }
        let priorities: Vec<Vec<f32>> =
            physical.families.iter().map(|family| vec![1.0; family.queues as usize]).collect();
        let queues: Vec<_> = physical
            .families
            .iter()
            .zip(&priorities)
            .map(|(family, priorities)| {
                vk::DeviceQueueCreateInfo::default()
                    .queue_family_index(family.index)
                    .queue_priorities(priorities)
            })
            .collect();
        let extensions: Vec<_> =
            physical.available.extensions_to_enable().iter().map(|name| name.as_ptr()).collect();
        let mut features = physical.features.clone();
        let mut chain = features.link_chain(&physical.available);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .push_next(&mut chain);
        // Driver threads should run as soon as they wake, even on a busy machine.
        if physical.capabilities.is_cpu {
            slices::request_short_slices();
        }
        // SAFETY: all data that `info` points to outlives the call, and the device supports the requested
        // features and queues.
        let raw = unsafe { instance.raw.create_device(physical.handle, &info, None) }
            .map_err(call_error("vkCreateDevice"))?;
        let memory = Allocator::new(&AllocatorCreateDesc {
            instance: instance.raw.clone(),
            device: raw.clone(),
            physical_device: physical.handle,
            debug_settings: AllocatorDebugSettings::default(),
            buffer_device_address: physical.features.is_enabled(Feature::BufferDeviceAddress),
            allocation_sizes: AllocationSizes::new(BLOCK_BYTES, BLOCK_BYTES),
        });
        let memory = match memory {
            Ok(memory) => memory,
            Err(error) => {
                // SAFETY: nothing was made from the device yet.
                unsafe { raw.destroy_device(None) };
                return Err(allocation_error(error));
            }
        };
        let names = options.validation.then(|| ext::debug_utils::Device::new(&instance.raw, &raw));
        let executables = physical
            .features
            .is_enabled(Feature::PipelineExecutableInfo)
            .then(|| khr::pipeline_executable_properties::Device::new(&instance.raw, &raw));
        let dependency_recorder =
            match (physical.features.is_enabled(Feature::Synchronization2), physical.available.version) {
                (false, _) => DependencyRecorder::Vulkan10,
                (true, vk::API_VERSION_1_3..) => DependencyRecorder::Core,
                (true, _) => {
                    DependencyRecorder::Extension(khr::synchronization2::Device::new(&instance.raw, &raw))
                }
            };
        let mesh = physical
            .features
            .is_enabled(Feature::MeshShader)
            .then(|| ext::mesh_shader::Device::new(&instance.raw, &raw));
        let compiler = PipelineCompiler {
            raw: raw.clone(),
            may_require_subgroup_size: physical.may_require_subgroup_size,
        };
        let heap = MemoryHeap {
            raw,
            allocator: RefCell::new(memory),
            types: physical.memory_types,
            format_features: image_features(&instance.raw, physical.handle),
            atom_bytes: physical.atom_bytes,
            has_addresses: physical.features.is_enabled(Feature::BufferDeviceAddress),
            needs_staging: options.staging || !physical.unified_memory,
            names,
        };
        Ok(VulkanDevice {
            gpu: Gpu::new(
                heap,
                PipelineStore::new(compiler),
                physical.families,
                physical.timestamp_period,
                physical.capabilities.max_workgroups,
                dependency_recorder,
                mesh,
            ),
            kernel_executables: executables,
            identity: physical.identity,
            capabilities: physical.capabilities,
            instance,
        })
    }

    /// Compiles a kernel and returns the driver's executables. Nothing runs, so compile-only devices support
    /// it.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unsupported`] with the name of the missing extension, or the driver's error.
    pub fn executables(&self, kernel: &Kernel, images: &[Image]) -> Result<Vec<Executable>, DeviceError> {
        let lacks = |feature: &&Feature| !self.capabilities.has_feature(**feature);
        if let Some(feature) = kernel.stage.required_features().iter().find(lacks) {
            return Err(DeviceError::Unsupported(feature.to_string()));
        }
        let query_executables = || {
            executable::compile_executables(
                self.kernel_executables.as_ref(),
                self.gpu.pipelines.compiler(),
                kernel,
                images,
            )
        };
        let identity = &self.identity;
        let vendor = vendor::find_by_identity(&identity.name, &identity.device_name, identity.driver_id);
        if let Some((vendor, _)) = vendor
            && matches!(vendor.text_source, vendor::TextSource::StandardOutput { .. })
        {
            let stage = match kernel.stage {
                KernelStage::Compute => "COMPUTE",
                KernelStage::Vertex => "VERTEX",
                KernelStage::Fragment { .. } | KernelStage::VertexAndFragment { .. } => "FRAGMENT",
                KernelStage::Mesh => "MESH",
                KernelStage::Task { .. } => "TASK",
            };
            let (found, output) = crate::capture::capture_output(query_executables);
            let mut found = found?;
            executable::add_forms(&mut found, &vendor.text_source.code_forms(&output, stage));
            return Ok(found);
        }
        query_executables()
    }
}

impl Device for VulkanDevice {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError> {
        plan.validate()?;
        self.capabilities.check_plan(plan)?;
        if self.gpu.is_abandoned() {
            return Err(DeviceError::DeviceLost("an earlier submission"));
        }
        if !self.capabilities.executes {
            return Ok(Box::new(NullPrepared));
        }
        Ok(Box::new(VulkanPrepared::new(&self.gpu, plan)?))
    }

    fn clear_pipeline_cache(&self) {
        self.gpu.pipelines.clear_cache();
    }

    fn validation_messages(&self) -> Vec<String> {
        self.instance.take_messages()
    }
}

impl Drop for VulkanDevice {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            self.instance.abandon();
            return;
        }
        // Prepared plans borrow the device, so none exists any more; each has waited for its submission or
        // abandoned the device.
        self.gpu.pipelines.clear_cache();
        // SAFETY: the allocator is not used afterwards, and is dropped before the device that it allocates
        // from.
        unsafe {
            ManuallyDrop::drop(&mut self.gpu.heap);
            self.gpu.raw.destroy_device(None);
        }
    }
}
