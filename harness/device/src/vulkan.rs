//! A Vulkan device behind the device interface.

use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::mem::ManuallyDrop;

use ash::{ext, khr, vk};
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings};
use plan::{Capabilities, Device, DeviceError, Identity, Kernel, Plan, Prepared, Queue};

use crate::error::{allocation_failed, failed};
use crate::features::Features;
use crate::instance::Instance;
use crate::null::NullPrepared;
use crate::physical::{ComputeFamily, Physical, listed, physical_devices};
use crate::pipeline::Maker;
use crate::pipelines::Pipelines;
use crate::prepared::VulkanPrepared;
use crate::select::{Listed, Selector};

/// Memory is reserved in blocks of this size: some software drivers clear what they reserve at once, 0.4 ms a mebibyte.
const BLOCK_BYTES: u64 = 4 << 20;

/// How to open a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Turn the Khronos validation layer on, synchronization validation included; see [`Device::validation_messages`].
    pub validation: bool,
    /// Treat memory as a discrete GPU has it: [`plan::Memory::Device`] is out of the host's reach, and
    /// [`plan::Step::ToHost`] copies. So that this path runs on software drivers too.
    pub staging: bool,
}

/// A Vulkan device.
///
/// Dropping it waits for nothing. If a submission never finished ([`Prepared`] dropped while in flight, or the device
/// lost), the device is **left alive on purpose**: destroying it, or waiting for it, would block for ever on drivers whose
/// kernel hangs. It ends with its process; run work that may hang in a process of its own.
pub struct VulkanDevice {
    identity: Identity,
    capabilities: Capabilities,
    pub(crate) families: Vec<ComputeFamily>,
    pub(crate) timestamp_period: f32,
    pub(crate) may_require_subgroup_size: bool,
    stages: bool,
    pub(crate) memory_types: Vec<vk::MemoryPropertyFlags>,
    /// Where validation is on, its messages name objects.
    names: Option<ext::debug_utils::Device>,
    /// Where the driver tells what it made of a pipeline.
    executables: Option<khr::pipeline_executable_properties::Device>,
    abandoned: Cell<bool>,
    pub(crate) pipelines: Pipelines,
    // Dropped in this order: memory, device, instance.
    pub(crate) memory: ManuallyDrop<RefCell<Allocator>>,
    pub(crate) raw: ash::Device,
    instance: Instance,
}

/// The devices of all drivers that the loader finds in this process's environment (see
/// [`crate::DriverEnvironment`]), the one that is taken by default first.
///
/// # Errors
/// [`DeviceError::NoDriver`] without a loader, a driver or a device.
pub fn list() -> Result<Vec<Listed>, DeviceError> {
    let instance = Instance::new(false)?;
    Ok(listed(&physical_devices(&instance)?))
}

impl VulkanDevice {
    /// Opens the device that is meant.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`], [`DeviceError::NoSuchDevice`]; [`DeviceError::Unsupported`] for a device below
    /// Vulkan 1.2 or without a compute queue, and where validation is asked for and not installed.
    pub fn open(selector: &Selector, options: Options) -> Result<VulkanDevice, DeviceError> {
        let instance = Instance::new(options.validation)?;
        let mut devices = physical_devices(&instance)?;
        let index = selector.choose(&listed(&devices))?.index;
        if index >= devices.len() {
            return Err(DeviceError::NoSuchDevice(selector.to_string()));
        }
        VulkanDevice::create(instance, devices.swap_remove(index), options)
    }

