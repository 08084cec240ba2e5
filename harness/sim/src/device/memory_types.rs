//! The memory types of the simulated GPU.

use plan::{BufferMemory, MemoryProperties};

/// The memory types that tests can request. All behave the same in the machine.
pub(super) const MEMORY_TYPES: [MemoryProperties; 4] = {
    let none = MemoryProperties {
        device_local: false,
        host_visible: false,
        host_coherent: false,
        host_cached: false,
        device_coherent: false,
    };
    [
        MemoryProperties { device_local: true, ..none },
        MemoryProperties { host_visible: true, host_coherent: true, ..none },
        MemoryProperties { host_visible: true, host_cached: true, ..none },
        MemoryProperties { device_local: true, device_coherent: true, ..none },
    ]
};

/// Returns the properties of the memory of a buffer; `None` if the device has no such type.
pub(super) fn memory_type(memory: BufferMemory) -> Option<MemoryProperties> {
    let [local, coherent, cached, _] = MEMORY_TYPES;
    match memory {
        BufferMemory::Device | BufferMemory::Private => Some(local),
        BufferMemory::Shared => Some(coherent),
        BufferMemory::Readback => Some(cached),
        BufferMemory::Typed(kind) | BufferMemory::Mapped(kind) => {
            MEMORY_TYPES.into_iter().find(|properties| kind.matches_type(*properties))
        }
    }
}
