//! Buffers: allocation and host access.

use std::cell::RefCell;
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::{ext, vk};
use gpu_allocator::MemoryLocation;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme, Allocator};
use plan::{BufferMemory, DeviceError, MemoryKind, MemoryProperties};

use crate::error::{allocation_error, call_error};

/// A buffer with its memory. [`MemoryHeap::destroy_buffer`] destroys it.
pub(crate) struct DeviceBuffer {
    pub(crate) raw: vk::Buffer,
    allocation: Option<Allocation>,
    /// A dedicated allocation, if a memory type was requested.
    dedicated_memory: vk::DeviceMemory,
    /// The mapping of a dedicated allocation, and its size.
    mapped: Option<(NonNull<u32>, vk::DeviceSize)>,
    properties: vk::MemoryPropertyFlags,
    /// Size in words.
    len: usize,
}

/// The allocator of buffers and images.
pub(crate) struct MemoryHeap {
    pub(crate) raw: ash::Device,
    pub(crate) allocator: RefCell<Allocator>,
    /// The memory types, by their index.
    pub(crate) types: Vec<vk::MemoryPropertyFlags>,
    /// The features of images of each format, by its number in SPIR-V.
    pub(crate) format_features: Vec<vk::FormatFeatureFlags>,
    /// `nonCoherentAtomSize`.
    pub(crate) atom_bytes: vk::DeviceSize,
    /// True if buffers may have addresses.
    pub(crate) has_addresses: bool,
    /// True if device memory is not host-visible, so that results are copied.
    pub(crate) needs_staging: bool,
    /// Names objects in validation messages, if validation is enabled.
    pub(crate) names: Option<ext::debug_utils::Device>,
}

impl MemoryHeap {
    /// Names an object for validation messages; without validation it does nothing.
    pub(crate) fn set_name<T: vk::Handle>(&self, object: T, name: &str) -> Result<(), DeviceError> {
        let (Some(names), Ok(name)) = (&self.names, CString::new(name)) else { return Ok(()) };
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(&name);
        // SAFETY: the object is this device's, and the name lives until after the call.
        unsafe { names.set_debug_utils_object_name(&info) }
            .map_err(call_error("vkSetDebugUtilsObjectNameEXT"))
    }

    /// Creates a buffer that these queue families share; with one or none, ownership is exclusive.
    ///
    /// Host-visible memory is coherent and stays mapped.
    pub(crate) fn create_buffer(
        &self,
        words: u64,
        memory: BufferMemory,
        families: &[u32],
        extra_usage: vk::BufferUsageFlags,
        name: &str,
    ) -> Result<DeviceBuffer, DeviceError> {
        let too_large = || DeviceError::Unsupported(format!("memory for {words} words ({name})"));
        let len = usize::try_from(words).map_err(|_| too_large())?;
        let size = words.checked_mul(4).ok_or_else(too_large)?;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | extra_usage;
        let mut info = vk::BufferCreateInfo::default().size(size).usage(usage);
        if families.len() > 1 {
            info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(families);
        }
        // SAFETY: the device lives, and the families are distinct ones of it.
        let raw = unsafe { self.raw.create_buffer(&info, None) }.map_err(call_error("vkCreateBuffer"))?;
        // From here on, the error paths destroy the buffer.
        let mut buffer = DeviceBuffer {
            raw,
            allocation: None,
            dedicated_memory: vk::DeviceMemory::null(),
            mapped: None,
            properties: vk::MemoryPropertyFlags::empty(),
            len,
        };
        let bound = self.bind_memory(&mut buffer, memory, name).and_then(|()| self.set_name(raw, name));
        match bound {
            Ok(()) => Ok(buffer),
            Err(error) => {
                self.destroy_buffer(&mut buffer);
                Err(error)
            }
        }
    }

