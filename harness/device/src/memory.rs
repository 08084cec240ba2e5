//! Memory of buffers and images, an allocation for each, and host access to buffers.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::{ext, vk};
use plan::{BufferMemory, DeviceError, MemoryProperties};

use crate::error::call_error;

/// The memory of a buffer or an image. The handle is null without memory.
#[derive(Default)]
pub(crate) struct ResourceMemory {
    pub(crate) raw: vk::DeviceMemory,
    /// The mapping, if the host uses the memory.
    mapped: Option<NonNull<u32>>,
    bytes: vk::DeviceSize,
    properties: vk::MemoryPropertyFlags,
}

/// A buffer with its memory. [`MemoryHeap::destroy_buffer`] destroys it.
pub(crate) struct DeviceBuffer {
    pub(crate) raw: vk::Buffer,
    memory: ResourceMemory,
    /// True if only host threads use the mapping, by atomic operations.
    is_for_host_threads: bool,
    /// Size in words.
    len: usize,
}

/// Creates buffers and images.
pub(crate) struct MemoryHeap {
    pub(crate) raw: ash::Device,
    /// The memory types, by their index.
    pub(crate) types: Vec<vk::MemoryPropertyFlags>,
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
        let is_for_host_threads = matches!(memory, BufferMemory::Mapped(_));
        let mut buffer = DeviceBuffer { raw, memory: ResourceMemory::default(), is_for_host_threads, len };
        let bound = self.bind_memory(&mut buffer, memory).and_then(|()| self.set_name(raw, name));
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

    fn bind_memory(&self, buffer: &mut DeviceBuffer, memory: BufferMemory) -> Result<(), DeviceError> {
        // SAFETY: the buffer was made by this device.
        let requirements = unsafe { self.raw.get_buffer_memory_requirements(buffer.raw) };
        self.allocate_memory(&requirements, memory, &mut buffer.memory)?;
        // SAFETY: the memory was made for this buffer, which is bound once.
        unsafe { self.raw.bind_buffer_memory(buffer.raw, buffer.memory.raw, 0) }
            .map_err(call_error("vkBindBufferMemory"))
    }

    /// Allocates memory of the best type, and maps it if the host uses it. An error may leave memory, which
    /// the owner frees.
    pub(crate) fn allocate_memory(
        &self,
        requirements: &vk::MemoryRequirements,
        memory: BufferMemory,
        allocated: &mut ResourceMemory,
    ) -> Result<(), DeviceError> {
        let index = self.choose_type(requirements, memory)?;
        // Permitted whenever the feature is enabled, even if this buffer has no address.
        let mut flags_info =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let mut info =
            vk::MemoryAllocateInfo::default().allocation_size(requirements.size).memory_type_index(index);
        if self.has_addresses {
            info = info.push_next(&mut flags_info);
        }
        // SAFETY: the device lives, and the index is one of its memory types.
        let raw = unsafe { self.raw.allocate_memory(&info, None) }.map_err(call_error("vkAllocateMemory"))?;
        let properties = self.types.get(index as usize).copied().unwrap_or_default();
        *allocated = ResourceMemory { raw, mapped: None, bytes: requirements.size, properties };
        let is_mapped = match memory {
            BufferMemory::Private | BufferMemory::Typed(_) => false,
            BufferMemory::Device => !self.needs_staging,
            BufferMemory::Readback | BufferMemory::Shared | BufferMemory::Mapped(_) => true,
        };
        if is_mapped {
            let flags = vk::MemoryMapFlags::empty();
            // SAFETY: the memory is new, and its type is host-visible.
            let start = unsafe { self.raw.map_memory(raw, 0, vk::WHOLE_SIZE, flags) };
            let start = NonNull::new(start.map_err(call_error("vkMapMemory"))?.cast::<u32>());
            let start = start.filter(|start| start.is_aligned());
            allocated.mapped = Some(start.ok_or(DeviceError::OutOfMemory("vkMapMemory"))?);
        }
        Ok(())
    }

    /// Returns the first memory type with the most properties that suit the use of the memory.
    fn choose_type(
        &self,
        requirements: &vk::MemoryRequirements,
        memory: BufferMemory,
    ) -> Result<u32, DeviceError> {
        type Flags = vk::MemoryPropertyFlags;
        let shared = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        let (preferred, needed) = match memory {
            BufferMemory::Typed(kind) | BufferMemory::Mapped(kind) => {
                let is_of_kind =
                    |flags| properties_of(flags).is_some_and(|properties| kind.matches_type(properties));
                let found = self.first_type(requirements, is_of_kind);
                return found.ok_or_else(|| DeviceError::Unsupported(kind.to_string()));
            }
            BufferMemory::Private => (Flags::DEVICE_LOCAL, Flags::empty()),
            BufferMemory::Device if self.needs_staging => (Flags::DEVICE_LOCAL, Flags::empty()),
            BufferMemory::Device | BufferMemory::Readback => (shared | Flags::HOST_CACHED, shared),
            BufferMemory::Shared => (shared | Flags::DEVICE_LOCAL, shared),
        };
        let is_hidden = needed.is_empty();
        let usual = |flags: Flags| properties_of(flags).is_some();
        let wanted = [
            // Memory that the host does not use is not visible to it, if possible.
            self.first_type(requirements, |flags| {
                usual(flags)
                    && flags.contains(preferred)
                    && !(is_hidden && flags.contains(Flags::HOST_VISIBLE))
            }),
            self.first_type(requirements, |flags| usual(flags) && flags.contains(preferred)),
            self.first_type(requirements, |flags| usual(flags) && flags.contains(needed)),
            self.first_type(requirements, |flags| flags.contains(needed)),
        ];
        wanted.into_iter().flatten().next().ok_or(DeviceError::OutOfMemory("vkAllocateMemory"))
    }

    /// Returns the mapping of a buffer for host threads.
    pub(crate) fn mapped_memory(&self, buffer: &DeviceBuffer) -> Option<MappedMemory> {
        let start = buffer.memory.mapped.filter(|_| buffer.is_for_host_threads)?;
        Some(MappedMemory {
            start,
            len: buffer.len,
            memory: buffer.memory.raw,
            bytes: buffer.memory.bytes,
            atom_bytes: self.atom_bytes.max(4),
            is_coherent: buffer.memory.properties.contains(vk::MemoryPropertyFlags::HOST_COHERENT),
        })
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

    /// Destroys a buffer. Nothing on the device may use it.
    pub(crate) fn destroy_buffer(&self, buffer: &mut DeviceBuffer) {
        // SAFETY: this device created the buffer, and by the contract of this function no submission uses it.
        unsafe {
            self.raw.destroy_buffer(buffer.raw, None);
            self.raw.free_memory(buffer.memory.raw, None);
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
        properties_of(self.memory.properties)
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
        self.memory.mapped.filter(|_| !self.is_for_host_threads).map(NonNull::as_ptr)
    }
}