    fn create(instance: Instance, physical: Physical, options: Options) -> Result<VulkanDevice, DeviceError> {
        if physical.available.version < vk::API_VERSION_1_2 {
            return Err(DeviceError::Unsupported("Vulkan 1.2".to_owned()));
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
            Features::extensions(&physical.available).iter().map(|name| name.as_ptr()).collect();
        let mut features = physical.features.clone();
        let mut chain = features.chain(&physical.available);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .push_next(&mut chain);
        // SAFETY: everything that `info` points to lives until after the call, and all of it is what the device offers.
        let raw = unsafe { instance.raw.create_device(physical.handle, &info, None) }
            .map_err(failed("vkCreateDevice"))?;
        let memory = Allocator::new(&AllocatorCreateDesc {
            instance: instance.raw.clone(),
            device: raw.clone(),
            physical_device: physical.handle,
            debug_settings: AllocatorDebugSettings::default(),
            buffer_device_address: physical.features.buffer_device_address(),
            allocation_sizes: AllocationSizes::new(BLOCK_BYTES, BLOCK_BYTES),
        });
        let memory = match memory {
            Ok(memory) => memory,
            Err(error) => {
                // SAFETY: nothing was made from the device yet.
                unsafe { raw.destroy_device(None) };
                return Err(allocation_failed(error));
            }
        };
        let names = options.validation.then(|| ext::debug_utils::Device::new(&instance.raw, &raw));
        let executables = physical
            .features
            .executables()
            .then(|| khr::pipeline_executable_properties::Device::new(&instance.raw, &raw));
        Ok(VulkanDevice {
            names,
            executables,
            identity: physical.identity,
            capabilities: physical.capabilities,
            families: physical.families,
            timestamp_period: physical.timestamp_period,
            may_require_subgroup_size: physical.may_require_subgroup_size,
            stages: options.staging || !physical.unified_memory,
            memory_types: physical.memory_types,
            abandoned: Cell::new(false),
            pipelines: Pipelines::new(Maker {
                raw: raw.clone(),
                may_require_subgroup_size: physical.may_require_subgroup_size,
            }),
            memory: ManuallyDrop::new(RefCell::new(memory)),
            raw,
            instance,
        })
    }

    /// The functions of the extension by which a pipeline tells its code, where the driver has it.
    pub(crate) fn executable_functions(&self) -> Option<&khr::pipeline_executable_properties::Device> {
        self.executables.as_ref()
    }

    /// What makes its pipelines.
    pub(crate) fn maker(&self) -> Maker {
        Maker { raw: self.raw.clone(), may_require_subgroup_size: self.may_require_subgroup_size }
    }

    /// Whether device memory is out of the host's reach, so that results are copied.
    pub(crate) fn stages(&self) -> bool {
        self.stages
    }

    /// Names an object for validation messages; without validation it does nothing.
    pub(crate) fn set_name<T: vk::Handle>(&self, object: T, name: &str) -> Result<(), DeviceError> {
        let (Some(names), Ok(name)) = (&self.names, CString::new(name)) else { return Ok(()) };
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(&name);
        // SAFETY: the object is this device's, and the name lives until after the call.
        unsafe { names.set_debug_utils_object_name(&info) }.map_err(failed("vkSetDebugUtilsObjectNameEXT"))
    }

    /// Leaves everything to the end of the process: something still runs.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.get()
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
        self.capabilities.check(plan)?;
        if self.is_abandoned() {
            return Err(DeviceError::DeviceLost("an earlier submission"));
        }
        if !self.capabilities.executes {
            return Ok(Box::new(NullPrepared));
        }
        Ok(Box::new(VulkanPrepared::new(self, plan)?))
    }

    fn compile_ahead(&self, kernels: Vec<Kernel>) {
        // What the device lacks is said where the kernel is wanted.
        let wanted = |kernel: &Kernel| {
            let queues = vec![Queue { family: 0 }];
            let plan = Plan { kernels: vec![kernel.clone()], queues, ..Plan::default() };
            kernel.images.is_empty() && plan.validate().is_ok() && self.capabilities.check(&plan).is_ok()
        };
        if self.capabilities.executes && !self.is_abandoned() {
            self.pipelines.make_ahead(kernels.into_iter().filter(wanted).collect(), Vec::new());
        }
    }

    fn forget_compiled(&self) {
        self.pipelines.forget();
    }

    fn validation_messages(&self) -> Vec<String> {
        self.instance.take_messages()
    }
}

impl Drop for VulkanDevice {
    fn drop(&mut self) {
        if self.is_abandoned() {
            self.instance.abandon();
            return;
        }
        // Every prepared plan borrows the device, so all are gone; each has waited for its submission or abandoned the
        // device.
        self.pipelines.forget();
        // SAFETY: the allocator is not used again, and goes before the device that it allocates from.
        unsafe {
            ManuallyDrop::drop(&mut self.memory);
            self.raw.destroy_device(None);
        }
    }
}