    /// Returns the address of a buffer that was created with one.
    pub(crate) fn buffer_address(&self, buffer: &DeviceBuffer) -> vk::DeviceAddress {
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.raw);
        // SAFETY: the buffer belongs to this device and was created with this usage, which requires the
        // feature.
        unsafe { self.raw.get_buffer_device_address(&info) }
    }

    fn bind_memory(
        &self,
        buffer: &mut DeviceBuffer,
        memory: BufferMemory,
        name: &str,
    ) -> Result<(), DeviceError> {
        // SAFETY: the buffer was made by this device.
        let requirements = unsafe { self.raw.get_buffer_memory_requirements(buffer.raw) };
        let location = match memory {
            BufferMemory::Private => match self.mappable_private_type(&requirements) {
                // The allocator would map it.
                Some(index) => return self.bind_dedicated_type(buffer, &requirements, index),
                None => MemoryLocation::GpuOnly,
            },
            BufferMemory::Typed(kind) => return self.bind_dedicated_memory(buffer, &requirements, kind),
            BufferMemory::Mapped(kind) => {
                self.bind_dedicated_memory(buffer, &requirements, kind)?;
                return self.map_memory(buffer, requirements.size);
            }
            BufferMemory::Device if self.needs_staging => MemoryLocation::GpuOnly,
            BufferMemory::Device | BufferMemory::Readback => MemoryLocation::GpuToCpu,
            BufferMemory::Shared => MemoryLocation::CpuToGpu,
        };
        let description = AllocationCreateDesc {
            name,
            requirements,
            location,
            linear: true,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        };
        let allocation = self.allocator.borrow_mut().allocate(&description).map_err(allocation_error)?;
        // SAFETY: the handle is used only to bind the buffer to the range that was allocated for it.
        let bound =
            unsafe { self.raw.bind_buffer_memory(buffer.raw, allocation.memory(), allocation.offset()) };
        buffer.properties = allocation.memory_properties();
        buffer.allocation = Some(allocation);
        bound.map_err(call_error("vkBindBufferMemory"))
    }

    /// Binds a buffer to a dedicated allocation of the first matching memory type.
    fn bind_dedicated_memory(
        &self,
        buffer: &mut DeviceBuffer,
        requirements: &vk::MemoryRequirements,
        kind: MemoryKind,
    ) -> Result<(), DeviceError> {
        let index = self.find_memory_type(requirements, kind)?;
        self.bind_dedicated_type(buffer, requirements, index)
    }

    /// Binds a buffer to a dedicated allocation that is not mapped.
    fn bind_dedicated_type(
        &self,
        buffer: &mut DeviceBuffer,
        requirements: &vk::MemoryRequirements,
        index: u32,
    ) -> Result<(), DeviceError> {
        buffer.dedicated_memory = self.allocate_dedicated_memory(requirements, index)?;
        buffer.properties = self.types.get(index as usize).copied().unwrap_or_default();
        // SAFETY: the memory was made for this buffer, which is bound once.
        unsafe { self.raw.bind_buffer_memory(buffer.raw, buffer.dedicated_memory, 0) }
            .map_err(call_error("vkBindBufferMemory"))
    }

    /// Maps a dedicated allocation until it is freed.
    fn map_memory(&self, buffer: &mut DeviceBuffer, bytes: vk::DeviceSize) -> Result<(), DeviceError> {
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: only this buffer uses the memory, which was not mapped before, and its type is
        // host-visible.
        let start = unsafe { self.raw.map_memory(buffer.dedicated_memory, 0, vk::WHOLE_SIZE, flags) };
        let start = NonNull::new(start.map_err(call_error("vkMapMemory"))?.cast::<u32>());
        let start = start.filter(|start| start.is_aligned());
        buffer.mapped = Some((start.ok_or(DeviceError::OutOfMemory("vkMapMemory"))?, bytes));
        Ok(())
    }

    /// Returns the mapping of a buffer for host threads.
    pub(crate) fn mapped_memory(&self, buffer: &DeviceBuffer) -> Option<MappedMemory> {
        let (start, bytes) = buffer.mapped?;
        Some(MappedMemory {
            start,
            len: buffer.len,
            memory: buffer.dedicated_memory,
            bytes,
            atom_bytes: self.atom_bytes.max(4),
            is_coherent: buffer.properties.contains(vk::MemoryPropertyFlags::HOST_COHERENT),
        })
    }

    /// Returns the first memory type of a kind.
    pub(crate) fn find_memory_type(
        &self,
        requirements: &vk::MemoryRequirements,
        kind: MemoryKind,
    ) -> Result<u32, DeviceError> {
        let is_of_kind = |flags| properties_of(flags).is_some_and(|properties| kind.matches_type(properties));
        let found = self.first_type(requirements, is_of_kind);
        found.ok_or_else(|| DeviceError::Unsupported(kind.to_string()))
    }

    /// Returns the type for private memory if it is host-visible; `None` if the allocator finds another one.
    pub(crate) fn mappable_private_type(&self, requirements: &vk::MemoryRequirements) -> Option<u32> {
        type Flags = vk::MemoryPropertyFlags;
        let usual = |flags: Flags| properties_of(flags).is_some();
        let is_local = |flags: Flags| usual(flags) && flags.contains(Flags::DEVICE_LOCAL);
        let hidden = |flags: Flags| is_local(flags) && !flags.contains(Flags::HOST_VISIBLE);
        if self.first_type(requirements, hidden).is_some() {
            return None;
        }
        self.first_type(requirements, is_local).or_else(|| self.first_type(requirements, usual))
    }

    fn first_type(
        &self,
        requirements: &vk::MemoryRequirements,
        is_wanted: impl Fn(vk::MemoryPropertyFlags) -> bool,
    ) -> Option<u32> {
        let allowed =
            |index: u32| 1_u32.checked_shl(index).is_some_and(|bit| requirements.memory_type_bits & bit != 0);
        (0_u32..)
            .zip(&self.types)
            .find(|(index, flags)| allowed(*index) && is_wanted(**flags))
            .map(|(index, _)| index)
    }

    /// Allocates dedicated memory of a type.
    pub(crate) fn allocate_dedicated_memory(
        &self,
        requirements: &vk::MemoryRequirements,
        index: u32,
    ) -> Result<vk::DeviceMemory, DeviceError> {
        // Permitted whenever the feature is enabled, even if this buffer has no address.
        let mut flags_info =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let mut info =
            vk::MemoryAllocateInfo::default().allocation_size(requirements.size).memory_type_index(index);
        if self.has_addresses {
            info = info.push_next(&mut flags_info);
        }
        // SAFETY: the device lives, and the index is one of its memory types.
        unsafe { self.raw.allocate_memory(&info, None) }.map_err(call_error("vkAllocateMemory"))
    }

    /// Destroys a buffer. Nothing on the device may use it.
    pub(crate) fn destroy_buffer(&self, buffer: &mut DeviceBuffer) {
        // SAFETY: this device created the buffer, and by the contract of this function no submission uses it.
        unsafe {
            self.raw.destroy_buffer(buffer.raw, None);
            self.raw.free_memory(buffer.dedicated_memory, None);
        }
        if let Some(allocation) = buffer.allocation.take()
            && let Err(error) = self.allocator.borrow_mut().free(allocation)
        {
            tracing::error!(%error, "memory was not given back");
        }
    }
}

/// Mapped memory for host threads, valid until its buffer is destroyed.
pub(crate) struct MappedMemory {
    start: NonNull<u32>,
    /// Size in words.
    len: usize,
    memory: vk::DeviceMemory,
    bytes: vk::DeviceSize,
    atom_bytes: vk::DeviceSize,
    is_coherent: bool,
}

// SAFETY: it accesses the memory only by atomic operations, and its Vulkan calls need no external
// synchronization.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    /// Returns a word; `None` beyond the end of the buffer.
    pub(crate) fn word(&self, index: u64) -> Option<&AtomicU32> {
        let index = usize::try_from(index).ok().filter(|index| *index < self.len)?;
        // SAFETY: the word is within the mapping and aligned; while host threads run, the host accesses it
        // only by atomics, and the buffer outlives them.
        Some(unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(index)) })
    }

    /// Returns the range of `nonCoherentAtomSize` around a word.
    fn atom_range(&self, word: u64) -> vk::MappedMemoryRange<'static> {
        let first = word * 4 / self.atom_bytes * self.atom_bytes;
        let size = if first + self.atom_bytes > self.bytes { vk::WHOLE_SIZE } else { self.atom_bytes };
        vk::MappedMemoryRange::default().memory(self.memory).offset(first).size(size)
    }

    fn whole_range(&self) -> vk::MappedMemoryRange<'static> {
        vk::MappedMemoryRange::default().memory(self.memory).size(vk::WHOLE_SIZE)
    }

    pub(crate) fn flush_word(&self, raw: &ash::Device, word: u64) -> Result<(), DeviceError> {
        self.flush_range(raw, self.atom_range(word))
    }

    pub(crate) fn invalidate_word(&self, raw: &ash::Device, word: u64) -> Result<(), DeviceError> {
        self.invalidate_range(raw, self.atom_range(word))
    }

    pub(crate) fn flush_all(&self, raw: &ash::Device) -> Result<(), DeviceError> {
        self.flush_range(raw, self.whole_range())
    }

    pub(crate) fn invalidate_all(&self, raw: &ash::Device) -> Result<(), DeviceError> {
        self.invalidate_range(raw, self.whole_range())
    }

    /// Flushes a range; coherent memory needs no flush.
    fn flush_range(&self, raw: &ash::Device, range: vk::MappedMemoryRange<'_>) -> Result<(), DeviceError> {
        if self.is_coherent {
            return Ok(());
        }
        // SAFETY: the whole memory is mapped, and the range consists of atoms within it.
        unsafe { raw.flush_mapped_memory_ranges(&[range]) }.map_err(call_error("vkFlushMappedMemoryRanges"))
    }

    fn invalidate_range(
        &self,
        raw: &ash::Device,
        range: vk::MappedMemoryRange<'_>,
    ) -> Result<(), DeviceError> {
        if self.is_coherent {
            return Ok(());
        }
        // SAFETY: as in `flush_range`.
        unsafe { raw.invalidate_mapped_memory_ranges(&[range]) }
            .map_err(call_error("vkInvalidateMappedMemoryRanges"))
    }
}

/// Returns the properties of a memory type; `None` for special types that no test requests.
pub(crate) fn properties_of(flags: vk::MemoryPropertyFlags) -> Option<MemoryProperties> {
    type Flags = vk::MemoryPropertyFlags;
    let usual = Flags::DEVICE_LOCAL | Flags::HOST_VISIBLE | Flags::HOST_COHERENT | Flags::HOST_CACHED;
    let device_coherent = flags.contains(Flags::DEVICE_COHERENT_AMD);
    let special = if device_coherent {
        Flags::DEVICE_COHERENT_AMD | Flags::DEVICE_UNCACHED_AMD
    } else {
        Flags::empty()
    };
    (usual | special).contains(flags).then(|| MemoryProperties {
        device_local: flags.contains(Flags::DEVICE_LOCAL),
        host_visible: flags.contains(Flags::HOST_VISIBLE),
        host_coherent: flags.contains(Flags::HOST_COHERENT),
        host_cached: flags.contains(Flags::HOST_CACHED),
        device_coherent,
    })
}

impl DeviceBuffer {
    pub(crate) fn properties(&self) -> Option<MemoryProperties> {
        properties_of(self.properties)
    }

    pub(crate) fn size_in_bytes(&self) -> vk::DeviceSize {
        self.len as vk::DeviceSize * 4
    }

    /// Replaces `copy` by the first `words` words as the host sees them, or by all if there are fewer; `None`
    /// if it is not host-visible.
    pub(crate) fn copy_words(&self, words: usize, copy: &mut Vec<u32>) -> Option<()> {
        let start = self.mapping_start()?;
        copy.clear();
        copy.extend((0..words.min(self.len)).map(|index| {
            // SAFETY: the word is within the mapping and aligned. The load is atomic, because a faulty driver
            // may still write to the memory.
            unsafe { AtomicU32::from_ptr(start.add(index)) }.load(Ordering::Relaxed)
        }));
        Some(())
    }

    /// Returns the words for writing. No submission that uses the buffer may be in flight.
    pub(crate) fn write(&mut self) -> Option<&mut [u32]> {
        let start = self.mapping_start()?;
        // SAFETY: the mapping covers the buffer, lives as long as the allocation, and is aligned to a word. By
        // the contract of this function the device writes nothing while the slice lives, `self` is borrowed
        // mutably, and no two buffers share memory. Any bits are a valid `u32`.
        Some(unsafe { std::slice::from_raw_parts_mut(start, self.len) })
    }

    /// Returns one word as an atomic, even while the device uses the buffer.
    fn word(&self, index: u64) -> Option<&AtomicU32> {
        let start = self.mapping_start()?;
        let index = usize::try_from(index).ok().filter(|index| *index < self.len)?;
        // SAFETY: the word is within the mapping and aligned; while kernels run, the host accesses it only by
        // atomics.
        Some(unsafe { AtomicU32::from_ptr(start.add(index)) })
    }

    pub(crate) fn load(&self, index: u64) -> Option<u32> {
        self.word(index).map(|word| word.load(Ordering::Relaxed))
    }

    pub(crate) fn store(&self, index: u64, value: u32) -> Option<()> {
        self.word(index).map(|word| word.store(value, Ordering::Relaxed))
    }

    fn mapping_start(&self) -> Option<*mut u32> {
        let pointer = self.allocation.as_ref()?.mapped_ptr()?.cast::<u32>();
        pointer.is_aligned().then_some(pointer.as_ptr())
    }
}
